//! A descendant of a command, known by pid and start time, and reached through a pidfd: never by a number that could
//! be somebody else's by now.

#[cfg(target_os = "linux")]
use std::os::fd::FromRawFd;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::signals_of;
use super::table::{self, Entry, Root};
use crate::result::{StopStage, Survivor};

pub(crate) struct Member {
    pid: i32,
    group: i32,
    start_time: u64,
    pidfd: Option<OwnedFd>,
    /// Whether the pidfd was handed out to be watched.
    watched: bool,
    told: StopStage,
}

impl Member {
    /// Takes hold of a process that was seen in the process table.
    pub(crate) fn new(entry: &Entry) -> Member {
        Member {
            pid: entry.pid,
            group: entry.group,
            start_time: entry.start_time,
            pidfd: open(entry.pid, entry.start_time),
            watched: false,
            told: StopStage::None,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn group(&self) -> i32 {
        self.group
    }

    pub(crate) fn is(&self, entry: &Entry) -> bool {
        (self.pid, self.start_time) == (entry.pid, entry.start_time)
    }

    /// As a starting point of its own for what it starts, also after it has been lost to init.
    pub(crate) fn as_root(&self) -> Root {
        Root { leader: self.pid, leader_start: Some(self.start_time), reaped: false, process: None }
    }

    pub(crate) fn survivor(&self) -> Survivor {
        Survivor { pid: self.pid, start_time: self.start_time }
    }

    pub(crate) fn pidfd(&self) -> Option<RawFd> {
        self.pidfd.as_ref().map(AsRawFd::as_raw_fd)
    }

    pub(crate) fn take_unwatched(&mut self) -> Option<RawFd> {
        if self.watched {
            return None;
        }
        self.watched = true;
        self.pidfd()
    }

    /// Signals it, unless it was told as much already.
    pub(crate) fn tell(&mut self, stage: StopStage) {
        if self.told >= stage {
            return;
        }
        if self.pidfd.is_none() {
            // Descriptors may have been short when it was found.
            self.pidfd = open(self.pid, self.start_time);
        }
        if let Some(pidfd) = self.pidfd() {
            // One that could not be told is told again at the next look.
            let sent = signals_of(stage).iter().filter(|signal| send(pidfd, **signal)).count();
            if sent == signals_of(stage).len() {
                self.told = stage;
            }
        }
    }

    /// Remembers that a signal to its whole group has told it.
    pub(crate) fn count_as_told(&mut self, stage: StopStage) {
        self.told = self.told.max(stage);
    }

    fn is_alive(&self) -> bool {
        table::entry_of(self.pid).is_some_and(|entry| self.is(&entry) && !entry.zombie)
    }

    /// Whether it has one of these pipes open. Its descriptors may be out of our sight; then it is not counted.
    pub(crate) fn holds(&self, pipes: &[u64]) -> bool {
        let Ok(files) = std::fs::read_dir(format!("/proc/{}/fd", self.pid)) else { return false };
        files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok()).any(|target| {
            let number = target.to_str().and_then(|text| text.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok());
            number.is_some_and(|number: u64| pipes.contains(&number))
        })
    }
}

/// Drops the members that have ended: one `poll` for all that have a pidfd.
pub(crate) fn retain_alive(members: &mut Vec<Member>) {
    /// The kernel refuses more than the host's limit of descriptors at once.
    const AT_A_TIME: usize = 256;
    let mut polled: Vec<libc::pollfd> = members
        .iter()
        .map(|member| libc::pollfd { fd: member.pidfd().unwrap_or(-1), events: libc::POLLIN, revents: 0 })
        .collect();
    for some in polled.chunks_mut(AT_A_TIME) {
        // SAFETY: the array is as long as said, and its descriptors live in `members`. An error leaves all unready.
        unsafe { libc::poll(some.as_mut_ptr(), some.len() as libc::nfds_t, 0) };
    }
    let mut answers = polled.iter();
    members.retain(|member| {
        let ended = answers.next().is_some_and(|answer| answer.revents != 0);
        !ended && (member.pidfd.is_some() || member.is_alive())
    });
}

/// A pidfd of the process with this number and start time. The start time is looked at again once the pidfd is there:
/// from then on the number can't be given to somebody else unseen.
fn open(pid: i32, start_time: u64) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: a plain system call.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if raw < 0 {
            return None;
        }
        // SAFETY: the call has returned a new descriptor that nobody else owns.
        let pidfd = crate::fd::above_stdio(unsafe { OwnedFd::from_raw_fd(raw as RawFd) }).ok()?;
        let same = table::entry_of(pid).is_some_and(|entry| entry.start_time == start_time);
        same.then_some(pidfd)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (pid, start_time);
        None
    }
}

/// Whether the signal was sent.
fn send(pidfd: RawFd, signal: i32) -> bool {
    #[cfg(target_os = "linux")]
    {
        let info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a plain system call. A process that may not be signalled stays, and is reported as a survivor.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, info, 0) == 0 }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (pidfd, signal);
        false
    }
}
