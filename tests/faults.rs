//! Failing system calls, one at a time, at every place where the library makes them: a clear error or a true result;
//! never a hang, a crash, a leak, or a survivor.
//!
//! `tests/c/faults.c` has the calls fail, `tests/c/fault_host.c` plays scenarios and says what has to be so after each.
//! The time for the systematic part is bounded; `DSH_FAULTS=SECONDS` gives each of its two tests more.
#![cfg(target_os = "linux")]

#[path = "c/harness.rs"]
#[allow(dead_code)]
mod harness;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use harness::{build, built, finish, root};

const SCENARIOS: [&str; 11] =
    ["plain", "leaky", "overflow", "timeout", "killed", "ended", "input", "cancelled", "longer", "survivors", "left"];

/// What each call can fail with in this world. A call that only ever fails by a mistake of ours is not here.
const FAULTS: [(&str, &[i32]); 42] = [
    ("access", &[libc::ENOENT]),
    ("chdir", &[libc::EACCES, libc::EIO]),
    ("clone", &[libc::EAGAIN, libc::ENOMEM]),
    ("close", &[libc::EINTR, libc::EIO]),
    ("close_range", &[libc::ENOSYS]),
    ("dup2", &[libc::EMFILE]),
    ("epoll_create1", &[libc::EMFILE]),
    ("epoll_ctl", &[libc::ENOSPC, libc::ENOMEM]),
    ("epoll_wait", &[libc::EINTR, libc::ENOMEM]),
    ("eventfd", &[libc::EMFILE]),
    ("execve", &[libc::ENOENT, libc::ENOMEM, libc::EAGAIN]),
    ("execveat", &[libc::EACCES, libc::ENOSYS]),
    ("fchmod", &[libc::EPERM]),
    ("fcntl_dup", &[libc::EMFILE]),
    ("flock", &[libc::ENOLCK]),
    ("fstat", &[libc::ENOMEM]),
    ("ftruncate", &[libc::ENOMEM]),
    ("getcwd", &[libc::ENOENT]),
    ("getdents64", &[libc::ENOMEM]),
    ("getentropy", &[libc::ENOSYS]),
    ("memfd_create", &[libc::EMFILE, libc::ENOSYS, libc::EACCES]),
    ("mkdir", &[libc::ENOSPC, libc::EROFS]),
    ("mmap", &[libc::ENOMEM]),
    ("mprotect", &[libc::ENOMEM]),
    ("open_null", &[libc::EMFILE, libc::ENOENT]),
    ("open_other", &[libc::EMFILE, libc::ENOSPC]),
    ("open_proc", &[libc::EMFILE, libc::ENOMEM]),
    ("opendir", &[libc::EMFILE]),
    ("pidfd_open", &[libc::EMFILE, libc::ENOSYS]),
    ("pidfd_send_signal", &[libc::EINVAL, libc::ENOSYS]),
    ("pipe2", &[libc::EMFILE, libc::ENFILE]),
    ("poll", &[libc::EINTR, libc::ENOMEM]),
    ("ppoll", &[libc::EINTR, libc::ENOMEM]),
    ("prctl", &[libc::EINVAL]),
    ("pthread_create", &[libc::EAGAIN]),
    ("read_file", &[libc::EINTR, libc::ENOMEM]),
    ("read_pipe", &[libc::EINTR, libc::EAGAIN]),
    ("renameat", &[libc::EROFS]),
    ("setsid", &[libc::EPERM]),
    ("waitid", &[libc::EINTR]),
    ("waitpid", &[libc::EINTR]),
    ("write_file", &[libc::ENOSPC, libc::EINTR]),
];

/// The host, the shim and the library in a folder that everybody can reach.
struct Stage {
    folder: PathBuf,
    host: PathBuf,
    shim: PathBuf,
}

fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let host = build("fault_host");
        // One per target directory, since all of this may run twice at a time.
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_TARGET_TMPDIR"), nix::unistd::geteuid().as_raw()).hash(&mut hasher);
        let folder = PathBuf::from(format!("/tmp/dsh-faults-{:x}", hasher.finish()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        fs::copy(&host, folder.join("fault_host")).unwrap();
        fs::copy(built().join("libdsh.so"), folder.join("libdsh.so.0")).unwrap();
        let shim = folder.join("faults.so");
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.args(["-std=c11", "-g", "-O1", "-D_GNU_SOURCE", "-fPIC", "-shared", "-pthread", "-Wall", "-Wextra"]);
        compiler.args(["-Werror", "-fno-optimize-sibling-calls", "-Wl,-z,now", "-o"]).arg(&shim);
        compiler.arg(root().join("tests/c/faults.c")).arg("-ldl");
        finish(compiler);
        for path in [&folder, &folder.join("fault_host"), &folder.join("libdsh.so.0"), &shim] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        Stage { host: folder.join("fault_host"), shim, folder }
    })
}

/// One scenario with one fault.
#[derive(Clone, Debug)]
struct Case {
    scenario: &'static str,
    fault: String,
    orders: Vec<String>,
}

impl Case {
    fn new(scenario: &'static str, fault: &str, orders: &[&str]) -> Case {
        Case { scenario, fault: fault.to_owned(), orders: orders.iter().map(|order| (*order).to_owned()).collect() }
    }

    /// A command that plays it, with a folder for temporary files of its own.
    fn command(&self, user: Option<u32>) -> (Command, tempfile::TempDir) {
        let temporary = tempfile::Builder::new().prefix("dsh-fault-").tempdir_in("/tmp").unwrap();
        let mut command = match user {
            None => Command::new("env"),
            Some(user) => {
                nix::unistd::chown(temporary.path(), Some(user.into()), Some(user.into())).unwrap();
                let mut command = Command::new("setpriv");
                command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
                command.arg("env");
                command
            }
        };
        command.arg(format!("LD_PRELOAD={}", stage().shim.display())).arg(&stage().host);
        command.arg(self.scenario).args(&self.orders).env("LD_LIBRARY_PATH", &stage().folder);
        command.env("FAULT", &self.fault).env("FAULT_NAME", &self.fault);
        command.env("TMPDIR", temporary.path()).current_dir("/").stdin(Stdio::null());
        (command, temporary)
    }

    /// What the host says of how often each call was made and failed; or what was wrong.
    fn play(&self, user: Option<u32>) -> Result<BTreeMap<String, u32>, String> {
        let (mut command, _temporary) = self.command(user);
        let Output { status, stdout, stderr } = command.output().unwrap();
        if !status.success() {
            let how = if status.signal() == Some(libc::SIGALRM) { "hangs".to_owned() } else { status.to_string() };
            return Err(format!("{self:?}: {how}: {}", String::from_utf8_lossy(&stderr).trim_end()));
        }
        let counts = String::from_utf8_lossy(&stdout).into_owned();
        let words = counts.lines().filter_map(|line| line.split_once(' '));
        Ok(words.map(|(name, count)| (name.to_owned(), count.parse().unwrap())).collect())
    }
}

/// Plays the cases side by side until all are done or the time is up. Gives how many were played, how many of them had
/// a call fail, and what was wrong.
fn play_all(cases: &[Case], limit: Duration) -> (usize, usize, Vec<String>) {
    play_all_as(None, cases, limit)
}

fn play_all_as(user: Option<u32>, cases: &[Case], limit: Duration) -> (usize, usize, Vec<String>) {
    let (next, hit, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let until = Instant::now() + limit;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) + 2 {
            scope.spawn(|| {
                while Instant::now() < until {
                    let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    match case.play(user) {
                        Ok(counts) => hit.fetch_add(usize::from(counts["hits"] > 0), Ordering::Relaxed),
                        Err(error) => {
                            wrong.lock().unwrap().push(error);
                            0
                        }
                    };
                }
            });
        }
    });
    let played = next.into_inner().min(cases.len());
    (played, hit.into_inner(), wrong.into_inner().unwrap())
}

