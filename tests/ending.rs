//! How a command's end is told: codes, signals, timeouts, cancellations, and pipes that somebody still holds.

mod common;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use dsh::{CancelToken, Exit, StopBy, StopStage, Survivors};

#[test]
fn every_exit_code_is_told_as_it_is() {
    let executor = executor();
    for expected in 0..=255 {
        let outcome = executor.run(format!("exit {expected}").as_str()).unwrap().outcome;
        assert_eq!((outcome.exit, outcome.cause, outcome.stage), (Exit::Code(expected), None, StopStage::None));
    }
}

#[test]
fn every_signal_that_ends_a_command_is_told_by_its_number_and_is_neither_timeout_nor_abort() {
    let executor = executor();
    let harmless = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    let stopping = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    for number in (1..=64).filter(|number| !harmless.contains(number) && !stopping.contains(number)) {
        let command = format!("exec perl -e '$SIG{{FPE}} = q(DEFAULT); kill {number}, $$; sleep 9'");
        let outcome = in_time(|| executor.run(command.as_str()).unwrap().outcome);
        assert!(matches!(outcome.exit, Exit::Signal { number: n, .. } if n == number), "{number}: {:?}", outcome.exit);
        assert!(!outcome.timed_out() && !outcome.aborted() && outcome.stopped_by.is_none(), "{number}: {outcome:?}");
    }
}

#[test]
fn a_dumped_core_is_told_when_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let executor = executor_with(|config| config.cwd = Some(folder.path().into()));
    for limit in ["0", "unlimited"] {
        // Whoever started the tests may have had the signal ignored, as shells do for jobs in the background.
        let command = format!("ulimit -c {limit}; exec perl -e '$SIG{{QUIT}} = q(DEFAULT); kill QUIT, $$; sleep 9'");
        let mut plain = std::process::Command::new("bash");
        let status = plain.arg("-c").arg(&command).current_dir(folder.path()).process_group(0).status().unwrap();
        let expected = Exit::Signal { number: libc::SIGQUIT, core_dumped: status.core_dumped() };
        assert_eq!(executor.run(command.as_str()).unwrap().outcome.exit, expected, "core limit {limit}");
    }
}

#[test]
fn a_timeout_is_told_with_who_ended_the_command_and_how() {
    let run = request("sleep 60", |request| request.timeout_ms = 200);
    let result = in_time(|| executor().run(run).unwrap());
    let outcome = &result.outcome;
    assert_eq!(outcome.exit, Exit::Signal { number: libc::SIGTERM, core_dumped: false });
    assert_eq!((outcome.cause, outcome.stopped_by), (Some(StopBy::Timeout), Some(StopBy::Timeout)));
    assert_eq!((outcome.stage, result.timeout_ms), (StopStage::Term, 200));
    assert!(outcome.timed_out() && !outcome.aborted());
    assert!(outcome.wall >= Duration::from_millis(200) && outcome.survivors.is_empty() && !outcome.pipes_held);
}

#[test]
fn a_command_that_traps_sigterm_and_exits_0_has_both_its_code_and_the_timeout() {
    let run = request("trap 'exit 0' TERM; sleep 60 & wait", |request| request.timeout_ms = 300);
    let outcome = in_time(|| executor_with(|config| config.grace_ms = 10_000).run(run).unwrap().outcome);
    assert_eq!((outcome.exit, outcome.timed_out(), outcome.stage), (Exit::Code(0), true, StopStage::Term));
}

#[test]
fn a_deadline_that_passes_after_the_shells_exit_is_no_timeout() {
    let executor = executor_with(|config| config.drain_ms = 2_500);
    let run = request("sleep 60 & echo $!", |request| request.timeout_ms = 1_500);
    let began = Instant::now();
    let result = executor.run(run).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(2_500), "the pipe was not waited for");
    assert_eq!((result.outcome.exit, result.outcome.cause), (Exit::Code(0), None));
    assert_eq!(result.outcome.stage, StopStage::None);
    assert!(result.outcome.pipes_held && result.outcome.wall < Duration::from_millis(1_500));
    assert_eq!(result.outcome.held_by, pids_in(&text(&result.stdout)));
}

#[test]
fn a_cancellation_after_the_timeout_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let cancel = CancelToken::new();
    let run = request("trap 'touch told' TERM; while :; do sleep .02; done", |request| {
        (request.timeout_ms, request.workdir) = (200, Some(folder.path().into()));
        request.cancel = Some(cancel.clone());
    });
    let executor = executor_with(|config| config.grace_ms = 1_000);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            until("the command was told", || told.exists());
            cancel.cancel();
        });
        executor.run(run).unwrap().outcome
    });
    assert_eq!((outcome.cause, outcome.stopped_by), (Some(StopBy::Timeout), Some(StopBy::Timeout)));
    assert!(outcome.timed_out() && !outcome.aborted());
    assert_eq!((outcome.stage, outcome.exit), (StopStage::Kill, Exit::Signal { number: 9, core_dumped: false }));
}

