//! Foreground runs that nobody waits for: started like a background process, with the result of a run.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::time::Duration;

use common::*;
use dsh::{CancelToken, ErrorKind, EventKind, Executor, Request, RunResult, Status, StopBy, Stream, Survivors};

/// Starts it as foreground and waits for its settlement without blocking in the library: by being woken, unless it has
/// settled while it was attended to.
fn started(executor: &Executor, request: Request) -> RunResult {
    let (sender, woken) = channel();
    executor.set_wake(Some(waker(sender))).unwrap();
    let process = executor.start(Request { foreground: true, ..request }).unwrap();
    if process.wait(Some(Duration::ZERO)).is_ok() {
        return process.result().unwrap();
    }
    in_time(|| loop {
        while let Some(event) = executor.next_event().unwrap() {
            if event.process_id == process.id() && event.kind == EventKind::Settled {
                return process.result().unwrap();
            }
            assert!(event.kind != EventKind::Exit || process.info().unwrap().outcome.is_some());
        }
        woken.recv().unwrap();
    })
}

fn waker(sender: Sender<()>) -> Arc<dyn Fn() + Send + Sync> {
    let sender = std::sync::Mutex::new(sender);
    Arc::new(move || {
        // Late wake-ups may come when nobody waits any more.
        let _ = sender.lock().unwrap().send(());
    })
}

/// What does not differ from one run to the next.
fn facts(result: &RunResult) -> impl PartialEq + std::fmt::Debug {
    let outcome = &result.outcome;
    let stream = |captured: &dsh::Captured| {
        (captured.bytes.clone(), captured.total, captured.omitted, captured.spill_path.is_some())
    };
    (
        (outcome.exit, outcome.cause, outcome.stopped_by, outcome.stage),
        (outcome.pipes_held, outcome.held_by.len(), outcome.survivors.len()),
        (stream(&result.stdout), stream(&result.stderr), result.timeout_ms, result.stdin_written),
        result.scrubbed.clone(),
    )
}

#[test]
fn a_started_foreground_command_gives_what_a_run_gives() {
    let executor = executor_with(|config| (config.grace_ms, config.drain_ms) = (200, 50));
    let requests = [
        Request::new("echo out; echo err >&2; exit 3"),
        request("sleep 60", |request| request.timeout_ms = 100),
        request("trap 'echo bye; exit 0' TERM; sleep 60 & wait", |request| request.timeout_ms = 300),
        request("trap '' TERM; (trap '' TERM; sleep 60) & wait", |request| request.timeout_ms = 100),
        Request::new("sleep 60 & echo up"),
        request("sleep 60 >/dev/null 2>&1 & echo up", |request| request.survivors = Survivors::Kill),
        request("seq 100000", |request| request.stdout_max_bytes = 100),
        request("cat; echo end >&2", |request| (request.stdin, request.merge_stderr) = (Some(b"in".into()), true)),
        Request::new("kill -9 $$"),
    ];
    for request in requests {
        let ran = executor.run(request.clone()).unwrap();
        let command = String::from_utf8(request.command.clone()).unwrap();
        for attend_ms in [0, 20, 250, 600_000] {
            let started = started(&executor, Request { attend_ms, ..request.clone() });
            assert_eq!(facts(&started), facts(&ran), "{command}, attended to for {attend_ms} ms");
        }
    }
}

#[test]
fn what_survivors_write_after_the_settlement_is_in_no_result() {
    let executor = executor_with(|config| config.drain_ms = 20);
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let command =
        format!("echo early; (while [ ! -e {0} ]; do sleep 0.01; done; echo late; touch {0}.done) &", gate.display());
    let process = executor.start(request(command, |request| request.foreground = true)).unwrap();
    in_time(|| process.wait(None).unwrap());
    std::fs::write(&gate, "").unwrap();
    until("the survivor has written", || gate.with_extension("done").exists());
    assert_eq!(text(&process.result().unwrap().stdout), "early\n");
}

#[test]
fn there_is_no_result_before_the_settlement() {
    let executor = executor();
    let cancel = CancelToken::new();
    let process = executor
        .start(request("sleep 60", |request| (request.foreground, request.cancel) = (true, Some(cancel.clone()))))
        .unwrap();
    assert_eq!(process.result().unwrap_err().kind(), ErrorKind::TimedOut);
    cancel.cancel();
    in_time(|| process.wait(None).unwrap());
    assert_eq!(process.result().unwrap().outcome.cause, Some(StopBy::Cancel));
}

#[test]
fn a_forced_stop_is_through_when_a_foreground_command_settles() {
    let executor = executor_with(|config| config.grace_ms = 150);
    let mark = Mark::new();
    let command = "(trap '' TERM; exec sleep 60 >/dev/null 2>&1 </dev/null) & echo $!; exec sleep 60";
    let process = executor.start(Request { foreground: true, timeout_ms: 200, ..mark.request(command) }).unwrap();
    in_time(|| process.wait(None).unwrap());
    assert_eq!(mark.alive(), [0; 0]);
}

