//! Handles remember the process that made them. After a fork of the host the child has copies of them whose locks may
//! be held by threads that it does not have, and whose descriptors it shares with its parent.

use crate::error::{Error, ErrorKind, Result, Stage};

/// The process in which a handle was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Birthplace(u32);

impl Birthplace {
    pub(crate) fn here() -> Birthplace {
        Birthplace(std::process::id())
    }

    pub(crate) fn is_here(self) -> bool {
        self == Birthplace::here()
    }

    /// An error in a forked child. To be called before any lock is taken.
    pub(crate) fn check(self) -> Result<()> {
        if self.is_here() {
            return Ok(());
        }
        let message = format!("the handle was made by process {}, of which this is a forked child", self.0);
        Err(Error::new(ErrorKind::Forked, Stage::Argument, message))
    }
}
