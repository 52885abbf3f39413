//! What a confined command may do: what a caller asks ([`SandboxPolicy`]), and what is enforced (`Terms`).

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::git;
use crate::config::c_path;
use crate::error::{Error, ErrorKind, Result, Stage};

/// How much of the file system a command may change. Each is strictly wider than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing but `/dev/null` and a private directory for temporary files.
    ReadOnly,
    /// That, and the workspace with everything below it, and further writable paths.
    WorkspaceWrite,
    /// No confinement.
    DangerFullAccess,
}

impl Mode {
    /// All modes, the narrowest first.
    pub const ALL: [Mode; 3] = [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::DangerFullAccess];

    /// The modes that are strictly wider than this one, the narrowest first: what a caller could ask for when a
    /// command was denied something.
    pub fn wider(self) -> &'static [Mode] {
        match self {
            Mode::ReadOnly => &Mode::ALL[1..],
            Mode::WorkspaceWrite => &Mode::ALL[2..],
            Mode::DangerFullAccess => &[],
        }
    }

    /// Its name: `read-only`, `workspace-write` or `danger-full-access`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::ReadOnly => "read-only",
            Mode::WorkspaceWrite => "workspace-write",
            Mode::DangerFullAccess => "danger-full-access",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much of the network a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Network {
    /// No sockets but those of the file system (AF_UNIX) and of the kernel's own services (AF_NETLINK).
    None,
    /// A loopback interface of the command's own: its processes reach each other, and nobody else.
    Loopback,
    /// Whatever the host can reach.
    Full,
}

impl Network {
    /// Its name: `none`, `loopback` or `full`.
    pub fn name(self) -> &'static str {
        match self {
            Network::None => "none",
            Network::Loopback => "loopback",
            Network::Full => "full",
        }
    }
}

/// What carries a confinement out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// `bwrap`: namespaces, so that what is forbidden is not even there (Linux).
    Bubblewrap,
    /// Landlock, in the command itself and without a helper program (Linux 5.13).
    Landlock,
    /// `sandbox-exec` (macOS).
    Seatbelt,
    /// The caller's own program, see [`Runner`].
    Runner,
}

impl Backend {
    /// Its name: `bubblewrap`, `landlock`, `seatbelt` or `runner`.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Bubblewrap => "bubblewrap",
            Backend::Landlock => "landlock",
            Backend::Seatbelt => "seatbelt",
            Backend::Runner => "runner",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A caller's own sandbox: what stands before the shell in the argument list, and how its failures are told.
///
/// It is executed as `COMMAND… SHELL -c TEXT` with `DSH_SANDBOX_MODE`, `DSH_SANDBOX_WORKSPACE`, `DSH_SANDBOX_WRITABLE`
/// (a list with `:`) and `DSH_SANDBOX_NETWORK` in its environment, and trusted to enforce what they say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runner {
    /// The program (absolute, or found in PATH) and its first arguments.
    pub command: Vec<OsString>,
    /// A line on stderr that contains one of these, whatever the case, says together with a non-zero exit that the
    /// runner itself failed and the command did not run.
    pub failures: Vec<String>,
}

/// What a caller asks of the confinement. `None` and empty mean the executor's policy, and there the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxPolicy {
    /// Default: read-only.
    pub mode: Option<Mode>,
    /// The directory that `workspace-write` lets a command change. Resolved once, symbolic links followed. Default: the
    /// executor's `cwd`, whatever the request's `workdir` is.
    pub workspace: Option<PathBuf>,
    /// Further paths that `workspace-write` lets a command change. They have to exist.
    pub writable: Vec<PathBuf>,
    /// Paths whose contents a command does not get to see. Those that do not exist are passed over.
    pub hidden: Vec<PathBuf>,
    /// Default: full.
    pub network: Option<Network>,
    /// The backends to be tried, in this order. Default: all of the system, the runner first if there is one, then
    /// bubblewrap, then Landlock; on macOS `sandbox-exec`.
    pub backends: Vec<Backend>,
    /// The caller's own sandbox.
    pub runner: Option<Runner>,
    /// Whether a workspace that is a linked git worktree (its `.git` is a file) may change those parts of the main
    /// repository that a commit needs: not its hooks, and not its configuration. Default: no.
    pub git_worktree: Option<bool>,
}

impl SandboxPolicy {
    /// A policy of this mode, with everything else left to the executor.
    pub fn new(mode: Mode) -> SandboxPolicy {
        SandboxPolicy { mode: Some(mode), ..SandboxPolicy::default() }
    }

    /// This policy with what every policy has: a mode, a network, and whether it follows a linked worktree.
    pub(crate) fn with_defaults(mut self) -> SandboxPolicy {
        self.mode.get_or_insert(Mode::ReadOnly);
        self.network.get_or_insert(Network::Full);
        self.git_worktree.get_or_insert(false);
        self
    }

    /// This policy where it says something, and `base` where it does not.
    pub(crate) fn over(self, base: &SandboxPolicy) -> SandboxPolicy {
        let list = |own: Vec<PathBuf>, base: &[PathBuf]| if own.is_empty() { base.to_vec() } else { own };
        SandboxPolicy {
            mode: self.mode.or(base.mode),
            workspace: self.workspace.or_else(|| base.workspace.clone()),
            writable: list(self.writable, &base.writable),
            hidden: list(self.hidden, &base.hidden),
            network: self.network.or(base.network),
            backends: if self.backends.is_empty() { base.backends.clone() } else { self.backends },
            runner: self.runner.or_else(|| base.runner.clone()),
            git_worktree: self.git_worktree.or(base.git_worktree),
        }
    }

