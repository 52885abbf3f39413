//! Policies, carried out by the real bubblewrap.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::super::warden::trial::{filter, terms, Ask};
use super::super::{Mode, Network, SandboxPolicy, Terms};
use super::{places, profile, temp, Extra, Place};

const NOTHING: Extra<'_> = Extra { visible: &[], seccomp: false };

/// A directory in `/tmp` with `work`, `work/file` and `other`, whatever the TMPDIR of the tests is.
fn scene() -> (TempDir, PathBuf) {
    scene_in("/tmp")
}

fn scene_in(folder: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let real = folder.path().canonicalize().unwrap();
    for name in ["work", "other"] {
        fs::create_dir(real.join(name)).unwrap();
    }
    fs::write(real.join("work/file"), "contents").unwrap();
    (folder, real)
}

fn policy(mode: Mode, workspace: impl AsRef<Path>) -> SandboxPolicy {
    SandboxPolicy { workspace: Some(workspace.as_ref().to_owned()), ..SandboxPolicy::new(mode) }
}

fn write_in(workspace: impl AsRef<Path>) -> SandboxPolicy {
    policy(Mode::WorkspaceWrite, workspace)
}

fn output(terms: &Terms, command: &str) -> String {
    Ask::under(terms, command).output()
}

/// Reports for each of these paths whether it can be written to.
fn writes(terms: &Terms, paths: &[&Path]) -> Vec<bool> {
    let tries = paths.iter().map(|path| format!("(: >>'{}') 2>/dev/null && echo 1 || echo 0\n", path.display()));
    output(terms, &tries.collect::<String>()).lines().map(|line| line == "1").collect()
}

#[test]
fn the_workspace_can_be_changed_and_nothing_else_but_temporary_files() {
    let (_folder, real) = scene();
    let (inside, beside) = (real.join("work/new"), real.join("new"));
    let asked: [&Path; 6] = [
        &inside,
        &beside,
        "/etc/dsh-test".as_ref(),
        "/tmp/new".as_ref(),
        "/dev/shm/new".as_ref(),
        "/dev/null".as_ref(),
    ];
    let writable = terms(write_in(real.join("work")), &real.join("work"));
    assert_eq!(writes(&writable, &asked), [true, true, false, true, true, true]);
    assert!(inside.exists());
    // These went to the private directory.
    assert!(!beside.exists() && !Path::new("/tmp/new").exists() && !Path::new("/dev/shm/new").exists());
    fs::remove_file(&inside).unwrap();
    let read_only = terms(policy(Mode::ReadOnly, real.join("work")), &real.join("work"));
    assert_eq!(writes(&read_only, &asked), [false, true, false, true, true, true]);
    assert_eq!(output(&read_only, "cat file"), "contents");
    assert!(!inside.exists());
}

