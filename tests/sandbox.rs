//! Confinement as its callers meet it: policies, facts, temporary files, networks, and what happens when it can't be had.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/confined.rs"]
mod confined;

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::*;
use confined::*;
use dsh::{
    sandbox_doctor, Backend, Config, Enforcement, Error, ErrorKind, Executor, Exit, Mode, Network, Request, Runner,
    SandboxPolicy, Stage, Status, StopStage, Stream, Survivors,
};

fn policy(change: impl FnOnce(&mut SandboxPolicy)) -> Option<SandboxPolicy> {
    let mut policy = SandboxPolicy::default();
    change(&mut policy);
    Some(policy)
}

#[track_caller]
fn refused(executor: &Executor, request: Request) -> Error {
    let error = executor.run(request.clone()).unwrap_err();
    assert_eq!(executor.start(request).unwrap_err().kind(), error.kind());
    error
}

#[test]
fn the_facts_say_what_confined_the_command_and_how_far() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let facts = place.run("exit 3").sandbox.unwrap();
        assert_eq!((facts.mode, facts.network, facts.backend), (Mode::WorkspaceWrite, Network::Full, Some(backend)));
        assert_eq!(facts.workspace.unwrap(), place.workspace.canonicalize().unwrap());
        assert_eq!(facts.runner_failed, None);
        match backend {
            Backend::Bubblewrap => assert_eq!((facts.enforcement, facts.missing), (Some(Enforcement::Full), vec![])),
            _ => assert_eq!((facts.enforcement, facts.missing), (Some(Enforcement::Partial), vec!["metadata"])),
        }
    }
}

#[test]
fn without_a_policy_there_are_no_facts_and_full_access_says_so() {
    let executor = executor();
    assert_eq!(executor.run("true").unwrap().sandbox, None);
    let full = Request { sandbox: Some(SandboxPolicy::new(Mode::DangerFullAccess)), ..Request::new("true") };
    let facts = executor.run(full).unwrap().sandbox.unwrap();
    assert_eq!((facts.mode, facts.backend, facts.enforcement), (Mode::DangerFullAccess, None, None));
}

#[test]
fn results_are_those_of_an_unconfined_command() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        for (command, exit) in [
            ("exit 3", Exit::Code(3)),
            ("exit 137", Exit::Code(137)),
            ("kill -9 $$", Exit::Signal { number: 9, core_dumped: false }),
            ("kill -TERM $$", Exit::Signal { number: 15, core_dumped: false }),
        ] {
            assert_eq!(place.run(command).outcome.exit, exit, "{command} under {backend}");
        }
        let result = place.run("echo out; echo err >&2; pwd; echo \"$0 $-\"; read x; echo got=$x");
        assert_eq!(text(&result.stderr), "err\n");
        assert_eq!(text(&result.stdout), format!("out\n{}\nbash hBc\ngot=\n", place.workspace.display()));
        let result = place.run_with("cat; cat >&2", |request| request.stdin = Some(vec![b'x'; 1 << 20]));
        assert_eq!((result.stdout.total, result.stderr.total, result.stdin_written), (1 << 20, 0, 1 << 20));
        let burn = place.run("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
        assert!(burn.outcome.usage.user > Duration::from_millis(20), "{backend}: {:?}", burn.outcome.usage);
    }
}

#[test]
fn a_long_command_runs_confined_with_the_same_meaning() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let command = format!(": {}\necho \"$0 $# $-\"; [ -e /proc/$$/fd/3 ] || echo closed", "x".repeat(200_000));
        assert_eq!(text(&place.run(&command).stdout), "bash 0 hBc\nclosed\n", "{backend}");
    }
}

