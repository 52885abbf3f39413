//! Landlock: the command gives up rights itself, between its creation and the execution of the shell. No helper program,
//! no namespaces, no privileges.
//!
//! One ruleset for everything, since a later one of a single kind makes `rename` fail with EXDEV even where it was granted.
//! What Landlock has no right for stays possible: modes, owners, times and extended attributes of files (`metadata`).

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope, ABI,
};

use super::policy::{Network, Terms};
use crate::fd::above_stdio;

/// What the library knows to ask for.
const NEWEST: ABI = ABI::V7;

/// The version that brought scopes.
const SCOPES_SINCE: u32 = 6;

/// The name of what is missing when abstract sockets of the host can be reached.
pub(crate) const ABSTRACT_SOCKETS: &str = "abstract-unix-socket";

/// The version of the kernel's Landlock, or the errno of asking: ENOSYS when it is not built in, EOPNOTSUPP when it is
/// switched off at boot.
pub(crate) fn version() -> Result<u32, i32> {
    const VERSION: u32 = 1; // LANDLOCK_CREATE_RULESET_VERSION
                            // SAFETY: with this flag the call takes no attributes and makes nothing.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, VERSION) };
    match version {
        1.. => Ok(version as u32),
        _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOSYS)),
    }
}

/// What this policy says and a kernel of this version can't enforce.
pub(crate) fn missing(terms: &Terms, version: u32) -> Vec<&'static str> {
    let since = [(3, "truncate"), (5, "ioctl-dev"), (SCOPES_SINCE, "signal"), (SCOPES_SINCE, ABSTRACT_SOCKETS)];
    let mut missing: Vec<_> = since.into_iter().filter(|(since, _)| version < *since).map(|(_, name)| name).collect();
    missing.push("metadata");
    if !terms.hidden.is_empty() {
        missing.push("hidden-names");
    }
    missing
}

/// Why this policy can't be enforced at all.
pub(crate) fn unsupported(terms: &Terms) -> Option<String> {
    if terms.network == Network::Loopback {
        return Some("network loopback: Landlock tells ports apart, not addresses".into());
    }
    let exposed = |hidden: &&PathBuf| terms.writable.iter().any(|root| hidden.starts_with(root));
    terms.hidden.iter().find(exposed).map(|path| {
        format!("hidden {path:?}: is inside a writable path, and Landlock can't take back what it has granted")
    })
}

/// The ruleset for a policy; `scratch` is the private directory for temporary files.
pub(crate) fn ruleset(terms: &Terms, scratch: &Path) -> io::Result<OwnedFd> {
    let everything = AccessFs::from_all(NEWEST);
    let failed = |error: landlock::RulesetError| io::Error::other(error);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(failed)?;
    // Names may be listed everywhere; contents are granted around what is hidden.
    ruleset = grant(ruleset, Path::new("/"), AccessFs::ReadDir.into())?;
    for path in around(Path::new("/"), &terms.hidden) {
        // What has gone meanwhile needs no grant.
        if let Ok(fd) = PathFd::new(&path) {
            ruleset = grant_on(ruleset, fd, &path, AccessFs::from_read(NEWEST))?;
        }
    }
    ruleset = grant(ruleset, Path::new("/dev/null"), AccessFs::WriteFile | AccessFs::Truncate)?;
    // No devices: who opens a new node for the disk of the machine is not in the workspace any more.
    let changes = everything & !(AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev);
    for root in terms.writable.iter().map(PathBuf::as_path).chain([scratch]) {
        ruleset = grant(ruleset, root, changes)?;
    }
    let ruleset: Option<OwnedFd> = ruleset.into();
    ruleset.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSYS)).and_then(above_stdio)
}

/// A ruleset that leaves files alone and keeps a command from the host's abstract sockets and from signalling the host, for
/// a backend that does the rest. `None` where the kernel can't.
pub(crate) fn scopes() -> io::Result<Option<OwnedFd>> {
    if version().unwrap_or(0) < SCOPES_SINCE {
        return Ok(None);
    }
    let ruleset = Ruleset::default().scope(Scope::from_all(NEWEST)).and_then(Ruleset::create);
    let ruleset: Option<OwnedFd> = ruleset.map_err(io::Error::other)?.into();
    ruleset.map(above_stdio).transpose()
}

/// Grants rights on a path and everything below.
fn grant(ruleset: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let fd = PathFd::new(path).map_err(io::Error::other)?;
    grant_on(ruleset, fd, path, rights)
}

/// The same on a path that is open already. One that is no directory gets what a file can have.
fn grant_on(
    ruleset: RulesetCreated,
    fd: PathFd,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(NEWEST) };
    ruleset.add_rule(PathBeneath::new(fd, rights)).map_err(io::Error::other)
}

/// Paths that together cover everything below `root` but what is hidden, as it is at this moment: what is made later right
/// beside something hidden can't be read.
fn around(root: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|path| path == root) {
        return Vec::new();
    }
    if !hidden.iter().any(|path| path.starts_with(root)) {
        return vec![root.to_owned()];
    }
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    // A symbolic link grants nothing: what it leads to is granted, or hidden, where it is.
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    real.map(|entry| entry.path())
        .filter(|path| PathFd::new(path).is_ok())
        .flat_map(|path| around(&path, hidden))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_left_out_with_as_little_else_as_possible() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["a/secret", "a/open", "b"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("a/secret"), root.join("link")).unwrap();
        let mut paths = around(&root, &[root.join("a/secret")]);
        paths.sort();
        assert_eq!(paths, [root.join("a/open"), root.join("b")]);
        assert_eq!(around(&root, &[]), [root]);
    }
}
