//! Budgets: defaults, clamps, what is refused, and what a change does to commands that run.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::*;
use dsh::{Config, ErrorKind, Executor, Keep, StopStage};

#[test]
fn zero_means_the_documented_default() {
    let config = Executor::new(&Config::default()).unwrap().config().unwrap();
    assert_eq!((config.timeout_ms, config.max_timeout_ms), (120_000, 600_000));
    assert_eq!((config.max_output_bytes, config.max_spill_bytes), (64_000, 67_108_864));
    assert_eq!((config.max_total_spill_bytes, config.keep), (1 << 30, Keep::Tail));
    assert_eq!((config.grace_ms, config.drain_ms), (3_000, 3_000));
    assert!(config.inherit_env && config.guard && !config.keep_spill_files);
    let shell = config.shell.unwrap();
    assert!(shell.is_absolute() && shell.ends_with("bash"));
    assert_eq!(executor_with(|config| config.drain_ms = 0).config().unwrap().drain_ms, 300);
}

#[test]
fn a_requests_terms_are_filled_in_and_capped() {
    let executor = executor_with(|config| (config.timeout_ms, config.max_timeout_ms) = (5_000, 9_000));
    let spec = |timeout, stdout| {
        executor
            .resolve(request("true", |request| (request.timeout_ms, request.stdout_max_bytes) = (timeout, stdout)))
            .unwrap()
    };
    assert_eq!(
        [0, 1, 9_000, 9_001, u64::MAX].map(|timeout| spec(timeout, 0).timeout_ms()),
        [5_000, 1, 9_000, 9_000, 9_000]
    );
    assert_eq!([0, 7, 1 << 40].map(|stdout| spec(0, stdout).stdout_max_bytes()), [64_000, 7, 1 << 40]);
    let spec = spec(0, 0);
    assert_eq!((spec.grace_ms(), spec.drain_ms(), spec.max_output_bytes()), (300, 200, 64_000));
    assert_eq!((spec.command(), spec.workdir()), (b"true".as_slice(), std::env::current_dir().unwrap().as_path()));
    assert_eq!(spec.shell(), executor.config().unwrap().shell.unwrap());
    assert_eq!(executor.run("true").unwrap().timeout_ms, 5_000);
}

#[test]
fn resolving_starts_nothing() {
    let executor = executor();
    let folder = tempfile::tempdir().unwrap();
    executor.resolve(request("touch x", |request| request.workdir = Some(folder.path().into()))).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(executor.stats().unwrap().guard_pid, None);
}

#[test]
fn a_default_timeout_above_the_cap_is_clamped() {
    let executor = executor_with(|config| (config.timeout_ms, config.max_timeout_ms) = (u64::MAX, 200));
    assert_eq!(executor.config().unwrap().timeout_ms, 200);
    let result = in_time(|| executor.run("sleep 60").unwrap());
    assert!(result.outcome.timed_out() && result.timeout_ms == 200);
}

/// Configurations that can't be used, with the field that has to be named.
fn unusable(folder: &std::path::Path) -> Vec<(Config, &'static str, ErrorKind)> {
    let plain = folder.join("not-executable");
    std::fs::write(&plain, "").unwrap();
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).unwrap();
    let shell = |shell: &std::path::Path| Config { shell: Some(shell.into()), ..quick() };
    vec![
        (shell("/nowhere/bash".as_ref()), "shell", ErrorKind::ShellMissing),
        (shell("no-such-shell-in-path".as_ref()), "shell", ErrorKind::ShellMissing),
        (shell(folder), "shell", ErrorKind::ShellMissing),
        (shell(&plain), "shell", ErrorKind::ShellMissing),
        (shell("a\0b".as_ref()), "shell", ErrorKind::Invalid),
        (Config { cwd: Some("a\0b".into()), ..quick() }, "cwd", ErrorKind::Invalid),
        (Config { cwd: Some("".into()), ..quick() }, "cwd", ErrorKind::Invalid),
        (Config { spill_dir: Some("a\0b".into()), ..quick() }, "spill_dir", ErrorKind::Invalid),
    ]
}

