//! Systems for which there is no guard: commands that run when the host dies go on.

use std::os::fd::RawFd;
use std::time::Instant;

use crate::error::Result;
use crate::spawn::Announce;

pub(crate) const AVAILABLE: bool = false;

/// Never made.
pub(crate) struct Guard(());

impl Guard {
    pub(crate) fn new(_executor_id: &[u8; 32], _grace_ms: u64) -> Guard {
        Guard(())
    }

    pub(crate) fn on_start(&self, _watch: impl Fn() + Send + Sync + 'static) {}

    pub(crate) fn set_grace(&self, _ms: u64) {}

    pub(crate) fn seat(&self) -> Result<Seat> {
        unreachable!("asked for a guard where there is none")
    }

    pub(crate) fn pidfd(&self) -> Option<RawFd> {
        None
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        None
    }

    pub(crate) fn replace(&self) {}

    pub(crate) fn dismiss(&self) {}

    pub(crate) fn leave_the_rest(&self, _until: Option<Instant>) {}
}

/// Never made.
pub(crate) enum Seat {}

impl Seat {
    pub(crate) fn announce(&self) -> Option<Announce<'_>> {
        None
    }

    pub(crate) fn leader_reaped(&self) {}
}
