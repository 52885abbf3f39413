//! Plays a scenario list through the Rust API: the driver that README.md describes, as a function.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, mem};

use dsh::{
    Backend, CancelToken, Captured, Chunk, Config, Denied, Enforcement, Error, ErrorKind, EventKind, Executor, Exit,
    Keep, Mode, Network, Outcome, Process, Request, SandboxFacts, SandboxPolicy, Status, StopBy, StopStage, Stream,
    Survivors,
};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use tempfile::TempDir;

use super::list::{quoted, says_nothing, split, unescaped};

/// What came of all cases of a list, line by line.
pub fn play(list: &str) -> Vec<String> {
    let mut printed = Vec::new();
    let mut case = None;
    for line in list.lines().filter(|line| !says_nothing(line) && !line.starts_with("= ")) {
        if line.starts_with("case ") {
            printed.push(line.to_owned());
            case = Some(Case::new());
            continue;
        }
        let case = case.as_mut().expect("a list begins with a case");
        let (word, rest) = split(line);
        match word {
            "config" => case.config(rest),
            "set" => case.set(rest),
            "fill" => case.fill(rest),
            "file" => case.file(rest),
            _ => {
                printed.push(line.to_owned());
                let lines = case.step(word, rest).unwrap_or_else(|error| vec![error_line(&error)]);
                printed.extend(lines.into_iter().map(|line| format!("= {}", case.without_dir(line))));
            }
        }
    }
    printed
}

type Lines = dsh::Result<Vec<String>>;

/// One case: its executor, the terms of its next request, its process.
struct Case {
    dir: PathBuf,
    config: Config,
    terms: Request,
    token: CancelToken,
    executor: Option<Executor>,
    process: Option<Process>,
    /// Whether the last request had input.
    had_input: bool,
    /// The kinds of events that the process has had.
    seen: Vec<EventKind>,
    _folder: TempDir,
}

impl Drop for Case {
    fn drop(&mut self) {
        if let Some(executor) = &self.executor {
            let _ = executor.shutdown(None); // before the folder goes
        }
    }
}

impl Case {
    fn new() -> Case {
        let folder = tempfile::Builder::new().prefix("scenario-").tempdir().unwrap();
        Case {
            dir: folder.path().canonicalize().unwrap(),
            config: Config::default(),
            terms: Request::default(),
            token: CancelToken::new(),
            executor: None,
            process: None,
            had_input: false,
            seen: Vec::new(),
            _folder: folder,
        }
    }

    // Values.

