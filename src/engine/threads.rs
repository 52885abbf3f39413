//! The threads of an executor: how they start and end, and what callers share with them.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use super::foreground::Kit;
use super::pipes::Pipes;
use super::reader::{Reader, ReaderPost};
use super::reaper::{Reaper, ReaperPost};
use super::tending::Tending;
use super::Alarm;
use crate::error::{Error, Result, Stage};
use crate::live::Live;
use crate::signals::with_all_blocked;
use crate::tree::guard::Guard;
use crate::tree::Census;

/// Both threads, and what foreground runs use again.
pub(crate) struct Engine {
    pub(crate) reaper: ReaperPost,
    pub(crate) reader: ReaderPost,
    pub(crate) census: Census,
    threads: Mutex<Vec<JoinHandle<()>>>,
    kits: Mutex<Vec<Kit>>,
}

/// Kits kept for further runs; as many as run at a time, up to this.
const SPARE_KITS: usize = 16;
/// The threads call nothing deep.
const STACK: usize = 256 << 10;

impl Engine {
    pub(crate) fn start(live: &Arc<Live>, census: Census, guard: Option<Arc<Guard>>) -> Result<Engine> {
        let failed = |error: std::io::Error| {
            Error::system(Stage::Threads, error.raw_os_error().unwrap_or(libc::EAGAIN), "can't start the executor")
        };
        let (reader, reader_post) = Reader::new(live.clone()).map_err(failed)?;
        let (reaper, reaper_post) =
            Reaper::new(live.clone(), census, guard.clone(), reader_post.clone()).map_err(failed)?;
        if let Some(guard) = guard {
            let post = reaper_post.clone();
            guard.on_start(move || post.watch_guard());
        }
        let engine = Engine {
            reaper: reaper_post,
            reader: reader_post,
            census,
            threads: Mutex::default(),
            kits: Mutex::default(),
        };
        let to_reaper = engine.reaper.clone();
        for (name, run) in [
            ("dsh-reader", Box::new(move || reader.run(&to_reaper)) as Box<dyn FnOnce() + Send>),
            ("dsh-reaper", Box::new(move || reaper.run())),
        ] {
            let started = spawn(name, run, live.clone());
            match started {
                Ok(thread) => engine.threads.lock().push(thread),
                Err(error) => {
                    engine.end();
                    return Err(failed(error));
                }
            }
        }
        Ok(engine)
    }

    /// Has a background process driven by whichever thread is the right one.
    pub(crate) fn take_on(&self, tending: Tending, pipes: Pipes) {
        let core = tending.core().clone();
        if tending.is_plain() {
            *core.alarm.lock() = Alarm::Reader(self.reader.clone());
            self.reader.drive(tending, pipes);
            if core.ordered_stop().is_some() {
                core.ring(); // whoever ordered it may have rung for nobody
            }
        } else {
            *core.alarm.lock() = Alarm::Reaper(self.reaper.clone());
            self.reader.adopt(core, pipes);
            self.reaper.adopt(tending);
        }
    }

    /// What a foreground run needs, taken from an earlier one where possible.
    pub(crate) fn kit(&self) -> Result<Kit> {
        if let Some(kit) = self.kits.lock().pop() {
            return Ok(kit);
        }
        Kit::new().map_err(|error| {
            Error::system(Stage::Pipe, error.raw_os_error().unwrap_or(libc::EMFILE), "can't make what wakes a run")
        })
    }

    pub(crate) fn give_back(&self, kit: Kit) {
        let mut kits = self.kits.lock();
        if kits.len() < SPARE_KITS {
            kits.push(kit);
        }
    }

    /// Ends both threads and waits for them. What they tended is let go.
    pub(crate) fn end(&self) {
        self.reaper.quit();
        self.reader.quit();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            let _ = thread.join();
        }
        self.kits.lock().clear();
    }

    pub(crate) fn thread_count(&self) -> usize {
        self.threads.lock().len()
    }
}

fn spawn(name: &str, run: Box<dyn FnOnce() + Send>, live: Arc<Live>) -> std::io::Result<JoinHandle<()>> {
    with_all_blocked(|| {
        Builder::new().name(name.to_owned()).stack_size(STACK).spawn(move || {
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                // Whoever waits for a process must not wait for this thread.
                live.fail();
            }
        })
    })
}