#[test]
fn a_timeout_ends_the_whole_tree_and_leaves_the_exit_to_the_command() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let mark = Mark::new();
        let trapped =
            "trap 'echo bye; exit 0' TERM; setsid sleep 60 & echo up; while :; do sleep 0.05; done 2>/dev/null";
        let result = place.run_with(trapped, |request| {
            request.timeout_ms = 700;
            request.env.push(mark.entry());
        });
        assert_eq!(text(&result.stdout), "up\nbye\n", "{backend}");
        assert!(result.outcome.timed_out() && result.outcome.exit == Exit::Code(0), "{backend}: {:?}", result.outcome);
        mark.is_gone();
        let deaf = "trap '' TERM; (trap '' TERM; setsid sleep 60) & echo up; sleep 60";
        let result = place.run_with(deaf, |request| {
            request.timeout_ms = 700;
            request.env.push(mark.entry());
        });
        assert!(
            result.outcome.timed_out() && result.outcome.stage == StopStage::Kill,
            "{backend}: {:?}",
            result.outcome
        );
        mark.is_gone();
    }
}

#[test]
fn survivors_are_kept_or_killed_as_the_request_says() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let mark = Mark::new();
        let run = |survivors| {
            place.run_with("sleep 60 >/dev/null 2>&1 & echo up", |request| {
                request.survivors = survivors;
                request.env.push(mark.entry());
            })
        };
        let kept = run(Survivors::Keep);
        assert_eq!((text(&kept.stdout).as_str(), kept.outcome.pipes_held), ("up\n", false), "{backend}");
        assert!(!kept.outcome.survivors.is_empty() && !mark.alive().is_empty(), "{backend}");
        place.executor.shutdown(None).unwrap();
        mark.is_gone();
        let place = Place::new(backend);
        let killed = place.run_with("sleep 60 >/dev/null 2>&1 & echo up", |request| {
            request.survivors = Survivors::Kill;
            request.env.push(mark.entry());
        });
        assert_eq!((code(&killed), killed.outcome.survivors.len()), (Some(0), 0), "{backend}");
        assert_eq!(mark.alive(), [0; 0], "{backend}");
    }
}

#[test]
fn what_wraps_the_shell_is_no_survivor() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        for survivors in [Survivors::Keep, Survivors::Kill] {
            for _ in 0..10 {
                let outcome = place.run_with("echo x", |request| request.survivors = survivors).outcome;
                assert_eq!((outcome.survivors.len(), outcome.stopped_by), (0, None), "{backend} {survivors:?}");
            }
        }
    }
}

#[test]
fn a_background_process_is_confined_read_and_killed() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let mark = Mark::new();
        let mut request = place.request("echo x > $OUT/file; echo up; setsid sleep 60 & sleep 60");
        request.env.push(mark.entry());
        let process = place.executor.start(request).unwrap();
        until("it is up", || stream_of(&process, Stream::Stdout) == b"up\n");
        assert_eq!(process.info().unwrap().sandbox.unwrap().backend, Some(backend));
        assert!(process.kill().unwrap());
        in_time(|| process.wait(None).unwrap());
        let info = process.info().unwrap();
        assert_eq!((info.status, info.outcome.unwrap().stage), (Status::Killed, StopStage::Term), "{backend}");
        mark.is_gone();
    }
}

#[test]
fn temporary_files_have_a_private_place_that_is_gone_afterwards() {
    for backend in BACKENDS {
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
            let place = Place::new(backend);
            let spills = tempfile::tempdir().unwrap();
            let executor = Executor::new(&Config { spill_dir: Some(spills.path().into()), ..place.config() }).unwrap();
            let command = "mktemp && cat <<X\nhi\nX\nstat -c %a $TMPDIR; python3 -c 'import tempfile; \
                           tempfile.TemporaryFile(); print(tempfile.gettempdir() == __import__(\"os\").environ[\"TMPDIR\"])'; \
                           mkdir -p $TMPDIR/deep/er; touch $TMPDIR/deep/er/x; chmod 0 $TMPDIR/deep; echo $TMPPREFIX";
            let result =
                executor.run(Request { sandbox: Some(SandboxPolicy::new(mode)), ..Request::new(command) }).unwrap();
            let lines = text(&result.stdout);
            let lines: Vec<_> = lines.lines().collect();
            assert_eq!(lines[1..4], ["hi", lines[2], "True"], "{backend} {mode}: {}", text(&result.stderr));
            assert!(matches!(lines[2], "700" | "755"), "{lines:?}");
            assert!(lines[4].ends_with("/zsh"), "{lines:?}");
            assert!(!Path::new(lines[0]).exists(), "{lines:?}");
            let left: Vec<_> = walk(spills.path());
            assert!(left.iter().all(|path| !path.to_string_lossy().contains("tmp-")), "{backend}: {left:?}");
            drop(executor);
            assert!(walk(spills.path()).is_empty(), "{backend}");
        }
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let below = entries.iter().filter(|path| path.is_dir()).flat_map(|path| walk(path)).collect::<Vec<_>>();
    entries.into_iter().chain(below).collect()
}

