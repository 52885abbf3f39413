//! What a caller asks.

use std::ffi::{c_char, c_void, OsString};

use super::cancel::dsh_cancel_t;
use super::extensible::{flags, init, reserved};
use super::handle::open;
use super::sandbox::dsh_sandbox_t;
use super::status::dsh_status_t;
use super::text::{bytes, list, path, split};
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::{Request, Survivors};

/// What happens to descendants that are still alive when a command has ended by itself.
pub type dsh_survivors_t = u32;
/// They stay, owned by the executor: listed in the result, their pipes drained, ended with the executor. The default.
pub const DSH_SURVIVORS_KEEP: dsh_survivors_t = 0u32;
/// They are ended before the result is there: at once, or, while they hold the output pipes, after `drain_ms`.
pub const DSH_SURVIVORS_KILL: dsh_survivors_t = 1u32;

/// In `dsh_request_t.flags`: stderr goes through stdout's pipe, so that both are kept in their order of arrival.
/// Without it, the order between the two is not known.
pub const DSH_REQUEST_MERGE_STDERR: u64 = 1u64;
/// In `dsh_request_t.flags`: dsh_start() starts a foreground run that its caller does not wait for. `timeout_ms` and
/// `stdout_max_bytes` apply, the process settles only once a forced stop is through, and dsh_process_result() then gives
/// what dsh_run() would have given. For hosts with an event loop; dsh_run() does so anyway.
pub const DSH_REQUEST_FOREGROUND: u64 = 2u64;

/// A command and the terms it is to run under. Zero and NULL mean the executor's default. Everything it points to is
/// read during the call only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_request_t {
    /// `sizeof(dsh_request_t)`.
    pub size: usize,
    /// The text for `bash -c`: any bytes but NUL, of any length. Required.
    pub command: *const c_char,
    /// Its length in bytes.
    pub command_len: usize,
    /// Working directory; a relative one is taken from the executor's `cwd`.
    pub workdir: *const c_char,
    /// Bytes for the command's stdin, which is closed after them. NULL gives it /dev/null; a pointer with length 0
    /// gives it an empty stdin; NULL with a length is `DSH_E_NULL`.
    pub input: *const c_void,
    /// How many bytes.
    pub input_len: usize,
    /// Environment entries over the host's: `NAME=VALUE` sets, `NAME` alone removes. Names in `DSH_` are refused.
    pub env: *const *const c_char,
    /// How many entries; 65,536 at most.
    pub env_len: usize,
    /// Trusted entries in the `DSH_` namespace: `DSH_NAME=VALUE` only.
    pub dsh_env: *const *const c_char,
    /// How many entries; 65,536 at most.
    pub dsh_env_len: usize,
    /// Ends the command when cancelled. The handle may be freed once the call with this request has returned.
    pub cancel: *const dsh_cancel_t,
    /// Timeout in milliseconds, capped by the executor's `max_timeout_ms`. Ignored by dsh_start()
    /// without `DSH_REQUEST_FOREGROUND`.
    pub timeout_ms: u64,
    /// Bytes of stdout kept in memory. Ignored by dsh_start() without `DSH_REQUEST_FOREGROUND`.
    pub stdout_max_bytes: u64,
    /// Any number of the caller's; comes back in events and in dsh_process_info().
    pub tag: u64,
    /// `DSH_REQUEST_...` bits. Others are refused.
    pub flags: u64,
    /// What happens to descendants that outlive the command.
    pub survivors: dsh_survivors_t,
    /// Must be 0.
    pub reserved: u32,
    /// The policy to confine the command under, where it differs from the executor's. NULL: the executor's.
    pub sandbox: *const dsh_sandbox_t,
    /// For dsh_start() with `DSH_REQUEST_FOREGROUND`: for so many milliseconds the call itself drives the process, as
    /// dsh_run() does, and returns when it has settled; otherwise the library's threads go on with it. A short command is
    /// spared the way through another thread. Of what happens meanwhile no events tell, but that there is output or an
    /// exit when it goes on; so look whether it has settled first, by dsh_wait() with a limit of 0. 0: not at all.
    pub attend_ms: u64,
}

extensible!(dsh_request_t);

/// Makes a request all zero but for its size: `dsh_request_init(&request, sizeof request)`.
///
/// `DSH_E_NULL`, or `DSH_E_STRUCT` for an impossible size; then nothing is written. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_request_init(request: *mut dsh_request_t, size: usize) -> dsh_status_t {
    init(request, size)
}

impl dsh_request_t {
    /// # Safety
    /// Its pointers are what the header says.
    pub(super) unsafe fn to_request(self) -> Result<Request> {
        flags::<Self>("flags", self.flags, DSH_REQUEST_MERGE_STDERR | DSH_REQUEST_FOREGROUND)?;
        reserved::<Self>("reserved", std::mem::offset_of!(Self, reserved), self.reserved)?;
        let no_input = self.input.is_null() && self.input_len == 0;
        let cancel = self.cancel.as_ref().map(|cancel| open(Some(cancel), "cancel")).transpose()?;
        Ok(Request {
            command: bytes("command", self.command.cast(), self.command_len)?,
            workdir: path(self.workdir),
            timeout_ms: self.timeout_ms,
            stdout_max_bytes: self.stdout_max_bytes,
            stdin: if no_input { None } else { Some(bytes("input", self.input, self.input_len)?) },
            env: list("env", self.env, self.env_len)?.into_iter().map(split).collect(),
            dsh_env: list("dsh_env", self.dsh_env, self.dsh_env_len)?
                .into_iter()
                .enumerate()
                .map(|(i, entry)| with_value(i, split(entry)))
                .collect::<Result<_>>()?,
            attend_ms: self.attend_ms,
            merge_stderr: self.flags & DSH_REQUEST_MERGE_STDERR != 0,
            foreground: self.flags & DSH_REQUEST_FOREGROUND != 0,
            survivors: survivors_of(self.survivors)?,
            sandbox: dsh_sandbox_t::optional(self.sandbox)?,
            cancel: cancel.cloned(),
            tag: self.tag,
        })
    }
}

fn with_value(i: usize, entry: (OsString, Option<OsString>)) -> Result<(OsString, OsString)> {
    let (name, value) = entry;
    let missing = || {
        let message = format!("dsh_env[{i}] {name:?}: has no '=' and a value");
        Error::new(ErrorKind::Invalid, Stage::Argument, message)
    };
    let value = value.ok_or_else(missing)?;
    Ok((name, value))
}

fn survivors_of(survivors: dsh_survivors_t) -> Result<Survivors> {
    match survivors {
        DSH_SURVIVORS_KEEP => Ok(Survivors::Keep),
        DSH_SURVIVORS_KILL => Ok(Survivors::Kill),
        _ => {
            let message = format!("survivors {survivors}: is none of DSH_SURVIVORS_...");
            Err(Error::new(ErrorKind::Invalid, Stage::Argument, message))
        }
    }
}

pub(super) fn survivors_to_c(survivors: Survivors) -> dsh_survivors_t {
    match survivors {
        Survivors::Keep => DSH_SURVIVORS_KEEP,
        Survivors::Kill => DSH_SURVIVORS_KILL,
    }
}
