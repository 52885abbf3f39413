//! Errors: what went wrong, with the numbers and the names.

use std::ffi::{c_char, CString};
use std::ptr;

use super::handle::free;
use super::status::{dsh_status_t, DSH_OK};
use super::text::c_string;
use crate::error::Error;

/// What went wrong in one call. Owned by whoever called, immutable, readable on any thread at any time and also in a
/// forked child; free it with dsh_error_free().
pub struct dsh_error_t {
    error: Error,
    stage: CString,
    message: CString,
}

impl dsh_error_t {
    pub(super) fn new(error: Error) -> Box<dsh_error_t> {
        let stage = c_string(error.stage().name());
        let message = c_string(error.message());
        Box::new(dsh_error_t { error, stage, message })
    }
}

/// The status code that the failed call gave; of NULL, `DSH_OK`. Does not block.
#[no_mangle]
pub extern "C" fn dsh_error_code(error: Option<&dsh_error_t>) -> dsh_status_t {
    error.map_or(DSH_OK, |error| error.error.kind().status())
}

/// The `errno` of the system call that failed; 0 when none did, and of NULL. Does not block.
#[no_mangle]
pub extern "C" fn dsh_error_errno(error: Option<&dsh_error_t>) -> i32 {
    error.and_then(|error| error.error.errno()).unwrap_or(0)
}

/// Where it went wrong, a lower-case word that stays the same between versions: "argument", "resolve", "environment",
/// "workdir", "shell", "pipe", "script", "clone", "session", "signals", "descriptors", "exec", "guard", "threads",
/// "poll", "wait", "spill" or "sandbox".
///
/// Gives NUL-terminated text that lives as long as the error; of NULL, "". Does not block.
#[no_mangle]
pub extern "C" fn dsh_error_stage(error: Option<&dsh_error_t>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.stage.as_ptr())
}

/// The message: names the parameter or field and its value, or the step and the system's reason. For people; its
/// wording may change between versions.
///
/// Gives NUL-terminated text that lives as long as the error; of NULL, "". Does not block.
#[no_mangle]
pub extern "C" fn dsh_error_message(error: Option<&dsh_error_t>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Frees an error and the text that it gave. NULL is fine. Does not block.
#[no_mangle]
pub extern "C" fn dsh_error_free(error: Option<Box<dsh_error_t>>) {
    free(error);
}

/// Where a call stores its error, if the caller wants it.
#[derive(Clone, Copy)]
pub(super) struct Slot(*mut *mut dsh_error_t);

impl Slot {
    /// # Safety
    /// `slot` is NULL or may be written.
    pub(super) unsafe fn cleared(slot: *mut *mut dsh_error_t) -> Slot {
        let slot = Slot(slot);
        slot.set(ptr::null_mut());
        slot
    }

    /// # Safety
    /// As for `cleared`.
    pub(super) unsafe fn store(self, error: Error) -> dsh_status_t {
        let status = error.kind().status();
        if !self.0.is_null() {
            self.set(Box::into_raw(dsh_error_t::new(error)));
        }
        status
    }

    unsafe fn set(self, error: *mut dsh_error_t) {
        if !self.0.is_null() {
            self.0.write(error);
        }
    }
}
