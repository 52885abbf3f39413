//! What the integration tests share: quick executors, waiting on conditions, and hosts of a special kind.
#![allow(dead_code)]

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dsh::{Captured, Chunk, Config, Executor, Exit, Process, Request, RunResult, Stream};

/// Tells a hang from an end on a machine that is busy with other things. Nothing is expected to take as long.
pub const HANG: Duration = Duration::from_secs(20);

/// Budgets with a short grace and drain.
pub fn quick() -> Config {
    Config { grace_ms: 300, drain_ms: 200, ..Config::default() }
}

pub fn executor() -> Executor {
    Executor::new(&quick()).unwrap()
}

pub fn executor_with(change: impl FnOnce(&mut Config)) -> Executor {
    let mut config = quick();
    change(&mut config);
    Executor::new(&config).unwrap()
}

/// A request with some of its terms changed.
pub fn request(command: impl Into<Vec<u8>>, change: impl FnOnce(&mut Request)) -> Request {
    let mut request = Request::new(command);
    change(&mut request);
    request
}

pub fn text(captured: &Captured) -> String {
    String::from_utf8(captured.bytes.clone()).expect("the output is UTF-8")
}

pub fn stdout_of(executor: &Executor, command: &str) -> String {
    text(&executor.run(command).unwrap().stdout)
}

pub fn code(result: &RunResult) -> Option<i32> {
    match result.outcome.exit {
        Exit::Code(code) => Some(code),
        _ => None,
    }
}

pub fn signal(result: &RunResult) -> Option<i32> {
    match result.outcome.exit {
        Exit::Signal { number, .. } => Some(number),
        _ => None,
    }
}

/// Waits until something is so; fails when that takes as long as a hang.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < HANG, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs something that must not hang, and gives its result.
#[track_caller]
pub fn in_time<T>(run: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = run();
    assert!(began.elapsed() < HANG, "took {:?}", began.elapsed());
    result
}

/// Everything that a stream of a background process has in memory, from offset 0 on.
pub fn stream_of(process: &Process, stream: Stream) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 20];
    let reading = process.read_stream(stream, 0, &mut buffer).unwrap();
    buffer.truncate(reading.len);
    buffer
}

/// Consuming reads until one gives something.
#[track_caller]
pub fn next_chunk(process: &Process) -> Chunk {
    let mut chunk = Chunk::default();
    until("there is output", || {
        chunk = process.read_output().unwrap();
        !chunk.bytes.is_empty() || chunk.end
    });
    chunk
}

/// Waits until a background process has printed as many lines, and gives them.
#[track_caller]
pub fn lines_of(process: &Process, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    until("the command has printed its lines", || {
        let bytes = stream_of(process, Stream::Stdout);
        lines = String::from_utf8_lossy(&bytes)
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| line.trim().to_owned())
            .collect();
        lines.len() >= count
    });
    lines
}

/// All whitespace-separated numbers of a text: pids that a command has printed.
pub fn pids_in(text: &str) -> Vec<i32> {
    text.split_whitespace().map(|word| word.parse().expect("a pid")).collect()
}

/// Whether a process with this number runs. A zombie does not.
pub fn is_alive(pid: i32) -> bool {
    state_of(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

pub fn state_of(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].chars().next()
}

/// A variable with a value that nobody else has, to find everything that a command has left.
pub struct Mark(String);

impl Mark {
    pub fn new() -> Mark {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let time = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        Mark(format!("{}-{time}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed)))
    }

    /// For the environment of a request.
    pub fn entry(&self) -> (OsString, Option<OsString>) {
        ("SCENARIO_MARK".into(), Some(self.0.clone().into()))
    }

    pub fn request(&self, command: &str) -> Request {
        Request { env: vec![self.entry()], ..Request::new(command) }
    }

    /// The processes that carry it and are alive.
    pub fn alive(&self) -> Vec<i32> {
        processes_with(&format!("SCENARIO_MARK={}", self.0))
    }

    #[track_caller]
    pub fn is_gone(&self) {
        assert_eq!(self.alive(), [], "something of the command is left");
    }
}

/// Live processes with exactly this entry in their environment.
pub fn processes_with(entry: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for pid in std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()) {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|one| one == entry.as_bytes()) && is_alive(pid) {
            found.push(pid);
        }
    }
    found
}

/// The live or dead children of this process.
pub fn children() -> Vec<i32> {
    let parent_of = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat[stat.rfind(')')? + 2..].split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent_of(*pid) == Some(std::process::id())).collect()
}

pub fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

pub fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A line of /proc/self/status in bytes, such as `VmHWM`.
pub fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Makes `VmHWM` start anew from what is resident now.
pub fn reset_peak_memory() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// A process of the test's own that must not be touched. It is ended with the value.
pub struct Canary(Child);

impl Canary {
    pub fn new(command: &mut Command, own_session: bool) -> Canary {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if own_session {
            // SAFETY: setsid is async-signal-safe.
            unsafe { command.pre_exec(|| nix::unistd::setsid().map(|_| ()).map_err(Into::into)) };
        }
        Canary(command.spawn().unwrap())
    }

    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    #[track_caller]
    pub fn is_untouched(&mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "a process of somebody else was ended");
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let pending: Vec<_> =
            status.lines().filter(|line| line.starts_with("SigPnd") || line.starts_with("ShdPnd")).collect();
        assert!(pending.iter().all(|line| line.ends_with("\t0000000000000000")), "{pending:?}");
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const HOST: &str = "SCENARIO_HOST";

/// The name of the test that this stands in, as the test harness takes it.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        let path = std::any::type_name_of_val(&here);
        let path = path.trim_end_matches("::here").trim_end_matches("::{{closure}}");
        path.split_once("::").unwrap().1
    }};
}

/// Whether this process was started by [`host_command`] for that test, to play the host.
pub fn plays_host(test: &str) -> bool {
    std::env::var_os(HOST).is_some_and(|name| name == *test)
}

/// This test binary again, with one thread (the main one), to play the host in that test.
pub fn host_command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(HOST, test).stdin(Stdio::null());
    command
}

/// Runs a host to its end, which has to be a good one; gives what it printed.
#[track_caller]
pub fn run_host(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let ran = printed.contains("1 passed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && ran, "the host ended with {}\n{printed}\n{errors}", output.status);
    printed
}

/// Runs a test's body in a process of its own, on its main thread.
#[track_caller]
pub fn in_own_process(test: &str, body: impl FnOnce()) {
    in_own_process_with(test, |_| {}, body);
}

/// The same with changes to how the process is started.
#[track_caller]
pub fn in_own_process_with(test: &str, change: impl FnOnce(&mut Command), body: impl FnOnce()) {
    if plays_host(test) {
        body();
    } else {
        let mut command = host_command(test);
        change(&mut command);
        run_host(&mut command);
    }
}

/// Tells the test something from the host that it plays.
pub fn tell(words: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nTELL {words}").unwrap();
    out.flush().unwrap();
}

/// What a host has told.
pub fn told(line: &str) -> Option<&str> {
    line.strip_prefix("TELL ")
}

/// Becomes nobody for good. To be called on the main thread of a process of its own.
pub fn become_nobody() {
    let nobody = nix::unistd::Uid::from_raw(65534);
    if nix::unistd::geteuid().is_root() {
        nix::unistd::setgroups(&[]).unwrap();
        nix::unistd::setgid(nix::unistd::Gid::from_raw(65534)).unwrap();
        nix::unistd::setuid(nobody).unwrap();
        std::env::set_var("HOME", "/");
    }
}

/// Has nobody reach the directory of a test: `tempdir` makes it for its owner alone.
pub fn open_to_all(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