#[test]
fn a_deadline_after_the_cancellation_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let cancel = CancelToken::new();
    let run = request("trap '' TERM; touch ready; sleep 2; exit 5", |request| {
        (request.timeout_ms, request.workdir) = (1_500, Some(folder.path().into()));
        request.cancel = Some(cancel.clone());
    });
    let executor = executor_with(|config| config.grace_ms = 10_000);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            until("the command ignores SIGTERM", || ready.exists());
            cancel.cancel();
        });
        executor.run(run).unwrap().outcome
    });
    assert_eq!((outcome.exit, outcome.cause), (Exit::Code(5), Some(StopBy::Cancel)));
    assert!(outcome.aborted() && !outcome.timed_out() && outcome.wall >= Duration::from_millis(1_500));
}

#[test]
fn a_shell_that_exits_returns_although_a_child_holds_its_pipes() {
    for command in [
        "sleep 30 & echo up $!",
        "sleep 30 </dev/null >/dev/null & echo up $!",
        "sleep 30 </dev/null 2>/dev/null & echo up $!",
        "nohup sleep 30 & echo up $!",
        "(trap '' HUP TERM; sleep 30; echo never) & echo up $!",
    ] {
        let executor = executor();
        let run = request(command, |request| request.timeout_ms = 15_000);
        let began = Instant::now();
        let result = executor.run(run).unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{command}: waited for the child");
        let printed = text(&result.stdout);
        let pid: i32 = printed.strip_prefix("up ").unwrap().trim().parse().unwrap();
        let outcome = result.outcome;
        assert_eq!((code_of(outcome.exit), outcome.cause, outcome.pipes_held), (0, None, true), "{command}");
        assert!(outcome.held_by.contains(&pid), "{command}: {:?} has no {pid}", outcome.held_by);
        assert!(outcome.survivors.iter().any(|survivor| survivor.pid == pid), "{command}");
        assert!(is_alive(pid));
        executor.shutdown(None).unwrap();
        assert!(!is_alive(pid));
    }
}

#[test]
fn a_child_without_the_pipes_does_not_delay_the_result() {
    let executor = executor_with(|config| config.drain_ms = 15_000);
    let command = "sleep 30 </dev/null >/dev/null 2>&1 & echo $!";
    let began = Instant::now();
    let result = executor.run(command).unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(!result.outcome.pipes_held && result.outcome.held_by.is_empty());
    assert_eq!(result.outcome.survivors[0].pid, pids_in(&text(&result.stdout))[0]);
}

#[test]
fn output_does_not_extend_the_drain_limit() {
    let executor = executor();
    let command = "(while :; do echo more; sleep .02; done) & exit 3";
    let result = in_time(|| executor.run(command).unwrap());
    assert_eq!((code(&result), result.outcome.pipes_held), (Some(3), true));
    assert!(text(&result.stdout).contains("more"), "what came within the drain limit belongs to the output");
}

#[test]
fn a_descendant_that_ignores_sigterm_does_not_lock_the_call() {
    let mark = Mark::new();
    let executor = executor();
    assert!(executor.config().unwrap().timeout_ms > 0);
    let command = "timeout 1 bash -c '(trap \"\" TERM; exec sleep 60) & wait'";
    let run = dsh::Request { survivors: Survivors::Kill, ..mark.request(command) };
    let result = in_time(|| executor.run(run).unwrap());
    assert_eq!((code(&result), result.outcome.cause), (Some(124), None));
    assert_eq!((result.outcome.stopped_by, result.outcome.stage), (Some(StopBy::Survivors), StopStage::Kill));
    mark.is_gone();
}

#[test]
fn a_grandchild_that_ignores_sigterm_is_killed_although_the_shell_is_dead() {
    let mark = Mark::new();
    let executor = executor_with(|config| config.grace_ms = 500);
    let run = dsh::Request { timeout_ms: 300, ..mark.request("(trap '' TERM; exec sleep 60) & wait") };
    let began = Instant::now();
    let outcome = in_time(|| executor.run(run).unwrap().outcome);
    assert!(began.elapsed() >= Duration::from_millis(800), "it was killed before its grace");
    assert_eq!(outcome.exit, Exit::Signal { number: libc::SIGTERM, core_dumped: false });
    assert_eq!((outcome.stage, outcome.timed_out()), (StopStage::Kill, true));
    assert_eq!(outcome.survivors, []);
    mark.is_gone();
}

#[test]
fn a_stopped_command_is_woken_to_handle_sigterm() {
    let executor = executor_with(|config| config.grace_ms = 15_000);
    for command in [
        "trap 'echo bye; exit 0' TERM; kill -STOP $$; sleep 9",
        "(trap 'echo bye; exit 0' TERM; kill -STOP $BASHPID; sleep 9) & wait",
    ] {
        let run = request(command, |request| request.timeout_ms = 400);
        let began = Instant::now();
        let result = executor.run(run).unwrap();
        assert!(began.elapsed() < Duration::from_secs(9), "the grace was wasted");
        assert_eq!((text(&result.stdout).as_str(), result.outcome.stage), ("bye\n", StopStage::Term), "{command}");
        assert!(result.outcome.timed_out());
    }
}

