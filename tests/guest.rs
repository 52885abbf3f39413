//! The library as a guest in C hosts of difficult kinds; each program of `tests/c/guest_*.c` is one kind.
#![cfg(target_os = "linux")]

#[path = "c/harness.rs"]
#[allow(dead_code)]
mod harness;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use harness::{build, built};

/// What a host says when this machine can't have its kind.
const SKIPPED: i32 = 77;

/// A program and the library in a folder that everybody can reach.
struct Installed {
    folder: tempfile::TempDir,
    program: PathBuf,
}

fn install(name: &str) -> Installed {
    let folder = tempfile::Builder::new().prefix("dsh-guest-").tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let copy = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, Permissions::from_mode(0o755)).unwrap();
        to
    };
    copy(&built().join("libdsh.so"), "libdsh.so.0");
    let program = copy(&build(name), name);
    Installed { folder, program }
}

impl Installed {
    /// The host, ended after a while if it hangs. It can be anybody: root runs it as nobody too.
    fn host(&self, as_nobody: bool, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "200"]);
        if as_nobody {
            command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.arg(&self.program).args(arguments);
        command.env("LD_LIBRARY_PATH", self.folder.path()).env("HOME", "/").current_dir("/");
        command
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The users to run a host as: whether as nobody.
fn users() -> &'static [bool] {
    if is_root() {
        &[false, true]
    } else {
        &[false]
    }
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let printed = String::from_utf8_lossy(&stdout).into_owned();
    if status.code() == Some(SKIPPED) {
        println!("{command:?}: {printed}");
        return printed;
    }
    assert!(status.success(), "{command:?}: {status}\n{printed}{}", String::from_utf8_lossy(&stderr));
    printed
}

#[track_caller]
fn check(name: &str, arguments: &[&str]) {
    let host = install(name);
    for &as_nobody in users() {
        let printed = succeeds(&mut host.host(as_nobody, arguments));
        if !printed.is_empty() {
            println!("{name} {arguments:?}: {printed}");
        }
    }
}

#[test]
fn a_host_that_ignores_sigchld_gets_the_right_statuses() {
    check("guest_children", &["ignores"]);
}

#[test]
fn a_host_that_wants_no_zombies_gets_the_right_statuses() {
    check("guest_children", &["nocldwait"]);
}

#[test]
fn a_host_that_reaps_everybody_gets_the_right_statuses_or_unknown() {
    check("guest_children", &["reaps"]);
}

#[test]
fn a_host_with_blocked_and_ignored_signals_passes_none_of_it_on() {
    check("guest_blocked", &[]);
}

#[test]
fn handlers_of_the_host_run_on_its_own_threads_only() {
    check("guest_handlers", &[]);
}

#[test]
fn a_command_outlives_the_thread_that_started_it() {
    check("guest_brief_thread", &[]);
}

#[test]
fn a_host_that_forks_while_commands_run_is_not_disturbed() {
    check("guest_forks", &[]);
}

#[test]
fn a_hundred_unloadings_leave_nothing() {
    succeeds(&mut install("guest_unload").host(false, &[])); // whoever runs it
}

#[test]
fn a_host_can_be_the_first_process_of_its_namespace() {
    check("guest_init", &[]);
}

#[test]
fn descriptors_that_a_host_leaks_do_not_reach_its_commands() {
    check("guest_leaky", &[]);
}

#[test]
fn closed_standard_descriptors_stay_closed() {
    check("guest_closed", &[]);
}

#[test]
fn a_host_finds_itself_unchanged() {
    check("guest_unchanged", &[]);
}

/// The processes that have this entry in their environment and are not zombies.
fn processes_with(entry: &str) -> Vec<String> {
    let is_ours = |folder: &Path| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == entry.as_bytes())
    };
    let folders = fs::read_dir("/proc").unwrap().flatten().map(|folder| folder.path());
    let found = folders.filter(|folder| is_ours(folder));
    found.map(|folder| fs::read_to_string(folder.join("stat")).unwrap_or_default()).collect()
}

#[track_caller]
fn ends_well(how: &str) {
    let host = install("guest_exits");
    let mark = format!("{how}-{}", std::process::id());
    for &as_nobody in users() {
        for round in 0..10 {
            let delay = (round * 1_700_000).to_string();
            let mut command = host.host(as_nobody, &[how, &delay]);
            command.env("GUEST_MARK", &mark);
            let Output { status, stderr, .. } = command.output().unwrap();
            let errors = String::from_utf8_lossy(&stderr);
            assert_eq!((status.code(), status.signal()), (Some(7), None), "{how}, round {round}: {errors}");
        }
        let since = Instant::now();
        let left = || processes_with(&format!("GUEST_MARK={mark}"));
        while !left().is_empty() {
            assert!(since.elapsed() < Duration::from_secs(20), "{how}: still there: {:?}", left());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn exit_on_another_thread_ends_host_and_commands() {
    ends_well("thread");
}

#[test]
fn a_return_from_main_ends_host_and_commands() {
    ends_well("returns");
}

#[test]
fn a_shutdown_from_an_exit_handler_works() {
    ends_well("handler");
}
