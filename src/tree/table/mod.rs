//! The process table of the machine, as far as the end of a tree needs it: who descends from whom, which session they
//! are in, and whose environment carries this executor's mark.
//!
//! Shared by the library and the guard program, so it uses nothing but `core`, `alloc` and [`super::sys`].

mod mark;
mod members;
mod path;
mod stat;

pub(crate) use members::Root;

#[cfg(dsh_guard_program)]
use alloc::vec::Vec;

use self::members::Index;
use self::path::Path;
use super::sys::{self, Fd};

/// One process. Kernel threads never become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: i32,
    pub(crate) ppid: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Clock ticks since boot. With the pid, it names a process for good: numbers are used again, this pair is not.
    pub(crate) start_time: u64,
    /// Dead, and only waiting for its parent.
    pub(crate) zombie: bool,
    /// The process id from `DSH_PROCESS_ID`, when that has this executor's id.
    pub(crate) mark: Option<u64>,
}

/// One look at all processes. It is no snapshot: processes come and go while it is taken.
#[derive(Debug)]
pub(crate) struct Table {
    /// Sorted by pid.
    entries: Vec<Entry>,
    /// Places by parent and by session, since one table serves many trees.
    parents: Index,
    sessions: Index,
    /// Places of those with a mark, by mark.
    marked: Vec<(u64, u32)>,
    /// The process that looks; never a member of anything.
    own: i32,
}

impl Table {
    /// Reads the table. Processes that started before `since` (clock ticks since boot) can't carry the mark, so their
    /// environments are not read. Fails with the errno of `/proc`.
    pub(crate) fn read(executor_id: &[u8; 32], since: u64) -> Result<Self, i32> {
        let proc_dir = Fd::open(c"/proc")?;
        let mut entries = Vec::with_capacity(256);
        let mut batch = [0; 8192];
        loop {
            let length = proc_dir.list(&mut batch)?;
            if length == 0 {
                break;
            }
            for pid in Pids(&batch[..length]) {
                let Some(stat) = read_stat(&proc_dir, pid)? else { continue };
                if stat.kernel_thread {
                    continue;
                }
                let mut entry = stat.entry;
                if !entry.zombie && entry.start_time >= since {
                    entry.mark = mark::read(&proc_dir, pid, executor_id)?;
                }
                entries.push(entry);
            }
        }
        Ok(Self::new(entries, sys::own_pid()))
    }

    fn new(mut entries: Vec<Entry>, own: i32) -> Self {
        // Linux lists them in order.
        if !entries.is_sorted_by_key(|entry| entry.pid) {
            let by_pid = Index::new(&entries, |entry| entry.pid);
            entries = by_pid.places().map(|place| entries[place].clone()).collect();
        }
        // A process that execs from another thread, or a pid that is used again, can be listed twice.
        entries.dedup_by_key(|entry| entry.pid);
        let parents = Index::new(&entries, |entry| entry.ppid);
        let sessions = Index::new(&entries, |entry| entry.session);
        let mut marked: Vec<(u64, u32)> =
            (0u32..).zip(&entries).filter_map(|(place, entry)| Some((entry.mark?, place))).collect();
        marked.sort_unstable();
        Self { entries, parents, sessions, marked, own }
    }

    /// Whether nobody, dead or alive, is in the session.
    #[cfg(dsh_guard_program)]
    pub(crate) fn is_empty_session(&self, session: i32) -> bool {
        self.sessions.of(session).next().is_none()
    }

    pub(crate) fn get(&self, pid: i32) -> Option<&Entry> {
        let index = self.entries.binary_search_by_key(&pid, |entry| entry.pid).ok()?;
        Some(&self.entries[index])
    }

