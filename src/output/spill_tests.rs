//! Spill files: complete or not offered, private, bounded, and gone when nobody owns them.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::{Collector, Limits, SpillStore};
use crate::config::Keep;
use crate::error::ErrorKind;

const PLENTY: u64 = 1 << 30;

struct Place {
    parent: tempfile::TempDir,
    store: Arc<SpillStore>,
}

impl Place {
    fn new() -> Place {
        let parent = tempfile::tempdir().unwrap();
        let store = Arc::new(SpillStore::new(parent.path().to_owned(), PLENTY));
        Place { parent, store }
    }

    fn dirs(&self) -> Vec<PathBuf> {
        entries(self.parent.path())
    }

    fn collector(&self, spill: u64) -> Collector {
        Collector::new(Limits { memory: 10, spill, keep: Keep::Tail }, Arc::clone(&self.store), "stdout")
    }

    /// A collector whose stream has outgrown its memory.
    fn spilled(&self) -> (Collector, PathBuf) {
        let mut collector = self.collector(PLENTY);
        collector.push(b"0123456789");
        assert_eq!((collector.spill_path(), collector.spill_error()), (None, None));
        collector.push(b"abcdef");
        let path = collector.spill_path().expect("a spill file");
        (collector, path)
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

fn open_files_in(dir: &Path) -> usize {
    let fds = fs::read_dir("/proc/self/fd").unwrap().flatten();
    fds.filter(|fd| fs::read_link(fd.path()).is_ok_and(|target| target.starts_with(dir))).count()
}

/// Whether this is the test's own child, which `setup` has prepared and which does the work. What a test needs to be
/// set for its whole process (limits, umask) is set there.
fn in_child(name: &str, setup: &str) -> bool {
    if std::env::var_os("SPILL_TEST_CHILD").is_some() {
        return true;
    }
    let module = module_path!().split_once("::").unwrap().1;
    let output = Command::new("bash")
        .args(["-c", &format!("{setup} && exec \"$@\"; exit 77"), "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{name}"), "--nocapture"])
        .env("SPILL_TEST_CHILD", "1")
        .output()
        .unwrap();
    if output.status.code() == Some(77) {
        eprintln!("skipped: `{setup}` is not possible here: {}", String::from_utf8_lossy(&output.stderr));
        return false;
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("1 passed"), "the child did not run the test: {stdout}");
    false
}

fn check_modes() {
    let place = Place::new();
    let (_collector, path) = place.spilled();
    let dir = path.parent().unwrap();
    assert_eq!((mode(dir), mode(&path), mode(&dir.join("lock"))), (0o700, 0o600, 0o600));
    assert_eq!(entries(dir).len(), 2);
}

#[test]
fn directory_and_files_are_private() {
    check_modes();
    let place = Place::new();
    let (_first, a) = place.spilled();
    let (_second, b) = place.spilled();
    assert_eq!(a.parent(), b.parent());
    let name = a.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("stdout-") && name.ends_with(".log") && name.len() == 43 && a != b, "{name}");
}

#[test]
fn a_lax_umask_changes_no_mode() {
    if in_child("a_lax_umask_changes_no_mode", "umask 0") {
        check_modes();
    }
}

#[test]
fn a_harsh_umask_changes_no_mode() {
    if in_child("a_harsh_umask_changes_no_mode", "umask 0077 && export TMPDIR=$(mktemp -d) && umask 0777") {
        let parent = std::env::temp_dir();
        let store = SpillStore::new(parent.clone(), PLENTY);
        let file = store.open("stderr").unwrap();
        assert_eq!((mode(file.path().parent().unwrap()), mode(file.path())), (0o700, 0o600));
        store.finish(false);
        fs::remove_dir(parent).unwrap();
    }
}

#[test]
fn the_file_holds_the_stream_from_its_first_byte() {
    let place = Place::new();
    let (mut collector, path) = place.spilled();
    assert_eq!(fs::read(&path).unwrap(), b"0123456789abcdef");
    assert_eq!(place.store.used(), 16);
    collector.push(b"gh");
    assert_eq!(open_files_in(&path), 1);
    collector.close();
    assert_eq!(open_files_in(&path), 0, "closed with the stream");
    assert_eq!(fs::read(&path).unwrap(), b"0123456789abcdefgh");
    assert_eq!(collector.capture().spill_path.as_ref(), Some(&path));
    drop(collector);
    assert!(path.exists(), "a result's path outlives the handle");
    assert_eq!(place.store.used(), 18);
}