    fn bytes(&self, value: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, part) in value.split("@DIR@").enumerate() {
            if index > 0 {
                bytes.extend(self.dir.as_os_str().as_bytes());
            }
            bytes.extend(unescaped(part));
        }
        bytes
    }

    fn os(&self, value: &str) -> OsString {
        OsString::from_vec(self.bytes(value))
    }

    /// `NAME=VALUE`, or `NAME` alone.
    fn entry(&self, value: &str) -> (OsString, Option<OsString>) {
        let mut name = self.bytes(value);
        let content = name.iter().position(|byte| *byte == b'=').map(|at| name.split_off(at)[1..].to_vec());
        (OsString::from_vec(name), content.map(OsString::from_vec))
    }

    fn without_dir(&self, line: String) -> String {
        line.replace(self.dir.to_str().unwrap(), "@DIR@")
    }

    // Preparing.

    fn config(&mut self, rest: &str) {
        let (key, value) = split(rest);
        match key {
            "cwd" => self.config.cwd = Some(self.os(value).into()),
            "shell" => self.config.shell = Some(self.os(value).into()),
            "spill_dir" => self.config.spill_dir = Some(self.os(value).into()),
            "env_allow" => self.config.env_allow.push(self.os(value)),
            "env_deny" => self.config.env_deny.push(self.os(value)),
            "keep" => self.config.keep = if value == "head_tail" { Keep::HeadTail } else { Keep::Tail },
            "inherit_env" => self.config.inherit_env = value == "on",
            "guard" => self.config.guard = value == "on",
            "keep_spill_files" => self.config.keep_spill_files = value == "on",
            _ if key.starts_with(POLICY) => {
                let policy = self.config.sandbox.take().unwrap_or_default();
                self.config.sandbox = Some(self.changed(policy, key, value));
            }
            _ => *number_budget(&mut self.config, key) = value.parse().unwrap(),
        }
    }

    fn set(&mut self, rest: &str) {
        let (key, value) = split(rest);
        match key {
            "command" => self.terms.command = self.bytes(value),
            "input" => self.terms.stdin = Some(self.bytes(value)),
            "workdir" => self.terms.workdir = Some(self.os(value).into()),
            "timeout_ms" => self.terms.timeout_ms = value.parse().unwrap(),
            "stdout_max_bytes" => self.terms.stdout_max_bytes = value.parse().unwrap(),
            "tag" => self.terms.tag = value.parse().unwrap(),
            "env" => self.terms.env.push(self.entry(value)),
            "dsh_env" => {
                let (name, content) = self.entry(value);
                self.terms.dsh_env.push((name, content.expect("an entry of dsh_env has a value")));
            }
            "merge_stderr" => self.terms.merge_stderr = value == "on",
            "survivors" => self.terms.survivors = if value == "kill" { Survivors::Kill } else { Survivors::Keep },
            "cancel" => self.terms.cancel = (value == "on").then(|| self.token.clone()),
            _ if key.starts_with(POLICY) => {
                let policy = self.terms.sandbox.take().unwrap_or_default();
                self.terms.sandbox = Some(self.changed(policy, key, value));
            }
            _ => panic!("an unknown term: {rest}"),
        }
    }

    /// A policy after a `sandbox.KEY VALUE`.
    fn changed(&self, mut policy: SandboxPolicy, key: &str, value: &str) -> SandboxPolicy {
        match &key[POLICY.len()..] {
            "mode" => policy.mode = Some(named(&Mode::ALL, Mode::name, value)),
            "network" => policy.network = Some(named(&NETWORKS, Network::name, value)),
            "backend" => policy.backends.push(named(&BACKENDS, Backend::name, value)),
            "workspace" => policy.workspace = Some(self.os(value).into()),
            "writable" => policy.writable.push(self.os(value).into()),
            "hidden" => policy.hidden.push(self.os(value).into()),
            "git_worktree" => policy.git_worktree = Some(value == "on"),
            _ => panic!("an unknown term of a policy: {key}"),
        }
        policy
    }

    fn fill(&mut self, rest: &str) {
        let (key, rest) = split(rest);
        let (count, text) = split(rest);
        let filled = self.bytes(text).repeat(count.parse().unwrap());
        match key {
            "command" => self.terms.command = filled,
            "input" => self.terms.stdin = Some(filled),
            _ => panic!("can't be filled: {key}"),
        }
    }

    fn file(&mut self, rest: &str) {
        let (name, rest) = split(rest);
        let (mode, text) = split(rest);
        let path = self.dir.join(name);
        if name.ends_with('/') {
            fs::create_dir(&path).unwrap();
        } else {
            fs::write(&path, self.bytes(text)).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(u32::from_str_radix(mode, 8).unwrap())).unwrap();
    }

    // Steps.

    fn step(&mut self, word: &str, rest: &str) -> Lines {
        if self.executor.is_none() {
            let made = Executor::new(&self.config);
            if matches!(word, "run" | "start" | "resolve") && made.is_err() {
                self.terms = Request::default();
            }
            let executor = made?;
            executor.event_fd()?; // events are kept from here on
            self.executor = Some(executor);
        }
        match word {
            "run" => self.run(),
            "start" => self.start(),
            "until" => self.until(rest),
            "wait" => self.wait(rest),
            "read" => Ok(chunk_lines(&[self.process().read_output()?])),
            "read_all" => self.read_all(),
            "stream" => self.stream(rest),
            "kill" => Ok(vec![if self.process().kill()? { "was running" } else { "was not running" }.to_owned()]),
            "cancel" => {
                self.token.cancel();
                Ok(Vec::new())
            }
            "quiescent" => self.quiescent().map(|()| Vec::new()),
            "events" => self.events(),
            "resolve" => self.resolve(),
            "configure" => self.executor().configure(&self.config).map(|()| vec!["configured".to_owned()]),
            "settings" => Ok(vec![format!("{rest} {}", setting(self.executor().config()?, rest))]),
            "shutdown" => self.executor().shutdown(None).map(|()| Vec::new()),
            _ => panic!("an unknown step: {word}"),
        }
    }

    fn executor(&self) -> &Executor {
        self.executor.as_ref().unwrap()
    }

    fn process(&self) -> &Process {
        self.process.as_ref().expect("something was started")
    }

    fn request(&mut self) -> Request {
        let request = mem::take(&mut self.terms);
        self.had_input = request.stdin.is_some();
        request
    }

    /// Takes the events that wait; waits for some when there are none.
    fn take_events(&mut self) -> dsh::Result<()> {
        let number = self.executor().event_fd()?;
        // SAFETY: the descriptor lives as long as the executor.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::NONE).unwrap();
        while let Some(event) = self.executor().next_event()? {
            if event.process_id == self.process().id() {
                self.seen.push(event.kind);
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Lines {
        let request = self.request();
        let result = self.executor().run(request)?;
        let mut lines = outcome_lines(&result.outcome, false);
        lines.extend(result.sandbox.iter().flat_map(|facts| facts_lines(facts, true)));
        lines.extend(captured_line("stdout", &result.stdout));
        lines.extend(captured_line("stderr", &result.stderr));
        if result.timeout_ms != 120_000 {
            lines.push(format!("timeout {}", result.timeout_ms));
        }
        lines.extend(self.input_line(result.stdin_written));
        lines.extend(scrubbed_line(&result.scrubbed));
        Ok(lines)
    }

    fn start(&mut self) -> Lines {
        let request = self.request();
        self.process = None;
        self.seen.clear();
        self.process = Some(self.executor().start(request)?);
        Ok(vec!["started".to_owned()])
    }

    fn until(&mut self, rest: &str) -> Lines {
        let (stream, text) = split(rest);
        let wanted = self.bytes(text);
        let (mut seen, mut offset, mut buffer) = (Vec::<u8>::new(), 0, [0; 4096]);
        loop {
            let reading = self.process().read_stream(stream_of(stream), offset, &mut buffer)?;
            offset = reading.next;
            seen.extend(&buffer[..reading.len]);
            if seen.windows(wanted.len()).any(|window| window == wanted) {
                return Ok(vec!["seen".to_owned()]);
            }
            if reading.end {
                return Ok(vec!["ended".to_owned()]);
            }
            if reading.len == 0 {
                self.take_events()?;
            }
        }
    }

    fn wait(&mut self, rest: &str) -> Lines {
        let limit = (!rest.is_empty()).then(|| Duration::from_millis(rest.parse().unwrap()));
        match self.process().wait(limit) {
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(vec!["timed out".to_owned()]),
            waited => waited?,
        }
        let info = self.process().info()?;
        let status = match info.status {
            Status::Running => "running",
            Status::Completed => "completed",
            Status::Killed => "killed",
            other => panic!("an unknown status: {other:?}"),
        };
        let mut lines = vec![format!("status {status}")];
        lines.extend(info.outcome.iter().flat_map(|outcome| outcome_lines(outcome, true)));
        let is_settled = info.status != Status::Running;
        lines.extend(info.sandbox.iter().flat_map(|facts| facts_lines(facts, is_settled)));
        lines.extend(count_line("out", info.totals[0]));
        lines.extend(count_line("err", info.totals[1]));
        lines.extend(self.input_line(info.stdin_written));
        lines.extend(count_line("tag", info.tag));
        Ok(lines)
    }

    fn read_all(&mut self) -> Lines {
        self.process().wait(None)?;
        let mut chunks = vec![self.process().read_output()?];
        while !chunks[chunks.len() - 1].end {
            if chunks[chunks.len() - 1].bytes.is_empty() {
                self.take_events()?;
            }
            chunks.push(self.process().read_output()?);
        }
        Ok(chunk_lines(&chunks))
    }

    fn stream(&self, rest: &str) -> Lines {
        let (stream, rest) = split(rest);
        let (offset, capacity) = split(rest);
        let mut buffer = vec![0; capacity.parse().unwrap()];
        let reading = self.process().read_stream(stream_of(stream), offset.parse().unwrap(), &mut buffer)?;
        let missing = count_line(" missing", reading.missing).unwrap_or_default();
        let mut lines = vec![format!("start {} next {}{missing}", reading.start, reading.next)];
        lines.extend(reading.end.then(|| "end".to_owned()));
        lines.push(format!("text {}", quoted(&buffer[..reading.len])));
        Ok(lines)
    }

    fn quiescent(&mut self) -> dsh::Result<()> {
        while !self.seen.contains(&EventKind::Quiescent) {
            self.take_events()?;
        }
        Ok(())
    }

    fn events(&mut self) -> Lines {
        self.quiescent()?;
        let kinds = [
            (EventKind::Output, " OUTPUT"),
            (EventKind::Exit, " EXIT"),
            (EventKind::Settled, " SETTLED"),
            (EventKind::Quiescent, " QUIESCENT"),
        ];
        let seen = kinds.iter().filter(|(kind, _)| self.seen.contains(kind)).map(|(_, name)| *name);
        Ok(vec![format!("events{}", seen.collect::<String>())])
    }

    fn resolve(&mut self) -> Lines {
        let request = self.request();
        let spec = self.executor().resolve(request)?;
        let command = spec.command();
        let mut lines = vec![
            format!("command {}", quoted(&command[..command.len().min(60)])),
            format!("workdir {}", quoted(spec.workdir().as_os_str().as_bytes())),
            format!("timeout {}", spec.timeout_ms()),
            format!("stdout max {}", spec.stdout_max_bytes()),
            format!("max output {}", spec.max_output_bytes()),
            format!("grace {}", spec.grace_ms()),
            format!("drain {}", spec.drain_ms()),
            format!("survivors {}", if spec.survivors() == Survivors::Kill { "kill" } else { "keep" }),
        ];
        lines.extend(spec.sandbox_mode().map(|mode| format!("sandbox {mode}")));
        lines.extend(spec.merge_stderr().then(|| "merge_stderr".to_owned()));
        lines.extend(count_line("tag", spec.tag()));
        lines.extend(scrubbed_line(spec.scrubbed()));
        Ok(lines)
    }

    fn input_line(&self, written: u64) -> Option<String> {
        self.had_input.then(|| format!("input {written}"))
    }
}

fn number_budget<'a>(config: &'a mut Config, key: &str) -> &'a mut u64 {
    match key {
        "timeout_ms" => &mut config.timeout_ms,
        "max_timeout_ms" => &mut config.max_timeout_ms,
        "max_output_bytes" => &mut config.max_output_bytes,
        "max_spill_bytes" => &mut config.max_spill_bytes,
        "max_total_spill_bytes" => &mut config.max_total_spill_bytes,
        "grace_ms" => &mut config.grace_ms,
        "drain_ms" => &mut config.drain_ms,
        _ => panic!("an unknown budget: {key}"),
    }
}

