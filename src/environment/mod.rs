//! The environment of a command: what of the host's it gets, and what replaces it.

mod glob;
mod host;
mod scrub;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result, Stage};
use crate::mark;
pub(crate) use host::{Host, Snapshot};

/// Set for every command, since its output is read by a program: no colours, and no pager that waits for a key.
const TERMINAL: [(&str, &str); 4] = [("NO_COLOR", "1"), ("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];

/// The most that Linux takes for one `NAME=VALUE`: MAX_ARG_STRLEN (32 pages) less the terminating NUL.
const MAX_ENTRY: usize = if cfg!(any(target_os = "linux", target_os = "android")) { 131_071 } else { usize::MAX };

/// Which variables of the host a command gets (part of an executor's budgets).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Whether it gets any.
    pub inherit: bool,
    /// Globs (`*`, `?`) on names that are passed on although they look like credentials, or are denied.
    pub allow: Vec<OsString>,
    /// Globs on names that are not passed on.
    pub deny: Vec<OsString>,
}

impl Policy {
    /// Checks the globs: an empty one, and one with `=` or NUL, could match no variable.
    pub fn validate(&self) -> Result<()> {
        for (field, globs) in [("env_allow", &self.allow), ("env_deny", &self.deny)] {
            for (i, glob) in globs.iter().enumerate() {
                if let Some(why) = unfit_name(glob) {
                    let message = format!("{field}[{i}] {}: {why}, so it matches no variable", shown(glob));
                    return Err(Error::new(ErrorKind::Invalid, Stage::Argument, message));
                }
            }
        }
        Ok(())
    }
}

/// The environment of one command, ready for execve. What is inherited is shared with all other commands and not copied.
#[derive(Clone)]
pub(crate) struct Environment {
    inherited: Arc<Inherited>,
    /// Indices of the inherited entries that the request has replaced or removed, sorted.
    given: Vec<usize>,
    added: Vec<CString>,
    scrubbed: Arc<[OsString]>,
}

/// What a command gets of the host's environment, with the library's own terminal variables: all that does not depend
/// on the request.
pub(crate) struct Inherited {
    /// In the host's order, then the library's own.
    entries: Vec<CString>,
    /// Indices of the entries, sorted by name.
    by_name: Vec<usize>,
    /// Indices of those that are longer than the system takes.
    too_long: Vec<usize>,
    scrubbed: Arc<[OsString]>,
}

impl Inherited {
    fn new(entries: Vec<CString>, scrubbed: BTreeSet<OsString>) -> Inherited {
        let mut by_name: Vec<usize> = (0..entries.len()).collect();
        by_name.sort_by_key(|index| name_of(&entries[*index]));
        let too_long = (0..entries.len()).filter(|index| check_size(&entries[*index]).is_err()).collect();
        Inherited { entries, by_name, too_long, scrubbed: scrubbed.into_iter().collect() }
    }

    fn find(&self, name: &OsStr) -> Option<usize> {
        let at = self.by_name.binary_search_by_key(&name, |index| name_of(&self.entries[*index])).ok()?;
        Some(self.by_name[at])
    }
}

/// The last [`Inherited`], used again while the host's environment and the policy are what they were. Judging names and
/// values takes longer than all else that is done for a command but starting it.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Option<Cached>>);

struct Cached {
    host: Snapshot,
    policy: Policy,
    inherited: Arc<Inherited>,
}

impl Cache {
    /// `look` gives the host's variables, or `None` when they are those of the snapshot that it gets.
    pub(crate) fn inherited(
        &self,
        look: impl FnOnce(&Snapshot) -> Option<Snapshot>,
        policy: &Policy,
    ) -> Arc<Inherited> {
        let mut cached = self.0.lock();
        let none = Snapshot::default();
        let new = look(cached.as_ref().map_or(&none, |cached| &cached.host));
        if let Some(cached) = cached.as_ref().filter(|cached| new.is_none() && cached.policy == *policy) {
            return cached.inherited.clone();
        }
        let host = new.or_else(|| cached.take().map(|cached| cached.host)).unwrap_or_default();
        let inherited = Arc::new(inherit(host.variables(), policy));
        *cached = Some(Cached { host, policy: policy.clone(), inherited: inherited.clone() });
        inherited
    }
}

/// Layers 1 to 4: the host's variables, less what a command may not see, plus the library's own.
pub(crate) fn inherit<'a>(host: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>, policy: &Policy) -> Inherited {
    let mut entries = Vec::new();
    let mut scrubbed = BTreeSet::new();
    let mut seen = HashSet::new();
    for (name, value) in host.into_iter().filter(|_| policy.inherit) {
        // A program that builds its environment by hand can have a name twice; getenv finds the first.
        if unfit_name(name).is_some() || !seen.insert(name) {
            continue;
        }
        match fate(policy, name.as_bytes(), value.as_bytes()) {
            Fate::Passed => entries.extend(entry(name, value)),
            Fate::Dropped => {}
            Fate::Scrubbed => {
                scrubbed.insert(name.to_owned());
            }
        }
    }
    entries.extend(TERMINAL.iter().filter_map(|(name, value)| entry(OsStr::new(name), OsStr::new(value))));
    Inherited::new(entries, scrubbed)
}

