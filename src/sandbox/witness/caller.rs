//! A task that waits in a system call, looked at from outside.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use libc::iovec;

/// The longest path that the kernel takes, with its NUL.
const LONGEST: usize = 4096;
/// Memory is readable or not by pages, which are of this size or a multiple.
const PAGE: usize = 4096;

/// The caller's memory or descriptors can't be looked at.
#[derive(Debug)]
pub(super) struct Unreadable;

pub(super) struct Caller {
    pid: i32,
}

impl Caller {
    pub(super) fn new(pid: i32) -> Caller {
        Caller { pid }
    }

    /// The path at an address of the caller, made absolute from what it is relative to. `None` when there is no path, or it
    /// starts at something that has none. `beneath`: an absolute path starts at the directory as well.
    pub(super) fn path(&self, directory: i32, address: u64, beneath: bool) -> Result<Option<PathBuf>, Unreadable> {
        if address == 0 {
            return Ok(None);
        }
        let mut text = self.string(address)?;
        if text.is_empty() {
            return Ok(None);
        }
        let absolute = text[0] == b'/' && !beneath;
        let start = match directory {
            _ if absolute => "root".into(),
            libc::AT_FDCWD => "cwd".into(),
            number => format!("fd/{number}"),
        };
        let start = match fs::read_link(format!("/proc/{}/{start}", self.pid)) {
            Ok(start) => start,
            // It is no descriptor of the caller, which the call will tell it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(Unreadable),
        };
        let named = text.iter().position(|byte| *byte != b'/').unwrap_or(text.len());
        text.drain(..named);
        Ok(start.is_absolute().then(|| join(start, &text)))
    }

    /// A string of the caller, as long as a path may be.
    fn string(&self, address: u64) -> Result<Vec<u8>, Unreadable> {
        // Mostly it ends before its page does, and a following page need not be there.
        let first = PAGE - address as usize % PAGE;
        let mut text = self.read(address, first)?;
        if !text.contains(&0) && first < LONGEST {
            text.extend(self.read(address + first as u64, LONGEST - first)?);
        }
        // Without an end it is no path, and the call fails.
        text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(0));
        Ok(text)
    }

    pub(super) fn read(&self, address: u64, length: usize) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = vec![0u8; length];
        let local = iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
        let remote = iovec { iov_base: address as *mut libc::c_void, iov_len: length };
        // SAFETY: the kernel writes at most `length` bytes to `bytes`; the other address is not of this process.
        let done = unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) };
        match done {
            0.. => bytes.truncate(done as usize),
            // Nothing is there: the call will fail, and so change nothing.
            _ if std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => bytes.clear(),
            _ => return Err(Unreadable),
        }
        Ok(bytes)
    }
}

/// An empty rest is the directory itself.
fn join(directory: PathBuf, rest: &[u8]) -> PathBuf {
    if rest.is_empty() {
        return directory;
    }
    let mut joined = directory.into_os_string().into_vec();
    joined.push(b'/');
    joined.extend_from_slice(rest);
    Path::new(OsStr::from_bytes(&joined)).to_owned()
}
