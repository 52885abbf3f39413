//! Hosts that are special: each test runs in a process of its own that plays one.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::*;
use dsh::{CancelToken, ErrorKind, Executor, Exit, Request, SpawnPath, Status, StopStage, Survivors};

#[test]
fn a_host_that_ignores_and_blocks_signals_passes_none_of_it_on() {
    in_own_process(test_name!(), || {
        let mut all = nix::sys::signal::SigSet::empty();
        // SAFETY: plain system calls in a process of our own.
        unsafe {
            for signal in [libc::SIGPIPE, libc::SIGTERM, libc::SIGCHLD, libc::SIGINT, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
        for signal in (1..32).filter_map(|signal| nix::sys::signal::Signal::try_from(signal).ok()) {
            all.add(signal);
        }
        all.thread_set_mask().unwrap();
        let executor = executor();
        assert_eq!(stdout_of(&executor, "yes | head -1 >/dev/null; echo ${PIPESTATUS[0]}"), "141\n");
        let status = stdout_of(&executor, "exec cat /proc/self/status");
        let masks = status.lines().filter(|line| line.starts_with("SigBlk") || line.starts_with("SigIgn"));
        assert!(
            masks.clone().count() == 2 && masks.clone().all(|line| line.ends_with("\t0000000000000000")),
            "{status}"
        );
        let late = request("sleep 60", |request| request.timeout_ms = 200);
        let outcome = in_time(|| executor.run(late).unwrap().outcome);
        let by_term = Exit::Signal { number: libc::SIGTERM, core_dumped: false };
        assert!(outcome.exit == by_term || outcome.exit == Exit::Unknown, "{outcome:?}");
        assert_eq!((outcome.stage, outcome.timed_out()), (StopStage::Term, true));
        let process = executor.start("sleep 60").unwrap();
        process.kill().unwrap();
        in_time(|| process.wait(None).unwrap());
        assert_eq!(process.info().unwrap().status, Status::Killed);
    });
}

/// Whether the kernel keeps the status of a process that somebody else has reaped (6.15).
fn kernel_can_tell() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (6, 15)
}

/// Whatever the host does, a status is right or said to be unknown.
fn statuses_are_right_or_unknown(executor: &Executor, rounds: i32) {
    let mut unknown = 0;
    for expected in 0..rounds {
        let command = format!("exit {expected}");
        let process = executor.start(command.as_str()).unwrap();
        let foreground = in_time(|| executor.run(command.as_str()).unwrap().outcome.exit);
        in_time(|| process.wait(None).unwrap());
        for exit in [foreground, process.info().unwrap().outcome.unwrap().exit] {
            assert!(exit == Exit::Code(expected) || exit == Exit::Unknown, "{exit:?} instead of {expected}");
            unknown += u32::from(exit == Exit::Unknown);
        }
        let killed = executor.run("kill -USR1 $$").unwrap().outcome.exit;
        let by_signal = Exit::Signal { number: libc::SIGUSR1, core_dumped: false };
        assert!(killed == by_signal || killed == Exit::Unknown, "{killed:?}");
    }
    assert!(unknown == 0 || !kernel_can_tell(), "{unknown} unknown, though the kernel can tell");
}

#[test]
fn a_host_that_ignores_sigchld_gets_the_right_codes() {
    in_own_process(test_name!(), || {
        // SAFETY: a plain system call in a process of our own.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        let executor = executor();
        statuses_are_right_or_unknown(&executor, 60);
        in_time(|| executor.shutdown(None).unwrap());
        // SAFETY: as above.
        assert_eq!(unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) }, libc::SIG_IGN);
    });
}

#[test]
fn a_host_that_reaps_every_child_gets_the_right_codes_or_unknown_ones() {
    in_own_process(test_name!(), || {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // SAFETY: a plain system call.
                    if unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } <= 0 {
                        std::thread::yield_now();
                    }
                }
            });
            let executor = executor();
            statuses_are_right_or_unknown(&executor, 60);
            let mark = Mark::new();
            let late = Request { timeout_ms: 100, ..mark.request("setsid sleep 60 & sleep 60 & wait") };
            assert!(in_time(|| executor.run(late).unwrap()).outcome.timed_out());
            mark.is_gone();
            in_time(|| executor.shutdown(None).unwrap());
            over.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn spawning_is_no_slower_in_a_big_host() {
    in_own_process(test_name!(), || {
        let executor = executor();
        let fastest_of = |runs: u32| {
            let time = |_| {
                let began = Instant::now();
                executor.run(":").unwrap();
                began.elapsed()
            };
            (0..runs).map(time).min().unwrap()
        };
        fastest_of(20);
        let small = fastest_of(100);
        let mut ballast = vec![0u8; 1 << 30];
        ballast.chunks_mut(4096).for_each(|page| page[0] = 1);
        assert!(memory("VmRSS") >= 1 << 30);
        let big = fastest_of(100);
        assert_eq!(ballast[4096], 1);
        assert!(big < small * 3, "{big:?} with a gibibyte, {small:?} without");
        assert_eq!(executor.stats().unwrap().spawn_path, SpawnPath::Vfork);
    });
}

