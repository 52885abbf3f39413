//! A process: one `bash -c` and its descendants. What its driver and its handles share, and the handle of one in the
//! background; `state` is what becomes of it.

mod state;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::engine::Alarm;
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::event::{EventKind, Events};
use crate::forked::Birthplace;
use crate::output::Collector;
use crate::read::{self, Chunk, Reading};
use crate::result::{Exit, Outcome, RunResult, StopBy, StopStage, Survivor};
use crate::sandbox::{Confinement, SandboxFacts};
use crate::tree::LeaderExit;
use state::State;

/// One of the two streams of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stream {
    /// Standard output (and standard error, when they are merged).
    Stdout,
    /// Standard error.
    Stderr,
}

/// What has become of a background process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It has not settled yet.
    Running,
    /// It ended by itself, with whatever code.
    Completed,
    /// It was killed or cancelled, or died of a signal.
    Killed,
}

/// What was found when the process settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settlement {
    pub(crate) pipes_held: bool,
    pub(crate) held_by: Vec<i32>,
}

/// What a process is from its start to its end. Shared by its driver, its handles and the live set.
pub(crate) struct Core {
    pub(crate) id: u64,
    pub(crate) tag: u64,
    pub(crate) pid: i32,
    pub(crate) started: Instant,
    /// SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
    pub(crate) streams: [Mutex<Collector>; 2],
    /// The effective timeout in milliseconds; 0 when there is none.
    timeout_ms: u64,
    /// Names of host variables that the command did not get.
    scrubbed: Arc<[OsString]>,
    workdir: PathBuf,
    /// What is known of its confinement before it has settled.
    sandbox: Option<Box<SandboxFacts>>,
    /// And once it has.
    sandbox_end: OnceLock<Box<SandboxFacts>>,
    pub(crate) stdin_written: AtomicU64,
    open_streams: AtomicU8,
    merged: bool,
    /// What was in the pipes when the drain limit passed has been taken in.
    /// Then it says which pipes were still open, by their inode numbers.
    drained: Mutex<Option<Vec<u64>>>,
    state: Mutex<State>,
    changed: Condvar,
    /// Rings for the thread that drives this process at the moment.
    pub(crate) alarm: Mutex<Alarm>,
    /// Where a background process announces what happens to it.
    events: Option<Arc<Events>>,
    /// Set when the last handle is gone: nobody could tell what further events are about.
    muted: AtomicBool,
}

/// What a [`Core`] is made of.
pub(crate) struct Birth {
    pub(crate) id: u64,
    pub(crate) tag: u64,
    pub(crate) pid: i32,
    pub(crate) started: Instant,
    pub(crate) grace: Duration,
    pub(crate) merged: bool,
    pub(crate) streams: [Collector; 2],
    pub(crate) timeout_ms: u64,
    pub(crate) scrubbed: Arc<[OsString]>,
    pub(crate) workdir: PathBuf,
    pub(crate) sandbox: Option<Box<SandboxFacts>>,
    pub(crate) alarm: Alarm,
    pub(crate) events: Option<Arc<Events>>,
}

const DRIVER_LOST: &str = "the thread that drove the process is gone";

impl Core {
    pub(crate) fn new(birth: Birth) -> Arc<Core> {
        let [stdout, mut stderr] = birth.streams;
        if birth.merged {
            stderr.close();
        }
        Arc::new(Core {
            id: birth.id,
            tag: birth.tag,
            pid: birth.pid,
            started: birth.started,
            grace: birth.grace,
            streams: [Mutex::new(stdout), Mutex::new(stderr)],
            timeout_ms: birth.timeout_ms,
            scrubbed: birth.scrubbed,
            workdir: birth.workdir,
            sandbox: birth.sandbox,
            sandbox_end: OnceLock::new(),
            stdin_written: AtomicU64::new(0),
            open_streams: AtomicU8::new(if birth.merged { 1 } else { 2 }),
            merged: birth.merged,
            drained: Mutex::new(None),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            alarm: Mutex::new(birth.alarm),
            events: birth.events,
            muted: AtomicBool::new(false),
        })
    }

