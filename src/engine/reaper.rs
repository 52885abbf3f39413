//! The reaper thread: processes whose end is not plain. What takes a look at the process table, or long, is done here:
//! forced stops that the leader does not follow at once, survivors, pipes that are held, confined commands, and what
//! foreground runs have left behind.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use super::poller::{Interest, Poller};
use super::reader::ReaderPost;
use super::tending::{Look, Next, Tending};
use super::timers::Timers;
use crate::fd::Waker;
use crate::live::Live;
use crate::tree::guard::Guard;
use crate::tree::table::Table;
use crate::tree::Census;

/// Where processes are handed to the reaper, and where it is asked to look at one.
#[derive(Clone)]
pub(crate) struct ReaperPost {
    sender: Sender<Mail>,
    waker: Arc<Waker>,
}

enum Mail {
    Adopt(Box<Tending>),
    Look(u64),
    WatchGuard,
    Quit,
}

impl ReaperPost {
    pub(crate) fn adopt(&self, tending: Tending) {
        self.send(Mail::Adopt(Box::new(tending)));
    }

    pub(crate) fn look(&self, process: u64) {
        self.send(Mail::Look(process));
    }

    /// A guard has been started: its end has to be noticed.
    pub(crate) fn watch_guard(&self) {
        self.send(Mail::WatchGuard);
    }

    pub(crate) fn quit(&self) {
        self.send(Mail::Quit);
    }

    fn send(&self, mail: Mail) {
        // The thread outlives every sender but in the case of its panic, which is told by other means.
        let _ = self.sender.send(mail);
        self.waker.wake();
    }
}

const WAKER: u64 = 0;
const GUARD: u64 = u64::MAX;
/// How often everything is looked at when the system can't wait for events.
const WITHOUT_EVENTS: Duration = Duration::from_millis(10);

pub(crate) struct Reaper {
    poller: Poller,
    inbox: Receiver<Mail>,
    waker: Arc<Waker>,
    live: Arc<Live>,
    census: Census,
    guard: Option<Arc<Guard>>,
    reader: ReaderPost,
    tended: HashMap<u64, Tending>,
    timers: Timers<u64>,
}

impl Reaper {
    pub(crate) fn new(
        live: Arc<Live>,
        census: Census,
        guard: Option<Arc<Guard>>,
        reader: ReaderPost,
    ) -> std::io::Result<(Reaper, ReaperPost)> {
        let (sender, inbox) = crossbeam_channel::unbounded();
        let waker = Arc::new(Waker::new()?);
        let poller = Poller::new()?;
        poller.add(waker.as_raw_fd(), WAKER, Interest::Read)?;
        let (tended, timers) = (HashMap::new(), Timers::new());
        let reaper = Reaper { poller, inbox, waker: waker.clone(), live, census, guard, reader, tended, timers };
        Ok((reaper, ReaperPost { sender, waker }))
    }

    /// The thread's whole life.
    pub(crate) fn run(mut self) {
        let mut due = Vec::new();
        loop {
            let now = Instant::now();
            let limit = self.timers.next().map(|at| at.saturating_duration_since(now));
            due.clear();
            match self.poller.wait(limit) {
                Ok(keys) => due.extend(keys),
                Err(_) => {
                    std::thread::sleep(WITHOUT_EVENTS);
                    due.extend(self.tended.keys().copied());
                }
            }
            self.waker.clear();
            while let Ok(mail) = self.inbox.try_recv() {
                match mail {
                    Mail::Adopt(tending) => due.push(self.adopt(*tending)),
                    Mail::Look(process) => due.push(process),
                    Mail::WatchGuard => self.watch_guard(),
                    Mail::Quit => return,
                }
            }
            let now = Instant::now();
            due.extend(std::iter::from_fn(|| self.timers.take_due(now)));
            if due.contains(&GUARD) {
                self.guard.iter().for_each(|guard| guard.replace());
            }
            due.sort_unstable();
            due.dedup();
            self.look_at(&due);
        }
    }

    fn watch_guard(&mut self) {
        if let Some(pidfd) = self.guard.as_ref().and_then(|guard| guard.pidfd()) {
            self.watch(pidfd, GUARD);
        }
    }

    fn adopt(&mut self, tending: Tending) -> u64 {
        let process = tending.core().id;
        if let Some(leader) = tending.unended_leader() {
            self.watch(leader, process);
        }
        self.tended.insert(process, tending);
        process
    }

    /// Takes a step with each, then one look at the process table for all that want one.
    fn look_at(&mut self, due: &[u64]) {
        let mut wanting: Vec<u64> = Vec::new();
        for &process in due {
            let next = self.step(process, None);
            if next.is_some_and(|next| next.table) {
                wanting.push(process);
            }
        }
        if wanting.is_empty() {
            return;
        }
        let table = self.census.take();
        let table = table.as_ref().map_err(|errno| *errno);
        for process in wanting {
            if self.step(process, Some(table)).is_some_and(|next| next.table) {
                self.timers.set_at_latest(process, Instant::now());
            }
        }
    }

    fn step(&mut self, process: u64, table: Option<Result<&Table, i32>>) -> Option<Next> {
        let tending = self.tended.get_mut(&process)?;
        let next = tending.step(Look { now: Instant::now(), leader: true, table });
        self.timers.set(process, next.at.filter(|_| !next.over));
        if next.over {
            self.tended.remove(&process);
            self.live.remove(process);
            return Some(next);
        }
        if next.drain {
            self.reader.drain(tending.core().clone());
        }
        let members: Vec<_> = tending.tree_mut().newly_watched().collect();
        // Told once, so it has to be asked for again when the kernel told of an end that was not one yet.
        if let Some(leader) = tending.unended_leader() {
            let _ = self.poller.change(leader, process, Interest::ReadOnce);
        }
        for member in members {
            self.watch(member, process);
        }
        Some(next)
    }

    fn watch(&mut self, pidfd: i32, process: u64) {
        if self.poller.add(pidfd, process, Interest::ReadOnce).is_err() {
            // For want of memory: looked at by the clock instead, once now and then by each further step.
            self.timers.set_at_latest(process, Instant::now() + WITHOUT_EVENTS);
        }
    }
}
