//! Measuring in turn: in every round each entry of a case has one slice, in an order that is shuffled anew. So whatever
//! the machine does meanwhile, it does to all of them, and ratios are formed within a round.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{self, Ticks};
use crate::peer::{Peer, Way};
use crate::plan::{Case, Count, Entry};
use crate::protocol::{Answer, Mode, Request, Trouble};
use crate::stats::{median, Estimate, Shuffle};

/// What a slice tells. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    Wall,
    /// Runs per second.
    Rate,
    Ready,
    Kill,
    /// Host CPU per call.
    Cpu,
    StartCpu,
    KillCpu,
    /// Host CPU in a second of idling.
    Idle,
    /// KiB per process.
    Rss,
    Threads,
    Fds,
}

pub type Slice = BTreeMap<Metric, f64>;

/// An entry with what its slices told, in the order of the rounds.
pub struct Line {
    pub entry: Entry,
    pub slices: Vec<Slice>,
}

impl Line {
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        self.slices.iter().filter_map(|slice| slice.get(&metric).copied()).collect()
    }

    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        Estimate::of(&self.values(metric))
    }
}

pub struct Outcome {
    pub case: Case,
    pub lines: Vec<Line>,
}

impl Outcome {
    pub fn line(&self, way: Way, note: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.entry.way == way && line.entry.note == note)
    }
}

/// What one answer tells of `count` calls.
pub fn reduce(request: &Request, count: u32, answer: &Answer) -> Result<Slice, Trouble> {
    let each = f64::from(count);
    let mut slice = Slice::new();
    match request {
        Request::Run { bytes, .. } => {
            slice.insert(Metric::Wall, median(&answer.each("wall_us", count)?));
            slice.insert(Metric::Cpu, answer.one("cpu_us")? / each);
            let counted = answer.one("bytes")?;
            if counted != *bytes as f64 {
                return Err(Trouble::Error(format!("{counted} bytes of output, not {bytes}")));
            }
        }
        Request::Parallel { .. } => {
            slice.insert(Metric::Rate, each * 1e6 / answer.one("wall_us")?.max(1.0));
            slice.insert(Metric::Cpu, answer.one("cpu_us")? / each);
        }
        Request::Many => {
            for (metric, key, by) in [
                (Metric::Ready, "ready_us", 1.0),
                (Metric::StartCpu, "start_cpu_us", each),
                (Metric::Rss, "rss_kib", each),
                (Metric::Threads, "threads", 1.0),
                (Metric::Fds, "fds", 1.0),
                (Metric::Idle, "idle_us", 1.0),
                (Metric::Kill, "kill_us", 1.0),
                (Metric::KillCpu, "kill_cpu_us", each),
            ] {
                slice.insert(metric, answer.one(key)? / by);
            }
        }
        Request::Kill | Request::FirstByte { .. } => {
            slice.insert(Metric::Wall, median(&answer.each("wall_us", count)?));
        }
        Request::Wakeup { .. } => {
            slice.insert(Metric::Cpu, answer.one("cpu_us")? / answer.one("wakeups")?.max(1.0));
        }
        Request::First => unreachable!("no peer is asked for it"),
    }
    Ok(slice)
}

pub struct Conductor {
    out: PathBuf,
    order: Shuffle,
    /// The peers without ballast, which stay.
    pool: HashMap<Way, Peer>,
    pub versions: BTreeMap<Way, String>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// Slices that were repeated because the machine was busy with other things, and those that were used all the same.
    pub repeated: u32,
    pub disturbed: u32,
    pub slices: u32,
    /// What repeating may take yet.
    patience: Duration,
}

/// How often a slice is repeated at most.
const REPEATS: u32 = 2;

/// What others may use of the machine's CPU time without a slice being repeated: a tenth of a core, and some clock ticks
/// more since the kernel's figures are as coarse as those.
const ORDINARY_MS: f64 = 30.0;
const ORDINARY_SHARE: f64 = 0.1;

impl Conductor {
    pub fn new(out: &Path, seed: u64, patience: Duration) -> Conductor {
        Conductor {
            out: out.to_owned(),
            order: Shuffle(seed),
            pool: HashMap::new(),
            versions: BTreeMap::new(),
            notes: Vec::new(),
            repeated: 0,
            disturbed: 0,
            slices: 0,
            patience,
        }
    }

