//! Everything at once, from eight threads, on the same executor and the same processes, until it is shut down under them.
//!
//! `DSH_RACE_SECONDS` says for how long (3), `DSH_RACE_SEED` which choices are made. Run under ThreadSanitizer it finds
//! the exact races; without, it finds what hangs, is told twice, gets lost or is left behind.

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use dsh::{
    CancelToken, Config, ErrorKind, EventKind, Executor, Exit, Keep, Process, Request, Status, StopBy, Stream,
    Survivors,
};
use parking_lot::Mutex;

const THREADS: usize = 8;
/// The life of one executor.
const ROUND: Duration = Duration::from_millis(750);
/// Processes whose handles are shared at a time.
const SHARED: usize = 24;
/// Longer than a round with its shutdown takes on a machine that is busy and slowed down by a sanitizer.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Op {
    Start,
    Run,
    Kill,
    Wait,
    ReadOutput,
    ReadStream,
    Info,
    Cancel,
    Drop,
    Configure,
    Event,
    Stats,
    Shutdown,
}

/// How often each is done, in relation to the others. A shutdown comes once, at the end of a round.
const OPS: [(Op, u64); 12] = [
    (Op::Start, 8),
    (Op::Run, 2),
    (Op::Kill, 6),
    (Op::Wait, 6),
    (Op::ReadOutput, 20),
    (Op::ReadStream, 20),
    (Op::Info, 20),
    (Op::Cancel, 2),
    (Op::Drop, 4),
    (Op::Configure, 1),
    (Op::Event, 20),
    (Op::Stats, 5),
];

/// Choices that can be made again (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn op(&mut self) -> Op {
        let mut at = self.below(OPS.iter().map(|(_, weight)| weight).sum());
        for (op, weight) in OPS {
            if at < weight {
                return op;
            }
            at -= weight;
        }
        unreachable!()
    }
}

/// What was seen of one process, by whichever thread. None of it may be seen in another way later on.
#[derive(Default)]
struct Seen {
    end: Option<(Status, Exit, Option<StopBy>)>,
    quiescent: bool,
    /// How often a kill was told that there was something to kill.
    kills: usize,
    events: HashMap<EventKind, usize>,
    /// Bytes delivered or reported missing by consuming reads.
    consumed: u64,
}

/// What the threads of one round share.
struct Round {
    seen: Mutex<HashMap<u64, Seen>>,
    handles: Mutex<Vec<Process>>,
    /// Handles that outlive the round. Of the other half of the processes nobody has one after a while.
    kept: Mutex<Vec<Process>>,
    tokens: Mutex<Vec<CancelToken>>,
    /// It is being shut down, and has been.
    closing: AtomicBool,
    down: AtomicBool,
    done: Arc<Journal>,
    /// Who waits for this long is ours and nobody else's.
    sleep: String,
}

/// What each thread is at, to be told when one hangs, and how often each thing was done.
#[derive(Default)]
struct Journal {
    now: Mutex<HashMap<usize, Op>>,
    counts: Mutex<HashMap<Op, usize>>,
    processes: AtomicUsize,
}

impl Round {
    fn command(&self, dice: &mut Dice) -> Request {
        let sleep = &self.sleep;
        let command = match dice.below(10) {
            0 | 1 => format!("exit {}", dice.below(256)),
            2 => "seq 1 2000".into(),
            3 => "seq 1 200000".into(), // slides out of memory, and is spilled
            4 => format!("echo up; sleep {sleep}"),
            5 => format!("sleep {sleep} & sleep {sleep} & echo up; wait"),
            6 => format!("setsid sleep {sleep} & echo left one behind"),
            7 => format!("trap '' TERM; echo deaf; sleep {sleep} & wait; wait"),
            8 => "while :; do echo line; sleep .01; done".into(),
            _ => "cat; kill -KILL $$".into(),
        };
        Request {
            // Not all of them read it.
            stdin: (dice.below(3) == 0).then(|| vec![b'x'; dice.below(200_000) as usize]),
            survivors: if dice.below(4) == 0 { Survivors::Kill } else { Survivors::Keep },
            cancel: (dice.below(2) == 0).then(|| self.token(dice)),
            timeout_ms: 1 + dice.below(30),
            tag: dice.below(1 << 30),
            ..Request::new(format!("exec 2>/dev/null; {command}"))
        }
    }

