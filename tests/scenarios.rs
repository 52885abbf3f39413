//! The shared list of cases (`tests/scenarios`), played through Rust and through C. What they print is what the lists
//! say, or a binding has drifted.
#![cfg(target_os = "linux")]

#[path = "common/mod.rs"]
mod common;
#[path = "c/harness.rs"]
#[allow(dead_code)]
mod harness;
#[path = "scenarios/list.rs"]
mod list;
#[path = "scenarios/player.rs"]
mod player;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use harness::{build, finish, root};

fn folder() -> PathBuf {
    root().join("tests/scenarios")
}

/// Plays a list through Rust, in a process of its own: some of it is about the environment of that.
fn play_in_rust(test: &str, name: &str) {
    let environment = |command: &mut Command| match name {
        "environment" => drop(command.envs([("SCENARIO_API_KEY", "secret"), ("SCENARIO_PLAIN", "plain")])),
        _ => drop(command.env_remove("SCENARIO_API_KEY").env_remove("SCENARIO_PLAIN")),
    };
    common::in_own_process_with(test, environment, || {
        let text = fs::read_to_string(folder().join(name).with_extension("scn")).unwrap();
        let printed = player::play(&text);
        let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
        if let Some(difference) = list::difference(&list::expected(&text), &printed) {
            panic!("{name}: {difference}");
        }
    });
}

macro_rules! lists {
    ($($name:ident)*) => {
        const LISTS: &[&str] = &[$(stringify!($name)),*];

        mod through_rust {
            $(#[test]
            fn $name() {
                super::play_in_rust(crate::test_name!(), stringify!($name));
            })*
        }
    };
}

lists! { background budgets confinement ending environment errors input output running }

#[test]
fn every_list_is_played() {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let mut names: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "scn"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, LISTS);
}

fn driver_in_c() -> &'static Path {
    static DRIVER: OnceLock<PathBuf> = OnceLock::new();
    DRIVER.get_or_init(|| build("scenarios"))
}

/// The script by which all bindings but this one are compared with the lists.
fn compare() -> Command {
    Command::new(folder().join("compare"))
}

#[test]
fn the_c_abi_does_what_the_lists_say() {
    let mut command = compare();
    command.arg(driver_in_c());
    finish(command);
}

/// Not all lists: without pidfds, which valgrind does not know, what has left its session is not ended; and without the
/// guard, which it can't start, the defaults are others.
#[test]
fn the_driver_in_c_is_clean_under_valgrind() {
    let log = harness::scratch().join("valgrind.log");
    let mut command = compare();
    command.args(["valgrind", "--quiet", "--error-exitcode=99", "--child-silent-after-fork=yes"]);
    command.args(["--leak-check=full", "--errors-for-leak-kinds=definite,possible"]);
    command.arg(format!("--log-file={}", log.display())).arg(driver_in_c()).env("CHECK_UNDER_VALGRIND", "1");
    command.args(["background", "errors"].map(|name| folder().join(name).with_extension("scn")));
    finish(command);
}

#[test]
fn a_line_that_is_not_known_stops_the_driver_in_c() {
    for line in ["juggle", "set colour red", "config colour red", "until stdnone x", "fill tag 3 1", "wait soon"] {
        let list = harness::scratch().join("unknown.scn");
        fs::write(&list, format!("case a\nset command true\nstart\n{line}\n")).unwrap();
        let output = Command::new(driver_in_c()).arg(&list).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.contains(line), "{errors}");
    }
}

/// What the script says of a driver that prints this text, and ends with this code, about a list of two cases.
fn compared(printed: &str, code: i32) -> Output {
    let folder = tempfile::tempdir_in(harness::scratch()).unwrap();
    let (list, driver) = (folder.path().join("two.scn"), folder.path().join("driver"));
    fs::write(&list, "# Two.\ncase one\nset command true\nrun\n= exit code 1\n\ncase two\nwait\n= timed out\n")
        .unwrap();
    fs::write(&driver, format!("cat <<'END'\n{printed}END\nexit {code}\n")).unwrap();
    fs::set_permissions(&driver, fs::Permissions::from_mode(0o755)).unwrap();
    compare().arg("sh").arg(&driver).arg(&list).output().unwrap()
}

#[test]
fn the_comparison_finds_every_difference() {
    const RIGHT: &str = "case one\nrun\n= exit code 1\ncase two\nwait\n= timed out\n";
    let right = compared(RIGHT, 0);
    assert!(right.status.success(), "{right:?}");
    assert_eq!(String::from_utf8_lossy(&right.stdout), "2 passed, 0 failed\n");
    for (what, printed, code, says) in [
        ("another line", RIGHT.replace("code 1", "code 2"), 0, ["two: one", "1 passed, 1 failed"]),
        ("a line too many", RIGHT.replace("run\n", "run\n= aborted\n"), 0, ["+ = aborted", "1 passed, 1 failed"]),
        ("a line too few", RIGHT.replace("= timed out\n", ""), 0, ["- = timed out", "1 passed, 1 failed"]),
        ("no case", "".into(), 0, ["not played", "0 passed, 2 failed"]),
        ("a case too few", RIGHT.replace("case two\nwait\n= timed out\n", ""), 0, ["not played", "1 passed, 1 failed"]),
        ("a case too many", format!("{RIGHT}case three\n"), 0, ["not in the list", "2 passed, 1 failed"]),
        ("a case twice", format!("{RIGHT}case two\nwait\n= timed out\n"), 0, ["twice", "2 passed, 1 failed"]),
        ("a driver that fails", RIGHT.into(), 3, ["exit code 3", "2 passed, 1 failed"]),
    ] {
        let output = compared(&printed, code);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{what}: {text}");
        assert!(says.iter().all(|says| text.contains(says)), "{what}: {text}");
    }
}

#[test]
fn the_comparison_in_rust_names_the_case_and_both_texts() {
    let expected = ["case one", "run", "= exit code 1", "case two", "run"];
    assert_eq!(list::difference(&expected, &expected), None);
    let printed = ["case one", "run", "= exit code 2", "case two", "run"];
    let difference = list::difference(&expected, &printed).unwrap();
    assert!(difference.starts_with("case one\n"), "{difference}");
    assert!(difference.contains("= exit code 1") && difference.contains("= exit code 2"), "{difference}");
    assert!(list::difference(&expected, &expected[..4]).unwrap().starts_with("case two\n"));
    assert!(list::difference(&expected[..4], &expected).unwrap().starts_with("case two\n"));
}
