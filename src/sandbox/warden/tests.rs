//! The warden between bubblewrap and a shell, both real.

use std::os::fd::AsRawFd;
use std::path::Path;

use super::super::{Mode, SandboxPolicy, Terms};
use super::trial::{children, filter, is_alive, signal, terms, wait_until, Ask};
use crate::error::Stage;
use crate::result::Exit;

fn read_only() -> Terms {
    terms(SandboxPolicy::new(Mode::ReadOnly), Path::new("/usr"))
}

fn ask<'a>(command: &str) -> Ask<'a> {
    Ask::under(&read_only(), command)
}

fn killed_by(number: i32) -> Exit {
    Exit::Signal { number, core_dumped: false }
}

#[test]
fn the_end_of_the_shell_is_told_as_it_was() {
    let cases = [
        ("exit 3", Exit::Code(3), 3),
        ("exit 137", Exit::Code(137), 137),
        ("kill -9 $$", killed_by(9), 137),
        ("kill -TERM $$", killed_by(15), 143),
    ];
    for (command, expected, code) in cases {
        let mut trial = ask(command).run();
        assert!(trial.status.started, "{command}: {}", trial.messages());
        assert_eq!(trial.status.failure, None, "{command}");
        assert_eq!(trial.status.exit.map(|(exit, _)| exit), Some(expected), "{command}");
        assert_eq!(trial.finish(), Exit::Code(code), "{command}: bubblewrap's own code");
        trial.await_silence();
        assert_eq!(trial.messages(), "", "{command}");
    }
}

#[test]
fn the_usage_is_that_of_the_shell_and_those_it_waited_for() {
    let mut trial = ask("bash -c 'for ((i = 0; i < 200000; i++)); do :; done'").run();
    let (_, usage) = trial.status.exit.unwrap();
    assert!(!usage.user.is_zero(), "{usage:?}");
    assert!(usage.max_rss > 1 << 20, "{usage:?}");
    trial.finish();
}

#[test]
fn a_signal_to_the_shell_is_the_shells_and_ends_no_one_else() {
    for (trap, expected) in [("trap 'exit 7' TERM", Exit::Code(7)), (":", killed_by(15))] {
        let mut trial = ask(&format!("{trap}; echo ready; while :; do sleep 0.01; done")).start();
        assert_eq!(trial.line(), "ready");
        let [init, warden, shell] = trial.pids();
        // Whoever else is signalled lets it pass.
        signal(init, libc::SIGTERM);
        signal(warden, libc::SIGTERM);
        assert!(is_alive(init) && is_alive(warden) && is_alive(shell));
        signal(shell, libc::SIGTERM);
        trial.finish();
        assert_eq!(trial.status.exit.map(|(exit, _)| exit), Some(expected));
    }
}

#[test]
fn a_shell_that_is_not_there_is_told_with_the_step_and_the_errno() {
    let mut trial = Ask { shell: c"/no/such/shell", ..ask("true") }.run();
    assert!(trial.status.started);
    assert_eq!(trial.status.failure, Some((Stage::Exec, libc::ENOENT)));
    assert_eq!(trial.finish(), Exit::Code(127));
}

#[test]
fn nothing_is_said_when_bubblewrap_fails() {
    let mut trial = Ask::with(b"--no-such-option\0".into(), "echo it ran").run();
    trial.await_silence();
    assert!(!trial.status.started);
    assert_eq!((trial.status.failure, trial.status.exit), (None, None));
    assert!(trial.messages().contains("--no-such-option"), "{}", trial.messages());
    assert_eq!(trial.rest(), "");
}

#[test]
fn survivors_live_on_without_the_pipes_and_end_with_the_init() {
    let mut trial = ask("sleep 1000 </dev/null >/dev/null 2>&1 & echo ready; read -r line; exit 5").start();
    assert_eq!(trial.line(), "ready");
    let [init, _, shell] = trial.pids();
    let survivor = children(shell)[0];
    trial.say("go\n");
    // Comes to an end although the init and the survivor go on.
    assert_eq!(trial.rest(), "");
    assert_eq!(trial.finish(), Exit::Code(5));
    assert_eq!(trial.status.exit.map(|(exit, _)| exit), Some(Exit::Code(5)));
    trial.await_silence();
    assert!(is_alive(init) && is_alive(survivor));
    signal(init, libc::SIGKILL);
    wait_until("the survivor has ended", || !is_alive(survivor));
}

#[test]
fn nobody_but_the_shell_holds_the_pipes() {
    let mut trial = ask("exec >/dev/null 2>&1; read -r line; exit 8").start();
    assert_eq!(trial.rest(), "");
    trial.say("on\n");
    trial.finish();
    assert_eq!(trial.status.exit.map(|(exit, _)| exit), Some(Exit::Code(8)));
}

#[test]
fn a_command_outlives_bubblewraps_outer_process_and_its_end_is_told() {
    let mut trial = ask("echo ready; read -r line; echo $line; exit 6").start();
    assert_eq!(trial.line(), "ready");
    signal(trial.child.pid, libc::SIGKILL);
    assert_eq!(trial.finish(), killed_by(9));
    assert_eq!(trial.status.exit, None);
    trial.say("on\n");
    assert_eq!(trial.rest(), "on\n");
    trial.await_silence();
    assert_eq!(trial.status.exit.map(|(exit, _)| exit), Some(Exit::Code(6)));
}