#[test]
fn a_timeout_is_kept_although_a_grandchild_holds_the_pipe() {
    let run = request("sleep 30 & wait", |request| request.timeout_ms = 500);
    let began = Instant::now();
    let outcome = executor().run(run).unwrap().outcome;
    assert!(began.elapsed() < Duration::from_secs(10) && outcome.timed_out());
}

#[test]
fn a_huge_timeout_does_not_wrap() {
    for max in [0, u64::MAX] {
        let executor = executor_with(|config| config.max_timeout_ms = max);
        let cap = if max == 0 { 600_000 } else { max };
        for timeout in [1 << 31, (1 << 32) + 1, 1 << 63, u64::MAX - 1, u64::MAX] {
            let run = request("sleep .05; exit 7", |request| request.timeout_ms = timeout);
            let result = executor.run(run).unwrap();
            assert_eq!((code(&result), result.outcome.cause), (Some(7), None), "{timeout} ms");
            assert_eq!(result.timeout_ms, timeout.min(cap));
        }
    }
    let shortest = request("sleep 60", |request| request.timeout_ms = 1);
    let result = in_time(|| executor().run(shortest).unwrap());
    assert!(result.outcome.timed_out() && result.timeout_ms == 1);
}

#[test]
fn a_huge_grace_or_drain_does_not_wrap() {
    let executor = executor_with(|config| (config.grace_ms, config.drain_ms) = (u64::MAX, u64::MAX));
    let run = request("trap 'exit 4' TERM; sleep 60 & wait", |request| request.timeout_ms = 200);
    let outcome = in_time(|| executor.run(run).unwrap().outcome);
    assert_eq!((outcome.exit, outcome.stage), (Exit::Code(4), StopStage::Term));
    assert_eq!(stdout_of(&executor, "(sleep .3; echo late) & echo early"), "early\nlate\n");
    in_time(|| executor.shutdown(None).unwrap());
}

#[test]
fn times_and_memory_are_those_of_the_command() {
    let executor = executor();
    let idle = executor.run("sleep .4").unwrap().outcome;
    assert!(idle.wall >= Duration::from_millis(400) && idle.wall < HANG);
    assert!(idle.usage.user + idle.usage.system < Duration::from_millis(400), "{:?}", idle.usage);
    assert!((500_000..100_000_000).contains(&idle.usage.max_rss), "{:?}", idle.usage);

    let busy = executor.run("for ((i = 0; i < 300000; i++)); do :; done").unwrap().outcome;
    assert!(busy.usage.user > Duration::from_millis(30), "{:?}", busy.usage);
    assert!(busy.usage.user + busy.usage.system < busy.wall + Duration::from_millis(50), "{busy:?}");

    let big = executor.run("head -c 50000000 /dev/zero | tail -c 50000000 >/dev/null").unwrap().outcome;
    assert!((50_000_000..200_000_000).contains(&big.usage.max_rss), "{:?}", big.usage);
}

#[test]
fn what_a_signalled_command_has_written_is_in_its_result() {
    let run = request("echo out; echo err >&2; exec sleep 60", |request| request.timeout_ms = 700);
    let result = in_time(|| executor().run(run).unwrap());
    assert_eq!((text(&result.stdout), text(&result.stderr)), ("out\n".into(), "err\n".into()));
    assert!(result.outcome.timed_out());
}

fn code_of(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        _ => panic!("{exit:?}"),
    }
}

#[test]
fn a_shutdown_that_had_to_kill_says_so() {
    for _ in 0..5 {
        let executor = executor_with(|config| config.grace_ms = 100);
        let processes: Vec<_> =
            (0..4).map(|_| executor.start("trap '' TERM; echo up; while :; do sleep 0.05; done").unwrap()).collect();
        for process in &processes {
            until("it is deaf", || stream_of(process, dsh::Stream::Stdout) == b"up\n");
        }
        executor.shutdown(None).unwrap();
        for process in processes {
            let outcome = process.info().unwrap().outcome.unwrap();
            assert_eq!((outcome.stage, outcome.cause), (StopStage::Kill, Some(dsh::StopBy::Shutdown)));
        }
    }
}

#[test]
fn a_shutdown_in_many_short_calls_tells_once_and_kills_in_the_end() {
    let executor = executor_with(|config| config.grace_ms = 400);
    let mark = Mark::new();
    let polite = executor
        .start("trap 'echo bye; sleep 0.05; exit 0' TERM; echo up; while :; do sleep 0.05; done 2>/dev/null")
        .unwrap();
    until("it is up", || stream_of(&polite, dsh::Stream::Stdout) == b"up\n");
    let stray = "setsid bash -c 'trap \"\" TERM; exec >/dev/null 2>&1; while :; do sleep 0.1; done' & echo left";
    assert_eq!(text(&executor.run(mark.request(stray)).unwrap().stdout), "left\n");
    until("it is over", || executor.shutdown(Some(std::time::Duration::from_millis(5))).is_ok());
    assert_eq!(stream_of(&polite, dsh::Stream::Stdout), b"up\nbye\n");
    mark.is_gone();
}
