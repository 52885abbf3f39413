//! Programs of our own that the library carries with it, as files that can be executed.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};

use crate::fd;

/// The program in a file that can be executed: in memory, or without a name in the directory for temporary files where
/// the system does not execute from memory. The host's limit on file sizes holds for it too, and comes as a signal.
pub(crate) fn executable(name: &CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    const MFD_EXEC: u32 = 0x10; // says that it is meant to be executed; kernels before 6.3 do not know it
    for flags in [libc::MFD_CLOEXEC | MFD_EXEC, libc::MFD_CLOEXEC] {
        // SAFETY: the name ends with NUL.
        let raw = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if raw >= 0 {
            // SAFETY: a new descriptor that nobody else owns.
            let mut file = File::from(fd::above_stdio(unsafe { OwnedFd::from_raw_fd(raw) })?);
            file.write_all(bytes)?;
            return Ok(file.into());
        }
        let error = io::Error::last_os_error();
        if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) {
            return Err(error); // a file on disk would need the same
        }
    }
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(bytes)?;
    nix::sys::stat::fchmod(file.as_file(), nix::sys::stat::Mode::S_IRWXU)?;
    // A file that is open for writing can't be executed.
    let read = File::open(file.path())?;
    drop(file);
    fd::above_stdio(read.into())
}
