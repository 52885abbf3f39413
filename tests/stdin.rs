//! A command's standard input: nothing by default, given bytes written without blocking anything, and then closed.

mod common;

use std::time::{Duration, Instant};

use common::*;
use dsh::{Exit, Request, RunResult, StopStage};

const MIB: usize = 1 << 20;

fn run(command: &str, stdin: Vec<u8>) -> RunResult {
    in_time(|| executor().run(request(command, |request| request.stdin = Some(stdin))).unwrap())
}

#[test]
fn without_input_a_command_reads_the_end_at_once() {
    let executor = executor();
    for (command, expected) in [
        ("cat; echo $?", "0\n"),
        ("read x; echo \"got=$x $?\"", "got= 1\n"),
        ("grep foo || true", ""),
        ("readlink /proc/self/fd/0", "/dev/null\n"),
        ("[ -t 0 ] || echo no tty", "no tty\n"),
    ] {
        let result = in_time(|| executor.run(command).unwrap());
        assert_eq!((text(&result.stdout).as_str(), result.stdin_written), (expected, 0), "{command}");
    }
    let process = executor.start("cat; echo $?").unwrap();
    in_time(|| process.wait(None).unwrap());
    assert_eq!(process.read_output().unwrap().bytes, b"0\n");
}

#[test]
fn the_hosts_own_stdin_is_not_touched() {
    let piped = |host: &mut std::process::Command| {
        let file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut &file, b"the host's").unwrap();
        std::io::Seek::rewind(&mut &file).unwrap();
        host.stdin(file);
    };
    in_own_process_with(test_name!(), piped, || {
        let executor = executor();
        assert_eq!(stdout_of(&executor, "cat"), "");
        executor.run(request("cat", |request| request.stdin = Some(b"x".to_vec()))).unwrap();
        let mut input = String::new();
        std::io::Read::read_to_string(&mut std::io::stdin(), &mut input).unwrap();
        assert_eq!(input, "the host's");
    });
}

#[test]
fn given_bytes_arrive_and_are_followed_by_the_end() {
    for bytes in [b"".to_vec(), b"one line".to_vec(), (0..=255).collect()] {
        let result = run("cat", bytes.clone());
        assert_eq!((result.stdin_written as usize, result.stdout.bytes), (bytes.len(), bytes));
    }
}

#[test]
fn big_input_is_written_while_output_is_read() {
    let executor = executor_with(|config| config.max_output_bytes = MIB as u64);
    let bytes: Vec<u8> = (0..16 * MIB / 4).flat_map(|number| (number as u32 | 0x8080_8080).to_le_bytes()).collect();
    let cat = request("cat", |request| request.stdin = Some(bytes.clone()));
    let result = in_time(|| executor.run(cat).unwrap());
    assert_eq!((result.stdin_written as usize, result.stdout.total as usize), (16 * MIB, 16 * MIB));
    assert!(std::fs::read(result.stdout.spill_path.as_ref().unwrap()).unwrap() == bytes);

    let process = executor.start(request("cat", |request| request.stdin = Some(bytes.clone()))).unwrap();
    in_time(|| process.wait(None).unwrap());
    let info = process.info().unwrap();
    assert_eq!((info.stdin_written as usize, info.totals[0] as usize), (16 * MIB, 16 * MIB));
}

#[test]
fn a_command_that_never_reads_its_input_still_times_out() {
    let sleep = request("sleep 60", |request| {
        (request.stdin, request.timeout_ms) = (Some(vec![b'x'; MIB]), 400);
    });
    let began = Instant::now();
    let result = in_time(|| executor().run(sleep).unwrap());
    assert!(began.elapsed() >= Duration::from_millis(400) && result.outcome.timed_out());
    assert_eq!(result.outcome.stage, StopStage::Term);
    assert!((1..MIB as u64).contains(&result.stdin_written), "what the pipe took: {}", result.stdin_written);
}

#[test]
fn a_background_command_that_never_reads_its_input_blocks_nobody() {
    let executor = executor();
    let lazy = executor.start(request("sleep 60", |request| request.stdin = Some(vec![b'x'; MIB]))).unwrap();
    let other = executor.start(request("cat", |request| request.stdin = Some(b"through".to_vec()))).unwrap();
    in_time(|| other.wait(None).unwrap());
    assert_eq!(other.read_output().unwrap().bytes, b"through");
    lazy.kill().unwrap();
    in_time(|| lazy.wait(None).unwrap());
    assert!(lazy.info().unwrap().stdin_written < MIB as u64);
}

/// Commands that don't read all of a mebibyte, and the code each exits with.
const UNREAD: [(&str, i32); 5] = [
    ("exit 3", 3),
    ("exec <&-; sleep .2; exit 4", 4),
    ("head -c 10 >/dev/null", 0),
    ("head -c 100000 >/dev/null; exec <&-; exit 5", 5),
    ("kill -9 $$", -9),
];

#[test]
fn a_command_that_stops_reading_is_no_error_and_the_count_taken_is_told() {
    for (command, expected) in UNREAD {
        let result = run(command, vec![b'x'; MIB]);
        match result.outcome.exit {
            Exit::Code(code) => assert_eq!(code, expected, "{command}"),
            Exit::Signal { number, .. } => assert_eq!(-number, expected, "{command}"),
            other => panic!("{other:?}"),
        }
        assert!(result.stdin_written < MIB as u64, "{command}: {}", result.stdin_written);
        assert_eq!(result.outcome.cause, None);
    }
    assert!(run(UNREAD[3].0, vec![b'x'; MIB]).stdin_written >= 100_000);
}

#[test]
fn a_host_with_the_default_disposition_never_gets_a_sigpipe() {
    in_own_process(test_name!(), || {
        // SAFETY: a plain system call in a process of our own.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let executor = executor();
        for (command, expected) in UNREAD {
            let with_input = || Request { stdin: Some(vec![b'x'; MIB]), ..Request::new(command) };
            let result = in_time(|| executor.run(with_input()).unwrap());
            assert!(expected < 0 || code(&result) == Some(expected), "{command}");
            let process = executor.start(with_input()).unwrap();
            in_time(|| process.wait(None).unwrap());
        }
        // SAFETY: as above.
        let disposition = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        assert_eq!(disposition, libc::SIG_DFL, "the host's disposition was changed");
    });
}

#[test]
fn a_sigpipe_that_the_host_blocks_is_not_left_pending() {
    in_own_process(test_name!(), || {
        let set = nix::sys::signal::SigSet::from(nix::sys::signal::Signal::SIGPIPE);
        set.thread_block().unwrap();
        executor().run(request("exec <&-; exit 4", |request| request.stdin = Some(vec![b'x'; MIB]))).unwrap();
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let pending = |name| status.lines().find(|line| line.starts_with(name)).unwrap().ends_with("0000000000000000");
        assert!(pending("SigPnd") && pending("ShdPnd"), "{status}");
        assert!(nix::sys::signal::SigSet::thread_get_mask().unwrap().contains(nix::sys::signal::Signal::SIGPIPE));
    });
}
