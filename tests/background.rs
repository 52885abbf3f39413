//! Background processes: started at once, killed once, waited for with limits that never kill, owned by the executor.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::*;
use dsh::{CancelToken, ErrorKind, Exit, Process, Request, Status, StopBy, StopStage, Stream};

#[track_caller]
fn wait(process: &Process) {
    in_time(|| process.wait(None).unwrap());
}

#[test]
fn start_returns_at_once_and_no_timeout_applies() {
    let executor = executor_with(|config| (config.timeout_ms, config.max_timeout_ms) = (100, 100));
    let began = Instant::now();
    let process = executor.start(request("sleep 1.2; exit 8", |request| request.timeout_ms = 100)).unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    let info = process.info().unwrap();
    assert_eq!((info.status, info.quiescent, info.outcome), (Status::Running, false, None));
    wait(&process);
    let info = process.info().unwrap();
    let outcome = info.outcome.unwrap();
    assert_eq!((info.status, outcome.exit, outcome.cause), (Status::Completed, Exit::Code(8), None));
    assert!(outcome.wall >= Duration::from_millis(1_200));
}

#[test]
fn kill_says_once_that_there_was_something_to_kill() {
    let executor = executor();
    let process = executor.start("sleep 60").unwrap();
    let threads: Vec<_> =
        (0..8).map(|_| process.clone()).map(|process| thread::spawn(move || process.kill().unwrap())).collect();
    let answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(answers.iter().filter(|answer| **answer).count(), 1, "{answers:?}");
    wait(&process);
    assert!(!process.kill().unwrap());
    let outcome = process.info().unwrap().outcome.unwrap();
    assert_eq!(
        (outcome.cause, outcome.stopped_by, outcome.stage),
        (Some(StopBy::Kill), Some(StopBy::Kill), StopStage::Term)
    );
    assert!(outcome.aborted() && !outcome.timed_out());
}

#[test]
fn kill_after_a_normal_end_says_false_and_changes_nothing() {
    let executor = executor();
    let process = executor.start("exit 3").unwrap();
    wait(&process);
    let before = process.info().unwrap();
    assert!(!process.kill().unwrap());
    assert_eq!((before.status, process.info().unwrap().status), (Status::Completed, Status::Completed));
    assert_eq!(process.info().unwrap().outcome.unwrap().cause, None);
}

#[test]
fn kill_after_a_normal_end_ends_what_was_left_behind() {
    let executor = executor();
    let process = executor.start("(trap '' TERM; exec sleep 60) & echo $!; exit 2").unwrap();
    wait(&process);
    let pid = pids_in(&lines_of(&process, 1)[0])[0];
    let info = process.info().unwrap();
    assert!(is_alive(pid) && !info.quiescent);
    assert_eq!(info.outcome.unwrap().survivors.iter().map(|survivor| survivor.pid).collect::<Vec<_>>(), [pid]);
    assert!(!process.kill().unwrap());
    until("nothing is left", || process.info().unwrap().quiescent);
    assert!(!is_alive(pid));
    let info = process.info().unwrap();
    assert_eq!((info.status, info.outcome.unwrap().survivors), (Status::Completed, vec![]));
}

#[test]
fn the_status_is_set_once() {
    let executor = executor();
    for (command, status) in [
        ("exit 0", Status::Completed),
        ("exit 255", Status::Completed),
        ("kill -TERM $$", Status::Killed),
        ("kill -SEGV $$; sleep 9", Status::Killed),
        ("sleep 60 & exit 1", Status::Completed),
    ] {
        let process = executor.start(command).unwrap();
        wait(&process);
        for _ in 0..3 {
            assert_eq!(process.info().unwrap().status, status, "{command}");
            process.kill().unwrap();
        }
        until("it is quiescent", || process.info().unwrap().quiescent);
        assert_eq!(process.info().unwrap().status, status, "{command}");
    }
}

#[test]
fn a_killed_command_that_exits_0_is_killed_nevertheless() {
    let executor = executor_with(|config| config.grace_ms = 10_000);
    let process = executor.start("trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done 2>/dev/null").unwrap();
    lines_of(&process, 1);
    process.kill().unwrap();
    wait(&process);
    let info = process.info().unwrap();
    assert_eq!((info.status, info.outcome.unwrap().exit), (Status::Killed, Exit::Code(0)));
}

