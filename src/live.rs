//! The live set of an executor: every process of which something may be alive.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::process::Core;
use crate::result::StopBy;

#[derive(Default)]
pub(crate) struct Live {
    set: Mutex<Set>,
    changed: Condvar,
}

#[derive(Default)]
struct Set {
    processes: HashMap<u64, Arc<Core>>,
    /// No process is started any more.
    closed: bool,
    /// Processes that are just being started.
    starting: usize,
    /// A thread of the executor is lost to a panic.
    failed: bool,
    /// Processes that have come and gone.
    ended: u64,
}

impl Live {
    /// Asks to start a process; `None` when the executor is shutting down. While the ticket is there, a shutdown waits
    /// for the process to be taken in, so that none slips through.
    pub(crate) fn begin(&self) -> Option<Ticket<'_>> {
        let mut set = self.set.lock();
        if set.closed {
            return None;
        }
        set.starting += 1;
        Some(Ticket(self))
    }

    /// Nothing of the process is alive any more.
    pub(crate) fn remove(&self, process: u64) {
        let mut set = self.set.lock();
        if set.processes.remove(&process).is_some() {
            set.ended += 1;
        }
        if set.processes.is_empty() {
            self.changed.notify_all();
        }
    }

    /// Takes nobody in any more and has everything stopped. Gives the processes that were live.
    pub(crate) fn close(&self) -> Vec<Arc<Core>> {
        let processes: Vec<_> = {
            let mut set = self.set.lock();
            set.closed = true;
            while set.starting > 0 {
                self.changed.wait(&mut set);
            }
            set.processes.values().cloned().collect()
        };
        for core in &processes {
            core.order_stop(StopBy::Shutdown);
        }
        processes
    }

    /// Waits until nothing is live. `false` when `until` has passed before.
    pub(crate) fn wait_until_empty(&self, until: Option<Instant>) -> bool {
        let mut set = self.set.lock();
        while !set.processes.is_empty() && !set.failed {
            match until {
                None => self.changed.wait(&mut set),
                Some(until) => {
                    if self.changed.wait_until(&mut set, until).timed_out() {
                        return set.processes.is_empty();
                    }
                }
            }
        }
        set.processes.is_empty()
    }

    /// A thread that drives processes is lost: those who wait are told.
    pub(crate) fn fail(&self) {
        let processes: Vec<_> = {
            let mut set = self.set.lock();
            set.failed = true;
            set.processes.values().cloned().collect()
        };
        for core in processes {
            core.fail();
        }
        self.changed.notify_all();
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.set.lock().failed
    }

    /// How many are live, and how many have come and gone.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let set = self.set.lock();
        (set.processes.len(), set.ended)
    }
}

/// The right to start one process.
pub(crate) struct Ticket<'a>(&'a Live);

impl Ticket<'_> {
    /// The process has been started, and is the executor's from now on.
    pub(crate) fn take_in(self, core: &Arc<Core>) {
        self.0.set.lock().processes.insert(core.id, core.clone());
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.0.set.lock().starting -= 1;
        self.0.changed.notify_all();
    }
}