#[test]
fn every_call_in_a_forked_child_is_refused_and_touches_nothing() {
    in_own_process(test_name!(), || {
        let executor = executor();
        let mark = Mark::new();
        let process = executor.start(mark.request("echo up; sleep 60")).unwrap();
        lines_of(&process, 1);
        // SAFETY: the child calls nothing but the library, which promises to answer there, and `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let kinds = [
                executor.run("true").map(|_| ()),
                executor.start("true").map(|_| ()),
                executor.resolve("true").map(|_| ()),
                executor.config().map(|_| ()),
                executor.configure(&quick()),
                executor.stats().map(|_| ()),
                executor.event_fd().map(|_| ()),
                executor.next_event().map(|_| ()),
                executor.shutdown(None),
                process.kill().map(|_| ()),
                process.wait(None),
                process.info().map(|_| ()),
                process.read_output().map(|_| ()),
                process.read_stream(dsh::Stream::Stdout, 0, &mut [0; 9]).map(|_| ()),
            ]
            .map(|answer| answer.map_err(|error| error.kind()));
            let wrong = kinds.iter().position(|kind| *kind != Err(ErrorKind::Forked));
            drop((executor, process));
            // SAFETY: ends the child without running anything of the test harness.
            unsafe { libc::_exit(wrong.map_or(0, |at| 100 + at as i32)) };
        }
        let mut status = 0;
        // SAFETY: a plain system call.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0, "call number {} answered otherwise", (status >> 8) - 100);
        assert_eq!(process.info().unwrap().status, Status::Running);
        assert_eq!(stdout_of(&executor, "echo on"), "on\n");
        assert!(executor.stats().unwrap().guard_pid.is_some_and(is_alive), "the guard is still there");
        executor.shutdown(None).unwrap();
        mark.is_gone();
    });
}

#[test]
fn when_the_host_is_killed_every_tree_ends_with_it() {
    if plays_host(test_name!()) {
        let executor = executor();
        let mark = std::env::var_os("MARK_OF_TEST");
        let marked =
            |command: &str| Request { env: vec![("MARK_OF_TEST".into(), mark.clone())], ..Request::new(command) };
        executor.run(marked("(trap '' TERM; exec sleep 60 </dev/null >/dev/null 2>&1) & true")).unwrap();
        let process = executor
            .start(marked(
                "setsid sleep 60 & sleep 60 | cat & (trap '' TERM HUP; setsid sleep 60) & sleep .3; echo up; wait",
            ))
            .unwrap();
        lines_of(&process, 1);
        tell("ready");
        executor.run(marked("sleep 60; exit 1")).unwrap();
        return;
    }
    let mark = format!("{}-{}", std::process::id(), std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos());
    let mut host = host_command(test_name!()).env("MARK_OF_TEST", &mark).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| told(&line) == Some("ready")), "the host came so far");
    let left = || processes_with(&format!("MARK_OF_TEST={mark}"));
    until("all run", || left().len() >= 9);
    host.kill().unwrap();
    host.wait().unwrap();
    until("everything has ended", || left().is_empty());
}

/// What a host must have again after a shutdown.
#[derive(Debug, PartialEq, Eq)]
struct Baseline {
    files: usize,
    threads: usize,
    children: Vec<i32>,
}

fn baseline() -> Baseline {
    Baseline { files: open_files(), threads: threads(), children: children() }
}

