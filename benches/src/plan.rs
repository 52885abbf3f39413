//! The works: what is measured, of which peers, and how much of it.

use std::time::Duration;

use crate::peer::*;
use crate::protocol::{Mode, Request};

/// How much is done.
#[derive(Clone, Copy, PartialEq)]
pub enum Extent {
    Quick,
    Full,
}

/// One line of a table: a way of running commands, and what it is asked for.
#[derive(Clone)]
pub struct Entry {
    pub way: Way,
    /// What makes it different from other lines of the same way.
    pub note: &'static str,
    pub request: Request,
    pub rounds: u32,
}

/// How many calls a slice has.
#[derive(Clone, Copy)]
pub enum Count {
    Fixed(u32),
    /// As many as fit into that time, by what the warm-up took.
    Within(Duration, u32),
}

/// What is measured in turn, and so may be compared.
pub struct Case {
    pub key: String,
    pub title: String,
    /// A sentence for the report.
    pub about: &'static str,
    pub count: Count,
    pub ballast_mib: u32,
    /// Every slice has a peer of its own, just started.
    pub fresh: bool,
    /// What the others are compared with.
    pub baseline: (Way, &'static str),
    /// A table of its own; else it is only a point of a curve.
    pub table: bool,
    pub entries: Vec<Entry>,
}

impl Case {
    /// The part of the key that cases of one kind share.
    pub fn group(&self) -> &str {
        self.key.split('-').next().unwrap_or(&self.key)
    }
}

/// Every runner of commands.
const RUNNERS: [Way; 17] = [
    FLOOR,
    C_DSH,
    LIBUV,
    RUST_STD,
    DUCT,
    TOKIO,
    RUST_DSH,
    CHILD_PROCESS,
    EXECA,
    REFERENCE,
    NODE_DSH,
    SUBPROCESS,
    ASYNCIO,
    PYTHON_DSH,
    PYTHON_DSH_ASYNC,
    OS_EXEC,
    GO_DSH,
];

/// Those that the curves show: as many as can be told apart.
pub const CURVES: [Way; 8] = [FLOOR, C_DSH, LIBUV, TOKIO, CHILD_PROCESS, REFERENCE, SUBPROCESS, OS_EXEC];

/// Those that even a run in a hurry measures.
const FEW: [Way; 4] = [FLOOR, C_DSH, CHILD_PROCESS, SUBPROCESS];

/// Those that show what it costs to spill.
const SPILLERS: [Way; 8] = [C_DSH, CHILD_PROCESS, REFERENCE, NODE_DSH, SUBPROCESS, PYTHON_DSH, OS_EXEC, GO_DSH];

pub const KEPT: &str = "kept";
pub const SPILLED: &str = "spilled";
pub const TO_FILE: &str = "> file";
pub const TO_NULL: &str = "> /dev/null";

pub const MIB: u64 = 1 << 20;

/// Sizes that depend on how much is done; the goals and the report name the same ones.
pub struct Sizes {
    pub zeros: u64,
    pub lines: u64,
    pub echoes: u64,
    pub seq: u64,
    pub yes: u64,
    pub many: &'static [u32],
    pub many_goal: u32,
    pub pipes: [u32; 2],
    pub ballasts: &'static [u32],
    pub outputs: &'static [u64],
    pub callers: &'static [u32],
}

impl Sizes {
    pub fn of(extent: Extent) -> Sizes {
        match extent {
            Extent::Full => Sizes {
                zeros: 2048 * MIB,
                lines: 1_000_000,
                echoes: 200_000,
                seq: 20_000_000,
                yes: 1024 * MIB,
                many: &[100, 300, 1000, 4000],
                many_goal: 4000,
                pipes: [8, 8000],
                ballasts: &[0, 50, 200, 800, 2048],
                outputs: &[MIB / 16, MIB, 16 * MIB, 256 * MIB, 2048 * MIB],
                callers: &[1, 2, 4, 8],
            },
            Extent::Quick => Sizes {
                zeros: 256 * MIB,
                lines: 100_000,
                echoes: 20_000,
                seq: 2_000_000,
                yes: 256 * MIB,
                many: &[100],
                many_goal: 100,
                pipes: [8, 200],
                ballasts: &[0, 800],
                outputs: &[MIB / 16, MIB, 16 * MIB, 256 * MIB],
                callers: &[1, 2, 8],
            },
        }
    }
}

pub fn cases(extent: Extent) -> Vec<Case> {
    let sizes = Sizes::of(extent);
    let mut cases = Vec::new();
    latency(extent, &sizes, &mut cases);
    bulk(extent, &sizes, &mut cases);
    lines(extent, &sizes, &mut cases);
    parallel(extent, &sizes, &mut cases);
    processes(extent, &sizes, &mut cases);
    events(extent, &sizes, &mut cases);
    cases.push(load(extent));
    cases
}

/// The same request to several ways.
fn entries(ways: &[Way], note: &'static str, rounds: u32, request: &Request) -> Vec<Entry> {
    ways.iter().map(|&way| Entry { way, note, request: request.clone(), rounds }).collect()
}

fn run(mode: Mode, command: &str, bytes: u64) -> Request {
    Request::Run { mode, command: command.to_owned(), bytes }
}

fn latency(extent: Extent, sizes: &Sizes, cases: &mut Vec<Case>) {
    for &mib in sizes.ballasts {
        let curve_only = extent == Extent::Full && [50, 800].contains(&mib);
        let ways: &[Way] = match extent {
            Extent::Full if !curve_only => &RUNNERS,
            Extent::Quick if mib == 0 => &RUNNERS,
            // To fill so much memory takes long.
            Extent::Quick => &[FLOOR, C_DSH, REFERENCE],
            Extent::Full => &CURVES,
        };
        let rounds = match extent {
            Extent::Full if !curve_only => 8,
            _ => 3,
        };
        let mut entries = entries(ways, "", rounds, &run(Mode::Keep, "true", 0));
        if mib > 1024 {
            // Most of these have to be started anew for every slice, and that takes long.
            let rounds = |way| if way == REFERENCE { 4 } else { 2 };
            let others = entries.iter_mut().filter(|entry| ![FLOOR, C_DSH].contains(&entry.way));
            others.for_each(|entry| entry.rounds = rounds(entry.way));
        }
        cases.push(Case {
            key: format!("latency-{mib}"),
            title: format!("`true` in a host of {}", size((u64::from(mib).max(10)) * MIB)),
            about: "One run of `true` from the call to its result.",
            count: Count::Within(Duration::from_millis(400), 20),
            ballast_mib: mib,
            fresh: false,
            baseline: (FLOOR, ""),
            table: !curve_only,
            entries,
        });
    }
}

/// A case of long outputs: a run is long enough to be a slice.
fn long(key: &str, title: String, about: &'static str, baseline: (Way, &'static str), entries: Vec<Entry>) -> Case {
    Case {
        key: key.to_owned(),
        title,
        about,
        count: Count::Fixed(1),
        ballast_mib: 0,
        fresh: false,
        baseline,
        table: true,
        entries,
    }
}

