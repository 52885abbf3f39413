//! What a way of running commands has to offer to be compared.

use std::path::PathBuf;

pub const SHELL: &str = "/bin/bash";
/// Of each stream, so many last bytes are kept.
pub const KEPT: usize = 64_000;
/// One read of output that may be long.
pub const BUFFER: usize = 64 << 10;
/// One read in the background: what a `BufReader` has unless told otherwise.
pub const SMALL_BUFFER: usize = 8 << 10;

pub type Result<T> = std::result::Result<T, String>;

#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    /// Only the last bytes, in memory.
    Keep,
    /// Also the whole stream, in a file.
    Spill,
}

/// What a run gave.
pub struct Ran {
    /// Bytes of stdout.
    pub bytes: u64,
    /// Files to be removed once the clock has stopped.
    pub files: Vec<PathBuf>,
}

impl Ran {
    pub fn of(bytes: u64) -> Ran {
        Ran { bytes, files: Vec::new() }
    }
}

/// A way of running commands.
pub trait Way: Sync {
    /// Of the language and the library.
    fn version(&self) -> String;

    /// Whether it can keep whole streams in files.
    fn spills(&self) -> bool {
        false
    }

    /// The most processes that it reasonably keeps in the background.
    fn most(&self) -> usize {
        usize::MAX
    }

    /// Is told of a command before it is timed.
    fn prepare(&self, _command: &str) -> Result<()> {
        Ok(())
    }

    /// Runs a command to its end.
    fn run(&self, mode: Mode, command: &str) -> Result<Ran>;

    /// Runs a command `count` times, from `callers` at a time.
    fn parallel(&self, callers: usize, count: usize, command: &str) -> Result<()>;

    /// Starts a command in the background whose output is read as it comes.
    fn start(&self, command: &str) -> Result<Box<dyn Process + '_>>;

    /// Starts as many of a command in the background, whose output is captured.
    fn start_crowd(&self, count: usize, command: &str) -> Result<Box<dyn Crowd + '_>>;
}

/// A process in the background.
pub trait Process: Send {
    fn pid(&self) -> i32;

    /// Waits for stdout and puts it into the buffer, which may be made longer. Gives how much that is; 0 at its end.
    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize>;

    /// Sends SIGTERM to its group.
    fn stop(&self) -> Result<()>;

    /// Waits until it has been reaped and both streams have ended.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Processes in the background, each captured. Dropping it ends what is left.
pub trait Crowd {
    fn pids(&self) -> Vec<i32>;

    /// Waits until each has written something.
    fn all_said(&mut self) -> Result<()>;

    /// Sends SIGTERM to each group and waits until all have been reaped.
    fn stop(&mut self) -> Result<()>;
}