#[test]
fn a_host_without_a_directory_for_temporary_files_runs_confined_commands_all_the_same() {
    in_own_process_with(
        test_name!(),
        |command| {
            command.env("TMPDIR", "/nonexistent");
        },
        || {
            for backend in BACKENDS {
                let place = Place::new(backend);
                let result = place.run("mktemp && cat <<X\nhi\nX\n");
                assert_eq!(code(&result), Some(0), "{backend}: {}", text(&result.stderr));
                let out = text(&result.stdout);
                assert!(out.ends_with("\nhi\n"), "{backend}: {out}");
                drop(place);
                let private = Path::new(out.lines().next().unwrap()).ancestors().nth(2).unwrap();
                assert!(backend == Backend::Bubblewrap || !private.exists(), "{}", private.display());
            }
        },
    );
}

#[test]
fn a_request_may_name_its_own_directory_for_temporary_files() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let own = place.workspace.join("tmp");
        fs::create_dir(&own).unwrap();
        let result = place.run_with("echo $TMPDIR; mktemp", |request| {
            request.env.push(("TMPDIR".into(), Some(own.clone().into())));
        });
        let lines = text(&result.stdout);
        assert!(
            lines.lines().all(|line| line.starts_with(own.to_str().unwrap())) && lines.lines().count() == 2,
            "{lines}"
        );
    }
}

#[test]
fn a_policy_of_a_request_says_what_differs_from_the_executors() {
    let place = Place::with(Backend::Landlock, |policy| policy.mode = Some(Mode::ReadOnly));
    assert_ne!(code(&place.run("touch $WS/x")), Some(0));
    assert_eq!(code(&place.run_in_mode(Mode::WorkspaceWrite, "touch $WS/x")), Some(0));
    let facts = place.run_in_mode(Mode::WorkspaceWrite, "true").sandbox.unwrap();
    assert_eq!(facts.workspace, Some(place.workspace.canonicalize().unwrap()));
    let spec = place.executor.resolve("true").unwrap();
    assert_eq!(spec.sandbox_mode(), Some(Mode::ReadOnly));
    let config = place.executor.config().unwrap();
    assert_eq!(config.sandbox.unwrap().mode, Some(Mode::ReadOnly));
}

#[test]
fn the_workspace_is_the_executors_directory_and_not_the_requests() {
    for backend in BACKENDS {
        let place = Place::with(backend, |policy| policy.workspace = None);
        let result =
            place.run_with("touch here; touch $WS/there", |request| request.workdir = Some(place.outside.clone()));
        assert_eq!(walk(&place.workspace), [place.workspace.join("there")], "{}", text(&result.stderr));
        assert!(!place.outside.join("here").exists(), "{backend}");
    }
}

#[test]
fn a_workspace_reached_through_a_link_works_and_keeps_its_name() {
    for backend in BACKENDS {
        for folder in [tempfile::tempdir_in("/tmp").unwrap(), tempfile::tempdir_in("/var/tmp").unwrap()] {
            let (real, link) = (folder.path().join("real"), folder.path().join("link"));
            fs::create_dir(&real).unwrap();
            symlink(&real, &link).unwrap();
            let policy = policy(|policy| {
                (policy.mode, policy.workspace) = (Some(Mode::WorkspaceWrite), Some(link.clone()));
                policy.backends = vec![backend];
            });
            let request =
                Request { sandbox: policy, workdir: Some(link.clone()), ..Request::new("touch a && pwd && echo $PWD") };
            let result = executor().run(request).unwrap();
            let name = link.display();
            assert_eq!(text(&result.stdout), format!("{name}\n{name}\n"), "{backend}: {}", text(&result.stderr));
            assert!(real.join("a").exists());
        }
    }
}

