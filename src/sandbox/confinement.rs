//! A confined command after its start: what becomes known of its confinement.

#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::time::Instant;

use super::setup::own_temp;
use super::verdict::{self, verdict};
#[cfg(target_os = "linux")]
use super::warden;
#[cfg(target_os = "linux")]
use super::watch::Watch;
#[cfg(target_os = "linux")]
use super::witness::Witness;
use super::{Backend, Denied, Enforcement, SandboxFacts, Terms};
use crate::output::Scratch;
use crate::result::Exit;
use crate::tree::LeaderExit;

/// The longest message of a backend that is told on.
const LONGEST_MESSAGE: usize = 2_000;

pub(crate) struct Confinement {
    terms: Arc<Terms>,
    backend: Backend,
    missing: Vec<&'static str>,
    /// Removed when this is dropped.
    scratch: Option<Scratch>,
    #[cfg(target_os = "linux")]
    watch: Option<Watch>,
    /// What bubblewrap says, for people.
    #[cfg(target_os = "linux")]
    messages: Option<File>,
}

impl Confinement {
    pub(super) fn new(
        terms: Arc<Terms>,
        backend: Backend,
        missing: Vec<&'static str>,
        scratch: Option<Scratch>,
    ) -> Confinement {
        Confinement {
            terms,
            backend,
            missing,
            scratch,
            #[cfg(target_os = "linux")]
            watch: None,
            #[cfg(target_os = "linux")]
            messages: None,
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn with_warden(self, status: OwnedFd, messages: OwnedFd) -> Confinement {
        let watch = Watch::of_warden(warden::Status::new(status), self.terms.clone());
        Confinement { watch: Some(watch), messages: Some(messages.into()), ..self }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn with_witness(self, listener: Option<OwnedFd>) -> Confinement {
        let private = self.scratch.as_ref().map(|scratch| scratch.path().to_owned());
        let watch = listener
            .map(|listener| Watch::of_witness(Witness::new(listener, self.terms.clone(), private), self.terms.clone()));
        Confinement { watch, ..self }
    }

    /// The leader is not the shell but what started it, and ends by SIGTERM without waiting for it.
    pub(crate) fn wraps(&self) -> bool {
        self.backend == Backend::Bubblewrap
    }

    pub(crate) fn facts(&self) -> SandboxFacts {
        let enforcement = if self.missing.is_empty() { Enforcement::Full } else { Enforcement::Partial };
        SandboxFacts {
            mode: self.terms.mode,
            network: self.terms.network,
            backend: Some(self.backend),
            enforcement: Some(enforcement),
            missing: self.missing.clone(),
            workspace: Some(self.terms.workspace.clone()),
            denied: Denied::Unknown,
            evidence: None,
            runner_failed: None,
        }
    }

    /// The end of the shell, when the leader was only what started it.
    #[cfg(target_os = "linux")]
    pub(crate) fn shell_exit(&mut self, leader: LeaderExit) -> LeaderExit {
        let said = self.watch.as_ref().and_then(|watch| watch.ask_warden(|warden| (warden.exit, warden.started)));
        let Some((exit, started)) = said else { return leader };
        match (exit, leader.exit) {
            (Some((exit, usage)), _) => LeaderExit { exit, usage, at: Instant::now() },
            // The warden itself never ends like this: it was killed, and bubblewrap has made a code of the signal.
            (None, Exit::Code(code)) if started && code > 128 => {
                LeaderExit { exit: Exit::Signal { number: code - 128, core_dumped: false }, ..leader }
            }
            _ => leader,
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn shell_exit(&mut self, leader: LeaderExit) -> LeaderExit {
        leader
    }

    /// What is known once the command has settled. `errors` is what it wrote to stderr, as far as that was kept.
    pub(crate) fn conclude(&mut self, exit: Exit, errors: &[u8], workdir: &Path) -> SandboxFacts {
        let mut facts = self.facts();
        facts.runner_failed = self.setup_failure(exit, errors);
        if facts.runner_failed.is_some() {
            return facts; // it has not run, so there is nothing to be told of denials
        }
        let private: &[&Path] =
            if self.wraps() { &[own_temp(&self.terms), Path::new("/dev"), Path::new("/proc")] } else { &[] };
        #[cfg(target_os = "linux")]
        let attempts = self.watch.as_ref().and_then(Watch::testimony);
        #[cfg(not(target_os = "linux"))]
        let attempts: Option<Vec<verdict::Attempt>> = None;
        let input = verdict::Input {
            terms: &self.terms,
            backend: self.backend,
            exit,
            stderr: errors,
            attempts: attempts.as_deref(),
            scratch: self.scratch.as_ref().map(Scratch::path),
            workdir,
            private,
        };
        (facts.denied, facts.evidence) = verdict(&input);
        facts
    }

    /// Why the backend could not set itself up, in which case the command did not run.
    fn setup_failure(&mut self, exit: Exit, errors: &[u8]) -> Option<String> {
        #[cfg(target_os = "linux")]
        if let Some(messages) = &self.messages {
            let watch = self.watch.as_ref()?;
            return watch.ask_warden(|warden| failure(warden, messages, exit))?;
        }
        if matches!(exit, Exit::Code(0)) {
            return None;
        }
        // These say nothing by a descriptor, so their own words have to do.
        let signatures: Vec<String> = match (self.backend, &self.terms.runner) {
            (Backend::Runner, Some(runner)) => runner.failures.iter().map(|failure| failure.to_lowercase()).collect(),
            (Backend::Seatbelt, _) => vec!["sandbox-exec: ".into()],
            _ => return None,
        };
        let text = String::from_utf8_lossy(errors);
        let line = text.lines().find(|line| {
            let line = line.to_lowercase();
            signatures.iter().any(|signature| line.contains(signature.as_str()))
        })?;
        Some(line.chars().take(LONGEST_MESSAGE).collect())
    }

    /// What somebody has to attend to for as long as the command lives.
    #[cfg(target_os = "linux")]
    pub(crate) fn watch(&self) -> Option<Watch> {
        self.watch.clone()
    }
}

/// Without a word of the warden bubblewrap has not come as far as starting it.
#[cfg(target_os = "linux")]
fn failure(warden: &warden::Status, messages: &File, exit: Exit) -> Option<String> {
    use std::os::unix::fs::FileExt;
    if let Some((stage, errno)) = warden.failure {
        let reason = std::io::Error::from_raw_os_error(errno);
        return Some(format!("the shell could not be started in the sandbox (step: {stage}): {reason}"));
    }
    if warden.has_lost_witness() {
        return Some("there was no descriptor left for the witness, so the command was ended".into());
    }
    if warden.started {
        return None;
    }
    let mut text = [0; LONGEST_MESSAGE];
    let length = messages.read_at(&mut text, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&text[..length]);
    let how = match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal { number, .. } => format!("signal {number}"),
        Exit::Unknown => "unknown status".into(),
    };
    Some(format!("bubblewrap ended before the command was started ({how}): {}", text.trim_end()))
}