    /// A stream, with everything that has come of it.
    pub(crate) fn stream(&self, stream: Stream) -> MutexGuard<'_, Collector> {
        let mut collector = self.streams[stream as usize].lock();
        collector.gather_in();
        collector
    }

    /// Orders a stop and wakes the driver. See [`State::order_stop`].
    pub(crate) fn order_stop(&self, by: StopBy) -> bool {
        let was_running = self.state.lock().order_stop(by);
        self.ring();
        was_running
    }

    /// Has the driver look at the process.
    pub(crate) fn ring(&self) {
        self.alarm.lock().ring(self.id);
    }

    /// The stop that the driver has to carry out, once one was ordered.
    pub(crate) fn ordered_stop(&self) -> Option<StopBy> {
        self.state.lock().order
    }

    pub(crate) fn enter_stage(&self, stage: StopStage) {
        self.state.lock().stage = stage;
    }

    /// See [`State::ended_unstopped`].
    pub(crate) fn ended_unstopped(&self) {
        self.state.lock().ended_unstopped();
    }

    pub(crate) fn leader_exited(&self, exit: LeaderExit) {
        self.state.lock().leader_exited(exit);
        self.announce(EventKind::Exit);
    }

    /// A stream's pipe has no writer any more.
    pub(crate) fn stream_closed(&self, stream: Stream) {
        self.stream(stream).close();
        self.open_streams.fetch_sub(1, Ordering::AcqRel);
        self.announce(EventKind::Output);
    }

    pub(crate) fn streams_open(&self) -> bool {
        self.open_streams.load(Ordering::Acquire) > 0
    }

    /// What comes from now on belongs to no result: it is read, so that its writer is not stopped, and kept nowhere.
    pub(crate) fn close_streams(&self) {
        self.streams.iter().for_each(|stream| stream.lock().close());
    }

    /// Whoever reads the pipes has read what was in them when the drain limit passed, and these are still open.
    pub(crate) fn mark_drained(&self, open: Vec<u64>) {
        *self.drained.lock() = Some(open);
    }

    /// A stop is under way, which closes pipes: they are to be read once more when it is through.
    pub(crate) fn unmark_drained(&self) {
        *self.drained.lock() = None;
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.drained.lock().is_some()
    }

    /// The pipes that were open when they were read for the last time, to tell who holds them.
    pub(crate) fn open_pipes(&self) -> Vec<u64> {
        self.drained.lock().clone().unwrap_or_default()
    }

    pub(crate) fn settle(&self, settlement: Settlement) {
        let mut state = self.state.lock();
        debug_assert!(state.exit.is_some() && state.settled.is_none(), "a process settles once, after its exit");
        state.settled = Some(settlement);
        drop(state);
        self.changed.notify_all();
        self.announce(EventKind::Settled);
    }

    /// Takes down what the confinement has come to. To be called when everything else is final, before it settles.
    pub(crate) fn conclude(&self, confinement: &mut Confinement) {
        let exit = self.state.lock().exit.map_or(Exit::Unknown, |exit| exit.exit);
        let stream = if self.merged { Stream::Stdout } else { Stream::Stderr };
        let errors = self.stream(stream).capture().bytes;
        let _ = self.sandbox_end.set(Box::new(confinement.conclude(exit, &errors, &self.workdir)));
    }

    /// What is known of its confinement so far; `None` when nobody has asked for one.
    pub(crate) fn sandbox(&self) -> Option<Box<SandboxFacts>> {
        self.sandbox_end.get().or(self.sandbox.as_ref()).cloned()
    }

    pub(crate) fn set_survivors(&self, survivors: Vec<Survivor>) {
        self.state.lock().survivors = survivors;
    }

    pub(crate) fn quiesce(&self) {
        let mut state = self.state.lock();
        state.survivors.clear();
        state.quiescent = true;
        drop(state);
        self.changed.notify_all();
        self.announce(EventKind::Quiescent);
    }

    /// The thread that drove this process is lost to a panic: nobody may wait for it for ever.
    pub(crate) fn fail(&self) {
        self.state.lock().failed = true;
        self.changed.notify_all();
        self.announce(EventKind::Settled); // as far as it ever will
    }

    /// Announces nothing for now: the caller who started it drives it, and sees what becomes of it.
    pub(crate) fn hush(&self) {
        self.muted.store(true, Ordering::Relaxed);
    }

    /// Announces what happens from here on, and, unless it has settled, that there may be something to be seen.
    pub(crate) fn speak(&self, settled: bool) {
        self.muted.store(false, Ordering::Relaxed);
        if settled {
            return;
        }
        self.announce(EventKind::Output);
        if self.state.lock().exit.is_some() {
            self.announce(EventKind::Exit);
        }
    }

    pub(crate) fn announce(&self, kind: EventKind) {
        if let Some(events) = &self.events {
            events.announce(self.id, self.tag, kind, &self.muted);
        }
    }

    /// Waits until it has settled, or `until` has passed.
    fn wait(&self, until: Option<Instant>) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if state.settled.is_some() {
                return Ok(());
            }
            if state.failed {
                return Err(Error::new(ErrorKind::Panicked, Stage::Wait, DRIVER_LOST));
            }
            match until {
                None => self.changed.wait(&mut state),
                Some(until) => {
                    if self.changed.wait_until(&mut state, until).timed_out() && state.settled.is_none() {
                        let message = format!("process {} has not settled in the given time", self.id);
                        return Err(Error::new(ErrorKind::TimedOut, Stage::Wait, message));
                    }
                }
            }
        }
    }

    /// What it gave. Only once it has settled.
    pub(crate) fn result(&self) -> Result<RunResult> {
        if let Some(reason) = self.sandbox_end.get().and_then(|facts| facts.runner_failed.as_ref()) {
            let message = format!("sandbox: {reason}");
            return Err(Error::new(ErrorKind::SandboxUnavailable, Stage::Sandbox, message));
        }
        if self.state.lock().failed {
            return Err(Error::new(ErrorKind::Panicked, Stage::Wait, DRIVER_LOST));
        }
        let unsettled = || Error::new(ErrorKind::TimedOut, Stage::Wait, format!("process {} has not settled", self.id));
        Ok(RunResult {
            outcome: self.outcome().filter(|_| self.is_settled()).ok_or_else(unsettled)?,
            stdout: self.stream(Stream::Stdout).capture().into(),
            stderr: self.stream(Stream::Stderr).capture().into(),
            timeout_ms: self.timeout_ms,
            stdin_written: self.stdin_written.load(Ordering::Relaxed),
            scrubbed: self.scrubbed.clone(),
            process_id: self.id,
            sandbox: self.sandbox(),
        })
    }

    fn is_settled(&self) -> bool {
        self.state.lock().settled.is_some()
    }

    /// How it ended; `None` while the leader's end is not known.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let state = self.state.lock();
        let exit = state.exit?;
        let settled = state.settled.clone().unwrap_or_default();
        Some(Outcome {
            exit: exit.exit,
            cause: state.cause,
            wall: exit.at.saturating_duration_since(self.started),
            usage: exit.usage,
            stage: state.stage,
            stopped_by: state.order,
            pipes_held: settled.pipes_held,
            held_by: settled.held_by,
            survivors: state.survivors.clone(),
        })
    }
}

