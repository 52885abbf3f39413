//! How a command ended, in the foreground or in the background.

use std::time::Duration;

use crate::{Exit, Outcome, StopBy, StopStage, Survivor};

/// How the shell ended: by a code or by a signal, never both, never one made up from the other.
pub type dsh_exit_t = u32;
/// It has not ended yet.
pub const DSH_EXIT_NONE: dsh_exit_t = 0u32;
/// It exited with `code`.
pub const DSH_EXIT_CODE: dsh_exit_t = 1u32;
/// `signal` ended it.
pub const DSH_EXIT_SIGNAL: dsh_exit_t = 2u32;
/// It has ended, but the host took its status away (by ignoring SIGCHLD or reaping strangers) on a system that can't
/// tell it again.
pub const DSH_EXIT_UNKNOWN: dsh_exit_t = 3u32;

/// Who stops a command.
pub type dsh_stop_t = u32;
/// Nobody.
pub const DSH_STOP_NONE: dsh_stop_t = 0u32;
/// The timeout passed.
pub const DSH_STOP_TIMEOUT: dsh_stop_t = 1u32;
/// The cancel token was cancelled.
pub const DSH_STOP_CANCEL: dsh_stop_t = 2u32;
/// The process was killed through its handle.
pub const DSH_STOP_KILL: dsh_stop_t = 3u32;
/// The executor was shut down.
pub const DSH_STOP_SHUTDOWN: dsh_stop_t = 4u32;
/// The command had ended by itself, and the request's policy was to end what it left behind.
pub const DSH_STOP_SURVIVORS: dsh_stop_t = 5u32;

/// How far a forced stop had to go.
pub type dsh_stop_stage_t = u32;
/// Nothing was signalled.
pub const DSH_STOP_STAGE_NONE: dsh_stop_stage_t = 0u32;
/// SIGTERM (and SIGCONT) was enough.
pub const DSH_STOP_STAGE_TERM: dsh_stop_stage_t = 1u32;
/// SIGKILL was sent to something that was still alive after the grace.
pub const DSH_STOP_STAGE_KILL: dsh_stop_stage_t = 2u32;

/// How a command ended. Part of other structs; it never grows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_outcome_t {
    /// How the shell ended: `DSH_EXIT_...`.
    pub exit: dsh_exit_t,
    /// The exit code, 0 to 255, with `DSH_EXIT_CODE`; otherwise -1.
    pub code: i32,
    /// The number of the signal, with `DSH_EXIT_SIGNAL`; otherwise 0.
    pub signal: i32,
    /// 1 when that signal had memory dumped.
    pub core_dumped: u32,
    /// 1 when the timeout was the first cause to cut the command short, whatever it then exited with.
    pub timed_out: u32,
    /// 1 when a cancellation, kill or shutdown was the first cause to cut the command short. Never with `timed_out`.
    pub aborted: u32,
    /// The first cause that cut the command short while it ran; `DSH_STOP_NONE` when it ended by itself.
    pub cause: dsh_stop_t,
    /// Who first ordered a stop, also of what was left behind after the command's own end.
    pub stopped_by: dsh_stop_t,
    /// How far that stop had to go: `DSH_STOP_STAGE_...`.
    pub stage: dsh_stop_stage_t,
    /// 1 when something still held the output pipes when `drain_ms` had passed.
    pub pipes_held: u32,
    /// Microseconds from the start until the shell's end.
    pub wall_us: u64,
    /// Microseconds of CPU time in user mode, of the shell and the descendants that it waited for.
    pub user_us: u64,
    /// The same in the kernel.
    pub system_us: u64,
    /// Peak resident memory in bytes of the largest of them.
    pub max_rss_bytes: u64,
}

impl dsh_outcome_t {
    pub(super) const NONE: dsh_outcome_t = dsh_outcome_t {
        exit: DSH_EXIT_NONE,
        code: -1,
        signal: 0,
        core_dumped: 0,
        timed_out: 0,
        aborted: 0,
        cause: DSH_STOP_NONE,
        stopped_by: DSH_STOP_NONE,
        stage: DSH_STOP_STAGE_NONE,
        pipes_held: 0,
        wall_us: 0,
        user_us: 0,
        system_us: 0,
        max_rss_bytes: 0,
    };
}

impl From<&Outcome> for dsh_outcome_t {
    fn from(outcome: &Outcome) -> dsh_outcome_t {
        let (exit, code, signal, core_dumped) = match outcome.exit {
            Exit::Code(code) => (DSH_EXIT_CODE, code, 0, false),
            Exit::Signal { number, core_dumped } => (DSH_EXIT_SIGNAL, -1, number, core_dumped),
            Exit::Unknown => (DSH_EXIT_UNKNOWN, -1, 0, false),
        };
        dsh_outcome_t {
            exit,
            code,
            signal,
            core_dumped: core_dumped.into(),
            timed_out: outcome.timed_out().into(),
            aborted: outcome.aborted().into(),
            cause: stop(outcome.cause),
            stopped_by: stop(outcome.stopped_by),
            stage: match outcome.stage {
                StopStage::None => DSH_STOP_STAGE_NONE,
                StopStage::Term => DSH_STOP_STAGE_TERM,
                StopStage::Kill => DSH_STOP_STAGE_KILL,
            },
            pipes_held: outcome.pipes_held.into(),
            wall_us: microseconds(outcome.wall),
            user_us: microseconds(outcome.usage.user),
            system_us: microseconds(outcome.usage.system),
            max_rss_bytes: outcome.usage.max_rss,
        }
    }
}

fn stop(by: Option<StopBy>) -> dsh_stop_t {
    match by {
        None => DSH_STOP_NONE,
        Some(StopBy::Timeout) => DSH_STOP_TIMEOUT,
        Some(StopBy::Cancel) => DSH_STOP_CANCEL,
        Some(StopBy::Kill) => DSH_STOP_KILL,
        Some(StopBy::Shutdown) => DSH_STOP_SHUTDOWN,
        Some(StopBy::Survivors) => DSH_STOP_SURVIVORS,
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A process that is still alive. Part of lists; it never grows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_survivor_t {
    /// When it started, in clock ticks since boot: with it, the pid can't be mistaken for a later process.
    pub start_time: u64,
    /// Its pid.
    pub pid: i32,
    /// 0.
    pub reserved: u32,
}

impl From<&Survivor> for dsh_survivor_t {
    fn from(survivor: &Survivor) -> dsh_survivor_t {
        dsh_survivor_t { start_time: survivor.start_time, pid: survivor.pid, reserved: 0 }
    }
}
