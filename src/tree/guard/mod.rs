//! The guard: ends the trees of an executor when its host has died. This is the library's side of it: starting the
//! program (`program.rs`), telling it of commands (`ledger.rs`), and noticing that it has gone.

pub(crate) mod ledger;
mod seat;

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::embedded;
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::fd;
use crate::signals::Shield;
use crate::spawn::{self, Plan, Program};
use crate::tree::Leader;
use ledger::Ledger;
pub(crate) use seat::Seat;

/// The guard program, built for the target by the build script. Empty where it could not be built.
#[cfg(dsh_guard)]
static PROGRAM: &[u8] = include_bytes!(env!("DSH_GUARD_PROGRAM"));
#[cfg(not(dsh_guard))]
static PROGRAM: &[u8] = &[];

/// Whether this build of the library has a guard.
pub(crate) const AVAILABLE: bool = cfg!(dsh_guard);

/// The guard of one executor. It is started with the first command that wants one.
pub(crate) struct Guard {
    executor_id: [u8; 32],
    grace_ms: AtomicU64,
    ledger: OnceLock<Arc<Ledger>>,
    state: Mutex<State>,
    changed: Condvar,
    /// Called whenever a guard has been started, so that its end is noticed.
    on_start: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

enum State {
    Absent,
    Starting,
    Running(Running),
    /// The executor has ended.
    Over,
}

struct Running {
    leader: Leader,
    /// Its closing is what the guard sees of the host's death.
    life: OwnedFd,
}

impl Guard {
    /// Makes nothing yet.
    pub(crate) fn new(executor_id: &[u8; 32], grace_ms: u64) -> Guard {
        Guard {
            executor_id: *executor_id,
            grace_ms: AtomicU64::new(grace_ms),
            ledger: OnceLock::new(),
            state: Mutex::new(State::Absent),
            changed: Condvar::new(),
            on_start: OnceLock::new(),
        }
    }

    pub(crate) fn on_start(&self, watch: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_start.set(Box::new(watch));
    }

    pub(crate) fn set_grace(&self, ms: u64) {
        self.grace_ms.store(ms, Ordering::Relaxed);
        if let Some(ledger) = self.ledger.get() {
            ledger.set_grace(ms);
        }
    }

    /// A seat for a command that is about to be started. Makes sure that there is a guard.
    pub(crate) fn seat(&self) -> Result<Seat> {
        self.start_unless_running()?;
        self.ledger.get().and_then(Seat::take).ok_or_else(|| {
            Error::new(ErrorKind::Spawn, Stage::Guard, "can't start the command: too many commands are live already")
        })
    }

