//! Waiting for many descriptors at once: epoll, with times finer than its milliseconds.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// What is waited for on a descriptor. The other end's closing is always told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
    /// Only the other end's closing.
    Closing,
    /// Readable, told once: for pidfds. A copy of the descriptor in a fork of the host keeps the registration alive
    /// after we have closed ours, and would be told for ever.
    ReadOnce,
}

/// From here on a millisecond more does not matter.
const COARSE: Duration = Duration::from_secs(1);
/// The longest wait, so that it fits into any count of milliseconds.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Poller {
    register: Register,
    ready: Vec<EpollEvent>,
}

/// What descriptors are waited for: to be added to from any thread, also while another waits.
#[derive(Clone)]
pub(crate) struct Register(Arc<Epoll>);

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Poller { register: Register(Arc::new(epoll)), ready: vec![EpollEvent::empty(); 256] })
    }

    /// Where others can register descriptors.
    pub(crate) fn register(&self) -> Option<Register> {
        Some(self.register.clone())
    }

    pub(crate) fn add(&self, fd: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.register.add(fd, key, interest)
    }

    pub(crate) fn change(&self, fd: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.register.control(libc::EPOLL_CTL_MOD, fd, key, interest)
    }

    pub(crate) fn remove(&self, fd: RawFd) {
        self.register.remove(fd);
    }

    /// Waits until something is ready or the time has passed, and gives the keys of what is ready.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> io::Result<impl Iterator<Item = u64> + '_> {
        let mut timeout = EpollTimeout::NONE;
        if let Some(limit) = limit.filter(|limit| *limit >= COARSE) {
            // Rounded up, and bounded: an early return is harmless, the caller looks at the clock.
            timeout =
                EpollTimeout::try_from(limit.min(LONGEST) + Duration::from_millis(1)).unwrap_or(EpollTimeout::MAX);
        } else if let Some(limit) = limit {
            // epoll counts in milliseconds, so what is shorter or finer is waited for in ppoll.
            let mut polled = libc::pollfd { fd: self.register.0 .0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let time = libc::timespec {
                tv_sec: limit.as_secs().min(i32::MAX as u64) as _,
                tv_nsec: limit.subsec_nanos() as _,
            };
            // SAFETY: pointers to locals.
            unsafe { libc::ppoll(&raw mut polled, 1, &raw const time, std::ptr::null()) };
            timeout = EpollTimeout::ZERO;
        }
        let count = match self.register.0.wait(&mut self.ready, timeout) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        Ok(self.ready[..count].iter().map(EpollEvent::data))
    }
}

impl Register {
    pub(crate) fn add(&self, fd: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, key, interest)
    }

    pub(crate) fn remove(&self, fd: RawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Closing);
    }

    fn control(&self, operation: i32, fd: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        let flags = match interest {
            Interest::Read => EpollFlags::EPOLLIN,
            Interest::Write => EpollFlags::EPOLLOUT,
            Interest::Closing => EpollFlags::empty(),
            Interest::ReadOnce => EpollFlags::EPOLLIN | EpollFlags::EPOLLONESHOT,
        };
        let mut event = libc::epoll_event { events: flags.bits() as u32, u64: key };
        // SAFETY: the event is a local; a descriptor that is not open is an error, not undefined.
        match unsafe { libc::epoll_ctl(self.0 .0.as_raw_fd(), operation, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