    fn token(&self, dice: &mut Dice) -> CancelToken {
        let tokens = self.tokens.lock();
        tokens[dice.below(tokens.len() as u64) as usize].clone()
    }

    fn any(&self, dice: &mut Dice) -> Option<Process> {
        let handles = self.handles.lock();
        (!handles.is_empty()).then(|| handles[dice.below(handles.len() as u64) as usize].clone())
    }

    /// Looks at a process, and compares with what was seen of it before.
    fn look(&self, process: &Process) {
        // Taken before the look: what was so then must still be so.
        let (end, quiescent) = {
            let mut seen = self.seen.lock();
            let seen = seen.entry(process.id()).or_default();
            (seen.end, seen.quiescent)
        };
        let info = process.info().unwrap();
        assert!(info.quiescent || !quiescent, "{} came alive again", info.id);
        let Some(outcome) = info.outcome.filter(|_| info.status != Status::Running) else {
            assert_eq!((end, info.quiescent), (None, false), "{} was over, and runs", info.id);
            return;
        };
        let now = (info.status, outcome.exit, outcome.cause);
        assert!(end.is_none_or(|end| end == now), "{}: {end:?} has become {now:?}", info.id);
        let mut seen = self.seen.lock();
        let seen = seen.get_mut(&info.id).unwrap();
        assert_eq!(*seen.end.get_or_insert(now), now, "{}", info.id);
        seen.quiescent |= info.quiescent;
    }

    /// Consumes what is there. No command of this test writes to stderr, so all of it is stdout. Whether it was the end.
    fn read_output(&self, process: &Process) -> bool {
        let chunk = process.read_output().unwrap();
        let bytes = chunk.bytes.len() as u64 + chunk.missing[0];
        self.seen.lock().entry(process.id()).or_default().consumed += bytes;
        chunk.end
    }

    fn read_stream(&self, process: &Process, dice: &mut Dice) {
        let stream = if dice.below(4) == 0 { Stream::Stderr } else { Stream::Stdout };
        let total = process.info().unwrap().totals[stream as usize];
        let offset = dice.below(total + 1);
        let mut buffer = vec![0; dice.below(20_000) as usize];
        let reading = process.read_stream(stream, offset, &mut buffer).unwrap();
        assert_eq!((reading.start, reading.next), (offset + reading.missing, reading.start + reading.len as u64));
    }

    /// Takes an event, and looks whether what it announces can be seen.
    fn take_event(&self, executor: &Executor) -> bool {
        let Some(event) = executor.next_event().unwrap() else { return false };
        {
            let mut seen = self.seen.lock();
            let count = seen.entry(event.process_id).or_default().events.entry(event.kind).or_default();
            *count += 1;
            assert!(*count == 1 || event.kind == EventKind::Output, "{event:?} came twice");
        }
        let handle = self.handles.lock().iter().find(|process| process.id() == event.process_id).cloned();
        if let Some(process) = handle {
            let info = process.info().unwrap();
            let is_so = match event.kind {
                EventKind::Exit => info.outcome.is_some(),
                EventKind::Settled => info.status != Status::Running,
                EventKind::Quiescent => info.quiescent,
                _ => true,
            };
            assert!(is_so && event.tag == info.tag, "{event:?} {info:?}");
            self.look(&process);
        }
        true
    }

