//! The executor: owns the budgets, the threads, every live process, the spill directory and the guard.

mod launch;
mod shutdown;

use std::ffi::CString;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::config::{Budgets, Config};
use crate::engine::foreground::{self, Kit};
use crate::engine::{Alarm, Engine, Pipes, Tending};
use crate::environment::{self, Host, Snapshot};
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::event::{Event, Events};
use crate::fd::{self, StdioPlug};
use crate::forked::Birthplace;
use crate::live::{Live, Ticket};
use crate::mark;
use crate::output::SpillStore;
use crate::process::Process;
use crate::request::{self, Request, Sandbox, Spec};
use crate::result::RunResult;
use crate::sandbox::Backends;
use crate::spawn::{self, SpawnPath};
use crate::tree::guard::{self, Guard};
use crate::tree::Census;
use launch::{launch, Launch};
use shutdown::Ending;

/// Runs commands, and owns what it runs until nothing of it is alive.
///
/// Every method may be called from any thread at any time. Clones are the same executor; when the last is dropped, it
/// is shut down as by [`shutdown`](Executor::shutdown).
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

struct Inner {
    birthplace: Birthplace,
    id: [u8; 32],
    budgets: RwLock<Arc<Budgets>>,
    spills: Arc<SpillStore>,
    live: Arc<Live>,
    events: Arc<Events>,
    engine: Engine,
    guard: Option<Arc<Guard>>,
    null: OwnedFd,
    host: Host,
    environments: environment::Cache,
    backends: Backends,
    outer_marks: Vec<CString>,
    last_process: AtomicU64,
    /// How far the shutdown has come; held by the caller that carries it on.
    ending: Mutex<Ending>,
}

/// What an executor is doing at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Processes of which something may be alive.
    pub live: u64,
    /// Processes that have come and gone.
    pub ended: u64,
    /// Bytes in its spill files.
    pub spill_bytes: u64,
    /// Threads that it runs.
    pub threads: u64,
    /// How it creates children.
    pub spawn_path: SpawnPath,
    /// The pid of its guard, while there is one.
    pub guard_pid: Option<i32>,
}

impl Executor {
    /// An executor with these budgets. Spill directories that dead hosts have left are removed on the way.
    pub fn new(config: &Config) -> Result<Executor> {
        Executor::for_host(config, Host::Rust)
    }

    /// The same for a host in another language.
    pub(crate) fn for_host(config: &Config, host: Host) -> Result<Executor> {
        let budgets = Arc::new(Budgets::new(config)?);
        let _plug = StdioPlug::new();
        let id = unguessable_id()?;
        let null = fd::dev_null().map_err(|error| {
            Error::system(Stage::Pipe, error.raw_os_error().unwrap_or(libc::ENOENT), "can't open /dev/null")
        })?;
        let guard = match guard::AVAILABLE {
            true => Some(Arc::new(Guard::new(&id, budgets.config().grace_ms))),
            false => None,
        };
        let live = Arc::new(Live::default());
        let engine = Engine::start(&live, Census::new(id), guard.clone())?;
        SpillStore::sweep(budgets.spill_dir());
        let spills = SpillStore::new(budgets.spill_dir().to_owned(), budgets.config().max_total_spill_bytes);
        Ok(Executor(Arc::new(Inner {
            birthplace: Birthplace::here(),
            id,
            budgets: RwLock::new(budgets),
            spills: Arc::new(spills),
            live,
            events: Arc::default(),
            engine,
            guard,
            null,
            host,
            environments: environment::Cache::default(),
            backends: Backends::default(),
            outer_marks: mark::outer(std::env::vars_os()),
            last_process: AtomicU64::new(0),
            ending: Mutex::new(Ending::Ahead),
        })))
    }

    /// The budgets in force, with every default filled in.
    pub fn config(&self) -> Result<Config> {
        Ok(self.inner()?.budgets.read().config().clone())
    }

    /// Replaces all budgets. Commands that run keep theirs, the next one gets the new ones. Budgets that can't be used
    /// are refused, and the executor stays on its last good ones.
    pub fn configure(&self, config: &Config) -> Result<()> {
        let inner = self.inner()?;
        // Checked without the lock: looking for the shell takes time.
        let current = inner.budgets.read().clone();
        let new = current.replaced_by(config)?;
        inner.spills.set_max_total(new.config().max_total_spill_bytes);
        if let Some(guard) = &inner.guard {
            guard.set_grace(new.config().grace_ms);
        }
        inner.backends.forget();
        *inner.budgets.write() = Arc::new(new);
        Ok(())
    }

    /// What would run: the request with every default and cap applied. Starts nothing.
    pub fn resolve(&self, request: impl Into<Request>) -> Result<Spec> {
        self.inner()?.resolve(request.into())
    }