fn bulk(extent: Extent, sizes: &Sizes, cases: &mut Vec<Case>) {
    let (some, more) = if extent == Extent::Full { (2, 5) } else { (2, 3) };

    let zeros = |bytes: u64, mode| run(mode, &format!("head -c {bytes} /dev/zero"), bytes);
    let bare = [FLOOR, READER_1M, SPLICE, BLOCKING];
    let kept = [C_DSH, LIBUV, TOKIO, CHILD_PROCESS, REFERENCE, SUBPROCESS, OS_EXEC];
    let mut all = entries(&bare, KEPT, more, &zeros(sizes.zeros, Mode::Keep));
    all.extend(entries(&kept, KEPT, some, &zeros(sizes.zeros, Mode::Keep)));
    all.extend(entries(&[C_DSH, REFERENCE], SPILLED, more, &zeros(sizes.zeros, Mode::Spill)));
    all.extend(entries(&[NODE_DSH, PYTHON_DSH, GO_DSH], SPILLED, some, &zeros(sizes.zeros, Mode::Spill)));
    cases.push(long(
        "bulk-zeros",
        format!("`head -c {} /dev/zero`, {}", sizes.zeros, size(sizes.zeros)),
        "Kept: the last 64,000 bytes in memory. Spilled: the first 64 MiB also in a file.",
        (FLOOR, KEPT),
        all,
    ));

    let command = format!("dd if=/dev/zero bs=1M count={} 2>/dev/null", sizes.zeros / MIB);
    let mut all = entries(&[FLOOR, READER_1M, SPLICE, C_DSH], KEPT, some, &run(Mode::Keep, &command, sizes.zeros));
    let spill = run(Mode::Spill, &command, sizes.zeros);
    all.extend(entries(&[C_DSH, REFERENCE], SPILLED, more, &spill));
    all.extend(entries(&[NODE_DSH], SPILLED, some, &spill));
    let title = format!("`{command}`, {}", size(sizes.zeros));
    cases.push(long("bulk-dd", title, "The same in writes of 1 MiB.", (FLOOR, KEPT), all));

    let command = format!("yes | head -c {}", sizes.yes);
    let keep = run(Mode::Keep, &command, sizes.yes);
    let all = entries(&[FLOOR, READER_1M, C_DSH, REFERENCE, OS_EXEC], KEPT, some, &keep);
    cases.push(long("bulk-yes", format!("`{command}`"), "Through a pipe of the command's own.", (FLOOR, KEPT), all));

    let file = "\"${TMPDIR:-/tmp}/dsh-bench-$$\"";
    let turns = if extent == Extent::Full { 8 } else { 3 };
    let mut all = entries(&SPILLERS, SPILLED, turns, &zeros(64 * MIB, Mode::Spill));
    let redirected = format!("head -c {} /dev/zero > {file}; rm {file}", 64 * MIB);
    all.extend(entries(&[FLOOR], TO_FILE, turns, &run(Mode::Keep, &redirected, 0)));
    cases.push(Case {
        count: Count::Within(Duration::from_millis(200), 3),
        ..long(
            "bulk-file",
            format!("`head -c {} /dev/zero`, all of it in a file", 64 * MIB),
            "Against a bare shell that writes the same file itself.",
            (FLOOR, TO_FILE),
            all,
        )
    });

    for &bytes in sizes.outputs.iter().filter(|&&bytes| bytes != sizes.zeros) {
        cases.push(Case {
            count: Count::Within(Duration::from_millis(150), 10),
            table: false,
            ..long(
                &format!("output-{bytes}"),
                size(bytes),
                "",
                (FLOOR, KEPT),
                entries(&CURVES, KEPT, some, &zeros(bytes, Mode::Keep)),
            )
        });
    }
}

