//! What a command printed: the part kept in memory, the whole of it on disk, and reads by byte offset.
//!
//! - `collector`: one stream: what is kept, what is left out, and who may read what;
//! - `ring`: the last bytes of a stream, in memory taken only as they arrive;
//! - `spill`: the whole stream in a private file, once it is more than memory may hold;
//! - `utf8`: where a stream may be cut without cutting a character.

mod collector;
mod ring;
mod scratch;
mod spill;
pub(crate) mod utf8;

#[cfg(test)]
mod spill_tests;
#[cfg(test)]
mod tests;

pub(crate) use collector::{Capture, Collector, Limits};
pub(crate) use scratch::Scratch;
pub(crate) use spill::SpillStore;
