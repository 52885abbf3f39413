//! Whether `denied` is right: over a hundred commands whose truth is known, under each backend, as root and as an
//! ordinary user. What comes of it is published in `docs/denials.md`.
#![cfg(target_os = "linux")]

#[path = "denials/cases.rs"]
mod cases;
mod common;
#[path = "common/confined.rs"]
mod confined;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use cases::*;
use common::*;
use confined::*;
use dsh::{Backend, Denied, Evidence, Mode, SandboxFacts, SandboxPolicy};

/// What a verdict is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    Right,
    /// Neither right nor wrong.
    Open,
    Miss,
    FalseAlarm,
}

fn worth(truth: Truth, denied: Denied) -> Worth {
    match (truth, denied) {
        (Truth::Denied | Truth::Hidden, Denied::Yes) | (Truth::Not | Truth::Incidental, Denied::No) => Worth::Right,
        // There is no more to know about these.
        (Truth::Hidden | Truth::Incidental, Denied::Unknown) => Worth::Right,
        (Truth::Denied | Truth::Hidden, Denied::No) => Worth::Miss,
        (Truth::Not | Truth::Incidental, Denied::Yes) => Worth::FalseAlarm,
        _ => Worth::Open,
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn truth(case: &Case, backend: Backend) -> Truth {
    let by_user = if is_root() { None } else { case.unless_root };
    let by_backend = if backend == Backend::Landlock { case.under_landlock } else { None };
    by_user.or(by_backend).unwrap_or(case.truth)
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok_and(|mut child| child.wait().is_ok())
}

/// What is found about one command; `None` where it can't be run.
fn measure(case: &Case, backend: Backend) -> Option<(SandboxFacts, String)> {
    if !case.takes.split_whitespace().all(is_there) {
        return None;
    }
    let place = Place::with(backend, |_| {});
    fs::create_dir(place.outside.join("secret")).unwrap();
    fs::write(place.outside.join("secret/key"), "key\n").unwrap();
    let before = Command::new("bash")
        .args(["-c", case.before])
        .current_dir(&place.workspace)
        .envs([("WS", &place.workspace), ("OUT", &place.outside)])
        .output()
        .unwrap();
    assert!(before.status.success(), "{}: {}", case.before, String::from_utf8_lossy(&before.stderr));
    let result = place.run_with(case.command, |request| {
        request.timeout_ms = 120_000;
        request.env.push(("npm_config_update_notifier".into(), Some("false".into())));
        // What would have the tools do other than they usually do.
        request.env.extend(["CARGO_TARGET_DIR", "PYTHONDONTWRITEBYTECODE"].map(|name| (name.into(), None)));
        request.sandbox = Some(SandboxPolicy {
            hidden: vec![place.outside.join("secret")],
            ..SandboxPolicy::new(if case.under == Under::ReadOnly { Mode::ReadOnly } else { Mode::WorkspaceWrite })
        });
    });
    let facts = result.sandbox.expect("a policy was asked for");
    let told = format!("{:?} {}", result.outcome.exit, String::from_utf8_lossy(&result.stderr.bytes));
    if let (Denied::Yes, Some(evidence)) = (facts.denied, &facts.evidence) {
        assert!(evidence.path.is_absolute() && !evidence.rule.is_empty(), "{evidence:?}");
    }
    Some((*facts, told))
}

fn name(denied: Denied) -> &'static str {
    match denied {
        Denied::Yes => "yes",
        Denied::No => "no",
        _ => "unknown",
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    right: usize,
    open: usize,
    misses: usize,
    false_alarms: usize,
}

/// How many commands run at a time.
const AT_A_TIME: usize = 4;

/// What is found about all commands, by backend.
fn measure_all() -> Vec<[Option<(SandboxFacts, String)>; 2]> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((index, case)) = CASES.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
                    let both = BACKENDS.map(|backend| measure(case, backend));
                    found.lock().unwrap().push((index, both));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, both)| both).collect()
}

