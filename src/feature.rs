//! What this build on this system can.

use crate::sandbox;
use crate::spawn::{self, SpawnPath};
use crate::tree::guard;

/// Something that not every system can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// Processes can be held by descriptor.
    Pidfd,
    /// Children are created without copying the host's page tables.
    Vfork,
    /// The guard, which ends commands when the host dies, is built in.
    Guard,
    /// The kernel has Landlock, of this version.
    Landlock,
    /// `bwrap` is in PATH.
    Bubblewrap,
}

impl Feature {
    /// 0 when it is not there; otherwise 1, or the version of the system's interface where it has versions.
    pub fn level(self) -> u32 {
        match self {
            Feature::Pidfd => has_pidfds().into(),
            Feature::Vfork => (spawn::path() == SpawnPath::Vfork).into(),
            Feature::Guard => guard::AVAILABLE.into(),
            Feature::Landlock => sandbox::landlock_version(),
            Feature::Bubblewrap => sandbox::has_bubblewrap().into(),
        }
    }
}

#[cfg(target_os = "linux")]
fn has_pidfds() -> bool {
    use std::os::fd::{FromRawFd, OwnedFd, RawFd};
    // SAFETY: takes a pid and flags.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    if raw < 0 {
        return false;
    }
    // SAFETY: a new descriptor that nobody else owns.
    drop(unsafe { OwnedFd::from_raw_fd(raw as RawFd) });
    true
}

#[cfg(not(target_os = "linux"))]
fn has_pidfds() -> bool {
    false
}
