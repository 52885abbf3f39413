//! What a command printed: the part kept in memory, the whole of it on disk, and reads by byte offset.
//!
//! - `collector`: one stream: what is kept, what is left out, and who may read what;
//! - `reservoir`: the last bytes of an endless stream, held in the kernel while the others are thrown away there;
//! - `ring`: the last bytes of a stream, in memory taken only as they arrive;
//! - `spill`: the whole stream in a private file, once it is more than memory may hold;
//! - `utf8`: where a stream may be cut without cutting a character.

mod collector;
#[cfg(target_os = "linux")]
mod reservoir;
#[cfg(not(target_os = "linux"))]
#[path = "no_reservoir.rs"]
mod reservoir;
mod ring;
mod scratch;
mod spill;
pub(crate) mod utf8;

#[cfg(test)]
mod spill_tests;
#[cfg(test)]
mod tests;

pub(crate) use collector::{Capture, Collector, Limits};
pub(crate) use reservoir::{Moved, Reservoir};
pub(crate) use scratch::Scratch;
pub(crate) use spill::SpillStore;