#[test]
fn further_writable_paths_are_written_and_renamed_between() {
    for backend in BACKENDS {
        let other = tempfile::tempdir_in("/var/tmp").unwrap();
        let extra = other.path().to_owned();
        let place = Place::with(backend, |policy| policy.writable = vec![extra.clone()]);
        let command = format!(
            "echo 1 > {0}/a && mv {0}/a $WS/b && echo 2 > $WS/c && mv $WS/c {0}/d && cat $WS/b",
            extra.display()
        );
        let result = place.run(&command);
        assert_eq!(
            (code(&result), text(&result.stdout).as_str()),
            (Some(0), "1\n"),
            "{backend}: {}",
            text(&result.stderr)
        );
        assert!(other.path().join("d").exists());
        let read_only = place.run_in_mode(Mode::ReadOnly, format!("touch {}/e", extra.display()));
        assert_ne!(code(&read_only), Some(0), "{backend}: read-only has no writable paths");
    }
}

#[test]
fn what_is_hidden_is_not_read_and_what_is_beside_it_is() {
    for backend in BACKENDS {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let secrets = folder.path().join("secrets");
        fs::create_dir(&secrets).unwrap();
        fs::write(secrets.join("key"), "very secret").unwrap();
        fs::write(folder.path().join("token"), "very secret too").unwrap();
        fs::write(folder.path().join("plain"), "plain").unwrap();
        let hidden = vec![secrets.clone(), folder.path().join("token"), folder.path().join("not-there")];
        let place = Place::with(backend, |policy| policy.hidden = hidden);
        let base = folder.path().display();
        let result = place
            .run(format!("cat {base}/secrets/key {base}/token; cat /proc/self/root{base}/token; cat {base}/plain"));
        assert_eq!(text(&result.stdout), "plain", "{backend}: {}", text(&result.stderr));
        let missing = result.sandbox.unwrap().missing;
        assert_eq!(missing.contains(&"hidden-names"), backend == Backend::Landlock);
    }
}

#[test]
fn a_network_of_none_has_no_internet_sockets() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo connected");
        assert_eq!(text(&place.run(&connect).stdout), "connected\n", "{backend}: the network is full by default");
        let udp = "python3 -c \"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM); print('made')\"";
        for command in [
            connect.as_str(),
            udp,
            "python3 -c \"import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\" && echo made",
        ] {
            let result = place.run_with(command, |request| request.sandbox = network(Network::None));
            assert_eq!(text(&result.stdout), "", "{backend}: {command}");
            assert_eq!(result.sandbox.unwrap().network, Network::None);
        }
        let unix = place.run_with("python3 -c \"import socket; socket.socketpair(); print('pair')\"", |request| {
            request.sandbox = network(Network::None);
        });
        assert_eq!(text(&unix.stdout), "pair\n", "{backend}: {}", text(&unix.stderr));
    }
}

#[test]
fn a_loopback_network_is_the_commands_own() {
    let place = Place::new(Backend::Bubblewrap);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!(
        "python3 -c \"
import socket
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname())
print('itself')
try:
    socket.create_connection(('127.0.0.1', {port}), timeout=5)
    print('the host')
except OSError:
    pass
\""
    );
    let result = place.run_with(command, |request| request.sandbox = network(Network::Loopback));
    assert_eq!(text(&result.stdout), "itself\n", "{}", text(&result.stderr));
    // Landlock tells ports apart and not addresses: it says so, and nothing runs.
    let place = Place::new(Backend::Landlock);
    let error =
        refused(&place.executor, Request { sandbox: network(Network::Loopback), ..place.request("touch $WS/ran") });
    assert_eq!((error.kind(), error.stage()), (ErrorKind::SandboxUnavailable, Stage::Sandbox));
    assert!(error.message().contains("loopback"), "{error}");
    assert!(walk(&place.workspace).is_empty());
}

