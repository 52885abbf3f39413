//! The verdict over recorded outputs, with and without a witness.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::policy::{Backend, Network};
use super::*;

/// A workspace, and a place outside of it that the user of the test could change.
struct Scene {
    _folder: tempfile::TempDir,
    workspace: PathBuf,
    outside: PathBuf,
    secret: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        // Not with a dot in front, as is the habit: that is where tools keep what they can do without.
        let folder = tempfile::Builder::new().prefix("verdict-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [workspace, outside, secret] = ["work", "outside", "secret"].map(|name| root.join(name));
        for made in [&workspace, &outside, &secret, &outside.join("folder")] {
            fs::create_dir(made).unwrap();
        }
        for file in [outside.join("file"), outside.join("script"), secret.join("key"), workspace.join("own")] {
            fs::write(file, "").unwrap();
        }
        Scene { _folder: folder, workspace, outside, secret }
    }

    fn terms(&self, mode: Mode) -> Terms {
        Terms {
            mode,
            network: Network::Full,
            workspace: self.workspace.clone(),
            writable: if mode == Mode::ReadOnly { Vec::new() } else { vec![self.workspace.clone()] },
            hidden: vec![self.secret.clone()],
            workdir: Some(self.workspace.clone()),
            as_given: Vec::new(),
            backends: Vec::new(),
            runner: None,
        }
    }

    /// A file outside, as an attempt.
    fn attempt(&self, name: &str) -> Attempt {
        Attempt { path: self.outside.join(name), call: "openat", deed: Deed::Place, sure: true }
    }

    fn judge(&self, code: i32, errors: &str, attempts: Option<&[Attempt]>) -> (Denied, Option<Evidence>) {
        self.judge_under(Backend::Bubblewrap, Mode::WorkspaceWrite, code, errors, attempts)
    }

    fn judge_under(
        &self,
        backend: Backend,
        mode: Mode,
        code: i32,
        errors: &str,
        attempts: Option<&[Attempt]>,
    ) -> (Denied, Option<Evidence>) {
        let names = [("OUT", &self.outside), ("WORK", &self.workspace), ("SECRET", &self.secret)];
        let errors =
            names.iter().fold(errors.to_owned(), |text, (name, path)| text.replace(name, path.to_str().unwrap()));
        verdict(&Input {
            terms: &self.terms(mode),
            backend,
            exit: Exit::Code(code),
            stderr: errors.as_bytes(),
            attempts,
            scratch: None,
            workdir: &self.workspace,
            private: &[],
        })
    }
}

fn path_of(judged: &(Denied, Option<Evidence>)) -> Option<&Path> {
    judged.1.as_ref().map(|evidence| evidence.path.as_path())
}

#[test]
fn two_of_three_signs_are_a_denial_and_one_alone_leaves_it_open() {
    let scene = Scene::new();
    let words = "touch: cannot touch 'OUT/x': Read-only file system\n";
    let seen = [scene.attempt("x")];
    let table = [
        // Exit code, stderr, attempts, denied.
        (1, words, Some(&seen[..]), Denied::Yes),
        (1, "", Some(&seen[..]), Denied::Yes),
        (0, words, Some(&seen[..]), Denied::Yes),
        (0, "", Some(&seen[..]), Denied::Unknown),
        (0, "done\n", Some(&seen[..]), Denied::Unknown),
        (1, words, Some(&[]), Denied::No),
        (0, words, Some(&[]), Denied::No),
        (1, "", Some(&[]), Denied::No),
        (0, "", Some(&[]), Denied::No),
        (1, words, None, Denied::Yes),
        (0, words, None, Denied::Unknown),
        (1, "", None, Denied::Unknown),
        (1, "assertion failed\n", None, Denied::No),
        (0, "", None, Denied::No),
    ];
    for (code, errors, attempts, denied) in table {
        let judged = scene.judge(code, errors, attempts);
        assert_eq!(judged.0, denied, "exit {code}, {errors:?}, {attempts:?}");
        let has_evidence = denied == Denied::Yes || attempts.is_some_and(|seen| !seen.is_empty()) || code == 0;
        if denied != Denied::No && has_evidence {
            assert_eq!(path_of(&judged), Some(&*scene.outside.join("x")), "exit {code}, {errors:?}, {attempts:?}");
        }
    }
}