    fn start_unless_running(&self) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            match *state {
                State::Running(_) => return Ok(()),
                State::Starting => self.changed.wait(&mut state),
                State::Absent => break,
                State::Over => return Err(Error::new(ErrorKind::Shutdown, Stage::Guard, "the executor has ended")),
            }
        }
        // No lock is held while it is started; others wait for the outcome.
        *state = State::Starting;
        drop(state);
        let started = self.start();
        let mut state = self.state.lock();
        let result = match started {
            Ok(running) => {
                *state = State::Running(running);
                Ok(())
            }
            Err(error) => {
                *state = State::Absent;
                Err(error)
            }
        };
        drop(state);
        self.changed.notify_all();
        if let (Ok(()), Some(watch)) = (&result, self.on_start.get()) {
            watch();
        }
        result
    }

    fn start(&self) -> Result<Running> {
        let failed = |error: io::Error| guard_error(&error);
        // The host's limit on file sizes holds for files in memory too, and comes as a signal.
        let mut shield = Shield::for_host();
        shield.raise();
        let ledger = match self.ledger.get() {
            Some(ledger) => ledger,
            None => {
                let made = Ledger::create(&self.executor_id, self.grace_ms.load(Ordering::Relaxed)).map_err(failed)?;
                self.ledger.get_or_init(|| Arc::new(made))
            }
        };
        let program = embedded::executable(c"dsh-guard", PROGRAM).map_err(failed)?;
        let null = fd::dev_null().map_err(failed)?;
        let (life_read, life_write) = fd::pipe().map_err(failed)?;
        let host = host_pidfd();
        let arguments: &[_] = if host.is_some() { &[c"dsh-guard"] } else { &[c"dsh-guard", c"no-pidfd"] };
        let plan = Plan {
            program: Program::Descriptor(program.as_fd()),
            arguments,
            environment: &[],
            workdir: c"/",
            files: &[life_read.as_fd(), host.as_ref().map_or(null.as_fd(), AsFd::as_fd), null.as_fd(), ledger.fd()],
            announce: None,
            restraint: None,
            signals_blocked: true, // a terminal's Ctrl-C may come before it has blocked them itself
        };
        let child = spawn::spawn(&plan).map_err(|failure| {
            let message = "can't start the guard, without which commands would outlive the host (config: guard)";
            Error::os(ErrorKind::Spawn, Stage::Guard, failure.errno, message)
        })?;
        Ok(Running { leader: Leader::new(child.pid, child.pidfd, None), life: life_write })
    }

    /// A descriptor that is readable once the guard has ended.
    pub(crate) fn pidfd(&self) -> Option<RawFd> {
        match &*self.state.lock() {
            State::Running(running) => running.leader.pidfd(),
            _ => None,
        }
    }

    /// The guard's pid, while there is one.
    pub(crate) fn pid(&self) -> Option<i32> {
        match &*self.state.lock() {
            State::Running(running) => Some(running.leader.pid()),
            _ => None,
        }
    }

    /// Replaces a guard that somebody has ended. The new one finds all commands in the ledger.
    pub(crate) fn replace(&self) {
        let ended = {
            let mut state = self.state.lock();
            match &mut *state {
                State::Running(running) if running.leader.exit().is_some() => {
                    running.leader.reap();
                    std::mem::replace(&mut *state, State::Absent)
                }
                _ => return,
            }
        };
        drop(ended);
        // A failure is not lost: the next command tries again, and says why it can't.
        let _ = self.start_unless_running();
    }

    /// Sends the guard away, in good order. Nothing it would have to end is alive any more.
    pub(crate) fn dismiss(&self) {
        if let Some(Running { mut leader, life }) = self.take_over() {
            // The one message there is. A pipe takes a byte, and without a reader the guard has ended already; the
            // SIGPIPE of that is not the host's business.
            let mut shield = Shield::for_host();
            shield.raise();
            let _ = nix::unistd::write(&life, b"Q");
            drop(shield);
            leader.await_exit(Some(Instant::now() + PATIENCE));
            leader.reap();
        }
    }

    /// Has the guard end what is left, as if the host had died, and waits for that.
    pub(crate) fn leave_the_rest(&self, until: Option<Instant>) {
        if let Some(Running { mut leader, life }) = self.take_over() {
            drop(life);
            leader.await_exit(until);
            leader.reap();
        }
    }

    /// The guard, if there is one; there will be no other.
    fn take_over(&self) -> Option<Running> {
        let mut state = self.state.lock();
        while matches!(*state, State::Starting) {
            self.changed.wait(&mut state);
        }
        match std::mem::replace(&mut *state, State::Over) {
            State::Running(running) => Some(running),
            _ => None,
        }
    }
}

/// How long a guard may take to go.
const PATIENCE: Duration = Duration::from_secs(1);

fn host_pidfd() -> Option<OwnedFd> {
    // SAFETY: a plain system call.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
    // SAFETY: a non-negative result is a new descriptor that nobody else owns.
    let pidfd = (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw as RawFd) })?;
    fd::above_stdio(pidfd).ok()
}

fn guard_error(error: &io::Error) -> Error {
    // The error of a temporary file is wrapped into one that also has its path.
    let wrapped = || error.get_ref()?.source()?.downcast_ref::<io::Error>()?.raw_os_error();
    let errno = error.raw_os_error().or_else(wrapped).unwrap_or(libc::EIO);
    Error::os(ErrorKind::Spawn, Stage::Guard, errno, "can't prepare the guard (config: guard)")
}
