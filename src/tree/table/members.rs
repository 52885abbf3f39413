//! Who belongs to a tree.

#[cfg(dsh_guard_program)]
use alloc::{vec, vec::Vec};

use super::{Entry, Table};

/// What is known for certain about a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// The process that made the session; 0 when the session was seen empty after its leader was reaped, for from
    /// then on the number can be anyone's.
    pub(crate) leader: i32,
    /// When the leader started, where known. A process with its number and another start time is someone else.
    pub(crate) leader_start: Option<u64>,
    /// The leader was reaped, so that nothing but a member of its session keeps its number taken.
    pub(crate) reaped: bool,
    /// Processes with this mark are members.
    pub(crate) process: Option<u64>,
}

impl Table {
    /// The living members of the trees, sorted by pid. A process is one of them when
    ///
    /// - it has a root's mark, or any of this executor's marks if `any_mark`;
    /// - it is a leader that is not reaped;
    /// - it is in a leader's session while the session's number is certainly the leader's (see
    ///   [`Self::owns_session`]), or in the session of another member that leads one;
    /// - its parent is a member.
    ///
    /// Whoever asks, init, and kernel threads are never members, nor is anyone a member through them.
    pub(crate) fn members(&self, roots: &[Root], any_mark: bool) -> Vec<&Entry> {
        let member = vec![false; self.entries.len()];
        let mut found = Found { table: self, member, places: Vec::new() };
        if any_mark {
            self.marked.iter().for_each(|(_, place)| found.add(*place as usize));
        }
        for root in roots {
            if let Some(process) = root.process {
                let first = self.marked.partition_point(|(mark, _)| *mark < process);
                let same = self.marked[first..].iter().take_while(|(mark, _)| *mark == process);
                same.for_each(|(_, place)| found.add(*place as usize));
            }
            if self.owns_session(root) {
                self.sessions.of(root.leader).for_each(|place| found.add(place));
            }
            if let Some(place) = self.living_leader(root) {
                found.add(place);
            }
        }
        let mut explored = 0;
        while let Some(&place) = found.places.get(explored) {
            explored += 1;
            let entry = &self.entries[place];
            self.parents.of(entry.pid).for_each(|child| found.add(child));
            if entry.pid == entry.session {
                self.sessions.of(entry.pid).for_each(|fellow| found.add(fellow));
            }
        }
        found.places.sort_unstable();
        let members = found.places.iter().map(|place| &self.entries[*place]);
        members.filter(|entry| !entry.zombie).collect()
    }

    /// Whether the session with the leader's number is the leader's. Linux keeps a number taken while a process is
    /// in the session or group of that number, so until the leader is reaped, and after that while nobody has its
    /// pid, the number has not been given away.
    fn owns_session(&self, root: &Root) -> bool {
        if root.leader <= 1 || root.leader == self.own {
            return false;
        }
        match (self.get(root.leader), root.leader_start) {
            (None, _) => true,
            (Some(entry), Some(start)) => entry.start_time == start,
            (Some(_), None) => !root.reaped,
        }
    }

    fn living_leader(&self, root: &Root) -> Option<usize> {
        if root.reaped || root.leader <= 1 {
            return None;
        }
        let index = self.entries.binary_search_by_key(&root.leader, |entry| entry.pid).ok()?;
        root.leader_start.is_none_or(|start| start == self.entries[index].start_time).then_some(index)
    }
}

/// The members so far, in the order in which they were found.
struct Found<'a> {
    table: &'a Table,
    member: Vec<bool>,
    places: Vec<usize>,
}

impl Found<'_> {
    /// Zombies are added too, as links to others; they are left out at the end.
    fn add(&mut self, index: usize) {
        let pid = self.table.entries[index].pid;
        if pid > 1 && pid != self.table.own && !self.member[index] {
            self.member[index] = true;
            self.places.push(index);
        }
    }
}

/// Places in a table, found by a number that several entries can share. Number and place are one integer, so that there
/// is one sort for all of the guard program.
#[derive(Debug)]
pub(crate) struct Index(Vec<u64>);

impl Index {
    pub(crate) fn new(entries: &[Entry], key: impl Fn(&Entry) -> i32) -> Self {
        let keyed = (0u64..).zip(entries).map(|(place, entry)| Self::first(key(entry)) | place);
        let mut places: Vec<u64> = keyed.collect();
        places.sort_unstable();
        Self(places)
    }

