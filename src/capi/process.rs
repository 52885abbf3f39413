//! A process in the background.

use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;

use super::error::dsh_error_t;
use super::executor::dsh_executor_t;
use super::extensible::read;
use super::facts::Facts;
use super::handle::{release, Sealed};
use super::out::Answer;
use super::outcome::{dsh_outcome_t, dsh_survivor_t};
use super::request::dsh_request_t;
use super::result::dsh_result_t;
use super::status::dsh_status_t;
use super::text::copy;
use crate::error::Result;
use crate::{Process, ProcessInfo, Status};

/// A command in the background: the shell and all its descendants.
pub struct dsh_process_t(Sealed<Started>);

handle!(dsh_process_t holds Started);

/// A process, and what is known of its confinement as C sees it, at its start and once it has settled.
pub(super) struct Started {
    process: Process,
    sandbox: [OnceLock<Box<Facts>>; 2],
}

impl From<Process> for Started {
    fn from(process: Process) -> Started {
        Started { process, sandbox: Default::default() }
    }
}

impl Deref for Started {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Started {
    pub(super) fn sandbox(&self) -> Result<&Facts> {
        let info = self.process.info()?;
        let settled = info.status != Status::Running;
        Ok(self.sandbox[usize::from(settled)].get_or_init(|| Box::new(info.sandbox.into())))
    }
}

/// Starts a command in the background and returns at once. No timeout applies, unless the request says
/// `DSH_REQUEST_FOREGROUND`. The process is the executor's until
/// nothing of it is alive, whether or not the handle is kept. The handle is yours; free it with dsh_process_free().
///
/// Errors as of dsh_run(). Any thread; does not block, but for the request's `attend_ms`.
#[no_mangle]
pub unsafe extern "C" fn dsh_start(
    executor: Option<&dsh_executor_t>,
    request: *const dsh_request_t,
    process: *mut *mut dsh_process_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on executor, out process, { executor.start(read(request, "request")?.to_request()?)?.into() })
}

/// Ends the whole tree: SIGTERM and SIGCONT, and after `grace_ms` SIGKILL to what is still alive, descendants that left
/// their session included. What a command that has ended left behind is ended too.
///
/// `*was_running` becomes 1 when there was still a command to be killed: once, and never after its own end; otherwise
/// 0. `was_running` may be NULL. Any thread; does not wait for the end.
#[no_mangle]
pub unsafe extern "C" fn dsh_kill(
    process: Option<&dsh_process_t>,
    was_running: *mut u32,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    let was_running = Answer(was_running);
    border!(error, on process, out was_running, { process.kill()? })
}

/// For dsh_wait(): no limit.
pub const DSH_WAIT_FOREVER: u64 = 18446744073709551615u64;

/// Waits until the process has settled: its exit is known, and its output is complete or `drain_ms` have passed.
///
/// Blocks for `timeout_ms` at most; 0 only looks, and `DSH_WAIT_FOREVER` has no limit. `DSH_E_TIMED_OUT` when it has
/// not settled by then, which changes nothing about the process. Any thread, any number at a time.
#[no_mangle]
pub unsafe extern "C" fn dsh_wait(
    process: Option<&dsh_process_t>,
    timeout_ms: u64,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    let limit = (timeout_ms != DSH_WAIT_FOREVER).then(|| Duration::from_millis(timeout_ms));
    border!(error, on process, { process.wait(limit)? })
}

/// What has become of a background process. Set once.
pub type dsh_process_status_t = u32;
/// It has not settled yet.
pub const DSH_PROCESS_RUNNING: dsh_process_status_t = 1u32;
/// It ended by itself, with whatever code.
pub const DSH_PROCESS_COMPLETED: dsh_process_status_t = 2u32;
/// It was killed or cancelled, or died of a signal.
pub const DSH_PROCESS_KILLED: dsh_process_status_t = 3u32;

