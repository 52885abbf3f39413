//! Whether the confinement has kept a command from changing or reading something, and what shows it.
//!
//! Three signs are looked for:
//! - an attempt, seen by the witness, at a path that the policy forbids and the host's own user could have changed;
//! - words: a line of stderr that complains of missing permission and names the path;
//! - the command failed.
//!
//! Two of the three make a [`Denied::Yes`]; an attempt alone, or words alone where no witness was there to contradict
//! them, are [`Denied::Unknown`]. One limit: many programs try to write caches and logs and don't mind if they can't. So a
//! failing command that complains aloud of other things is no proof that the attempt is what it failed of, and an attempt
//! at such a place counts only with a complaint about it.
//!
//! Words without an attempt, where a witness was there, are somebody else's: the text of a log, or the plain
//! permissions of the file system. Reading is not witnessed, so words about a hidden path stand for themselves.

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "most of it is asked for by the witness"))]
mod host;
mod words;

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::facts::{Denied, Evidence};
use super::policy::{Backend, Mode};
use super::Terms;
use crate::result::Exit;
pub(crate) use host::{Could, Deed, Host};
use words::{Complaint, Kind, Text};

/// A change that a command tried where the policy forbids it, and that the host's own user could have made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only the witness makes one"))]
pub(crate) struct Attempt {
    /// Absolute, without symbolic links as the host sees it.
    pub(crate) path: PathBuf,
    /// The system call.
    pub(crate) call: &'static str,
    pub(crate) deed: Deed,
    /// Whether it is known that the host's own user could have.
    pub(crate) sure: bool,
}

/// What is known of a command that has ended.
pub(crate) struct Input<'a> {
    pub(crate) terms: &'a Terms,
    pub(crate) backend: Backend,
    pub(crate) exit: Exit,
    /// What is left of its stderr, or of both streams when they were merged.
    pub(crate) stderr: &'a [u8],
    /// What the witness has seen; `None` when none was there, or it could not see everything.
    pub(crate) attempts: Option<&'a [Attempt]>,
    /// The command's directory for temporary files, where it is a path of the host.
    pub(crate) scratch: Option<&'a Path>,
    /// Where the command started, as its `PWD` says.
    pub(crate) workdir: &'a Path,
    /// Paths that are not the host's in the sandbox.
    pub(crate) private: &'a [&'a Path],
}

/// Whether the command was denied something, and what shows it. What is [`Denied::Unknown`] may have evidence too: what was
/// tried and may not have mattered.
pub(crate) fn verdict(input: &Input<'_>) -> (Denied, Option<Evidence>) {
    let case = Case { input, host: Host::now(), text: Text::new(input.stderr) };
    let failed = matches!(input.exit, Exit::Code(1..));
    let hidden = case.hidden_path_complained_of();
    let told = match (input.attempts, hidden) {
        (_, Some(path)) => Some((failed, path)),
        (Some(attempts), None) => case.by_attempts(attempts, failed),
        (None, None) => case.by_words().map(|(path, sure)| (failed && sure, path)),
    };
    match told {
        Some((certain, path)) => (if certain { Denied::Yes } else { Denied::Unknown }, Some(case.evidence(path))),
        // Whether a command failed silently because it was denied something only a witness could tell.
        None if input.attempts.is_none() && failed && case.text.is_silent() => (Denied::Unknown, None),
        None => (Denied::No, None),
    }
}

struct Case<'a> {
    input: &'a Input<'a>,
    host: Host,
    text: Text,
}

