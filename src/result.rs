//! What a command ended as: the facts, each true or said to be unknown.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::output::Capture;
use crate::sandbox::SandboxFacts;

/// How the shell ended: a code or a signal, never both, never one made up from the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The number of the signal.
        number: i32,
        /// Whether memory was dumped.
        core_dumped: bool,
    },
    /// It has ended, but the host took its status away (by ignoring SIGCHLD or reaping strangers) on a kernel that
    /// can't tell it again.
    Unknown,
}

/// How far a forced stop had to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum StopStage {
    /// Nothing was signalled.
    #[default]
    None,
    /// SIGTERM (and SIGCONT) was enough.
    Term,
    /// SIGKILL was sent to something that was still alive after the grace.
    Kill,
}

/// Who ordered a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopBy {
    /// The timeout passed.
    Timeout,
    /// The cancel token was cancelled.
    Cancel,
    /// The process was killed through its handle.
    Kill,
    /// The executor was shut down.
    Shutdown,
    /// The command had ended by itself, and the request's policy was to end what it left behind.
    Survivors,
}

/// A process that is still alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survivor {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since boot: with it, the number can't be mistaken for a later process.
    pub start_time: u64,
}

/// What the command used: the shell and the descendants that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Peak resident memory of the largest process, in bytes.
    pub max_rss: u64,
}

/// How a command ended, in the foreground or in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How the shell ended.
    pub exit: Exit,
    /// The first cause that cut the command short while it ran. `None` when it ended by itself.
    pub cause: Option<StopBy>,
    /// Time from the start until the shell's end.
    pub wall: Duration,
    /// What it used.
    pub usage: Usage,
    /// How far a forced stop had to go.
    pub stage: StopStage,
    /// Who ordered the stop.
    pub stopped_by: Option<StopBy>,
    /// Whether something still held the output pipes when the drain limit passed.
    pub pipes_held: bool,
    /// Who held them, as far as it could be seen.
    pub held_by: Vec<i32>,
    /// Descendants that are still alive.
    pub survivors: Vec<Survivor>,
}

impl Outcome {
    /// Whether the timeout was the first cause to cut the command short.
    pub fn timed_out(&self) -> bool {
        self.cause == Some(StopBy::Timeout)
    }

    /// Whether a cancellation, kill or shutdown was the first cause to cut the command short.
    pub fn aborted(&self) -> bool {
        matches!(self.cause, Some(StopBy::Cancel | StopBy::Kill | StopBy::Shutdown))
    }
}

/// One captured stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// What was kept in memory. Bytes: not promised to be UTF-8, but never cut inside a character by us.
    pub bytes: Vec<u8>,
    /// Bytes that the command wrote.
    pub total: u64,
    /// Bytes left out of `bytes`.
    pub omitted: u64,
    /// Where in `bytes` they are missing.
    pub omitted_at: usize,
    /// The file that holds the whole stream, when it was too long for memory.
    pub spill_path: Option<PathBuf>,
    /// Why there is no such file, when there should be one.
    pub spill_error: Option<String>,
}

impl From<Capture> for Captured {
    fn from(capture: Capture) -> Captured {
        Captured {
            bytes: capture.bytes,
            total: capture.total,
            omitted: capture.omitted,
            omitted_at: capture.omitted_at,
            spill_path: capture.spill_path,
            spill_error: capture.spill_error,
        }
    }
}

/// What a foreground run gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    /// How it ended.
    pub outcome: Outcome,
    /// Its standard output (both streams, when they were merged).
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// The effective timeout in milliseconds.
    pub timeout_ms: u64,
    /// Bytes of stdin that the command took (or that were left in the pipe for it).
    pub stdin_written: u64,
    /// Names of host variables that the command did not get.
    pub scrubbed: Arc<[OsString]>,
    /// The library's number of the process, unique in its executor.
    pub process_id: u64,
    /// What is known of its confinement; `None` when nobody has asked for one.
    pub sandbox: Option<Box<SandboxFacts>>,
}
