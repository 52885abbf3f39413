//! duct: `run()` with both streams captured for output that is known to be short, `reader()` for more.

use std::io::Read;
use std::os::unix::process::CommandExt;

use duct::{cmd, Expression, ReaderHandle};

use crate::groups::Group;
use crate::output::{is_short, read_tail};
use crate::threads::{self, Threads};
use crate::way::{Crowd, Mode, Process, Ran, Result, Way, BUFFER, SHELL, SMALL_BUFFER};

pub struct Duct;

fn bash(command: &str) -> Expression {
    cmd!(SHELL, "-c", command)
        .before_spawn(|command| {
            command.process_group(0);
            Ok(())
        })
        .stdin_null()
        .stderr_capture()
        .unchecked()
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

impl Way for Duct {
    fn version(&self) -> String {
        format!("Rust {}, duct {}", env!("BENCH_RUSTC"), crate::works::locked_version("duct"))
    }

    fn most(&self) -> usize {
        1000 // a thread per stream
    }

    fn prepare(&self, command: &str) -> Result<()> {
        is_short(command).map(drop)
    }

    fn run(&self, _mode: Mode, command: &str) -> Result<Ran> {
        if is_short(command)? {
            let output = bash(command).stdout_capture().run().map_err(text)?;
            return Ok(Ran::of(output.stdout.len() as u64));
        }
        // Its reader also waits, at the end of the stream.
        let stdout = read_tail(bash(command).reader().map_err(text)?, BUFFER)?;
        Ok(Ran::of(stdout.total))
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

struct DuctProcess {
    reader: ReaderHandle,
    group: Group,
}

fn start(command: &str) -> Result<Box<dyn Process>> {
    let reader = bash(command).reader().map_err(text)?;
    let pid = *reader.pids().first().ok_or("duct has started no process")?;
    Ok(Box::new(DuctProcess { reader, group: Group::new(pid as i32) }))
}

impl Process for DuctProcess {
    fn pid(&self) -> i32 {
        self.group.pid()
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize> {
        buffer.resize(SMALL_BUFFER, 0);
        self.reader.read(buffer).map_err(text)
    }

    fn stop(&self) -> Result<()> {
        self.group.terminate()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        read_tail(&self.reader, SMALL_BUFFER).map(drop)
    }
}