#[test]
fn a_linked_worktree_commits_only_when_it_may() {
    for backend in BACKENDS {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let make = "git init -q r && cd r && git config user.name a && git config user.email a@b && \
                    git commit -q --allow-empty -m first && git worktree add -q ../w";
        let made = executor().run(Request { workdir: Some(folder.path().into()), ..Request::new(make) }).unwrap();
        assert_eq!(code(&made), Some(0), "{}", text(&made.stderr));
        let linked = folder.path().join("w");
        let commit = |git_worktree| Request {
            workdir: Some(linked.clone()),
            sandbox: policy(|policy| {
                (policy.mode, policy.workspace) = (Some(Mode::WorkspaceWrite), Some(linked.clone()));
                (policy.git_worktree, policy.backends) = (git_worktree, vec![backend]);
            }),
            ..Request::new("echo x > x; git add -A && git commit -q -m second")
        };
        let denied = executor().run(commit(None)).unwrap();
        assert_ne!(code(&denied), Some(0), "{backend}");
        assert!(text(&denied.stderr).contains("worktrees/w"), "{backend}: names the path: {}", text(&denied.stderr));
        let allowed = executor().run(commit(Some(true))).unwrap();
        assert_eq!(code(&allowed), Some(0), "{backend}: {}", text(&allowed.stderr));
        let hook = Request {
            command: b"echo x > ../r/.git/hooks/post-commit; echo x >> ../r/.git/config".into(),
            ..commit(Some(true))
        };
        assert_ne!(code(&executor().run(hook).unwrap()), Some(0), "{backend}");
        assert!(!folder.path().join("r/.git/hooks/post-commit").exists(), "{backend}");
    }
}

/// A `bwrap` in a folder of its own, for hosts that have it first in PATH.
fn fake_bwrap(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let path = folder.path().join("bwrap");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

const BROKEN_BWRAP: &str =
    "#!/bin/sh\necho 'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted' >&2\nexit 1\n";

#[test]
fn a_backend_that_does_not_work_gives_way_to_the_next_one_and_that_is_told() {
    let fake = fake_bwrap(BROKEN_BWRAP);
    in_own_process_with(
        test_name!(),
        |command| {
            let path = format!("{}:{}", fake.path().display(), std::env::var("PATH").unwrap());
            command.env("PATH", path);
        },
        || {
            let place = Place::with(Backend::Bubblewrap, |policy| policy.backends.clear());
            let facts = place.run("echo ok").sandbox.unwrap();
            assert_eq!((facts.backend, facts.enforcement), (Some(Backend::Landlock), Some(Enforcement::Partial)));
            // Nothing else allowed: nothing runs, and the error has the runner's own words.
            let only = Request {
                sandbox: policy(|policy| policy.backends = vec![Backend::Bubblewrap]),
                ..place.request("touch $WS/ran")
            };
            let error = refused(&place.executor, only);
            assert_eq!((error.kind(), error.stage()), (ErrorKind::SandboxUnavailable, Stage::Sandbox));
            assert!(error.message().contains("RTM_NEWADDR"), "{error}");
            assert!(walk(&place.workspace).is_empty());
            let report = sandbox_doctor();
            assert!(!report.backends[0].usable && report.backends[0].remedy.is_some(), "{report}");
            assert!(report.backends[0].message.contains("RTM_NEWADDR"), "{report}");
        },
    );
}

#[test]
fn a_backend_that_breaks_after_it_was_tried_is_an_error_and_never_an_exit_code() {
    let fake = fake_bwrap(
        "#!/bin/sh\n[ -e \"${0%/*}/broken\" ] && { echo 'bwrap: broken now' >&2; exit 1; }\nexec /usr/bin/bwrap \"$@\"\n",
    );
    let flag = fake.path().join("broken");
    in_own_process_with(
        test_name!(),
        |command| {
            let path = format!("{}:{}", fake.path().display(), std::env::var("PATH").unwrap());
            command.env("PATH", path).env("BROKEN", &flag);
        },
        || {
            let place = Place::new(Backend::Bubblewrap);
            assert_eq!(code(&place.run("exit 4")), Some(4));
            fs::write(std::env::var_os("BROKEN").unwrap(), "").unwrap();
            let error = place.executor.run(place.request("touch $WS/ran")).unwrap_err();
            assert_eq!((error.kind(), error.stage()), (ErrorKind::SandboxUnavailable, Stage::Sandbox));
            assert!(error.message().contains("broken now"), "{error}");
            let process = place.executor.start(place.request("touch $WS/ran")).unwrap();
            in_time(|| process.wait(None).unwrap());
            let facts = process.info().unwrap().sandbox.unwrap();
            assert!(facts.runner_failed.unwrap().contains("broken now"));
            assert_eq!(process.result().unwrap_err().kind(), ErrorKind::SandboxUnavailable);
            assert!(walk(&place.workspace).is_empty());
        },
    );
}

#[test]
fn a_command_that_prints_the_words_of_a_broken_backend_is_just_a_command() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let result = place.run("echo 'bwrap: Failed RTM_NEWADDR: Operation not permitted' >&2; exit 1");
        assert_eq!(code(&result), Some(1));
        assert_eq!(result.sandbox.unwrap().runner_failed, None);
    }
}

