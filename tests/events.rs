//! Events of background processes: a descriptor for poll loops, hints that coalesce, and ends that come once.

mod common;

use std::collections::HashMap;
use std::time::Instant;

use common::*;
use dsh::{Event, EventKind, Executor, Status, Stream};

/// Whether the descriptor is readable within so many milliseconds.
fn is_readable(executor: &Executor, limit: i32) -> bool {
    let mut polled = libc::pollfd { fd: executor.event_fd().unwrap(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, a local.
    unsafe { libc::poll(&mut polled, 1, limit) == 1 }
}

/// Waits for the next event as an event loop does.
#[track_caller]
fn next(executor: &Executor) -> Event {
    let began = Instant::now();
    loop {
        if let Some(event) = executor.next_event().unwrap() {
            return event;
        }
        assert!(began.elapsed() < HANG, "no event came");
        is_readable(executor, 1_000);
    }
}

/// All events until one of this kind.
#[track_caller]
fn events_until(executor: &Executor, last: EventKind) -> Vec<Event> {
    let mut events = vec![next(executor)];
    while events[events.len() - 1].kind != last {
        events.push(next(executor));
    }
    events
}

#[test]
fn the_descriptor_is_readable_as_long_as_events_wait() {
    let executor = executor();
    assert!(!is_readable(&executor, 0));
    let _process = executor.start("echo x; sleep 60").unwrap();
    assert!(is_readable(&executor, 20_000));
    assert!(is_readable(&executor, 0), "looking does not consume");
    while executor.next_event().unwrap().is_some() {}
    assert!(!is_readable(&executor, 50));
    assert_eq!(executor.event_fd().unwrap(), executor.event_fd().unwrap());
}

#[test]
fn each_end_is_announced_once_and_in_order() {
    let executor = executor();
    executor.event_fd().unwrap();
    for command in ["exit 3", "echo out; echo err >&2", "sleep .5 & exit 0", "kill -9 $$", "exec >&- 2>&-; sleep .1"] {
        let process = executor.start(request(command, |request| request.tag = 42)).unwrap();
        let events = events_until(&executor, EventKind::Quiescent);
        assert!(events.iter().all(|event| (event.process_id, event.tag) == (process.id(), 42)));
        let ends: Vec<_> = events.iter().map(|event| event.kind).filter(|kind| *kind != EventKind::Output).collect();
        assert_eq!(ends, [EventKind::Exit, EventKind::Settled, EventKind::Quiescent], "{command}");
        assert!(!is_readable(&executor, 30), "{command}: something came after the end");
    }
}

#[test]
fn what_an_event_announces_is_there_when_it_comes() {
    let executor = executor();
    executor.event_fd().unwrap();
    let process = executor.start("echo one; sleep .1; echo two >&2; sleep .7 & exit 4").unwrap();
    let mut read = Vec::new();
    loop {
        let kind = next(&executor).kind;
        let info = process.info().unwrap();
        match kind {
            EventKind::Output => read.extend(process.read_output().unwrap().bytes),
            EventKind::Exit => assert_eq!(info.outcome.unwrap().exit, dsh::Exit::Code(4)),
            EventKind::Settled => {
                assert_eq!((info.status, info.outcome.unwrap().pipes_held), (Status::Completed, true));
                process.wait(Some(std::time::Duration::ZERO)).unwrap();
            }
            _ => {
                assert!(info.quiescent && info.outcome.unwrap().survivors.is_empty());
                break;
            }
        }
    }
    assert_eq!(read, b"one\n[stderr]\ntwo\n");
}

#[test]
fn reading_on_output_events_alone_gives_everything() {
    let executor = executor_with(|config| config.max_output_bytes = 8 << 20);
    executor.event_fd().unwrap();
    let process = executor.start("for i in $(seq 50); do seq 2000; sleep .002; done").unwrap();
    let mut all = Vec::new();
    loop {
        if next(&executor).kind == EventKind::Output {
            let chunk = process.read_output().unwrap();
            all.extend(chunk.bytes);
            if chunk.end {
                break;
            }
        }
    }
    let once: String = (1..=2_000).map(|number| format!("{number}\n")).collect();
    assert!(String::from_utf8(all).unwrap() == once.repeat(50));
}

#[test]
fn events_of_one_kind_coalesce() {
    let executor = executor();
    executor.event_fd().unwrap();
    let process = executor.start("for i in $(seq 3000); do echo $i; done; sleep 60").unwrap();
    until("all is there", || stream_of(&process, Stream::Stdout).ends_with(b"\n3000\n"));
    let count = std::iter::from_fn(|| executor.next_event().unwrap()).count();
    assert!((1..=2).contains(&count), "{count} events wait");
}

#[test]
fn events_of_many_processes_are_told_apart_and_none_is_lost() {
    let executor = executor();
    executor.event_fd().unwrap();
    let start = |tag| executor.start(request("echo x; exit 1", |request| request.tag = tag)).unwrap();
    let processes: Vec<_> = (100..140).map(start).collect();
    let mut seen: HashMap<u64, Vec<EventKind>> = HashMap::new();
    while seen.values().filter(|kinds| kinds.contains(&EventKind::Quiescent)).count() < processes.len() {
        let event = next(&executor);
        assert_eq!(
            processes.iter().find(|process| process.id() == event.process_id).unwrap().info().unwrap().tag,
            event.tag
        );
        seen.entry(event.tag).or_default().push(event.kind);
    }
    for (tag, kinds) in seen {
        for kind in [EventKind::Exit, EventKind::Settled, EventKind::Quiescent] {
            assert_eq!(kinds.iter().filter(|one| **one == kind).count(), 1, "{tag}: {kinds:?}");
        }
        assert!(kinds.contains(&EventKind::Output));
    }
}

#[test]
fn foreground_runs_and_forgotten_processes_have_no_events() {
    let executor = executor();
    executor.event_fd().unwrap();
    executor.run("echo x; sleep .3 &").unwrap();
    drop(executor.start("echo x; sleep .1").unwrap());
    until("both are over", || executor.stats().unwrap().live == 0);
    assert!(!is_readable(&executor, 20));
    assert_eq!(executor.next_event().unwrap(), None);
}

#[test]
fn without_anybody_asking_no_events_are_kept() {
    let executor = executor();
    let process = executor.start("echo x").unwrap();
    process.wait(None).unwrap();
    assert_eq!(executor.next_event().unwrap(), None);
    assert!(!is_readable(&executor, 0));
}

#[test]
fn a_shutdown_announces_the_ends_it_has_brought() {
    let executor = executor();
    executor.event_fd().unwrap();
    let process = executor.start("sleep 60").unwrap();
    executor.shutdown(None).unwrap();
    let kinds: Vec<_> = std::iter::from_fn(|| executor.next_event().unwrap()).map(|event| event.kind).collect();
    for kind in [EventKind::Exit, EventKind::Settled, EventKind::Quiescent] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert_eq!(process.info().unwrap().status, Status::Killed);
}