#[test]
fn the_evidence_names_the_rule() {
    let scene = Scene::new();
    let seen = [scene.attempt("x")];
    let rule = |mode, errors: &str, seen: &[Attempt]| {
        scene.judge_under(Backend::Landlock, mode, 1, errors, Some(seen)).1.unwrap().rule
    };
    assert_eq!(rule(Mode::WorkspaceWrite, "", &seen), "outside the workspace (workspace-write)");
    assert_eq!(rule(Mode::ReadOnly, "", &seen), "read-only mode");
    assert_eq!(rule(Mode::ReadOnly, "cat: SECRET/key: Permission denied", &[]), "hidden");
}

#[test]
fn of_several_attempts_the_one_complained_of_is_shown() {
    let scene = Scene::new();
    let seen = [scene.attempt("cache/a"), scene.attempt("log"), scene.attempt("file")];
    let judged = scene.judge(1, "sh: 1: cannot create OUT/file: Read-only file system\n", Some(&seen));
    assert_eq!((judged.0, path_of(&judged)), (Denied::Yes, Some(&*scene.outside.join("file"))));
}

#[test]
fn a_complaint_may_name_the_file_from_elsewhere_or_its_folder_or_a_template() {
    let scene = Scene::new();
    let seen = [scene.attempt("folder/deep/x")];
    for errors in [
        "touch: cannot touch 'deep/x': Permission denied",
        "touch: cannot touch './x': Permission denied",
        "mkdir: cannot create directory 'OUT/folder/deep': Permission denied",
        "mktemp: failed to create file via template 'OUT/folder/deep/tmp.XXXXXX': Read-only file system",
        "touch: cannot touch 'OUT/folder/deep/x/more': Permission denied",
        "touch: cannot touch '../outside/folder/deep/x': Permission denied",
    ] {
        // At exit 0 it takes the words.
        assert_eq!(scene.judge(0, errors, Some(&seen)).0, Denied::Yes, "{errors}");
    }
    let lock = [scene.attempt(".gitconfig.lock")];
    let errors = "error: could not lock config file OUT/.gitconfig: Permission denied";
    assert_eq!(scene.judge(255, errors, Some(&lock)).0, Denied::Yes);
    for errors in ["touch: cannot touch 'y': Permission denied", "touch: cannot touch 'OUT/y': Permission denied"] {
        assert_eq!(scene.judge(0, errors, Some(&seen)).0, Denied::Unknown, "{errors}");
    }
}

#[test]
fn a_failing_command_that_speaks_of_other_things_may_have_failed_of_them() {
    let scene = Scene::new();
    let compiler = "error[E0308]: mismatched types\n";
    assert_eq!(scene.judge(101, compiler, Some(&[scene.attempt("registry/lock")])).0, Denied::Unknown);
    // A cache is written in passing, even when nothing is said at all.
    for cache in ["__pycache__/a.pyc", ".npm/_logs/x", ".config/tool/state", "_logs"] {
        assert_eq!(scene.judge(1, "", Some(&[scene.attempt(cache)])).0, Denied::Unknown, "{cache}");
        let logs = "logs were not written to 'OUT/_logs'\n";
        assert_eq!(scene.judge(1, logs, Some(&[scene.attempt(cache)])).0, Denied::Unknown, "{cache}");
        let denied = format!("cannot create 'OUT/{cache}': Permission denied\n");
        assert_eq!(scene.judge(1, &denied, Some(&[scene.attempt(cache)])).0, Denied::Yes, "{cache}");
    }
    assert_eq!(scene.judge(1, "", Some(&[scene.attempt("r/.git/index.lock")])).0, Denied::Yes);
    // In another language the path is enough.
    let german = "touch: 'OUT/x' kann nicht berührt werden: Das Dateisystem ist nur lesbar\n";
    assert_eq!(scene.judge(1, german, Some(&[scene.attempt("x")])).0, Denied::Yes);
    // A complaint without a path.
    let sqlite = "Error: attempt to write a readonly database\n";
    assert_eq!(scene.judge(1, sqlite, Some(&[scene.attempt("a.db")])).0, Denied::Yes);
}

