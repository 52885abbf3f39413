//! From a spec to a running command: pipes, marks and the spawn, with every failure named.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use crate::config::c_path;
use crate::engine::{Alarm, Intake, Pipes, StdinFeed, Tending, Terms};
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::event::Events;
use crate::fd;
use crate::mark;
use crate::output::{Collector, Limits, SpillStore};
use crate::process::{Birth, Core, Stream};
use crate::request::{workdir_kind, Sandbox, Spec};
use crate::sandbox::{Backends, Means, SandboxFacts, Setup};
use crate::spawn::{self, Failure, Plan, Program};
use crate::tree::guard::Seat;
use crate::tree::Leader;

/// The longest argument that Linux takes; a longer command is read from a descriptor.
#[cfg(target_os = "linux")]
const LONGEST_ARGUMENT: usize = 131_071;

/// Reads a command of any length from descriptor 3, closes that, and runs it.
///
/// `BASH_EXECUTION_STRING` is where `bash -c` keeps its command anyway, so the text sees the same variables, `$0`, `$-`,
/// `$?`, stdin and line numbers as it would as an argument. A differing few: `set -x` prints one `+` more, the wording
/// of a syntax error, `$_`, and no exec of a last simple command in place of the shell.
const LOADER: &CStr = c"IFS= read -r -d '' -u 3 BASH_EXECUTION_STRING; exec 3<&-; eval \"$BASH_EXECUTION_STRING\"";

/// What a command is started with besides its spec.
pub(super) struct Launch<'a> {
    pub(super) id: u64,
    pub(super) executor_id: &'a [u8; 32],
    /// Marks of the commands inside which the host runs.
    pub(super) outer_marks: &'a [CString],
    pub(super) spills: &'a Arc<SpillStore>,
    pub(super) null: BorrowedFd<'a>,
    pub(super) alarm: Alarm,
    /// For a background process: where it announces what happens to it.
    pub(super) events: Option<Arc<Events>>,
    pub(super) backends: &'a Backends,
    /// Where the guard learns of the command.
    pub(super) seat: Option<Seat>,
}

