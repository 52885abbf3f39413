//! What the host's file systems say of a path, to the library's own user.
//!
//! It is asked by threads that must not wait for long. So nothing is asked of file systems that another machine or
//! program answers for, and that may be dead.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, AT_FDCWD};
use nix::unistd::{faccessat, geteuid, AccessFlags};

/// File systems that are on this machine: all else may be dead. The last two are a virtual machine's own disk.
const LOCAL: &[&str] = &[
    "aufs",
    "bcachefs",
    "btrfs",
    "cgroup",
    "cgroup2",
    "debugfs",
    "devpts",
    "devtmpfs",
    "erofs",
    "exfat",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hugetlbfs",
    "iso9660",
    "jfs",
    "mqueue",
    "nilfs2",
    "ntfs3",
    "overlay",
    "proc",
    "ramfs",
    "reiserfs",
    "rootfs",
    "securityfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
    "ubifs",
    "udf",
    "vfat",
    "xfs",
    "zfs",
    "9p",
    "virtiofs",
];
/// How many symbolic links are followed, as by the kernel.
const MOST_LINKS: usize = 40;
const STICKY: u32 = 0o1000;

/// What is to be done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Writing to the file there. `creating`: making it if need be; `exclusive`: and nothing else.
    Write { creating: bool, exclusive: bool },
    /// Making a file without a name in this directory.
    Fill,
    /// Making something there, where nothing is yet.
    Make,
    /// Taking it away.
    Remove { directory: bool },
    /// Taking it away under another name.
    MoveAway,
    /// Putting something there, in place of what is there.
    Place,
    /// Giving the file there another name.
    Share,
    /// Changing its mode, owner, times or attributes.
    Describe,
    /// Being told that it can be written to.
    Ask,
    /// Reading it.
    Read,
    /// Changing it in some way, or making it.
    Change,
}

/// Whether the library's own user could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Could {
    Yes,
    No,
    /// The file system was not asked.
    Untold,
}

/// The file systems at one moment.
pub(crate) struct Host {
    /// Where those that may be dead are mounted.
    distant: Vec<PathBuf>,
}

impl Host {
    pub(crate) fn now() -> Host {
        // Where there is no such table (macOS) everything counts as local.
        Host { distant: distant(&fs::read("/proc/self/mountinfo").unwrap_or_default()) }
    }

    /// An absolute path without symbolic links, as far as it exists and could be looked at. `follow`: also when it ends
    /// with one.
    pub(crate) fn real(&self, path: &Path, follow: bool) -> PathBuf {
        let mut done = PathBuf::from("/");
        let mut links = 0;
        let mut ahead: Vec<OsString> = parts(path);
        while let Some(part) = ahead.pop() {
            if part == ".." {
                done.pop();
                continue;
            }
            done.push(part);
            if self.is_distant(&done) || (ahead.is_empty() && !follow) || links == MOST_LINKS {
                continue;
            }
            let Ok(target) = fs::read_link(&done) else { continue };
            links += 1;
            done.pop();
            if target.is_absolute() {
                done = PathBuf::from("/");
            }
            ahead.extend(parts(&target));
        }
        done
    }