#[test]
fn what_cannot_be_used_is_refused_by_name_when_the_executor_is_made() {
    let folder = tempfile::tempdir().unwrap();
    for (config, field, kind) in unusable(folder.path()) {
        let error = Executor::new(&config).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(field), "{error}");
    }
}

#[test]
fn a_refused_update_leaves_the_last_good_budgets() {
    let folder = tempfile::tempdir().unwrap();
    let executor = executor_with(|config| config.max_output_bytes = 1_234);
    let before = executor.config().unwrap();
    for (config, field, kind) in unusable(folder.path()) {
        let error = executor.configure(&Config { max_output_bytes: 99, ..config }).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(field), "{error}");
        assert_eq!(executor.config().unwrap(), before);
    }
    assert_eq!(executor.run("seq 10000").unwrap().stdout.bytes.len(), 1_234);
    executor.configure(&before).unwrap();
    assert_eq!(executor.config().unwrap(), before);
}

#[test]
fn a_running_command_keeps_its_budgets_and_the_next_one_gets_the_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let executor = executor_with(|config| (config.grace_ms, config.max_output_bytes) = (30_000, 1_000));
    let command = format!(
        "trap 'sleep 1; exit 5' TERM; echo up; until [ -e '{}' ]; do sleep .01; done; seq 20000; while :; do sleep 0.05; done 2>/dev/null",
        go.display()
    );
    let process = executor.start(command.as_str()).unwrap();
    lines_of(&process, 1);
    executor.configure(&Config { max_output_bytes: 50, timeout_ms: 150, ..quick() }).unwrap();
    std::fs::write(&go, "").unwrap();
    until("it has printed", || process.info().unwrap().totals[0] > 100_000);
    process.kill().unwrap();
    let next = in_time(|| executor.run("seq 1000; trap '' TERM; sleep 60").unwrap());
    assert_eq!((next.stdout.bytes.len(), next.timeout_ms), (50, 150));
    assert_eq!((next.outcome.timed_out(), next.outcome.stage), (true, StopStage::Kill));
    in_time(|| process.wait(None).unwrap());
    let outcome = process.info().unwrap().outcome.unwrap();
    assert_eq!((outcome.exit, outcome.stage), (dsh::Exit::Code(5), StopStage::Term), "its own grace was long enough");
    let reading = process.read_stream(dsh::Stream::Stdout, 0, &mut [0; 2_000]).unwrap();
    assert_eq!(reading.len, 1_000);
}

#[test]
fn budgets_can_be_changed_while_many_commands_run() {
    let executor = executor();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(stdout_of(&executor, "echo x"), "x\n")));
        }
        for grace_ms in 1..200 {
            executor.configure(&Config { grace_ms, ..quick() }).unwrap();
        }
    });
    assert_eq!(executor.config().unwrap().grace_ms, 199);
}

#[test]
fn a_relative_shell_is_resolved_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let bash = executor().config().unwrap().shell.unwrap();
    std::fs::create_dir(root.join("bin")).unwrap();
    std::os::unix::fs::symlink(bash, root.join("bin/mybash")).unwrap();
    in_own_process(test_name!(), || {
        std::env::set_current_dir(&root).unwrap();
        let executor = executor_with(|config| config.shell = Some("bin/mybash".into()));
        std::env::set_current_dir("/").unwrap();
        assert_eq!(executor.config().unwrap().shell, Some(root.join("bin/mybash")));
        assert_eq!(stdout_of(&executor, "echo $0"), "mybash\n");
    });
}

#[test]
fn a_shell_that_goes_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("bash");
    std::os::unix::fs::symlink(executor().config().unwrap().shell.unwrap(), &shell).unwrap();
    let executor = executor_with(|config| config.shell = Some(shell.clone()));
    assert_eq!(code(&executor.run("exit 3").unwrap()), Some(3));
    std::fs::remove_file(&shell).unwrap();
    let error = executor.run("exit 3").unwrap_err();
    assert_eq!((error.kind(), error.errno()), (ErrorKind::ShellMissing, Some(libc::ENOENT)));
    assert!(error.message().contains(shell.to_str().unwrap()), "{error}");
}