/// What is known of a background process at one moment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_process_info_t {
    /// `sizeof(dsh_process_info_t)`, set by the caller.
    pub size: usize,
    /// How it ended; `DSH_EXIT_NONE` while the shell's end is not known.
    pub outcome: dsh_outcome_t,
    /// The library's number of the process, unique in its executor; also in events.
    pub process_id: u64,
    /// The request's tag.
    pub tag: u64,
    /// Bytes of stdout (both streams, when they are merged) seen so far.
    pub out_total: u64,
    /// Bytes of stderr seen so far.
    pub err_total: u64,
    /// Bytes of input that the command took, or that were left in the pipe for it.
    pub input_written: u64,
    /// The shell's pid. Its number may belong to somebody else once the process has settled.
    pub pid: i32,
    /// What has become of it: `DSH_PROCESS_...`.
    pub status: dsh_process_status_t,
    /// 1 when nothing of the tree is alive any more.
    pub quiescent: u32,
    /// 0.
    pub reserved: u32,
    /// How many descendants are still alive, see dsh_process_survivors().
    pub survivors_len: u64,
    /// How many held the output pipes when the drain limit passed, see dsh_process_held_by().
    pub held_by_len: u64,
}

extensible!(dsh_process_info_t);

/// Fills in what is known of the process now. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_process_info(
    process: Option<&dsh_process_t>,
    info: *mut dsh_process_info_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on process, out info, { process.info()?.into() })
}

impl From<ProcessInfo> for dsh_process_info_t {
    fn from(info: ProcessInfo) -> dsh_process_info_t {
        let outcome = info.outcome.as_ref();
        dsh_process_info_t {
            size: size_of::<dsh_process_info_t>(),
            outcome: outcome.map_or(dsh_outcome_t::NONE, dsh_outcome_t::from),
            process_id: info.id,
            tag: info.tag,
            out_total: info.totals[0],
            err_total: info.totals[1],
            input_written: info.stdin_written,
            pid: info.pid,
            status: match info.status {
                Status::Running => DSH_PROCESS_RUNNING,
                Status::Completed => DSH_PROCESS_COMPLETED,
                Status::Killed => DSH_PROCESS_KILLED,
            },
            quiescent: info.quiescent.into(),
            reserved: 0,
            survivors_len: outcome.map_or(0, |outcome| outcome.survivors.len() as u64),
            held_by_len: outcome.map_or(0, |outcome| outcome.held_by.len() as u64),
        }
    }
}

/// What a process gave, as dsh_run() gives it, once it has settled. Of a process that was started with
/// `DSH_REQUEST_FOREGROUND` exactly what dsh_run() would have given; of any other what it has given so far, with
/// `timeout_ms` 0. Yours, each time it is asked for; free it with dsh_result_free().
///
/// `DSH_E_TIMED_OUT` when it has not settled yet. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_process_result(
    process: Option<&dsh_process_t>,
    result: *mut *mut dsh_result_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on process, out result, { process.result()?.into() })
}

/// Descendants that are still alive after the command's end, as a list that is filled: at most `capacity` of them are
/// written to `buffer`, and `*count` becomes how many there are. With capacity 0, `buffer` may be NULL.
///
/// Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_process_survivors(
    process: Option<&dsh_process_t>,
    buffer: *mut dsh_survivor_t,
    capacity: usize,
    count: *mut usize,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on process, out count, {
        let survivors = process.info()?.outcome.map_or(Vec::new(), |outcome| outcome.survivors);
        let survivors: Vec<_> = survivors.iter().map(dsh_survivor_t::from).collect();
        copy(&survivors, buffer, capacity)?
    })
}

/// The pids that held the output pipes when the drain limit passed, as far as they could be seen: a list that is filled
/// as by dsh_process_survivors().
///
/// Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_process_held_by(
    process: Option<&dsh_process_t>,
    buffer: *mut i32,
    capacity: usize,
    count: *mut usize,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on process, out count, {
        let held_by = process.info()?.outcome.map_or(Vec::new(), |outcome| outcome.held_by);
        copy(&held_by, buffer, capacity)?
    })
}

/// Frees the handle. The process goes on, owned by the executor; its events end. NULL is fine.
///
/// Any thread, as the last call on this handle; does not block.
#[no_mangle]
pub extern "C" fn dsh_process_free(process: Option<Box<dsh_process_t>>) {
    release(process);
}
