//! Who belongs to a command, who is ended with it, and who must never be.

mod common;

use std::process::Command;
use std::time::Duration;

use common::*;
use dsh::{CancelToken, Config, Executor, Request, Status, StopBy, StopStage, Survivors};

/// Prints its descendants' pids, then `ready`: left the session, forked twice, closed everything, ignoring SIGTERM,
/// without any environment.
const ESCAPEES: &str = r#"
setsid sleep 61.1 & echo $!
setsid sh -c 'sleep 61.2 & echo $!; exit' &
wait $!
setsid sh -c '(setsid sh -c "echo \$\$; exec sleep 61.3 <&- >&- 2>&-") &' & wait $!
(trap '' TERM HUP INT; setsid sh -c 'echo $$; exec sleep 61.4') &
env -i setsid sleep 61.5 & echo $!; orphan=$!
(trap '' TERM; exec -a '[kworker/0:1]' setsid sleep 61.6 <&- >&- 2>&-) & echo $!
set -m; sleep 61.7 & echo $!; set +m
sleep .3
echo ready
"#;
const COUNT: usize = 7;

/// The escapees' pids out of what the command has printed.
fn escapees(printed: &str) -> Vec<i32> {
    let pids = pids_in(printed.strip_suffix("ready\n").expect("the command came to its end"));
    assert_eq!(pids.len(), COUNT, "{printed}");
    pids
}

#[track_caller]
fn are_gone(pids: &[i32], mark: &Mark) {
    let left: Vec<_> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(left.is_empty(), "{left:?} of {pids:?} are left");
    mark.is_gone();
}

#[test]
fn kill_ends_those_who_left_the_session_too() {
    let mark = Mark::new();
    let executor = executor();
    let process = executor.start(mark.request(&format!("{ESCAPEES} sleep 60"))).unwrap();
    let lines = lines_of(&process, COUNT + 1).join("\n") + "\n";
    let pids = escapees(&lines);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    assert!(process.kill().unwrap());
    in_time(|| process.wait(None).unwrap());
    until("the tree is quiescent", || process.info().unwrap().quiescent);
    are_gone(&pids, &mark);
    let outcome = process.info().unwrap().outcome.unwrap();
    assert_eq!((outcome.stage, outcome.stopped_by), (StopStage::Kill, Some(StopBy::Kill)));
    assert_eq!(outcome.survivors, []);
}

#[test]
fn a_timeout_ends_those_who_left_the_session_before_the_result_is_there() {
    let mark = Mark::new();
    let run = Request { timeout_ms: 2_500, ..mark.request(&format!("{ESCAPEES} sleep 60")) };
    let result = in_time(|| executor().run(run).unwrap());
    assert!(result.outcome.timed_out());
    assert_eq!(result.outcome.survivors, []);
    are_gone(&escapees(&text(&result.stdout)), &mark);
}

#[test]
fn a_cancellation_ends_those_who_left_the_session() {
    let mark = Mark::new();
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let cancel = CancelToken::new();
    let command = format!("{ESCAPEES} touch '{}'; sleep 60", ready.display());
    let run = Request { cancel: Some(cancel.clone()), ..mark.request(&command) };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            until("the command is ready", || ready.exists());
            cancel.cancel();
        });
        executor().run(run).unwrap()
    });
    assert!(result.outcome.aborted());
    are_gone(&escapees(&text(&result.stdout)), &mark);
}

#[test]
fn survivors_that_are_not_wanted_are_gone_before_the_result_is_there() {
    let mark = Mark::new();
    // Nobody can find an orphan without environment, parent and session: that one is ended by the command itself.
    let command = format!("{ESCAPEES} kill -KILL $orphan");
    let run = Request { survivors: Survivors::Kill, ..mark.request(&command) };
    let result = in_time(|| executor().run(run).unwrap());
    assert_eq!((code(&result), result.outcome.cause), (Some(0), None));
    assert_eq!((result.outcome.stopped_by, result.outcome.stage), (Some(StopBy::Survivors), StopStage::Kill));
    assert_eq!(result.outcome.survivors, []);
    are_gone(&escapees(&text(&result.stdout)), &mark);
}

#[test]
fn shutdown_ends_those_who_left_the_session_of_a_running_and_of_an_ended_command() {
    let (running, ended) = (Mark::new(), Mark::new());
    let executor = executor();
    let process = executor.start(running.request(&format!("{ESCAPEES} sleep 60"))).unwrap();
    let first = escapees(&(lines_of(&process, COUNT + 1).join("\n") + "\n"));
    let daemon = "setsid sh -c '(setsid sh -c \"echo \\$\\$; exec sleep 61.8 <&- >&- 2>&-\") &' & wait; sleep .2";
    let result = executor.run(ended.request(daemon)).unwrap();
    let second = pids_in(&text(&result.stdout));
    assert_eq!((second.len(), is_alive(second[0])), (1, true));
    in_time(|| executor.shutdown(None).unwrap());
    are_gone(&first, &running);
    are_gone(&second, &ended);
}

