//! A pipe that stands in for the last bytes of a stream: what will never be read is thrown away in the kernel.
//!
//! Of an endless stream only the last bytes matter, and copying the others out of the pipe is most of what they cost. So
//! they are moved to /dev/null inside the kernel, and the newest stay in the pipe until somebody wants to see them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Weak};

use nix::fcntl::{splice, SpliceFFlags};

use crate::fd;

/// The pipe of one stream, while its newest bytes are kept in it.
#[derive(Debug)]
pub(crate) struct Reservoir {
    /// The read end. Its owner may close it at any time, whoever holds the stream.
    pipe: Weak<File>,
    sink: File,
    /// How many of the newest bytes stay.
    keep: usize,
    /// How many there were after the last look.
    left: usize,
}

/// What a look at the pipe came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skimmed {
    /// Bytes that have come since the last look.
    pub(crate) arrived: usize,
    /// Bytes thrown away. They came before all that is in the pipe now, and after all that was read from it.
    pub(crate) skipped: usize,
}

impl Reservoir {
    /// Fails where there is no /dev/null, or no descriptor for it.
    pub(crate) fn new(pipe: &Arc<File>, keep: usize) -> io::Result<Reservoir> {
        let sink = fd::above_stdio(File::options().write(true).open("/dev/null")?.into())?.into();
        Ok(Reservoir { pipe: Arc::downgrade(pipe), sink, keep, left: 0 })
    }

    /// Throws away what is in the pipe, but for the newest bytes.
    pub(crate) fn skim(&mut self) -> io::Result<Skimmed> {
        let pipe = self.pipe.upgrade().ok_or(io::ErrorKind::NotFound)?;
        let waiting = waiting_in(&pipe)?;
        let mut skimmed = Skimmed { arrived: waiting.saturating_sub(self.left), skipped: 0 };
        while waiting - skimmed.skipped > self.keep {
            let excess = waiting - skimmed.skipped - self.keep;
            match splice(&pipe, None, &self.sink, None, excess, SpliceFFlags::SPLICE_F_NONBLOCK) {
                Ok(0) => break,
                Ok(count) => skimmed.skipped += count,
                Err(nix::errno::Errno::EINTR) => {}
                Err(errno) if skimmed.skipped == 0 => return Err(errno.into()),
                Err(_) => break,
            }
        }
        self.left = waiting - skimmed.skipped;
        Ok(skimmed)
    }

    /// Takes out what is in the pipe now. What comes meanwhile is left, so that this ends however fast it comes.
    pub(crate) fn empty(&mut self, mut take: impl FnMut(&[u8])) {
        self.left = 0;
        let Some(pipe) = self.pipe.upgrade() else { return };
        let Ok(mut waiting) = waiting_in(&pipe) else { return };
        let mut buffer = [0; 8 << 10];
        while waiting > 0 {
            let part = waiting.min(buffer.len());
            match (&*pipe).read(&mut buffer[..part]) {
                Ok(0) => return,
                Ok(count) => {
                    take(&buffer[..count]);
                    waiting -= count.min(waiting);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

/// Bytes that are in a pipe.
fn waiting_in(pipe: impl AsFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: the request stores an int.
    match unsafe { libc::ioctl(pipe.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut count) } {
        0 => Ok(usize::try_from(count).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pipe() -> (Arc<File>, File) {
        let (read, write) = fd::pipe().unwrap();
        fd::set_nonblocking(&read).unwrap();
        (Arc::new(read.into()), write.into())
    }

    fn emptied(reservoir: &mut Reservoir) -> Vec<u8> {
        let mut bytes = Vec::new();
        reservoir.empty(|part| bytes.extend_from_slice(part));
        bytes
    }

    #[test]
    fn the_newest_bytes_stay_and_the_others_are_counted() {
        let (read, mut write) = pipe();
        let mut reservoir = Reservoir::new(&read, 100).unwrap();
        write.write_all(&[1; 5000]).unwrap();
        write.write_all(&[2; 100]).unwrap();
        assert_eq!(reservoir.skim().unwrap(), Skimmed { arrived: 5100, skipped: 5000 });
        assert_eq!(reservoir.skim().unwrap(), Skimmed { arrived: 0, skipped: 0 });
        write.write_all(&[3; 60]).unwrap();
        assert_eq!(reservoir.skim().unwrap(), Skimmed { arrived: 60, skipped: 60 });
        assert_eq!(emptied(&mut reservoir), [[2; 40].as_slice(), &[3; 60]].concat());
    }

    #[test]
    fn what_was_taken_out_does_not_count_as_arrived_again() {
        let (read, mut write) = pipe();
        let mut reservoir = Reservoir::new(&read, 100).unwrap();
        write.write_all(&[1; 80]).unwrap();
        assert_eq!(reservoir.skim().unwrap().arrived, 80);
        assert_eq!(emptied(&mut reservoir).len(), 80);
        write.write_all(&[2; 50]).unwrap();
        assert_eq!(reservoir.skim().unwrap(), Skimmed { arrived: 50, skipped: 0 });
    }

    #[test]
    fn a_pipe_that_its_owner_has_closed_is_empty() {
        let (read, mut write) = pipe();
        let mut reservoir = Reservoir::new(&read, 100).unwrap();
        write.write_all(b"lost").unwrap();
        drop(read);
        assert!(reservoir.skim().is_err());
        assert_eq!(emptied(&mut reservoir), b"");
        assert!(write.write_all(b"x").is_err(), "the stream must not keep the read end open");
    }
}
