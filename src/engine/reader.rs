//! The reader thread: all pipes of all background processes, and those that foreground runs have left behind; and what
//! confined commands want to be answered.
//!
//! It waits for pipes and for nothing else: not for a process, a lock that is held for long, or a file but the spill.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use super::pipes::{Intake, Intaken, Pipes, StdinFeed};
use super::poller::{Interest, Poller};
use super::BUFFER;
use crate::fd::Waker;
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
}

enum Mail {
    Adopt(Arc<Core>, Pipes),
    Drain(Arc<Core>),
    #[cfg(target_os = "linux")]
    Attend(Arc<Core>, Watch),
    Quit,
}

impl ReaderPost {
    pub(crate) fn adopt(&self, core: Arc<Core>, pipes: Pipes) {
        self.send(Mail::Adopt(core, pipes));
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
/// How many calls are answered before others have their turn.
#[cfg(target_os = "linux")]
const ANSWERS_AT_A_TURN: usize = 32;

pub(crate) struct Reader {
    poller: Poller,
    inbox: Receiver<Mail>,
    waker: Arc<Waker>,
    sources: HashMap<u64, Source>,
    next_key: u64,
    /// Sources that are left alone for a moment, and when that ends.
    napping: Vec<(Instant, u64)>,
    buffer: Vec<u8>,
}

struct Source {
    core: Arc<Core>,
    end: End,
    interest: Option<Interest>,
}

enum End {
    Output(Intake),
    Stdin(StdinFeed),
    /// With the descriptor that is waited for.
    #[cfg(target_os = "linux")]
    Watch(RawFd, Watch),
}

impl End {
    fn fd(&self) -> RawFd {
        match self {
            End::Output(intake) => intake.fd(),
            End::Stdin(feed) => feed.fd(),
            #[cfg(target_os = "linux")]
            End::Watch(fd, _) => *fd,
        }
    }
}

impl Reader {
    pub(crate) fn new() -> std::io::Result<(Reader, ReaderPost)> {
        let (sender, inbox) = crossbeam_channel::unbounded();
        let waker = Arc::new(Waker::new()?);
        let poller = Poller::new()?;
        poller.add(waker.as_raw_fd(), WAKER, Interest::Read)?;
        let reader = Reader {
            poller,
            inbox,
            waker: waker.clone(),
            sources: HashMap::new(),
            next_key: WAKER + 1,
            napping: Vec::new(),
            buffer: vec![0; BUFFER],
        };
        Ok((reader, ReaderPost { sender, waker }))
    }

    /// The thread's whole life.
    pub(crate) fn run(mut self) {
        precise_naps();
        let mut ready = Vec::new();
        loop {
            let now = Instant::now();
            let limit = self.napping.iter().map(|(until, _)| until.saturating_duration_since(now)).min();
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
            self.napping.retain(|(until, key)| {
                if *until <= now {
                    ready.push(*key);
                }
                *until > now
            });
            for &key in &ready {
                if key != WAKER {
                    self.serve(key);
                } else if !self.open_mail() {
                    return;
                }
            }
        }
    }

    /// Takes new pipes in. `false` when the thread is to end.
    fn open_mail(&mut self) -> bool {
        self.waker.clear();
        while let Ok(mail) = self.inbox.try_recv() {
            match mail {
                Mail::Adopt(core, pipes) => self.adopt(&core, pipes),
                Mail::Drain(core) => self.drain(&core),
                #[cfg(target_os = "linux")]
                Mail::Attend(core, watch) => self.take_up(core, End::Watch(watch.fd(), watch)),
                Mail::Quit => return false,
            }
        }
        true
    }

    fn adopt(&mut self, core: &Arc<Core>, pipes: Pipes) {
        let outputs = pipes.outputs.into_iter().map(End::Output);
        for end in outputs.chain(pipes.stdin.map(End::Stdin)) {
            self.take_up(core.clone(), end);
        }
    }

    fn take_up(&mut self, core: Arc<Core>, end: End) {
        let key = self.next_key;
        self.next_key += 1;
        self.sources.insert(key, Source { core, end, interest: None });
        self.serve(key);
    }

    fn drain(&mut self, core: &Arc<Core>) {
        let its = |source: &Source| Arc::ptr_eq(&source.core, core) && matches!(source.end, End::Output(_));
        let keys: Vec<u64> = self.sources.iter().filter(|(_, source)| its(source)).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.serve(key));
        core.mark_drained();
        core.ring();
    }

    /// Does what a source is ready for, and arranges what to wait for next.
    fn serve(&mut self, key: u64) {
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
            if let Some(source) = self.sources.remove(&key) {
                // Said explicitly: a fork of the host may hold a copy, which would keep the registration alive.
                self.poller.remove(source.end.fd());
                if matches!(source.end, End::Output(_)) {
                    source.core.ring();
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
            self.napping.push((Instant::now() + nap, key));
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