/// How many bytes the numbers of `first..=last` are, a line each.
fn digits(first: u64, last: u64) -> u64 {
    let (mut bytes, mut from) = (0, first);
    while from <= last {
        let length = from.max(1).ilog10() + 1;
        let to = last.min(10_u64.pow(length) - 1);
        bytes += (to - from + 1) * (u64::from(length) + 1);
        from = to + 1;
    }
    bytes
}

fn lines(extent: Extent, sizes: &Sizes, cases: &mut Vec<Case>) {
    let (some, more) = if extent == Extent::Full { (2, 5) } else { (1, 3) };
    let echoes = format!("for ((i=0;i<{};i++)); do echo $i; done", sizes.echoes);
    for (key, command, bytes, about) in [
        (
            "lines-stdbuf",
            format!("stdbuf -oL seq {}", sizes.lines),
            digits(1, sizes.lines),
            "Line buffered, as programs do whose output is watched: a write for every few lines.",
        ),
        ("lines-echo", echoes, digits(0, sizes.echoes - 1), "A write for every line, and a shell's work before each."),
        ("lines-seq", format!("seq {}", sizes.seq), digits(1, sizes.seq), "Many lines in writes of 4 KiB and more."),
    ] {
        let null = run(Mode::Keep, &format!("{command} > /dev/null"), 0);
        let mut all = entries(&[FLOOR], TO_NULL, more, &null);
        all.extend(entries(&[FLOOR], KEPT, some, &run(Mode::Keep, &command, bytes)));
        all.extend(entries(&[C_DSH, REFERENCE], SPILLED, more, &run(Mode::Spill, &command, bytes)));
        all.extend(entries(&[NODE_DSH], SPILLED, some, &run(Mode::Spill, &command, bytes)));
        cases.push(long(key, format!("`{command}`"), about, (FLOOR, TO_NULL), all));
    }
}

fn parallel(extent: Extent, sizes: &Sizes, cases: &mut Vec<Case>) {
    for &callers in sizes.callers {
        let all = extent == Extent::Full && [2, 8].contains(&callers);
        let request = Request::Parallel { callers, command: "true".to_owned() };
        cases.push(Case {
            key: format!("parallel-{callers}"),
            title: format!("`true` from {callers} callers at a time"),
            about: "Runs per second in all.",
            count: Count::Within(Duration::from_millis(150), 500),
            ballast_mib: 0,
            fresh: false,
            baseline: (FLOOR, ""),
            table: callers != 1 && callers != 4,
            entries: entries(if all { &RUNNERS } else { &CURVES }, "", if all { 6 } else { 3 }, &request),
        });
    }
}

