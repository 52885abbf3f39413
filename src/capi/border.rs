//! How a call crosses the border: its handle is checked, a panic is caught, and what it gives is stored, or its error.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

use super::error::{dsh_error_t, Slot};
use super::handle::{open, Handle};
use super::out::{Nothing, Output};
use super::status::{dsh_status_t, DSH_OK};
use crate::error::{Error, ErrorKind, Result, Stage};

/// The body of an export: `border!(error, on HANDLE, out PARAMETER, { ... })`, both optional. In the body, HANDLE is
/// the content of the handle; what the body gives is stored in PARAMETER.
macro_rules! border {
    ($error:ident, on $handle:ident, out $out:ident, $body:block) => {
        $crate::capi::border::cross(
            $error,
            $crate::capi::border::On($handle, stringify!($handle)),
            ($out, stringify!($out)),
            |$handle| Ok($body),
        )
    };
    ($error:ident, on $handle:ident, $body:block) => {
        $crate::capi::border::cross(
            $error,
            $crate::capi::border::On($handle, stringify!($handle)),
            ($crate::capi::out::Nothing, ""),
            |$handle| Ok($body),
        )
    };
    ($error:ident, out $out:ident, $body:block) => {
        $crate::capi::border::cross($error, $crate::capi::out::Nothing, ($out, stringify!($out)), |()| Ok($body))
    };
}

/// Carries out the body of an export.
///
/// # Safety
/// Pointers are NULL or what the header says.
pub(super) unsafe fn cross<S: Subject, O: Output>(
    error: *mut *mut dsh_error_t,
    subject: S,
    out: (O, &'static str),
    body: impl FnOnce(S::Content) -> Result<O::Value>,
) -> dsh_status_t {
    let error = Slot::cleared(error);
    let crossing = catch_unwind(AssertUnwindSafe(|| {
        let (out, name) = out;
        out.clear(name)?;
        let value = body(subject.check()?)?;
        out.write(value);
        Ok(())
    }));
    match crossing {
        Ok(Ok(())) => DSH_OK,
        Ok(Err(failure)) => error.store(failure),
        Err(panic) => {
            subject.poison();
            error.store(panicked(&*panic))
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("the library failed: {}", text.unwrap_or("a panic without a message"));
    Error::new(ErrorKind::Panicked, Stage::Argument, message)
}

/// What a call is about.
pub(super) trait Subject: Copy {
    type Content;

    fn check(self) -> Result<Self::Content>;
    fn poison(self);
}

/// A call on a handle, and the name of the parameter.
pub(super) struct On<'a, H>(pub(super) Option<&'a H>, pub(super) &'static str);

impl<H> Clone for On<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for On<'_, H> {}

impl<'a, H: Handle> Subject for On<'a, H> {
    type Content = &'a H::Content;

    fn check(self) -> Result<&'a H::Content> {
        open(self.0, self.1)
    }

    fn poison(self) {
        if let Some(handle) = self.0 {
            handle.sealed().poison();
        }
    }
}

impl Subject for Nothing {
    type Content = ();

    fn check(self) -> Result<()> {
        Ok(())
    }

    fn poison(self) {}
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ptr;

    use super::super::error::{dsh_error_free, dsh_error_message};
    use super::super::handle::{free, release, Sealed};
    use super::super::status::DSH_E_PANIC;
    use super::*;

    struct Probe(Sealed<u32>);
    handle!(Probe holds u32);

    fn call(probe: &Probe, body: fn(&u32) -> usize) -> (dsh_status_t, usize, String) {
        let probe = Some(probe);
        let (mut count, mut error) = (7usize, ptr::null_mut());
        let (out, slot) = (&raw mut count, &raw mut error);
        // SAFETY: both out-parameters are locals.
        unsafe {
            let status = border!(slot, on probe, out out, { body(probe) });
            let message = CStr::from_ptr(dsh_error_message(error.as_ref())).to_str().unwrap().to_owned();
            if !error.is_null() {
                dsh_error_free(Some(Box::from_raw(error)));
            }
            (status, count, message)
        }
    }

    #[test]
    fn a_panic_is_a_status_and_poisons_the_handle() {
        let probe = Probe::seal(3);
        assert_eq!(call(&probe, |number| *number as usize), (DSH_OK, 3, String::new()));
        let (status, count, message) = call(&probe, |number| panic!("lost {number}"));
        assert_eq!((status, count), (DSH_E_PANIC, 0));
        assert!(message.contains("lost 3"), "{message}");
        let (status, count, message) = call(&probe, |number| *number as usize);
        assert_eq!((status, count), (DSH_E_PANIC, 0));
        assert!(message.contains("probe: an earlier call"), "{message}");
        release(Some(probe));
    }

    #[test]
    fn a_panic_while_something_is_freed_ends_there() {
        struct Explosive;
        impl Drop for Explosive {
            fn drop(&mut self) {
                panic!("while it is freed");
            }
        }
        free(Some(Box::new(Explosive)));
    }
}