fn runner(script: &str) -> (tempfile::TempDir, Runner) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runner");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (folder, Runner { command: vec![path.into(), "--flag".into()], failures: vec!["my-runner: fatal".into()] })
}

#[test]
fn a_callers_own_runner_stands_before_the_shell_and_knows_the_policy() {
    let script = "#!/bin/sh\necho \"runner $1 $DSH_SANDBOX_MODE $DSH_SANDBOX_NETWORK $DSH_SANDBOX_WRITABLE\"; shift; exec \"$@\"\n";
    let (_folder, runner) = runner(script);
    let place = Place::with(Backend::Landlock, |policy| (policy.runner, policy.backends) = (Some(runner), vec![]));
    let result = place.run("echo $0; exit 5");
    let workspace = place.workspace.canonicalize().unwrap();
    let first = format!("runner --flag workspace-write full {}\n", workspace.display());
    assert!(text(&result.stdout).starts_with(&first), "{}", text(&result.stdout));
    assert_eq!(code(&result), Some(5));
    assert_eq!(result.sandbox.unwrap().backend, Some(Backend::Runner));
}

#[test]
fn a_runner_that_says_it_failed_is_no_exit_code_of_the_command() {
    let (_folder, runner) = runner("#!/bin/sh\necho 'My-Runner: FATAL: no luck' >&2; exit 7\n");
    let place = Place::with(Backend::Landlock, |policy| (policy.runner, policy.backends) = (Some(runner), vec![]));
    let error = place.executor.run(place.request("true")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SandboxUnavailable);
    assert!(error.message().contains("no luck"), "{error}");
}

#[test]
fn a_policy_that_can_not_be_used_is_refused_by_field_and_value_before_anything_runs() {
    let place = Place::new(Backend::Landlock);
    let runner = Runner { command: vec!["x".into()], failures: vec![] };
    let cases: Vec<(Option<SandboxPolicy>, &str)> = vec![
        (policy(|policy| policy.workspace = Some("relative".into())), "sandbox.workspace \"relative\""),
        (policy(|policy| policy.workspace = Some("/not/there".into())), "sandbox.workspace \"/not/there\""),
        (policy(|policy| policy.workspace = Some("/etc/hostname".into())), "not a directory"),
        (policy(|policy| policy.writable = vec!["/tmp".into(), "x".into()]), "sandbox.writable[1] \"x\""),
        (policy(|policy| policy.writable = vec!["/not/there".into()]), "sandbox.writable[0] \"/not/there\""),
        (policy(|policy| policy.hidden = vec!["x".into()]), "sandbox.hidden[0] \"x\""),
        (policy(|policy| policy.backends = vec![Backend::Landlock; 2]), "sandbox.backends[1] landlock"),
        (policy(|policy| policy.backends = vec![Backend::Runner]), "sandbox.runner"),
        (policy(|policy| policy.runner = Some(Runner::default())), "sandbox.runner"),
        (policy(|policy| policy.runner = Some(runner)), "sandbox.runner_failures"),
    ];
    for (sandbox, words) in cases {
        let error = refused(&place.executor, Request { sandbox, ..place.request("touch $WS/ran") });
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(words), "{error}: {words}");
    }
    assert!(walk(&place.workspace).is_empty());
    let bad = Config { sandbox: policy(|policy| policy.workspace = Some("x".into())), ..quick() };
    assert_eq!(place.executor.configure(&bad).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(place.executor.config().unwrap().sandbox.is_some(), "it stays on its last good budgets");
}