#[test]
fn survivors_that_are_kept_are_listed_drained_and_ended_with_the_executor() {
    let (mark, folder) = (Mark::new(), tempfile::tempdir().unwrap());
    let executor = executor();
    let command =
        "(sleep .6; for i in $(seq 30000); do echo out; echo err >&2; done; touch written; exec sleep 60) & echo $!";
    let run = Request { workdir: Some(folder.path().into()), ..mark.request(command) };
    let result = in_time(|| executor.run(run).unwrap());
    let pid = pids_in(&text(&result.stdout))[0];
    assert_eq!((code(&result), result.outcome.stopped_by), (Some(0), None));
    assert!(result.outcome.survivors.iter().any(|survivor| survivor.pid == pid && survivor.start_time > 0));
    assert!(result.outcome.pipes_held);
    until("the survivor has written without SIGPIPE", || folder.path().join("written").exists());
    assert!(is_alive(pid));
    assert_eq!(executor.stats().unwrap().live, 1);
    in_time(|| executor.shutdown(None).unwrap());
    mark.is_gone();
}

#[test]
fn a_survivor_that_ends_by_itself_is_owned_no_longer() {
    let executor = executor();
    let result = executor.run("sleep .7 & echo $!").unwrap();
    assert_eq!(result.outcome.survivors.len(), 1);
    until("the executor has seen its end", || executor.stats().unwrap().live == 0);
    assert!(!is_alive(pids_in(&text(&result.stdout))[0]));
    assert_eq!(executor.stats().unwrap().ended, 1);
}

#[test]
fn a_survivor_is_told_by_pid_and_start_time() {
    let executor = executor();
    let result = executor.run("sleep 60 & echo $!").unwrap();
    let survivor = result.outcome.survivors[0];
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", survivor.pid)).unwrap();
    let start_time = stat[stat.rfind(')').unwrap() + 2..].split(' ').nth(19).unwrap();
    assert_eq!(survivor.start_time.to_string(), start_time);
}

#[test]
fn a_tree_that_forks_on_and_on_is_ended_all_the_same() {
    let mark = Mark::new();
    let executor = executor();
    let command =
        "f() { (trap '' TERM; setsid sleep 60 &) ; (sleep .03; f) & }; for i in 1 2 3; do f; done; echo on; sleep 60";
    let process = executor.start(mark.request(command)).unwrap();
    until("it forks", || mark.alive().len() > 12);
    process.kill().unwrap();
    in_time(|| process.wait(None).unwrap());
    until("the tree is quiescent", || process.info().unwrap().quiescent);
    mark.is_gone();
}

#[test]
fn fifty_sessions_are_ended_at_once() {
    let mark = Mark::new();
    let executor = executor();
    let command = "for i in $(seq 50); do setsid sh -c 'sleep 60 & sleep 60' & done; echo up; wait";
    let process = executor.start(mark.request(command)).unwrap();
    until("all are there", || mark.alive().len() > 150);
    in_time(|| executor.shutdown(None).unwrap());
    mark.is_gone();
    assert_eq!(process.info().unwrap().status, Status::Killed);
}

/// Strangers that look like something of the executor's.
fn look_alikes(own_mark: &str) -> Vec<Canary> {
    let (id, number) = own_mark.rsplit_once('-').unwrap();
    let marks = [
        format!("{id}x-{number}"),
        format!("x{id}-{number}"),
        format!("{}-{number}", &id[..31]),
        format!("{id}-"),
        format!("{id}-{number}x"),
        format!("{id}-99999999999999999999999"),
        format!("{}-{number}", "0".repeat(32)),
        id.to_owned(),
        String::new(),
    ];
    let mut canaries: Vec<_> = marks
        .iter()
        .map(|mark| Canary::new(Command::new("sleep").arg("60").env("DSH_PROCESS_ID", mark), true))
        .collect();
    let entry = format!("DSH_PROCESS_ID={own_mark}");
    canaries.push(Canary::new(Command::new("sleep").arg("60").env("XDSH_PROCESS_ID", own_mark), true));
    canaries.push(Canary::new(Command::new("sleep").arg("60").env("OTHER", &entry), true));
    canaries.push(Canary::new(Command::new("sh").args(["-c", "sleep 60; :", &entry]), true));
    canaries.push(Canary::new(Command::new("bash").args(["-c", "sleep 60; :"]), false));
    canaries
}