    /// The places of the entries with this number, in order.
    pub(crate) fn of(&self, key: i32) -> impl Iterator<Item = usize> + '_ {
        let first = Self::first(key);
        let start = self.0.partition_point(|&place| place < first);
        let same = self.0[start..].iter().take_while(move |&&place| place >> 32 == first >> 32);
        same.map(|&place| place as u32 as usize)
    }

    /// All of them, by number.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|&place| place as u32 as usize)
    }

    fn first(key: i32) -> u64 {
        u64::from(key as u32) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: i32 = 900;

    /// A process in its parent's session, unmarked.
    fn process(pid: i32, ppid: i32, session: i32) -> Entry {
        Entry { pid, ppid, group: session, session, start_time: pid as u64, zombie: false, mark: None }
    }

    fn marked(pid: i32, ppid: i32, session: i32, mark: u64) -> Entry {
        Entry { mark: Some(mark), ..process(pid, ppid, session) }
    }

    fn zombie(pid: i32, ppid: i32, session: i32) -> Entry {
        Entry { zombie: true, ..process(pid, ppid, session) }
    }

    fn root(leader: i32) -> Root {
        Root { leader, leader_start: None, reaped: false, process: None }
    }

    fn members(entries: &[Entry], roots: &[Root], any_mark: bool) -> Vec<i32> {
        let mut all = vec![process(1, 0, 1), process(OWN, 1, OWN), process(901, OWN, OWN)];
        all.extend_from_slice(entries);
        let table = Table::new(all, OWN);
        let pids = table.members(roots, any_mark).iter().map(|entry| entry.pid).collect();
        pids
    }

    #[test]
    fn a_living_leader_brings_its_session() {
        let table = [process(1000, OWN, 1000), process(1001, 1000, 1000), process(1002, 1, 1000), process(7, 1, 7)];
        assert_eq!(members(&table, &[root(1000)], false), [1000, 1001, 1002]);
    }

    #[test]
    fn a_leader_before_its_setsid_is_a_member_alone() {
        let table = [process(1000, OWN, OWN), process(1001, OWN, OWN)];
        assert_eq!(members(&table, &[root(1000)], false), [1000]);
    }

    #[test]
    fn the_session_of_a_reaped_leader_is_ours_while_nobody_has_its_number() {
        let reaped = Root { reaped: true, ..root(1000) };
        let survivor = process(1001, 1, 1000);
        assert_eq!(members(std::slice::from_ref(&survivor), std::slice::from_ref(&reaped), false), [1001]);
        let recycled = [process(1000, 1, 1000), survivor.clone()];
        assert_eq!(members(&recycled, std::slice::from_ref(&reaped), false), []);
        let recycled_and_dead = [zombie(1000, 1, 1000), survivor];
        assert_eq!(members(&recycled_and_dead, &[reaped], false), []);
    }

    #[test]
    fn a_leader_with_another_start_time_is_someone_else() {
        let table = [process(1000, 1, 1000), process(1001, 1000, 1000)];
        assert_eq!(members(&table, &[Root { leader_start: Some(999), ..root(1000) }], false), []);
        assert_eq!(members(&table, &[Root { leader_start: Some(1000), ..root(1000) }], false), [1000, 1001]);
        // Marked as reaped a moment before it is: its number is still its own.
        let nearly = Root { leader_start: Some(1000), reaped: true, ..root(1000) };
        assert_eq!(members(&table, &[nearly], false), [1000, 1001]);
    }

    #[test]
    fn an_empty_session_is_never_looked_up_again() {
        let gone = Root { leader: 0, reaped: true, process: Some(3), ..root(0) };
        let table = [process(0, 0, 0), process(5, 0, 0), marked(1005, 1, 1005, 3)];
        assert_eq!(members(&table, &[gone], false), [1005]);
    }

    #[test]
    fn a_zombie_leader_holds_its_session_but_is_no_member() {
        let table = [zombie(1000, OWN, 1000), process(1001, 1, 1000)];
        assert_eq!(members(&table, &[root(1000)], false), [1001]);
    }

    #[test]
    fn marks_find_those_who_left() {
        let table = [marked(1005, 1, 1005, 3), marked(1006, 1, 1006, 4), process(1007, 1, 1007)];
        let three = Root { process: Some(3), ..root(1000) };
        assert_eq!(members(&table, std::slice::from_ref(&three), false), [1005]);
        assert_eq!(members(&table, &[three], true), [1005, 1006]);
        assert_eq!(members(&table, &[], true), [1005, 1006]);
        assert_eq!(members(&table, &[], false), []);
    }

    #[test]
    fn descendants_of_any_depth_are_members_whatever_their_session_and_order() {
        const DEPTH: i32 = 20_000;
        // Each parent has a higher pid than its child, as after the numbers wrapped around.
        let chain = |depth: i32| process(40_000 - depth, if depth == 0 { 1 } else { 40_001 - depth }, 40_000 - depth);
        let mut table: Vec<Entry> = (0..DEPTH).map(chain).collect();
        table[0].mark = Some(1);
        assert_eq!(members(&table, &[], true).len(), DEPTH as usize);
    }

    #[test]
    fn the_session_of_a_member_who_leads_one_is_ours() {
        let table = [marked(1005, 1, 1005, 3), process(1006, 1, 1005), process(1007, 1006, 1007)];
        assert_eq!(members(&table, &[], true), [1005, 1006, 1007]);
    }

    #[test]
    fn init_and_the_caller_are_no_members_and_no_links() {
        let init = marked(1, 0, 1, 3);
        let caller = marked(OWN, 1, OWN, 3);
        let table = Table::new(vec![init, caller, process(50, 1, 1), process(902, OWN, OWN)], OWN);
        assert!(table.members(&[root(1), root(0), root(-1), root(OWN)], true).is_empty());
    }
}
