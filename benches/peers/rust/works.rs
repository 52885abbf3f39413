//! The works: what each request does, whatever the way.

use std::fmt::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::host::{await_sleep, cpu_us, epoch_us, open_fds, raise_descriptor_limit, rss_kib, threads};
use crate::way::{Mode, Result, Way};

const QUIET: &str = "exec sleep 300";
const TELLS: &str = "echo r; exec sleep 300";
const CHATTERS: &str = "while :; do echo chatter; done";
/// Pauses before it tells the time, so that whoever reads it waits for it.
const TELLS_TIME: &str = "sleep 0.005; echo $EPOCHREALTIME";

/// The answer to a request; `None` when it is not supported.
pub fn answer(way: &dyn Way, request: &str) -> Result<Option<String>> {
    let (name, rest) = request.split_once('\t').unwrap_or((request, ""));
    if ["many", "kill", "first_byte", "wakeup"].contains(&name) {
        raise_descriptor_limit();
    }
    let fields: Vec<&str> = rest.splitn(3, '\t').collect();
    match (name, &fields[..]) {
        ("run", [count, mode, command]) => run(way, number(count, 1)?, mode, command),
        ("parallel", [callers, count, command]) => {
            parallel(way, number(callers, 1)?, number(count, 1)?, command).map(Some)
        }
        ("many", [count]) => match number(count, 1)? {
            count if count > way.most() => Ok(None),
            count => many(way, count).map(Some),
        },
        ("kill", [count]) => each(number(count, 1)?, || kill(way)).map(Some),
        ("first_byte", [count, chatty]) => first_byte(way, number(count, 1)?, number(chatty, 0)?),
        ("wakeup", [pipes, count]) => wakeup(way, number(pipes, 0)?, number(count, 1)?),
        ("run" | "parallel" | "many" | "kill" | "first_byte" | "wakeup", _) => {
            Err(format!("{name}: a field is missing"))
        }
        _ => Ok(None),
    }
}

fn number(text: &str, least: usize) -> Result<usize> {
    match text.parse() {
        Ok(value) if (least..=1_000_000).contains(&value) => Ok(value),
        _ => Err(format!("{text:?}: not a number that can be used")),
    }
}

fn us(since: Instant) -> u64 {
    since.elapsed().as_micros() as u64
}

fn list(values: &[u64]) -> String {
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    format!("wall_us={}", values.join(","))
}

fn each(count: usize, work: impl FnMut() -> Result<u64>) -> Result<String> {
    let walls: Vec<u64> = std::iter::repeat_with(work).take(count).collect::<Result<_>>()?;
    Ok(list(&walls))
}

fn run(way: &dyn Way, count: usize, mode: &str, command: &str) -> Result<Option<String>> {
    let mode = match mode {
        "keep" => Mode::Keep,
        "spill" if way.spills() => Mode::Spill,
        "spill" => return Ok(None),
        _ => return Err(format!("{mode:?}: no such mode")),
    };
    way.prepare(command)?;
    let (cpu, mut bytes) = (cpu_us(), 0);
    let mut answer = each(count, || {
        let since = Instant::now();
        let ran = way.run(mode, command)?;
        let wall = us(since);
        bytes = ran.bytes;
        for file in ran.files {
            std::fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(wall)
    })?;
    let _ = write!(answer, "\tcpu_us={}\tbytes={bytes}", cpu_us() - cpu);
    Ok(Some(answer))
}

fn parallel(way: &dyn Way, callers: usize, count: usize, command: &str) -> Result<String> {
    way.prepare(command)?;
    let (cpu, since) = (cpu_us(), Instant::now());
    way.parallel(callers, count, command)?;
    Ok(format!("wall_us={}\tcpu_us={}", us(since), cpu_us() - cpu))
}

fn many(way: &dyn Way, count: usize) -> Result<String> {
    let (since, cpu, rss) = (Instant::now(), cpu_us(), rss_kib());
    let mut crowd = way.start_crowd(count, TELLS)?;
    crowd.all_said()?;
    let mut answer = format!("ready_us={}\tstart_cpu_us={}", us(since), cpu_us() - cpu);
    let _ = write!(answer, "\trss_kib={}", rss_kib().saturating_sub(rss));
    let _ = write!(answer, "\tthreads={}\tfds={}", threads(), open_fds());
    sleep(Duration::from_millis(200));

    let cpu = cpu_us();
    sleep(Duration::from_secs(1));
    let _ = write!(answer, "\tidle_us={}", cpu_us() - cpu);

    let (since, cpu) = (Instant::now(), cpu_us());
    crowd.stop()?;
    let _ = write!(answer, "\tkill_us={}\tkill_cpu_us={}", us(since), cpu_us() - cpu);
    Ok(answer)
}

fn kill(way: &dyn Way) -> Result<u64> {
    let mut process = way.start(TELLS)?;
    process.read(&mut Vec::new())?;
    await_sleep(process.pid())?;
    let since = Instant::now();
    process.stop()?;
    process.finish()?;
    Ok(us(since))
}

/// What `$EPOCHREALTIME` says: six digits follow the decimal point, which is a comma in some languages.
fn told_us(text: &[u8]) -> Result<u64> {
    let digits: String = text.iter().filter(|byte| byte.is_ascii_digit()).map(|&byte| byte as char).collect();
    digits.parse().map_err(|_| "no $EPOCHREALTIME: that needs bash 5".to_owned())
}

fn first_byte(way: &dyn Way, count: usize, chatty: usize) -> Result<Option<String>> {
    if chatty > way.most() {
        return Ok(None);
    }
    let mut crowd = way.start_crowd(chatty, CHATTERS)?;
    sleep(Duration::from_millis(100)); // until they chatter
    let answer = each(count, || {
        let mut process = way.start(TELLS_TIME)?;
        let mut buffer = Vec::new();
        let n = process.read(&mut buffer)?;
        let read_at = epoch_us();
        process.finish()?;
        Ok(read_at.saturating_sub(told_us(&buffer[..n])?))
    })?;
    crowd.stop()?;
    Ok(Some(answer))
}

fn wakeup(way: &dyn Way, pipes: usize, count: usize) -> Result<Option<String>> {
    if pipes / 2 > way.most() {
        return Ok(None);
    }
    // A read from a pipe that nothing ever comes from is a pause that costs no process.
    let lines =
        format!("exec 9<> <(:); for ((i = 0; i < {count}; i++)); do echo line $i; read -t 0.001 -u 9; done; true");
    let mut crowd = way.start_crowd(pipes / 2, QUIET)?;
    crowd.pids().into_iter().try_for_each(await_sleep)?;
    sleep(Duration::from_millis(200));

    let (cpu, mut wakeups, mut buffer) = (cpu_us(), 0, Vec::new());
    let mut process = way.start(&lines)?;
    while process.read(&mut buffer)? > 0 {
        wakeups += 1;
    }
    process.finish()?;
    let answer = format!("cpu_us={}\twakeups={wakeups}", cpu_us() - cpu);
    crowd.stop()?;
    Ok(Some(answer))
}

/// The version of a package that was linked.
pub fn locked_version(package: &str) -> &'static str {
    const LOCK: &str = include_str!("../../Cargo.lock");
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK.lines().skip_while(|line| *line != name).skip(1);
    lines.next().and_then(|line| line.strip_prefix("version = ")).map_or("?", |version| version.trim_matches('"'))
}
