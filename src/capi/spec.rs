//! What would run.

use std::ffi::{c_char, CString};

use super::error::dsh_error_t;
use super::executor::dsh_executor_t;
use super::extensible::read;
use super::handle::{release, Sealed};
use super::request::{
    dsh_request_t, dsh_survivors_t, survivors_to_c, DSH_REQUEST_FOREGROUND, DSH_REQUEST_MERGE_STDERR,
};
use super::sandbox::{dsh_sandbox_mode_t, mode_to_c};
use super::status::dsh_status_t;
use super::text::{c_string, Texts};
use crate::Spec;

/// A request with every default and cap applied. Yours; immutable.
pub struct dsh_spec_t(Sealed<Resolved>);

handle!(dsh_spec_t holds Resolved);

/// A spec, and its text as C sees it.
pub(super) struct Resolved {
    spec: Spec,
    shell: CString,
    workdir: CString,
    scrubbed: Texts,
}

impl From<Spec> for Resolved {
    fn from(spec: Spec) -> Resolved {
        Resolved {
            shell: c_string(spec.shell()),
            workdir: c_string(spec.workdir()),
            scrubbed: Texts::new(spec.scrubbed()),
            spec,
        }
    }
}

/// Tells what would run, and starts nothing. Yours; free it with dsh_spec_free().
///
/// The errors that dsh_run() gives for its request, but not `DSH_E_CANCELLED`; whether the workdir can be entered is
/// found out only by running.
/// Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_resolve(
    executor: Option<&dsh_executor_t>,
    request: *const dsh_request_t,
    spec: *mut *mut dsh_spec_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on executor, out spec, { executor.resolve(read(request, "request")?.to_request()?)?.into() })
}

/// What would run. What it points to lives as long as the spec.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_spec_info_t {
    /// `sizeof(dsh_spec_info_t)`, set by the caller.
    pub size: usize,
    /// The text for the shell's `-c`; NUL-terminated too.
    pub command: *const c_char,
    /// Its length in bytes.
    pub command_len: usize,
    /// The absolute path of the shell.
    pub shell: *const c_char,
    /// The absolute working directory.
    pub workdir: *const c_char,
    /// Names of host variables that the command does not get because they look like credentials or are denied.
    pub scrubbed: *const *const c_char,
    /// How many there are.
    pub scrubbed_len: usize,
    /// The effective timeout in milliseconds of a foreground run.
    pub timeout_ms: u64,
    /// Bytes of stdout kept in memory by a foreground run.
    pub stdout_max_bytes: u64,
    /// Bytes of stderr, and of a background process's stdout, kept in memory.
    pub max_output_bytes: u64,
    /// Milliseconds from SIGTERM to SIGKILL.
    pub grace_ms: u64,
    /// Milliseconds that open pipes are waited for after the shell has exited.
    pub drain_ms: u64,
    /// The request's tag.
    pub tag: u64,
    /// The request's flags.
    pub flags: u64,
    /// What happens to descendants that outlive the command.
    pub survivors: dsh_survivors_t,
    /// The mode that it would be confined under; `DSH_SANDBOX_DEFAULT` when nobody has asked for confinement.
    pub sandbox_mode: dsh_sandbox_mode_t,
}

extensible!(dsh_spec_info_t);

/// Fills in what is known of a spec. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_spec_info(
    spec: Option<&dsh_spec_t>,
    info: *mut dsh_spec_info_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on spec, out info, { spec.to_c() })
}

impl Resolved {
    fn to_c(&self) -> dsh_spec_info_t {
        let spec = &self.spec;
        dsh_spec_info_t {
            size: size_of::<dsh_spec_info_t>(),
            command: spec.command.as_ptr(),
            command_len: spec.command().len(),
            shell: self.shell.as_ptr(),
            workdir: self.workdir.as_ptr(),
            scrubbed: self.scrubbed.pointer(),
            scrubbed_len: self.scrubbed.len(),
            timeout_ms: spec.timeout_ms(),
            stdout_max_bytes: spec.stdout_max_bytes(),
            max_output_bytes: spec.max_output_bytes(),
            grace_ms: spec.grace_ms(),
            drain_ms: spec.drain_ms(),
            tag: spec.tag,
            flags: if spec.merge_stderr { DSH_REQUEST_MERGE_STDERR } else { 0 }
                | if spec.foreground { DSH_REQUEST_FOREGROUND } else { 0 },
            survivors: survivors_to_c(spec.survivors),
            sandbox_mode: mode_to_c(spec.sandbox_mode()),
        }
    }
}

/// Frees a spec and the text that it gave. NULL is fine. Any thread, as the last call; does not block.
#[no_mangle]
pub extern "C" fn dsh_spec_free(spec: Option<Box<dsh_spec_t>>) {
    release(spec);
}