fn setting(mut config: Config, key: &str) -> String {
    let path = |path: Option<PathBuf>| path.unwrap_or_default().display().to_string();
    let switch = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    match key {
        "cwd" => path(config.cwd),
        "shell" => path(config.shell),
        "spill_dir" => path(config.spill_dir),
        "keep" => if config.keep == Keep::HeadTail { "head_tail" } else { "tail" }.to_owned(),
        "inherit_env" => switch(config.inherit_env),
        "guard" => switch(config.guard),
        "keep_spill_files" => switch(config.keep_spill_files),
        "sandbox.mode" => config.sandbox.map_or("none", |policy| policy.mode.unwrap().name()).to_owned(),
        _ => number_budget(&mut config, key).to_string(),
    }
}

fn stream_of(name: &str) -> Stream {
    match name {
        "stdout" => Stream::Stdout,
        "stderr" => Stream::Stderr,
        _ => panic!("an unknown stream: {name}"),
    }
}

fn error_line(error: &Error) -> String {
    let code = match error.kind() {
        ErrorKind::Panicked => "PANIC".to_owned(),
        kind => upper_case(&format!("{kind:?}")),
    };
    let errno = error.errno().map(|errno| format!(" errno={errno}")).unwrap_or_default();
    format!("error {code} stage={}{errno} {}", error.stage(), quoted(error.message().as_bytes()))
}

