//! Events: hints that something has happened to a background process, for hosts with an event loop.
//!
//! A hint carries no data, so hints coalesce: at most one is pending per process and kind. The queue is bounded by the
//! number of processes and never drops anything.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::fd;

/// What has happened. What it announces can be read when the event is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// There is new output, or a stream has ended.
    Output,
    /// The shell has exited.
    Exit,
    /// The process has settled: its exit and its output are final.
    Settled,
    /// Nothing of the tree is alive any more.
    Quiescent,
}

const KINDS: [EventKind; 4] = [EventKind::Output, EventKind::Exit, EventKind::Settled, EventKind::Quiescent];

/// One hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The process, see [`Process::id`](crate::Process::id).
    pub process_id: u64,
    /// The request's tag.
    pub tag: u64,
    /// What has happened to it.
    pub kind: EventKind,
}

/// What is called when events begin to wait.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// The pending events of an executor. Nothing is kept until somebody asks for the event descriptor or to be woken.
#[derive(Default)]
pub(crate) struct Events(Mutex<Option<Queue>>);

#[derive(Default)]
struct Queue {
    /// The pipe whose read end is readable while events wait, once somebody has asked for it.
    pipe: Option<(OwnedFd, OwnedFd)>,
    wake: Option<Wake>,
    /// Processes with something pending, in the order in which they got it.
    order: VecDeque<u64>,
    pending: HashMap<u64, Pending>,
}

#[derive(Default)]
struct Pending {
    tag: u64,
    kinds: [bool; 4],
}

impl Events {
    /// The descriptor that is readable while events wait. Events are kept from the first call on.
    ///
    /// A pipe, since event loops such as libuv take neither eventfds nor epoll descriptors.
    pub(crate) fn descriptor(&self) -> io::Result<RawFd> {
        let mut guard = self.0.lock();
        if let Some((read, _)) = guard.as_ref().and_then(|queue| queue.pipe.as_ref()) {
            return Ok(read.as_raw_fd());
        }
        let (read, write) = fd::pipe()?;
        fd::set_nonblocking(&read)?;
        fd::set_nonblocking(&write)?;
        let number = read.as_raw_fd();
        let queue = guard.get_or_insert_with(Queue::default);
        queue.pipe = Some((read, write));
        if !queue.order.is_empty() {
            queue.raise();
        }
        Ok(number)
    }

    /// Has `wake` called whenever events begin to wait, in place of what was called before: on a thread of the library,
    /// with no lock held; and at once, on this thread, when some wait already. Events are kept from the first call on.
    pub(crate) fn set_wake(&self, wake: Option<Wake>) {
        let mut guard = self.0.lock();
        let queue = guard.get_or_insert_with(Queue::default);
        let before = std::mem::replace(&mut queue.wake, wake.clone());
        let waiting = !queue.order.is_empty();
        drop(guard);
        drop(before); // what it owns may do anything when it is let go
        if let Some(wake) = wake.filter(|_| waiting) {
            wake();
        }
    }

    /// `muted` is set for a process whose last handle is gone.
    pub(crate) fn announce(&self, process_id: u64, tag: u64, kind: EventKind, muted: &AtomicBool) {
        let mut guard = self.0.lock();
        let Some(queue) = &mut *guard else { return };
        if muted.load(Ordering::Relaxed) {
            return;
        }
        let was_empty = queue.order.is_empty();
        let pending = queue.pending.entry(process_id).or_insert_with(|| {
            queue.order.push_back(process_id);
            Pending { tag, ..Pending::default() }
        });
        pending.kinds[kind as usize] = true;
        if was_empty {
            queue.raise();
            let wake = queue.wake.clone();
            drop(guard);
            if let Some(wake) = wake {
                wake();
            }
        }
    }

    /// The next pending event, if there is one. The descriptor stops being readable with the last.
    pub(crate) fn next(&self) -> Option<Event> {
        let mut guard = self.0.lock();
        let queue = guard.as_mut()?;
        let process_id = *queue.order.front()?;
        let pending = queue.pending.get_mut(&process_id)?;
        let kind = *KINDS.iter().find(|kind| pending.kinds[**kind as usize])?;
        pending.kinds[kind as usize] = false;
        let event = Event { process_id, tag: pending.tag, kind };
        if pending.kinds.contains(&true) {
            // The others have their turn first: one busy process must not keep them waiting.
            queue.order.rotate_left(1);
        } else {
            queue.remove(process_id);
        }
        Some(event)
    }

