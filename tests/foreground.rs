//! Foreground runs that nobody waits for: started like a background process, with the result of a run.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;

use common::*;
use dsh::{CancelToken, ErrorKind, EventKind, Executor, Request, RunResult, StopBy, Survivors};

/// Starts it as foreground and waits for its settlement without blocking in the library: by being woken.
fn started(executor: &Executor, request: Request) -> RunResult {
    let (sender, woken) = channel();
    executor.set_wake(Some(waker(sender))).unwrap();
    let process = executor.start(Request { foreground: true, ..request }).unwrap();
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
        assert_eq!(facts(&started(&executor, request)), facts(&ran), "{command}");
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
