//! What can go wrong: one error type, with a kind to decide by and a message to show.

use std::fmt;

/// What kind of failure an [`Error`] is. Hosts decide by this, people read the message.
///
/// Every kind has a fixed number in the C ABI (`DSH_E_…`, see `capi/status.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A required pointer was NULL.
    Null,
    /// A value that can't be used; the message names the field and the value.
    Invalid,
    /// A struct from a newer header asks for something this library does not know.
    Struct,
    /// Unknown flag bits are set.
    Flags,
    /// The command holds a NUL byte, which no command line can carry.
    CommandNul,
    /// The name of an environment variable can't be one.
    EnvName,
    /// The name of an environment variable is in the reserved `DSH_` namespace.
    EnvReserved,
    /// The environment is larger than the kernel takes; the message names the largest variables.
    EnvTooBig,
    /// The working directory does not exist.
    WorkdirMissing,
    /// The working directory is something else than a directory.
    WorkdirNotDir,
    /// The working directory may not be entered.
    WorkdirDenied,
    /// The working directory can't be used for another reason (a loop of links, a name too long).
    WorkdirUnusable,
    /// The shell is not there or can't be executed.
    ShellMissing,
    /// The cancel token was cancelled before the command was started.
    Cancelled,
    /// The executor has been shut down.
    Shutdown,
    /// The system refused to start the command; the stage and errno say where and why.
    Spawn,
    /// No confinement backend can be used, so the command was not run.
    SandboxUnavailable,
    /// The time given to a wait has passed; what was waited for goes on.
    TimedOut,
    /// A system call that the library needs failed; the stage and errno say which and why.
    System,
    /// Memory was refused.
    OutOfMemory,
    /// The call was made in a forked child of the process that made the handle.
    Forked,
    /// The library caught a panic of its own; the handle is no longer usable.
    Panicked,
}

/// Where an [`Error`] happened: the argument check, or the step that the system refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Reading the caller's arguments.
    Argument,
    /// Filling in defaults and caps.
    Resolve,
    /// Making the environment of the command.
    Environment,
    /// Entering the working directory (`chdir`).
    Workdir,
    /// Finding the shell.
    Shell,
    /// Making pipes and other descriptors.
    Pipe,
    /// Writing the text of a long command where the shell can read it.
    Script,
    /// Creating the child (`clone`, `fork` or `posix_spawn`).
    Clone,
    /// Making the child a session of its own (`setsid`).
    Session,
    /// Resetting signal dispositions and mask in the child.
    Signals,
    /// Putting the descriptors in place in the child.
    Descriptors,
    /// Executing the shell (`execve`).
    Exec,
    /// Starting or reaching the guard.
    Guard,
    /// Starting the threads of an executor.
    Threads,
    /// Waiting for events (`poll`, `epoll`).
    Poll,
    /// Waiting for a process or a result.
    Wait,
    /// Writing a spill file.
    Spill,
    /// Setting up confinement.
    Sandbox,
}

impl Stage {
    /// The name of the stage, a lower-case word that stays the same between versions.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Argument => "argument",
            Stage::Resolve => "resolve",
            Stage::Environment => "environment",
            Stage::Workdir => "workdir",
            Stage::Shell => "shell",
            Stage::Pipe => "pipe",
            Stage::Script => "script",
            Stage::Clone => "clone",
            Stage::Session => "session",
            Stage::Signals => "signals",
            Stage::Descriptors => "descriptors",
            Stage::Exec => "exec",
            Stage::Guard => "guard",
            Stage::Threads => "threads",
            Stage::Poll => "poll",
            Stage::Wait => "wait",
            Stage::Spill => "spill",
            Stage::Sandbox => "sandbox",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure of the library or of the system under it: never a command's own failure, which is a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    stage: Stage,
    errno: Option<i32>,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, stage: Stage, message: impl Into<String>) -> Self {
        Error { kind, stage, errno: None, message: message.into() }
    }

    /// A failure with the system's reason; the reason's text is added to the message.
    pub(crate) fn os(kind: ErrorKind, stage: Stage, errno: i32, message: impl fmt::Display) -> Self {
        let reason = std::io::Error::from_raw_os_error(errno);
        Error { kind, stage, errno: Some(errno), message: format!("{message}: {reason}") }
    }

    /// A system call that the library needs failed.
    pub(crate) fn system(stage: Stage, errno: impl Into<i32>, message: impl fmt::Display) -> Self {
        Error::os(ErrorKind::System, stage, errno.into(), message)
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where it happened.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The system's error number, when a system call failed.
    pub fn errno(&self) -> Option<i32> {
        self.errno
    }

    /// The message, which names the field and the value, or the step and the reason.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// What a fallible call of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;