/// The rows of the table, and the counts by backend.
fn table() -> (Vec<String>, [Count; 2]) {
    let mut counts = [Count::default(), Count::default()];
    let mut rows = Vec::new();
    for (case, found) in CASES.iter().zip(measure_all()) {
        let mut cells = Vec::new();
        for ((backend, count), found) in BACKENDS.into_iter().zip(&mut counts).zip(found) {
            let Some((facts, told)) = found else { continue };
            let worth = worth(truth(case, backend), facts.denied);
            let (number, mark) = match worth {
                Worth::Right => (&mut count.right, ""),
                Worth::Open => (&mut count.open, " (open)"),
                Worth::Miss => (&mut count.misses, " (miss)"),
                Worth::FalseAlarm => (&mut count.false_alarms, " (false alarm)"),
            };
            *number += 1;
            if worth != Worth::Right || std::env::var_os("DSH_SHOW_DENIALS").is_some() {
                println!("{backend}{mark}: {}\n  {:?}\n  {told}", case.command, facts.evidence);
            }
            cells.push(format!("{}{mark}", name(facts.denied)));
        }
        if cells.len() == BACKENDS.len() {
            let command = case.command.replace('\n', "⏎").replace('|', "\\|");
            let mode = if case.under == Under::ReadOnly { "read-only" } else { "workspace" };
            let by_backend =
                case.under_landlock.map_or(String::new(), |truth| format!(" (Landlock: {})", truth.words()));
            let truth = case.truth.words();
            rows.push(format!("| `{command}` | {mode} | {truth}{by_backend} | {} |", cells.join(" | ")));
        }
    }
    let user = if is_root() { "root" } else { "an ordinary user" };
    println!("as {user}: {:?}", BACKENDS.iter().zip(&counts).collect::<Vec<_>>());
    (rows, counts)
}

struct Published {
    misses: usize,
    open: usize,
}

#[track_caller]
fn is_as_good_as_published(counts: &[Count; 2]) {
    let published = [Published { misses: 1, open: 2 }, Published { misses: 0, open: 1 }];
    for ((backend, count), published) in BACKENDS.iter().zip(counts).zip(published) {
        assert_eq!(count.false_alarms, 0, "{backend}: {count:?}");
        assert!(count.misses <= published.misses && count.open <= published.open, "{backend}: {count:?}");
    }
}

#[test]
fn a_denial_is_told_from_other_failures() {
    let (rows, counts) = table();
    if is_root() {
        is_published(&rows);
    }
    is_as_good_as_published(&counts);
}

#[test]
fn a_denial_is_told_from_what_an_ordinary_user_may_not_do_anyway() {
    if is_root() {
        in_own_process(test_name!(), || {
            become_nobody();
            std::env::set_var("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
            is_as_good_as_published(&table().1);
        });
    }
}

/// The published table has the rows; `DSH_UPDATE_DENIALS=1` writes it anew.
fn is_published(rows: &[String]) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/denials.md");
    let text = fs::read_to_string(path).unwrap();
    let begin = text.find("| command |").expect("there is a table");
    let end = text[begin..].find("\n\n").map_or(text.len(), |length| begin + length + 1);
    let table: Vec<&str> = text[begin..end].lines().collect();
    if std::env::var_os("DSH_UPDATE_DENIALS").is_some() {
        let new = [&table[..2].join("\n"), "\n", &rows.join("\n"), "\n"].concat();
        fs::write(path, text.replace(&text[begin..end], &new)).unwrap();
    } else if let Some(row) = rows.iter().find(|row| !table.contains(&row.as_str())) {
        panic!("not in docs/denials.md (set DSH_UPDATE_DENIALS=1 to have the table written anew):\n{row}");
    }
}

#[test]
fn a_workspace_in_tmp_that_may_only_be_read_is_not_taken_for_the_commands_own_tmp() {
    for backend in BACKENDS {
        let folder = tempfile::Builder::new().prefix("dsh-denials-").tempdir_in("/tmp").unwrap();
        let policy = SandboxPolicy { backends: vec![backend], ..SandboxPolicy::new(Mode::ReadOnly) };
        let cwd = folder.path().to_owned();
        let executor = executor_with(|config| (config.sandbox, config.cwd) = (Some(policy), Some(cwd)));
        let facts = executor.run("touch new").unwrap().sandbox.unwrap();
        assert_eq!(facts.denied, Denied::Yes, "{facts:?}");
        let expected =
            Evidence { path: folder.path().canonicalize().unwrap().join("new"), rule: "read-only mode".into() };
        assert_eq!(facts.evidence, Some(expected));
        let facts = executor.run("mktemp && touch /tmp/x").unwrap().sandbox.unwrap();
        assert_eq!(facts.denied, if backend == Backend::Bubblewrap { Denied::No } else { Denied::Yes }, "{facts:?}");
    }
}