#[test]
fn a_wait_with_a_limit_never_kills() {
    let executor = executor();
    let process = executor.start("sleep 60").unwrap();
    for limit in [Duration::ZERO, Duration::from_millis(50)] {
        let began = Instant::now();
        let error = process.wait(Some(limit)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(began.elapsed() >= limit);
    }
    assert_eq!(process.info().unwrap().status, Status::Running);
    let waiter = thread::spawn({
        let process = process.clone();
        move || process.wait(Some(Duration::MAX))
    });
    process.kill().unwrap();
    waiter.join().unwrap().unwrap();
    process.wait(Some(Duration::ZERO)).unwrap();
}

#[test]
fn dropping_a_handle_does_not_kill() {
    let mark = Mark::new();
    let executor = executor();
    drop(executor.start(mark.request("setsid sleep 60 & sleep 60")).unwrap());
    until("both sleep", || mark.alive().len() >= 3);
    executor.run("sleep .2").unwrap();
    assert!(mark.alive().len() >= 3);
    assert_eq!(executor.stats().unwrap().live, 1);
    executor.shutdown(None).unwrap();
    mark.is_gone();
}

#[test]
fn an_unread_process_goes_on_writing_after_its_handle_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let executor = executor();
    let command = format!("seq 100000; seq 100000 >&2; echo $? >'{}/done'", folder.path().display());
    drop(executor.start(command.as_str()).unwrap());
    until("it has written all", || std::fs::read_to_string(folder.path().join("done")).is_ok_and(|text| text == "0\n"));
    until("it is forgotten", || executor.stats().unwrap().live == 0);
}

#[test]
fn numbers_and_tags_tell_processes_apart() {
    let executor = executor();
    let [one, two] = [7, u64::MAX].map(|tag| executor.start(request("exit 0", |request| request.tag = tag)).unwrap());
    let run = executor.run("true").unwrap();
    assert!(one.id() != two.id() && two.id() != run.process_id && one.id() != run.process_id);
    assert_eq!((one.info().unwrap().tag, two.info().unwrap().tag), (7, u64::MAX));
    assert_eq!(one.info().unwrap().id, one.id());
}

#[test]
fn a_cancelled_token_starts_nothing() {
    let cancel = CancelToken::new();
    cancel.cancel();
    assert!(cancel.is_cancelled());
    let executor = executor();
    let folder = tempfile::tempdir().unwrap();
    let touch = || {
        request("touch it", |request| {
            (request.cancel, request.workdir) = (Some(cancel.clone()), Some(folder.path().into()));
        })
    };
    assert_eq!(executor.run(touch()).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(executor.start(touch()).map(|_| ()).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn one_token_ends_many_commands_from_another_thread() {
    let (mark, cancel) = (Mark::new(), CancelToken::new());
    let executor = executor();
    let sleep = || Request { cancel: Some(cancel.clone()), ..mark.request("sleep 60 & wait") };
    let processes: Vec<_> = (0..6).map(|_| executor.start(sleep()).unwrap()).collect();
    let untouched = executor.start("sleep 60").unwrap();
    let outcomes = thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| executor.run(sleep()).unwrap().outcome)).collect();
        until("all run", || mark.alive().len() >= 20);
        thread::spawn({
            let cancel = cancel.clone();
            move || cancel.cancel()
        });
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(outcomes.iter().all(|outcome| outcome.cause == Some(StopBy::Cancel) && outcome.aborted()));
    for process in &processes {
        wait(process);
        let info = process.info().unwrap();
        assert_eq!((info.status, info.outcome.unwrap().cause), (Status::Killed, Some(StopBy::Cancel)));
    }
    assert_eq!(untouched.info().unwrap().status, Status::Running);
    until("all is gone", || mark.alive().is_empty());
}

#[test]
fn a_token_that_is_cancelled_after_the_end_does_nothing() {
    let cancel = CancelToken::new();
    let executor = executor();
    let result = executor.run(request("exit 2", |request| request.cancel = Some(cancel.clone()))).unwrap();
    let process = executor.start(request("exit 3", |request| request.cancel = Some(cancel.clone()))).unwrap();
    wait(&process);
    cancel.cancel();
    assert_eq!((code(&result), result.outcome.aborted()), (Some(2), false));
    let info = process.info().unwrap();
    assert_eq!((info.status, info.outcome.unwrap().cause), (Status::Completed, None));
}

#[test]
fn shutdown_ends_everything_from_any_thread_any_number_of_times() {
    let mark = Mark::new();
    let executor = executor();
    let processes: Vec<_> =
        (0..5).map(|_| executor.start(mark.request("trap '' TERM; sleep 60 & sleep 61")).unwrap()).collect();
    executor.run(mark.request("sleep 60 </dev/null >/dev/null 2>&1 &")).unwrap();
    until("all sleep", || mark.alive().len() >= 16);
    let began = Instant::now();
    thread::scope(|scope| {
        (0..6).for_each(|_| drop(scope.spawn(|| executor.shutdown(None).unwrap())));
        let run = scope.spawn(|| executor.run("sleep 60"));
        if let Ok(result) = in_time(|| run.join().unwrap()) {
            assert_eq!(result.outcome.cause, Some(StopBy::Shutdown));
        }
    });
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(6), "{took:?}");
    mark.is_gone();
    for process in processes {
        let info = process.info().unwrap();
        assert_eq!((info.status, info.quiescent), (Status::Killed, true));
        assert_eq!(info.outcome.unwrap().cause, Some(StopBy::Shutdown));
    }
    executor.shutdown(None).unwrap();
    executor.clone().shutdown(Some(Duration::ZERO)).unwrap();
}