#[test]
fn hidden_paths_inside_writable_ones_are_beyond_landlock_and_that_is_said() {
    let place = Place::new(Backend::Landlock);
    let secret = place.workspace.join("secret");
    fs::create_dir(&secret).unwrap();
    let hidden = policy(|policy| policy.hidden = vec![secret.clone()]);
    let error = refused(&place.executor, Request { sandbox: hidden.clone(), ..place.request("true") });
    assert!(error.kind() == ErrorKind::SandboxUnavailable && error.message().contains("secret"), "{error}");
    let place = Place::new(Backend::Bubblewrap);
    let secret = place.workspace.join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("key"), "x").unwrap();
    let hidden = policy(|policy| policy.hidden = vec![secret]);
    let result = place.run_with("ls $WS/secret; touch $WS/fine", |request| request.sandbox = hidden);
    assert_eq!((text(&result.stdout).as_str(), code(&result)), ("", Some(0)));
}

#[test]
fn an_unusable_workdir_is_still_told_as_such() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let request = Request { workdir: Some(place.workspace.join("gone")), ..place.request("true") };
        assert_eq!(refused(&place.executor, request).kind(), ErrorKind::WorkdirMissing, "{backend}");
    }
}

#[test]
fn wider_modes_are_named_the_narrowest_first() {
    assert_eq!(Mode::ReadOnly.wider(), [Mode::WorkspaceWrite, Mode::DangerFullAccess]);
    assert_eq!(Mode::WorkspaceWrite.wider(), [Mode::DangerFullAccess]);
    assert_eq!(Mode::DangerFullAccess.wider(), []);
}

#[test]
fn the_doctor_reports_each_backend_with_what_was_tried() {
    let report = sandbox_doctor();
    let backends: Vec<_> = report.backends.iter().map(|report| report.backend).collect();
    assert_eq!(backends, BACKENDS);
    for backend in &report.backends {
        assert!(backend.usable && backend.network && backend.remedy.is_none(), "{report}");
        assert!(!backend.tried.is_empty());
    }
    assert!(report.backends[1].version >= 1);
    let text = report.to_string();
    assert!(text.contains("bubblewrap: works") && text.contains("landlock"), "{text}");
}

#[test]
fn many_confined_commands_leave_nothing_behind() {
    in_own_process(test_name!(), || {
        for backend in BACKENDS {
            let place = Place::new(backend);
            place.run("true");
            let before = (open_files(), threads());
            let place = &place;
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        (0..15).for_each(|_| assert_eq!(code(&place.run("mktemp >/dev/null; exit 2")), Some(2)))
                    });
                }
            });
            until("all is as before", || open_files() <= before.0 + 6 && threads() == before.1);
            assert_eq!(children().len(), 1, "the guard");
        }
    });
}

#[test]
fn a_bwrap_that_a_command_could_replace_is_not_used() {
    let fake = fake_bwrap("#!/bin/sh\nexec /usr/bin/bwrap \"$@\"\n");
    in_own_process_with(
        test_name!(),
        |command| {
            let path = format!("{}:{}", fake.path().display(), std::env::var("PATH").unwrap());
            command.env("PATH", path).env("FAKE", fake.path());
        },
        || {
            let place = Place::new(Backend::Bubblewrap);
            assert_eq!(code(&place.run("true")), Some(0));
            let fake = PathBuf::from(std::env::var_os("FAKE").unwrap());
            let request =
                Request { sandbox: policy(|policy| policy.writable = vec![fake]), ..place.request("touch $WS/ran") };
            let error = refused(&place.executor, request);
            assert!(error.kind() == ErrorKind::SandboxUnavailable && error.message().contains("replace"), "{error}");
        },
    );
}

#[test]
fn a_shell_below_tmp_is_there_under_bubblewrap() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    open_to_all(folder.path());
    let shell = folder.path().join("bash");
    fs::copy("/bin/bash", &shell).unwrap();
    let place = Place::new(Backend::Bubblewrap);
    let executor = Executor::new(&Config { shell: Some(shell), ..place.config() }).unwrap();
    assert_eq!(stdout_of(&executor, "echo there"), "there\n");
}

