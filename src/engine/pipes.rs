//! The pipes of a process, on the host's side: output taken in, stdin fed, neither ever waited for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::gather::Gather;
use crate::event::EventKind;
use crate::process::{Core, Stream};
use crate::signals::Shield;

/// How often a pipe is read before others have their turn: more than even a big pipe holds.
const READS_AT_A_TURN: usize = 32;

/// All pipes of one process.
pub(crate) struct Pipes {
    pub(crate) outputs: Vec<Intake>,
    pub(crate) stdin: Option<StdinFeed>,
}

/// What reading a pipe came to.
pub(crate) enum Intaken {
    /// Read empty for now. Let more come together for so long.
    Empty(Duration),
    /// There may be more at once.
    More,
    /// No writer is left.
    End,
}

/// The read end of an output pipe.
pub(crate) struct Intake {
    pipe: File,
    stream: Stream,
    gather: Gather,
    /// What comes is read, so that its writer is not stopped, but kept nowhere: the result has been returned.
    discard: bool,
}

impl Intake {
    /// The descriptor has to be non-blocking.
    pub(crate) fn new(pipe: OwnedFd, stream: Stream) -> Intake {
        Intake { pipe: pipe.into(), stream, gather: Gather::new(), discard: false }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    pub(crate) fn discard(&mut self) {
        self.discard = true;
    }

    /// Reads what is there, up to a turn's worth.
    pub(crate) fn take_in(&mut self, core: &Core, buffer: &mut [u8], shield: &mut Shield) -> Intaken {
        let mut burst = 0;
        let mut end = Intaken::More;
        for _ in 0..READS_AT_A_TURN {
            match self.pipe.read(buffer) {
                Ok(0) => {
                    end = Intaken::End;
                    break;
                }
                Ok(count) => {
                    burst += count;
                    if !self.discard {
                        let mut collector = core.stream(self.stream);
                        if collector.spills_on(count) {
                            shield.raise(); // a file size limit of the host comes as a signal
                        }
                        collector.push(&buffer[..count]);
                    }
                    if count < buffer.len() {
                        end = Intaken::Empty(Duration::ZERO);
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    end = Intaken::Empty(Duration::ZERO);
                    break;
                }
                Err(_) => {
                    end = Intaken::End;
                    break;
                }
            }
        }
        match end {
            Intaken::End => core.stream_closed(self.stream),
            _ if burst > 0 && !self.discard => core.announce(EventKind::Output),
            _ => {}
        }
        if let Intaken::Empty(nap) = &mut end {
            if burst > 0 {
                *nap = self.gather.after_burst(burst, &self.pipe);
            }
        }
        end
    }
}

/// The write end of a stdin pipe, and what is still to be written.
pub(crate) struct StdinFeed {
    pipe: File,
    bytes: Vec<u8>,
    written: usize,
}

impl StdinFeed {
    /// The descriptor has to be non-blocking.
    pub(crate) fn new(pipe: OwnedFd, bytes: Vec<u8>) -> StdinFeed {
        StdinFeed { pipe: pipe.into(), bytes, written: 0 }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Writes what the pipe takes now. Whether there is more to be written; if not, the pipe is to be closed.
    ///
    /// A command that closes its stdin or ends before it has read everything is no error.
    pub(crate) fn feed(&mut self, core: &Core, shield: &mut Shield) -> bool {
        shield.raise(); // the write may raise SIGPIPE
        while self.written < self.bytes.len() {
            match self.pipe.write(&self.bytes[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    core.stdin_written.store(self.written as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        false
    }
}