fn processes(extent: Extent, sizes: &Sizes, cases: &mut Vec<Case>) {
    let full = extent == Extent::Full;
    for &count in sizes.many {
        let mut all = match count {
            1000 => entries(&RUNNERS, "", 1, &Request::Many),
            4000 => entries(&[FLOOR, C_DSH, LIBUV, TOKIO, CHILD_PROCESS, OS_EXEC], "", 1, &Request::Many),
            _ if full => entries(&CURVES, "", 1, &Request::Many),
            _ => entries(&FEW, "", 1, &Request::Many),
        };
        if count == sizes.many_goal {
            all.iter_mut()
                .filter(|entry| [FLOOR, C_DSH].contains(&entry.way))
                .for_each(|entry| entry.rounds = if full { 3 } else { 2 });
        }
        cases.push(Case {
            key: format!("many-{count}"),
            title: format!("{} background processes", thousands(count.into())),
            about:
                "Started one after the other, each with two captured pipes, and waited for until each has said that it \
                is there; then a second of idling; then SIGTERM to all until all are reaped.",
            count: Count::Fixed(count),
            ballast_mib: 0,
            // What a host did before would hide what it grows by.
            fresh: true,
            baseline: (FLOOR, ""),
            table: count == sizes.many_goal || count >= 300,
            entries: all,
        });
    }
    cases.push(Case {
        key: "kill".to_owned(),
        title: "SIGTERM to a background process".to_owned(),
        about: "From the signal until the host knows that it has ended.",
        count: Count::Fixed(10),
        ballast_mib: 0,
        fresh: false,
        baseline: (FLOOR, ""),
        table: true,
        entries: entries(&RUNNERS, "", if full { 8 } else { 4 }, &Request::Kill),
    });
}

fn events(extent: Extent, sizes: &Sizes, cases: &mut Vec<Case>) {
    let full = extent == Extent::Full;
    let ways: &[Way] = if full { &RUNNERS } else { &FEW };
    for (chatty, title) in [(0, "nothing else is running"), (2, "two others never stop writing")] {
        cases.push(Case {
            key: format!("first_byte-{chatty}"),
            title: format!("First output of a background process while {title}"),
            about: "From the write until the waiting host has read it.",
            count: Count::Fixed(10),
            ballast_mib: 0,
            fresh: false,
            baseline: (FLOOR, ""),
            table: true,
            entries: entries(ways, "", if full { 5 } else { 2 }, &Request::FirstByte { chatty }),
        });
    }
    let mut all = Vec::new();
    for (pipes, note) in sizes.pipes.into_iter().zip([FEW_PIPES, MANY_PIPES]) {
        let request = Request::Wakeup { pipes };
        all.extend(entries(&[C_DSH], note, if full { 3 } else { 2 }, &request));
        all.extend(entries(if full { &[FLOOR, LIBUV] } else { &[FLOOR] }, note, 1, &request));
    }
    cases.push(Case {
        key: "wakeup".to_owned(),
        title: format!(
            "A line of output while {} or {} pipes are watched",
            sizes.pipes[0],
            thousands(sizes.pipes[1].into())
        ),
        about: "The host's CPU time for each time that it is told of output and reads it.",
        count: Count::Fixed(500),
        ballast_mib: 0,
        fresh: true,
        baseline: (C_DSH, FEW_PIPES),
        table: true,
        entries: all,
    });
}

pub const FEW_PIPES: &str = "few pipes";
pub const MANY_PIPES: &str = "many pipes";

fn load(extent: Extent) -> Case {
    Case {
        key: "load".to_owned(),
        title: "A process that runs one `true` and ends".to_owned(),
        about: "Loading the library, starting its threads and ending them are all in it.",
        count: Count::Fixed(20),
        ballast_mib: 0,
        fresh: false,
        baseline: (FLOOR, ""),
        table: true,
        entries: entries(&[FLOOR, C_DSH], "", if extent == Extent::Full { 8 } else { 4 }, &Request::First),
    }
}

/// 2 GiB, 64 KiB.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..MIB => format!("{} KiB", bytes >> 10),
        _ if bytes < 1024 * MIB => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

/// 4,000.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_numbered_lines() {
        assert_eq!(digits(1, 9), 18);
        assert_eq!(digits(0, 9), 20);
        assert_eq!(digits(1, 1_000_000), 6_888_896);
    }

    #[test]
    fn numbers_as_they_are_read() {
        assert_eq!(thousands(4000), "4,000");
        assert_eq!(thousands(100), "100");
        assert_eq!(thousands(1_000_000), "1,000,000");
        assert_eq!(size(2048 * MIB), "2 GiB");
        assert_eq!(size(64 << 10), "64 KiB");
    }

    #[test]
    fn every_case_has_its_baseline_and_a_key_of_its_own() {
        for extent in [Extent::Quick, Extent::Full] {
            let cases = cases(extent);
            for (i, case) in cases.iter().enumerate() {
                assert!(case.entries.iter().any(|e| (e.way, e.note) == case.baseline), "{}", case.key);
                assert!(cases[..i].iter().all(|other| other.key != case.key), "{}", case.key);
            }
        }
    }
}