    /// All of them, zombies too, sorted by pid.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// What `/proc/PID/stat` says about one process now, without its mark; to see whether a pid is still who it was.
pub(crate) fn entry_of(pid: i32) -> Option<Entry> {
    let mut stat = [0; stat::BUFFER];
    let length = Fd::open(Path::of("/proc/", pid, "/stat").as_c_str()).ok()?.read(&mut stat).ok()?;
    stat::parse(&stat[..length]).map(|stat| stat.entry)
}

/// The children of all threads of a process; empty where the kernel has no `children` files (they are a build option).
/// Cheap, but may miss some while the process is forking: good for a first look, never for a last one.
#[cfg(not(dsh_guard_program))]
pub(crate) fn children_of(pid: i32) -> Vec<i32> {
    let mut children = Vec::new();
    let Ok(tasks) = Fd::open(Path::of("/proc/", pid, "/task").as_c_str()) else { return children };
    let mut batch = [0; 4096];
    while let Ok(length @ 1..) = tasks.list(&mut batch) {
        for task in Pids(&batch[..length]) {
            let Ok(file) = tasks.open_below(Path::of("", task, "/children").as_c_str()) else { continue };
            read_numbers(&file, &mut children);
        }
    }
    children
}

/// Whether this kernel has `children` files.
#[cfg(not(dsh_guard_program))]
pub(crate) fn lists_children() -> bool {
    static LISTS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *LISTS.get_or_init(|| Fd::open(c"/proc/thread-self/children").is_ok())
}

/// Appends the numbers of a file of numbers with blanks between them.
#[cfg(not(dsh_guard_program))]
fn read_numbers(file: &Fd, numbers: &mut Vec<i32>) {
    let mut chunk = [0; 1024];
    let mut current: Option<i32> = None;
    while let Ok(length @ 1..) = file.read(&mut chunk) {
        for &byte in &chunk[..length] {
            if byte.is_ascii_digit() {
                current = Some(current.unwrap_or(0).saturating_mul(10).saturating_add(i32::from(byte - b'0')));
            } else {
                numbers.extend(current.take());
            }
        }
    }
    numbers.extend(current);
}

/// None when the process is gone.
fn read_stat(proc_dir: &Fd, pid: i32) -> sys::Result<Option<stat::Stat>> {
    let mut buffer = [0; stat::BUFFER];
    let Some(file) = open_of_process(proc_dir, &Path::of("", pid, "/stat"))? else { return Ok(None) };
    match file.read(&mut buffer) {
        Ok(length) => Ok(stat::parse(&buffer[..length])),
        Err(sys::ENOMEM) => Err(sys::ENOMEM),
        Err(_) => Ok(None),
    }
}

/// None when the process is gone or does not let us look. When there is no descriptor or no memory for it, that is an
/// error: a table with holes would show living processes as gone.
fn open_of_process(proc_dir: &Fd, path: &Path) -> sys::Result<Option<Fd>> {
    match proc_dir.open_below(path.as_c_str()) {
        Ok(file) => Ok(Some(file)),
        Err(errno @ (sys::ENOMEM | sys::ENFILE | sys::EMFILE)) => Err(errno),
        Err(_) => Ok(None),
    }
}

/// The entries of a `getdents64` batch whose names are numbers.
struct Pids<'a>(&'a [u8]);

impl Iterator for Pids<'_> {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        /// `d_ino`, `d_off`; then `d_reclen` (2 bytes), `d_type`, and the name up to a NUL.
        const LENGTH: usize = 16;
        const NAME: usize = 19;
        loop {
            let length = usize::from(u16::from_ne_bytes([*self.0.get(LENGTH)?, *self.0.get(LENGTH + 1)?]));
            let name = self.0.get(NAME..length)?;
            self.0 = &self.0[length..];
            let name = name.split(|&byte| byte == 0).next().unwrap_or(&[]);
            if let Some(pid) = stat::number(name).and_then(|pid| i32::try_from(pid).ok()) {
                return Some(pid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn the_own_process_is_in_the_table_as_it_is() {
        let table = Table::read(ID, 0).unwrap();
        let own = table.get(std::process::id() as i32).unwrap();
        assert_eq!(own.ppid, std::os::unix::process::parent_id() as i32);
        assert_eq!(Some(own), entry_of(own.pid).as_ref());
        assert!(table.entries().windows(2).all(|pair| pair[0].pid < pair[1].pid));
        assert!(table.get(-1).is_none() && entry_of(i32::MAX).is_none());
    }

    #[test]
    fn a_marked_process_is_found_by_its_environment() {
        let mark = format!("{}-77", std::str::from_utf8(ID).unwrap());
        let mut child = std::process::Command::new("sleep").arg("60").env("DSH_PROCESS_ID", mark).spawn().unwrap();
        let pid = child.id() as i32;
        let started = entry_of(pid).unwrap().start_time;
        let read = |since| Table::read(ID, since).unwrap().get(pid).unwrap().mark;
        // A process that is being executed has no environment for a moment.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while read(0).is_none() && std::time::Instant::now() < patience {
            std::thread::yield_now();
        }
        let seen = (read(0), read(started), read(started + 1));
        let other = Table::read(&[b'0'; 32], 0).unwrap().get(pid).unwrap().mark;
        let listed = children_of(std::process::id() as i32);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen, (Some(77), Some(77), None));
        assert_eq!(other, None);
        let has_children_files = std::path::Path::new("/proc/thread-self/children").exists();
        assert_eq!(listed.contains(&pid), has_children_files);
    }

    #[test]
    fn a_child_that_nobody_reaped_is_a_zombie() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        while !entry_of(pid).unwrap().zombie {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(entry_of(pid).is_none_or(|entry| !entry.zombie));
    }

    #[test]
    fn only_numbers_are_pids() {
        let mut batch = Vec::new();
        for name in ["1", "self", "42", "12x", ".", "99999999999"] {
            let length = (19 + name.len() + 1).next_multiple_of(8);
            let mut record = vec![0; length];
            record[16..18].copy_from_slice(&(length as u16).to_ne_bytes());
            record[19..19 + name.len()].copy_from_slice(name.as_bytes());
            batch.extend(record);
        }
        assert_eq!(Pids(&batch).collect::<Vec<_>>(), [1, 42]);
        assert_eq!(Pids(&batch[..30]).collect::<Vec<_>>(), [1]);
    }
}
