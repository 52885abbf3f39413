//! Status codes. The numbers are part of the ABI: they never change, and new ones are added at the end.

use std::ffi::{c_char, CStr};

use crate::error::ErrorKind;

/// What a call gives back: `DSH_OK` or one of the negative `DSH_E_...` codes.
pub type dsh_status_t = i32;

/// It worked; every out-parameter is set.
pub const DSH_OK: dsh_status_t = 0;
/// A required pointer was NULL; the message names the parameter or field.
pub const DSH_E_NULL: dsh_status_t = -1;
/// A value that can't be used; the message names the field and the value.
pub const DSH_E_INVALID: dsh_status_t = -2;
/// A struct has an impossible size, or asks for something that this version does not know.
pub const DSH_E_STRUCT: dsh_status_t = -3;
/// Unknown flag bits are set.
pub const DSH_E_FLAGS: dsh_status_t = -4;
/// The command holds a NUL byte, which no command line can carry.
pub const DSH_E_COMMAND_NUL: dsh_status_t = -5;
/// The name of an environment variable can't be one.
pub const DSH_E_ENV_NAME: dsh_status_t = -6;
/// The name of an environment variable is in the reserved `DSH_` namespace.
pub const DSH_E_ENV_RESERVED: dsh_status_t = -7;
/// The environment is larger than the system takes; the message names the largest variables.
pub const DSH_E_ENV_TOO_BIG: dsh_status_t = -8;
/// The working directory does not exist.
pub const DSH_E_WORKDIR_MISSING: dsh_status_t = -9;
/// The working directory is something else than a directory.
pub const DSH_E_WORKDIR_NOT_DIR: dsh_status_t = -10;
/// The working directory may not be entered.
pub const DSH_E_WORKDIR_DENIED: dsh_status_t = -11;
/// The working directory can't be used for another reason (a loop of links, a name too long).
pub const DSH_E_WORKDIR_UNUSABLE: dsh_status_t = -12;
/// The shell is not there or can't be executed.
pub const DSH_E_SHELL_MISSING: dsh_status_t = -13;
/// The cancel token was cancelled before the command was started.
pub const DSH_E_CANCELLED: dsh_status_t = -14;
/// The executor has been shut down.
pub const DSH_E_SHUTDOWN: dsh_status_t = -15;
/// The system refused to start the command; stage and errno say where and why.
pub const DSH_E_SPAWN: dsh_status_t = -16;
/// No confinement backend can be used, so the command was not run.
pub const DSH_E_SANDBOX_UNAVAILABLE: dsh_status_t = -17;
/// The time given to a wait has passed; what was waited for goes on.
pub const DSH_E_TIMED_OUT: dsh_status_t = -18;
/// A system call that the library needs failed; stage and errno say which and why.
pub const DSH_E_SYSTEM: dsh_status_t = -19;
/// Memory was refused.
pub const DSH_E_OUT_OF_MEMORY: dsh_status_t = -20;
/// The call was made in a forked child of the process that made the handle.
pub const DSH_E_FORKED: dsh_status_t = -21;
/// The library caught a failure of its own; the handle can only be freed.
pub const DSH_E_PANIC: dsh_status_t = -22;

impl ErrorKind {
    pub(super) const fn status(self) -> dsh_status_t {
        match self {
            ErrorKind::Null => DSH_E_NULL,
            ErrorKind::Invalid => DSH_E_INVALID,
            ErrorKind::Struct => DSH_E_STRUCT,
            ErrorKind::Flags => DSH_E_FLAGS,
            ErrorKind::CommandNul => DSH_E_COMMAND_NUL,
            ErrorKind::EnvName => DSH_E_ENV_NAME,
            ErrorKind::EnvReserved => DSH_E_ENV_RESERVED,
            ErrorKind::EnvTooBig => DSH_E_ENV_TOO_BIG,
            ErrorKind::WorkdirMissing => DSH_E_WORKDIR_MISSING,
            ErrorKind::WorkdirNotDir => DSH_E_WORKDIR_NOT_DIR,
            ErrorKind::WorkdirDenied => DSH_E_WORKDIR_DENIED,
            ErrorKind::WorkdirUnusable => DSH_E_WORKDIR_UNUSABLE,
            ErrorKind::ShellMissing => DSH_E_SHELL_MISSING,
            ErrorKind::Cancelled => DSH_E_CANCELLED,
            ErrorKind::Shutdown => DSH_E_SHUTDOWN,
            ErrorKind::Spawn => DSH_E_SPAWN,
            ErrorKind::SandboxUnavailable => DSH_E_SANDBOX_UNAVAILABLE,
            ErrorKind::TimedOut => DSH_E_TIMED_OUT,
            ErrorKind::System => DSH_E_SYSTEM,
            ErrorKind::OutOfMemory => DSH_E_OUT_OF_MEMORY,
            ErrorKind::Forked => DSH_E_FORKED,
            ErrorKind::Panicked => DSH_E_PANIC,
        }
    }
}

/// What a status code means, in a few words. For a message that names the value or the system's reason, see
/// dsh_error_message().
///
/// Gives static text, never NULL; of a number that is no status, "unknown status". Any thread, also in a forked
/// child; does not block.
#[no_mangle]
pub extern "C" fn dsh_status_str(status: dsh_status_t) -> *const c_char {
    let text: &'static CStr = match status {
        DSH_OK => c"success",
        DSH_E_NULL => c"a required pointer is NULL",
        DSH_E_INVALID => c"a value can't be used",
        DSH_E_STRUCT => c"a struct does not fit this version of the library",
        DSH_E_FLAGS => c"unknown flag bits",
        DSH_E_COMMAND_NUL => c"the command holds a NUL byte",
        DSH_E_ENV_NAME => c"not a name of an environment variable",
        DSH_E_ENV_RESERVED => c"a reserved name of an environment variable",
        DSH_E_ENV_TOO_BIG => c"the environment is too big",
        DSH_E_WORKDIR_MISSING => c"the working directory does not exist",
        DSH_E_WORKDIR_NOT_DIR => c"the working directory is not a directory",
        DSH_E_WORKDIR_DENIED => c"the working directory may not be entered",
        DSH_E_WORKDIR_UNUSABLE => c"the working directory can't be used",
        DSH_E_SHELL_MISSING => c"the shell can't be executed",
        DSH_E_CANCELLED => c"cancelled before it was started",
        DSH_E_SHUTDOWN => c"the executor has been shut down",
        DSH_E_SPAWN => c"the system refused to start the command",
        DSH_E_SANDBOX_UNAVAILABLE => c"confinement is not available",
        DSH_E_TIMED_OUT => c"the wait timed out",
        DSH_E_SYSTEM => c"a system call failed",
        DSH_E_OUT_OF_MEMORY => c"out of memory",
        DSH_E_FORKED => c"called in a forked child",
        DSH_E_PANIC => c"the library failed",
        _ => c"unknown status",
    };
    text.as_ptr()
}