/// Layers 5 and 6: what the request replaces, removes and adds. What is added comes last, sorted by name.
pub(crate) fn layer(
    inherited: &Arc<Inherited>,
    workdir: &Path,
    env: &[(OsString, Option<OsString>)],
    dsh_env: &[(OsString, OsString)],
) -> Result<Environment> {
    let mut changes: BTreeMap<&OsStr, Option<&OsStr>> = BTreeMap::new();
    // A shell keeps the PWD that it finds if it is an absolute name of its directory without dots, and otherwise asks
    // the kernel. Set, it leaves a workdir that was reached through a symbolic link as the caller wrote it.
    if names_itself(workdir) {
        changes.insert(OsStr::new("PWD"), Some(workdir.as_os_str()));
    }
    for (i, (name, value)) in env.iter().enumerate() {
        check_env(i, name)?;
        let value = value.as_ref().map(|value| checked_value("env", name, value)).transpose()?;
        changes.insert(name, value);
    }
    for (i, (name, value)) in dsh_env.iter().enumerate() {
        check_dsh_env(i, name)?;
        changes.insert(name, Some(checked_value("dsh_env", name, value)?));
    }
    let mut given: Vec<usize> = changes.keys().filter_map(|name| inherited.find(name)).collect();
    given.sort_unstable();
    if let Some(index) = inherited.too_long.iter().find(|index| given.binary_search(index).is_err()) {
        check_size(&inherited.entries[*index])?;
    }
    let added: Vec<CString> = changes.iter().filter_map(|(name, value)| entry(name, (*value)?)).collect();
    for entry in &added {
        check_size(entry)?;
    }
    // What the request gives again is not missing, and the list tells a model what is.
    let missing = |name: &&OsString| changes.get(name.as_os_str()).is_none_or(|value| value.is_none());
    let scrubbed = match inherited.scrubbed.iter().all(|name| missing(&name)) {
        true => inherited.scrubbed.clone(),
        false => inherited.scrubbed.iter().filter(missing).cloned().collect(),
    };
    Ok(Environment { inherited: inherited.clone(), given, added, scrubbed })
}

/// What becomes of a host's variable.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Passed,
    /// Left out without a word, since nothing brings it back: the library's own, or true of the host only.
    Dropped,
    /// Left out and named, since `env_allow` would bring it back.
    Scrubbed,
}