    /// Mutes a process whose last handle is gone, and takes back what is pending for it.
    pub(crate) fn forget(&self, process_id: u64, muted: &AtomicBool) {
        let mut guard = self.0.lock();
        muted.store(true, Ordering::Relaxed); // under the lock, so that no announcement slips in behind
        if let Some(queue) = &mut *guard {
            queue.remove(process_id);
        }
    }
}

impl Queue {
    /// One byte stands for "not empty", so the pipe never fills up.
    fn raise(&self) {
        if let Some((_, write)) = &self.pipe {
            let _ = nix::unistd::write(write, &[1]);
        }
    }

    fn remove(&mut self, process_id: u64) {
        if self.pending.remove(&process_id).is_none() {
            return;
        }
        if let Some(at) = self.order.iter().position(|id| *id == process_id) {
            self.order.remove(at);
        }
        if let Some((read, _)) = self.pipe.as_ref().filter(|_| self.order.is_empty()) {
            let mut sink = [0u8; 16];
            let _ = nix::unistd::read(read, &mut sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::AtomicUsize;

    use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

    use super::*;

    fn readable(fd: RawFd) -> bool {
        // SAFETY: the descriptor belongs to the `Events` of the test, which outlives the call.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() == 1
    }

    fn announce(events: &Events, process_id: u64, kind: EventKind) {
        events.announce(process_id, 9, kind, &AtomicBool::new(false));
    }

    #[test]
    fn nothing_is_kept_until_somebody_asks_for_the_descriptor() {
        let events = Events::default();
        announce(&events, 1, EventKind::Exit);
        events.descriptor().unwrap();
        assert_eq!(events.next(), None);
    }

    #[test]
    fn events_of_one_kind_coalesce_and_the_descriptor_tells_whether_any_wait() {
        let events = Events::default();
        let fd = events.descriptor().unwrap();
        assert!(!readable(fd));
        for _ in 0..100_000 {
            announce(&events, 7, EventKind::Output);
        }
        announce(&events, 7, EventKind::Exit);
        assert!(readable(fd));
        assert_eq!(events.next(), Some(Event { process_id: 7, tag: 9, kind: EventKind::Output }));
        assert!(readable(fd));
        assert_eq!(events.next(), Some(Event { process_id: 7, tag: 9, kind: EventKind::Exit }));
        assert!(!readable(fd));
        assert_eq!(events.next(), None);
    }

    #[test]
    fn whoever_wants_to_be_woken_is_called_when_events_begin_to_wait() {
        let events = Events::default();
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        events.set_wake(Some(Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        })));
        announce(&events, 1, EventKind::Output);
        announce(&events, 2, EventKind::Exit);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        while events.next().is_some() {}
        announce(&events, 1, EventKind::Exit);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        events.set_wake(None);
        while events.next().is_some() {}
        announce(&events, 1, EventKind::Settled);
        assert_eq!((calls.load(Ordering::Relaxed), Arc::strong_count(&calls)), (2, 1));
    }

    #[test]
    fn whoever_comes_when_events_wait_already_is_called_at_once() {
        let events = Events::default();
        let fd = events.descriptor().unwrap();
        announce(&events, 1, EventKind::Exit);
        assert!(readable(fd));
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        events.set_wake(Some(Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        })));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_busy_process_does_not_keep_the_others_waiting() {
        let events = Events::default();
        events.descriptor().unwrap();
        for kind in KINDS {
            announce(&events, 1, kind);
        }
        announce(&events, 2, EventKind::Exit);
        let order: Vec<_> = std::iter::from_fn(|| events.next()).map(|event| event.process_id).collect();
        assert_eq!(order, [1, 2, 1, 1, 1]);
    }

    #[test]
    fn the_events_of_a_forgotten_process_are_gone() {
        let events = Events::default();
        let fd = events.descriptor().unwrap();
        announce(&events, 1, EventKind::Settled);
        let muted = AtomicBool::new(false);
        events.forget(1, &muted);
        events.announce(1, 9, EventKind::Quiescent, &muted);
        assert!(!readable(fd));
        assert_eq!(events.next(), None);
    }
}