#[test]
fn files_belong_to_the_host_s_user_inside_and_outside() {
    let (_folder, real) = scene();
    let terms = terms(write_in(real.join("work")), &real.join("work"));
    let own = nix::unistd::getuid();
    assert_eq!(
        output(&terms, "id -u; stat -c %u file; chmod 700 file && echo more >>file; : >new"),
        format!("{own}\n{own}\n")
    );
    use std::os::unix::fs::MetadataExt;
    assert_eq!(fs::metadata(real.join("work/new")).unwrap().uid(), own.as_raw());
    assert_eq!(fs::metadata(real.join("work/file")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn there_is_nothing_of_the_host_s_in_tmp_but_what_was_named() {
    let (_folder, real) = scene();
    let spills = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(spills.path().join("spill"), "text").unwrap();
    let terms =
        terms(SandboxPolicy { writable: vec![real.join("other")], ..write_in(real.join("work")) }, &real.join("work"));
    let visible = [spills.path().canonicalize().unwrap(), "/tmp/not/there".into()];
    let command = format!(
        "cd /tmp; find . -mindepth 1 -printf '%P\\n'; (: >{}/new) 2>/dev/null || echo fixed",
        visible[0].display()
    );
    let base = real.file_name().unwrap().to_str().unwrap();
    let spill_base = visible[0].file_name().unwrap().to_str().unwrap();
    let mut expected: Vec<String> = ["", "/other", "/work", "/work/file"].map(|path| format!("{base}{path}")).to_vec();
    expected.extend(["", "/spill"].map(|path| format!("{spill_base}{path}")));
    let seen = Ask::with(profile(&terms, &Extra { visible: &visible, ..NOTHING }), &command).output();
    let mut seen: Vec<&str> = seen.lines().collect();
    assert_eq!(seen.pop(), Some("fixed"));
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn what_is_only_to_be_seen_is_read_only_in_a_writable_root_too() {
    let (_folder, real) = scene_in("/var/tmp");
    let terms = terms(write_in(&real), &real);
    let visible = [real.join("work")];
    let seen =
        Ask::with(profile(&terms, &Extra { visible: &visible, ..NOTHING }), "cat work/file; : >work/file").output();
    assert!(seen.starts_with("contents") && seen.contains("Read-only file system"), "{seen}");
    assert_eq!(writes(&terms, &[&real.join("work/file")]), [true]);
}

#[test]
fn what_is_hidden_is_empty_and_stays_so() {
    let (_folder, real) = scene();
    fs::create_dir(real.join("work/secrets")).unwrap();
    fs::write(real.join("work/secrets/key"), "secret").unwrap();
    let hidden = vec![real.join("work/secrets"), real.join("work/file"), real.join("not/there")];
    let terms = terms(SandboxPolicy { hidden, ..write_in(real.join("work")) }, &real.join("work"));
    let command =
        "cat file; ls -A secrets; (: >secrets/key) 2>/dev/null || echo no; rm -f file 2>/dev/null || echo no; : >new";
    assert_eq!(output(&terms, command), "no\nno\n");
    assert_eq!(fs::read_to_string(real.join("work/secrets/key")).unwrap(), "secret");
    assert_eq!(fs::read_to_string(real.join("work/file")).unwrap(), "contents");
    assert!(real.join("work/new").exists());
}

#[test]
fn the_deeper_path_decides() {
    let (_folder, real) = scene_in("/var/tmp");
    fs::create_dir(real.join("work/deep")).unwrap();
    fs::create_dir(real.join("work/deep/hidden")).unwrap();
    fs::write(real.join("work/deep/hidden/key"), "secret").unwrap();
    // A workspace in what is hidden, and something hidden in the workspace.
    let hidden = vec![real.join("work"), real.join("work/deep/hidden")];
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let policy = SandboxPolicy { hidden: hidden.clone(), ..policy(mode, real.join("work/deep")) };
        let terms = terms(policy, &real.join("work/deep"));
        assert_eq!(
            output(&terms, "ls -A .. . hidden; (: >../x) 2>/dev/null || echo no"),
            ".:\nhidden\n\n..:\ndeep\n\nhidden:\nno\n"
        );
    }
}

#[test]
fn a_workdir_opens_nothing_that_is_hidden() {
    let (_folder, real) = scene();
    fs::create_dir(real.join("other/deep")).unwrap();
    fs::write(real.join("other/deep/key"), "secret").unwrap();
    let policy = SandboxPolicy { hidden: vec![real.join("other")], ..write_in(real.join("work")) };
    for workdir in ["other", "other/deep", "."] {
        let terms = Terms::resolve(policy.clone(), &real, &real.join(workdir)).unwrap().unwrap();
        let seen = output(
            &terms,
            &format!(
                "pwd; cat {}/other/deep/key 2>&1 | grep -c secret; (: >new) 2>/dev/null || echo no",
                real.display()
            ),
        );
        assert_eq!(seen, format!("{}\n0\nno\n", real.join(workdir).components().as_path().display()));
    }
    // In a directory that is not there for another reason as well, it is empty without a place.
    let terms = terms(policy, &real.join("work"));
    assert_eq!(output(&terms, &format!("ls -A {}", real.display())), "work\n");
}

#[test]
fn a_directory_keeps_the_names_by_which_the_caller_reaches_it() {
    let (_folder, real) = scene();
    symlink("second", real.join("first")).unwrap();
    symlink(real.join("other/../work"), real.join("second")).unwrap();
    let given = real.join("first");
    let terms = Terms::resolve(write_in(&given), &given, &given).unwrap().unwrap();
    let pwd = CString::new([b"PWD=", given.as_os_str().as_bytes()].concat()).unwrap();
    let environment = vec![c"PATH=/usr/bin:/bin", &pwd];
    let seen = Ask { environment, ..Ask::under(&terms, "pwd; pwd -P; cat $PWD/file") }.output();
    assert_eq!(seen, format!("{}\n{}\ncontents", given.display(), real.join("work").display()));
}

#[test]
fn a_writable_file_is_writable_and_its_directory_is_not() {
    for folder in ["/tmp", "/var/tmp"] {
        let (_folder, real) = scene_in(folder);
        let file = real.join("work/file");
        let policy = SandboxPolicy { writable: vec![file.clone()], ..write_in(real.join("other")) };
        let terms = terms(policy, &real.join("other"));
        assert_eq!(output(&terms, &format!("echo more >>{}; ls -A ../work", file.display())), "file\n");
        assert_eq!(fs::read_to_string(&file).unwrap(), "contentsmore\n");
        writes(&terms, &[&real.join("work/new")]);
        assert!(!real.join("work/new").exists());
    }
}

#[test]
fn a_link_in_the_workspace_does_not_widen_it() {
    let (_folder, real) = scene();
    symlink("/etc", real.join("work/etc")).unwrap();
    symlink(real.join("other"), real.join("work/other")).unwrap();
    let terms = terms(write_in(real.join("work")), &real.join("work"));
    assert_eq!(output(&terms, "for d in etc other; do (: >$d/dsh-test) 2>/dev/null || echo no; done"), "no\nno\n");
}

#[test]
fn the_network_is_as_wide_as_asked() {
    let devices = |network| {
        let policy = SandboxPolicy { network: Some(network), ..SandboxPolicy::new(Mode::ReadOnly) };
        output(
            &terms(policy, Path::new("/usr")),
            "cat /proc/net/dev | grep -c :; (: >/dev/tcp/127.0.0.1/1) 2>&1 | grep -om1 refused",
        )
    };
    assert_eq!(devices(Network::Loopback), "1\nrefused\n");
    assert_eq!(devices(Network::None), "1\nrefused\n");
    let of_host = fs::read_to_string("/proc/net/dev").unwrap().lines().filter(|line| line.contains(':')).count();
    assert_eq!(devices(Network::Full), format!("{of_host}\nrefused\n"));
}

#[test]
fn a_root_that_vanishes_keeps_the_command_from_running() {
    let (_folder, real) = scene();
    let policy = SandboxPolicy { writable: vec![real.join("other")], ..write_in(real.join("work")) };
    let terms = terms(policy, &real.join("work"));
    fs::remove_dir(real.join("other")).unwrap();
    let trial = Ask::under(&terms, "true").run();
    assert!(!trial.status.started);
    assert!(trial.messages().contains(real.join("other").to_str().unwrap()), "{}", trial.messages());
    assert!(!real.join("other").exists());
}

#[test]
fn what_was_hidden_and_is_gone_is_not_made() {
    let (_folder, real) = scene();
    let policy = SandboxPolicy { hidden: vec![real.join("work/file")], ..write_in(real.join("work")) };
    let terms = terms(policy, &real.join("work"));
    fs::remove_file(real.join("work/file")).unwrap();
    assert_eq!(output(&terms, "ls -A"), "");
    assert!(!real.join("work/file").exists());
}

#[test]
fn a_filter_is_put_over_the_command() {
    let refuse = filter(libc::SYS_getpriority, libc::SECCOMP_RET_ERRNO | libc::EXDEV as u32);
    let terms = terms(SandboxPolicy::new(Mode::ReadOnly), Path::new("/usr"));
    let arguments = profile(&terms, &Extra { seccomp: true, ..NOTHING });
    let seen = Ask { seccomp: Some(&refuse), ..Ask::with(arguments, "LC_ALL=C nice 2>&1") }.output();
    assert!(seen.contains("cross-device"), "{seen}");
}

#[test]
fn the_command_has_no_rights_beyond_its_user_s_and_sees_no_other_processes() {
    let terms = terms(SandboxPolicy::new(Mode::ReadOnly), Path::new("/usr"));
    let command =
        "while read -r name value; do case $name in Cap[IPEA]*) echo $value;; esac; done </proc/$$/status | sort -u
        cd /proc; echo [0-9]*; mount -o remount,rw / 2>/dev/null || echo no";
    assert_eq!(output(&terms, command), "0000000000000000\n1 2 3\nno\n");
}

#[test]
fn the_settings_of_the_kernel_are_out_of_reach_also_for_root() {
    let terms = terms(SandboxPolicy::new(Mode::ReadOnly), Path::new("/usr"));
    let command = "find /proc/sys /proc/irq /proc/bus /proc/fs /proc/driver -type f -writable 2>/dev/null | wc -l
        read -r value </proc/sys/vm/swappiness; (echo $value >/proc/sys/vm/swappiness) 2>/dev/null || echo no
        [ -w /proc/sysrq-trigger ] || echo no";
    assert_eq!(output(&terms, command), "0\nno\nno\n");
}

#[test]
fn a_policy_that_names_tmp_gets_the_real_one() {
    let real_tmp = Path::new("/tmp").canonicalize().unwrap();
    let kind = |policy, workdir: &str| {
        let terms = terms(policy, Path::new(workdir));
        (temp(&terms), places(&terms, &NOTHING).get(&real_tmp).copied())
    };
    let shm = Path::new("/dev/shm");
    assert_eq!(kind(write_in("/tmp"), "/tmp"), (shm, Some(Place::Writable)));
    assert_eq!(kind(policy(Mode::ReadOnly, "/tmp"), "/tmp"), (shm, None));
    assert_eq!(kind(write_in("/"), "/"), (shm, None));
    assert_eq!(kind(policy(Mode::ReadOnly, "/"), "/"), (Path::new("/tmp"), Some(Place::Private)));
    assert_eq!(kind(write_in("/usr"), "/tmp"), (Path::new("/tmp"), Some(Place::Private)));
    // And the directory that is told can be used.
    for policy in [write_in("/"), write_in("/tmp"), policy(Mode::ReadOnly, "/tmp"), policy(Mode::ReadOnly, "/")] {
        let terms = terms(policy, Path::new("/"));
        let command = format!("cd {} && : >file && pwd; echo /proc/[0-9]*", temp(&terms).display());
        assert_eq!(output(&terms, &command), format!("{}\n/proc/1 /proc/2 /proc/3\n", temp(&terms).display()));
    }
    assert!(!shm.join("file").exists() && !Path::new("/tmp/file").exists());
}

#[test]
fn everything_can_be_hidden_but_the_workspace() {
    let (_folder, real) = scene();
    let policy =
        SandboxPolicy { hidden: vec!["/".into()], writable: vec!["/usr".into()], ..write_in(real.join("work")) };
    let mut terms = terms(policy, &real.join("work"));
    terms.writable = vec![real.join("work")];
    let trial = Ask::under(&terms, "true").run();
    // Not even a shell.
    assert_eq!(trial.status.failure.map(|(_, errno)| errno), Some(libc::ENOENT));
}

#[test]
fn devices_can_be_used_and_none_be_put_beside_them() {
    for workdir in ["/usr", "/dev", "/dev/shm", "/dev/pts"] {
        let terms =
            Terms::resolve(policy(Mode::ReadOnly, "/usr"), Path::new("/usr"), Path::new(workdir)).unwrap().unwrap();
        let command = "(echo x >/dev/kmsg) 2>/dev/null || echo no; (: >/dev/new) 2>/dev/null || echo no
            head -c 2 /dev/zero | wc -c; echo x >/dev/null && : >/dev/shm/new && ls -A /dev/shm; : >/dev/tty";
        assert_eq!(output(&terms, &format!("({command}) 2>/dev/null; pwd")), format!("no\nno\n2\nnew\n{workdir}\n"));
    }
}

#[test]
fn what_lies_in_dev_is_there_when_it_was_named() {
    if fs::create_dir("/dev/shm/dsh-test-work").is_err() {
        assert!(Path::new("/dev/shm/dsh-test-work").exists(), "the tests need a /dev/shm to write to");
    }
    let work = Path::new("/dev/shm/dsh-test-work");
    let terms = terms(write_in(work), work);
    assert_eq!(output(&terms, "pwd; : >file; ls -A /dev/shm"), "/dev/shm/dsh-test-work\ndsh-test-work\n");
    assert!(work.join("file").exists());
    fs::remove_dir_all(work).unwrap();
}
