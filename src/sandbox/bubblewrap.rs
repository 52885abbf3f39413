//! Bubblewrap: the arguments that carry a policy out.
//!
//! The whole file system is there, read-only, in its place; the writable roots are bound over it. `/dev`, `/proc` and
//! the directory for temporary files are the command's own. What a policy names in several ways goes by depth: the
//! deeper path decides for what is below it, and at the same path hiding is stronger than all else.
//!
//! - **`/tmp` is private** and empty, unless the policy names it (or, to be changed, something around it): then it is
//!   the real one, and the private directory is `/dev/shm` ([`temp`]). What the policy names below `/tmp` is there,
//!   under all the names by which the caller reaches it. A workdir that is `/tmp` itself means the private one.
//! - **What is hidden** is an empty directory that nobody can write to, or an empty device. A workdir in there (which a
//!   model may have asked for, and which does not open what the policy hides) is empty too.
//! - **What vanishes** between the resolving of the policy and the start of the command makes bubblewrap fail, and the
//!   command does not run: a root that is not there must not become another one. Only what is merely shown (spill
//!   files) may be gone.
//!
//! No `--die-with-parent`: it follows the *thread* that started bubblewrap. No `--new-session`: the warden makes one.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Network, Terms};
use crate::config::in_path;

/// What the profile depends on besides the policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extra<'a> {
    /// What the command may read wherever it lies. Need not exist.
    pub(crate) visible: &'a [PathBuf],
    /// Whether there is a filter for system calls, on descriptor 6.
    pub(crate) seccomp: bool,
}

/// The program, found in PATH.
pub(crate) fn find() -> Option<PathBuf> {
    in_path(Path::new("bwrap"))
}

/// Why this policy can't be enforced at all.
pub(crate) fn unsupported(terms: &Terms) -> Option<String> {
    let program = find()?.canonicalize().ok()?;
    terms
        .allows_change(&program)
        .then(|| format!("{} is inside a writable path, where a command could replace it", program.display()))
}

/// The command's private directory for temporary files, as it sees it.
pub(crate) fn temp(terms: &Terms) -> &'static Path {
    Path::new(if private_tmp(terms).is_some() { "/tmp" } else { SHARED_MEMORY })
}

/// Bubblewrap's arguments, each ended by NUL.
pub(crate) fn profile(terms: &Terms, extra: &Extra<'_>) -> Vec<u8> {
    let places = places(terms, extra);
    let mut arguments = Arguments(Vec::new());
    // Without rights of any kind, also for a host that is root.
    arguments.add("--unshare-user-try").add("--cap-drop").add("ALL");
    arguments.add("--unshare-pid").add("--unshare-ipc").add("--unshare-uts").add("--unshare-cgroup-try");
    if terms.network != Network::Full {
        arguments.add("--unshare-net");
    }
    if !places.contains_key(Path::new("/")) {
        arguments.add("--ro-bind").path("/").path("/");
    }
    // A path sorts before what is below it.
    for (path, place) in &places {
        match place {
            Place::Private | Place::Hidden => arguments.add("--tmpfs").path(path),
            Place::HiddenFile => arguments.add("--dev-bind").path("/dev/null").path(path),
            Place::Devices => arguments.add("--dev").path(path),
            Place::Processes => arguments.add("--proc").path(path).seal_settings(),
            Place::Writable => arguments.add("--bind").path(path).path(path),
            Place::Shown => arguments.add("--ro-bind").path(path).path(path),
            Place::ShownIfThere => arguments.add("--ro-bind-try").path(path).path(path),
            Place::Bare => arguments.add("--dir").path(path),
        };
    }
    for (path, waypoint) in ways(terms.as_given.iter().chain(extra.visible), &places) {
        match waypoint {
            Waypoint::Link(target) => arguments.add("--symlink").path(target).path(path),
            Waypoint::Directory => arguments.add("--dir").path(path),
        };
    }
    // Only now: until here there may have been something to be put into them.
    for (path, _) in places.iter().filter(|(_, place)| matches!(place, Place::Hidden | Place::Devices)) {
        arguments.add("--remount-ro").path(path);
    }
    if extra.seccomp {
        arguments.add("--seccomp").add("6");
    }
    // Never left out, since bubblewrap would choose a directory then.
    let workdir = terms.workdir.as_ref().or(terms.as_given.get(1)).unwrap_or(&terms.workspace);
    arguments.add("--chdir").path(workdir);
    arguments.0
}

struct Arguments(Vec<u8>);

impl Arguments {
    fn add(&mut self, argument: &str) -> &mut Arguments {
        self.path(argument)
    }

    fn path(&mut self, path: impl AsRef<Path>) -> &mut Arguments {
        self.0.extend_from_slice(path.as_ref().as_os_str().as_bytes());
        self.0.push(0);
        self
    }

    /// Keeps root from the settings of the kernel. The kernel lets the machine's root change them by its number alone,
    /// without a capability and from any namespace; bubblewrap covers some files in `/proc`, and these not.
    fn seal_settings(&mut self) -> &mut Arguments {
        self.add("--ro-bind").add("/proc/sys").add("/proc/sys");
        for folder in ["/proc/acpi", "/proc/driver", "/proc/dynamic_debug", "/proc/fs", "/proc/scsi"] {
            self.add("--ro-bind-try").add(folder).add(folder);
        }
        self
    }
}

const DEVICES: &str = "/dev";
const PROCESSES: &str = "/proc";
const SHARED_MEMORY: &str = "/dev/shm";
/// What bubblewrap makes below its own `/dev`.
const TERMINALS: &str = "/dev/pts";

