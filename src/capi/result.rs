//! What a foreground run gave.

use std::ffi::{c_char, c_void, CString};
use std::sync::OnceLock;

use super::error::dsh_error_t;
use super::executor::dsh_executor_t;
use super::extensible::read;
use super::facts::Facts;
use super::handle::{release, Sealed};
use super::outcome::{dsh_outcome_t, dsh_survivor_t};
use super::request::dsh_request_t;
use super::status::dsh_status_t;
use super::text::{address, c_path, c_string, first, pointer, Texts};
use crate::{Captured, RunResult};

/// What a foreground run gave. Yours; immutable.
pub struct dsh_result_t(Sealed<Finished>);

handle!(dsh_result_t holds Finished);

/// A result, and its text and lists as C sees them.
pub(super) struct Finished {
    result: RunResult,
    spills: [Spill; 2],
    survivors: Vec<dsh_survivor_t>,
    scrubbed: Texts,
    /// Made when it is first asked for: most commands are not confined.
    sandbox: OnceLock<Box<Facts>>,
}

struct Spill {
    path: Option<CString>,
    error: Option<CString>,
}

impl From<RunResult> for Finished {
    fn from(result: RunResult) -> Finished {
        let spill = |stream: &Captured| Spill {
            path: c_path(stream.spill_path.as_deref()),
            error: stream.spill_error.as_ref().map(c_string),
        };
        Finished {
            spills: [spill(&result.stdout), spill(&result.stderr)],
            survivors: result.outcome.survivors.iter().map(dsh_survivor_t::from).collect(),
            scrubbed: Texts::new(&result.scrubbed),
            sandbox: OnceLock::new(),
            result,
        }
    }
}

/// Runs a command in a fresh, non-interactive `bash -c` and waits for its result. Everything that a command can do,
/// exits and timeouts included, is a result; an error means that it was not run. The result is yours; free it with
/// dsh_result_free().
///
/// Blocks until the command has settled: its exit is known, and its output is complete or `drain_ms` have passed. The
/// timeout bounds that; dsh_cancel() and dsh_executor_shutdown() from another thread end it. Any thread, any number at
/// a time.
///
/// Errors of the request: `DSH_E_STRUCT`, `DSH_E_FLAGS`, `DSH_E_INVALID`, `DSH_E_COMMAND_NUL`, `DSH_E_ENV_NAME`,
/// `DSH_E_ENV_RESERVED`, `DSH_E_ENV_TOO_BIG`, `DSH_E_CANCELLED`. Of the place: `DSH_E_WORKDIR_MISSING`,
/// `DSH_E_WORKDIR_NOT_DIR`, `DSH_E_WORKDIR_DENIED`, `DSH_E_WORKDIR_UNUSABLE`, `DSH_E_SHELL_MISSING`. Of the system:
/// `DSH_E_SPAWN`, `DSH_E_SYSTEM`, `DSH_E_SANDBOX_UNAVAILABLE`. Of the executor: `DSH_E_SHUTDOWN`.
#[no_mangle]
pub unsafe extern "C" fn dsh_run(
    executor: Option<&dsh_executor_t>,
    request: *const dsh_request_t,
    result: *mut *mut dsh_result_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on executor, out result, { executor.run(read(request, "request")?.to_request()?)?.into() })
}

/// One stream as it was kept. Part of other structs; it never grows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_captured_t {
    /// What was kept in memory, bytes that are not promised to be UTF-8; not NUL-terminated. Never NULL.
    pub data: *const c_void,
    /// How many bytes that are.
    pub len: usize,
    /// Bytes that the command wrote.
    pub total: u64,
    /// Bytes that were left out of `data`.
    pub omitted: u64,
    /// Where in `data` they are missing: an offset, 0 when only the tail was kept.
    pub omitted_at: u64,
    /// The file that holds the whole stream from its first byte. NULL when memory was enough, or `spill_error` is set.
    pub spill_path: *const c_char,
    /// Why there is no such file although memory was not enough; otherwise NULL.
    pub spill_error: *const c_char,
}

/// What a foreground run gave. What it points to lives as long as the result.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_result_info_t {
    /// `sizeof(dsh_result_info_t)`, set by the caller.
    pub size: usize,
    /// How the command ended.
    pub outcome: dsh_outcome_t,
    /// Its stdout (both streams, when they were merged).
    pub out: dsh_captured_t,
    /// Its stderr.
    pub err: dsh_captured_t,
    /// The pids that held the output pipes when the drain limit passed, as far as they could be seen. NULL when none.
    pub held_by: *const i32,
    /// How many there are.
    pub held_by_len: usize,
    /// Descendants that were still alive. NULL when none.
    pub survivors: *const dsh_survivor_t,
    /// How many there are.
    pub survivors_len: usize,
    /// Names of host variables that the command did not get because they look like credentials or are denied.
    pub scrubbed: *const *const c_char,
    /// How many there are.
    pub scrubbed_len: usize,
    /// The effective timeout in milliseconds.
    pub timeout_ms: u64,
    /// Bytes of input that the command took, or that were left in the pipe for it.
    pub input_written: u64,
    /// The library's number of the process, unique in its executor.
    pub process_id: u64,
}

extensible!(dsh_result_info_t);

/// Fills in what a result holds. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_result_info(
    result: Option<&dsh_result_t>,
    info: *mut dsh_result_info_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on result, out info, { result.to_c() })
}

impl Finished {
    pub(super) fn sandbox(&self) -> &Facts {
        self.sandbox.get_or_init(|| Box::new(self.result.sandbox.clone().into()))
    }

    fn to_c(&self) -> dsh_result_info_t {
        let result = &self.result;
        dsh_result_info_t {
            size: size_of::<dsh_result_info_t>(),
            outcome: (&result.outcome).into(),
            out: captured(&result.stdout, &self.spills[0]),
            err: captured(&result.stderr, &self.spills[1]),
            held_by: first(&result.outcome.held_by),
            held_by_len: result.outcome.held_by.len(),
            survivors: first(&self.survivors),
            survivors_len: self.survivors.len(),
            scrubbed: self.scrubbed.pointer(),
            scrubbed_len: self.scrubbed.len(),
            timeout_ms: result.timeout_ms,
            input_written: result.stdin_written,
            process_id: result.process_id,
        }
    }
}

fn captured(stream: &Captured, spill: &Spill) -> dsh_captured_t {
    dsh_captured_t {
        data: address(&stream.bytes),
        len: stream.bytes.len(),
        total: stream.total,
        omitted: stream.omitted,
        omitted_at: stream.omitted_at as u64,
        spill_path: pointer(spill.path.as_ref()),
        spill_error: pointer(spill.error.as_ref()),
    }
}

/// Frees a result and everything that it gave. NULL is fine. Any thread, as the last call; does not block.
#[no_mangle]
pub extern "C" fn dsh_result_free(result: Option<Box<dsh_result_t>>) {
    release(result);
}