    /// Refuses what no command could be run under, whatever the system.
    pub(crate) fn validate(&self) -> Result<()> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, Stage::Argument, message));
        for (field, paths) in [("sandbox.writable", &self.writable), ("sandbox.hidden", &self.hidden)] {
            for (i, path) in paths.iter().enumerate() {
                c_path(&format!("{field}[{i}]"), path)?;
                if !path.is_absolute() {
                    return invalid(format!("{field}[{i}] {path:?}: is not absolute"));
                }
            }
        }
        if let Some(workspace) = &self.workspace {
            c_path("sandbox.workspace", workspace)?;
            if !workspace.is_absolute() {
                return invalid(format!("sandbox.workspace {workspace:?}: is not absolute"));
            }
        }
        if let Some(i) = (1..self.backends.len()).find(|i| self.backends[..*i].contains(&self.backends[*i])) {
            return invalid(format!("sandbox.backends[{i}] {}: is in the list already", self.backends[i]));
        }
        match &self.runner {
            Some(runner) => runner.validate(),
            None if self.backends.contains(&Backend::Runner) => {
                invalid("sandbox.backends: names the runner, but there is none in sandbox.runner".into())
            }
            None => Ok(()),
        }
    }
}

impl Runner {
    fn validate(&self) -> Result<()> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, Stage::Argument, message));
        if self.command.first().is_none_or(|program| program.is_empty()) {
            return invalid("sandbox.runner: names no program".into());
        }
        for (i, argument) in self.command.iter().enumerate() {
            c_path(&format!("sandbox.runner[{i}]"), Path::new(argument))?;
        }
        if self.failures.is_empty() {
            let message =
                "sandbox.runner_failures: is empty; without it a broken runner would pass for a failing command";
            return invalid(message.into());
        }
        match self.failures.iter().position(|failure| failure.trim().is_empty() || failure.contains(['\n', '\r'])) {
            Some(i) => invalid(format!(
                "sandbox.runner_failures[{i}] {:?}: has to be one line that is not blank",
                self.failures[i]
            )),
            None => Ok(()),
        }
    }
}

/// A policy with every term explicit and every path resolved: what a backend is to enforce. Never of full access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) mode: Mode,
    pub(crate) network: Network,
    /// The workspace, without symbolic links.
    pub(crate) workspace: PathBuf,
    /// What may be changed, with everything below: no symbolic links, none twice, none inside another. Empty when nothing may.
    pub(crate) writable: Vec<PathBuf>,
    /// What must not be read, without symbolic links. All of it exists.
    pub(crate) hidden: Vec<PathBuf>,
    /// The directory in which the command starts, without symbolic links, when it could be found out.
    pub(crate) workdir: Option<PathBuf>,
    /// The paths as the caller wrote them, which may lead through symbolic links.
    pub(crate) as_given: Vec<PathBuf>,
    pub(crate) backends: Vec<Backend>,
    pub(crate) runner: Option<Runner>,
}

impl Terms {
    /// `None` for full access.
    pub(crate) fn resolve(policy: SandboxPolicy, cwd: &Path, workdir: &Path) -> Result<Option<Terms>> {
        policy.validate()?;
        let policy = policy.with_defaults();
        let mode = policy.mode.unwrap_or(Mode::ReadOnly);
        if mode == Mode::DangerFullAccess {
            return Ok(None);
        }
        let given = policy.workspace.unwrap_or_else(|| cwd.to_owned());
        let workspace = real("sandbox.workspace", &given)?;
        if !workspace.is_dir() {
            let message = format!("sandbox.workspace {given:?}: is not a directory");
            return Err(Error::new(ErrorKind::Invalid, Stage::Argument, message));
        }
        let mut writable = Vec::new();
        if mode == Mode::WorkspaceWrite {
            writable.push(workspace.clone());
            for (i, path) in policy.writable.iter().enumerate() {
                writable.push(real(&format!("sandbox.writable[{i}]"), path)?);
            }
            if policy.git_worktree.unwrap_or(false) {
                writable.extend(git::writable_parts(&workspace));
            }
        }
        let mut as_given = vec![given, workdir.to_owned()];
        as_given.extend(policy.writable);
        let default = [policy.runner.is_some().then_some(Backend::Runner)].into_iter().flatten();
        let backends = match policy.backends.is_empty() {
            true => default.chain(Backend::OF_THE_SYSTEM.iter().copied()).collect(),
            false => policy.backends,
        };
        Ok(Some(Terms {
            mode,
            network: policy.network.unwrap_or(Network::Full),
            workspace,
            writable: outermost(writable),
            hidden: policy.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect(),
            workdir: workdir.canonicalize().ok(),
            as_given,
            backends,
            runner: policy.runner,
        }))
    }

    /// Whether a file of this name, which is absolute and has no symbolic links but perhaps in its last part, may be
    /// changed under the policy.
    pub(crate) fn allows_change(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }
}

impl Backend {
    /// Those that the system may have, the strongest first.
    pub(crate) const OF_THE_SYSTEM: &'static [Backend] =
        if cfg!(target_os = "macos") { &[Backend::Seatbelt] } else { &[Backend::Bubblewrap, Backend::Landlock] };
}

/// The path without symbolic links. It is resolved once, so that a link that is changed later moves nothing.
fn real(field: &str, path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(libc::ENOENT);
        Error::os(ErrorKind::Invalid, Stage::Argument, errno, format!("{field} {path:?}: can't be resolved"))
    })
}

/// Without those that are inside another.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if kept.last().is_none_or(|last| !path.starts_with(last)) {
            kept.push(path);
        }
    }
    kept
}
