//! Handles: what C knows by pointer only, who owns it, and what is checked before it is touched.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result, Stage};
use crate::forked::Birthplace;

/// A type that C knows by pointer only.
pub(super) trait Handle: Sized {
    /// What it stands for.
    type Content;

    fn sealed(&self) -> &Sealed<Self::Content>;
    fn seal(content: Self::Content) -> Box<Self>;
}

/// Declares that a type is a handle of its content.
macro_rules! handle {
    ($handle:ident holds $content:ty) => {
        impl $crate::capi::handle::Handle for $handle {
            type Content = $content;

            fn sealed(&self) -> &$crate::capi::handle::Sealed<$content> {
                &self.0
            }

            fn seal(content: $content) -> Box<Self> {
                Box::new($handle($crate::capi::handle::Sealed::new(content)))
            }
        }
    };
}

/// The content of a handle, with what has to be known before it may be touched.
pub(super) struct Sealed<T> {
    birthplace: Birthplace,
    poisoned: AtomicBool,
    content: T,
}

impl<T> Sealed<T> {
    pub(super) fn new(content: T) -> Sealed<T> {
        Sealed { birthplace: Birthplace::here(), poisoned: AtomicBool::new(false), content }
    }

    fn open(&self, name: &str) -> Result<&T> {
        self.birthplace.check()?;
        if self.poisoned.load(Ordering::Relaxed) {
            let message = format!("{name}: an earlier call on it failed inside the library; it can only be freed");
            return Err(Error::new(ErrorKind::Panicked, Stage::Argument, message));
        }
        Ok(&self.content)
    }

    /// A call on it has failed inside the library, so nothing is known of its content any more.
    pub(super) fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }
}

/// The content of a handle that is a parameter or field of this name.
pub(super) fn open<'a, H: Handle>(handle: Option<&'a H>, name: &str) -> Result<&'a H::Content> {
    handle.ok_or_else(|| null(name))?.sealed().open(name)
}

/// Ends the ownership of a handle. In a forked child nothing happens: what it holds is the parent's.
pub(super) fn release<H: Handle>(handle: Option<Box<H>>) {
    match handle {
        Some(handle) if !handle.sealed().birthplace.is_here() => std::mem::forget(handle),
        handle => free(handle),
    }
}

/// Frees whatever it is; a failure in that stays here.
pub(super) fn free<T>(owned: Option<Box<T>>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(owned)));
}

pub(super) fn null(name: &str) -> Error {
    Error::new(ErrorKind::Null, Stage::Argument, format!("{name}: is NULL"))
}