    fn act(&self, op: Op, executor: &Executor, dice: &mut Dice) {
        let process = self.any(dice);
        match (op, process) {
            (Op::Start, _) => match executor.start(self.command(dice)) {
                Ok(process) => {
                    self.done.processes.fetch_add(1, Ordering::Relaxed);
                    if dice.below(2) == 0 {
                        self.kept.lock().push(process.clone());
                    }
                    let surplus = {
                        let mut handles = self.handles.lock();
                        handles.push(process);
                        (handles.len() > SHARED).then(|| handles.swap_remove(0))
                    };
                    surplus.into_iter().for_each(|process| self.kill(&process));
                }
                Err(error) => self.is_good_reason(error.kind()),
            },
            (Op::Run, _) => match executor.run(self.command(dice)) {
                Ok(result) => {
                    self.done.processes.fetch_add(1, Ordering::Relaxed);
                    let outcome = &result.outcome;
                    assert!(outcome.cause.is_none_or(|cause| outcome.stopped_by == Some(cause)), "{outcome:?}");
                    assert!(result.stdout.bytes.len() as u64 + result.stdout.omitted == result.stdout.total);
                }
                Err(error) => self.is_good_reason(error.kind()),
            },
            (Op::Cancel, _) => {
                let fresh = CancelToken::new();
                let token = {
                    let mut tokens = self.tokens.lock();
                    let at = dice.below(tokens.len() as u64) as usize;
                    std::mem::replace(&mut tokens[at], fresh)
                };
                token.cancel();
            }
            (Op::Configure, _) => executor.configure(&budgets(dice)).unwrap(),
            (Op::Event, _) => drop(self.take_event(executor)),
            (Op::Stats, _) => {
                let stats = executor.stats().unwrap();
                assert!(stats.threads <= 2 && stats.live <= self.done.processes.load(Ordering::Relaxed) as u64 + 8);
                executor.config().unwrap();
            }
            (Op::Drop, _) => {
                let mut handles = self.handles.lock();
                let at = dice.below(handles.len() as u64 + 1) as usize;
                let process = (at < handles.len()).then(|| handles.swap_remove(at));
                drop(handles);
                drop(process);
            }
            (Op::Shutdown, _) => unreachable!("comes at the end"),
            (_, None) => {}
            (Op::Kill, Some(process)) => self.kill(&process),
            (Op::Wait, Some(process)) => match process.wait(Some(Duration::from_millis(dice.below(5)))) {
                Ok(()) => {
                    assert_ne!(process.info().unwrap().status, Status::Running);
                    self.look(&process);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
            },
            (Op::ReadOutput, Some(process)) => drop(self.read_output(&process)),
            (Op::ReadStream, Some(process)) => self.read_stream(&process, dice),
            (Op::Info, Some(process)) => self.look(&process),
        }
    }

    fn kill(&self, process: &Process) {
        if process.kill().unwrap() {
            self.seen.lock().entry(process.id()).or_default().kills += 1;
        }
    }

    /// Nothing else may keep a command from being started.
    fn is_good_reason(&self, kind: ErrorKind) {
        let shut = kind == ErrorKind::Shutdown && self.closing.load(Ordering::Relaxed);
        assert!(shut || kind == ErrorKind::Cancelled, "{kind:?}");
    }

    /// What one thread does until the executor is shut down; the first two do that.
    fn play(&self, thread: usize, executor: Executor, seed: u64, start: &Barrier) {
        let mut dice = Dice(seed);
        let at = |op| {
            self.done.now.lock().insert(thread, op);
            *self.done.counts.lock().entry(op).or_default() += 1;
        };
        start.wait();
        let began = Instant::now();
        while !self.down.load(Ordering::Relaxed) {
            if thread < 2 && began.elapsed() >= ROUND {
                at(Op::Shutdown);
                self.closing.store(true, Ordering::Relaxed);
                // One of them may give up before, which changes nothing.
                let limit = (thread == 1).then(|| Duration::from_millis(dice.below(100)));
                match executor.shutdown(limit) {
                    Ok(()) => self.down.store(true, Ordering::Relaxed),
                    Err(error) => assert_eq!((error.kind(), limit.is_some()), (ErrorKind::TimedOut, true), "{error}"),
                }
                continue;
            }
            let op = dice.op();
            at(op);
            self.act(op, &executor, &mut dice);
        }
        self.done.now.lock().remove(&thread);
    }

    /// After the shutdown everything is over, once and for all.
    fn is_over(&self, executor: &Executor) {
        while self.take_event(executor) {}
        let stats = executor.stats().unwrap();
        assert_eq!((stats.live, stats.threads, stats.guard_pid), (0, 0, None));
        assert_eq!(executor.run("true").unwrap_err().kind(), ErrorKind::Shutdown);
        let handles = std::mem::take(&mut *self.kept.lock());
        for process in &handles {
            self.look(process);
            while !self.read_output(process) {} // a read stops where something is missing
            assert!(!process.kill().unwrap());
            process.wait(Some(Duration::ZERO)).unwrap();
            let info = process.info().unwrap();
            let mut seen = self.seen.lock();
            let seen = seen.entry(info.id).or_default();
            assert!(info.quiescent && seen.kills <= 1, "{info:?}: killed {} times", seen.kills);
            assert!(seen.kills == 0 || seen.end.is_some_and(|end| end.2 == Some(StopBy::Kill)), "{info:?}");
            assert_eq!(seen.consumed, info.totals[0], "{info:?}");
            for kind in [EventKind::Exit, EventKind::Settled, EventKind::Quiescent] {
                assert_eq!(seen.events.get(&kind), Some(&1), "{kind:?} {info:?}");
            }
        }
    }
}

fn budgets(dice: &mut Dice) -> Config {
    Config {
        grace_ms: 20 + dice.below(100),
        drain_ms: 20 + dice.below(100),
        max_output_bytes: 1_000 + dice.below(60_000),
        keep: if dice.below(2) == 0 { Keep::Tail } else { Keep::HeadTail },
        guard: dice.below(4) > 0,
        ..Config::default()
    }
}

fn round(journal: &Arc<Journal>, dice: &mut Dice) {
    let round = Round {
        seen: Mutex::default(),
        handles: Mutex::default(),
        kept: Mutex::default(),
        tokens: Mutex::new((0..4).map(|_| CancelToken::new()).collect()),
        closing: AtomicBool::new(false),
        down: AtomicBool::new(false),
        done: journal.clone(),
        sleep: format!("7{}.5", std::process::id()),
    };
    let executor = Executor::new(&budgets(dice)).unwrap();
    executor.event_fd().unwrap();
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (round, start, executor, seed) = (&round, &start, executor.clone(), dice.below(u64::MAX) | 1);
            scope.spawn(move || round.play(thread, executor, seed, start));
        }
    });
    assert_eq!(sleeping(&round.sleep), [], "something is left");
    round.is_over(&executor);
}

