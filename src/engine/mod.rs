//! What drives commands from their start to their end: the state machine, the threads, and the waiting.
//!
//! A foreground run is driven by the thread that called it; background processes, and what foreground runs leave
//! behind, by two threads of the executor. The reader waits for pipes, and drives the processes whose pipes it reads as
//! long as that takes no time; the reaper does what does: it reads the process table, and waits for trees to end.

mod alarm;
pub(crate) mod foreground;
mod gather;
mod pipes;
#[cfg(target_os = "linux")]
#[path = "poller_linux.rs"]
mod poller;
#[cfg(not(target_os = "linux"))]
mod poller;
mod reader;
mod reaper;
mod tending;
mod threads;
mod timers;

pub(crate) use alarm::Alarm;
pub(crate) use pipes::{Intake, Pipes, StdinFeed};
pub(crate) use tending::{Tending, Terms};
pub(crate) use threads::Engine;

/// Bytes taken from a pipe at a time. More is not faster: from 128 KiB on, the same stream took three times the CPU time,
/// since what was read no longer stays in the nearest cache. The memory is kept per thread, as touching fresh memory
/// costs more than reading.
const BUFFER: usize = 64 << 10;
