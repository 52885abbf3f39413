//! That every peer that was built does everything it is asked for: tiny counts and no figures, for `make test`.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::measure::reduce;
use crate::peer::{Peer, Way, C_DSH, FLOOR};
use crate::protocol::{Mode, Request, Trouble};

/// Gives how many failed. Peers mostly wait, so several are asked at a time.
pub fn run(out: &Path, ways: &[Way]) -> usize {
    let waiting: Mutex<VecDeque<Way>> = Mutex::new(ways.iter().copied().collect());
    let failed = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| loop {
                let Some(way) = waiting.lock().expect("no panics").pop_front() else { break };
                match peer(out, way) {
                    Ok(0) => println!("{}: all as expected", way.title),
                    Ok(unsupported) => println!("{}: as expected, {unsupported} requests unsupported", way.title),
                    Err(text) => {
                        println!("{}: FAILED: {text}", way.title);
                        *failed.lock().expect("no panics") += 1;
                    }
                }
            });
        }
    });
    failed.into_inner().expect("no panics")
}

fn requests() -> Vec<(Request, u32)> {
    let run = |mode, command: &str, bytes| Request::Run { mode, command: command.to_owned(), bytes };
    vec![
        (run(Mode::Keep, "echo hello; echo to stderr >&2", 6), 2),
        (run(Mode::Keep, "head -c 3000000 /dev/zero", 3_000_000), 1),
        (run(Mode::Spill, "head -c 3000000 /dev/zero", 3_000_000), 1),
        // More than is spilled.
        (run(Mode::Spill, "head -c 80000000 /dev/zero", 80_000_000), 1),
        (Request::Parallel { callers: 2, command: "true".to_owned() }, 5),
        (Request::Many, 5),
        (Request::Kill, 2),
        (Request::FirstByte { chatty: 1 }, 2),
        (Request::Wakeup { pipes: 8 }, 20),
    ]
}

/// Gives how many requests it doesn't support.
fn peer(out: &Path, way: Way) -> Result<usize, String> {
    let mut peer = Peer::start(out, way, 1)?;
    let mut unsupported = 0;
    for (request, count) in requests() {
        match peer.ask(&request, count).and_then(|answer| reduce(&request, count, &answer)) {
            Ok(_) => {}
            Err(Trouble::Unsupported) => unsupported += 1,
            Err(Trouble::Error(text)) => return Err(format!("{:?}: {text}", request.line(count))),
        }
    }
    peer.end()?;
    if [FLOOR, C_DSH].contains(&way) {
        let status = Command::new(way.program(out)).arg("first").stdin(Stdio::null()).status();
        if !status.map_err(|error| error.to_string())?.success() {
            return Err("`first` failed".to_owned());
        }
    }
    Ok(unsupported)
}