fn fate(policy: &Policy, name: &[u8], value: &[u8]) -> Fate {
    let any = |globs: &[OsString]| globs.iter().any(|glob| glob::matches(glob.as_bytes(), name));
    let replaced = TERMINAL.iter().any(|(own, _)| own.as_bytes() == name) || matches!(name, b"PWD" | b"OLDPWD");
    // A script named by BASH_ENV or ENV would be run before every command.
    if replaced || reserved(name) || matches!(name, b"BASH_ENV" | b"ENV") {
        Fate::Dropped
    } else if any(&policy.allow) {
        Fate::Passed
    } else if any(&policy.deny) || changes_commands(name) || asks_people(name) || scrub::is_credential(name, value) {
        Fate::Scrubbed
    } else {
        Fate::Passed
    }
}

/// Whether bash would act on the variable before it reads the command: an exported function is code that takes the
/// place of commands (`__BASH_FUNC<` is Apple's spelling), and options such as errexit change what all of them mean. A
/// fresh shell without rc files has neither.
fn changes_commands(name: &[u8]) -> bool {
    name.starts_with(b"BASH_FUNC_") || name.starts_with(b"__BASH_FUNC<") || matches!(name, b"SHELLOPTS" | b"BASHOPTS")
}

/// Whether the variable names a program that opens a window on the desktop and waits for a password, for ever.
fn asks_people(name: &[u8]) -> bool {
    matches!(name, b"SSH_ASKPASS" | b"SUDO_ASKPASS")
}

fn reserved(name: &[u8]) -> bool {
    name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"DSH_"))
}

/// Whether a path may be the value of PWD.
fn names_itself(workdir: &Path) -> bool {
    // Not by `components`, which hides dots.
    let bytes = workdir.as_os_str().as_bytes();
    let dots = bytes.split(|&byte| byte == b'/').any(|part| matches!(part, b"." | b".."));
    bytes.starts_with(b"/") && !dots && !bytes.contains(&0)
}

fn unfit_name(name: &OsStr) -> Option<&'static str> {
    let name = name.as_bytes();
    if name.is_empty() {
        Some("is empty")
    } else if name.contains(&0) {
        Some("holds a NUL byte")
    } else if name.contains(&b'=') {
        Some("holds a '='")
    } else {
        None
    }
}

fn check_env(i: usize, name: &OsStr) -> Result<()> {
    if let Some(why) = unfit_name(name) {
        return Err(bad_name(ErrorKind::EnvName, format!("env[{i}] {}: the name {why}", shown(name))));
    }
    if reserved(name.as_bytes()) {
        let message = format!("env[{i}] {}: names in DSH_ are reserved; dsh_env takes some", shown(name));
        return Err(bad_name(ErrorKind::EnvReserved, message));
    }
    Ok(())
}

fn check_dsh_env(i: usize, name: &OsStr) -> Result<()> {
    let fits = name.as_bytes().strip_prefix(b"DSH_").is_some_and(|rest| {
        rest.first().is_some_and(u8::is_ascii_uppercase)
            && rest.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
    });
    if !fits {
        let message = format!("dsh_env[{i}] {}: the name is not DSH_ and then [A-Z][A-Z0-9_]*", shown(name));
        return Err(bad_name(ErrorKind::EnvName, message));
    }
    if name == mark::PROCESS_ID || name.as_bytes().starts_with(mark::OUTER.as_bytes()) {
        let message = format!("dsh_env[{i}] {}: the library sets this one itself", shown(name));
        return Err(bad_name(ErrorKind::EnvReserved, message));
    }
    Ok(())
}

fn bad_name(kind: ErrorKind, message: String) -> Error {
    Error::new(kind, Stage::Argument, message)
}

fn checked_value<'a>(field: &str, name: &OsStr, value: &'a OsStr) -> Result<&'a OsStr> {
    if value.as_bytes().contains(&0) {
        let message = format!("{field} {}: the value holds a NUL byte", shown(name));
        return Err(Error::new(ErrorKind::Invalid, Stage::Argument, message));
    }
    Ok(value)
}