#[test]
fn a_killed_warden_takes_the_answer_with_it() {
    let mut trial = ask("echo ready; read -r line").start();
    assert_eq!(trial.line(), "ready");
    let [init, warden, _] = trial.pids();
    signal(warden, libc::SIGKILL);
    assert_eq!(trial.finish(), Exit::Code(137));
    trial.await_silence();
    assert!(trial.status.started);
    assert_eq!(trial.status.exit, None);
    signal(init, libc::SIGKILL);
}

#[test]
fn the_shell_leads_a_session_with_default_signals_and_three_descriptors() {
    const NONE: &str = "0000000000000000";
    let command = "read -r -a f </proc/$$/stat; [ ${f[5]} = $$ ] && echo own
        for fd in {0..255}; do [ -e /proc/$$/fd/$fd ] && echo $fd; done
        grep -E 'NoNewPrivs|SigBlk|SigIgn' /proc/self/status";
    assert_eq!(ask(command).output(), format!("own\n0\n1\n2\nSigBlk:\t{NONE}\nSigIgn:\t{NONE}\nNoNewPrivs:\t1\n"));
}

#[test]
fn a_long_command_comes_on_descriptor_three() {
    assert_eq!(
        Ask { script: Some(b"the text"), ..ask("cat <&3; echo; ls /proc/self/fd | wc -l") }.output(),
        "the text\n5\n"
    );
}

#[test]
fn the_shell_gets_its_environment_and_bubblewrap_the_marks_only() {
    let id = c"DSH_PROCESS_ID=00112233445566778899aabbccddeeff-7";
    // Bubblewrap would set PWD, and be the first to load the library.
    let entries = [c"PWD=/given", c"LD_PRELOAD=/no/such/library", c"A=1", id, c"DSH_OUTER_x=2", c"A=2", c"odd", c"E="];
    let mut trial =
        Ask { environment: entries.to_vec(), ..ask("tr '\\0' '\\n' </proc/$$/environ; echo ready; read") }.start();
    let seen: Vec<String> = std::iter::from_fn(|| Some(trial.line()).filter(|line| line != "ready")).collect();
    let seen: Vec<&String> = seen.iter().filter(|line| !line.contains("ld.so")).collect();
    let expected: Vec<_> = entries.iter().map(|entry| entry.to_str().unwrap()).collect();
    assert_eq!(seen, expected);
    let [init, ..] = trial.pids();
    for pid in [trial.child.pid, init] {
        let own = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert_eq!(own, [id.to_bytes_with_nul(), c"DSH_OUTER_x=2".to_bytes_with_nul()].concat());
    }
    assert_eq!(trial.messages(), "");
}

#[test]
fn an_empty_environment_is_one() {
    let bare = Ask { shell: c"/usr/bin/env", arguments: vec![c"env".into()], environment: Vec::new(), ..ask("") };
    assert_eq!(bare.output(), "");
}

#[test]
fn the_warden_is_out_of_the_commands_reach() {
    let command = "[ \"$(</proc/$PPID/comm)\" = dsh-warden ] && echo it
        readlink /proc/$PPID/fd/4 || echo no socket
        cat /proc/$PPID/mem 2>&1 >/dev/null | grep -o 'Permission denied'";
    assert_eq!(ask(command).output(), "it\nno socket\nPermission denied\n");
}

#[test]
fn a_witness_answers_for_the_command() {
    const REFUSED: i32 = libc::EXDEV;
    let notify = filter(MKDIR, libc::SECCOMP_RET_USER_NOTIF);
    let mut trial = Ask { witness: Some(&notify), ..ask("LC_ALL=C mkdir /tmp/new 2>&1; echo $?; read") }.start();
    wait_until("the listener has come", || {
        trial.status.read();
        trial.status.witness.is_some()
    });
    let listener = trial.status.witness.as_ref().unwrap().as_raw_fd();
    assert!(listener > 2);
    // SAFETY: plain system calls on a listener, with the structures that they take.
    unsafe {
        let mut asked: libc::seccomp_notif = std::mem::zeroed();
        assert_eq!(libc::ioctl(listener, RECEIVE, &raw mut asked), 0);
        assert_eq!(i64::from(asked.data.nr), MKDIR);
        let answer = libc::seccomp_notif_resp { id: asked.id, val: 0, error: -REFUSED, flags: 0 };
        assert_eq!(libc::ioctl(listener, SEND, &raw const answer), 0);
    }
    assert_eq!(trial.line(), "mkdir: cannot create directory '/tmp/new': Invalid cross-device link");
    assert_eq!(trial.line(), "1");
    assert_eq!(trial.status.witness_refused, None);
}

#[test]
fn the_command_runs_without_a_witness_that_can_t_be_installed() {
    let trial = Ask { witness: Some(b"no filter!"), ..ask("exit 4") }.run();
    assert!(trial.status.witness.is_none());
    assert_eq!(trial.status.witness_refused, Some(libc::EINVAL));
    assert_eq!(trial.status.exit.map(|(exit, _)| exit), Some(Exit::Code(4)));
}

#[cfg(target_arch = "x86_64")]
const MKDIR: i64 = libc::SYS_mkdir;
#[cfg(not(target_arch = "x86_64"))]
const MKDIR: i64 = libc::SYS_mkdirat;
const RECEIVE: libc::Ioctl = 0xc050_2100_u32 as libc::Ioctl;
const SEND: libc::Ioctl = 0xc018_2101_u32 as libc::Ioctl;
