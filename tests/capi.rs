//! The C ABI, as C programs use it.
#![cfg(target_os = "linux")]

#[path = "c/harness.rs"]
mod harness;

use std::fs;
use std::process::Command;

use harness::{build, build_file, build_static, finish, root, scratch};

fn run(name: &str) {
    finish(Command::new(build(name)));
}

#[test]
fn sizes_offsets_and_numbers_stay_as_they_are() {
    run("layout");
}

#[test]
fn header_and_library_are_of_one_version() {
    run("version");
}

#[test]
fn every_wrong_argument_has_its_own_status_and_a_message_that_names_it() {
    run("arguments");
}

#[test]
fn structs_of_older_and_newer_headers_work() {
    run("structs");
}

#[test]
fn a_run_gives_everything_that_is_known() {
    run("run");
}

#[test]
fn a_background_process_is_read_waited_for_and_killed() {
    run("background");
}

#[test]
fn events_are_for_poll_loops() {
    run("events");
}

#[test]
fn a_host_is_woken_by_a_call_and_never_blocks() {
    run("wake");
}

#[test]
fn commands_are_confined_and_it_is_told_how() {
    run("sandbox");
}

#[test]
fn handles_are_used_from_many_threads() {
    run("threads");
}

#[test]
fn budgets_are_read_and_changed_and_a_shutdown_is_final() {
    run("budgets");
}

#[test]
fn a_forked_child_is_refused_everything() {
    run("forked");
}

#[test]
fn unloading_is_harmless() {
    run("unload");
}

#[test]
fn the_static_library_works_too() {
    finish(Command::new(build_static("run")));
}

#[test]
fn the_example_in_the_header_works() {
    let header = fs::read_to_string(root().join("include/dsh.h")).unwrap();
    let lines = header.lines().skip_while(|line| !line.contains("#include <dsh.h>"));
    let example: String = lines
        .map_while(|line| line.strip_prefix(" *").filter(|rest| !rest.starts_with(" Conventions")))
        .map(|line| format!("{line}\n"))
        .collect();
    let source = scratch().join("example.c");
    fs::write(&source, example).unwrap();
    assert_eq!(finish(Command::new(build_file(&source))), "hello\n(exit code 3)\n");
}