/// Live processes with this argument.
fn sleeping(time: &str) -> Vec<i32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == time.as_bytes()) && is_alive(*pid)
    })
    .collect()
}

#[test]
fn everything_at_once_from_many_threads_comes_to_one_end() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let time = Duration::from_secs(number("DSH_RACE_SECONDS").unwrap_or(3));
    let seed = number("DSH_RACE_SEED").unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("DSH_RACE_SEED={seed}");
    executor().run("true").unwrap(); // what is made once per process is there from now on
    let (journal, (sender, ended)) = (Arc::new(Journal::default()), mpsc::channel());
    let before = (open_files(), threads(), children());
    let rounds = thread::spawn({
        let journal = journal.clone();
        move || {
            let (mut dice, began) = (Dice(seed | 1), Instant::now());
            while began.elapsed() < time {
                round(&journal, &mut dice);
                sender.send(()).unwrap();
            }
        }
    });
    let end = loop {
        match ended.recv_timeout(PATIENCE) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break rounds.join(),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs; the threads are at {:?}", journal.now.lock()),
        }
    };
    end.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let counts = journal.counts.lock();
    println!(
        "{} processes, {} operations: {counts:?}",
        journal.processes.load(Ordering::Relaxed),
        counts.values().sum::<usize>()
    );
    assert!(OPS.iter().all(|(op, _)| counts.contains_key(op)) && counts.contains_key(&Op::Shutdown));
    // A thread that has been joined may be listed for a moment longer.
    until("all is as before", || (open_files(), threads(), children()) == before);
}
