//! The tree of a command: its leader, the group it leads, and descendants that have left it.

#[cfg(target_os = "linux")]
pub(crate) mod guard;
#[cfg(not(target_os = "linux"))]
#[path = "no_guard.rs"]
pub(crate) mod guard;
mod leader;
mod member;
mod strays;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
pub(crate) mod table;
#[cfg(not(target_os = "linux"))]
#[path = "no_table.rs"]
pub(crate) mod table;

use std::os::fd::RawFd;

use crate::result::{StopStage, Survivor};
pub(crate) use leader::{Leader, LeaderExit};
use member::Member;
pub(crate) use strays::Strays;
use table::{Entry, Root, Table};

/// Reads the process table for one executor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Census {
    executor_id: [u8; 32],
    /// When the host started: whatever started before can't carry the executor's mark.
    since: u64,
}

impl Census {
    pub(crate) fn new(executor_id: [u8; 32]) -> Census {
        let host = table::entry_of(std::process::id() as i32);
        Census { executor_id, since: host.map_or(0, |entry| entry.start_time) }
    }

    pub(crate) fn take(&self) -> Result<Table, i32> {
        Table::read(&self.executor_id, self.since)
    }
}

/// Everything that is known to belong to one command.
pub(crate) struct Tree {
    leader: Leader,
    /// The number of the process in the mark of its environment.
    process: u64,
    /// When the leader started, once a look at the table has told.
    leader_start: Option<u64>,
    /// Live descendants, as far as they have been looked for. Never the leader.
    members: Vec<Member>,
    /// The leader and its group are what started the shell, which is in a session of its own: they are not asked to end,
    /// since the shell's end goes through them.
    spares_leader: bool,
}

impl Tree {
    pub(crate) fn new(leader: Leader, process: u64) -> Tree {
        Tree { leader, process, leader_start: None, members: Vec::new(), spares_leader: false }
    }

    /// Has SIGTERM sent to every descendant by itself, and not to the leader's group.
    pub(crate) fn spare_leader(&mut self) {
        self.spares_leader = true;
    }

    pub(crate) fn leader(&self) -> &Leader {
        &self.leader
    }

    pub(crate) fn leader_mut(&mut self) -> &mut Leader {
        &mut self.leader
    }

    /// Finds the living descendants before anything is signalled: while parents live, ancestry tells of those that have
    /// left the session and wiped their environment, which nothing tells of afterwards.
    ///
    /// With the table, or without where the kernel lists children; then it costs only the tree's own size. `false`
    /// when it takes the table.
    pub(crate) fn find_descendants(&mut self, table: Option<&Table>) -> bool {
        match table {
            Some(table) => self.update(table),
            None if self.leader.is_reaped() => {}
            None if table::lists_children() => self.walk(),
            None => return false,
        }
        true
    }

    /// From the leader downwards.
    fn walk(&mut self) {
        let mut next = vec![self.leader.pid()];
        while let Some(parent) = next.pop() {
            for child in table::children_of(parent) {
                // The parent is looked at again so that a number that went to a stranger meanwhile is not followed.
                let ours = |entry: &Entry| entry.ppid == parent && !entry.zombie;
                if self.members.iter().any(|member| member.pid() == child) {
                    continue;
                }
                if let Some(entry) = table::entry_of(child).filter(ours) {
                    next.push(child);
                    self.members.push(Member::new(&entry));
                }
            }
        }
    }

    /// Signals the group, and every known member that the signal to the group does not reach. SIGKILL goes to everyone
    /// by itself as well: a member may have left the group since it was seen.
    pub(crate) fn signal(&mut self, stage: StopStage) {
        let spared = self.spares_leader && stage == StopStage::Term;
        let reached = !spared && self.signal_group(stage);
        let group = self.leader.pid();
        for member in &mut self.members {
            if reached && member.group() == group && stage == StopStage::Term {
                member.count_as_told(stage);
            } else {
                member.tell(stage);
            }
        }
    }

    fn signal_group(&self, stage: StopStage) -> bool {
        signals_of(stage).iter().all(|signal| self.leader.signal_group(*signal))
    }

    /// Brings the members up to date with a look at the process table, and tells newcomers what the others were told.
    ///
    /// A newcomer in the group is told nothing but SIGKILL: the group was signalled as a whole, and what a member
    /// starts to clean up after itself is not to be ended before its time.
    pub(crate) fn absorb(&mut self, table: &Table, stage: StopStage) {
        self.update(table);
        if stage == StopStage::Kill && !self.members.is_empty() {
            self.signal_group(stage);
        }
        for member in &mut self.members {
            if member.group() == self.leader.pid() && !self.leader.is_reaped() && stage == StopStage::Term {
                member.count_as_told(stage);
            }
            member.tell(stage);
        }
    }

    /// Adds those who are new in the table. Members are members until they end, and with them whom they start: once
    /// its parents are dead, the table may no longer tell that one belongs to the tree.
    fn update(&mut self, table: &Table) {
        member::retain_alive(&mut self.members);
        if !self.leader.is_reaped() {
            self.leader_start = table.get(self.leader.pid()).map(|entry| entry.start_time).or(self.leader_start);
        }
        let leader = Root {
            leader: self.leader.pid(),
            leader_start: self.leader_start,
            reaped: self.leader.is_reaped(),
            process: Some(self.process),
        };
        let roots: Vec<Root> = [leader].into_iter().chain(self.members.iter().map(Member::as_root)).collect();
        for entry in table.members(&roots, false) {
            if entry.pid != self.leader.pid() && !self.members.iter().any(|member| member.is(entry)) {
                self.members.push(Member::new(entry));
            }
        }
        member::retain_alive(&mut self.members);
    }

    /// Lets go of members that have ended. Whether any known member is still alive.
    pub(crate) fn any_alive(&mut self) -> bool {
        member::retain_alive(&mut self.members);
        !self.members.is_empty()
    }

    /// Whether any member is known, as of the last look.
    pub(crate) fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// The live members as they were last seen, but for the leader and what belongs to it as a mere wrapper.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        self.members.iter().filter(|member| !self.is_wrapper(member)).map(Member::survivor).collect()
    }

    /// Whether nothing is known to be alive but what belongs to the wrapper, which is about to end by itself.
    pub(crate) fn only_wrapper_left(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| self.is_wrapper(member))
    }

    /// Whether it is part of what started the shell.
    fn is_wrapper(&self, member: &Member) -> bool {
        self.spares_leader && member.group() == self.leader.pid()
    }

    /// Descriptors that become readable when a member ends.
    pub(crate) fn watched(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.members.iter().filter_map(Member::pidfd)
    }

    /// The same, of members that were not handed out yet.
    pub(crate) fn newly_watched(&mut self) -> impl Iterator<Item = RawFd> + '_ {
        self.members.iter_mut().filter_map(Member::take_unwatched)
    }

    /// Whether there are members whose end no descriptor tells of, so that they have to be looked at now and then.
    pub(crate) fn has_unwatchable(&self) -> bool {
        self.members.iter().any(|member| member.pidfd().is_none())
    }

    /// Which members hold one of these pipes.
    pub(crate) fn holders(&self, pipes: &[u64]) -> Vec<i32> {
        self.members.iter().filter(|member| member.holds(pipes)).map(Member::pid).collect()
    }
}

/// The signals of a stage. A stopped process does not see SIGTERM until it is continued.
pub(crate) fn signals_of(stage: StopStage) -> &'static [i32] {
    match stage {
        StopStage::None => &[],
        StopStage::Term => &[libc::SIGTERM, libc::SIGCONT],
        StopStage::Kill => &[libc::SIGKILL],
    }
}
