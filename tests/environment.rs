//! What a command finds around it: the environment in its order, its session, signals and descriptors.

mod common;

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use common::*;
use dsh::{ErrorKind, Executor, Request};

/// The environment of a command, as it is.
fn environment(executor: &Executor, change: impl FnOnce(&mut Request)) -> BTreeMap<String, String> {
    let result = executor.run(request("cat /proc/$$/environ; :", change)).unwrap();
    let entry = |entry: &str| entry.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
    text(&result.stdout).split_terminator('\0').map(entry).collect()
}

/// Variables of the host, and whether a command gets them.
const HOST: [(&str, &str, bool); 24] = [
    ("FOO_API_KEY", "s3cr3t-1", false),
    ("AWS_SECRET_ACCESS_KEY", "s3cr3t-2", false),
    ("MY_APIKEY", "s3cr3t-3", false),
    ("db_password", "s3cr3t-4", false),
    ("GITHUB_TOKEN", "s3cr3t-5", false),
    ("Credentials_File", "s3cr3t-6", false),
    ("SSH_PASSPHRASE_X", "s3cr3t-7", false),
    ("API_KEYS", "s3cr3t-8", false),
    ("DATABASE_URL", "postgres://u:s3cr3t-9@h/db", false),
    ("SOME_PEM", "-----BEGIN RSA PRIVATE KEY-----\ns3cr3t-10\n-----END RSA PRIVATE KEY-----", false),
    ("GH_PAT", "ghp_s3cr3tAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false),
    ("DSH_INTERNAL", "s3cr3t-11", false),
    ("dsh_lower", "s3cr3t-12", false),
    ("BASH_ENV", "/s3cr3t-13", false),
    ("MONKEYS_HOME", "/s3cr3t-15", false),
    ("ENV", "/s3cr3t-14", false),
    ("KEYBOARD_LAYOUT", "dvorak", true),
    ("TOKENIZERS_PARALLELISM", "false", true),
    ("https_proxy", "http://user:pw@proxy:3128", true),
    ("PLAIN", "with = and spaces", true),
    ("EMPTY", "", true),
    ("HOME_URL", "https://example.org/a@b", true),
    ("NO_COLOR", "0", false),
    ("PAGER", "less", false),
];

#[test]
fn credentials_are_gone_by_name_and_by_value_and_their_names_are_listed() {
    let with_secrets = |host: &mut std::process::Command| {
        host.envs(HOST.map(|(name, value, _)| (name, value)));
    };
    in_own_process_with(test_name!(), with_secrets, || {
        let executor = executor();
        let result = executor.run("env; cat /proc/$$/environ | tr '\\0' '\\n'; set").unwrap();
        let everything = format!("{result:?}{}", text(&result.stdout));
        assert!(!everything.contains("s3cr3t"), "a value got out");
        let seen = environment(&executor, |_| {});
        let own = ["NO_COLOR", "PAGER"];
        for (name, value, stays) in HOST.into_iter().filter(|(name, ..)| !own.contains(name)) {
            assert_eq!(seen.get(name).map(String::as_str), stays.then_some(value), "{name}");
        }
        let scrubbed: Vec<_> = result.scrubbed.iter().filter_map(|name| name.to_str()).collect();
        for (name, ..) in &HOST[..11] {
            assert!(scrubbed.contains(name), "{name} is not in {scrubbed:?}");
        }
        assert!(HOST[15..].iter().all(|(name, ..)| !scrubbed.contains(name)), "{scrubbed:?}");
        assert!(executor.resolve("true").unwrap().scrubbed().iter().any(|name| name == "FOO_API_KEY"));
        assert!(!format!("{:?}", executor.resolve("true").unwrap()).contains("s3cr3t"), "Debug shows a value");
    });
}

#[test]
fn allowed_names_pass_and_denied_ones_do_not() {
    let variables = |host: &mut std::process::Command| {
        host.envs([("ONE_TOKEN", "1"), ("OTHER_TOKEN", "2"), ("PLAIN_A", "3"), ("PLAIN_B", "4"), ("DSH_X_TOKEN", "5")]);
    };
    in_own_process_with(test_name!(), variables, || {
        let executor = executor_with(|config| {
            config.env_allow = vec!["ONE_*".into(), "PLAIN_B".into(), "DSH_*".into()];
            config.env_deny = vec!["PLAIN_?".into()];
        });
        let seen = environment(&executor, |_| {});
        let names = ["ONE_TOKEN", "OTHER_TOKEN", "PLAIN_A", "PLAIN_B", "DSH_X_TOKEN"];
        assert_eq!(names.map(|name| seen.contains_key(name)), [true, false, false, true, false]);
    });
}

#[test]
fn a_command_is_told_that_nobody_looks_at_its_terminal() {
    let seen = environment(&executor(), |_| {});
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat")] {
        assert_eq!(seen[name], value);
    }
    assert!(seen.contains_key("PATH"));
}

