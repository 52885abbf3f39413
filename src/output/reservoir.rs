//! A pipe of our own that holds the last bytes of a stream: what nobody will read never leaves the kernel.
//!
//! Of an endless stream only the last bytes matter, and copying the others out is most of what they cost. So pages are
//! moved from the command's pipe into this one, and the oldest from here to /dev/null. Moving is quicker than throwing
//! away, so the command's pipe is locked for less time than by a splice to /dev/null, and it is empty afterwards, so that
//! it can be waited for like any other.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{fcntl, splice, FcntlArg, SpliceFFlags};

use crate::fd;

/// What the pipe is to hold, in bytes: a page of the source takes the place of a page here, however little is in it.
const SIZE: i32 = 1 << 20;
/// How often pages are moved in a row: the command may fill its pipe as fast as it is emptied.
const MOVES: usize = 4;

/// Holds the newest bytes of one stream.
#[derive(Debug)]
pub(crate) struct Reservoir {
    read: File,
    write: OwnedFd,
    sink: OwnedFd,
    held: usize,
    /// How many of the newest bytes stay.
    keep: usize,
}

/// What was moved out of a command's pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// So many bytes have come, and so many older ones were thrown away: all of them newer than what was taken out
    /// before.
    Some { arrived: usize, skipped: usize },
    /// There was nothing.
    None,
    /// No writer is left.
    End,
    /// The pages here hold too little each: the stream has to be read.
    Full,
}

impl Reservoir {
    /// Fails where there is no descriptor, or no room for pipes as big as that (an unprivileged user has some 64).
    pub(crate) fn new(keep: usize) -> io::Result<Reservoir> {
        let (read, write) = fd::pipe()?;
        if fcntl(&read, FcntlArg::F_SETPIPE_SZ(SIZE))? < SIZE || keep > SIZE as usize / 4 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        fd::set_nonblocking(&read)?;
        let sink = fd::above_stdio(File::options().write(true).open("/dev/null")?.into())?;
        Ok(Reservoir { read: read.into(), write, sink, held: 0, keep })
    }

    /// Moves what is in a command's pipe here, and what is too much to /dev/null.
    pub(crate) fn fill(&mut self, pipe: impl AsFd) -> Moved {
        let (mut arrived, mut skipped) = (0, 0);
        for _ in 0..MOVES {
            match move_pages(&pipe, &self.write, SIZE as usize) {
                Ok(0) if arrived == 0 => return Moved::End,
                Ok(count) if count > 0 => {
                    arrived += count;
                    self.held += count;
                    skipped += self.drop_excess();
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) if arrived == 0 && is_empty(&pipe) => return Moved::None,
                Err(_) if arrived == 0 => return Moved::Full,
                // The end, or an empty pipe: that is seen with the next look.
                _ => break,
            }
        }
        Moved::Some { arrived, skipped }
    }

    fn drop_excess(&mut self) -> usize {
        let mut dropped = 0;
        while self.held > self.keep {
            match move_pages(&self.read, &self.sink, self.held - self.keep) {
                Ok(count) if count > 0 => {
                    self.held -= count;
                    dropped += count;
                }
                Err(Errno::EINTR) => {}
                _ => break,
            }
        }
        dropped
    }

    /// Takes out what is held.
    pub(crate) fn empty(&mut self, mut take: impl FnMut(&[u8])) {
        let mut buffer = [0; 8 << 10];
        while self.held > 0 {
            match self.read.read(&mut buffer) {
                Ok(count) if count > 0 => {
                    take(&buffer[..count]);
                    self.held -= count.min(self.held);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => self.held = 0,
            }
        }
    }
}

fn move_pages(from: impl AsFd, to: impl AsFd, most: usize) -> nix::Result<usize> {
    splice(from, None, to, None, most, SpliceFFlags::SPLICE_F_NONBLOCK | SpliceFFlags::SPLICE_F_MOVE)
}

fn is_empty(pipe: impl AsFd) -> bool {
    let mut count: libc::c_int = 0;
    // SAFETY: the request stores an int.
    let result = unsafe { libc::ioctl(pipe.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut count) };
    result == 0 && count == 0
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pipe() -> (OwnedFd, File) {
        let (read, write) = fd::pipe().unwrap();
        fd::set_nonblocking(&read).unwrap();
        (read, write.into())
    }

    fn emptied(reservoir: &mut Reservoir) -> Vec<u8> {
        let mut bytes = Vec::new();
        reservoir.empty(|part| bytes.extend_from_slice(part));
        bytes
    }

    #[test]
    fn the_newest_bytes_stay_and_the_others_are_counted() {
        let (read, mut write) = pipe();
        let mut reservoir = Reservoir::new(100).unwrap();
        assert_eq!(reservoir.fill(&read), Moved::None);
        write.write_all(&[1; 5000]).unwrap();
        write.write_all(&[2; 100]).unwrap();
        assert_eq!(reservoir.fill(&read), Moved::Some { arrived: 5100, skipped: 5000 });
        assert_eq!(reservoir.fill(&read), Moved::None);
        write.write_all(&[3; 60]).unwrap();
        assert_eq!(reservoir.fill(&read), Moved::Some { arrived: 60, skipped: 60 });
        assert_eq!(emptied(&mut reservoir), [[2; 40].as_slice(), &[3; 60]].concat());
        drop(write);
        assert_eq!(reservoir.fill(&read), Moved::End);
    }

    #[test]
    fn what_was_taken_out_is_not_given_again() {
        let (read, mut write) = pipe();
        let mut reservoir = Reservoir::new(100).unwrap();
        write.write_all(&[1; 80]).unwrap();
        assert_eq!(reservoir.fill(&read), Moved::Some { arrived: 80, skipped: 0 });
        assert_eq!(emptied(&mut reservoir), [1; 80]);
        assert_eq!(emptied(&mut reservoir), b"");
        write.write_all(&[2; 50]).unwrap();
        assert_eq!(reservoir.fill(&read), Moved::Some { arrived: 50, skipped: 0 });
        assert_eq!(emptied(&mut reservoir), [2; 50]);
    }

    #[test]
    fn pages_that_hold_next_to_nothing_fill_it_up() {
        let (read, mut write) = pipe();
        let mut reservoir = Reservoir::new(100_000).unwrap();
        let mut filled = 0;
        // Moved one by one, each byte has a page of its own.
        loop {
            write.write_all(b"x").unwrap();
            match reservoir.fill(&read) {
                Moved::Some { arrived: 1, skipped: 0 } => filled += 1,
                last => break assert_eq!(last, Moved::Full),
            }
        }
        assert_eq!(emptied(&mut reservoir), vec![b'x'; filled]);
        assert_eq!(reservoir.fill(&read), Moved::Some { arrived: 1, skipped: 0 }, "there is room again");
    }

    #[test]
    fn more_than_fits_well_is_not_held() {
        assert!(Reservoir::new(SIZE as usize / 2).is_err());
    }
}
