//! When the host dies, in whatever way, nothing that it ran is left.
//!
//! The host is this test program, executed again with a variable that makes it play one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dsh::{Config, Executor, Request};

/// Unique in the command line of everything that one host starts.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn unique() -> String {
    format!("36{:05}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Trees of every kind: plain, left by `setsid`, double-forked and detached, deaf to SIGTERM, without environment.
fn trees(id: &str) -> [String; 5] {
    [
        format!("sleep {id} | cat"),
        format!("setsid sleep {id} & sleep {id}"),
        format!("(setsid nohup sleep {id} >/dev/null 2>&1 &); sleep {id}"),
        format!("trap '' TERM; sleep {id}; sleep {id}"),
        format!("env -i sleep {id} & wait; exec sleep {id}"),
    ]
}

/// The pids of processes whose command line holds the id.
fn running(id: &str) -> Vec<i32> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != std::process::id() as i32)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(id.len()).any(|window| window == id.as_bytes())
        })
        .collect()
}

/// Starts a host that plays `role`.
fn host(role: &str, id: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "plays_the_host", "--nocapture", "--ignored"])
        .env("HOST_ROLE", role)
        .env("HOST_ID", id)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_for_line(host: &mut Child, wanted: &str) {
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains(wanted)), "the host did not say {wanted}");
}

/// Waits until nothing with the id runs. Far longer than grace and 1 s, so that only a real survivor fails.
fn assert_nothing_left(id: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let left = running(id);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "still running: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "only played when a test of this file executes it, as its host"]
fn plays_the_host() {
    let (Ok(role), Ok(id)) = (std::env::var("HOST_ROLE"), std::env::var("HOST_ID")) else { return };
    let executor = Executor::new(&Config { grace_ms: 200, ..Config::default() }).unwrap();
    if role == "leaves a stray" {
        executor.configure(&Config { guard: false, ..Config::default() }).unwrap();
        executor.run(format!("(setsid sleep {id} >/dev/null 2>&1 &)").as_str()).unwrap();
        // SAFETY: ends the process without a goodbye, and without a guard.
        unsafe { libc::_exit(0) };
    }
    if role == "busy" {
        println!("ready");
        // Starts, reads and kills until it is killed itself.
        let mut processes = Vec::new();
        for round in 0..200 {
            processes.push(executor.start(trees(&id)[round % 5].as_str()).unwrap());
            let process = &processes[round / 2];
            process.read_output().unwrap();
            if round % 3 == 0 {
                process.kill().unwrap();
            }
        }
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let _processes: Vec<_> = trees(&id).iter().map(|tree| executor.start(tree.as_str()).unwrap()).collect();
    while running(&id).len() < 10 {
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("ready");
    match role.as_str() {
        "abort" => std::process::abort(),
        // SAFETY: ends the process, which is what is tested.
        "_exit" => unsafe { libc::_exit(0) },
        "exit" => std::process::exit(0),
        "forks" => {
            // SAFETY: the child makes one system call, and then ends. It holds a copy of every descriptor.
            unsafe {
                if libc::fork() == 0 {
                    libc::sleep(3);
                    libc::_exit(0);
                }
            }
            std::process::abort();
        }
        _ => std::thread::sleep(Duration::from_secs(60)),
    }
}

#[test]
fn a_host_killed_at_any_moment_leaves_nothing() {
    let rounds: u64 = std::env::var("DSH_DEATHS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| loop {
                let round = next.fetch_add(1, Ordering::Relaxed);
                if round >= rounds {
                    return;
                }
                let id = unique();
                let mut host = host("busy", &id);
                if round % 4 > 0 {
                    wait_for_line(&mut host, "ready");
                }
                // Any moment will do; these are spread over the first 200 ms.
                std::thread::sleep(Duration::from_micros(round * 7_919 % 200_000));
                host.kill().unwrap();
                host.wait().unwrap();
                assert_nothing_left(&id);
            });
        }
    });
}

fn dies_by(role: &str) {
    let id = unique();
    let mut host = host(role, &id);
    wait_for_line(&mut host, "ready");
    host.wait().unwrap();
    assert_nothing_left(&id);
}

#[test]
fn an_aborted_host_leaves_nothing() {
    dies_by("abort");
}

#[test]
fn a_host_that_exits_without_a_goodbye_leaves_nothing() {
    dies_by("_exit");
}

#[test]
fn a_host_that_exits_leaves_nothing() {
    dies_by("exit");
}

#[test]
fn a_fork_of_the_host_that_lives_on_holds_nothing_up() {
    dies_by("forks");
}

#[test]
fn a_stopped_and_then_killed_host_leaves_nothing() {
    let id = unique();
    let mut host = host("waits", &id);
    wait_for_line(&mut host, "ready");
    let pid = host.id() as i32;
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    host.kill().unwrap();
    host.wait().unwrap();
    assert_nothing_left(&id);
}

#[test]
fn a_guard_that_was_killed_is_replaced_and_does_its_work() {
    let id = unique();
    let executor = Executor::new(&Config { grace_ms: 200, ..Config::default() }).unwrap();
    let process = executor.start(Request::new(format!("sleep {id}"))).unwrap();
    let first = executor.stats().unwrap().guard_pid.unwrap();
    // SAFETY: a child of this process, which the executor reaps only after it has ended.
    unsafe { libc::kill(first, libc::SIGKILL) };
    let until = Instant::now() + Duration::from_secs(20);
    while executor.stats().unwrap().guard_pid.is_none_or(|pid| pid == first) {
        assert!(Instant::now() < until, "the guard was not replaced");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(running(&id).len(), 1, "the replacement ended a command of a live host");
    process.kill().unwrap();
    process.wait(None).unwrap();
    executor.shutdown(None).unwrap();
}

#[test]
fn the_guard_survives_the_signals_of_a_terminal() {
    let id = unique();
    let executor = Executor::new(&Config { grace_ms: 200, ..Config::default() }).unwrap();
    let _process = executor.start(Request::new(format!("sleep {id}"))).unwrap();
    let guard = executor.stats().unwrap().guard_pid.unwrap();
    for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGQUIT] {
        // SAFETY: a child of this process.
        unsafe { libc::kill(guard, signal) };
    }
    let session = std::fs::read_to_string(format!("/proc/{guard}/stat")).unwrap();
    let fields: Vec<&str> = session.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!(fields[3], guard.to_string(), "the guard is not in a session of its own");
    let _second = executor.start(Request::new(format!("sleep {id}"))).unwrap();
    assert_eq!(executor.stats().unwrap().guard_pid, Some(guard));
    executor.shutdown(None).unwrap();
    assert_nothing_left(&id);
}

#[test]
fn what_a_host_inside_a_command_leaves_behind_is_found_from_outside() {
    let id = unique();
    let outer = Executor::new(&Config { grace_ms: 200, ..Config::default() }).unwrap();
    let program = std::env::current_exe().unwrap();
    let command = "exec \"$PROGRAM\" --exact plays_the_host --nocapture --ignored";
    let pairs = [("PROGRAM", program.to_str().unwrap()), ("HOST_ROLE", "leaves a stray"), ("HOST_ID", &id)];
    let env = pairs.map(|(name, value)| (name.into(), Some(value.into()))).to_vec();
    outer.run(Request { env, ..Request::new(command) }).unwrap();
    assert_eq!(running(&id).len(), 1, "the inner host has left its stray");
    outer.shutdown(None).unwrap();
    assert_nothing_left(&id);
}
