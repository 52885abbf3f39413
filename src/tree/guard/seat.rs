//! A command's place in the ledger.

use std::sync::Arc;

use super::ledger::{live, Ledger, SlotId};
use crate::spawn::Announce;

/// One command's cell in the ledger, given back when dropped.
pub(crate) struct Seat {
    ledger: Arc<Ledger>,
    slot: Option<SlotId>,
}

impl Seat {
    pub(super) fn take(ledger: &Arc<Ledger>) -> Option<Seat> {
        let slot = ledger.reserve()?;
        Some(Seat { ledger: ledger.clone(), slot: Some(slot) })
    }

    /// Where the starting child stores its pid, and how.
    pub(crate) fn announce(&self) -> Option<Announce<'_>> {
        self.slot.as_ref().map(|slot| (self.ledger.slot(slot), live as fn(i32) -> u64))
    }

    /// To be called just before the leader is reaped.
    pub(crate) fn leader_reaped(&self) {
        if let Some(slot) = &self.slot {
            self.ledger.mark_reaped(slot);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.ledger.release(slot);
        }
    }
}