#[test]
fn a_command_whose_witness_got_lost_is_ended_and_that_is_told() {
    in_own_process(test_name!(), || {
        for backend in BACKENDS {
            let place = Place::new(backend);
            place.run("true"); // the guard, the directory and the probes are there
            let mut lost = 0;
            // How many descriptors a start takes is not known here, so each number is tried.
            for spare in 0..40 {
                let held = exhaust(spare);
                let result = place.executor.run(place.request("echo x > $WS/x && cat $WS/x"));
                drop(held);
                match result {
                    Ok(result) => assert_eq!(text(&result.stdout), "x\n", "{backend} with {spare}: {result:?}"),
                    Err(error) => lost += i32::from(error.kind() == ErrorKind::SandboxUnavailable),
                }
            }
            assert!(lost > 0, "{backend}: there was no such number");
            assert_eq!(text(&place.run("echo fine").stdout), "fine\n", "{backend}");
        }
    });
}

/// Leaves only so many descriptors free.
fn exhaust(spare: usize) -> Vec<fs::File> {
    let (soft, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    assert!(
        soft <= 4096 || nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, 1024, hard).is_ok()
    );
    let mut held: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
    held.truncate(held.len().saturating_sub(spare));
    held
}

/// Has a system call fail from now on, in this process and all that it starts, as on a system that does not have it.
fn refuse(call: libc::c_long, errno: i32) {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let end = |value: u32| libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: value };
    let mut filter = [
        libc::sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf: 1, k: call as u32 },
        end(libc::SECCOMP_RET_ERRNO | errno as u32),
        end(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the calls take numbers and a program that lives as long; all threads of this process get the filter.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let flags = libc::SECCOMP_FILTER_FLAG_TSYNC;
        assert_eq!(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program), 0);
    }
}

#[test]
fn a_container_without_mounts_falls_to_landlock_and_says_what_is_weaker() {
    in_own_process(test_name!(), || {
        refuse(libc::SYS_mount, libc::EPERM);
        let place = Place::with(Backend::Bubblewrap, |policy| policy.backends.clear());
        let facts = place.run("echo x > $WS/x; echo x > $OUT/x").sandbox.unwrap();
        assert_eq!((facts.backend, facts.missing), (Some(Backend::Landlock), vec!["metadata"]));
        assert!(place.workspace.join("x").exists() && !place.outside.join("x").exists());
        let report = sandbox_doctor();
        let [bubblewrap, landlock] = &report.backends[..] else { panic!("{report}") };
        assert!(!bubblewrap.usable && bubblewrap.remedy.is_some() && landlock.usable, "{report}");
    });
}

#[test]
fn an_old_kernel_without_any_backend_runs_nothing_and_the_doctor_names_the_errno() {
    in_own_process_with(
        test_name!(),
        |command| {
            command.env("PATH", "/nowhere");
        },
        || {
            refuse(libc::SYS_landlock_create_ruleset, libc::ENOSYS);
            let folder = tempfile::tempdir().unwrap();
            let config = Config { shell: Some("/bin/bash".into()), cwd: Some(folder.path().into()), ..quick() };
            let executor = Executor::new(&config).unwrap();
            let read_only = Some(SandboxPolicy::new(Mode::ReadOnly));
            let error = refused(&executor, Request { sandbox: read_only, ..Request::new("/bin/touch ran") });
            assert_eq!((error.kind(), error.stage()), (ErrorKind::SandboxUnavailable, Stage::Sandbox));
            assert!(error.message().contains("bwrap") && error.message().contains("Landlock"), "{error}");
            assert!(walk(folder.path()).is_empty());
            let report = sandbox_doctor();
            let [bubblewrap, landlock] = &report.backends[..] else { panic!("{report}") };
            assert_eq!(
                (bubblewrap.errno, landlock.errno, landlock.version),
                (libc::ENOENT, libc::ENOSYS, 0),
                "{report}"
            );
            assert!(report.to_string().contains("5.13"), "{report}");
            assert_eq!(code(&executor.run("exit 3").unwrap()), Some(3), "what is not confined runs");
        },
    );
}
