//! Out-parameters: cleared on entry, written on success.

use std::ptr;

use super::handle::{null, Handle};
use crate::error::Result;

/// An out-parameter: cleared on entry, written on success.
pub(super) trait Output: Copy {
    type Value;

    /// # Safety
    /// The pointer is NULL or may be written.
    unsafe fn clear(self, name: &str) -> Result<()>;
    /// # Safety
    /// `clear` has succeeded.
    unsafe fn write(self, value: Self::Value);
}

/// No handle, or no out-parameter.
#[derive(Clone, Copy)]
pub(super) struct Nothing;

impl Output for Nothing {
    type Value = ();

    unsafe fn clear(self, _: &str) -> Result<()> {
        Ok(())
    }

    unsafe fn write(self, (): ()) {}
}

impl<H: Handle> Output for *mut *mut H {
    type Value = H::Content;

    unsafe fn clear(self, name: &str) -> Result<()> {
        set(self, name, ptr::null_mut())
    }

    unsafe fn write(self, content: H::Content) {
        *self = Box::into_raw(H::seal(content));
    }
}

impl Output for *mut usize {
    type Value = usize;

    unsafe fn clear(self, name: &str) -> Result<()> {
        set(self, name, 0)
    }

    unsafe fn write(self, value: usize) {
        *self = value;
    }
}

/// A yes or no that the caller may not want to know: 1 or 0.
#[derive(Clone, Copy)]
pub(super) struct Answer(pub(super) *mut u32);

impl Output for Answer {
    type Value = bool;

    unsafe fn clear(self, _: &str) -> Result<()> {
        self.write(false);
        Ok(())
    }

    unsafe fn write(self, yes: bool) {
        if !self.0.is_null() {
            *self.0 = yes.into();
        }
    }
}

/// A file descriptor: -1 when there is none, since 0 is one.
#[derive(Clone, Copy)]
pub(super) struct Descriptor(pub(super) *mut i32);

impl Output for Descriptor {
    type Value = i32;

    unsafe fn clear(self, name: &str) -> Result<()> {
        set(self.0, name, -1)
    }

    unsafe fn write(self, descriptor: i32) {
        *self.0 = descriptor;
    }
}

unsafe fn set<T>(out: *mut T, name: &str, value: T) -> Result<()> {
    if out.is_null() {
        return Err(null(name));
    }
    out.write(value);
    Ok(())
}