#[test]
fn without_inheriting_a_command_has_only_what_was_given() {
    let executor = executor_with(|config| config.inherit_env = false);
    let seen = environment(&executor, |request| {
        request.env = vec![("ONLY".into(), Some("this".into())), ("PATH".into(), std::env::var_os("PATH"))];
    });
    let mut names: Vec<_> = seen.keys().map(String::as_str).filter(|name| *name != "PWD").collect();
    names.sort_unstable();
    assert_eq!(names, ["DSH_PROCESS_ID", "GIT_PAGER", "NO_COLOR", "ONLY", "PAGER", "PATH", "TERM"]);
}

#[test]
fn the_request_has_the_last_word() {
    let seen = environment(&executor(), |request| {
        request.env = vec![
            ("TERM".into(), Some("xterm".into())),
            ("PAGER".into(), None),
            ("MY_TOKEN".into(), Some("given".into())),
            ("EMPTY".into(), Some("".into())),
            ("BASH_ENV".into(), None),
            ("UTF".into(), Some("grüße\nzwei".into())),
        ];
        request.dsh_env = vec![("DSH_CALL_ID".into(), "7".into())];
    });
    assert_eq!((seen["TERM"].as_str(), seen.get("PAGER")), ("xterm", None));
    assert_eq!((seen["MY_TOKEN"].as_str(), seen["EMPTY"].as_str(), seen["DSH_CALL_ID"].as_str()), ("given", "", "7"));
}

#[test]
fn names_that_cannot_be_used_are_refused_before_anything_runs() {
    let executor = executor();
    for (name, kind) in [
        ("DSH_X", ErrorKind::EnvReserved),
        ("dsh_x", ErrorKind::EnvReserved),
        ("DSH_PROCESS_ID", ErrorKind::EnvReserved),
        ("", ErrorKind::EnvName),
        ("A=B", ErrorKind::EnvName),
        ("A\0B", ErrorKind::EnvName),
    ] {
        for value in [Some("x".into()), None] {
            let run = request("true", |request| request.env = vec![(name.into(), value)]);
            assert_eq!(executor.run(run).unwrap_err().kind(), kind, "{name:?}");
        }
    }
    for name in ["FOO", "DSH_", "DSH_lower", "DSH_1X", "DSH_A-B", "DSH_PROCESS_ID", "dsh_X", ""] {
        let run = request("true", |request| request.dsh_env = vec![(name.into(), "x".into())]);
        let kind = executor.run(run).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::EnvName | ErrorKind::EnvReserved | ErrorKind::Invalid), "{name:?}: {kind:?}");
    }
    let nul = request("true", |request| request.env = vec![("X".into(), Some("a\0b".into()))]);
    executor.run(nul).unwrap_err();
    assert_eq!(executor.stats().unwrap().ended, 0, "nothing was run");
}

#[test]
fn every_process_has_an_unguessable_mark_of_its_own() {
    let (one, other) = (executor(), executor());
    let marks: Vec<_> =
        [&one, &one, &other].map(|executor| environment(executor, |_| {})["DSH_PROCESS_ID"].clone()).into();
    let ids: Vec<_> = marks.iter().map(|mark| mark.rsplit_once('-').unwrap()).collect();
    assert!(ids[0].0 == ids[1].0 && ids[0].0 != ids[2].0 && ids[0].1 != ids[1].1);
    assert!(ids[0].0.len() >= 32);
}

#[test]
fn no_state_survives_a_call() {
    let executor = executor();
    let cwd = stdout_of(&executor, "pwd");
    executor.run("cd /; export LEFT=1; umask 0; set -e; alias ls=false; f() { :; }; ulimit -n 50; left=2").unwrap();
    let command = "pwd; echo \"[$LEFT$left]\"; type -t f; ulimit -n; umask";
    let seen = stdout_of(&executor, command);
    let fresh = stdout_of(&Executor::new(&quick()).unwrap(), command);
    assert_eq!(seen, fresh);
    assert!(seen.starts_with(&format!("{cwd}[]\n")));
}

#[test]
fn no_startup_file_is_read() {
    let home = tempfile::tempdir().unwrap();
    for file in [".bashrc", ".bash_profile", ".profile", "env"] {
        std::fs::write(home.path().join(file), "echo startup file was read\n").unwrap();
    }
    let with_files = |host: &mut std::process::Command| {
        let env = home.path().join("env");
        host.env("HOME", home.path()).env("BASH_ENV", &env).env("ENV", &env);
    };
    in_own_process_with(test_name!(), with_files, || {
        assert_eq!(stdout_of(&executor(), "shopt -q login_shell; echo $? $-"), "1 hBc\n");
    });
}