    pub fn run(&mut self, case: Case) -> Outcome {
        let mut lines: Vec<Line> = Vec::new();
        let mut counts = Vec::new();
        // Peers with ballast stay as long as a quarter of the free memory holds them; the others are started for each
        // slice. Those that come first, the ones that the goals compare, stay.
        let mut resident: HashMap<Way, Peer> = HashMap::new();
        let mut room = machine::available_mib() / 4;
        if case.ballast_mib > 2 * room {
            self.notes.push(format!("{}: not enough free memory", case.title));
            return Outcome { case, lines };
        }

        let here: Vec<&Entry> = case.entries.iter().filter(|entry| entry.way.program(&self.out).exists()).collect();
        for entry in here {
            if case.fresh || entry.request == Request::First {
                counts.push(most(case.count));
                lines.push(Line { entry: entry.clone(), slices: Vec::new() });
                continue;
            }
            let warmed = self.take(&case, entry, &mut resident).and_then(|mut peer| {
                let count = warm_up(&mut peer, entry, case.count)?;
                Ok((peer, count))
            });
            match warmed {
                Ok((peer, count)) => {
                    let stays = case.ballast_mib == 0 || case.ballast_mib < room;
                    if stays && case.ballast_mib > 0 {
                        room -= case.ballast_mib;
                    }
                    self.put(&case, entry.way, peer, &mut resident, stays);
                    counts.push(count);
                    lines.push(Line { entry: entry.clone(), slices: Vec::new() });
                }
                Err(trouble) => self.leave_out(&case, entry, trouble),
            }
        }

        let mut failed = vec![false; lines.len()];
        for round in 0..lines.iter().map(|line| line.entry.rounds).max().unwrap_or(0) {
            let mut turn: Vec<usize> =
                (0..lines.len()).filter(|&i| lines[i].entry.rounds > round && !failed[i]).collect();
            self.order.shuffle(&mut turn);
            for i in turn {
                match self.slice(&case, &lines[i].entry, counts[i], &mut resident) {
                    Ok(slice) => lines[i].slices.push(slice),
                    Err(trouble) => {
                        self.leave_out(&case, &lines[i].entry, trouble);
                        failed[i] = true;
                    }
                }
            }
        }
        // A way that fails now and then has no figures that mean anything.
        let mut failed = failed.into_iter();
        lines.retain(|_| !failed.next().unwrap_or(false));
        Outcome { case, lines }
    }

    /// One slice, repeated when the machine was busy with other things: that is seen in the CPU time of others, never in
    /// what was measured.
    fn slice(
        &mut self,
        case: &Case,
        entry: &Entry,
        count: u32,
        resident: &mut HashMap<Way, Peer>,
    ) -> Result<Slice, Trouble> {
        let mut attempt = 0;
        loop {
            let begin = Instant::now();
            let (slice, disturbed) = if entry.request == Request::First {
                let (slice, disturbed) = watched(None, || self.first(entry, count));
                (slice?, disturbed)
            } else {
                let stays = self.is_here(case, entry.way, resident);
                let mut peer = self.take(case, entry, resident)?;
                if !stays && !case.fresh {
                    warm_up(&mut peer, entry, case.count)?;
                }
                let (answer, disturbed) = watched(Some(peer.pid()), || peer.ask(&entry.request, count));
                let answer = answer?;
                self.put(case, entry.way, peer, resident, stays);
                (reduce(&entry.request, count, &answer)?, disturbed)
            };
            self.slices += 1;
            if !disturbed {
                return Ok(slice);
            }
            if attempt == REPEATS || self.patience.is_zero() {
                self.disturbed += 1;
                return Ok(slice);
            }
            attempt += 1;
            self.repeated += 1;
            self.patience = self.patience.saturating_sub(begin.elapsed());
        }
    }

    /// Whole processes, timed from here.
    fn first(&self, entry: &Entry, count: u32) -> Result<Slice, Trouble> {
        let program = entry.way.program(&self.out);
        let mut times = Vec::new();
        for _ in 0..count {
            let begin = Instant::now();
            let status = Command::new(&program).arg("first").stdin(Stdio::null()).stdout(Stdio::null()).status();
            times.push(begin.elapsed().as_secs_f64() * 1e6);
            match status {
                Ok(status) if status.success() => {}
                Ok(status) => return Err(Trouble::Error(format!("it ended with {status}"))),
                Err(error) => return Err(Trouble::Error(error.to_string())),
            }
        }
        Ok(Slice::from([(Metric::Wall, median(&times))]))
    }

