//! The reader thread: all pipes of all background processes, and those that foreground runs have left behind; what
//! confined commands want to be answered; and the processes that come to a plain end.
//!
//! It waits for descriptors and for nothing else: not for a lock that is held for long, or a file but the spill. A process
//! is driven here for as long as that costs a few system calls, so that the end of its pipes and its own take one thread
//! to be seen. What takes the process table goes to the reaper.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::atomic::{fence, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use super::pipes::{Intake, Intaken, Pipes, StdinFeed};
use super::poller::{Interest, Poller, Register};
use super::reaper::ReaperPost;
use super::tending::{Look, Tending};
use super::timers::Timers;
use super::{Alarm, BUFFER};
use crate::fd::Waker;
use crate::live::Live;
use crate::process::Core;
#[cfg(target_os = "linux")]
use crate::result::StopBy;
#[cfg(target_os = "linux")]
use crate::sandbox::watch::{Attended, Watch};
use crate::signals::Shield;

/// Where pipes are handed to the reader.
#[derive(Clone)]
pub(crate) struct ReaderPost {
    sender: Sender<Mail>,
    waker: Arc<Waker>,
    desk: Arc<Desk>,
}

/// What those who hand processes in share with the reader, so that it need not be woken for each: most of them have
/// nothing to be read before they end.
struct Desk {
    /// `None` where nothing can be registered while the reader waits.
    register: Option<Register>,
    next_key: AtomicU64,
    /// When the reader looks at its mail at the latest, in nanoseconds since `epoch`.
    looks_at: AtomicU64,
    epoch: Instant,
}

impl Desk {
    /// So many keys in a row; the first.
    fn keys(&self, count: u64) -> u64 {
        self.next_key.fetch_add(count, Ordering::Relaxed)
    }

    /// The reader is about to wait, until this moment at the latest. An earlier plan stands until it has passed: it costs a
    /// wake-up in vain, but whoever comes next with a later time need not wake the reader.
    fn plan(&self, next: Option<Instant>) -> Option<Instant> {
        let before = self.looks_at.load(Ordering::Relaxed);
        let before = if before > self.nanoseconds(Instant::now()) { before } else { u64::MAX };
        let plan = next.map_or(u64::MAX, |at| self.nanoseconds(at)).min(before);
        self.looks_at.store(plan, Ordering::SeqCst);
        // Mail that was sent before this is seen by the reader, which looks again; who sends later sees the plan.
        fence(Ordering::SeqCst);
        (plan < u64::MAX).then(|| self.epoch + Duration::from_nanos(plan))
    }

    /// Whether the reader looks at what was just sent in time for this moment.
    fn looks_by(&self, at: Instant) -> bool {
        fence(Ordering::SeqCst);
        self.looks_at.load(Ordering::SeqCst) <= self.nanoseconds(at)
    }

