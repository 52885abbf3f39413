//! Starting a program as a session of its own, with clean signals and no descriptor but those it is given.
//!
//! Everything that can fail on memory or input is prepared before ([`Plan`]); what is left for the child is a list of
//! system calls (`child`). There are three ways to get the child; [`SpawnPath`] says which one is in use.

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod linux;
mod plan;
mod portable;
#[cfg(target_os = "linux")]
mod restrain;

use std::os::fd::OwnedFd;

use crate::error::Stage;
pub(crate) use plan::{Announce, Plan, Program};
#[cfg(target_os = "linux")]
pub(crate) use plan::{Listening, Restraint};

/// How children are created. Visible in the statistics, so that a silent fallback is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnPath {
    /// `clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD)`: the cost does not grow with the host's memory.
    Vfork,
    /// Plain `fork`, where memory is not really shared by `CLONE_VM` (emulators) or pidfds are not there.
    Fork,
    /// The standard library's spawn, on systems other than Linux.
    Portable,
}

/// A child that executes its program.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: i32,
    /// `None` where the system has no pidfds.
    pub(crate) pidfd: Option<OwnedFd>,
}

/// The step that failed, and why. Nothing of the child is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
}

impl Failure {
    fn from_io(stage: Stage, error: &std::io::Error) -> Failure {
        Failure { stage, errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// The way children are created here. Found out once per process, by really creating one.
pub(crate) fn path() -> SpawnPath {
    #[cfg(target_os = "linux")]
    {
        static PATH: std::sync::OnceLock<SpawnPath> = std::sync::OnceLock::new();
        *PATH.get_or_init(|| if linux::shares_memory() { SpawnPath::Vfork } else { SpawnPath::Fork })
    }
    #[cfg(not(target_os = "linux"))]
    SpawnPath::Portable
}

/// Starts the planned program. Returns once it has been executed, or once it is certain that it was not.
pub(crate) fn spawn(plan: &Plan<'_>) -> Result<Child, Failure> {
    spawn_by(path(), plan)
}

fn spawn_by(path: SpawnPath, plan: &Plan<'_>) -> Result<Child, Failure> {
    match path {
        #[cfg(target_os = "linux")]
        SpawnPath::Vfork => linux::vfork(plan),
        #[cfg(target_os = "linux")]
        SpawnPath::Fork => linux::fork(plan),
        _ => portable::spawn(plan),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