#[track_caller]
fn all_well(what: &str, cases: &[Case], limit: Duration) {
    let (played, hit, wrong) = play_all(cases, limit);
    println!("{what}: {played} of {} cases played, {hit} with a failing call, {} wrong", cases.len(), wrong.len());
    assert!(wrong.is_empty(), "{what}: {} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(hit > 0, "{what}: nothing failed");
}

/// How often each scenario makes each call when none fails.
fn counts() -> Vec<(&'static str, BTreeMap<String, u32>)> {
    SCENARIOS.iter().map(|&scenario| (scenario, Case::new(scenario, "-", &[]).play(None).unwrap())).collect()
}

/// The numbers up to `last` in an order of which any beginning is spread over all of them: what the time does not
/// suffice for is more of the same.
fn spread(last: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (1..=last.min(1)).chain((last > 1).then_some(last)).collect();
    let mut step = last;
    while step > 1 {
        step = step.div_ceil(2);
        numbers.extend((1..=last).step_by(step as usize));
        if step == 1 {
            break;
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    numbers.retain(|number| seen.insert(*number));
    numbers
}

/// The same always, but no neighbours side by side, for when the time does not suffice for all.
fn mixed<T>(cases: Vec<T>) -> Vec<T> {
    let mut numbered: Vec<_> = cases.into_iter().enumerate().collect();
    numbered.sort_by_key(|(number, _)| (*number as u32).wrapping_mul(2_654_435_761));
    numbered.into_iter().map(|(_, case)| case).collect()
}

fn time_limit() -> Duration {
    let seconds = std::env::var("DSH_FAULTS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(20))
}

#[test]
fn any_call_may_fail_once() {
    let mut cases = Vec::new();
    for (scenario, counts) in counts() {
        for (name, errors) in FAULTS {
            for (rank, number) in spread(counts.get(name).copied().unwrap_or(0)).into_iter().enumerate() {
                cases.extend(errors.iter().enumerate().map(|(error_rank, errno)| {
                    ((rank, error_rank), Case::new(scenario, &format!("{name}:{errno}:{number}"), &[]))
                }));
            }
        }
    }
    let mut cases = mixed(cases);
    cases.sort_by_key(|(order, _)| *order);
    let cases: Vec<_> = cases.into_iter().map(|(_, case)| case).collect();
    all_well("once", &cases, time_limit());
}

#[test]
fn any_call_may_fail_from_some_moment_on() {
    let mut cases = Vec::new();
    for (scenario, counts) in counts() {
        for (name, errors) in FAULTS.iter().filter(|(name, _)| counts.contains_key(*name)) {
            for errno in *errors {
                // An interrupted call that is interrupted for ever is nothing that happens.
                if *errno != libc::EINTR && *errno != libc::EAGAIN {
                    let fault = format!("{name}:{errno}:1+");
                    cases.push(Case::new(scenario, &fault, &["late"]));
                    cases.push(Case::new(scenario, &fault, &[]));
                }
            }
        }
    }
    // No process table at all, and one without the right to signal by descriptor.
    for scenario in SCENARIOS {
        cases.push(Case::new(scenario, &format!("open_proc:{}:1+", libc::ENOENT), &["late"]));
        cases.push(Case::new(scenario, &format!("open_proc:{}:1+", libc::ENOENT), &[]));
    }
    all_well("from then on", &mixed(cases), time_limit());
}

/// Cases that are played in any case: few, or ones in which the system refuses by itself.
#[track_caller]
fn all_well_in_any_time(cases: &[Case], user: Option<u32>) {
    let (played, _, wrong) = play_all_as(user, cases, Duration::from_secs(600));
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert_eq!(played, cases.len());
}

fn limited(scenarios: &[&'static str], limit: &str, values: impl Iterator<Item = u32> + Clone) -> Vec<Case> {
    let case = |scenario, value: u32| Case::new(scenario, "-", &[limit, &value.to_string()]);
    scenarios.iter().flat_map(|scenario| values.clone().map(|value| case(scenario, value))).collect()
}

#[test]
fn descriptors_may_run_out_at_any_moment() {
    let scenarios = ["ended", "killed", "timeout", "input", "survivors"];
    let mut cases = limited(&scenarios, "files", 0..26);
    for mut case in limited(&scenarios, "files", (0..16).step_by(2)) {
        case.orders.push("late".to_owned());
        cases.push(case);
    }
    all_well_in_any_time(&cases, None);
}

/// What a kernel or a container may not have; with all of it, everything is as it is elsewhere.
#[test]
fn older_kernels_and_narrow_containers_lack_nothing() {
    let nothing_new = "clone:38:1+,pidfd_open:38:1+,pidfd_send_signal:38:1+,close_range:38:1+,ioctl:25:1+";
    let no_group_signals = "pidfd_send_signal:22:1+,ioctl:25:1+";
    let no_process_table = "open_proc:2:1+,close_range:1:1+";
    let no_memory_files = "execveat:13:1";
    let mut cases = Vec::new();
    for scenario in SCENARIOS {
        for faults in [nothing_new, no_group_signals] {
            cases.push(Case::new(scenario, faults, &[]));
        }
    }
    cases.push(Case::new("leaky", no_process_table, &[]));
    cases.push(Case::new("leaky", "close_range:1:1+", &[]));
    cases.push(Case::new("plain", no_memory_files, &["late"]));
    let (_, hit, wrong) = play_all(&cases, Duration::from_secs(300));
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(hit + 1 >= cases.len(), "{hit}");
}

#[test]
fn processes_may_run_out_at_any_moment() {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("skipped: only root can become a user who has no other process");
        return;
    }
    // Root is not held to the limit; and only what a shell does without a child of its own is played.
    all_well_in_any_time(&limited(&["plain", "overflow", "ended"], "processes", 1..8), Some(65_501));
}

#[test]
fn a_full_or_read_only_folder_for_temporary_files_costs_the_spill_only() {
    let cases: Vec<_> = ["plain", "overflow", "ended", "timeout", "longer"]
        .iter()
        .flat_map(|scenario| ["full", "readonly"].map(|order| Case::new(scenario, "-", &[order])))
        .collect();
    all_well_in_any_time(&cases, None);
    if nix::unistd::geteuid().is_root() {
        all_well_in_any_time(&cases, Some(65_501));
    }
}

/// The processes that have this entry in their environment.
fn processes_with(entry: &str) -> usize {
    let folders = fs::read_dir("/proc").unwrap().flatten();
    let environments = folders.map(|folder| fs::read(folder.path().join("environ")).unwrap_or_default());
    environments.filter(|all| all.split(|byte| *byte == 0).any(|one| one == entry.as_bytes())).count()
}

/// Rust ends the process when it gets no memory for something small; only big buffers can be refused. What can be
/// promised: it is ended at once and says why, and the guard leaves nothing of its commands.
#[test]
fn refused_memory_is_an_error_or_a_clean_end_of_the_host() {
    let (mut ended, mut fine) = (0, 0);
    let refused = ["plain", "killed", "timeout"].into_iter().flat_map(|scenario| {
        let count = Case::new(scenario, "-", &[]).play(None).unwrap()["malloc"];
        let some = spread(count).into_iter().take(12);
        some.map(move |number| Case::new(scenario, &format!("malloc:{}:{number}", libc::ENOMEM), &[]))
    });
    let limited = limited(&["plain", "killed"], "memory", [0, 300, 500, 550, 600, 650, 700, 1000, 4000].into_iter());
    for (number, case) in refused.chain(limited).enumerate() {
        let mark = format!("FAULT_TREE={}-{number}", std::process::id());
        let (mut command, _temporary) = case.command(None);
        let (name, value) = mark.split_once('=').unwrap();
        let Output { status, stderr, .. } = command.env(name, value).output().unwrap();
        let errors = String::from_utf8_lossy(&stderr);
        let is_end = status.signal() == Some(libc::SIGABRT) && errors.contains("memory allocation of");
        assert!(status.success() || is_end, "{case:?}: {status}: {errors}");
        *if is_end { &mut ended } else { &mut fine } += 1;
        let since = Instant::now();
        while processes_with(&mark) > 0 {
            assert!(since.elapsed() < Duration::from_secs(20), "{case:?}: something is left");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    println!("refused memory ended the host {ended} times; {fine} times it went on");
}