    fn is_here(&self, case: &Case, way: Way, resident: &HashMap<Way, Peer>) -> bool {
        let there = if case.ballast_mib > 0 { resident } else { &self.pool };
        !case.fresh && there.contains_key(&way)
    }

    /// The peer for a slice: the one that is there, or a new one.
    fn take(&mut self, case: &Case, entry: &Entry, resident: &mut HashMap<Way, Peer>) -> Result<Peer, Trouble> {
        let there = if case.ballast_mib > 0 { resident } else { &mut self.pool };
        if let Some(peer) = there.remove(&entry.way).filter(|_| !case.fresh) {
            return Ok(peer);
        }
        let peer = Peer::start(&self.out, entry.way, case.ballast_mib).map_err(Trouble::Error)?;
        self.versions.insert(entry.way, peer.version.clone());
        Ok(peer)
    }

    fn put(&mut self, case: &Case, way: Way, peer: Peer, resident: &mut HashMap<Way, Peer>, stays: bool) {
        if stays {
            let there = if case.ballast_mib > 0 { resident } else { &mut self.pool };
            there.insert(way, peer);
        }
    }

    fn leave_out(&mut self, case: &Case, entry: &Entry, trouble: Trouble) {
        // A peer that has no such thing is no news.
        if let Trouble::Error(text) = trouble {
            let note = format!("{} ({}): {text}", entry.way.title, case.key);
            eprintln!("  left out: {note}");
            self.notes.push(note);
        }
    }
}

/// Does something, and tells whether others had more of the machine meanwhile than its ordinary background.
fn watched<T>(peer: Option<u32>, work: impl FnOnce() -> T) -> (T, bool) {
    let (before, begin) = (Ticks::now(peer), Instant::now());
    let done = work();
    let allowed = ORDINARY_MS + ORDINARY_SHARE * begin.elapsed().as_secs_f64() * 1e3;
    (done, Ticks::now(peer).of_others_since(&before) > allowed)
}

fn most(count: Count) -> u32 {
    match count {
        Count::Fixed(count) | Count::Within(_, count) => count,
    }
}

/// Not counted. Gives how many calls a slice has.
fn warm_up(peer: &mut Peer, entry: &Entry, count: Count) -> Result<u32, Trouble> {
    match (count, &entry.request) {
        // A few runs of something short instead of what takes long: a warm host is all that is wanted.
        (Count::Fixed(count), Request::Run { mode, .. }) => {
            let short = Request::Run { mode: *mode, command: "true".to_owned(), bytes: 0 };
            reduce(&short, 3, &peer.ask(&short, 3)?)?;
            Ok(count)
        }
        (Count::Fixed(count), request) => {
            reduce(request, 2, &peer.ask(request, 2)?)?;
            Ok(count)
        }
        (Count::Within(slice, most), request) => {
            // For several callers at a time, enough that all of them have something to do.
            let few = match request {
                Request::Parallel { callers, .. } => 4 * callers,
                Request::Run { mode: Mode::Spill, .. } => 1,
                _ => 3.min(most),
            };
            let begin = Instant::now();
            let answer = peer.ask(request, few)?;
            reduce(request, few, &answer)?;
            let call = begin.elapsed().as_secs_f64() / f64::from(few);
            Ok(((slice.as_secs_f64() / call) as u32).clamp(few.min(3), most))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_the_median_of_its_calls() {
        let request = Request::Run { mode: Mode::Keep, command: "echo".into(), bytes: 1 };
        let slice = reduce(&request, 3, &Answer::parse("wall_us=9,1,2\tcpu_us=30\tbytes=1").unwrap()).unwrap();
        assert_eq!(slice, Slice::from([(Metric::Wall, 2.0), (Metric::Cpu, 10.0)]));
    }

    #[test]
    fn lost_output_is_an_error() {
        let request = Request::Run { mode: Mode::Keep, command: "echo".into(), bytes: 1 };
        let answer = Answer::parse("wall_us=9\tcpu_us=30\tbytes=0").unwrap();
        assert!(matches!(reduce(&request, 1, &answer), Err(Trouble::Error(_))));
    }

    #[test]
    fn callers_make_a_rate() {
        let request = Request::Parallel { callers: 2, command: "true".into() };
        let slice = reduce(&request, 50, &Answer::parse("wall_us=100000\tcpu_us=5000").unwrap()).unwrap();
        assert_eq!(slice, Slice::from([(Metric::Rate, 500.0), (Metric::Cpu, 100.0)]));
    }
}