/// What is known of a background process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The library's number of the process, unique in its executor; also in events.
    pub id: u64,
    /// The request's tag.
    pub tag: u64,
    /// The shell's pid. Its number may belong to somebody else once the process has settled.
    pub pid: i32,
    /// What has become of it.
    pub status: Status,
    /// Whether nothing of the tree is alive any more.
    pub quiescent: bool,
    /// How it ended, once the shell's end is known.
    pub outcome: Option<Outcome>,
    /// Bytes seen per stream so far, stdout first.
    pub totals: [u64; 2],
    /// Bytes of stdin taken.
    pub stdin_written: u64,
    /// What is known of its confinement; `None` when nobody has asked for one. Final once the process has settled.
    pub sandbox: Option<Box<SandboxFacts>>,
}

/// A process in the background. Clones are the same process; dropping a handle does not kill it.
#[derive(Clone)]
pub struct Process(Arc<Handle>);

/// What all clones of a handle share.
struct Handle {
    core: Arc<Core>,
    cursor: Mutex<read::Cursor>,
    birthplace: Birthplace,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(events) = self.core.events.as_ref().filter(|_| self.birthplace.is_here()) {
            events.forget(self.core.id, &self.core.muted);
        }
    }
}

impl Process {
    pub(crate) fn new(core: Arc<Core>, birthplace: Birthplace) -> Process {
        Process(Arc::new(Handle { core, cursor: Mutex::default(), birthplace }))
    }