#[test]
fn a_stream_beyond_its_cap_loses_the_file() {
    let place = Place::new();
    let mut collector = place.collector(20);
    collector.push(&[b'x'; 20]);
    let path = collector.spill_path().unwrap();
    collector.push(b"y");
    assert!(!path.exists());
    assert_eq!(place.store.used(), 0);
    let capture = collector.capture();
    assert_eq!(capture.spill_path, None);
    assert_eq!(capture.spill_error.as_deref(), Some("the output exceeds max_spill_bytes 20"));
    assert_eq!((capture.bytes, capture.total), (b"xxxxxxxxxy".to_vec(), 21));
    assert!(!collector.spills_on(usize::MAX));
}

#[test]
fn no_file_is_begun_for_a_stream_that_is_too_long_at_once() {
    let place = Place::new();
    let mut collector = place.collector(20);
    collector.push(&[b'x'; 21]);
    assert!(collector.spill_error().is_some());
    assert!(place.dirs().is_empty());
}

#[test]
fn no_new_file_starts_beyond_the_total_budget() {
    let place = Place::new();
    let (mut first, path) = place.spilled();
    place.store.set_max_total(16);
    let mut second = place.collector(PLENTY);
    second.push(&[b'x'; 11]);
    assert_eq!(second.spill_error(), Some("no spill file: max_total_spill_bytes 16 is used up"));
    assert_eq!(second.capture().bytes, [b'x'; 10]);
    first.push(b"goes on");
    assert_eq!((first.spill_path(), place.store.used()), (Some(path.clone()), 23));

    fs::remove_file(&path).unwrap();
    let (_third, _) = place.spilled();
    assert_eq!(place.store.used(), 16, "what others removed makes room");
    second.push(b"y");
    assert_eq!(second.spill_path(), None, "but a stream that has lost bytes can't be whole again");
    first.close();
    assert_eq!(place.store.used(), 16);
}

#[test]
fn a_file_that_someone_touched_is_not_offered() {
    type Act = fn(&Path);
    let acts: [Act; 5] = [
        |path| fs::remove_file(path).unwrap(),
        |path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            fs::write(path, b"0123456789abcdef").unwrap();
        },
        |path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            symlink(path.with_extension("old"), path).unwrap();
        },
        |path| fs::File::options().write(true).open(path).unwrap().set_len(3).unwrap(),
        |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(),
    ];
    for (i, act) in acts.iter().enumerate() {
        for close_first in [false, true] {
            let place = Place::new();
            let (mut collector, path) = place.spilled();
            if close_first {
                collector.close();
            }
            act(&path);
            let capture = collector.capture();
            assert_eq!(capture.spill_path, None, "act {i}");
            assert!(capture.spill_error.is_some_and(|error| error.contains("by someone else")), "act {i}");
            assert_eq!(capture.bytes, b"6789abcdef");
            collector.push(b"more");
            assert_eq!(collector.total(), if close_first { 16 } else { 20 });
        }
    }
}

#[test]
fn a_removed_directory_is_made_again() {
    let place = Place::new();
    let (_old, path) = place.spilled();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let (_new, again) = place.spilled();
    assert_ne!(again.parent(), path.parent());
    assert_eq!(mode(again.parent().unwrap()), 0o700);
}

#[test]
fn a_directory_replaced_by_a_link_is_not_followed() {
    let place = Place::new();
    let (_old, path) = place.spilled();
    let (dir, elsewhere) = (path.parent().unwrap(), tempfile::tempdir().unwrap());
    fs::rename(dir, place.parent.path().join("moved")).unwrap();
    symlink(elsewhere.path(), dir).unwrap();
    let (_new, again) = place.spilled();
    assert_ne!(again.parent(), Some(dir));
    place.store.finish(false);
    assert!(entries(elsewhere.path()).is_empty() && dir.is_symlink());
}

