//! The peers: which there are, and one of them as a running process.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::protocol::{Answer, Request, Trouble};

/// One way of running commands: a variant of a peer program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Way {
    pub language: &'static str,
    pub variant: &'static str,
    /// What the tables call it.
    pub title: &'static str,
}

const fn way(language: &'static str, variant: &'static str, title: &'static str) -> Way {
    Way { language, variant, title }
}

pub const FLOOR: Way = way("c", "floor", "C, bare posix_spawn");
pub const READER_1M: Way = way("c", "reader1m", "C, bare, 1 MiB pipe");
pub const SPLICE: Way = way("c", "splice", "C, bare, splice");
pub const BLOCKING: Way = way("c", "blocking", "C, bare, blocking reads");
pub const C_DSH: Way = way("c", "dsh", "C, libdsh");
pub const LIBUV: Way = way("c", "libuv", "C, libuv");
pub const RUST_STD: Way = way("rust", "std", "Rust, std");
pub const DUCT: Way = way("rust", "duct", "Rust, duct");
pub const TOKIO: Way = way("rust", "tokio", "Rust, tokio");
pub const RUST_DSH: Way = way("rust", "dsh", "Rust, libdsh");
pub const CHILD_PROCESS: Way = way("node", "child_process", "Node, child_process");
pub const EXECA: Way = way("node", "execa", "Node, execa");
pub const REFERENCE: Way = way("node", "reference", "Node, harness executor");
pub const NODE_DSH: Way = way("node", "dsh", "Node, libdsh");
pub const SUBPROCESS: Way = way("python", "subprocess", "Python, subprocess");
pub const ASYNCIO: Way = way("python", "asyncio", "Python, asyncio");
pub const PYTHON_DSH: Way = way("python", "dsh", "Python, libdsh");
pub const PYTHON_DSH_ASYNC: Way = way("python", "dsh_async", "Python, libdsh, asyncio");
pub const OS_EXEC: Way = way("go", "os_exec", "Go, os/exec");
pub const GO_DSH: Way = way("go", "dsh", "Go, libdsh");

/// In the order of the tables.
pub const WAYS: [Way; 20] = [
    FLOOR,
    READER_1M,
    SPLICE,
    BLOCKING,
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

impl Way {
    pub fn program(&self, out: &Path) -> PathBuf {
        let name = match (self.language, self.variant) {
            ("c", "dsh" | "libuv") => self.variant,
            ("c", _) => "floor",
            _ => "peer",
        };
        out.join(self.language).join(name)
    }

    pub fn is_ours(&self) -> bool {
        self.variant.starts_with("dsh")
    }
}

/// A peer program that is running and answers. Dropped, it is asked to end, and made to when it doesn't.
pub struct Peer {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
    pub version: String,
}

/// Far more than any request takes: a peer that says nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

impl Peer {
    /// Starts a peer and waits until it is warm. What it says on stderr is kept in OUT/log.
    pub fn start(out: &Path, way: Way, ballast_mib: u32) -> Result<Peer, String> {
        // Without the folder where the peers are: that is of this machine, and reports are read on others.
        let log = format!("log/{}-{}.log", way.language, way.variant);
        let stderr = File::create(out.join(&log)).map_err(|error| format!("{log}: {error}"))?;
        let mut command = Command::new(way.program(out));
        command.arg(way.variant);
        if ballast_mib > 0 {
            command.args(["--ballast", &ballast_mib.to_string()]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(|error| format!("it can't be started: {error}"))?;

        // Read by a thread, so that a peer that is stuck can be given up.
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (send, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if line.is_err() || send.send(line.unwrap_or_default()).is_err() {
                    break;
                }
            }
        });
        let requests = child.stdin.take();
        let mut peer = Peer { child, requests, answers, version: String::new() };
        let hint = |what: String| format!("{what}; what it said is in {log}");
        let ready = peer.receive().map_err(hint)?;
        match ready.strip_prefix("ready\tversion=") {
            Some(version) => peer.version = version.to_owned(),
            None => return Err(hint(format!("not ready, but {ready:?}"))),
        }
        Ok(peer)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn ask(&mut self, request: &Request, count: u32) -> Result<Answer, Trouble> {
        let line = request.line(count) + "\n";
        let requests = self.requests.as_mut().expect("open until it is dropped");
        requests.write_all(line.as_bytes()).map_err(|_| Trouble::Error("it has died".to_owned()))?;
        Answer::parse(&self.receive().map_err(Trouble::Error)?)
    }

    fn receive(&mut self) -> Result<String, String> {
        self.answers.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                let _ = self.child.kill();
                format!("no answer in {} s", PATIENCE.as_secs())
            }
            RecvTimeoutError::Disconnected => "it has died".to_owned(),
        })
    }

    /// Closes its stdin and waits for its end; tells what was wrong with that.
    pub fn end(&mut self) -> Result<(), String> {
        self.requests = None;
        let begin = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("it ended with {status}")),
                Ok(None) if begin.elapsed() < Duration::from_secs(10) => std::thread::sleep(Duration::from_millis(2)),
                _ => {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    return Err("it didn't end with its stdin".to_owned());
                }
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