#[test]
fn nobody_else_is_signalled_however_alike_they_look() {
    let executor = executor();
    let own_mark = stdout_of(&executor, "echo $DSH_PROCESS_ID").trim().to_owned();
    let mut canaries = look_alikes(&own_mark);
    let process = executor.start("trap '' TERM; setsid sleep 60 & sleep 60").unwrap();
    process.kill().unwrap();
    in_time(|| process.wait(None).unwrap());
    let late = request("sleep 60", |request| request.timeout_ms = 100);
    assert!(executor.run(late).unwrap().outcome.timed_out());
    let kill = request("sleep 60 & setsid sleep 60 &", |request| request.survivors = Survivors::Kill);
    executor.run(kill).unwrap();
    executor.run("sleep 60 & setsid sleep 60 &").unwrap();
    executor.shutdown(None).unwrap();
    canaries.iter_mut().for_each(Canary::is_untouched);
}

#[test]
fn an_executor_ends_only_its_own_commands() {
    let (one, other) = (executor(), executor());
    let keeps = other.start("setsid sleep 60 & echo $!; sleep 60").unwrap();
    let pid = pids_in(&lines_of(&keeps, 1)[0])[0];
    let goes = one.start("sleep 60").unwrap();
    one.shutdown(None).unwrap();
    assert_eq!(goes.info().unwrap().status, Status::Killed);
    assert_eq!(keeps.info().unwrap().status, Status::Running);
    assert!(is_alive(pid));
    other.shutdown(None).unwrap();
    assert!(!is_alive(pid));
}

#[test]
fn killing_one_process_leaves_the_others_of_the_executor_alone() {
    let executor = executor();
    let commands = ["setsid sleep 60 & sleep 60", "setsid sleep 60 & echo up; sleep 60"];
    let [goes, stays] = commands.map(|command| executor.start(command).unwrap());
    lines_of(&stays, 1);
    goes.kill().unwrap();
    in_time(|| goes.wait(None).unwrap());
    until("the killed one is quiescent", || goes.info().unwrap().quiescent);
    until("it is owned no longer", || executor.stats().unwrap().live == 1);
    let info = stays.info().unwrap();
    assert_eq!(info.status, Status::Running);
    assert!(is_alive(info.pid));
}

#[test]
fn a_group_of_its_own_within_the_command_is_ended_with_it() {
    let mark = Mark::new();
    let run = Request { timeout_ms: 500, ..mark.request("set -m; sleep 60 & sleep 61 & (sleep 62 | sleep 63) & wait") };
    let result = in_time(|| executor().run(run).unwrap());
    assert!(result.outcome.timed_out());
    mark.is_gone();
}

#[test]
fn no_zombie_of_ours_is_left() {
    in_own_process(test_name!(), || {
        let executor = executor();
        for command in ["true", "exit 3", "kill -9 $$", "sleep 60 & true", "(exit 1) & wait"] {
            executor.run(command).unwrap();
        }
        let late = request("sleep 60 & sleep 60", |request| request.timeout_ms = 50);
        executor.run(late).unwrap();
        executor.run("/nowhere").unwrap();
        executor.run(request("true", |request| request.workdir = Some("/nowhere".into()))).unwrap_err();
        let process = executor.start("exit 9").unwrap();
        process.wait(None).unwrap();
        let zombies = || children().into_iter().filter(|pid| state_of(*pid) == Some('Z')).count();
        assert_eq!(zombies(), 0, "right after the results");
        executor.shutdown(None).unwrap();
        assert_eq!(children(), [], "after the shutdown");
    });
}

#[test]
fn nothing_is_left_of_a_dropped_executor() {
    let mark = Mark::new();
    let executor = Executor::new(&Config { grace_ms: 200, ..Config::default() }).unwrap();
    executor.run(mark.request("(trap '' TERM; setsid sleep 60 </dev/null >/dev/null 2>&1) & true")).unwrap();
    let process = executor.start(mark.request("setsid sleep 60 & sleep 60")).unwrap();
    until("all are there", || mark.alive().len() >= 3);
    in_time(|| drop(executor));
    mark.is_gone();
    process.wait(Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_forced_end_waits_also_for_those_who_have_closed_the_pipes() {
    let executor = executor();
    let stubborn = "(trap '' TERM; exec sleep 60 </dev/null >/dev/null 2>&1) & sleep .2;";
    let (timed, left) = (Mark::new(), Mark::new());
    let late = Request { timeout_ms: 700, ..timed.request(&format!("{stubborn} sleep 60")) };
    let outcome = in_time(|| executor.run(late).unwrap().outcome);
    timed.is_gone();
    assert_eq!((outcome.timed_out(), outcome.stage), (true, StopStage::Kill));
    let kill = Request { survivors: Survivors::Kill, ..left.request(stubborn) };
    let outcome = in_time(|| executor.run(kill).unwrap().outcome);
    left.is_gone();
    assert_eq!((outcome.stopped_by, outcome.stage), (Some(StopBy::Survivors), StopStage::Kill));
}
