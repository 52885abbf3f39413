//! The system calls by which a command changes what it names by a path.

use std::os::raw::c_long;
use std::path::PathBuf;

use super::caller::{Caller, Unreadable};
use crate::sandbox::verdict::Deed;

/// Where among its arguments a call has a path, and the directory that a relative one starts at.
#[derive(Clone, Copy)]
struct Operand {
    /// The working directory, if there is none.
    directory: Option<usize>,
    path: usize,
}

const fn at(directory: usize) -> Operand {
    Operand { directory: Some(directory), path: directory + 1 }
}

const fn here(path: usize) -> Operand {
    Operand { directory: None, path }
}

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "some are those of old calls"))]
enum Act {
    /// Opens, and changes something if its flags say so.
    Open,
    Create,
    OpenHow,
    Make,
    Remove,
    RemoveDirectory,
    Move,
    Link,
    Truncate,
    /// Changes mode, owner, times or attributes.
    Describe,
    /// The same of a symbolic link itself.
    DescribeLink,
    /// Asks what it may do there, to leave it when it may not.
    Ask,
}

pub(super) struct Call {
    pub(super) number: c_long,
    pub(super) name: &'static str,
    act: Act,
    operands: &'static [Operand],
    /// The argument with its flags.
    flags: Option<usize>,
}

/// A path of a call.
pub(super) struct Named {
    /// Absolute, as the caller has named it.
    pub(super) path: PathBuf,
    /// Whether a symbolic link at its end is followed.
    pub(super) follow: bool,
    pub(super) deed: Deed,
}

const fn call(
    number: c_long,
    name: &'static str,
    act: Act,
    operands: &'static [Operand],
    flags: Option<usize>,
) -> Call {
    Call { number, name, act, operands, flags }
}

// Newer than the oldest libc crate that will do.
const SYS_FCHMODAT2: c_long = 452;
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;

/// The flags of an open without which it changes nothing.
const WRITING: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u32;

/// Those that matter only with certain flags. The opens come first, as the most frequent by far.
pub(super) const SIFTED: &[Call] = &[
    call(libc::SYS_openat, "openat", Act::Open, &[at(0)], Some(2)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_open, "open", Act::Open, &[here(0)], Some(1)),
    call(libc::SYS_faccessat, "faccessat", Act::Ask, &[at(0)], Some(2)),
    call(libc::SYS_faccessat2, "faccessat2", Act::Ask, &[at(0)], Some(2)),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_access, "access", Act::Ask, &[here(0)], Some(1)),
];

pub(super) const CHANGES: &[Call] = &[
    call(libc::SYS_openat2, "openat2", Act::OpenHow, &[at(0)], None),
    call(libc::SYS_mkdirat, "mkdirat", Act::Make, &[at(0)], None),
    call(libc::SYS_mknodat, "mknodat", Act::Make, &[at(0)], None),
    call(libc::SYS_symlinkat, "symlinkat", Act::Make, &[at(1)], None),
    call(libc::SYS_unlinkat, "unlinkat", Act::Remove, &[at(0)], Some(2)),
    call(libc::SYS_renameat, "renameat", Act::Move, &[at(0), at(2)], None),
    call(libc::SYS_renameat2, "renameat2", Act::Move, &[at(0), at(2)], None),
    call(libc::SYS_linkat, "linkat", Act::Link, &[at(0), at(2)], Some(4)),
    call(libc::SYS_truncate, "truncate", Act::Truncate, &[here(0)], None),
    call(libc::SYS_fchmodat, "fchmodat", Act::Describe, &[at(0)], None),
    call(SYS_FCHMODAT2, "fchmodat2", Act::Describe, &[at(0)], Some(3)),
    call(libc::SYS_fchownat, "fchownat", Act::Describe, &[at(0)], Some(4)),
    call(libc::SYS_utimensat, "utimensat", Act::Describe, &[at(0)], Some(3)),
    call(libc::SYS_setxattr, "setxattr", Act::Describe, &[here(0)], None),
    call(libc::SYS_lsetxattr, "lsetxattr", Act::DescribeLink, &[here(0)], None),
    call(libc::SYS_removexattr, "removexattr", Act::Describe, &[here(0)], None),
    call(libc::SYS_lremovexattr, "lremovexattr", Act::DescribeLink, &[here(0)], None),
    call(SYS_SETXATTRAT, "setxattrat", Act::Describe, &[at(0)], Some(2)),
    call(SYS_REMOVEXATTRAT, "removexattrat", Act::Describe, &[at(0)], Some(2)),
];