#[test]
fn trouble_with_the_place_is_recorded_and_harms_nothing() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("file"), b"").unwrap();
    let cases = [
        (here.path().join("missing"), "No such file or directory"),
        (here.path().join("file"), "Not a directory"),
        (PathBuf::from("/proc"), "No such file or directory"),
        (PathBuf::from("/sys"), ""),
    ];
    for (parent, reason) in cases {
        let store = Arc::new(SpillStore::new(parent.clone(), PLENTY));
        let limits = Limits { memory: 10, spill: PLENTY, keep: Keep::HeadTail };
        let mut collector = Collector::new(limits, Arc::clone(&store), "output");
        collector.push(b"0123456789abc");
        collector.push(b"def");
        let capture = collector.capture();
        assert_eq!((capture.bytes, capture.omitted, capture.spill_path), (b"01234bcdef".to_vec(), 6, None));
        let error = capture.spill_error.unwrap();
        assert!(error.contains("can't make the spill directory") && error.contains(reason), "{error}");
        assert!(error.contains(parent.to_str().unwrap()), "{error}");
        assert_eq!(store.used(), 0);
    }
}

/// A push that the system takes only in part: the file is removed, the reason recorded, the tail kept.
fn check_failing_write(parent: &Path, reason: &str) {
    let store = Arc::new(SpillStore::new(parent.to_owned(), PLENTY));
    let limits = Limits { memory: 1000, spill: PLENTY, keep: Keep::Tail };
    let mut collector = Collector::new(limits, Arc::clone(&store), "stdout");
    collector.push(&[b'x'; 1001]);
    let path = collector.spill_path().expect("it fits at first");
    collector.push(&[b'y'; 1 << 20]);
    assert!(!path.exists());
    let capture = collector.capture();
    assert_eq!((capture.total, capture.bytes.as_slice()), (1001 + (1 << 20), &[b'y'; 1000][..]));
    let error = capture.spill_error.unwrap();
    assert!(error.contains("can't write the spill file") && error.contains(reason), "{error}");
    assert_eq!((store.used(), open_files_in(&path)), (0, 0));
}

#[test]
fn a_file_size_limit_costs_only_the_file() {
    if in_child("a_file_size_limit_costs_only_the_file", "trap '' XFSZ && ulimit -f 64") {
        check_failing_write(tempfile::tempdir().unwrap().path(), "File too large");
    }
}

#[test]
fn a_full_disk_costs_only_the_file() {
    if std::env::var_os("SPILL_TEST_CHILD").is_some() {
        return check_failing_write(Path::new("/mnt"), "No space left on device");
    }
    // A small file system needs a mount namespace, which not every machine gives; then the test is skipped.
    let setup = "if [ -z \"$INNER\" ]; then INNER=1 exec unshare -rm bash -c \
        'mount -t tmpfs -o size=128k none /mnt && exec \"$@\"; exit 77' bash \"$@\"; fi";
    in_child("a_full_disk_costs_only_the_file", setup);
}

#[test]
fn finishing_removes_everything_once() {
    let place = Place::new();
    let (mut collector, path) = place.spilled();
    place.store.finish(false);
    assert!(place.dirs().is_empty());
    assert_eq!((place.store.used(), open_files_in(place.parent.path())), (0, 1), "only the open stream's");
    place.store.finish(true);
    collector.push(b"late");
    assert_eq!(collector.spill_path(), None);
    collector.close();
    assert_eq!((place.store.used(), open_files_in(place.parent.path()), path.exists()), (0, 0, false));
    assert_eq!(place.store.open("stdout").unwrap_err().kind(), ErrorKind::Shutdown);
    assert!(place.dirs().is_empty());
}

#[test]
fn finishing_can_leave_files_behind_for_good() {
    let place = Place::new();
    let (mut collector, path) = place.spilled();
    collector.close();
    place.store.finish(true);
    place.store.finish(false);
    drop(collector);
    assert_eq!(open_files_in(place.parent.path()), 0);
    SpillStore::sweep(place.parent.path());
    assert_eq!(fs::read(&path).unwrap(), b"0123456789abcdef");
    assert_eq!(entries(path.parent().unwrap()), [path], "no lock file");
}

#[test]
fn a_store_that_is_only_dropped_cleans_up_too() {
    let Place { parent, store } = Place::new();
    let file = store.open("stdout").unwrap();
    drop(store);
    assert!(entries(parent.path()).is_empty() && !file.is_intact());
}