    /// Whether this could be done at this path, which has no symbolic links before its last part.
    pub(crate) fn could(&self, deed: Deed, path: &Path) -> Could {
        if self.is_distant(path) {
            return Could::Untold;
        }
        let there = fs::symlink_metadata(path).ok();
        let parent = path.parent().unwrap_or(path);
        let is_directory = there.as_ref().map(Metadata::is_dir);
        let yes = match deed {
            Deed::Write { creating: true, exclusive } if is_directory.is_none() || exclusive => {
                is_directory.is_none() && may_enter(parent)
            }
            Deed::Write { .. } => is_directory == Some(false) && may(AccessFlags::W_OK, path),
            Deed::Fill => is_directory == Some(true) && may_enter(path),
            Deed::Make => is_directory.is_none() && may_enter(parent),
            Deed::Remove { directory } => {
                let fits = is_directory == Some(directory) && !(directory && has_entries(path));
                fits && may_enter(parent) && is_not_stuck(parent, &there)
            }
            Deed::MoveAway => is_directory.is_some() && may_enter(parent) && is_not_stuck(parent, &there),
            Deed::Place => may_enter(parent) && is_not_stuck(parent, &there),
            // The kernel lets others than the owner share only what they can change (protected_hardlinks).
            Deed::Share => {
                is_directory == Some(false) && (owns(&there) || may(AccessFlags::R_OK | AccessFlags::W_OK, path))
            }
            Deed::Describe => match faccessat(AT_FDCWD, path, AccessFlags::W_OK, AtFlags::AT_EACCESS) {
                Ok(()) => true,
                Err(Errno::EROFS) => false,
                Err(_) => owns(&there),
            },
            Deed::Ask => is_directory.is_some() && may(AccessFlags::W_OK, path),
            Deed::Read => may(AccessFlags::R_OK, path),
            Deed::Change if is_directory.is_some() => may(AccessFlags::W_OK, path),
            // Tools make the folders on the way to a file too, so it is the first one that exists.
            Deed::Change => parent.ancestors().find(|folder| folder.symlink_metadata().is_ok()).is_some_and(may_enter),
        };
        if yes {
            Could::Yes
        } else {
            Could::No
        }
    }

    /// Whether the file at the first path could get the second as its name without being copied.
    pub(crate) fn share_a_file_system(&self, from: &Path, to: &Path) -> bool {
        let Some(folder) = to.parent() else { return false };
        if self.is_distant(from) || self.is_distant(folder) {
            return true; // for all that is known
        }
        match (fs::symlink_metadata(from), fs::metadata(folder)) {
            (Ok(from), Ok(folder)) => from.dev() == folder.dev(),
            _ => false,
        }
    }

    /// Whether something is there that the library's own user can execute, or nothing is known.
    pub(crate) fn is_executable(&self, path: &Path) -> bool {
        self.is_distant(path) || may(AccessFlags::X_OK, path)
    }

    /// Whether something is known to be there.
    pub(crate) fn has(&self, path: &Path) -> bool {
        !self.is_distant(path) && fs::symlink_metadata(path).is_ok()
    }

    fn is_distant(&self, path: &Path) -> bool {
        self.distant.iter().any(|mount| path.starts_with(mount))
    }
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect();
    parts.reverse();
    parts
}

fn may(what: AccessFlags, path: &Path) -> bool {
    faccessat(AT_FDCWD, path, what, AtFlags::AT_EACCESS).is_ok()
}

/// Whether names in the directory can be made and taken away.
fn may_enter(directory: &Path) -> bool {
    may(AccessFlags::W_OK | AccessFlags::X_OK, directory)
}

fn has_entries(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
}

fn owns(there: &Option<Metadata>) -> bool {
    there.as_ref().is_some_and(|there| geteuid().is_root() || there.uid() == geteuid().as_raw())
}

/// Whether the directory keeps it from all but its owner, as `/tmp` does.
fn is_not_stuck(directory: &Path, there: &Option<Metadata>) -> bool {
    if there.is_none() || owns(there) {
        return true;
    }
    fs::metadata(directory).is_ok_and(|directory| directory.mode() & STICKY == 0 || owns(&Some(directory)))
}

/// Where file systems that may be dead are mounted, from a mount table. The root is none of them: without it nothing lives.
fn distant(table: &[u8]) -> Vec<PathBuf> {
    let mut distant: Vec<PathBuf> = Vec::new();
    for line in table.split(|byte| *byte == b'\n') {
        let mut words = line.split(|byte| *byte == b' ');
        let Some(point) = words.nth(4).map(unescaped) else { continue };
        // Optional words follow, up to one that is a dash; then the type.
        let kind = words.skip_while(|word| *word != b"-").nth(1).unwrap_or_default();
        // A later mount covers an earlier one at the same place, as an automatic one is covered by what it was for.
        distant.retain(|mount| *mount != point);
        if !LOCAL.iter().any(|local| local.as_bytes() == kind) && point != Path::new("/") {
            distant.push(point);
        }
    }
    distant
}

