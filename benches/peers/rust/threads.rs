//! Crowds of processes and callers by threads, for libraries whose calls block.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use crate::groups;
use crate::output::Tail;
use crate::way::{Crowd, Process, Result, SMALL_BUFFER};

/// Calls `run` so often, from so many threads at a time.
pub fn parallel(callers: usize, count: usize, run: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure = Mutex::new(Ok(()));
    thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < count && !failed.load(Ordering::Relaxed) {
                    if let Err(error) = run() {
                        *failure.lock().unwrap() = Err(error);
                        failed.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    failure.into_inner().unwrap()
}

/// Processes with a thread each, which reads its stdout and then waits for it.
#[derive(Default)]
pub struct Threads {
    pids: Vec<i32>,
    threads: Vec<JoinHandle<Result<()>>>,
    said: Option<Receiver<()>>,
    stopped: bool,
}

impl Threads {
    pub fn start(count: usize, start: impl Fn() -> Result<Box<dyn Process>>) -> Result<Threads> {
        let mut crowd = Threads::default();
        let (say, said) = channel();
        crowd.said = Some(said);
        for _ in 0..count {
            let process = start()?;
            let say = say.clone();
            crowd.pids.push(process.pid());
            crowd.threads.push(thread::spawn(move || capture(process, say)));
        }
        Ok(crowd)
    }
}

fn capture(mut process: Box<dyn Process>, say: Sender<()>) -> Result<()> {
    let mut tail = Tail::default();
    let mut buffer = vec![0; SMALL_BUFFER];
    loop {
        let n = process.read(&mut buffer)?;
        if n == 0 {
            return process.finish();
        }
        if tail.total == 0 {
            let _ = say.send(());
        }
        tail.push(&buffer[..n]);
    }
}

impl Crowd for Threads {
    fn pids(&self) -> Vec<i32> {
        self.pids.clone()
    }

    fn all_said(&mut self) -> Result<()> {
        let said = self.said.as_ref().ok_or("nobody was started")?;
        (0..self.pids.len()).try_for_each(|_| said.recv()).map_err(|_| "one ended without a word".to_owned())
    }

    fn stop(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.stopped, true) {
            return Ok(());
        }
        let mut result = Ok(());
        for &pid in &self.pids {
            result = result.and(groups::terminate(pid));
        }
        for thread in self.threads.drain(..) {
            result = result.and(thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())));
        }
        result
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