#[test]
fn descriptors_threads_and_children_are_back_where_they_were_after_a_shutdown() {
    in_own_process(test_name!(), || {
        Executor::new(&quick()).unwrap().run("true").unwrap(); // what a process opens once
        let before = baseline();
        for _ in 0..3 {
            let executor = executor();
            executor.event_fd().unwrap();
            executor.run("seq 100000; sleep 60 & setsid sleep 60 </dev/null >/dev/null 2>&1 &").unwrap();
            executor.run(request("cat", |request| request.stdin = Some(vec![b'x'; 300_000]))).unwrap();
            executor.run(request("true", |request| request.workdir = Some("/nowhere".into()))).unwrap_err();
            let processes: Vec<_> = (0..20).map(|_| executor.start("echo x; sleep 60").unwrap()).collect();
            assert_eq!(threads(), before.threads + 2, "two threads, whatever the load");
            assert_eq!(executor.stats().unwrap().threads, 2);
            in_time(|| executor.shutdown(None).unwrap());
            assert_eq!((threads(), children()), (before.threads, vec![]));
            drop((processes, executor));
            assert_eq!(baseline(), before);
        }
        for shell in ["/nowhere/bash", "/etc/passwd"] {
            Executor::new(&dsh::Config { shell: Some(shell.into()), ..quick() }).unwrap_err();
        }
        drop(Executor::new(&quick()).unwrap());
        assert_eq!(baseline(), before);
    });
}

#[test]
fn an_executor_that_is_not_used_costs_no_process() {
    in_own_process(test_name!(), || {
        let executor = executor();
        assert_eq!((children(), executor.stats().unwrap().guard_pid), (vec![], None));
        let without = executor_with(|config| config.guard = false);
        without.run("true").unwrap();
        assert_eq!((children(), without.stats().unwrap().guard_pid), (vec![], None));
        executor.run("true").unwrap();
        let guard = executor.stats().unwrap().guard_pid.unwrap();
        assert_eq!(children(), [guard]);
        executor.shutdown(None).unwrap();
        assert!(!is_alive(guard));
    });
}

/// How many runs the soak makes; `DSH_SOAK` asks for more.
fn soak_runs() -> usize {
    match std::env::var("DSH_SOAK") {
        Err(_) => 200,
        Ok(runs) => runs.parse::<usize>().ok().filter(|runs| *runs > 1).unwrap_or(2_000),
    }
}

#[test]
fn mixed_runs_from_eight_threads_leave_nothing() {
    in_own_process(test_name!(), || {
        Executor::new(&quick()).unwrap().run("true").unwrap();
        let before = baseline();
        let mark = Mark::new();
        let executor = executor_with(|config| (config.grace_ms, config.drain_ms) = (150, 60));
        let per_thread = soak_runs() / 8;
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (executor, mark) = (&executor, &mark);
                scope.spawn(move || (0..per_thread).for_each(|round| one_of_many(executor, mark, thread + round)));
            }
        });
        in_time(|| executor.shutdown(None).unwrap());
        mark.is_gone();
        assert_eq!(executor.stats().unwrap().live, 0);
        drop(executor);
        assert_eq!(baseline(), before);
    });
}

fn one_of_many(executor: &Executor, mark: &Mark, number: usize) {
    match number % 8 {
        0 => assert_eq!(code(&executor.run(mark.request("exit 5")).unwrap()), Some(5)),
        1 => assert_eq!(executor.run(mark.request("seq 30000")).unwrap().stdout.total, 168_894),
        2 => {
            let run = Request { timeout_ms: 30, ..mark.request("sleep 60 & setsid sleep 60 & sleep 60") };
            let outcome = executor.run(run).unwrap().outcome;
            assert!(outcome.timed_out() && outcome.survivors.is_empty(), "{outcome:?}");
        }
        3 => {
            let run = Request { survivors: Survivors::Kill, ..mark.request("sleep 60 & exit 3") };
            let result = executor.run(run).unwrap();
            assert_eq!((code(&result), result.outcome.survivors.len()), (Some(3), 0));
        }
        4 => {
            let process = executor.start(mark.request("echo up; sleep 60")).unwrap();
            lines_of(&process, 1);
            assert!(process.kill().unwrap());
            in_time(|| process.wait(None).unwrap());
            assert_eq!(process.info().unwrap().status, Status::Killed);
        }
        5 => {
            let run = Request { stdin: Some(vec![b'x'; 100_000]), ..mark.request("wc -c") };
            assert_eq!(text(&executor.run(run).unwrap().stdout), "100000\n");
        }
        6 => {
            let cancel = CancelToken::new();
            let run = Request { cancel: Some(cancel.clone()), ..mark.request("sleep 60") };
            let process = executor.start(run).unwrap();
            cancel.cancel();
            in_time(|| process.wait(None).unwrap());
        }
        _ => drop(executor.start(mark.request("sleep .1; echo done")).unwrap()),
    }
}

