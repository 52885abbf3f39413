//! What is kept of the output: byte-exact tails, whole characters, true order when asked for, and bounded memory.

mod common;

use common::*;
use dsh::{Executor, Keep, Request, Stream};

fn seq(last: u32) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

#[test]
fn a_stream_up_to_the_cap_is_kept_whole() {
    let executor = executor_with(|config| config.max_output_bytes = 1_000);
    let result = executor.run("head -c 1000 /dev/zero | tr '\\0' x; head -c 999 /dev/zero | tr '\\0' y >&2").unwrap();
    assert_eq!((result.stdout.bytes.len(), result.stdout.total, result.stdout.omitted), (1_000, 1_000, 0));
    assert_eq!((result.stderr.bytes.len(), result.stderr.total, result.stderr.omitted), (999, 999, 0));
    assert_eq!((&result.stdout.spill_path, &result.stdout.spill_error), (&None, &None));
}

#[test]
fn of_a_longer_stream_exactly_the_tail_is_kept() {
    let expected = seq(50_000);
    for cap in [1, 2, 999, 1_000, 4_096, 65_535, 64_000, 200_001] {
        let executor = executor_with(|config| config.max_output_bytes = cap);
        let result = executor.run("seq 50000 | tee /dev/stderr").unwrap();
        for stream in [&result.stdout, &result.stderr] {
            let (total, cap) = (expected.len(), cap as usize);
            assert_eq!(stream.total, total as u64);
            assert_eq!((stream.omitted, stream.omitted_at), ((total - cap) as u64, 0));
            assert!(stream.bytes == expected.as_bytes()[total - cap..], "cap {cap}");
        }
    }
}

#[test]
fn head_and_tail_are_kept_with_the_exact_count_of_what_is_left_out() {
    let expected = seq(50_000);
    let executor = executor_with(|config| (config.keep, config.max_output_bytes) = (Keep::HeadTail, 1_000));
    let stream = executor.run("seq 50000").unwrap().stdout;
    assert_eq!((stream.bytes.len(), stream.total), (1_000, expected.len() as u64));
    assert_eq!((stream.omitted, stream.omitted_at), (expected.len() as u64 - 1_000, 500));
    assert!(stream.bytes[..500] == expected.as_bytes()[..500]);
    assert!(stream.bytes[500..] == expected.as_bytes()[expected.len() - 500..]);
    let short = executor.run("seq 100").unwrap().stdout;
    assert_eq!((text(&short), short.omitted), (seq(100), 0));
}