    /// Runs a command and waits for its result. Everything a command can do is a result; an error means that it was
    /// not run.
    pub fn run(&self, request: impl Into<Request>) -> Result<RunResult> {
        let inner = self.inner()?;
        let mut spec = inner.resolve(Request { foreground: true, ..request.into() })?;
        let ticket = inner.admit(&spec)?;
        let mut kit = inner.engine.kit()?;
        let (mut tending, mut pipes) = inner.launch(&mut spec, Alarm::Caller(kit.waker.clone()), None)?;
        let core = tending.core().clone();
        ticket.take_in(&core);
        if let Some(cancel) = &spec.cancel {
            cancel.attach(&core);
        }
        let confined = matches!(spec.sandbox, Sandbox::Confined(_));
        drop(spec); // while the command runs, and not once it has ended: that is waited for
        let next = foreground::drive(&mut tending, &mut pipes, &mut kit, &inner.engine.census, None);
        let result = core.result();
        if next.over {
            inner.live.remove(core.id);
        }
        inner.leave_to_threads(tending, pipes, next.over);
        if confined {
            inner.spills.clean_up();
        }
        inner.engine.give_back(kit);
        result
    }

    /// Starts a command in the background. No timeout applies, unless the request is `foreground`; the process is the
    /// executor's until nothing of it is alive, whether or not the handle is kept.
    pub fn start(&self, request: impl Into<Request>) -> Result<Process> {
        let inner = self.inner()?;
        let request = request.into();
        let attend = Duration::from_millis(if request.foreground { request.attend_ms } else { 0 });
        let mut spec = inner.resolve(request)?;
        let ticket = inner.admit(&spec)?;
        let kit = if attend.is_zero() { None } else { Some(inner.engine.kit()?) };
        let alarm = match &kit {
            Some(kit) => Alarm::Caller(kit.waker.clone()),
            None => Alarm::Reaper(inner.engine.reaper.clone()),
        };
        let (tending, pipes) = inner.launch(&mut spec, alarm, Some(inner.events.clone()))?;
        let core = tending.core().clone();
        ticket.take_in(&core);
        if let Some(cancel) = &spec.cancel {
            cancel.attach(&core);
        }
        match kit {
            None => inner.engine.take_on(tending, pipes),
            Some(kit) => {
                let confined = matches!(spec.sandbox, Sandbox::Confined(_));
                drop(spec);
                inner.attend(tending, pipes, kit, attend);
                if confined {
                    inner.spills.clean_up();
                }
            }
        }
        Ok(Process::new(core, inner.birthplace))
    }

    /// A descriptor that is readable while events of background processes wait; for poll loops. It stays the
    /// executor's. Events are kept from the first call on.
    pub fn event_fd(&self) -> Result<RawFd> {
        self.inner()?.events.descriptor().map_err(|error| {
            Error::system(Stage::Pipe, error.raw_os_error().unwrap_or(libc::EMFILE), "can't make the event descriptor")
        })
    }

    /// Has `wake` called when events begin to wait, in place of the descriptor or beside it; `None` ends that. It is
    /// called on a thread of the library and must not block, nor call anything of the library but
    /// [`next_event`](Executor::next_event); when events wait already, it is called once on this thread. It is dropped
    /// when it is replaced or with the executor, possibly while a last call is under way on another thread.
    pub fn set_wake(&self, wake: Option<Arc<dyn Fn() + Send + Sync>>) -> Result<()> {
        self.inner()?.events.set_wake(wake);
        Ok(())
    }

    /// The next event that waits, if there is one.
    pub fn next_event(&self) -> Result<Option<Event>> {
        Ok(self.inner()?.events.next())
    }

    /// Ends every tree that it owns and waits until they are gone: the longest grace and one second at most, or `limit`, after
    /// which it is an error and may be called again. No command is started any more. Any number of calls.
    pub fn shutdown(&self, limit: Option<Duration>) -> Result<()> {
        shutdown::shutdown(self.inner()?, limit)
    }

    /// What it is doing now.
    pub fn stats(&self) -> Result<Stats> {
        let inner = self.inner()?;
        let (live, ended) = inner.live.counts();
        Ok(Stats {
            live: live as u64,
            ended,
            spill_bytes: inner.spills.used(),
            threads: inner.engine.thread_count() as u64,
            spawn_path: spawn::path(),
            guard_pid: inner.guard.as_ref().and_then(|guard| guard.pid()),
        })
    }

    fn inner(&self) -> Result<&Inner> {
        self.0.birthplace.check()?;
        Ok(&self.0)
    }
}