#[test]
fn what_the_file_system_forbids_by_itself_is_no_denial() {
    let scene = Scene::new();
    fs::create_dir(scene.outside.join("locked")).unwrap();
    fs::set_permissions(scene.outside.join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    // To root nothing is locked.
    let locked = if nix::unistd::geteuid().is_root() { "/proc/x" } else { "OUT/locked/x" };
    let no = [
        &format!("touch: cannot touch '{locked}': Permission denied\n"),
        "touch: cannot touch 'WORK/own': Permission denied\n",
        "tee: own: Permission denied\n",
        "bash: line 1: /dev/sda: Permission denied\n",
        "touch: cannot touch '/proc/1/x': Permission denied\n",
    ];
    for errors in no {
        for attempts in [None, Some(&[][..])] {
            assert_eq!(scene.judge(1, errors, attempts).0, Denied::No, "{errors}, {attempts:?}");
        }
    }
    // It may be that it was to be executed, and has no right to that.
    assert_eq!(scene.judge(126, "bash: line 1: OUT/script: Permission denied\n", None).0, Denied::Unknown);
    assert_eq!(scene.judge(126, "bash: line 1: OUT/script: Permission denied\n", Some(&[])).0, Denied::No);
}

#[test]
fn a_hidden_path_is_denied_by_words_about_it() {
    let scene = Scene::new();
    for errors in ["cat: SECRET/key: Permission denied\n", "cat: ../secret/key: No such file or directory\n"] {
        for attempts in [None, Some(&[][..])] {
            let judged = scene.judge(1, errors, attempts);
            assert_eq!((judged.0, path_of(&judged)), (Denied::Yes, Some(&*scene.secret.join("key"))), "{errors}");
            assert_eq!(scene.judge(0, errors, attempts).0, Denied::Unknown, "{errors}");
        }
    }
    // It is not there without the sandbox either.
    assert_eq!(scene.judge(1, "cat: SECRET/none: No such file or directory\n", Some(&[])).0, Denied::No);
}

#[test]
fn landlock_does_not_deny_metadata_and_an_unsure_attempt_is_not_certain() {
    let scene = Scene::new();
    let about_metadata = [Attempt { deed: Deed::Describe, ..scene.attempt("file") }];
    let judged = |backend| scene.judge_under(backend, Mode::ReadOnly, 1, "", Some(&about_metadata)).0;
    assert_eq!((judged(Backend::Landlock), judged(Backend::Bubblewrap)), (Denied::No, Denied::Yes));
    // Asking is not doing.
    let asked = [Attempt { deed: Deed::Ask, ..scene.attempt("file") }];
    let judged = |backend| scene.judge_under(backend, Mode::ReadOnly, 1, "", Some(&asked)).0;
    assert_eq!((judged(Backend::Landlock), judged(Backend::Bubblewrap)), (Denied::No, Denied::Unknown));
    let unsure = [Attempt { sure: false, ..scene.attempt("file") }];
    assert_eq!(scene.judge(1, "tee: OUT/file: Read-only file system", Some(&unsure)).0, Denied::Unknown);
}

#[test]
fn what_is_private_to_the_sandbox_is_no_denial() {
    let scene = Scene::new();
    let (terms, seen) = (scene.terms(Mode::WorkspaceWrite), [scene.attempt("x")]);
    let input = Input {
        terms: &terms,
        backend: Backend::Bubblewrap,
        exit: Exit::Code(1),
        stderr: b"",
        attempts: Some(&seen),
        scratch: None,
        workdir: &scene.workspace,
        private: &[&scene.outside],
    };
    assert_eq!(verdict(&input), (Denied::No, None));
    assert_eq!(verdict(&Input { private: &[], scratch: Some(&scene.outside), ..input }), (Denied::No, None));
    // But for a workspace in there, which may only be read.
    let (terms, folder) = (scene.terms(Mode::ReadOnly), scene.workspace.parent().unwrap());
    let seen = [Attempt { path: scene.workspace.join("x"), ..scene.attempt("x") }];
    let input = Input { terms: &terms, attempts: Some(&seen), private: &[folder], ..input };
    assert_eq!(verdict(&input).0, Denied::Yes);
}

#[test]
fn a_signal_is_no_failure_of_a_denial() {
    let scene = Scene::new();
    let (terms, seen) = (scene.terms(Mode::WorkspaceWrite), [scene.attempt("x")]);
    let input = Input {
        terms: &terms,
        backend: Backend::Landlock,
        exit: Exit::Signal { number: 9, core_dumped: false },
        stderr: b"",
        attempts: Some(&seen),
        scratch: None,
        workdir: &scene.workspace,
        private: &[],
    };
    assert_eq!(verdict(&input).0, Denied::Unknown);
}

#[test]
fn a_text_without_end_is_looked_at_in_good_time() {
    let scene = Scene::new();
    let errors = "x: '/a/b/c': Permission denied ".repeat(1 << 16) + &"tee: OUT/x: Permission denied\n".repeat(1 << 14);
    assert_eq!(scene.judge(0, &errors, Some(&[scene.attempt("x")])).0, Denied::Yes);
}