#[test]
fn a_command_is_a_session_of_its_own_without_a_terminal() {
    let executor = executor();
    let result = executor.run("ps -o pid=,pgid=,sid=,tty= -p $$; : </dev/tty; echo $?").unwrap();
    let printed = text(&result.stdout);
    let words: Vec<_> = printed.split_whitespace().collect();
    assert!(words[0] == words[1] && words[1] == words[2], "{printed}");
    assert_eq!((words[3], words[4]), ("?", "1"));
    assert!(text(&result.stderr).contains("/dev/tty"));
}

#[test]
fn all_signals_are_at_their_defaults_and_none_is_blocked() {
    let executor = executor();
    let status = stdout_of(&executor, "exec cat /proc/self/status");
    let is_mask = |line: &&str| ["SigBlk", "SigIgn", "SigCgt"].iter().any(|name| line.starts_with(name));
    let masks: Vec<_> = status.lines().filter(is_mask).map(|line| line.split_once('\t').unwrap().1).collect();
    assert_eq!(masks, ["0000000000000000"; 3], "{status}");
}

#[test]
fn a_command_has_no_descriptors_but_three_even_if_the_host_leaks_some() {
    let executor = executor();
    // SAFETY: the descriptor is new and ours; dup makes one that is inherited.
    let leaks: Vec<_> = (0..3)
        .map(|_| unsafe { OwnedFd::from_raw_fd(libc::dup(std::fs::File::open("/etc/passwd").unwrap().as_raw_fd())) })
        .collect();
    // SAFETY: as above; a high number.
    let high = unsafe { OwnedFd::from_raw_fd(libc::fcntl(leaks[0].as_raw_fd(), libc::F_DUPFD, 700)) };
    let command = "exec perl -e 'opendir D, \"/proc/self/fd\"; print join \" \", sort grep { /\\d/ && -e \"/proc/self/fd/$_\" } readdir D'";
    let run =
        |stdin: Option<Vec<u8>>| text(&executor.run(request(command, |request| request.stdin = stdin)).unwrap().stdout);
    // Perl's own directory handle is closed by the time of the test, or is number 3.
    for stdin in [None, Some(b"x".to_vec())] {
        let seen = run(stdin);
        assert!(seen == "0 1 2" || seen == "0 1 2 3", "{seen}");
    }
    assert_eq!(
        stdout_of(&executor, "for fd in {3..1000}; do [ -e /proc/$$/fd/$fd ] && [ $fd != 255 ] && echo $fd; done; :"),
        ""
    );
    let process = executor
        .start("for fd in {3..1000}; do [ -e /proc/$$/fd/$fd ] && [ $fd != 255 ] && echo $fd; done; :")
        .unwrap();
    process.wait(None).unwrap();
    assert_eq!(process.info().unwrap().totals, [0, 0]);
    drop((leaks, high));
}

#[test]
fn dev_stdout_and_dev_stderr_can_be_opened() {
    let executor = executor();
    let result = executor.run("echo x >/dev/stderr; echo y >/dev/stdout; echo z | tee /dev/stderr").unwrap();
    assert_eq!((text(&result.stdout), text(&result.stderr)), ("y\nz\n".into(), "x\nz\n".into()));
    let nobody = executor.run(request("echo x >/dev/stderr", |request| request.merge_stderr = true)).unwrap();
    assert_eq!((code(&nobody), text(&nobody.stdout)), (Some(0), "x\n".into()));
}

#[test]
fn the_host_is_left_as_it_was() {
    in_own_process(test_name!(), || {
        let state = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let kept = |line: &&str| ["SigBlk", "SigIgn", "SigCgt", "Umask"].iter().any(|name| line.starts_with(name));
            let lines: Vec<String> = status.lines().filter(kept).map(str::to_owned).collect();
            let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
            let variables: BTreeMap<_, _> = std::env::vars_os().collect();
            (lines, limits, variables, std::env::current_dir().unwrap())
        };
        let before = state();
        let executor = executor();
        executor
            .run(request("cd /; echo x; sleep 60 & ulimit -n 9", |request| request.stdin = Some(vec![0; 99_999])))
            .unwrap();
        executor.run(request("sleep 60", |request| request.timeout_ms = 50)).unwrap();
        executor.start("seq 100000").unwrap().wait(None).unwrap();
        assert!(state() == before, "while it runs");
        executor.shutdown(None).unwrap();
        assert!(state() == before, "after its end");
    });
}
