//! The pipes of a process, on the host's side: output taken in, stdin fed, neither ever waited for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::gather::Gather;
use crate::event::EventKind;
use crate::output::{Moved, Reservoir};
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
    /// Only the last bytes of the stream matter: the others are thrown away unread.
    skimming: bool,
    /// What comes is read, so that its writer is not stopped, but kept nowhere: the result has been returned.
    discard: bool,
}

impl Intake {
    /// The descriptor has to be non-blocking.
    pub(crate) fn new(pipe: OwnedFd, stream: Stream) -> Intake {
        Intake { pipe: pipe.into(), stream, gather: Gather::new(), skimming: false, discard: false }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// The number by which others who hold the pipe can be told.
    pub(crate) fn inode(&self) -> Option<u64> {
        Some(nix::sys::stat::fstat(&self.pipe).ok()?.st_ino as u64)
    }

    pub(crate) fn discard(&mut self) {
        (self.discard, self.skimming) = (true, false);
    }

    /// Takes what is there, up to a turn's worth.
    pub(crate) fn take_in(&mut self, core: &Core, buffer: &mut [u8], shield: &mut Shield) -> Intaken {
        if self.skimming {
            if let Some(end) = self.skim(core) {
                return end;
            }
            self.skimming = false;
        }
        let end = self.read(core, buffer, shield);
        if self.gather.is_flooded() && !self.discard {
            self.skimming = self.begin_skimming(core);
        }
        end
    }

    /// Has the newest bytes held in the kernel, if the rest of the stream will be nowhere else.
    fn begin_skimming(&mut self, core: &Core) -> bool {
        let mut collector = core.stream(self.stream);
        let reservoir = collector.keeps_only_tail().and_then(|keep| Reservoir::new(keep).ok());
        let begins = reservoir.map(|reservoir| collector.keep_in(reservoir)).is_some();
        if !begins {
            self.gather.calm_down(); // not tried again at once
        }
        begins
    }

    /// Takes what is there of a stream that is skimmed; `None` when it has to be read.
    fn skim(&mut self, core: &Core) -> Option<Intaken> {
        let moved = core.streams[self.stream as usize].lock().skim(&self.pipe);
        Some(match moved {
            Moved::Some { arrived, .. } => {
                core.announce(EventKind::Output);
                Intaken::Empty(self.gather.after_burst(arrived, &self.pipe))
            }
            Moved::None => Intaken::Empty(Duration::ZERO),
            Moved::End => {
                core.stream_closed(self.stream);
                Intaken::End
            }
            Moved::Full => {
                self.gather.calm_down();
                return None;
            }
        })
    }

    fn read(&mut self, core: &Core, buffer: &mut [u8], shield: &mut Shield) -> Intaken {
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
        if burst > 0 {
            let pause = self.gather.after_burst(burst, &self.pipe);
            if let Intaken::Empty(nap) = &mut end {
                *nap = pause;
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::config::Keep;
    use crate::engine::Alarm;
    use crate::fd::{self, Waker};
    use crate::output::{Collector, Limits, SpillStore};
    use crate::process::Birth;

    /// A process that nobody drives, with its streams.
    fn core(spill: u64) -> Arc<Core> {
        let store = Arc::new(SpillStore::new(std::env::temp_dir(), u64::MAX));
        let limits = Limits { memory: 1_000, spill, keep: Keep::Tail };
        Core::new(Birth {
            id: 1,
            tag: 0,
            pid: 0,
            started: Instant::now(),
            grace: Duration::ZERO,
            merged: false,
            streams: ["stdout", "stderr"].map(|label| Collector::new(limits, store.clone(), label)),
            timeout_ms: 0,
            scrubbed: Arc::new([]),
            workdir: "/".into(),
            sandbox: None,
            alarm: Alarm::Caller(Arc::new(Waker::new().unwrap())),
            events: None,
        })
    }

    /// Lets `write` fill a pipe from a thread of its own and takes in what comes. Whether the stream was ever skimmed.
    fn take_all(core: &Core, write: impl FnOnce(File) + Send + 'static) -> bool {
        let (read, end) = fd::pipe().unwrap();
        fd::set_nonblocking(&read).unwrap();
        let writer = std::thread::spawn(move || write(end.into()));
        let mut intake = Intake::new(read, Stream::Stdout);
        let (mut buffer, mut shield) = (vec![0; 64 << 10], Shield::for_own_thread());
        let mut skimmed = false;
        loop {
            match intake.take_in(core, &mut buffer, &mut shield) {
                Intaken::End => break,
                Intaken::Empty(nap) => std::thread::sleep(nap),
                Intaken::More => {}
            }
            skimmed |= intake.skimming;
        }
        writer.join().unwrap();
        skimmed
    }

    fn numbers(count: u32) -> Vec<u8> {
        (0..count).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn a_flood_of_which_only_the_tail_is_kept_is_skimmed() {
        let core = core(1);
        let bytes = numbers(16 << 20);
        let expected = (bytes.len() as u64, bytes[bytes.len() - 1_000..].to_vec());
        assert!(take_all(&core, move |mut pipe| pipe.write_all(&bytes).unwrap()));
        let capture = core.stream(Stream::Stdout).capture();
        assert_eq!((capture.total, capture.bytes), expected);
    }

    #[test]
    fn a_flood_that_is_spilled_is_read() {
        let core = core(u64::MAX);
        let bytes = numbers(4 << 20);
        assert!(!take_all(&core, move |mut pipe| pipe.write_all(&bytes).unwrap()));
    }

    #[test]
    fn a_pipe_full_of_nearly_empty_pages_does_not_stop_its_writer() {
        use nix::fcntl::{vmsplice, SpliceFFlags};
        let core = core(1);
        assert!(take_all(&core, |mut pipe| {
            pipe.write_all(&numbers(8 << 20)).unwrap();
            // Each byte takes a page of the pipe of its own: the pipe is full long before it holds much.
            for _ in 0..2_000 {
                let part = [std::io::IoSlice::new(b"x")];
                assert_eq!(vmsplice(&pipe, &part, SpliceFFlags::empty()).unwrap(), 1);
            }
        }));
        let capture = core.stream(Stream::Stdout).capture();
        assert_eq!((capture.total, capture.bytes), ((32 << 20) + 2_000, vec![b'x'; 1_000]));
    }
}
