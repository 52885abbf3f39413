//! The C programs under valgrind: no wrong access, no memory and no descriptor left.
//!
//! Valgrind 3.19 carries the library's clone out as a fork, knows neither `pidfd_open` nor Landlock, and can't execute a
//! file without a name. So what is looked at here is the host's side of the plain fork path, without guard and pidfds; the programs
//! leave out what needs those. The sanitizer build (`tests/c/sanitize.sh`) sees the same programs with everything on.
#![cfg(target_os = "linux")]

#[path = "c/harness.rs"]
#[allow(dead_code)]
mod harness;

use std::fs;
use std::process::Command;

use harness::build;

fn check(name: &str) {
    let program = build(name);
    let log = program.with_extension("log");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite,possible"]);
    valgrind.args(["--track-fds=yes", "--child-silent-after-fork=yes"]);
    valgrind.arg(format!("--log-file={}", log.display())).arg(&program).env("CHECK_UNDER_VALGRIND", "1");
    let output = valgrind.output().expect("valgrind is installed");
    let said = fs::read_to_string(&log).unwrap_or_default();
    assert!(output.status.success(), "{name}: {}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("ERROR SUMMARY: 0 errors"), "{name}:\n{said}");
    let open = said.matches("Open file descriptor").count();
    let inherited = said.matches("<inherited from parent>").count();
    assert!(said.contains("FILE DESCRIPTORS:") && open == inherited, "{name} leaves descriptors open:\n{said}");
}

#[test]
fn version() {
    check("version");
}

#[test]
fn arguments() {
    check("arguments");
}

#[test]
fn structs() {
    check("structs");
}

#[test]
fn run() {
    check("run");
}

#[test]
fn background() {
    check("background");
}

#[test]
fn events() {
    check("events");
}

#[test]
fn wake() {
    check("wake");
}

#[test]
fn threads() {
    check("threads");
}

#[test]
fn budgets() {
    check("budgets");
}

#[test]
fn forked() {
    check("forked");
}

#[test]
fn unload() {
    check("unload");
}
