//! Spill files: whole streams on disk, private, complete or not offered, and never in the way of the command.

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::*;
use dsh::{Captured, Config, Executor, RunResult, Stream};

/// Prints 1,288,895 bytes.
const LONG: &str = "seq 200000; exit 7";
const TOTAL: u64 = 1_288_895;

fn long_output() -> String {
    (1..=200_000).map(|number| format!("{number}\n")).collect()
}

fn spilling_to(folder: &Path, change: impl FnOnce(&mut Config)) -> Executor {
    executor_with(|config| {
        config.spill_dir = Some(folder.into());
        change(config);
    })
}

/// The result of a command whose spill went wrong: all there but the file.
#[track_caller]
fn has_no_spill(result: &RunResult) -> String {
    assert_eq!((code(result), result.outcome.cause), (Some(7), None));
    is_a_tail(&result.stdout);
    assert_eq!(result.stdout.spill_path, None, "a path is offered");
    result.stdout.spill_error.clone().expect("the reason is told")
}

#[track_caller]
fn is_a_tail(stream: &Captured) {
    assert_eq!((stream.total, stream.bytes.len(), stream.omitted), (TOTAL, 64_000, TOTAL - 64_000));
    assert!(stream.bytes.ends_with(b"\n199999\n200000\n"));
}

/// The spill files in all private directories of a folder.
fn spills(folder: &Path) -> Vec<PathBuf> {
    let is_spill = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    entries(folder).iter().filter(|path| path.is_dir()).flat_map(|dir| entries(dir)).filter(is_spill).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_spill_holds_the_whole_stream_from_its_first_byte() {
    let folder = tempfile::tempdir().unwrap();
    let executor = spilling_to(folder.path(), |_| {});
    let result = executor.run("seq 200000; seq 200000 >&2; exit 7").unwrap();
    for stream in [&result.stdout, &result.stderr] {
        is_a_tail(stream);
        let spill = std::fs::read(stream.spill_path.as_ref().unwrap()).unwrap();
        assert!(spill == long_output().as_bytes());
        assert_eq!(stream.spill_error, None);
    }
    assert_ne!(result.stdout.spill_path, result.stderr.spill_path);
    assert_eq!(executor.stats().unwrap().spill_bytes, 2 * TOTAL);
}

#[test]
fn nothing_is_on_disk_until_a_stream_is_too_long_for_memory() {
    let folder = tempfile::tempdir().unwrap();
    let executor = spilling_to(folder.path(), |_| {});
    let result = executor.run("head -c 64000 /dev/zero").unwrap();
    assert_eq!((result.stdout.bytes.len(), result.stdout.spill_path), (64_000, None));
    assert_eq!(entries(folder.path()), [] as [PathBuf; 0]);
    assert!(executor.run("head -c 64001 /dev/zero").unwrap().stdout.spill_path.is_some());
}

#[test]
fn spill_files_are_for_their_owner_alone_and_go_with_the_executor() {
    let folder = tempfile::tempdir().unwrap();
    in_own_process(test_name!(), || {
        // SAFETY: a plain system call in a process of our own.
        unsafe { libc::umask(0) };
        let executor = spilling_to(folder.path(), |_| {});
        let paths: Vec<_> = (0..2).map(|_| executor.run(LONG).unwrap().stdout.spill_path.unwrap()).collect();
        let private = paths[0].parent().unwrap();
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().mode();
        assert_eq!(mode(private), libc::S_IFDIR | 0o700);
        for entry in entries(private) {
            assert_eq!(mode(&entry), libc::S_IFREG | 0o600, "{entry:?}");
        }
        let name = |path: &Path| path.file_name().unwrap().to_owned();
        assert!(name(&paths[0]) != name(&paths[1]) && name(&paths[0]).len() >= 16);
        executor.shutdown(None).unwrap();
        assert_eq!(entries(folder.path()), [] as [PathBuf; 0], "something was left");
    });
}

#[test]
fn no_command_gets_the_descriptor_of_a_spill_file() {
    let folder = tempfile::tempdir().unwrap();
    let executor = spilling_to(folder.path(), |_| {});
    let spilling = executor.start("seq 200000; sleep 60").unwrap();
    until("it has spilled", || spilling.info().unwrap().totals[0] == TOTAL);
    let listed = stdout_of(&executor, "ls -l /proc/$$/fd");
    assert!(!listed.contains("libdsh") && !listed.contains(folder.path().to_str().unwrap()), "{listed}");
    // The host's own descriptor is close-on-exec, for children that somebody else makes.
    let private = entries(folder.path());
    let ours = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .flatten()
        .filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|target| target.starts_with(&private[0])));
    for fd in ours {
        let number = fd.file_name().into_string().unwrap();
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
        assert_ne!(i64::from_str_radix(flags, 8).unwrap() & i64::from(libc::O_CLOEXEC), 0, "{info}");
    }
}