/// `CommandNul` as `COMMAND_NUL`.
fn upper_case(name: &str) -> String {
    let mut upper = String::new();
    for (index, letter) in name.char_indices() {
        if index > 0 && letter.is_ascii_uppercase() {
            upper.push('_');
        }
        upper.push(letter.to_ascii_uppercase());
    }
    upper
}

fn outcome_lines(outcome: &Outcome, with_zero: bool) -> Vec<String> {
    let mut lines = Vec::new();
    match outcome.exit {
        Exit::Code(0) if !with_zero => {}
        Exit::Code(code) => lines.push(format!("exit code {code}")),
        Exit::Signal { number, .. } => lines.push(format!("exit signal {number}")),
        _ => lines.push("exit unknown".to_owned()),
    }
    lines.extend(outcome.timed_out().then(|| "timed out".to_owned()));
    lines.extend(outcome.aborted().then(|| "aborted".to_owned()));
    lines.extend(outcome.cause.map(|cause| format!("cause {}", name_of(cause))));
    lines.extend(outcome.stopped_by.map(|by| format!("stopped by {}", name_of(by))));
    match outcome.stage {
        StopStage::Term => lines.push("stage term".to_owned()),
        StopStage::Kill => lines.push("stage kill".to_owned()),
        _ => {}
    }
    lines.extend(outcome.pipes_held.then(|| "pipes held".to_owned()));
    lines.extend(count_line("held by", outcome.held_by.len() as u64));
    lines.extend(count_line("survivors", outcome.survivors.len() as u64));
    lines
}