    fn core(&self) -> Result<&Core> {
        self.0.birthplace.check()?;
        Ok(&self.0.core)
    }

    /// The library's number of the process, unique in its executor.
    pub fn id(&self) -> u64 {
        self.0.core.id
    }

    /// Ends the whole tree: SIGTERM and SIGCONT, after the grace SIGKILL. Does not wait.
    ///
    /// Says whether there was still a command to be killed: `true` once, `false` afterwards or when it had ended by
    /// itself (what such a command left behind is ended all the same).
    pub fn kill(&self) -> Result<bool> {
        Ok(self.core()?.order_stop(StopBy::Kill))
    }

    /// Waits until it has settled. `None` waits without limit; a limit never kills.
    pub fn wait(&self, limit: Option<Duration>) -> Result<()> {
        // A limit beyond what the clock can hold is no limit.
        self.core()?.wait(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    /// What it gave, as a run gives it. [`ErrorKind::TimedOut`] as long as it has not settled, and
    /// [`ErrorKind::SandboxUnavailable`] when its confinement could not be set up.
    ///
    /// Of a process that was started as `foreground` this is exactly what [`Executor::run`](crate::Executor::run) would
    /// have returned. Of any other, what it has given so far: survivors' output may still come, and there is no timeout
    /// (0).
    pub fn result(&self) -> Result<RunResult> {
        self.core()?.result()
    }

    /// What is known of it now.
    pub fn info(&self) -> Result<ProcessInfo> {
        let core = self.core()?;
        let (status, quiescent) = {
            let state = core.state.lock();
            (state.status(), state.quiescent)
        };
        Ok(ProcessInfo {
            id: core.id,
            tag: core.tag,
            pid: core.pid,
            status,
            quiescent,
            outcome: core.outcome(),
            totals: [Stream::Stdout, Stream::Stderr].map(|stream| core.stream(stream).total()),
            stdin_written: core.stdin_written.load(Ordering::Relaxed),
            sandbox: core.sandbox(),
        })
    }

    /// What both streams got since the last call: consuming, one text for both. Never delivers a byte twice.
    pub fn read_output(&self) -> Result<Chunk> {
        let core = self.core()?;
        let mut cursor = self.0.cursor.lock();
        Ok(read::merged(&mut cursor, [Stream::Stdout, Stream::Stderr].map(|stream| core.stream(stream))))
    }

    /// Bytes of one stream from an absolute offset on, copied into `buffer`. Consumes nothing.
    pub fn read_stream(&self, stream: Stream, offset: u64, buffer: &mut [u8]) -> Result<Reading> {
        Ok(read::at(&self.core()?.stream(stream), offset, buffer))
    }

    /// The file that holds a whole stream, once it was too long for memory.
    pub fn spill_path(&self, stream: Stream) -> Result<Option<PathBuf>> {
        Ok(self.core()?.stream(stream).spill_path())
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.0.core.id).field("pid", &self.0.core.pid).finish_non_exhaustive()
    }
}