#[test]
fn a_cut_never_leaves_a_part_of_a_character() {
    for (keep, character) in [(Keep::Tail, "€"), (Keep::Tail, "𝄞"), (Keep::HeadTail, "€"), (Keep::HeadTail, "é")]
    {
        for cap in [100, 101, 102, 103] {
            let executor = executor_with(|config| (config.keep, config.max_output_bytes) = (keep, cap));
            let command = format!("for i in $(seq 200); do printf '{character}'; done");
            let stream = executor.run(command.as_str()).unwrap().stdout;
            assert_eq!(stream.total, 200 * character.len() as u64);
            assert_eq!(stream.bytes.len() as u64 + stream.omitted, stream.total);
            assert!(stream.bytes.len() <= cap as usize && stream.bytes.len() + 8 > cap as usize);
            let (head, tail) = stream.bytes.split_at(stream.omitted_at);
            for part in [head, tail] {
                let part = std::str::from_utf8(part).expect("whole characters");
                assert!(part.chars().all(|one| character.contains(one)));
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_pass_through_untouched() {
    let executor = executor();
    assert_eq!(executor.run(r"printf 'a\xff\xfeb\0c\xe2\x82'").unwrap().stdout.bytes, b"a\xff\xfeb\0c\xe2\x82");
    let all = r#"perl -e 'print map { chr } 0 .. 255'"#;
    assert_eq!(executor.run(all).unwrap().stdout.bytes, (0..=255).collect::<Vec<u8>>());
    let executor = executor_with(|config| config.max_output_bytes = 64);
    let continuations = executor.run(r#"perl -e 'print "\x80" x 1000'"#).unwrap().stdout;
    assert_eq!((continuations.total, continuations.bytes.len() as u64 + continuations.omitted), (1_000, 1_000));
    assert!(continuations.bytes.len() >= 60, "invalid bytes are no reason to drop the tail");
}

#[test]
fn merged_streams_come_in_their_true_order() {
    let command = "for i in $(seq 200); do echo o$i; echo e$i >&2; done";
    let expected: String = (1..=200).map(|i| format!("o{i}\ne{i}\n")).collect();
    let merged = executor().run(request(command, |request| request.merge_stderr = true)).unwrap();
    assert_eq!(text(&merged.stdout), expected);
    assert_eq!((merged.stderr.total, merged.stderr.bytes.len()), (0, 0));
    let apart = executor().run(command).unwrap();
    assert!(text(&apart.stdout).lines().all(|line| line.starts_with('o')) && apart.stdout.total == apart.stderr.total);
}

#[test]
fn stdout_max_bytes_is_for_the_stdout_of_that_foreground_run_only() {
    let executor = executor_with(|config| config.max_output_bytes = 1_000);
    let command = "seq 2000 | tee /dev/stderr";
    for cap in [10, 5_000] {
        let run = request(command, |request| request.stdout_max_bytes = cap);
        let result = executor.run(run.clone()).unwrap();
        assert_eq!((result.stdout.bytes.len() as u64, result.stderr.bytes.len()), (cap, 1_000));
        let process = executor.start(run).unwrap();
        process.wait(None).unwrap();
        let mut buffer = vec![0; 20_000];
        for stream in [Stream::Stdout, Stream::Stderr] {
            let reading = process.read_stream(stream, 0, &mut buffer).unwrap();
            assert_eq!((reading.len, reading.missing), (1_000, 8_893 - 1_000), "cap {cap}");
        }
    }
    assert_eq!(executor.run(command).unwrap().stdout.bytes.len(), 1_000);
}

#[test]
fn a_command_is_not_stopped_by_its_output() {
    let executor = executor();
    let result = in_time(|| executor.run("seq 300000 & seq 300000 >&2; wait; exit 6").unwrap());
    let total = seq(300_000).len() as u64;
    assert_eq!((code(&result), result.stdout.total, result.stderr.total), (Some(6), total, total));
}

#[test]
fn closed_and_redirected_streams_are_no_trouble() {
    let executor = executor();
    let result = executor.run("exec >&- 2>&-; sleep .1; exit 3").unwrap();
    assert_eq!((code(&result), result.stdout.total, result.stderr.total), (Some(3), 0, 0));
    let swapped = executor.run("{ echo out; echo err >&2; } 3>&1 1>&2 2>&3").unwrap();
    assert_eq!((text(&swapped.stdout), text(&swapped.stderr)), ("err\n".into(), "out\n".into()));
}

/// How much a run of a command adds to the peak memory of this process.
fn peak_growth(executor: &Executor, command: impl Into<Request>) -> (u64, u64) {
    reset_peak_memory();
    let before = memory("VmRSS");
    let result = executor.run(command).unwrap();
    assert_eq!(code(&result), Some(0));
    (memory("VmHWM").saturating_sub(before), result.stdout.total)
}

#[test]
fn memory_stays_near_the_cap_however_long_the_line_and_however_small_the_writes() {
    in_own_process(test_name!(), || {
        let size: u64 = if cfg!(debug_assertions) { 256 << 20 } else { 1 << 30 };
        let writes = if cfg!(debug_assertions) { 300_000 } else { 3_000_000 };
        let executor = executor_with(|config| config.max_spill_bytes = 8 << 20);
        executor.run("seq 100000").unwrap();
        let commands = [
            (format!("head -c {size} /dev/zero"), size),
            ("head -c 100000000 /dev/zero | tr '\\0' x".to_owned(), 100_000_000),
            (format!("perl -e 'syswrite STDOUT, \"x\" for 1 .. {writes}'"), writes),
        ];
        for (command, bytes) in commands {
            let (growth, total) = peak_growth(&executor, command.as_str());
            assert_eq!(total, bytes, "{command}");
            assert!(growth < 4 << 20, "{command}: {growth} bytes more");
        }
    });
}

/// `yes` with a line of 16 bytes: what is at which offset can be told from the offset alone.
const FLOOD: &str = "yes 0123456789abcde";

#[test]
fn of_a_flood_exactly_the_tail_is_kept_and_every_byte_counted() {
    let total: u64 = 512 << 20;
    for (keep, cap, spill) in
        [(Keep::Tail, 64_000, 1), (Keep::Tail, 1_001, 8 << 20), (Keep::HeadTail, 10_000, 1), (Keep::Tail, 3 << 20, 1)]
    {
        let executor =
            executor_with(|config| (config.keep, config.max_output_bytes, config.max_spill_bytes) = (keep, cap, spill));
        // Something short and slow at the end: a flood that has become a trickle.
        let command = format!("{FLOOD} | head -c {total}; sleep 0.05; printf the; sleep 0.05; printf end");
        let stream = executor.run(command.as_str()).unwrap().stdout;
        assert_eq!((stream.total, stream.bytes.len() as u64), (total + 6, cap));
        assert_eq!(stream.omitted, total + 6 - cap);
        let (head, tail) = stream.bytes.split_at(stream.omitted_at);
        let pattern =
            |offset: u64, len: usize| (offset..offset + len as u64).map(|at| b"0123456789abcde\n"[at as usize % 16]);
        assert!(head.iter().copied().eq(pattern(0, head.len())), "{keep:?} {cap}");
        let (tail, end) = tail.split_at(tail.len() - 6);
        assert!(tail.iter().copied().eq(pattern(total - tail.len() as u64, tail.len())), "{keep:?} {cap}");
        assert_eq!(end, b"theend");
        assert_eq!(stream.spill_path, None);
        assert!(stream.spill_error.unwrap().contains("max_spill_bytes"));
    }
}

#[test]
fn a_flood_that_is_cut_short_leaves_its_last_bytes() {
    let executor = executor_with(|config| config.max_spill_bytes = 1);
    // Whoever floods lives on and holds the pipe when the shell has exited: what came until the drain limit counts.
    let stream = executor.run(request(format!("{FLOOD} & sleep 0.3"), |_| {})).unwrap().stdout;
    let begins = (stream.total - stream.bytes.len() as u64) as usize % 16;
    assert_eq!(stream.bytes.len(), 64_000);
    assert!(stream.bytes.iter().zip(begins..).all(|(byte, at)| *byte == b"0123456789abcde\n"[at % 16]));
    let run = request(FLOOD, |request| request.timeout_ms = 300);
    let result = executor.run(run).unwrap();
    let begins = (result.stdout.total - result.stdout.bytes.len() as u64) as usize % 16;
    assert!(result.outcome.timed_out());
    assert!(result.stdout.bytes.iter().zip(begins..).all(|(byte, at)| *byte == b"0123456789abcde\n"[at % 16]));
}
