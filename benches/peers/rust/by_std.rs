//! The standard library. It has no bounded capture: output that is known to be short is taken with `Command::output()`,
//! as its users write it; more is read by hand, stderr in a thread.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::groups::Group;
use crate::output::{is_short, read_tail, Tail};
use crate::threads::{self, Threads};
use crate::way::{Crowd, Mode, Process, Ran, Result, Way, BUFFER, SHELL, SMALL_BUFFER};

pub struct Std;

fn bash(command: &str) -> Command {
    let mut bash = Command::new(SHELL);
    bash.args(["-c", command]).process_group(0).stdin(Stdio::null());
    bash
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

impl Way for Std {
    fn version(&self) -> String {
        format!("Rust {}", env!("BENCH_RUSTC"))
    }

    fn most(&self) -> usize {
        1000 // a thread per stream
    }

    fn prepare(&self, command: &str) -> Result<()> {
        is_short(command).map(drop)
    }

    fn run(&self, _mode: Mode, command: &str) -> Result<Ran> {
        if is_short(command)? {
            let output = bash(command).output().map_err(text)?;
            return Ok(Ran::of(output.stdout.len() as u64));
        }
        let mut child = bash(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
        let stderr = child.stderr.take().expect("a pipe was asked for");
        let stderr = thread::spawn(move || read_tail(stderr, BUFFER));
        let stdout = read_tail(child.stdout.take().expect("a pipe was asked for"), BUFFER);
        joined(stderr)?;
        child.wait().map_err(text)?;
        Ok(Ran::of(stdout?.total))
    }

    fn parallel(&self, callers: usize, count: usize, command: &str) -> Result<()> {
        threads::parallel(callers, count, || self.run(Mode::Keep, command).map(drop))
    }

    fn start(&self, command: &str) -> Result<Box<dyn Process + '_>> {
        start(command)
    }

    fn start_crowd(&self, count: usize, command: &str) -> Result<Box<dyn Crowd + '_>> {
        Ok(Box::new(Threads::start(count, || start(command))?))
    }
}

fn joined(thread: JoinHandle<Result<Tail>>) -> Result<Tail> {
    thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
}

struct StdProcess {
    child: Child,
    group: Group,
    stderr: JoinHandle<Result<Tail>>,
}

fn start(command: &str) -> Result<Box<dyn Process>> {
    let mut child = bash(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
    let group = Group::new(child.id() as i32);
    let stderr = child.stderr.take().expect("a pipe was asked for");
    Ok(Box::new(StdProcess { group, stderr: thread::spawn(move || read_tail(stderr, SMALL_BUFFER)), child }))
}

impl Process for StdProcess {
    fn pid(&self) -> i32 {
        self.group.pid()
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize> {
        buffer.resize(SMALL_BUFFER, 0);
        self.child.stdout.as_mut().expect("it is never taken").read(buffer).map_err(text)
    }

    fn stop(&self) -> Result<()> {
        self.group.terminate()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.child.wait().map_err(text)?;
        drop(self.group);
        read_tail(self.child.stdout.take().expect("it is never taken"), SMALL_BUFFER)?;
        joined(self.stderr).map(drop)
    }
}
