//! Cancel tokens.

use super::error::dsh_error_t;
use super::handle::{release, Sealed};
use super::out::Answer;
use super::status::dsh_status_t;
use crate::CancelToken;

/// A switch that ends commands: thrown once, for any number of requests, from any thread.
pub struct dsh_cancel_t(Sealed<CancelToken>);

handle!(dsh_cancel_t holds CancelToken);

/// Makes a token that has not been cancelled. Yours; free it with dsh_cancel_free().
///
/// Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_cancel_new(cancel: *mut *mut dsh_cancel_t, error: *mut *mut dsh_error_t) -> dsh_status_t {
    border!(error, out cancel, { CancelToken::new() })
}

/// Ends every command that runs with this token, as dsh_kill() does, and every one that will be asked to is refused
/// with `DSH_E_CANCELLED`. Once is enough; again does nothing.
///
/// Any thread; does not wait for the commands to end.
#[no_mangle]
pub unsafe extern "C" fn dsh_cancel(cancel: Option<&dsh_cancel_t>, error: *mut *mut dsh_error_t) -> dsh_status_t {
    border!(error, on cancel, { cancel.cancel() })
}

/// Whether the token has been cancelled: `*is_cancelled` becomes 1 or 0.
///
/// Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_is_cancelled(
    cancel: Option<&dsh_cancel_t>,
    is_cancelled: *mut u32,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    let is_cancelled = Answer(is_cancelled);
    border!(error, on cancel, out is_cancelled, { cancel.is_cancelled() })
}

/// Frees a token. Commands that run with it go on, and can no longer be cancelled by it. NULL is fine.
///
/// Any thread, as the last call on this handle; does not block.
#[no_mangle]
pub extern "C" fn dsh_cancel_free(cancel: Option<Box<dsh_cancel_t>>) {
    release(cancel);
}
