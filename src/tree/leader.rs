//! The leader of a tree: the shell itself. Its end, its reaping, and its process group.
//!
//! A group is signalled through the leader's pidfd where the kernel can do that (Linux 6.9): no number is involved, so it
//! holds whoever reaps the leader. Elsewhere its number is the leader's pid, which Linux gives to nobody else while the
//! leader is unreaped, so a signal by number is sent only until then; [`Leader::signal_group`] is the one place that
//! does it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
#[cfg(target_os = "linux")]
use std::time::Duration;
use std::time::Instant;

use super::guard::Seat;
use crate::result::{Exit, Usage};

/// The leader's end, as the kernel told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaderExit {
    pub(crate) exit: Exit,
    pub(crate) usage: Usage,
    pub(crate) at: Instant,
}

pub(crate) struct Leader {
    pid: i32,
    /// `None` where the system has no pidfds.
    pidfd: Option<OwnedFd>,
    reaped: bool,
    /// Where the guard knows of it, until the tree is let go.
    seat: Option<Seat>,
}

impl Leader {
    pub(crate) fn new(pid: i32, pidfd: Option<OwnedFd>, seat: Option<Seat>) -> Leader {
        Leader { pid, pidfd, reaped: false, seat }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// A descriptor that is readable once the leader has ended.
    pub(crate) fn pidfd(&self) -> Option<RawFd> {
        self.pidfd.as_ref().map(AsRawFd::as_raw_fd)
    }

    pub(crate) fn is_reaped(&self) -> bool {
        self.reaped
    }

    /// The leader's end, once it has come. It stays a zombie, so that its number and its group's stay ours.
    pub(crate) fn exit(&self) -> Option<LeaderExit> {
        match self.wait(libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) {
            Ok(found) => found.map(|(exit, usage)| LeaderExit { exit, usage, at: Instant::now() }),
            // ECHILD: the host has the kernel throw its children away (SIGCHLD ignored), or has reaped this one.
            Err(_) => Some(LeaderExit { exit: self.exit_after_reaping(), usage: Usage::default(), at: Instant::now() }),
        }
    }

    /// Waits for its end; when that has not come by `until`, it is killed.
    pub(crate) fn await_exit(&self, until: Option<Instant>) {
        while self.exit().is_none() && until.is_none_or(|until| Instant::now() < until) {
            let mut polled = libc::pollfd { fd: self.pidfd().unwrap_or(-1), events: libc::POLLIN, revents: 0 };
            let limit = if polled.fd < 0 { 1 } else { 50 };
            // SAFETY: one entry, a local. Looked at again now and then, since `until` may pass.
            unsafe { libc::poll(&raw mut polled, 1, limit) };
        }
        if self.exit().is_none() {
            self.signal_group(libc::SIGKILL);
            let _ = self.wait(libc::WEXITED | libc::WNOWAIT);
        }
    }

    /// Takes the zombie away. From here on its number may be anybody's.
    pub(crate) fn reap(&mut self) {
        if !self.reaped {
            self.reaped = true;
            if let Some(seat) = &self.seat {
                seat.leader_reaped();
            }
            // A host that reaps strangers may have been faster.
            let _ = self.wait(libc::WEXITED | libc::WNOHANG);
        }
    }

    /// Signals the whole group. Whether the group could be reached; members of one that could not have to be signalled
    /// one by one.
    pub(crate) fn signal_group(&self, signal: i32) -> bool {
        if self.signal_group_by_pidfd(signal).is_some() {
            return true;
        }
        // SAFETY: getpgrp has no arguments and can't fail.
        let own = unsafe { libc::getpgrp() };
        if !self.reaped && self.pid > 1 && self.pid != own && !self.was_taken() {
            // SAFETY: a plain system call; the number is a group of ours, see above.
            unsafe { libc::kill(-self.pid, signal) };
            return true;
        }
        false
    }

    /// Whether the group can be signalled after the leader has been reaped.
    pub(crate) fn outlives_reaping(&self) -> bool {
        self.signal_group_by_pidfd(0).is_some()
    }

    /// Whether the group has no members any more, in one system call. To be asked after reaping, since a zombie counts
    /// as a member. The signal is none, so it does no harm by number either.
    pub(crate) fn group_is_empty(&self) -> bool {
        debug_assert!(self.reaped, "the leader's own zombie is a member");
        let errno = self.signal_group_by_pidfd(0).unwrap_or_else(|| {
            // SAFETY: a plain system call that sends nothing.
            if unsafe { libc::kill(-self.pid, 0) } < 0 {
                errno()
            } else {
                0
            }
        });
        errno == libc::ESRCH
    }

    /// The errno of signalling the group through the leader's pidfd, 0 for success; `None` where that can't be done.
    fn signal_group_by_pidfd(&self, signal: i32) -> Option<i32> {
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = self.pidfd() {
            const PROCESS_GROUP: u32 = 1 << 2; // PIDFD_SIGNAL_PROCESS_GROUP
            let info = std::ptr::null::<libc::siginfo_t>();
            // SAFETY: a plain system call; without an info the kernel fills one in.
            let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, info, PROCESS_GROUP) };
            let errno = if result < 0 { errno() } else { 0 };
            return (!matches!(errno, libc::EINVAL | libc::ENOSYS)).then_some(errno);
        }
        let _ = signal;
        None
    }

    /// Whether somebody else has reaped the leader, so that its number is no longer ours although we did not.
    fn was_taken(&self) -> bool {
        self.wait(libc::WEXITED | libc::WNOHANG | libc::WNOWAIT).is_err()
    }

    /// The bare `waitid`, which gives the resource usage too. `Ok(None)` when it has not ended.
    #[cfg(target_os = "linux")]
    fn wait(&self, options: i32) -> io::Result<Option<(Exit, Usage)>> {
        let (kind, id) = match self.pidfd() {
            Some(pidfd) => (libc::P_PIDFD, pidfd),
            None => (libc::P_PID, self.pid),
        };
        loop {
            // SAFETY: both structs are plain data that the kernel fills, and may be zero.
            let (mut info, mut usage): (libc::siginfo_t, libc::rusage) = unsafe { std::mem::zeroed() };
            // SAFETY: the pointers are to locals of the types that the call takes.
            let result = unsafe { libc::syscall(libc::SYS_waitid, kind, id, &raw mut info, options, &raw mut usage) };
            if result < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            // SAFETY: after a successful waitid these fields are valid; the pid is 0 when nothing has ended.
            let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
            if pid == 0 {
                return Ok(None);
            }
            let exit = match info.si_code {
                libc::CLD_EXITED => Exit::Code(status),
                code => Exit::Signal { number: status, core_dumped: code == libc::CLD_DUMPED },
            };
            return Ok(Some((exit, usage_of(&usage))));
        }
    }

    /// Elsewhere the usage comes only with the reaping call, so it is not told.
    #[cfg(not(target_os = "linux"))]
    fn wait(&self, options: i32) -> io::Result<Option<(Exit, Usage)>> {
        // SAFETY: plain data that the kernel fills, and may be zero.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a local of the type that the call takes.
        if unsafe { libc::waitid(libc::P_PID, self.pid as libc::id_t, &raw mut info, options) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: after a successful waitid these fields are valid; the pid is 0 when nothing has ended.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        let exit = match info.si_code {
            libc::CLD_EXITED => Exit::Code(status),
            code => Exit::Signal { number: status, core_dumped: code == libc::CLD_DUMPED },
        };
        Ok((pid != 0).then_some((exit, Usage::default())))
    }

    /// The exit status out of the pidfd, which keeps it even when somebody else has reaped the process (Linux 6.15).
    fn exit_after_reaping(&self) -> Exit {
        #[cfg(target_os = "linux")]
        if let Some(status) = self.pidfd.as_ref().and_then(pidfd_exit_status_soon) {
            return match libc::WIFEXITED(status) {
                true => Exit::Code(libc::WEXITSTATUS(status)),
                false => Exit::Signal { number: libc::WTERMSIG(status), core_dumped: libc::WCOREDUMP(status) },
            };
        }
        Exit::Unknown
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The status of a process that somebody else has reaped. Reaping takes it away from us a moment before the kernel has put
/// its status down, so it is looked for a few times.
#[cfg(target_os = "linux")]
fn pidfd_exit_status_soon(pidfd: &OwnedFd) -> Option<i32> {
    const LOOKS: u32 = 50;
    const PAUSE: Duration = Duration::from_micros(100);
    for _ in 0..LOOKS {
        match pidfd_exit_status(pidfd) {
            Ok(Some(status)) => return Some(status),
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return None,
            _ => std::thread::sleep(PAUSE),
        }
    }
    None
}

/// `PIDFD_GET_INFO` with the EXIT bit: the wait status of a process that has been reaped.
#[cfg(target_os = "linux")]
fn pidfd_exit_status(pidfd: &OwnedFd) -> io::Result<Option<i32>> {
    /// `struct pidfd_info` in its first published size.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    const EXIT: u64 = 1 << 3;
    const GET_INFO: libc::Ioctl = nix::request_code_readwrite!(0xff, 11, size_of::<Info>()) as libc::Ioctl;
    let mut info = Info { mask: EXIT, ..Info::default() };
    // SAFETY: the request carries the struct's size, and the kernel writes no more than that.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO, &raw mut info) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((info.mask & EXIT != 0).then_some(info.exit_code))
}

#[cfg(target_os = "linux")]
fn usage_of(usage: &libc::rusage) -> Usage {
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Usage { user: time(usage.ru_utime), system: time(usage.ru_stime), max_rss: usage.ru_maxrss as u64 * 1024 }
}