#[test]
fn a_planted_link_is_neither_followed_nor_swept() {
    let folder = tempfile::tempdir().unwrap();
    let (shared, target) = (folder.path().join("shared"), folder.path().join("target"));
    std::fs::create_dir(&shared).unwrap();
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("precious"), "keep me").unwrap();
    std::fs::write(target.join("lock"), "").unwrap();
    for name in ["libdsh-planted", "libdsh-", "libdsh-0000000000000000"] {
        std::os::unix::fs::symlink(&target, shared.join(name)).unwrap();
    }
    let executor = spilling_to(&shared, |_| {});
    let path = executor.run(LONG).unwrap().stdout.spill_path.unwrap();
    assert_eq!(path.parent().unwrap().parent().unwrap(), shared);
    assert!(std::fs::symlink_metadata(path.parent().unwrap()).unwrap().is_dir());
    executor.shutdown(None).unwrap();
    assert_eq!(std::fs::read_to_string(target.join("precious")).unwrap(), "keep me");
    assert_eq!(entries(&target).len(), 2);
}

#[test]
fn spill_files_that_are_to_be_kept_are_left_and_not_swept_by_the_next_executor() {
    let folder = tempfile::tempdir().unwrap();
    let executor = spilling_to(folder.path(), |config| config.keep_spill_files = true);
    let path = executor.run(LONG).unwrap().stdout.spill_path.unwrap();
    executor.shutdown(None).unwrap();
    drop(executor);
    drop(spilling_to(folder.path(), |_| {}));
    assert!(std::fs::read(&path).unwrap() == long_output().as_bytes());
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_stream_beyond_its_disk_budget_has_no_spill() {
    let folder = tempfile::tempdir().unwrap();
    let executor = spilling_to(folder.path(), |config| config.max_spill_bytes = TOTAL - 1);
    let error = has_no_spill(&executor.run(LONG).unwrap());
    assert!(error.contains(&(TOTAL - 1).to_string()), "{error}");
    assert_eq!(executor.stats().unwrap().spill_bytes, 0);
    assert_eq!(spills(folder.path()), [] as [PathBuf; 0], "the file is still there");

    let exact = Config { max_spill_bytes: TOTAL, ..executor.config().unwrap() };
    executor.configure(&exact).unwrap();
    let result = executor.run(LONG).unwrap();
    assert_eq!(std::fs::metadata(result.stdout.spill_path.unwrap()).unwrap().len(), TOTAL);
}

#[test]
fn beyond_the_total_budget_no_new_spill_begins() {
    let folder = tempfile::tempdir().unwrap();
    let executor = spilling_to(folder.path(), |config| config.max_total_spill_bytes = TOTAL);
    let first = executor.run(LONG).unwrap().stdout.spill_path.unwrap();
    has_no_spill(&executor.run(LONG).unwrap());
    assert!(first.exists());
    assert_eq!(executor.stats().unwrap().spill_bytes, TOTAL);
    std::fs::remove_file(&first).unwrap();
    assert!(executor.run(LONG).unwrap().stdout.spill_path.is_some(), "the room of a removed file is free again");
}

#[test]
fn a_missing_spill_directory_hurts_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let executor = spilling_to(&missing, |_| {});
    let error = has_no_spill(&executor.run(LONG).unwrap());
    assert!(error.contains(missing.to_str().unwrap()), "{error}");
    std::fs::create_dir(&missing).unwrap();
    assert!(executor.run(LONG).unwrap().stdout.spill_path.is_some(), "it is there now");
}

#[test]
fn a_spill_directory_that_may_not_be_written_hurts_nobody() {
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    let with_dir = |host: &mut Command| {
        host.env("CLOSED", &closed).current_dir("/");
    };
    in_own_process_with(test_name!(), with_dir, || {
        become_nobody();
        let closed = PathBuf::from(std::env::var_os("CLOSED").unwrap());
        has_no_spill(&spilling_to(&closed, |_| {}).run(LONG).unwrap());
    });
}