#[test]
fn after_a_shutdown_no_command_is_started() {
    let executor = executor();
    let process = executor.start("echo kept").unwrap();
    wait(&process);
    executor.shutdown(None).unwrap();
    assert_eq!(executor.run("true").unwrap_err().kind(), ErrorKind::Shutdown);
    assert_eq!(executor.start("true").map(|_| ()).unwrap_err().kind(), ErrorKind::Shutdown);
    assert_eq!((executor.stats().unwrap().live, executor.stats().unwrap().guard_pid), (0, None));
    assert!(!process.kill().unwrap());
    assert_eq!(stream_of(&process, Stream::Stdout), b"kept\n");
}

#[test]
fn a_shutdown_with_a_limit_that_is_too_short_is_an_error_and_can_be_repeated() {
    let mark = Mark::new();
    let executor = executor_with(|config| config.grace_ms = 700);
    executor.start(mark.request("trap '' TERM; echo x; while :; do sleep .01; done")).unwrap();
    let process = executor.start(mark.request("trap '' TERM; echo up; exec sleep 60")).unwrap();
    lines_of(&process, 1);
    let error = executor.shutdown(Some(Duration::from_millis(50))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(executor.run("true").unwrap_err().kind(), ErrorKind::Shutdown);
    in_time(|| executor.shutdown(None).unwrap());
    mark.is_gone();
}

#[test]
fn a_hundred_processes_at_once_are_all_seen_to_their_ends() {
    let executor = executor();
    let commands = (0..100).map(|i| format!("echo {i}; exit {i}"));
    let processes: Vec<_> = commands.map(|command| executor.start(command.as_str()).unwrap()).collect();
    for (i, process) in processes.iter().enumerate() {
        wait(process);
        assert_eq!(process.info().unwrap().outcome.unwrap().exit, Exit::Code(i as i32));
        assert_eq!(stream_of(process, Stream::Stdout), format!("{i}\n").as_bytes());
    }
    assert_eq!(executor.stats().unwrap().threads, 2);
}

#[test]
fn waiting_for_pipes_that_outlive_their_shell_takes_no_processor_time() {
    fn used() -> Duration {
        let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).unwrap();
        [usage.user_time(), usage.system_time()]
            .iter()
            .map(|time| Duration::from_micros(time.num_microseconds() as u64))
            .sum()
    }
    use nix::sys::time::TimeValLike;
    in_own_process("waiting_for_pipes_that_outlive_their_shell_takes_no_processor_time", || {
        let executor = executor_with(|config| config.drain_ms = 1_000);
        let process = executor.start("sleep 60 & echo left").unwrap();
        until("the shell has exited", || process.info().unwrap().outcome.is_some());
        let (began, before) = (Instant::now(), used());
        wait(&process);
        assert!(process.info().unwrap().outcome.unwrap().pipes_held);
        let (passed, used) = (began.elapsed(), used() - before);
        assert!(used < passed / 4, "{used:?} of {passed:?}");
    });
}
