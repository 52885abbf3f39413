//! The witness: which changes a confined command tries, told by the kernel.
//!
//! A seccomp [`filter()`] lets every system call through, but has those that may change something by its path announced
//! to a listener, which is this. A call waits until it is answered; the answer is always to go on, so that nothing is
//! decided here: what is forbidden is refused by the sandbox. What is kept are the [`Attempt`]s at what the policy forbids
//! and the host's own user could have done.
//!
//! What a witness does not see:
//! - changes through descriptors (`fchmod`, `ftruncate`): who has the descriptor was let in before;
//! - calls of other architectures (a 32-bit program on a 64-bit system), which the filter lets through unannounced;
//! - calls that io_uring makes. A command that sets one up makes the witness [blind](Witness::testimony);
//! - symbolic links inside what is the command's alone (its own `/tmp`): paths are followed as the host sees them.
//!
//! Nothing here may wait for long, since the threads that answer have other commands to serve:
//! - a listener is read only when it has something. The kernel counts announcements up when a call comes, and down
//!   only when one is received, so that with one reader a receive after POLLIN finds the count above zero; a task that was
//!   killed in between makes it fail with ENOENT and not wait;
//! - memory of the caller is read by `process_vm_readv`, which waits for nothing of the task itself, but for its
//!   memory map to be free and for pages that are still on disk. A task could hold that up for ever by `userfaultfd`: the
//!   witness is told of that call, and reads no memory of the command from then on;
//! - the file system is asked through [`Host`], which leaves network mounts alone.
//!
//! When the listener is closed while the command lives, its calls fail with ENOSYS from then on. So a witness is given only
//! to commands that do not outlive the host, and is dropped only when nobody uses the filter any more.
//!
//! A task can have one listener only. A command that runs inside another one with a witness gets none, and programs that
//! set up a listener of their own (container engines) fail to with EBUSY.

mod caller;
mod calls;
mod filter;

use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::{seccomp_notif, seccomp_notif_resp};

use self::caller::{Caller, Unreadable};
use self::calls::{Call, Named};
use super::verdict::{is_its_own, Attempt, Could, Deed, Host};
use super::Terms;
pub(crate) use filter::{filter, flags};

/// How many attempts are kept, at different paths.
const MOST: usize = 16;
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SYNC_WAKE_UP: u64 = 1;
/// How long the table of mounts is believed.
const FRESH: Duration = Duration::from_secs(1);

/// Whether there is anything left to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Tasks with the filter live: the descriptor is to be waited for again.
    Waiting,
    /// Nobody uses the filter any more: the witness can be dropped.
    Over,
}

pub(crate) struct Witness {
    listener: OwnedFd,
    terms: Arc<Terms>,
    /// What belongs to the command alone.
    own: PathBuf,
    host: Host,
    host_since: Instant,
    attempts: Vec<Attempt>,
    /// Something was done that could not be seen.
    blind: bool,
    /// The command has a means to hold up whoever reads its memory.
    memory_is_a_trap: bool,
}

