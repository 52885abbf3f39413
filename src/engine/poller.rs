//! Waiting for many descriptors at once, where there is no epoll: `poll` over all of them.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use parking_lot::Mutex;

/// What is waited for on a descriptor. The other end's closing is always told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
    /// Only the other end's closing.
    Closing,
    /// Readable, told once.
    ReadOnce,
}

/// Nothing can be registered while another thread waits.
#[derive(Clone)]
pub(crate) enum Register {}

impl Register {
    pub(crate) fn add(&self, _: RawFd, _: u64, _: Interest) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn remove(&self, _: RawFd) {
        match *self {}
    }
}

pub(crate) struct Poller {
    registered: Mutex<Vec<(RawFd, u64, Interest)>>,
    ready: Vec<u64>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller { registered: Mutex::default(), ready: Vec::new() })
    }

    pub(crate) fn register(&self) -> Option<Register> {
        None
    }

    pub(crate) fn add(&self, fd: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.registered.lock().push((fd, key, interest));
        Ok(())
    }

    pub(crate) fn change(&self, fd: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.remove(fd);
        self.add(fd, key, interest)
    }

    pub(crate) fn remove(&self, fd: RawFd) {
        self.registered.lock().retain(|registered| registered.0 != fd);
    }

    /// Waits until something is ready or the time has passed, and gives the keys of what is ready.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> io::Result<impl Iterator<Item = u64> + '_> {
        let registered = self.registered.get_mut();
        let mut polled: Vec<libc::pollfd> = registered
            .iter()
            .map(|(fd, _, interest)| {
                let events = match interest {
                    Interest::Read | Interest::ReadOnce => libc::POLLIN,
                    Interest::Write => libc::POLLOUT,
                    Interest::Closing => 0,
                };
                libc::pollfd { fd: *fd, events, revents: 0 }
            })
            .collect();
        // Rounded up: a time that is waited for in vain is waited for again.
        let timeout = limit.map_or(-1, |limit| limit.as_millis().min(i32::MAX as u128 - 1) as i32 + 1);
        // SAFETY: the array is as long as said.
        if unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.ready.clear();
        let mut answers = polled.iter();
        registered.retain(|(_, key, interest)| {
            let ready = answers.next().is_some_and(|answer| answer.revents != 0);
            if ready {
                self.ready.push(*key);
            }
            !(ready && *interest == Interest::ReadOnce)
        });
        Ok(self.ready.iter().copied())
    }
}
