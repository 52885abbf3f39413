//! The working directory: every way in which it can't be used is named, and the shell is never blamed.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use common::*;
use dsh::{ErrorKind, Executor, Stage};

/// Runs and starts a command there, which both have to be refused in the same way.
#[track_caller]
fn refused(executor: &Executor, workdir: &Path, kind: ErrorKind) {
    let here = || request("pwd", |request| request.workdir = Some(workdir.into()));
    let counts = || executor.stats().map(|stats| (stats.live, stats.ended)).unwrap();
    let began = counts();
    for error in [executor.run(here()).unwrap_err(), executor.start(here()).map(|_| ()).unwrap_err()] {
        assert_eq!((error.kind(), error.stage()), (kind, Stage::Workdir), "{error}");
        assert!(error.errno().is_some());
        assert!(error.message().contains(workdir.to_str().unwrap()), "{error}");
        assert!(!error.message().contains("bash") && !error.message().contains("shell"), "{error}");
    }
    assert_eq!(counts(), began, "something was run");
}

fn pwd(executor: &Executor, workdir: Option<PathBuf>) -> String {
    let result = executor.run(request("pwd", |request| request.workdir = workdir)).unwrap();
    text(&result.stdout).trim().to_owned()
}

#[test]
fn a_missing_directory_or_a_file_is_named_and_the_next_call_works() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    let executor = executor();
    refused(&executor, &folder.path().join("missing"), ErrorKind::WorkdirMissing);
    refused(&executor, &folder.path().join("dangling"), ErrorKind::WorkdirMissing);
    refused(&executor, &folder.path().join("file"), ErrorKind::WorkdirNotDir);
    refused(&executor, &folder.path().join("file/below"), ErrorKind::WorkdirNotDir);
    refused(&executor, &folder.path().join("loop"), ErrorKind::WorkdirUnusable);
    refused(&executor, &folder.path().join("x".repeat(300)), ErrorKind::WorkdirUnusable);
    let real = folder.path().canonicalize().unwrap();
    assert_eq!(pwd(&executor, Some(real.clone())), real.to_str().unwrap());
}

#[test]
fn a_directory_that_is_removed_is_missing_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("d");
    std::fs::create_dir(&below).unwrap();
    let executor = executor_with(|config| config.cwd = Some(below.clone()));
    assert_eq!(code(&executor.run("true").unwrap()), Some(0));
    std::fs::remove_dir(&below).unwrap();
    let error = executor.run("pwd").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WorkdirMissing);
    assert!(error.message().contains(below.to_str().unwrap()), "{error}");
    std::fs::create_dir(&below).unwrap();
    assert_eq!(code(&executor.run("true").unwrap()), Some(0));
}

#[test]
fn a_command_may_remove_its_own_directory() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("d");
    std::fs::create_dir(&below).unwrap();
    let executor = executor();
    let command = format!("rmdir '{}'; exit 3", below.display());
    let result = executor.run(request(command, |request| request.workdir = Some(below.clone()))).unwrap();
    assert_eq!(code(&result), Some(3));
    refused(&executor, &below, ErrorKind::WorkdirMissing);
}

#[test]
fn a_directory_that_may_not_be_entered_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let closed = folder.path().join("closed");
    std::fs::create_dir_all(closed.join("below")).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o600)).unwrap();
    let with_dir = |host: &mut std::process::Command| {
        host.env("CLOSED", &closed).current_dir("/");
    };
    in_own_process_with(test_name!(), with_dir, || {
        become_nobody();
        let closed = PathBuf::from(std::env::var_os("CLOSED").unwrap());
        let executor = executor();
        refused(&executor, &closed, ErrorKind::WorkdirDenied);
        refused(&executor, &closed.join("below"), ErrorKind::WorkdirDenied);
        assert_eq!(pwd(&executor, Some("/".into())), "/");
    });
}

#[test]
fn a_relative_directory_is_taken_from_the_executors_or_else_the_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    let executor = executor_with(|config| config.cwd = Some(root.join("a")));
    assert_eq!(pwd(&executor, None), root.join("a").to_str().unwrap());
    assert_eq!(pwd(&executor, Some("b".into())), root.join("a/b").to_str().unwrap());
    assert_eq!(pwd(&executor, Some("..".into())), root.to_str().unwrap());
    let error = executor.run(request("pwd", |request| request.workdir = Some("no/such".into()))).unwrap_err();
    assert!(error.message().contains(root.join("a/no/such").to_str().unwrap()), "{error}");
    let hosts = Executor::new(&quick()).unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!(pwd(&hosts, Some("src".into())), here.join("src").to_str().unwrap());
}

#[test]
fn the_hosts_directory_is_looked_up_at_each_call() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    in_own_process(test_name!(), || {
        let executor = executor();
        std::env::set_current_dir(&root).unwrap();
        assert_eq!(pwd(&executor, None), root.to_str().unwrap());
        std::env::set_current_dir("/").unwrap();
        assert_eq!(pwd(&executor, None), "/");
        std::env::set_current_dir(&root).unwrap();
        std::fs::remove_dir(&root).unwrap();
        let error = executor.run("pwd").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WorkdirMissing, "{error}");
        assert_eq!(pwd(&executor, Some("/".into())), "/");
    });
}

#[test]
fn a_directory_reached_through_a_link_is_called_as_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    let result =
        executor().run(request("echo $PWD; pwd; pwd -P", |request| request.workdir = Some(root.join("link")))).unwrap();
    let expected = ["link", "link", "real"].map(|name| format!("{}\n", root.join(name).display())).concat();
    assert_eq!(text(&result.stdout), expected);
}

#[test]
fn an_odd_name_is_no_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().canonicalize().unwrap().join("a b\n$(touch x)'\"é");
    std::fs::create_dir(&odd).unwrap();
    assert_eq!(pwd(&executor(), Some(odd.clone())), odd.to_str().unwrap());
}