#[test]
fn a_sweep_takes_what_nobody_owns_and_nothing_else() {
    let place = Place::new();
    let parent = place.parent.path();
    let (_collector, live) = place.spilled();
    let make = |name: &str, lock: bool| {
        let dir = parent.join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("stdout-1.log"), b"x").unwrap();
        if lock {
            fs::write(dir.join("lock"), b"").unwrap();
        }
        dir
    };
    let dead = make("libdsh-dead", true);
    let mut left = vec![make("libdsh-nolock", false), make("other-dead", true), make("libdsh-odd", false)];
    symlink(left[0].join("stdout-1.log"), left[2].join("lock")).unwrap();
    let fifo = make("libdsh-fifo", false);
    nix::unistd::mkfifo(&fifo.join("lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (linked, target) = (parent.join("libdsh-link"), make("target", true));
    symlink(&target, &linked).unwrap();
    left.extend([fifo, linked, target, live.parent().unwrap().to_owned()]);
    if nix::unistd::geteuid().is_root() {
        let strangers = make("libdsh-strangers", true);
        std::os::unix::fs::chown(&strangers, Some(12345), None).unwrap();
        left.push(strangers);
    }
    left.sort();
    SpillStore::sweep(parent);
    assert!(!dead.exists());
    assert_eq!(place.dirs(), left);
    assert!(
        live.exists()
            && left.iter().all(|dir| dir.is_symlink() || dir.join("lock").exists() || entries(dir).len() == 1)
    );
    SpillStore::sweep(&parent.join("missing"));
}

#[test]
fn a_host_that_is_killed_leaves_work_for_the_next_sweep() {
    if std::env::var_os("SPILL_TEST_CHILD").is_some() {
        let store = SpillStore::new(std::env::var_os("SPILL_PARENT").unwrap().into(), PLENTY);
        let _file = store.open("stdout").unwrap();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    let parent = tempfile::tempdir().unwrap();
    let module = module_path!().split_once("::").unwrap().1;
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::a_host_that_is_killed_leaves_work_for_the_next_sweep")])
        .envs([("SPILL_TEST_CHILD", "1".as_ref()), ("SPILL_PARENT", parent.path().as_os_str())])
        .status()
        .unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    assert_eq!(entries(&entries(parent.path())[0]).len(), 2);
    SpillStore::sweep(parent.path());
    assert!(entries(parent.path()).is_empty());
}

#[test]
fn sweeps_beside_each_other_and_beside_living_stores_are_safe() {
    let parent = tempfile::tempdir().unwrap();
    let parent = parent.path();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..200).for_each(|_| SpillStore::sweep(parent)));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for i in 0..100 {
                    let dead = parent.join(format!("libdsh-{i}-{:?}", std::thread::current().id()));
                    fs::create_dir(&dead).unwrap();
                    fs::write(dead.join("file"), b"").unwrap();
                    fs::write(dead.join("lock"), b"").unwrap();
                    let store = SpillStore::new(parent.to_owned(), PLENTY);
                    let mut file = store.open("stdout").unwrap();
                    file.append(b"whole").unwrap();
                    assert!(file.is_intact(), "a living store was swept");
                    if i % 2 == 0 {
                        store.finish(true);
                        assert!(file.is_intact(), "what was to be kept was swept");
                        fs::remove_dir_all(file.path().parent().unwrap()).unwrap();
                    }
                }
            });
        }
    });
    SpillStore::sweep(parent);
    assert!(entries(parent).is_empty(), "{:?}", entries(parent));
}

#[test]
fn a_forked_child_removes_nothing() {
    let place = Place::new();
    let (_collector, path) = place.spilled();
    // SAFETY: the child only finishes the store, which for it is a comparison of ids, and leaves.
    match unsafe { libc::fork() } {
        0 => {
            place.store.finish(false);
            unsafe { libc::_exit(0) }
        }
        child => assert_eq!(unsafe { libc::waitpid(child, &mut 0, 0) }, child),
    }
    assert!(path.exists());
    SpillStore::sweep(place.parent.path());
    assert!(path.exists(), "the child's end does not unlock the parent's directory");
}