/// A name as messages show it: quoted, escaped, and no longer than some 64 characters.
///
/// Nothing after a `=` or NUL is shown: who gives `NAME=VALUE` for a name gives a value, which may be a secret.
fn shown(name: &OsStr) -> String {
    let bytes = name.as_bytes();
    let cut = bytes.iter().position(|&byte| byte == b'=' || byte == 0).map_or(bytes.len(), |at| at + 1);
    let mut text = String::new();
    for chunk in bytes[..cut].utf8_chunks() {
        text.extend(chunk.valid().chars().flat_map(char::escape_debug));
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    let all = text.chars().count();
    let text: String = text.chars().take(64).collect();
    let more = if all > 64 || cut < bytes.len() { "…" } else { "" };
    format!("\"{text}{more}\"")
}

/// `NAME=VALUE`; none for what holds a NUL byte, which has been sorted out before.
fn entry(name: &OsStr, value: &OsStr) -> Option<CString> {
    CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
}

fn name_of(entry: &CString) -> &OsStr {
    OsStr::from_bytes(entry.to_bytes().split(|&byte| byte == b'=').next().unwrap_or_default())
}

#[cfg_attr(not(target_os = "linux"), allow(clippy::absurd_extreme_comparisons, reason = "there is no such limit"))]
fn check_size(entry: &CString) -> Result<()> {
    let size = entry.to_bytes().len();
    if size > MAX_ENTRY {
        let message = format!(
            "environment variable {} takes {size} bytes, more than the {MAX_ENTRY} that the system takes for one",
            shown(name_of(entry))
        );
        return Err(Error::new(ErrorKind::EnvTooBig, Stage::Environment, message));
    }
    Ok(())
}

impl Environment {
    /// The variables as `NAME=VALUE`.
    pub fn entries(&self) -> impl Iterator<Item = &CString> {
        let kept =
            self.inherited.entries.iter().enumerate().filter(|(index, _)| self.given.binary_search(index).is_err());
        kept.map(|(_, entry)| entry).chain(&self.added)
    }

    /// A bound on how many there are.
    pub fn at_most(&self) -> usize {
        self.inherited.entries.len() + self.added.len()
    }

    /// Adds a variable, unless there is one of that name.
    pub fn add_unless_set(&mut self, name: &str, value: &OsStr) -> Result<()> {
        if self.entries().any(|entry| name_of(entry) == name) {
            return Ok(());
        }
        let entry = entry(OsStr::new(name), checked_value("sandbox", OsStr::new(name), value)?);
        if let Some(entry) = entry {
            check_size(&entry)?;
            self.added.push(entry);
        }
        Ok(())
    }

    /// The sorted names of the host's variables that the command does not get and that `env_allow` would give it.
    pub fn scrubbed(&self) -> &Arc<[OsString]> {
        &self.scrubbed
    }

    /// The names of the `n` largest variables, with the bytes of `NAME=VALUE`; the largest is first.
    fn largest(&self, n: usize) -> impl Iterator<Item = (&OsStr, usize)> {
        let mut entries: Vec<&CString> = self.entries().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.to_bytes().len()));
        entries.into_iter().take(n).map(|entry| (name_of(entry), entry.to_bytes().len()))
    }

    /// The error for an environment that the system refused as a whole.
    pub fn too_big(&self, errno: i32) -> Error {
        let total: usize = self.entries().map(|entry| entry.to_bytes_with_nul().len()).sum();
        let largest: Vec<String> =
            self.largest(3).map(|(name, size)| format!("{} ({size} bytes)", shown(name))).collect();
        let message = format!(
            "the environment is too big: {} variables take {total} bytes; the largest are {}",
            self.entries().count(),
            largest.join(", ")
        );
        Error::os(ErrorKind::EnvTooBig, Stage::Exec, errno, message)
    }
}

/// Values stay out of logs.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("entries", &self.entries().count())
            .field("scrubbed", &self.scrubbed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