impl Case<'_> {
    /// The telling one of the attempts, and whether it is certain that it was denied.
    fn by_attempts(&self, attempts: &[Attempt], failed: bool) -> Option<(bool, PathBuf)> {
        // Landlock has no right for metadata, and so refuses no change of it; and who asks is not told of Landlock.
        let is_free = |attempt: &Attempt| matches!(attempt.deed, Deed::Describe | Deed::Ask);
        let is_refused = |attempt: &&Attempt| !(self.input.backend == Backend::Landlock && is_free(attempt));
        let refused: Vec<_> =
            attempts.iter().filter(is_refused).filter(|attempt| !self.is_open(&attempt.path)).collect();
        let told = |attempt: &Attempt, certain: bool| Some((certain && attempt.sure, attempt.path.clone()));
        if let Some(named) = refused.iter().find(|attempt| self.is_complained_of(&attempt.path)) {
            return told(named, true);
        }
        let weighty: Vec<_> =
            refused.iter().filter(|attempt| attempt.deed != Deed::Ask && !is_dispensable(&attempt.path)).collect();
        if let Some(named) = weighty.iter().find(|attempt| self.text.mentions(&attempt.path, self.input.workdir)) {
            return told(named, failed);
        }
        let speaks_of_other_things = !self.text.is_silent() && self.text.complaints().is_empty();
        match weighty.first() {
            Some(attempt) => told(attempt, failed && !speaks_of_other_things),
            None => refused.first().and_then(|attempt| told(attempt, false)),
        }
    }

    /// Whether a complaint of missing permission is about this path, which the command has tried to change.
    fn is_complained_of(&self, path: &Path) -> bool {
        self.text.complaints().iter().any(|complaint| {
            complaint.mentions(path, self.input.workdir) || complaint.paths.iter().any(|named| self.means(named, path))
        })
    }

    /// Whether a path in a message stands for the path of an attempt.
    fn means(&self, named: &str, path: &Path) -> bool {
        let named = Path::new(named);
        // The command may have changed its directory, so a relative path may count from anywhere.
        let name: PathBuf = named.components().filter(|part| *part != Component::CurDir).collect();
        if named.is_relative() && name.file_name().is_some() && path.ends_with(name) {
            return true;
        }
        let named = self.host.real(&self.input.workdir.join(named), false);
        // Tools name the folder of a file, or the file of a folder that they had to make for it.
        let is_on_the_way = !self.is_open(&named) && (named.starts_with(path) || path.starts_with(&named));
        named != Path::new("/") && (is_on_the_way || stands_in_for(path, &named))
    }

    /// A forbidden path that a complaint names, and whether nothing but the sandbox explains that.
    fn by_words(&self) -> Option<(PathBuf, bool)> {
        let complaints = self.text.complaints();
        let named = complaints.iter().flat_map(|complaint| complaint.paths.iter().map(move |path| (complaint, path)));
        let mut unsure = None;
        for (complaint, path) in named {
            let path = self.host.real(&self.input.workdir.join(path), true);
            match self.explains(complaint, &path) {
                Could::Yes => return Some((path, true)),
                Could::Untold => unsure = unsure.or(Some((path, false))),
                Could::No => {}
            }
        }
        unsure
    }

    /// Whether the policy is why this is complained of, and not the permissions of the file system.
    fn explains(&self, complaint: &Complaint, path: &Path) -> Could {
        if self.is_open(path) {
            return Could::No;
        }
        let could = self.host.could(Deed::Change, path);
        match complaint.kind {
            // No program says this of its own accord, or of what it only wanted to read.
            Kind::ReadOnly if could == Could::No => {
                let folder = path.parent().unwrap_or(path);
                self.host.could(Deed::Fill, folder)
            }
            // A file that is not executable, or a directory that was taken for a file, is refused in the same words.
            Kind::NoPermission if could == Could::Yes && self.host.has(path) && !self.host.is_executable(path) => {
                Could::Untold
            }
            _ => could,
        }
    }

    /// A hidden path that the command says it could not read, or not find, and the host's own user could have.
    fn hidden_path_complained_of(&self) -> Option<PathBuf> {
        if self.input.terms.hidden.is_empty() {
            return None;
        }
        let complaints = self.text.complaints().iter().chain(self.text.missing());
        let mut paths = complaints.flat_map(|complaint| &complaint.paths).map(|path| self.input.workdir.join(path));
        paths.find_map(|path| {
            let path = self.host.real(&path, true);
            (self.is_hidden(&path) && self.host.could(Deed::Read, &path) == Could::Yes).then_some(path)
        })
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.input.terms.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    /// Whether the policy has nothing against changes there.
    fn is_open(&self, path: &Path) -> bool {
        let own = self.input.private.iter().copied().chain(self.input.scratch);
        let in_workspace = self.input.terms.allows_change(path) && !self.is_hidden(path);
        in_workspace || is_its_own(self.input.terms, own, path)
    }

    fn evidence(&self, path: PathBuf) -> Evidence {
        let rule = match self.input.terms.mode {
            _ if self.is_hidden(&path) => "hidden".to_owned(),
            Mode::ReadOnly => format!("{} mode", Mode::ReadOnly),
            mode => format!("outside the workspace ({mode})"),
        };
        Evidence { path, rule }
    }
}

/// Whether a path is the command's alone, which has these directories for itself: nothing there is anybody's but the workspace,
/// when that is below.
pub(crate) fn is_its_own<'a>(terms: &Terms, private: impl IntoIterator<Item = &'a Path>, path: &Path) -> bool {
    let is_workspace = |private: &Path| terms.workspace.starts_with(private) && path.starts_with(&terms.workspace);
    let devices = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    let private = private.into_iter().any(|private| path.starts_with(private) && !is_workspace(private));
    devices || path.starts_with("/proc") || private
}

/// Whether the file is what a tool writes first, beside the one that it is about: `file.lock`, `.file.swp`, or what became of
/// `file.XXXXXX`.
fn stands_in_for(path: &Path, file: &Path) -> bool {
    let names = path.file_name().and_then(OsStr::to_str).zip(file.file_name().and_then(OsStr::to_str));
    path.parent() == file.parent() && names.is_some_and(|(own, about)| own.contains(about) || about.ends_with("XXX"))
}

/// Whether programs do as well without: caches, logs, and what they keep for themselves in their user's home.
fn is_dispensable(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy().to_ascii_lowercase();
        name.contains("cache") || name.ends_with("_logs") || (name.starts_with('.') && name != ".git")
    })
}

#[cfg(test)]
mod tests;
