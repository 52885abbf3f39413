//! Creating the child with the standard library, for systems other than Linux.
//!
//! The child leads a process group there, not a session, and which descriptors of the host it inherits depends on
//! their close-on-exec flags. Built and tested on Linux too, so that it stays sound.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::plan::{Plan, Program};
use super::{Child, Failure};
use crate::error::Stage;

pub(super) fn spawn(plan: &Plan<'_>) -> Result<Child, Failure> {
    if plan.restraint.is_some() {
        return Err(Failure { stage: Stage::Sandbox, errno: libc::ENOSYS });
    }
    let text = |string: &CStr| OsStr::from_bytes(string.to_bytes()).to_owned();
    #[allow(irrefutable_let_patterns, reason = "there are no other programs than by path on other systems")]
    let Program::Path(program) = plan.program
    else {
        return Err(Failure { stage: Stage::Exec, errno: libc::ENOSYS });
    };
    let &[stdin, stdout, stderr] = plan.files else {
        return Err(Failure { stage: Stage::Descriptors, errno: libc::ENOSYS });
    };
    let workdir = text(plan.workdir);
    enter(Path::new(&workdir)).map_err(|error| Failure::from_io(Stage::Workdir, &error))?;
    let copy = |file: BorrowedFd<'_>| {
        file.try_clone_to_owned().map(Stdio::from).map_err(|error| Failure::from_io(Stage::Descriptors, &error))
    };
    let mut command = Command::new(text(program));
    command
        .args(plan.arguments.iter().skip(1).map(|argument| text(argument)))
        .env_clear()
        .envs(plan.environment.iter().filter_map(|entry| {
            let equals = entry.to_bytes().iter().position(|byte| *byte == b'=')?;
            let (name, value) = entry.to_bytes().split_at(equals);
            Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(&value[1..]).to_owned()))
        }))
        .current_dir(&workdir)
        .process_group(0)
        .stdin(copy(stdin)?)
        .stdout(copy(stdout)?)
        .stderr(copy(stderr)?);
    if let Some(name) = plan.arguments.first() {
        command.arg0(text(name));
    }
    // Dropping the standard library's handle neither waits for the child nor kills it.
    let child = command.spawn().map_err(|error| Failure::from_io(Stage::Exec, &error))?;
    let pid = child.id() as i32;
    if let Some((cell, encode)) = plan.announce {
        cell.store(encode(pid), std::sync::atomic::Ordering::Release);
    }
    Ok(Child { pid, pidfd: None })
}

/// Whether the directory can be entered. The standard library does not say which step failed, and the shell must not
/// be blamed for a missing directory.
fn enter(workdir: &Path) -> io::Result<()> {
    if !std::fs::metadata(workdir)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    Ok(nix::unistd::access(workdir, nix::unistd::AccessFlags::X_OK)?)
}
