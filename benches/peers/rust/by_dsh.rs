//! Ourselves, through the Rust API. In the background: the event descriptor, and reads when it says so.

use std::os::fd::RawFd;
use std::sync::Mutex;

use dsh::{Config, Event, EventKind, Executor, Request};

use crate::threads;
use crate::way::{Crowd, Mode, Process, Ran, Result, Way, SHELL};

pub struct Dsh {
    executor: Executor,
    event_fd: RawFd,
    /// What the executor is set to.
    mode: Mutex<Mode>,
}

fn text(error: dsh::Error) -> String {
    error.to_string()
}

/// A stream beyond `max_spill_bytes` has no file: with 1, none is ever made. 0 is the default, 64 MiB.
fn config(mode: Mode) -> Config {
    let max_spill_bytes = if mode == Mode::Keep { 1 } else { 0 };
    Config { shell: Some(SHELL.into()), max_spill_bytes, ..Config::default() }
}

impl Dsh {
    pub fn new() -> Result<Dsh> {
        let executor = Executor::new(&config(Mode::Keep)).map_err(text)?;
        let event_fd = executor.event_fd().map_err(text)?;
        Ok(Dsh { executor, event_fd, mode: Mutex::new(Mode::Keep) })
    }

    fn set(&self, mode: Mode) -> Result<()> {
        let mut current = self.mode.lock().unwrap();
        if *current != mode {
            self.executor.configure(&config(mode)).map_err(text)?;
            *current = mode;
        }
        Ok(())
    }

    fn run(&self, command: &str) -> Result<Ran> {
        let request = Request { timeout_ms: 600_000, ..Request::new(command) };
        let result = self.executor.run(request).map_err(text)?;
        if result.outcome.timed_out() {
            return Err("it timed out".to_owned());
        }
        let files = [result.stdout.spill_path, result.stderr.spill_path];
        Ok(Ran { bytes: result.stdout.total, files: files.into_iter().flatten().collect() })
    }

    /// Waits until events wait.
    fn await_events(&self) {
        let mut polled = libc::pollfd { fd: self.event_fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: the struct outlives the call. Whatever it gives, the events are looked at next.
        unsafe { libc::poll(&mut polled, 1, -1) };
    }

    /// The next event, which is waited for.
    fn next_event(&self) -> Result<Event> {
        loop {
            match self.executor.next_event().map_err(text)? {
                Some(event) => return Ok(event),
                None => self.await_events(),
            }
        }
    }

    fn begin(&self, command: &str) -> Result<dsh::Process> {
        self.executor.start(command).map_err(text)
    }
}

impl Way for Dsh {
    fn version(&self) -> String {
        format!("Rust {}, dsh {}", env!("BENCH_RUSTC"), crate::works::locked_version("dsh"))
    }

    fn spills(&self) -> bool {
        true
    }

    fn run(&self, mode: Mode, command: &str) -> Result<Ran> {
        self.set(mode)?;
        self.run(command)
    }

    fn parallel(&self, callers: usize, count: usize, command: &str) -> Result<()> {
        self.set(Mode::Keep)?;
        threads::parallel(callers, count, || self.run(command).map(drop))
    }

    fn start(&self, command: &str) -> Result<Box<dyn Process + '_>> {
        let process = self.begin(command)?;
        let pid = process.info().map_err(text)?.pid;
        Ok(Box::new(DshProcess { way: self, process, pid, over: false }))
    }

    fn start_crowd(&self, count: usize, command: &str) -> Result<Box<dyn Crowd + '_>> {
        self.set(Mode::Keep)?;
        let mut crowd = DshCrowd { way: self, processes: Vec::with_capacity(count) };
        for tag in 0..count as u64 {
            let request = Request { tag, ..Request::new(command) };
            crowd.processes.push((self.executor.start(request).map_err(text)?, false));
        }
        Ok(Box::new(crowd))
    }
}

struct DshProcess<'a> {
    way: &'a Dsh,
    process: dsh::Process,
    pid: i32,
    over: bool,
}

impl Process for DshProcess<'_> {
    fn pid(&self) -> i32 {
        self.pid
    }

    /// Output of others is captured without being read: nobody has asked for it.
    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize> {
        while !self.over {
            let event = self.way.next_event()?;
            if event.process_id != self.process.id() {
                continue;
            }
            self.over = event.kind == EventKind::Settled;
            if event.kind == EventKind::Output || self.over {
                *buffer = self.process.read_output().map_err(text)?.bytes;
                if !buffer.is_empty() {
                    return Ok(buffer.len());
                }
            }
        }
        Ok(0)
    }

    fn stop(&self) -> Result<()> {
        self.process.kill().map(drop).map_err(text)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.process.wait(None).map_err(text)
    }
}

struct DshCrowd<'a> {
    way: &'a Dsh,
    /// And whether each has said something.
    processes: Vec<(dsh::Process, bool)>,
}

impl Crowd for DshCrowd<'_> {
    fn pids(&self) -> Vec<i32> {
        self.processes.iter().filter_map(|(process, _)| Some(process.info().ok()?.pid)).collect()
    }

    fn all_said(&mut self) -> Result<()> {
        let mut silent = self.processes.len();
        while silent > 0 {
            let event = self.way.next_event()?;
            let (process, said) = &mut self.processes[event.tag as usize];
            if event.kind == EventKind::Output && !*said {
                *said = !process.read_output().map_err(text)?.bytes.is_empty();
                silent -= usize::from(*said);
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        for (process, _) in &self.processes {
            process.kill().map_err(text)?;
        }
        for (process, _) in self.processes.drain(..) {
            process.wait(None).map_err(text)?;
        }
        Ok(())
    }
}

impl Drop for DshCrowd<'_> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