#[test]
fn a_background_process_has_a_result_without_a_timeout() {
    let executor = executor();
    let process = executor.start("echo hello; exit 4").unwrap();
    in_time(|| process.wait(None).unwrap());
    let result = process.result().unwrap();
    assert_eq!((code(&result), text(&result.stdout), result.timeout_ms), (Some(4), "hello\n".into(), 0));
}

#[test]
fn a_wake_is_dropped_with_the_executor_although_processes_are_held() {
    let executor = executor();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    executor
        .set_wake(Some(Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        })))
        .unwrap();
    let process = executor.start("true").unwrap();
    in_time(|| process.wait(None).unwrap());
    until("it was woken", || calls.load(Ordering::Relaxed) > 0);
    drop(executor);
    assert_eq!(Arc::strong_count(&calls), 1);
    drop(process);
}

#[test]
fn a_command_that_settles_while_it_is_attended_to_needs_no_other_thread_and_no_event() {
    let executor = executor();
    executor.event_fd().unwrap();
    let attended = |command| request(command, |request| (request.foreground, request.attend_ms) = (true, 600_000));
    let process = executor.start(attended("echo hi; exit 3")).unwrap();
    let info = process.info().unwrap();
    assert_eq!((info.status, info.quiescent), (Status::Completed, true));
    let result = process.result().unwrap();
    assert_eq!((text(&result.stdout), code(&result)), ("hi\n".to_owned(), Some(3)));
    assert_eq!(executor.next_event().unwrap(), None);
    let late = request("sleep 60", |request| {
        (request.foreground, request.attend_ms, request.timeout_ms) = (true, 600_000, 100)
    });
    assert!(executor.start(late).unwrap().result().unwrap().outcome.timed_out());
}

#[test]
fn what_is_not_over_when_the_attention_ends_goes_on() {
    let executor = executor();
    executor.event_fd().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let command = format!("echo one; until [ -e '{}' ]; do sleep .01; done; echo two; exit 4", go.display());
    let attended = request(command, |request| (request.foreground, request.attend_ms) = (true, 300));
    let process = executor.start(attended).unwrap();
    assert_eq!(process.info().unwrap().status, Status::Running);
    assert_eq!(executor.next_event().unwrap().map(|event| event.kind), Some(EventKind::Output), "what came meanwhile");
    assert_eq!(stream_of(&process, Stream::Stdout), b"one\n");
    std::fs::write(&go, "").unwrap();
    in_time(|| process.wait(None).unwrap());
    let result = process.result().unwrap();
    assert_eq!((text(&result.stdout), code(&result)), ("one\ntwo\n".to_owned(), Some(4)));
    until("its end is announced", || {
        executor.next_event().unwrap().is_some_and(|event| event.kind == EventKind::Settled)
    });
}

#[test]
fn a_shell_that_ends_within_the_attention_leaves_its_pipes_to_the_threads() {
    let executor = executor_with(|config| config.drain_ms = 1_500);
    executor.event_fd().unwrap();
    // Each of them is handed over with its shell gone and its pipes held; none must do another any harm.
    let attended = |command| request(command, |request| (request.foreground, request.attend_ms) = (true, 400));
    let holding: Vec<_> = (0..3).map(|_| executor.start(attended("sleep 60 & echo left")).unwrap()).collect();
    let plain = executor.start(request("read -t 1 <> <(:); echo plain", |request| request.foreground = true)).unwrap();
    in_time(|| plain.wait(None).unwrap());
    assert_eq!(text(&plain.result().unwrap().stdout), "plain\n");
    for process in holding {
        in_time(|| process.wait(None).unwrap());
        let result = process.result().unwrap();
        assert!(result.outcome.pipes_held && text(&result.stdout) == "left\n");
    }
}

#[test]
fn what_is_attended_to_can_be_cancelled_and_shut_down() {
    let cancel = CancelToken::new();
    let executor = executor();
    let attended = request("sleep 60", |request| {
        (request.foreground, request.attend_ms, request.cancel) = (true, 600_000, Some(cancel.clone()));
    });
    std::thread::scope(|scope| {
        let process = scope.spawn(|| executor.start(attended).unwrap());
        until("it runs", || executor.stats().unwrap().live == 1);
        cancel.cancel();
        let outcome = process.join().unwrap().result().unwrap().outcome;
        assert_eq!(outcome.cause, Some(StopBy::Cancel));
    });
    std::thread::scope(|scope| {
        let attended = request("sleep 60", |request| (request.foreground, request.attend_ms) = (true, 600_000));
        let process = scope.spawn(|| executor.start(attended).unwrap());
        until("it runs", || executor.stats().unwrap().live == 1);
        executor.shutdown(None).unwrap();
        assert_eq!(process.join().unwrap().result().unwrap().outcome.cause, Some(StopBy::Shutdown));
    });
}
