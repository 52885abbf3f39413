//! Reading from a background process: consuming and merged, or by offset for any number of readers.

mod common;

use std::time::Duration;

use common::*;
use dsh::{Process, Reading, Stream};

fn wait(process: &Process) {
    in_time(|| process.wait(None).unwrap());
}

fn read(process: &Process, stream: Stream, offset: u64, len: usize) -> (Vec<u8>, Reading) {
    let mut buffer = vec![0; len];
    let reading = process.read_stream(stream, offset, &mut buffer).unwrap();
    buffer.truncate(reading.len);
    (buffer, reading)
}

#[test]
fn a_merged_read_is_stdout_then_stderr_under_a_line_of_its_own() {
    let executor = executor();
    for (command, expected) in [
        ("printf out; printf err >&2", "out\n[stderr]\nerr"),
        ("echo out; echo err >&2", "out\n[stderr]\nerr\n"),
        ("echo err >&2", "[stderr]\nerr\n"),
        ("echo out", "out\n"),
        ("printf 'a\\n\\n'; printf b >&2", "a\n\n[stderr]\nb"),
        (":", ""),
    ] {
        let process = executor.start(command).unwrap();
        wait(&process);
        let chunk = process.read_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&chunk.bytes), expected, "{command}");
        assert!(chunk.end && !chunk.is_lossy() && chunk.missing == [0, 0]);
        let again = process.read_output().unwrap();
        assert!(again.bytes.is_empty() && again.end, "it was consumed");
    }
}

#[test]
fn merged_reads_give_every_byte_once() {
    let executor = executor_with(|config| config.max_output_bytes = 4 << 20);
    let process = executor.start("for i in $(seq 200); do seq 100; sleep .001; done").unwrap();
    let mut all = Vec::new();
    loop {
        let chunk = next_chunk(&process);
        all.extend(chunk.bytes);
        if chunk.end {
            break;
        }
    }
    let once: String = (1..=100).map(|number| format!("{number}\n")).collect();
    assert!(String::from_utf8(all).unwrap() == once.repeat(200));
}

#[test]
fn what_each_merged_read_gives_is_new_and_labelled_anew() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let command =
        format!("printf one >&2; until [ -e {0} ]; do sleep .01; done; echo out; printf two >&2", go.display());
    let executor = executor();
    let process = executor.start(command.as_str()).unwrap();
    assert_eq!(next_chunk(&process).bytes, b"[stderr]\none");
    assert_eq!(process.read_output().unwrap().bytes, b"");
    std::fs::write(&go, "").unwrap();
    wait(&process);
    assert_eq!(process.read_output().unwrap().bytes, b"out\n[stderr]\ntwo");
}

#[test]
fn clones_of_a_handle_consume_together_and_reads_by_offset_consume_nothing() {
    let executor = executor();
    let process = executor.start("echo some; echo more >&2").unwrap();
    let clone = process.clone();
    wait(&process);
    for _ in 0..3 {
        assert_eq!(read(&clone, Stream::Stdout, 0, 100).0, b"some\n");
        assert_eq!(read(&process, Stream::Stdout, 2, 2).0, b"me");
        assert_eq!(read(&process, Stream::Stderr, 0, 100).0, b"more\n");
    }
    assert_eq!(clone.read_output().unwrap().bytes, b"some\n[stderr]\nmore\n");
    assert_eq!(process.read_output().unwrap().bytes, b"");
    assert_eq!(read(&process, Stream::Stdout, 0, 100).0, b"some\n");
}

#[test]
fn many_readers_read_the_same_stream_at_their_own_pace() {
    let expected: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
    let executor = executor_with(|config| config.max_output_bytes = 1 << 20);
    let process = executor.start("seq 30000").unwrap();
    std::thread::scope(|scope| {
        for len in [97, 4_096, 100_000] {
            let (process, expected) = (&process, &expected);
            scope.spawn(move || {
                let (mut all, mut offset) = (Vec::new(), 0);
                until("the stream has ended", || {
                    let (bytes, reading) = read(process, Stream::Stdout, offset, len);
                    assert_eq!((reading.start, reading.missing), (offset, 0));
                    assert_eq!(reading.next, offset + bytes.len() as u64);
                    all.extend(bytes);
                    offset = reading.next;
                    reading.end
                });
                assert!(all == expected.as_bytes());
            });
        }
    });
}

#[test]
fn a_read_of_what_has_slid_out_of_memory_says_how_much_is_missing_and_where_it_is() {
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let total = expected.len() as u64;
    let executor = executor_with(|config| config.max_output_bytes = 1_000);
    let process = executor.start("seq 20000").unwrap();
    wait(&process);
    let (bytes, reading) = read(&process, Stream::Stdout, 5, 10_000);
    assert_eq!((reading.start, reading.missing, reading.next), (total - 1_000, total - 1_000 - 5, total));
    assert!(reading.end && bytes == expected.as_bytes()[expected.len() - 1_000..]);
    let spill = reading.spill_path.expect("the whole stream is on disk");
    assert!(std::fs::read(&spill).unwrap() == expected.as_bytes());
    let chunk = process.read_output().unwrap();
    assert_eq!((chunk.is_lossy(), chunk.missing, chunk.bytes.len()), (true, [total - 1_000, 0], 1_000));
    assert_eq!(chunk.spill_paths, [Some(spill), None]);
    let (_, recent) = read(&process, Stream::Stdout, total - 10, 100);
    assert_eq!((recent.missing, recent.spill_path), (0, None));
}