/// What is at a path, and at everything below it that has no place of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// An empty directory of the command's own.
    Private,
    /// An empty directory in place of the real one.
    Hidden,
    /// An empty device in place of the real file. (An empty file would have to come from somewhere; and a file that
    /// can't be opened makes many a program fail that does well without.)
    HiddenFile,
    Devices,
    Processes,
    /// The real one.
    Writable,
    Shown,
    ShownIfThere,
    /// A directory in a hidden one, without what is in the real one.
    Bare,
}

impl Place {
    /// Whether the real files below are not there.
    fn covers(self) -> bool {
        matches!(self, Place::Private | Place::Hidden | Place::Devices | Place::Bare)
    }

    fn hides(self) -> bool {
        matches!(self, Place::Hidden | Place::HiddenFile)
    }
}

type Places = BTreeMap<PathBuf, Place>;

fn places(terms: &Terms, extra: &Extra<'_>) -> Places {
    let mut places = Places::new();
    // In the order of strength at the same path: what has a place keeps it.
    if let Some(tmp) = private_tmp(terms) {
        places.insert(tmp, Place::Private);
    }
    for hidden in &terms.hidden {
        let place = match fs::metadata(hidden) {
            Ok(meta) if meta.is_dir() => Place::Hidden,
            // Gone since the policy was resolved. Bubblewrap would make it, in a writable root on the disk.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            _ => Place::HiddenFile,
        };
        places.entry(hidden.clone()).or_insert(place);
    }
    places.entry(DEVICES.into()).or_insert(Place::Devices);
    places.entry(PROCESSES.into()).or_insert(Place::Processes);
    for root in &terms.writable {
        places.entry(root.clone()).or_insert(Place::Writable);
    }
    if is_covered(&terms.workspace, &places) {
        places.entry(terms.workspace.clone()).or_insert(Place::Shown);
    }
    // By itself, since the rest of `/dev` is not to be written to.
    if places.get(Path::new(DEVICES)) == Some(&Place::Devices) {
        places.entry(SHARED_MEMORY.into()).or_insert(Place::Private);
    }
    for shown in extra.visible.iter().filter_map(|path| path.canonicalize().ok()) {
        let over = place_over(&shown, &places).map(|(_, place)| place);
        if over.is_some_and(|place| place.covers() || place == Place::Writable) {
            places.entry(shown).or_insert(Place::ShownIfThere);
        }
    }
    if let Some(workdir) = &terms.workdir {
        let place = match place_over(workdir, &places).map(|(_, place)| place) {
            Some(Place::Hidden) => Some(Place::Bare),
            Some(Place::Devices) if workdir == Path::new(TERMINALS) => None,
            Some(place) if place.covers() => Some(Place::Shown),
            _ => None,
        };
        if let Some(place) = place {
            places.entry(workdir.clone()).or_insert(place);
        }
    }
    // What is hidden in what is not there needs no place, which would only give its name away. Known only now: what is
    // shown may hold it.
    let holds_workdir = |path: &Path| terms.workdir.as_ref().is_some_and(|workdir| workdir.starts_with(path));
    let needless =
        |(path, place): &(&PathBuf, &Place)| place.hides() && is_covered(path, &places) && !holds_workdir(path);
    let needless: Vec<PathBuf> = places.iter().filter(needless).map(|(path, _)| path.clone()).collect();
    for path in needless {
        places.remove(&path);
    }
    places
}

/// The place that decides for what is at this path if it has none of its own.
fn place_over<'a>(path: &Path, places: &'a Places) -> Option<(&'a Path, Place)> {
    path.ancestors().skip(1).find_map(|above| places.get_key_value(above)).map(|(path, place)| (path.as_path(), *place))
}

fn is_covered(path: &Path, places: &Places) -> bool {
    place_over(path, places).is_some_and(|(_, place)| place.covers())
}

/// The real path of `/tmp`, when the command gets one of its own there: neither is it the workspace, nor may it be
/// changed.
fn private_tmp(terms: &Terms) -> Option<PathBuf> {
    let tmp = Path::new("/tmp").canonicalize().ok()?;
    let named = tmp == terms.workspace || terms.allows_change(&tmp);
    (tmp.is_dir() && tmp != Path::new("/") && !named).then_some(tmp)
}

enum Waypoint {
    /// To what it leads.
    Link(PathBuf),
    /// One that is left again by `..`.
    Directory,
}

/// What lies on the ways of the paths as the caller wrote them and is not there otherwise: without it they would lead
/// nowhere.
fn ways<'a>(paths: impl Iterator<Item = &'a PathBuf>, places: &Places) -> BTreeMap<PathBuf, Waypoint> {
    const FOLLOWED: usize = 40; // as many as the kernel follows
    let mut ways = BTreeMap::new();
    for given in paths {
        let mut real = PathBuf::from("/");
        let mut followed = 0;
        let mut rest = steps(given);
        while let Some(step) = rest.pop() {
            if step == Path::new("..") {
                if is_covered(&real, places) {
                    ways.insert(real.clone(), Waypoint::Directory);
                }
                real.pop();
                continue;
            }
            real.push(&step);
            let Ok(target) = fs::read_link(&real) else { continue };
            followed += 1;
            if followed > FOLLOWED {
                break;
            }
            rest.extend(steps(&target));
            let link = real.clone();
            real.pop();
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            if is_covered(&link, places) {
                ways.insert(link, Waypoint::Link(target));
            }
        }
    }
    ways
}

/// The parts of a path, the last one first.
fn steps(path: &Path) -> Vec<PathBuf> {
    let steps = path.components().rev().filter(|step| matches!(step, Component::Normal(_) | Component::ParentDir));
    steps.map(|step| step.as_os_str().into()).collect()
}

#[cfg(test)]
mod tests;
