//! What is known of the confinement of a command.

use std::path::PathBuf;

use super::policy::{Backend, Mode, Network};

/// How much of the policy the backend enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Enforcement {
    /// All of it.
    Full,
    /// Not what [`SandboxFacts::missing`] names.
    Partial,
}

/// Whether the confinement has kept the command from something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Denied {
    /// There is no telling, or it did not matter to the command.
    #[default]
    Unknown,
    /// Nothing shows that it has.
    No,
    /// It has, see [`SandboxFacts::evidence`].
    Yes,
}

/// What shows that the command was kept from something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The path it was about, absolute.
    pub path: PathBuf,
    /// The rule that forbids it, in a few words.
    pub rule: String,
}

/// What is known of the confinement of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxFacts {
    /// The mode it ran under.
    pub mode: Mode,
    /// The network it could use.
    pub network: Network,
    /// What confined it; `None` under full access.
    pub backend: Option<Backend>,
    /// How much is enforced; `None` under full access.
    pub enforcement: Option<Enforcement>,
    /// What the policy says and the backend can't enforce here, a name each.
    pub missing: Vec<&'static str>,
    /// The workspace without symbolic links; `None` under full access.
    pub workspace: Option<PathBuf>,
    /// Whether it was kept from something.
    pub denied: Denied,
    /// What shows that; with `Unknown`, what the command tried and may have done without.
    pub evidence: Option<Evidence>,
    /// Why the backend failed to set itself up, in which case the command did not run. Of a process in the background
    /// only: a run fails with [`ErrorKind::SandboxUnavailable`](crate::ErrorKind::SandboxUnavailable).
    pub runner_failed: Option<String>,
}

impl SandboxFacts {
    pub(crate) fn full_access() -> SandboxFacts {
        SandboxFacts {
            mode: Mode::DangerFullAccess,
            network: Network::Full,
            backend: None,
            enforcement: None,
            missing: Vec::new(),
            workspace: None,
            denied: Denied::No,
            evidence: None,
            runner_failed: None,
        }
    }
}