impl Witness {
    /// `scratch` is the command's directory for temporary files; `None` when it has a `/tmp` of its own.
    pub(crate) fn new(listener: OwnedFd, terms: Arc<Terms>, scratch: Option<PathBuf>) -> Witness {
        let host = Host::now();
        let own = scratch.map_or_else(|| "/tmp".into(), |path| host.real(&path, true));
        // Whoever answers is woken where the caller has just gone to sleep, which a busy machine does sooner. Older kernels
        // (before 6.6) don't know it and do without.
        // SAFETY: the request takes a number.
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP) };
        Witness {
            listener,
            terms,
            own,
            host,
            host_since: Instant::now(),
            attempts: Vec::new(),
            blind: false,
            memory_is_a_trap: false,
        }
    }

    /// What to wait for: readable means that a call waits, hung up that nobody is left to make one.
    pub(crate) fn fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    /// Answers up to so many of the calls that wait, and never waits itself.
    pub(crate) fn answer(&mut self, limit: usize) -> State {
        for _ in 0..limit {
            let mut poll = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid entry.
            let ready = unsafe { libc::poll(&mut poll, 1, 0) };
            if ready > 0 && poll.revents & libc::POLLIN != 0 {
                self.answer_one();
            } else if ready > 0 && poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                return State::Over;
            } else {
                break;
            }
        }
        State::Waiting
    }

    /// The attempts so far, the first ones.
    #[cfg(test)]
    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The attempts, or `None` when there is none and that means nothing, since not everything could be seen.
    pub(crate) fn testimony(&self) -> Option<&[Attempt]> {
        (!self.blind || !self.attempts.is_empty()).then_some(&self.attempts)
    }

    fn answer_one(&mut self) {
        // SAFETY: both are plain numbers; the kernel wants the first to be zero when it fills it.
        let (mut call, mut answer): (seccomp_notif, seccomp_notif_resp) = unsafe { mem::zeroed() };
        // SAFETY: the request takes a pointer to this very structure.
        if unsafe { libc::ioctl(self.fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut call) } < 0 {
            return; // the task was killed meanwhile
        }
        let seen = self.look(&call);
        answer.id = call.id;
        answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        // SAFETY: as above.
        let went_on = unsafe { libc::ioctl(self.fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw mut answer) } == 0;
        // The answer reaches a task that has waited since it was received. So if it has, what was read under that
        // number was of this task, and not of a later one. What it means can be thought over while the task goes on.
        match seen {
            Ok(Some((call, named))) if went_on => self.weigh(call, &named),
            Err(Unreadable) if went_on => self.blind = true,
            _ => {}
        }
    }

    /// What the call is about, while its task waits.
    fn look(&mut self, notification: &seccomp_notif) -> Result<Option<(&'static Call, Vec<Named>)>, Unreadable> {
        let number = libc::c_long::from(notification.data.nr);
        match number {
            libc::SYS_io_uring_setup => return Err(Unreadable),
            libc::SYS_userfaultfd => self.memory_is_a_trap = true,
            _ => {}
        }
        let Some(call) = calls::by_number(number) else { return Ok(None) };
        if self.attempts.len() >= MOST {
            return Ok(None);
        }
        if self.memory_is_a_trap {
            return Err(Unreadable);
        }
        let caller = Caller::new(notification.pid as i32);
        Ok(Some((call, call.named(&caller, &notification.data.args)?)))
    }

    /// Keeps the call if it is an attempt.
    fn weigh(&mut self, call: &Call, named: &[Named]) {
        if self.host_since.elapsed() > FRESH {
            (self.host, self.host_since) = (Host::now(), Instant::now());
        }
        let places: Vec<PathBuf> = named.iter().map(|one| self.place(one)).collect();
        if places.iter().all(|path| self.is_open_to_it(path)) || !self.can_meet(call, &places) {
            return;
        }
        let mut found = Vec::new();
        for (one, path) in named.iter().zip(places) {
            let could = if self.is_its_own(&path) { Could::Yes } else { self.host.could(one.deed, &path) };
            if could == Could::No {
                return; // which spares the other path as well
            }
            if !self.is_open_to_it(&path) {
                let sure = could == Could::Yes;
                found.push(Attempt { path, call: call.name, deed: one.deed, sure });
            }
        }
        for attempt in found {
            self.keep(attempt);
        }
    }

    fn keep(&mut self, attempt: Attempt) {
        let is_light = |deed| matches!(deed, Deed::Ask | Deed::Describe);
        match self.attempts.iter().position(|known| known.path == attempt.path) {
            // Who has asked, and been told no, may try all the same.
            Some(index) if is_light(self.attempts[index].deed) && !is_light(attempt.deed) => {
                self.attempts[index] = attempt;
            }
            None if self.attempts.len() < MOST => self.attempts.push(attempt),
            _ => {}
        }
    }

    /// Where the host has it.
    fn place(&self, named: &Named) -> PathBuf {
        if self.is_its_own(&named.path) {
            return named.path.clone();
        }
        self.host.real(&named.path, named.follow)
    }

    /// Whether the policy lets the command change it, or it is nobody else's.
    fn is_open_to_it(&self, path: &Path) -> bool {
        self.is_its_own(path) || (self.terms.allows_change(path) && !self.is_hidden(path))
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.terms.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    fn is_its_own(&self, path: &Path) -> bool {
        is_its_own(&self.terms, [self.own.as_path()], path)
    }

    /// Whether a file can get from the first place to the second at all: no file system lets it into another.
    fn can_meet(&self, call: &Call, places: &[PathBuf]) -> bool {
        match places {
            [from, to] if call.joins_two_places() && !places.iter().any(|path| self.is_its_own(path)) => {
                self.host.share_a_file_system(from, to)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests;