impl Inner {
    fn resolve(&self, request: Request) -> Result<Spec> {
        let budgets = self.budgets.read().clone();
        let inherits = budgets.policy().inherit;
        let look = |last: &Snapshot| if inherits { self.host.look(last) } else { None };
        let inherited = self.environments.inherited(look, budgets.policy());
        request::resolve(request, budgets, &inherited)
    }

    fn admit(&self, spec: &Spec) -> Result<Ticket<'_>> {
        if spec.cancel.as_ref().is_some_and(|cancel| cancel.is_cancelled()) {
            return Err(Error::new(ErrorKind::Cancelled, Stage::Resolve, "cancel: the token is cancelled already"));
        }
        if self.live.has_failed() {
            let message = "a thread of the executor was lost to a panic; the executor can't be used any more";
            return Err(Error::new(ErrorKind::Panicked, Stage::Threads, message));
        }
        let shut = || Error::new(ErrorKind::Shutdown, Stage::Resolve, "executor: it has been shut down");
        self.live.begin().ok_or_else(shut)
    }

    fn launch(&self, spec: &mut Spec, alarm: Alarm, events: Option<Arc<Events>>) -> Result<(Tending, Pipes)> {
        let guard = self.guard.as_ref().filter(|_| spec.budgets.config().guard);
        let seat = guard.map(|guard| guard.seat()).transpose()?;
        let order = Launch {
            id: self.last_process.fetch_add(1, Ordering::Relaxed) + 1,
            executor_id: &self.id,
            outer_marks: &self.outer_marks,
            spills: &self.spills,
            null: self.null.as_fd(),
            alarm,
            events,
            backends: &self.backends,
            seat,
        };
        let (tending, pipes) = launch(order, spec)?;
        #[cfg(target_os = "linux")]
        if let Some(watch) = tending.watch() {
            self.engine.reader.attend(tending.core().clone(), watch);
        }
        Ok((tending, pipes))
    }

    /// Drives a process for so long. What has not settled by then, or leaves something behind, is for the threads.
    fn attend(&self, mut tending: Tending, mut pipes: Pipes, mut kit: Kit, time: Duration) {
        let core = tending.core().clone();
        core.hush();
        let until = Instant::now().checked_add(time);
        let next = foreground::drive(&mut tending, &mut pipes, &mut kit, &self.engine.census, until);
        core.speak(next.settled);
        if next.settled {
            if next.over {
                self.live.remove(core.id);
            }
            self.leave_to_threads(tending, pipes, next.over);
        } else {
            self.engine.take_on(tending, pipes);
            core.ring(); // for what rang for this thread on the way
        }
        self.engine.give_back(kit);
    }

    /// What a foreground run leaves behind: survivors are watched, and their pipes read, so that they get no SIGPIPE.
    fn leave_to_threads(&self, tending: Tending, mut pipes: Pipes, over: bool) {
        let core = tending.core().clone();
        if !pipes.outputs.is_empty() {
            pipes.outputs.iter_mut().for_each(|output| output.discard());
            pipes.stdin = None;
            self.engine.reader.adopt(core.clone(), pipes);
        }
        if !over {
            *core.alarm.lock() = Alarm::Reaper(self.engine.reaper.clone());
            self.engine.reaper.adopt(tending);
        }
    }

    fn census(&self) -> &Census {
        &self.engine.census
    }

    /// Whether any command was ever started.
    fn has_started_any(&self) -> bool {
        self.last_process.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // In a forked child all of this belongs to the parent.
        if !self.birthplace.is_here() {
            return;
        }
        if shutdown::shutdown(self, None).is_err() {
            shutdown::abandon(self);
        }
        self.events.set_wake(None); // processes whose handles live on hold the events too
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("birthplace", &self.0.birthplace).finish_non_exhaustive()
    }
}

/// 128 random bits as 32 lower-case hex digits.
fn unguessable_id() -> Result<[u8; 32]> {
    let mut bits = [0u8; 16];
    // SAFETY: the buffer is as long as said.
    #[cfg(not(target_env = "musl"))]
    let result = unsafe { libc::getentropy(bits.as_mut_ptr().cast(), bits.len()) };
    // The libc crate knows no getentropy of musl. A request as short as this is answered in full.
    // SAFETY: as above.
    #[cfg(target_env = "musl")]
    let result = unsafe { libc::getrandom(bits.as_mut_ptr().cast(), bits.len(), 0) };
    if result < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOSYS);
        return Err(Error::system(Stage::Threads, errno, "can't get random bytes for the executor's id"));
    }
    let mut id = [0; 32];
    for (index, digit) in id.iter_mut().enumerate() {
        let nibble = bits[index / 2] >> (4 * (1 - index % 2)) & 0xf;
        *digit = b"0123456789abcdef"[usize::from(nibble)];
    }
    Ok(id)
}