#[test]
fn a_read_beyond_the_end_gives_nothing() {
    let executor = executor();
    let process = executor.start("echo abc; exec >&-; sleep 60").unwrap();
    lines_of(&process, 1);
    until("the stream has ended", || read(&process, Stream::Stdout, 4, 10).1.end);
    for offset in [4, 5, 1_000, u64::MAX] {
        let (bytes, reading) = read(&process, Stream::Stdout, offset, 10);
        assert_eq!((bytes.len(), reading.missing), (0, 0), "offset {offset}");
    }
    let (_, open) = read(&process, Stream::Stderr, 0, 10);
    assert_eq!((open.len, open.end), (0, false));
    assert!(!process.read_output().unwrap().end, "stderr is open");
    assert_eq!(read(&process, Stream::Stdout, 0, 0).1.len, 0);
}

#[test]
fn an_incomplete_character_waits_for_the_next_read() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let command = format!("printf 'a\\xe2\\x82'; until [ -e {} ]; do sleep .01; done; printf '\\xac\\n'", go.display());
    let executor = executor();
    let process = executor.start(command.as_str()).unwrap();
    until("all three bytes are there", || process.info().unwrap().totals[0] == 3);
    assert_eq!(process.read_output().unwrap().bytes, b"a");
    assert_eq!(process.read_output().unwrap().bytes, b"");
    let (bytes, reading) = read(&process, Stream::Stdout, 0, 10);
    assert_eq!((bytes.as_slice(), reading.next), (b"a".as_slice(), 1));
    std::fs::write(&go, "").unwrap();
    wait(&process);
    assert_eq!(process.read_output().unwrap().bytes, "€\n".as_bytes());
    assert_eq!(read(&process, Stream::Stdout, 1, 10).0, "€\n".as_bytes());
}

#[test]
fn an_incomplete_character_at_the_end_of_the_stream_is_given_out() {
    let executor = executor();
    let process = executor.start("printf 'a\\xe2\\x82'").unwrap();
    wait(&process);
    assert_eq!(process.read_output().unwrap().bytes, b"a\xe2\x82");
    assert_eq!(read(&process, Stream::Stdout, 0, 10).0, b"a\xe2\x82");
}

#[test]
fn a_small_buffer_gets_whole_characters_and_comes_through() {
    let executor = executor();
    let process = executor.start("for i in $(seq 50); do printf 'é€𝄞'; done").unwrap();
    wait(&process);
    let (mut all, mut offset) = (String::new(), 0);
    loop {
        let (bytes, reading) = read(&process, Stream::Stdout, offset, 5);
        assert!(reading.next > offset || reading.end, "no progress at {offset}");
        all += std::str::from_utf8(&bytes).expect("whole characters");
        offset = reading.next;
        if reading.end {
            break;
        }
    }
    assert_eq!(all, "é€𝄞".repeat(50));
}

#[test]
fn reads_stay_valid_after_exit_kill_and_shutdown() {
    let executor = executor();
    let process = executor.start("echo kept; echo too >&2; sleep 60").unwrap();
    lines_of(&process, 1);
    until("stderr is there", || process.info().unwrap().totals[1] == 4);
    process.kill().unwrap();
    wait(&process);
    assert_eq!(stream_of(&process, Stream::Stdout), b"kept\n");
    executor.shutdown(None).unwrap();
    assert_eq!(stream_of(&process, Stream::Stderr), b"too\n");
    drop(executor);
    let chunk = process.read_output().unwrap();
    assert_eq!((chunk.bytes.as_slice(), chunk.end), (b"kept\n[stderr]\ntoo\n".as_slice(), true));
    process.wait(Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_flood_can_be_read_while_it_lasts() {
    const LINE: &[u8; 16] = b"0123456789abcde\n";
    let executor = executor_with(|config| config.max_spill_bytes = 1);
    let process = executor.start("yes 0123456789abcde").unwrap();
    let fits = |start: u64, bytes: &[u8]| bytes.iter().zip(start..).all(|(byte, at)| *byte == LINE[at as usize % 16]);
    until("it floods", || process.info().unwrap().totals[0] > 100 << 20);
    let mut consumed = 0;
    for round in 0..200 {
        let total = process.info().unwrap().totals[0];
        let (bytes, reading) = read(&process, Stream::Stdout, total.saturating_sub(1_000), 1_000);
        assert!(fits(reading.start, &bytes), "round {round}");
        assert!(!bytes.is_empty() && reading.start + bytes.len() as u64 == reading.next, "round {round}");
        let chunk = process.read_output().unwrap();
        consumed += chunk.missing[0];
        assert!(fits(consumed, &chunk.bytes) && chunk.bytes.len() <= 64_000, "round {round}");
        consumed += chunk.bytes.len() as u64;
        if round % 20 == 0 {
            until("more has come", || process.info().unwrap().totals[0] > total + (1 << 20));
        }
    }
    process.kill().unwrap();
    wait(&process);
    let rest = process.read_output().unwrap();
    consumed += rest.missing[0];
    assert!(fits(consumed, &rest.bytes) && rest.end);
    assert_eq!(consumed + rest.bytes.len() as u64, process.info().unwrap().totals[0], "every byte is given or missing");
}
