//! Confinement: what a command may change, read and reach, and what carries that out.

#[cfg(target_os = "linux")]
mod bubblewrap;
mod confinement;
mod doctor;
mod facts;
mod git;
#[cfg(target_os = "linux")]
mod landlock;
mod policy;
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
mod select;
mod setup;
mod verdict;
#[cfg(target_os = "linux")]
mod warden;
#[cfg(target_os = "linux")]
pub(crate) mod watch;
#[cfg(target_os = "linux")]
pub(crate) mod witness;

pub(crate) use confinement::Confinement;
pub use doctor::{sandbox_doctor, BackendReport, Doctor};
pub use facts::{Denied, Enforcement, Evidence, SandboxFacts};
pub(crate) use policy::Terms;
pub use policy::{Backend, Mode, Network, Runner, SandboxPolicy};
pub(crate) use select::Backends;
pub(crate) use setup::{Means, Setup};

/// The version of the kernel's Landlock; 0 when it has none.
pub(crate) fn landlock_version() -> u32 {
    #[cfg(target_os = "linux")]
    return landlock::version().unwrap_or(0);
    #[cfg(not(target_os = "linux"))]
    0
}

/// Whether bubblewrap is in PATH.
pub(crate) fn has_bubblewrap() -> bool {
    #[cfg(target_os = "linux")]
    return bubblewrap::find().is_some();
    #[cfg(not(target_os = "linux"))]
    false
}