#[test]
fn idle_background_processes_cost_little_memory() {
    in_own_process(test_name!(), || {
        let count = if std::env::var_os("DSH_SOAK").is_some() { 1_000 } else { 200 };
        let executor = executor();
        let start = |count: usize| -> Vec<_> { (0..count).map(|_| executor.start("exec sleep 60").unwrap()).collect() };
        let warm = start(50);
        let before = memory("VmRSS");
        let processes = start(count);
        let each = memory("VmRSS").saturating_sub(before) / count as u64;
        assert!(each < 8 << 10, "{each} bytes each");
        assert_eq!(executor.stats().unwrap().threads, 2);
        until("all have ended", || executor.shutdown(None).is_ok()); // how fast is another question
        drop((warm, processes));
    });
}

#[test]
fn a_host_whose_standard_descriptors_are_closed_can_run_commands() {
    in_own_process(test_name!(), || {
        // SAFETY: plain system calls in a process of our own; the numbers are given back before anything is printed.
        let saved = [0, 1, 2].map(|fd| unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 100) });
        (0..3).for_each(|fd| assert_eq!(unsafe { libc::close(fd) }, 0));
        let executor = Executor::new(&quick());
        let results = executor.as_ref().map(|executor| {
            let run = request("cat; echo out; echo err >&2", |request| request.stdin = Some(b"in\n".to_vec()));
            let process = executor.start(run.clone()).unwrap();
            let result = executor.run(run).unwrap();
            process.wait(None).unwrap();
            (result, process.read_output().unwrap())
        });
        // SAFETY: as above.
        saved.iter().zip(0..).for_each(|(saved, fd)| assert_eq!(unsafe { libc::dup2(*saved, fd) }, fd));
        let (result, chunk) = results.unwrap();
        assert_eq!((text(&result.stdout), text(&result.stderr)), ("in\nout\n".into(), "err\n".into()));
        assert_eq!(String::from_utf8(chunk.bytes).unwrap(), "in\nout\n[stderr]\nerr\n");
    });
}

#[test]
fn a_host_that_is_interrupted_by_signals_all_the_time_notices_nothing() {
    extern "C" fn nothing(_: i32) {}
    in_own_process(test_name!(), || {
        let action = nix::sys::signal::SigAction::new(
            nix::sys::signal::SigHandler::Handler(nothing),
            nix::sys::signal::SaFlags::empty(),
            nix::sys::signal::SigSet::empty(),
        );
        // SAFETY: the handler does nothing; no SA_RESTART, so that system calls are interrupted.
        unsafe { nix::sys::signal::sigaction(nix::sys::signal::Signal::SIGALRM, &action) }.unwrap();
        let every = libc::timeval { tv_sec: 0, tv_usec: 500 };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        // SAFETY: a plain system call with a valid pointer; the libc crate has no binding for it.
        unsafe { libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &timer, 0) };
        let executor = executor();
        let mut codes = BTreeMap::new();
        for _ in 0..20 {
            let result = in_time(|| executor.run("sleep .02; seq 20000 | tail -1; exit 6").unwrap());
            *codes.entry((code(&result), text(&result.stdout))).or_insert(0) += 1;
        }
        assert_eq!(codes, BTreeMap::from([((Some(6), "20000\n".to_owned()), 20)]));
        let late = request("sleep 60", |request| request.timeout_ms = 100);
        let outcome = in_time(|| executor.run(late).unwrap().outcome);
        assert!(outcome.timed_out() && outcome.wall >= Duration::from_millis(100));
        executor.shutdown(None).unwrap();
    });
}

#[test]
fn a_host_that_stands_still_past_the_drain_limit_loses_nothing_that_came_in_time() {
    in_own_process(test_name!(), || {
        let executor = executor_with(|config| config.drain_ms = 300);
        // The shell is gone at once. Its child stops the host, writes, and ends; then the host goes on, too late.
        let command = "HOST=$PPID; (sleep 0.05; kill -STOP $HOST
            (sleep 0.8; kill -CONT $HOST) >/dev/null 2>&1 & seq 1 9000) &";
        let expected: String = (1..=9000).map(|number| format!("{number}\n")).collect();
        let result = executor.run(command).unwrap();
        assert_eq!((text(&result.stdout), result.outcome.pipes_held), (expected.clone(), false));
        let process = executor.start(command).unwrap();
        in_time(|| process.wait(None).unwrap());
        assert!(!process.info().unwrap().outcome.unwrap().pipes_held);
        assert_eq!(stream_of(&process, dsh::Stream::Stdout), expected.into_bytes());
    });
}
