//! tokio, with its default runtime. It has no bounded capture: output that is known to be short is taken with
//! `Command::output()`, more is read by hand.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdout, Command};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::groups::{self, Group};
use crate::output::{is_short, Tail};
use crate::way::{Crowd, Mode, Process, Ran, Result, Way, BUFFER, SHELL, SMALL_BUFFER};

pub struct Tokio(Runtime);

impl Tokio {
    pub fn new() -> Result<Tokio> {
        Runtime::new().map(Tokio).map_err(text)
    }
}

fn bash(command: &str) -> Command {
    let mut bash = Command::new(SHELL);
    bash.args(["-c", command]).process_group(0).stdin(Stdio::null());
    bash
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

async fn run(command: &str, short: bool) -> Result<Ran> {
    if short {
        let output = bash(command).output().await.map_err(text)?;
        return Ok(Ran::of(output.stdout.len() as u64));
    }
    let mut child = bash(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
    let stdout = child.stdout.take().expect("a pipe was asked for");
    let stderr = child.stderr.take().expect("a pipe was asked for");
    let (stdout, stderr, status) = tokio::join!(read_tail(stdout, BUFFER), read_tail(stderr, BUFFER), child.wait());
    status.map_err(text)?;
    stderr?;
    Ok(Ran::of(stdout?.total))
}

async fn read_tail(mut stream: impl AsyncRead + Unpin, size: usize) -> Result<Tail> {
    let mut tail = Tail::default();
    let mut buffer = vec![0; size];
    loop {
        match stream.read(&mut buffer).await.map_err(text)? {
            0 => return Ok(tail),
            n => tail.push(&buffer[..n]),
        }
    }
}

impl Way for Tokio {
    fn version(&self) -> String {
        format!("Rust {}, tokio {}", env!("BENCH_RUSTC"), crate::works::locked_version("tokio"))
    }

    fn prepare(&self, command: &str) -> Result<()> {
        is_short(command).map(drop)
    }

    fn run(&self, _mode: Mode, command: &str) -> Result<Ran> {
        self.0.block_on(run(command, is_short(command)?))
    }

    /// With a task for each caller.
    fn parallel(&self, callers: usize, count: usize, command: &str) -> Result<()> {
        let short = is_short(command)?;
        let next = Arc::new(AtomicUsize::new(0));
        self.0.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..callers {
                let (next, command) = (next.clone(), command.to_owned());
                tasks.spawn(async move {
                    while next.fetch_add(1, Ordering::Relaxed) < count {
                        run(&command, short).await?;
                    }
                    Ok(())
                });
            }
            while let Some(result) = tasks.join_next().await {
                result.map_err(|error| error.to_string()).and_then(|result| result)?;
            }
            Ok(())
        })
    }

    fn start(&self, command: &str) -> Result<Box<dyn Process + '_>> {
        let _context = self.0.enter();
        let mut child = bash(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
        Ok(Box::new(TokioProcess {
            runtime: &self.0,
            group: Group::new(pid_of(&child)),
            stdout: child.stdout.take().expect("a pipe was asked for"),
            stderr: self.0.spawn(read_tail(child.stderr.take().expect("a pipe was asked for"), SMALL_BUFFER)),
            child,
        }))
    }

    fn start_crowd(&self, count: usize, command: &str) -> Result<Box<dyn Crowd + '_>> {
        let (say, said) = mpsc::unbounded_channel();
        let mut crowd = Tasks { runtime: &self.0, pids: Vec::new(), tasks: JoinSet::new(), said };
        let _context = self.0.enter();
        for _ in 0..count {
            let child = bash(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
            let group = Group::new(pid_of(&child));
            crowd.pids.push(group.pid());
            crowd.tasks.spawn(capture(child, group, say.clone()));
        }
        Ok(Box::new(crowd))
    }
}

fn pid_of(child: &Child) -> i32 {
    child.id().expect("it has not been waited for") as i32
}

struct TokioProcess<'a> {
    runtime: &'a Runtime,
    child: Child,
    group: Group,
    stdout: ChildStdout,
    stderr: JoinHandle<Result<Tail>>,
}

impl Process for TokioProcess<'_> {
    fn pid(&self) -> i32 {
        self.group.pid()
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize> {
        buffer.resize(SMALL_BUFFER, 0);
        self.runtime.block_on(self.stdout.read(buffer)).map_err(text)
    }

    fn stop(&self) -> Result<()> {
        self.group.terminate()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let TokioProcess { runtime, mut child, group, stdout, stderr } = *self;
        runtime.block_on(async {
            child.wait().await.map_err(text)?;
            drop(group);
            read_tail(stdout, SMALL_BUFFER).await?;
            stderr.await.map_err(|error| error.to_string())?.map(drop)
        })
    }
}

/// Processes with a task each.
struct Tasks<'a> {
    runtime: &'a Runtime,
    pids: Vec<i32>,
    tasks: JoinSet<Result<()>>,
    said: mpsc::UnboundedReceiver<()>,
}

async fn capture(mut child: Child, group: Group, say: mpsc::UnboundedSender<()>) -> Result<()> {
    let mut stdout = child.stdout.take().expect("a pipe was asked for");
    let stderr = child.stderr.take().expect("a pipe was asked for");
    let read_stdout = async {
        let mut tail = Tail::default();
        let mut buffer = vec![0; SMALL_BUFFER];
        loop {
            match stdout.read(&mut buffer).await.map_err(text)? {
                0 => return Ok(tail),
                n if tail.total == 0 => {
                    let _ = say.send(());
                    tail.push(&buffer[..n]);
                }
                n => tail.push(&buffer[..n]),
            }
        }
    };
    let (stdout, stderr, status) = tokio::join!(read_stdout, read_tail(stderr, SMALL_BUFFER), child.wait());
    drop(group);
    status.map_err(text)?;
    stdout.and(stderr).map(drop)
}

impl Crowd for Tasks<'_> {
    fn pids(&self) -> Vec<i32> {
        self.pids.clone()
    }

    fn all_said(&mut self) -> Result<()> {
        self.runtime.block_on(async {
            for _ in &self.pids {
                self.said.recv().await.ok_or("one ended without a word")?;
            }
            Ok(())
        })
    }

    fn stop(&mut self) -> Result<()> {
        let mut result = Ok(());
        for pid in self.pids.drain(..) {
            result = result.and(groups::terminate(pid));
        }
        self.runtime.block_on(async {
            while let Some(ended) = self.tasks.join_next().await {
                result = result.clone().and(ended.map_err(|error| error.to_string()).and_then(|ended| ended));
            }
        });
        result
    }
}

impl Drop for Tasks<'_> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