/// Those that newer architectures do without.
#[cfg(target_arch = "x86_64")]
pub(super) const OLD_CHANGES: &[Call] = &[
    call(libc::SYS_creat, "creat", Act::Create, &[here(0)], None),
    call(libc::SYS_mkdir, "mkdir", Act::Make, &[here(0)], None),
    call(libc::SYS_mknod, "mknod", Act::Make, &[here(0)], None),
    call(libc::SYS_symlink, "symlink", Act::Make, &[here(1)], None),
    call(libc::SYS_unlink, "unlink", Act::Remove, &[here(0)], None),
    call(libc::SYS_rmdir, "rmdir", Act::RemoveDirectory, &[here(0)], None),
    call(libc::SYS_rename, "rename", Act::Move, &[here(0), here(1)], None),
    call(libc::SYS_link, "link", Act::Link, &[here(0), here(1)], None),
    call(libc::SYS_chmod, "chmod", Act::Describe, &[here(0)], None),
    call(libc::SYS_chown, "chown", Act::Describe, &[here(0)], None),
    call(libc::SYS_lchown, "lchown", Act::DescribeLink, &[here(0)], None),
    call(libc::SYS_utime, "utime", Act::Describe, &[here(0)], None),
    call(libc::SYS_utimes, "utimes", Act::Describe, &[here(0)], None),
    call(libc::SYS_futimesat, "futimesat", Act::Describe, &[at(0)], None),
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OLD_CHANGES: &[Call] = &[];

/// Calls that say something about what the witness can see, see there.
pub(super) const BLINDING: &[c_long] = &[libc::SYS_io_uring_setup, libc::SYS_userfaultfd];

pub(super) fn by_number(number: c_long) -> Option<&'static Call> {
    SIFTED.iter().chain(CHANGES).chain(OLD_CHANGES).find(|call| call.number == number)
}

impl Call {
    /// The flags without which the call does not matter, and the argument they are in.
    pub(super) fn sieve(&self) -> Option<(usize, u32)> {
        let mask = match self.act {
            Act::Open => WRITING,
            Act::Ask => libc::W_OK as u32,
            _ => return None,
        };
        self.flags.map(|argument| (argument, mask))
    }

    /// The paths that the call would change something at.
    pub(super) fn named(&self, caller: &Caller, args: &[u64; 6]) -> Result<Vec<Named>, Unreadable> {
        let mut flags = self.flags.map_or(0, |index| args[index]);
        let mut beneath = false;
        if self.act == Act::OpenHow {
            // The structure that the call takes in place of flags: flags, mode, how to resolve.
            let how = caller.read(args[2], 3 * size_of::<u64>())?;
            let fields: Vec<_> =
                how.chunks_exact(8).filter_map(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes).collect();
            let [asked, _, resolve] = fields[..] else { return Ok(Vec::new()) };
            flags = asked;
            beneath = resolve & libc::RESOLVE_IN_ROOT != 0;
        }
        let flags = flags as u32 as i32;
        let mut named = Vec::new();
        for (index, operand) in self.operands.iter().enumerate() {
            let Some((deed, follow)) = self.deed(index, flags) else { return Ok(Vec::new()) };
            let directory = operand.directory.map_or(libc::AT_FDCWD, |index| args[index] as i32);
            match caller.path(directory, args[operand.path], beneath)? {
                Some(path) => named.push(Named { path, follow, deed }),
                // Changed through a descriptor, or nothing that exists.
                None => return Ok(Vec::new()),
            }
        }
        Ok(named)
    }

    /// What the call does at its path of this index, and whether it follows a symbolic link at the path's end.
    fn deed(&self, index: usize, flags: i32) -> Option<(Deed, bool)> {
        let has = |flag: i32| flags & flag != 0;
        Some(match self.act {
            Act::Create => (Deed::Write { creating: true, exclusive: false }, true),
            // `O_PATH` makes the kernel pass over what else is asked.
            Act::Open | Act::OpenHow if flags as u32 & WRITING == 0 || has(libc::O_PATH) => return None,
            Act::Open | Act::OpenHow if flags & libc::O_TMPFILE == libc::O_TMPFILE => (Deed::Fill, true),
            Act::Open | Act::OpenHow => {
                let (creating, exclusive) = (has(libc::O_CREAT), has(libc::O_CREAT) && has(libc::O_EXCL));
                (Deed::Write { creating, exclusive }, !has(libc::O_NOFOLLOW) && !exclusive)
            }
            Act::Make => (Deed::Make, false),
            Act::Remove => (Deed::Remove { directory: has(libc::AT_REMOVEDIR) }, false),
            Act::RemoveDirectory => (Deed::Remove { directory: true }, false),
            Act::Move if index == 0 => (Deed::MoveAway, false),
            Act::Move => (Deed::Place, false),
            Act::Link if index == 0 => (Deed::Share, has(libc::AT_SYMLINK_FOLLOW)),
            Act::Link => (Deed::Make, false),
            Act::Truncate => (Deed::Write { creating: false, exclusive: false }, true),
            Act::Describe => (Deed::Describe, !has(libc::AT_SYMLINK_NOFOLLOW)),
            Act::DescribeLink => (Deed::Describe, false),
            Act::Ask if !has(libc::W_OK) => return None,
            Act::Ask => (Deed::Ask, true),
        })
    }

    /// Whether the first path's file gets the second as a name.
    pub(super) fn joins_two_places(&self) -> bool {
        matches!(self.act, Act::Move | Act::Link)
    }
}
