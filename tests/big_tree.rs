//! A big tree in nested sessions, half of it deaf to SIGTERM, is ended as a whole, and nobody else is touched.

mod common;

use std::process::{Child, Command, Stdio};

use common::{is_alive, until};
use dsh::{Config, Executor, Request, StopStage};

/// Forks itself into sessions within sessions; every second process ignores SIGTERM, and every fifth wipes its
/// environment, which the others are found by.
const TREE: &str = r#"
    grow() {
        local left=$1 number
        for number in 1 2 3 4 5 6 7; do
            if (( number % 2 )); then
                (trap '' TERM; exec -a "$NAME" setsid sleep 3571) &
            elif (( number % 5 == 4 )); then
                (exec env -i setsid sleep 3571) &
            else
                (exec setsid sleep 3571) &
            fi
        done
        echo $BASHPID >>"$PIDS"
        jobs -p >>"$PIDS"
        if (( left > 0 )); then
            setsid bash -c "$GROW; grow $((left - 1))" &
            echo $! >>"$PIDS"
        fi
        wait # one that wipes its environment can be found only while its parents live
    }
    GROW=$(declare -f grow); export GROW
    grow 24
"#;

struct Canary(Child);

impl Canary {
    /// A process of somebody else's that looks like a member: by its name, and by its environment.
    fn new(name: &str, mark: &str) -> Canary {
        let mut command = Command::new("sleep");
        std::os::unix::process::CommandExt::arg0(&mut command, name);
        Canary(command.arg("3571").env("DSH_PROCESS_ID", mark).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pids(file: &std::path::Path) -> Vec<i32> {
    std::fs::read_to_string(file).unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
}

#[test]
fn a_tree_of_nested_sessions_half_deaf_to_sigterm_dies_as_a_whole_and_alone() {
    let executor = Executor::new(&Config { grace_ms: 1_000, ..Config::default() }).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let request = Request {
        env: vec![("PIDS".into(), Some(file.path().into())), ("NAME".into(), Some("look-alike".into()))],
        ..Request::new(TREE)
    };
    let process = executor.start(request).unwrap();
    until("the tree has grown", || pids(file.path()).len() >= 224);
    let leader = process.info().unwrap().pid;
    let environment = std::fs::read(format!("/proc/{leader}/environ")).unwrap();
    let mark = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"DSH_PROCESS_ID=")).unwrap();
    let mark = String::from_utf8(mark.to_vec()).unwrap();
    let (executor_id, number) = mark.split_once('-').unwrap();
    let mut canaries: Vec<Canary> = [
        format!("{}-{number}", executor_id.replace(|_: char| true, "0")),
        format!("{executor_id}-{number}0"),
        format!("{executor_id}-{number} "),
        format!("{executor_id}-"),
        format!("x{mark}"),
    ]
    .iter()
    .map(|mark| Canary::new("look-alike", mark))
    .collect();

    assert!(process.kill().unwrap());
    until("nothing of it is alive", || process.info().unwrap().quiescent);
    let left: Vec<i32> = pids(file.path()).into_iter().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(left, [], "left of {}", pids(file.path()).len());
    let outcome = process.info().unwrap().outcome.unwrap();
    assert_eq!((outcome.stage, outcome.survivors.len()), (StopStage::Kill, 0));
    for canary in &mut canaries {
        assert!(canary.0.try_wait().unwrap().is_none(), "a canary was ended");
    }
    // The next process's own mark: not this process's, but the executor's, which ends all of its own.
    drop(canaries.remove(1));
    executor.shutdown(None).unwrap();
    for canary in &mut canaries {
        assert!(canary.0.try_wait().unwrap().is_none(), "a canary was ended by the shutdown");
    }
}

#[test]
fn a_loop_that_forks_new_sessions_is_caught_up_with() {
    let executor = Executor::new(&Config { grace_ms: 300, ..Config::default() }).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let command = "trap '' TERM; while :; do setsid sleep 3572 & echo $! >>\"$PIDS\"; sleep 0.01; done";
    let request = Request { env: vec![("PIDS".into(), Some(file.path().into()))], ..Request::new(command) };
    let process = executor.start(request).unwrap();
    until("the loop forks", || pids(file.path()).len() >= 20);
    process.kill().unwrap();
    until("nothing of it is alive", || process.info().unwrap().quiescent);
    assert_eq!(pids(file.path()).into_iter().filter(|pid| is_alive(*pid)).collect::<Vec<_>>(), []);
    executor.shutdown(None).unwrap();
}
