//! Every way of creating a child, held to the same promises.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{path, spawn_by, Child, Failure, Plan, Program, SpawnPath};
use crate::error::Stage;
use crate::fd;

/// The ways that work here. Emulators and ThreadSanitizer do without the first.
fn linux_ways() -> impl Iterator<Item = SpawnPath> {
    [SpawnPath::Vfork, SpawnPath::Fork].into_iter().filter(|way| path() == SpawnPath::Vfork || *way == SpawnPath::Fork)
}

fn all_ways() -> impl Iterator<Item = SpawnPath> {
    linux_ways().chain([SpawnPath::Portable])
}

fn start(path: SpawnPath, program: &CStr, workdir: &CStr, script: &str) -> Result<(Child, OwnedFd), Failure> {
    let null = fd::dev_null().unwrap();
    let (read, write) = fd::pipe().unwrap();
    let script = CString::new(script).unwrap();
    let files: [BorrowedFd<'_>; 3] = [null.as_fd(), write.as_fd(), write.as_fd()];
    let child = spawn_by(
        path,
        &Plan {
            program: Program::Path(program),
            arguments: &[c"bash", c"-c", &script],
            environment: &[c"A=1", c"PATH=/usr/bin:/bin"],
            workdir,
            files: &files,
            announce: None,
            restraint: None,
            signals_blocked: false,
        },
    )?;
    Ok((child, read))
}

fn output_of(path: SpawnPath, script: &str) -> String {
    let (child, read) = start(path, c"/bin/bash", c"/", script).unwrap();
    let mut text = String::new();
    File::from(read).read_to_string(&mut text).unwrap();
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child.pid, std::ptr::null_mut(), 0) };
    text
}

#[test]
fn this_kernel_takes_the_fast_path() {
    // Said by whoever runs the tests where it can't be so.
    let expected = if std::env::var_os("DSH_EXPECTS_FORK").is_some() { SpawnPath::Fork } else { SpawnPath::Vfork };
    assert_eq!(path(), expected);
}

#[test]
fn every_path_gives_the_program_its_arguments_environment_and_workdir() {
    for path in all_ways() {
        assert_eq!(output_of(path, "echo $0 $A $PWD"), "bash 1 /\n", "{path:?}");
    }
}

#[test]
fn a_child_leads_its_own_session_and_has_no_descriptor_but_three() {
    // An inheritable descriptor of the host, which no child may see.
    let leak = File::open("/dev/null").unwrap();
    nix::fcntl::fcntl(&leak, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    for path in linux_ways() {
        let script = "read -r -a f </proc/$$/stat; [ ${f[5]} = $$ ] && echo own
            for fd in {0..255}; do [ -e /proc/$$/fd/$fd ] && echo $fd; done";
        assert_eq!(output_of(path, script), "own\n0\n1\n2\n", "{path:?}");
    }
}

#[test]
fn signals_are_default_and_unblocked_whatever_the_host_does() {
    for path in linux_ways() {
        // SAFETY: only this thread's mask is changed, and it is put back.
        let text = unsafe {
            let (mut block, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigfillset(&mut block);
            libc::pthread_sigmask(libc::SIG_BLOCK, &block, &mut before);
            let text = output_of(path, "cat /proc/self/status");
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            text
        };
        for line in ["SigBlk:\t0000000000000000\n", "SigIgn:\t0000000000000000\n"] {
            assert!(text.contains(line), "{path:?}: {text}");
        }
    }
}

#[test]
fn the_failing_step_and_its_reason_come_back() {
    for path in all_ways() {
        let failure = |program, workdir| start(path, program, workdir, "true").unwrap_err();
        assert_eq!(failure(c"/no/bash", c"/"), Failure { stage: Stage::Exec, errno: libc::ENOENT }, "{path:?}");
        assert_eq!(failure(c"/etc", c"/"), Failure { stage: Stage::Exec, errno: libc::EACCES }, "{path:?}");
        let missing = Failure { stage: Stage::Workdir, errno: libc::ENOENT };
        assert_eq!(failure(c"/bin/bash", c"/no/folder"), missing, "{path:?}");
        let not_dir = Failure { stage: Stage::Workdir, errno: libc::ENOTDIR };
        assert_eq!(failure(c"/bin/bash", c"/etc/hostname"), not_dir, "{path:?}");
    }
}

#[test]
fn a_child_announces_its_pid() {
    for path in all_ways() {
        let cell = AtomicU64::new(0);
        let null = fd::dev_null().unwrap();
        let files = [null.as_fd(); 3];
        let plan = Plan {
            program: Program::Path(c"/bin/true"),
            arguments: &[c"true"],
            environment: &[],
            workdir: c"/",
            files: &files,
            announce: Some((&cell, |pid| (pid as u64) << 1)),
            restraint: None,
            signals_blocked: false,
        };
        let child = spawn_by(path, &plan).unwrap();
        let seen = cell.load(Ordering::Acquire);
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child.pid, std::ptr::null_mut(), 0) };
        // A forked child's cell is its own copy unless it lies in a shared mapping, as the real one does.
        assert_eq!(seen, if path == SpawnPath::Fork { 0 } else { (child.pid as u64) << 1 }, "{path:?}");
    }
}

#[test]
fn a_program_without_a_path_runs_from_its_descriptor() {
    let null = fd::dev_null().unwrap();
    let (read, write) = fd::pipe().unwrap();
    let program = File::open("/bin/echo").unwrap();
    for path in linux_ways() {
        let files = [null.as_fd(), write.as_fd(), null.as_fd()];
        let plan = Plan {
            program: Program::Descriptor(program.as_fd()),
            arguments: &[c"echo", c"hello"],
            environment: &[],
            workdir: c"/",
            files: &files,
            announce: None,
            restraint: None,
            signals_blocked: false,
        };
        let child = spawn_by(path, &plan).unwrap();
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child.pid, std::ptr::null_mut(), 0) };
    }
    drop(write);
    let mut text = String::new();
    File::from(read).read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello\n".repeat(linux_ways().count()));
}