/// Starts the command. Nothing is left of it when that fails.
pub(super) fn launch(launch: Launch<'_>, spec: &mut Spec) -> Result<(Tending, Pipes)> {
    let broken = |error: io::Error| pipe_error(&error);
    let (stdout_read, stdout_write) = fd::pipe().map_err(broken)?;
    let stderr = if spec.merge_stderr { None } else { Some(fd::pipe().map_err(broken)?) };
    let stdin = spec.stdin.as_ref().map(|_| fd::pipe()).transpose().map_err(broken)?;
    let script = script(&spec.command)?;

    let own_ends = [Some(&stdout_read), stderr.as_ref().map(|(read, _)| read), stdin.as_ref().map(|(_, write)| write)];
    for end in own_ends.into_iter().flatten() {
        fd::set_nonblocking(end).map_err(broken)?;
    }
    let mut files = vec![
        stdin.as_ref().map_or(launch.null, |(read, _)| read.as_fd()),
        stdout_write.as_fd(),
        stderr.as_ref().map_or(stdout_write.as_fd(), |(_, write)| write.as_fd()),
    ];
    files.extend(script.as_ref().map(AsFd::as_fd));

    let setup = match &spec.sandbox {
        Sandbox::Confined(terms) => {
            let backend = launch.backends.choose(terms, launch.spills)?;
            let means = Means { spills: launch.spills, shell: spec.shell(), witness: launch.seat.is_some() };
            Some(Setup::new(backend, terms, &means)?)
        }
        _ => None,
    };
    for (name, value) in setup.iter().flat_map(Setup::variables) {
        spec.environment.add_unless_set(name, &value)?;
    }

    let mark = mark::own(launch.executor_id, launch.id);
    let marks = [&mark].into_iter().chain(launch.outer_marks);
    let mut environment: Vec<&CStr> = Vec::with_capacity(spec.environment.at_most() + 1 + launch.outer_marks.len());
    spec.environment.entries().chain(marks).for_each(|entry| environment.push(entry.as_c_str()));
    let shell = spec.budgets.shell();
    let workdir = c_path("workdir", &spec.workdir)?;
    let name = shell.to_bytes_with_nul();
    let name = &name[name.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)..];
    let plan = Plan {
        program: Program::Path(shell),
        arguments: &[
            CStr::from_bytes_with_nul(name).unwrap_or(c"bash"),
            c"-c",
            if script.is_some() { LOADER } else { &spec.command },
        ],
        environment: &environment,
        workdir: &workdir,
        files: &files,
        announce: launch.seat.as_ref().and_then(Seat::announce),
        restraint: None,
        signals_blocked: false,
    };
    let started = Instant::now();
    let spawned = match setup {
        None => spawn::spawn(&plan).map(|child| (child, None)),
        Some(setup) => setup.spawn(plan, launch.null).map(|(child, confinement)| (child, Some(Box::new(confinement)))),
    };
    let (child, confinement) = spawned.map_err(|failure| spawn_error(failure, spec))?;

    let limits = |memory| Limits { memory, spill: spec.budgets.config().max_spill_bytes, keep: spec.keep() };
    let stdout_limit = if spec.foreground { spec.stdout_max_bytes } else { spec.max_output_bytes() };
    let collector = |memory, label| Collector::new(limits(memory), launch.spills.clone(), label);
    let label = if spec.merge_stderr { "output" } else { "stdout" };
    let core = Core::new(Birth {
        id: launch.id,
        tag: spec.tag,
        pid: child.pid,
        started,
        grace: spec.budgets.grace(),
        merged: spec.merge_stderr,
        streams: [collector(stdout_limit, label), collector(spec.max_output_bytes(), "stderr")],
        timeout_ms: if spec.foreground { spec.timeout_ms } else { 0 },
        scrubbed: spec.environment.scrubbed().clone(),
        workdir: spec.workdir.clone(),
        sandbox: match &spec.sandbox {
            Sandbox::FullAccess => Some(Box::new(SandboxFacts::full_access())),
            _ => confinement.as_ref().map(|confinement| Box::new(confinement.facts())),
        },
        alarm: launch.alarm,
        events: launch.events,
    });
    let terms = Terms {
        foreground: spec.foreground,
        deadline: if spec.foreground { started.checked_add(spec.timeout()) } else { None },
        drain: spec.budgets.drain(),
        survivors: spec.survivors,
    };
    let mut outputs = vec![Intake::new(stdout_read, Stream::Stdout)];
    outputs.extend(stderr.map(|(read, _)| Intake::new(read, Stream::Stderr)));
    let stdin = stdin.map(|(_, write)| StdinFeed::new(write, spec.stdin.take().unwrap_or_default()));
    let leader = Leader::new(child.pid, child.pidfd, launch.seat);
    Ok((Tending::new(core, leader, terms, confinement), Pipes { outputs, stdin }))
}

/// The text of a command that is too long for an argument, where the shell can read it.
#[cfg(target_os = "linux")]
fn script(command: &CStr) -> Result<Option<OwnedFd>> {
    if command.to_bytes().len() <= LONGEST_ARGUMENT {
        return Ok(None);
    }
    fd::in_memory(c"dsh-command", command.to_bytes()).map(Some).map_err(|error| {
        let bytes = command.to_bytes().len();
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Error::os(ErrorKind::Spawn, Stage::Script, errno, format!("command of {bytes} bytes: can't be written out"))
    })
}

/// Elsewhere an argument is as long as the system's limit for all of them together.
#[cfg(not(target_os = "linux"))]
fn script(_: &CStr) -> Result<Option<OwnedFd>> {
    Ok(None)
}

fn pipe_error(error: &io::Error) -> Error {
    let errno = error.raw_os_error().unwrap_or(libc::EMFILE);
    Error::os(ErrorKind::Spawn, Stage::Pipe, errno, "can't make the pipes of the command")
}

/// What the failing step means to the caller. The shell is not blamed for what is not its fault.
fn spawn_error(failure: Failure, spec: &Spec) -> Error {
    let Failure { stage, errno } = failure;
    match (stage, errno) {
        (Stage::Workdir, _) => {
            let message = format!("workdir {:?}: can't be entered", spec.workdir);
            Error::os(workdir_kind(errno), stage, errno, message)
        }
        (Stage::Sandbox, _) => {
            let message = "sandbox: the command could not be confined, so it was not run";
            Error::os(ErrorKind::SandboxUnavailable, stage, errno, message)
        }
        (Stage::Exec, libc::E2BIG) => spec.environment.too_big(errno),
        (Stage::Exec, libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::ENOEXEC | libc::ELOOP) => {
            Error::os(ErrorKind::ShellMissing, stage, errno, format!("shell {:?}: can't be executed", spec.shell()))
        }
        _ => Error::os(ErrorKind::Spawn, stage, errno, format!("can't start the command (step: {stage})")),
    }
}