/// A path as the mount table writes it: blanks and backslashes as octal numbers.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut path = Vec::new();
    let mut rest = word;
    while let Some((byte, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(escaped) if *byte == b'\\' => {
                path.push(escaped);
                rest = &after[3..];
            }
            _ => {
                path.push(*byte);
                rest = after;
            }
        }
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_mount_is_known_by_its_type_and_the_root_is_never_one() {
        let table = b"1 0 0:1 / / rw - nfs4 host:/ rw\n2 1 8:1 / /home rw shared:1 - ext4 /dev/a rw\n\
            3 2 0:9 / /home/me/far\\040away rw - fuse.sshfs me@there: rw\n4 1 0:8 / /net rw - autofs map rw\n\
            5 1 0:8 / /boot rw - autofs systemd-1 rw\n6 5 8:2 / /boot rw shared:4 master:2 - vfat /dev/b rw\n";
        assert_eq!(distant(table), [Path::new("/home/me/far away"), Path::new("/net")]);
    }

    #[test]
    fn nothing_is_asked_of_a_network_mount() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("far")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("far/link")).unwrap();
        let host = Host { distant: vec![root.join("far")] };
        assert_eq!(host.could(Deed::Change, &root.join("far/x")), Could::Untold);
        assert_eq!(host.real(&root.join("far/link/x"), true), root.join("far/link/x"));
        assert_eq!(host.real(&root.join("far/../x"), true), root.join("x"));
    }

    #[test]
    fn links_are_followed_on_the_way_and_at_the_end_only_if_asked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("way")).unwrap();
        std::os::unix::fs::symlink("../missing", root.join("real/end")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        let host = Host::now();
        assert_eq!(host.real(&root.join("way/end"), false), root.join("real/end"));
        assert_eq!(host.real(&root.join("way/./end"), true), root.join("missing"));
        assert_eq!(host.real(&root.join("way/../new/file"), true), root.join("new/file"));
        host.real(&root.join("loop"), true); // comes back
    }

    #[test]
    fn what_fails_without_a_sandbox_too_could_not_be_done() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("file"), "").unwrap();
        fs::create_dir(root.join("directory")).unwrap();
        let host = Host::now();
        let could = |deed, name: &str| host.could(deed, &root.join(name)) == Could::Yes;
        let write = |creating, exclusive| Deed::Write { creating, exclusive };
        assert!(could(write(false, false), "file") && !could(write(false, false), "none"));
        assert!(could(write(true, false), "file") && could(write(true, false), "none"));
        assert!(!could(write(true, true), "file") && could(write(true, true), "none"));
        assert!(!could(write(true, false), "directory") && !could(write(true, false), "none/none"));
        assert!(could(Deed::Make, "none") && !could(Deed::Make, "directory") && !could(Deed::Make, "none/none"));
        assert!(could(Deed::Remove { directory: false }, "file") && !could(Deed::Remove { directory: true }, "file"));
        assert!(!could(Deed::Remove { directory: false }, "none") && !could(Deed::MoveAway, "none"));
        assert!(could(Deed::Remove { directory: true }, "directory") && !could(Deed::Remove { directory: true }, "."));
        assert!(could(Deed::Place, "file") && could(Deed::Place, "none") && could(Deed::Describe, "file"));
        assert!(could(Deed::Change, "none/none/none") && could(Deed::Fill, "directory") && !could(Deed::Fill, "file"));
        assert!(could(Deed::Share, "file") && !could(Deed::Share, "directory"));
        assert!(host.share_a_file_system(&root.join("file"), &root.join("none")));
        assert!(!host.share_a_file_system(Path::new("/proc/version"), &root.join("none")));
    }
}