/// What the keys of a policy begin with.
const POLICY: &str = "sandbox.";
const NETWORKS: [Network; 3] = [Network::None, Network::Loopback, Network::Full];
const BACKENDS: [Backend; 2] = [Backend::Bubblewrap, Backend::Landlock];

/// The one of this name.
fn named<T: Copy>(all: &[T], name_of: impl Fn(T) -> &'static str, name: &str) -> T {
    *all.iter().find(|one| name_of(**one) == name).unwrap_or_else(|| panic!("an unknown name: {name}"))
}

fn facts_lines(facts: &SandboxFacts, is_settled: bool) -> Vec<String> {
    let backend = facts.backend.map_or("none", Backend::name);
    let enforcement = match facts.enforcement {
        None => "none",
        Some(Enforcement::Full) => "full",
        Some(Enforcement::Partial) => "partial",
        Some(other) => panic!("an unknown enforcement: {other:?}"),
    };
    let mut lines = vec![format!("sandbox {} {backend} {enforcement} {}", facts.mode, facts.network.name())];
    lines.extend((!facts.missing.is_empty()).then(|| format!("missing {}", facts.missing.join(" "))));
    match facts.denied {
        _ if facts.runner_failed.is_some() => lines.push("runner failed".to_owned()),
        _ if !is_settled => {}
        Denied::No => lines.push("denied no".to_owned()),
        Denied::Yes => lines.push("denied yes".to_owned()),
        _ => lines.push("denied unknown".to_owned()),
    }
    lines.extend(facts.evidence.iter().filter(|_| is_settled).map(|evidence| {
        let path = quoted(evidence.path.as_os_str().as_bytes());
        format!("denied path {path} rule {}", quoted(evidence.rule.as_bytes()))
    }));
    lines
}

fn name_of(by: StopBy) -> &'static str {
    match by {
        StopBy::Timeout => "timeout",
        StopBy::Cancel => "cancel",
        StopBy::Kill => "kill",
        StopBy::Shutdown => "shutdown",
        StopBy::Survivors => "survivors",
        other => panic!("an unknown cause: {other:?}"),
    }
}

fn captured_line(name: &str, captured: &Captured) -> Option<String> {
    let mut line = format!("{name} total={}", captured.total);
    let omitted = count_line("omitted", captured.omitted).into_iter();
    for count in omitted.chain(count_line("at", captured.omitted_at as u64)) {
        line.push_str(&format!(" {}", count.replace(' ', "=")));
    }
    match (&captured.spill_path, &captured.spill_error) {
        (Some(path), _) if is_whole(path, captured.total) => line.push_str(" spill=whole"),
        (Some(_), _) => line.push_str(" spill=broken"),
        (None, Some(_)) => line.push_str(" spill=failed"),
        (None, None) => {}
    }
    (captured.total > 0).then(|| format!("{line} {}", quoted(&captured.bytes)))
}

/// Whether a file holds as many bytes and is its owner's alone.
fn is_whole(path: &Path, total: u64) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() == total && file.mode() & 0o7777 == 0o600)
}

/// Consuming reads, put together as one.
fn chunk_lines(chunks: &[Chunk]) -> Vec<String> {
    let missing = [0, 1].map(|stream| chunks.iter().map(|chunk| chunk.missing[stream]).sum::<u64>());
    let last = chunks.last().unwrap();
    let mut lines = Vec::new();
    if missing != [0, 0] {
        lines.push(format!("missing {} {}", missing[0], missing[1]));
    }
    lines.extend(last.spill_paths[0].as_ref().map(|_| "spill out".to_owned()));
    lines.extend(last.spill_paths[1].as_ref().map(|_| "spill err".to_owned()));
    lines.extend(last.end.then(|| "end".to_owned()));
    let text: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.bytes.clone()).collect();
    lines.push(format!("text {}", quoted(&text)));
    lines
}

/// A count that is said only when there is something.
fn count_line(key: &str, count: u64) -> Option<String> {
    (count > 0).then(|| format!("{key} {count}"))
}

fn scrubbed_line(names: &[OsString]) -> Option<String> {
    let names = names.iter().map(|name| name.to_string_lossy()).filter(|name| name.starts_with("SCENARIO_"));
    let mut names: Vec<_> = names.collect();
    names.sort();
    (!names.is_empty()).then(|| format!("scrubbed {}", names.join(" ")))
}
