//! What a command costs through this library, as ratios to the same work done otherwise in the same run.
//!
//! Absolute times say little on a shared machine, so both sides of a ratio are measured in turn and their medians are
//! compared. `make bench` prints the table; nothing here passes or fails.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dsh::{Config, Executor, Request};

/// One comparison: our way of doing it, and the other.
struct Case<'a> {
    name: &'a str,
    rounds: usize,
    ours: Box<dyn FnMut() + 'a>,
    other: Box<dyn FnMut() + 'a>,
}

fn main() {
    let executor = Executor::new(&Config { grace_ms: 500, ..Config::default() }).expect("an executor");
    // `cargo bench` passes flags of its own; a word is a filter.
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!("{:<34} {:>11} {:>11} {:>7}", "work (ours : other)", "ours", "other", "ratio");
    let ballast: Vec<u8>;
    for case in cases(&executor).into_iter().filter(|case| case.name.contains(&filter)) {
        compare(case);
    }
    if "host of 1 GiB".contains(&filter) {
        // A fork would copy the page tables of this; neither side should notice.
        ballast = vec![1; 1 << 30];
        compare(Case {
            name: "true in a host of 1 GiB : std",
            rounds: 200,
            ours: Box::new(|| ours(&executor, "true")),
            other: Box::new(|| std_output("true")),
        });
        assert_eq!(ballast.len(), 1 << 30);
    }
}

fn cases(executor: &Executor) -> Vec<Case<'_>> {
    let against = |name, rounds, command: &'static str, other: Box<dyn FnMut()>| Case {
        name,
        rounds,
        ours: Box::new(move || ours(executor, command)),
        other,
    };
    vec![
        against("true : std output", 300, "true", Box::new(|| std_output("true"))),
        against("true : sh -c by system(3)", 300, "true", Box::new(|| system(c"bash -c true"))),
        against(
            "2 GiB of zeros : 64 KiB reads",
            5,
            "head -c 2147483648 /dev/zero",
            Box::new(|| std_drain("head -c 2147483648 /dev/zero")),
        ),
        against(
            "dd bs=1M, 2 GiB : 64 KiB reads",
            5,
            "dd if=/dev/zero bs=1M count=2048 2>/dev/null",
            Box::new(|| std_drain("dd if=/dev/zero bs=1M count=2048 2>/dev/null")),
        ),
        against(
            "64 MiB spilled : > file",
            15,
            "head -c 67108864 /dev/zero",
            Box::new(|| std_output("head -c 67108864 /dev/zero >/tmp/dsh-bench-$$; rm /tmp/dsh-bench-$$")),
        ),
        against(
            "1 M lines, one by one : >/dev/null",
            10,
            "stdbuf -oL seq 1000000",
            Box::new(|| std_output("stdbuf -oL seq 1000000 >/dev/null")),
        ),
        against(
            "bash echo, 200 k : >/dev/null",
            7,
            "for ((i = 0; i < 200000; i++)); do echo $i; done",
            Box::new(|| std_output("{ for ((i = 0; i < 200000; i++)); do echo $i; done; } >/dev/null")),
        ),
        Case {
            name: "kill to settled : kill(2) to wait",
            rounds: 100,
            ours: Box::new(|| {
                let process = executor.start("exec sleep 300").expect("a process");
                process.kill().expect("a kill");
                process.wait(None).expect("its end");
            }),
            other: Box::new(|| {
                let mut child = Command::new("bash").args(["-c", "exec sleep 300"]).spawn().expect("a child");
                child.kill().expect("a kill");
                child.wait().expect("its end");
            }),
        },
    ]
}

fn compare(mut case: Case<'_>) {
    (case.ours)(); // once each to warm up
    (case.other)();
    let (mut ours, mut other) = (Vec::new(), Vec::new());
    for round in 0..case.rounds {
        // In turn, and each as often first.
        if round % 2 == 0 {
            ours.push(time(&mut case.ours));
            other.push(time(&mut case.other));
        } else {
            other.push(time(&mut case.other));
            ours.push(time(&mut case.ours));
        }
    }
    let (ours, other) = (median(ours), median(other));
    let ratio = ours.as_secs_f64() / other.as_secs_f64();
    println!("{:<34} {:>11.1?} {:>11.1?} {:>7.2}", case.name, ours, other, ratio);
}

fn time(work: &mut dyn FnMut()) -> Duration {
    let since = Instant::now();
    work();
    since.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ours(executor: &Executor, command: &str) {
    let request = Request { timeout_ms: 600_000, ..Request::new(command) };
    let result = executor.run(request).expect("a result");
    assert!(!result.outcome.timed_out(), "{command} timed out");
}

fn bash(command: &str) -> Command {
    let mut bash = Command::new("/bin/bash");
    bash.args(["-c", command]).process_group(0).stdin(Stdio::null());
    bash
}

fn std_output(command: &str) {
    bash(command).output().expect("an output");
}

/// The usual reader: a default pipe, 64 KiB at a time, nothing kept.
fn std_drain(command: &str) {
    let mut child = bash(command).stdout(Stdio::piped()).spawn().expect("a child");
    let mut stdout = child.stdout.take().expect("its output");
    let mut buffer = vec![0; 64 << 10];
    while stdout.read(&mut buffer).expect("a read") > 0 {}
    child.wait().expect("its end");
}

fn system(command: &std::ffi::CStr) {
    // SAFETY: a NUL-terminated string.
    unsafe { libc::system(command.as_ptr()) };
}