#[test]
fn a_full_disk_hurts_nobody() {
    if plays_host(test_name!()) {
        let full = PathBuf::from(std::env::var_os("FULL").unwrap());
        let executor = spilling_to(&full, |_| {});
        let error = has_no_spill(&executor.run(LONG).unwrap());
        assert!(error.contains("space"), "{error}");
        assert_eq!(spills(&full), [] as [PathBuf; 0], "a part of a stream is left");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let host = host_command(test_name!());
    let mut outer = Command::new("unshare");
    outer.args(if nix::unistd::geteuid().is_root() { ["-m", "--"] } else { ["-rm", "--"] });
    outer.args(["sh", "-c", "mount -t tmpfs -o size=64k none \"$FULL\" || exit 77; exec \"$@\"", "sh"]);
    outer.arg(host.get_program()).args(host.get_args()).envs(host.get_envs().filter_map(|(k, v)| Some((k, v?))));
    outer.env("FULL", folder.path()).stdin(Stdio::null());
    let output = outer.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    if matches!(output.status.code(), Some(77 | 1)) && !printed.contains("running 1 test") {
        return eprintln!("not tested: no file system can be mounted here");
    }
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Files of this process may not grow beyond 64 KiB. SIGXFSZ keeps its default disposition: to end the process.
fn limit_file_size() {
    let limit = libc::rlimit { rlim_cur: 65_536, rlim_max: 65_536 };
    // SAFETY: a plain system call in a process of our own.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
}

#[test]
fn a_file_size_limit_of_the_host_hurts_nobody() {
    let folder = tempfile::tempdir().unwrap();
    in_own_process(test_name!(), || {
        let executor = spilling_to(folder.path(), |_| {});
        executor.run("true").unwrap();
        limit_file_size();
        has_no_spill(&executor.run(LONG).unwrap());
        let process = executor.start(LONG).unwrap();
        in_time(|| process.wait(None).unwrap());
        assert_eq!(process.info().unwrap().totals[0], TOTAL);
    });
}

#[test]
fn an_executor_under_a_file_size_limit_does_not_end_its_host() {
    let folder = tempfile::tempdir().unwrap();
    in_own_process(test_name!(), || {
        limit_file_size();
        // An error is an answer, too, but not the end of the host.
        if let Ok(executor) = Executor::new(&Config { spill_dir: Some(folder.path().into()), ..quick() }) {
            let _ = executor.run("true");
            let long = format!("#{}\nexit 7", "x".repeat(200_000));
            let _ = executor.run(long.as_str());
            executor.shutdown(None).unwrap();
        }
    });
}

#[test]
fn a_spill_directory_that_is_removed_under_us_hurts_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let spill = folder.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    let executor = spilling_to(&spill, |_| {});
    let command = format!("seq 100000; until [ -e '{}' ]; do sleep .01; done; seq 100001 200000; exit 7", go.display());
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            until("the command has spilled", || spills(&spill).len() == 1);
            std::fs::remove_dir_all(&spill).unwrap();
            std::fs::write(&go, "").unwrap();
        });
        in_time(|| executor.run(command.as_str()).unwrap())
    });
    has_no_spill(&result);
    std::fs::create_dir(&spill).unwrap();
    assert!(executor.run(LONG).unwrap().stdout.spill_path.is_some());
}

#[test]
fn a_background_process_offers_its_spill_only_while_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let executor = spilling_to(folder.path(), |config| config.max_spill_bytes = 1_000_000);
    let (short, long) = (executor.start("seq 100000").unwrap(), executor.start(LONG).unwrap());
    let offered = [&short, &long].map(|process| {
        process.wait(None).unwrap();
        process.read_stream(Stream::Stdout, 0, &mut [0; 10]).unwrap().spill_path
    });
    assert!(offered[0].as_ref().is_some_and(|path| path.exists()) && offered[1].is_none());
}

#[test]
fn the_directory_of_a_dead_host_is_swept_by_the_next_executor_but_never_that_of_a_live_one() {
    let folder = tempfile::tempdir().unwrap();
    if plays_host(test_name!()) {
        let executor = spilling_to(Path::new(&std::env::var_os("FOLDER").unwrap()), |_| {});
        let path = executor.run(LONG).unwrap().stdout.spill_path.unwrap();
        tell(path.to_str().unwrap());
        loop {
            std::thread::park();
        }
    }
    let start = || {
        let mut host = host_command(test_name!()).env("FOLDER", folder.path()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(host.stdout.take().unwrap()));
        let path = lines.map_while(Result::ok).find_map(|line| told(&line).map(PathBuf::from)).expect("it spilled");
        (host, path)
    };
    let ((mut dead, of_the_dead), (mut live, of_the_live)) = (start(), start());
    drop(spilling_to(folder.path(), |_| {}));
    assert!(of_the_dead.exists() && of_the_live.exists(), "both hosts are alive");
    dead.kill().unwrap();
    dead.wait().unwrap();
    assert!(of_the_dead.exists(), "nobody could have removed it");
    until("the guard has gone, too", || {
        drop(spilling_to(folder.path(), |_| {}));
        !of_the_dead.parent().unwrap().exists()
    });
    assert!(of_the_live.exists());
    live.kill().unwrap();
    live.wait().unwrap();
}