    fn nanoseconds(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

enum Mail {
    Adopt(Arc<Core>, Pipes),
    /// With the first of the keys under which its descriptors are waited for already.
    Drive(Box<Tending>, Pipes, Option<u64>),
    Look(u64),
    Drain(Arc<Core>),
    #[cfg(target_os = "linux")]
    Attend(Arc<Core>, Watch),
    Quit,
}

impl ReaderPost {
    pub(crate) fn adopt(&self, core: Arc<Core>, pipes: Pipes) {
        self.send(Mail::Adopt(core, pipes));
    }

    /// Takes a plain process, to drive it.
    pub(crate) fn drive(&self, tending: Tending, pipes: Pipes) {
        let first = self.register(&tending, &pipes);
        let deadline = tending.deadline();
        let mail = Mail::Drive(Box::new(tending), pipes, first);
        if first.is_none() {
            return self.send(mail);
        }
        let _ = self.sender.send(mail);
        if deadline.is_some_and(|deadline| !self.desk.looks_by(deadline)) {
            self.waker.wake();
        }
    }

    /// Registers all descriptors of a process, in the order of [`ends`], before it is handed over; what they tell before
    /// the reader knows of it is told again. `None` when the reader has to do it.
    fn register(&self, tending: &Tending, pipes: &Pipes) -> Option<u64> {
        let register = self.desk.register.as_ref()?;
        let leader = tending.unended_leader()?;
        let outputs = pipes.outputs.iter().map(|output| (output.fd(), Interest::Read));
        let stdin = pipes.stdin.iter().map(|stdin| (stdin.fd(), Interest::Write));
        let ends = outputs.chain(stdin).chain([(leader, Interest::Read)]);
        let first = self.desk.keys(4);
        let registered =
            (first..).zip(ends.clone()).all(|(key, (fd, interest))| register.add(fd, key, interest).is_ok());
        if !registered {
            ends.for_each(|(fd, _)| register.remove(fd));
        }
        registered.then_some(first)
    }

    pub(crate) fn look(&self, process: u64) {
        self.send(Mail::Look(process));
    }

    /// Has what is in the pipes of the process now taken in, and its driver woken when that is done.
    pub(crate) fn drain(&self, core: Arc<Core>) {
        self.send(Mail::Drain(core));
    }

    /// Attends to a confined command for as long as anything of it is alive.
    #[cfg(target_os = "linux")]
    pub(crate) fn attend(&self, core: Arc<Core>, watch: Watch) {
        self.send(Mail::Attend(core, watch));
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
/// How often a pipe is tried that could not be registered, for want of memory.
const TRY_AGAIN: Duration = Duration::from_millis(10);
/// How many letters are opened before others have their turn.
const LETTERS_AT_A_TURN: usize = 16;
/// How many calls are answered before others have their turn.
#[cfg(target_os = "linux")]
const ANSWERS_AT_A_TURN: usize = 32;

pub(crate) struct Reader {
    poller: Poller,
    inbox: Receiver<Mail>,
    waker: Arc<Waker>,
    sources: HashMap<u64, Source>,
    desk: Arc<Desk>,
    /// The processes that are driven here.
    driven: HashMap<u64, Driven>,
    timers: Timers<Timer>,
    buffer: Vec<u8>,
    live: Arc<Live>,
}

/// A process, and the key under which its leader's end is waited for.
struct Driven {
    tending: Box<Tending>,
    key: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Timer {
    /// A source that is left alone for a moment.
    Source(u64),
    Process(u64),
}

struct Source {
    core: Arc<Core>,
    end: End,
    interest: Option<Interest>,
}

enum End {
    Output(Intake),
    Stdin(StdinFeed),
    /// The descriptor that tells of the end of a leader.
    Leader(RawFd),
    /// With the descriptor that is waited for.
    #[cfg(target_os = "linux")]
    Watch(RawFd, Watch),
}

impl End {
    fn fd(&self) -> RawFd {
        match self {
            End::Output(intake) => intake.fd(),
            End::Stdin(feed) => feed.fd(),
            End::Leader(fd) => *fd,
            #[cfg(target_os = "linux")]
            End::Watch(fd, _) => *fd,
        }
    }
}

/// What is waited for, in one order.
fn ends(pipes: Pipes, leader: Option<RawFd>) -> impl Iterator<Item = End> {
    let outputs = pipes.outputs.into_iter().map(End::Output);
    outputs.chain(pipes.stdin.map(End::Stdin)).chain(leader.map(End::Leader))
}

impl Reader {
    pub(crate) fn new(live: Arc<Live>) -> std::io::Result<(Reader, ReaderPost)> {
        let (sender, inbox) = crossbeam_channel::unbounded();
        let waker = Arc::new(Waker::new()?);
        let poller = Poller::new()?;
        poller.add(waker.as_raw_fd(), WAKER, Interest::Read)?;
        let desk = Arc::new(Desk {
            register: poller.register(),
            next_key: AtomicU64::new(WAKER + 1),
            looks_at: AtomicU64::new(u64::MAX),
            epoch: Instant::now(),
        });
        let reader = Reader {
            poller,
            inbox,
            waker: waker.clone(),
            sources: HashMap::new(),
            desk: desk.clone(),
            driven: HashMap::new(),
            timers: Timers::new(),
            buffer: vec![0; BUFFER],
            live,
        };
        Ok((reader, ReaderPost { sender, waker, desk }))
    }

    /// The thread's whole life.
    pub(crate) fn run(mut self, reaper: &ReaperPost) {
        precise_naps();
        let mut ready = Vec::new();
        loop {
            if !self.open_mail(reaper) {
                return;
            }
            let until = self.desk.plan(self.timers.next());
            let limit = match self.inbox.is_empty() {
                true => until.map(|until| until.saturating_duration_since(Instant::now())),
                false => Some(Duration::ZERO),
            };
            ready.clear();
            match self.poller.wait(limit) {
                Ok(keys) => ready.extend(keys),
                // Without memory to wait with, everything is looked at now and then.
                Err(_) => {
                    std::thread::sleep(TRY_AGAIN);
                    ready.extend(self.sources.keys().copied().chain([WAKER]));
                }
            }
            let now = Instant::now();
            while let Some(timer) = self.timers.take_due(now) {
                match timer {
                    Timer::Source(key) => self.serve(key, reaper),
                    Timer::Process(process) => self.step(process, reaper),
                }
            }
            for &key in &ready {
                match key {
                    WAKER => self.waker.clear(),
                    _ if self.sources.contains_key(&key) => self.serve(key, reaper),
                    // It has just ended, or its mail is still to be opened. It may not even have been sent.
                    _ => std::thread::yield_now(),
                }
            }
        }
    }

    /// Takes new pipes and processes in, some at a time. `false` when the thread is to end.
    fn open_mail(&mut self, reaper: &ReaperPost) -> bool {
        for _ in 0..LETTERS_AT_A_TURN {
            let Ok(mail) = self.inbox.try_recv() else { return true };
            match mail {
                Mail::Adopt(core, pipes) => self.adopt(&core, pipes, reaper),
                Mail::Drive(tending, pipes, Some(first)) => self.drive_registered(tending, pipes, first),
                Mail::Drive(tending, pipes, None) => self.drive(tending, pipes, reaper),
                Mail::Look(process) if self.driven.contains_key(&process) => self.step(process, reaper),
                Mail::Look(process) => reaper.look(process), // handed over since
                Mail::Drain(core) => self.drain(&core, reaper),
                #[cfg(target_os = "linux")]
                Mail::Attend(core, watch) => self.take_up(core, End::Watch(watch.fd(), watch), reaper),
                Mail::Quit => return false,
            }
        }
        true
    }

    /// Takes over a process whose descriptors are waited for under these keys.
    fn drive_registered(&mut self, tending: Box<Tending>, pipes: Pipes, first: u64) {
        let core = tending.core().clone();
        let mut key = first;
        for end in ends(pipes, tending.unended_leader()) {
            let interest = match end {
                End::Stdin(_) => Interest::Write,
                _ => Interest::Read,
            };
            self.sources.insert(key, Source { core: core.clone(), end, interest: Some(interest) });
            key += 1;
        }
        self.timers.set(Timer::Process(core.id), tending.deadline());
        self.driven.insert(core.id, Driven { tending, key: key - 1 });
    }

    fn drive(&mut self, tending: Box<Tending>, pipes: Pipes, reaper: &ReaperPost) {
        let core = tending.core().clone();
        let (process, leader) = (core.id, tending.unended_leader());
        self.adopt(&core, pipes, reaper);
        let key = self.desk.keys(1);
        self.driven.insert(process, Driven { tending, key });
        match leader {
            Some(leader) => self.take_up_as(key, core, End::Leader(leader), reaper),
            None => self.step(process, reaper),
        }
    }

    /// Takes a step with a process that is driven here. What is left to be done then may be for the reaper.
    fn step(&mut self, process: u64, reaper: &ReaperPost) {
        let Some(driven) = self.driven.get_mut(&process) else { return };
        let next = driven.tending.step(Look { now: Instant::now(), leader: true, table: None });
        self.timers.set(Timer::Process(process), next.at);
        if !(next.over || next.table || next.drain || driven.tending.has_members()) {
            return;
        }
        self.timers.set(Timer::Process(process), None);
        let Some(driven) = self.driven.remove(&process) else { return };
        if let Some(source) = self.sources.remove(&driven.key) {
            self.poller.remove(source.end.fd());
        }
        if next.over {
            self.live.remove(process);
        } else {
            *driven.tending.core().alarm.lock() = Alarm::Reaper(reaper.clone());
            reaper.adopt(*driven.tending);
        }
    }

    fn adopt(&mut self, core: &Arc<Core>, pipes: Pipes, reaper: &ReaperPost) {
        for end in ends(pipes, None) {
            self.take_up(core.clone(), end, reaper);
        }
    }

    fn take_up(&mut self, core: Arc<Core>, end: End, reaper: &ReaperPost) {
        let key = self.desk.keys(1);
        self.take_up_as(key, core, end, reaper);
    }

    fn take_up_as(&mut self, key: u64, core: Arc<Core>, end: End, reaper: &ReaperPost) {
        self.sources.insert(key, Source { core, end, interest: None });
        self.serve(key, reaper);
    }

    fn drain(&mut self, core: &Arc<Core>, reaper: &ReaperPost) {
        let its = |source: &Source| Arc::ptr_eq(&source.core, core) && matches!(source.end, End::Output(_));
        let keys: Vec<u64> = self.sources.iter().filter(|(_, source)| its(source)).map(|(key, _)| *key).collect();
        keys.iter().for_each(|key| self.serve(*key, reaper));
        let inode = |key: &u64| match &self.sources.get(key)?.end {
            End::Output(intake) => intake.inode(),
            _ => None,
        };
        core.mark_drained(keys.iter().filter_map(inode).collect());
        core.ring();
    }

    /// Does what a source is ready for, and arranges what to wait for next.
    fn serve(&mut self, key: u64, reaper: &ReaperPost) {
        let mut leader_lives = false;
        if let Some(Source { end: End::Leader(_), core, .. }) = self.sources.get(&key) {
            let process = core.id;
            self.step(process, reaper);
            leader_lives = self.driven.get(&process).is_some_and(|driven| driven.tending.unended_leader().is_some());
        }
        let Some(source) = self.sources.get_mut(&key) else { return };
        // Only ever a thread of the library, which blocks all signals.
        let mut shield = Shield::for_own_thread();
        let (interest, nap) = match &mut source.end {
            End::Output(intake) => match intake.take_in(&source.core, &mut self.buffer, &mut shield) {
                Intaken::Empty(nap) if !nap.is_zero() => (Some(Interest::Closing), Some(nap)),
                Intaken::Empty(_) | Intaken::More => (Some(Interest::Read), None),
                Intaken::End => (None, None),
            },
            End::Stdin(feed) => (feed.feed(&source.core, &mut shield).then_some(Interest::Write), None),
            End::Leader(_) => (leader_lives.then_some(Interest::Read), None),
            #[cfg(target_os = "linux")]
            End::Watch(fd, watch) => {
                let attended = watch.attend(ANSWERS_AT_A_TURN);
                if attended == Attended::Lost {
                    source.core.order_stop(StopBy::Kill);
                }
                let now = watch.fd();
                if now != *fd && source.interest.take().is_some() {
                    self.poller.remove(*fd);
                }
                *fd = now;
                ((attended == Attended::Waiting).then_some(Interest::Read), None)
            }
        };
        let Some(interest) = interest else {
            self.timers.set(Timer::Source(key), None);
            if let Some(source) = self.sources.remove(&key) {
                // Said explicitly: a fork of the host may hold a copy, which would keep the registration alive.
                self.poller.remove(source.end.fd());
                match source.end {
                    End::Output(_) if self.driven.contains_key(&source.core.id) => self.step(source.core.id, reaper),
                    End::Output(_) => source.core.ring(),
                    _ => {}
                }
            }
            return;
        };
        let fd = source.end.fd();
        let registered = match source.interest {
            Some(current) if current == interest => Ok(()),
            Some(_) => self.poller.change(fd, key, interest),
            None => self.poller.add(fd, key, interest),
        };
        let mut nap = nap;
        match registered {
            Ok(()) => source.interest = Some(interest),
            Err(_) => nap = Some(TRY_AGAIN),
        }
        if let Some(nap) = nap {
            self.timers.set(Timer::Source(key), Some(Instant::now() + nap));
        }
    }
}

/// Has the kernel end this thread's short waits in time; it adds 50 µs otherwise. Done on our own threads only.
fn precise_naps() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a number of the calling thread.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_000);
    }
}
