//! Which backend confines a command: found out once, by really running something under it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::setup::{Means, Setup};
#[cfg(target_os = "linux")]
use super::{bubblewrap, landlock};
use super::{Backend, Mode, Network, SandboxPolicy, Terms};
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::fd;
use crate::output::SpillStore;
use crate::result::Exit;
use crate::spawn::{Plan, Program};
use crate::tree::Leader;

/// What a try of a backend came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) backend: Backend,
    pub(crate) usable: bool,
    /// What was done to find out.
    pub(crate) tried: &'static str,
    /// The errno of what failed, 0 when no system call did.
    pub(crate) errno: i32,
    /// What came back, for people.
    pub(crate) message: String,
}

/// How long a try may take. It is a shell that does nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The backends of one executor, as far as they have been tried.
#[derive(Debug, Default)]
pub(crate) struct Backends(Mutex<HashMap<(Backend, bool), Probe>>);

impl Backends {
    /// The first backend of the policy's list that can enforce it here. None of them: an error that says why not, each.
    pub(crate) fn choose(&self, terms: &Terms, spills: &Arc<SpillStore>) -> Result<Backend> {
        let mut reasons = Vec::new();
        for &backend in &terms.backends {
            if let Some(reason) = unsupported(backend, terms) {
                reasons.push((backend, 0, reason));
                continue;
            }
            let isolated = terms.network != Network::Full;
            let probe = self.probe(backend, isolated, spills);
            if probe.usable {
                return Ok(backend);
            }
            reasons.push((backend, probe.errno, probe.message));
        }
        let errno = reasons.iter().map(|(_, errno, _)| *errno).find(|errno| *errno != 0).unwrap_or(0);
        let reasons: Vec<_> = reasons.iter().map(|(backend, _, reason)| format!("{backend}: {reason}")).collect();
        let message = format!(
            "sandbox: no backend can enforce mode {} with network {} here, so the command was not run: {}",
            terms.mode,
            terms.network.name(),
            reasons.join("; ")
        );
        Err(match errno {
            0 => Error::new(ErrorKind::SandboxUnavailable, Stage::Sandbox, message),
            _ => Error::os(ErrorKind::SandboxUnavailable, Stage::Sandbox, errno, message),
        })
    }

    fn probe(&self, backend: Backend, isolated: bool, spills: &Arc<SpillStore>) -> Probe {
        if let Some(known) = self.0.lock().get(&(backend, isolated)) {
            return known.clone();
        }
        // No lock is held meanwhile; that two callers try at the same time does no harm.
        let probe = try_out(backend, isolated, spills);
        let passing = matches!(probe.errno, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN);
        if probe.usable || !passing {
            self.0.lock().insert((backend, isolated), probe.clone());
        }
        probe
    }

    /// Forgets what was found out, so that a mended system is noticed.
    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }
}

/// Why the backend can't enforce this policy, however well it works.
fn unsupported(backend: Backend, terms: &Terms) -> Option<String> {
    match backend {
        #[cfg(target_os = "linux")]
        Backend::Bubblewrap => bubblewrap::unsupported(terms),
        #[cfg(target_os = "linux")]
        Backend::Landlock => landlock::unsupported(terms),
        _ => {
            let _ = terms;
            None
        }
    }
}

/// Runs a shell that does nothing under the backend, with the network as asked.
pub(super) fn try_out(backend: Backend, isolated: bool, spills: &Arc<SpillStore>) -> Probe {
    let result = match backend {
        // The caller answers for it; what fails is told when it runs.
        Backend::Runner => return Probe::fine(backend, "nothing: the caller's own runner is trusted"),
        #[cfg(target_os = "linux")]
        Backend::Bubblewrap if bubblewrap::find().is_none() => Err((libc::ENOENT, "bwrap is not in PATH".into())),
        #[cfg(target_os = "linux")]
        Backend::Landlock => landlock::version()
            .map_err(|errno| (errno, "the kernel has no Landlock, or it is switched off".into()))
            .and_then(|_| run_nothing(backend, isolated, spills)),
        Backend::Seatbelt if !cfg!(target_os = "macos") => Err((libc::ENOSYS, "only macOS has sandbox-exec".into())),
        _ => run_nothing(backend, isolated, spills),
    };
    let tried = match (backend, isolated) {
        (Backend::Bubblewrap, false) => "ran `sh -c :` under bwrap, read-only",
        (Backend::Bubblewrap, true) => "ran `sh -c :` under bwrap, read-only and with a network of its own",
        (Backend::Landlock, _) => "asked the kernel for its Landlock version, and ran `sh -c :` under a ruleset",
        _ => "ran `sh -c :` under sandbox-exec, read-only",
    };
    match result {
        Ok(()) => Probe::fine(backend, tried),
        Err((errno, message)) => Probe { backend, usable: false, tried, errno, message },
    }
}

impl Probe {
    fn fine(backend: Backend, tried: &'static str) -> Probe {
        Probe { backend, usable: true, tried, errno: 0, message: "works".into() }
    }
}

fn run_nothing(backend: Backend, isolated: bool, spills: &Arc<SpillStore>) -> std::result::Result<(), (i32, String)> {
    let told = |error: Error| (error.errno().unwrap_or(0), error.message().to_owned());
    let system = |error: std::io::Error| (error.raw_os_error().unwrap_or(libc::EIO), error.to_string());
    let network = match (isolated, backend) {
        (false, _) => Network::Full,
        (true, Backend::Bubblewrap) => Network::Loopback,
        (true, _) => Network::None,
    };
    let policy =
        SandboxPolicy { network: Some(network), workspace: Some("/".into()), ..SandboxPolicy::new(Mode::ReadOnly) };
    let root = Path::new("/");
    let Some(terms) = Terms::resolve(policy, root, root).map_err(told)? else { return Ok(()) };
    let setup = Setup::new(backend, &Arc::new(terms), &Means { spills, shell: Path::new("/bin/sh"), witness: false })
        .map_err(told)?;
    let null = fd::dev_null().map_err(system)?;
    use std::os::fd::AsFd;
    let plan = Plan {
        program: Program::Path(c"/bin/sh"),
        arguments: &[c"sh", c"-c", c":"],
        environment: &[],
        workdir: c"/",
        files: &[null.as_fd(); 3],
        announce: None,
        restraint: None,
        signals_blocked: false,
    };
    let (child, mut confinement) = setup.spawn(plan, null.as_fd()).map_err(|failure| {
        let reason = std::io::Error::from_raw_os_error(failure.errno);
        (failure.errno, format!("can't be started (step: {}): {reason}", failure.stage))
    })?;
    let mut leader = Leader::new(child.pid, child.pidfd, None);
    leader.await_exit(Instant::now().checked_add(PATIENCE));
    let exit = leader.exit().map(|exit| confinement.shell_exit(exit).exit);
    leader.reap();
    let exit = exit.unwrap_or(Exit::Unknown);
    match confinement.conclude(exit, b"", root).runner_failed {
        Some(message) => Err((0, message)),
        None if exit == Exit::Code(0) => Ok(()),
        None => Err((0, format!("`sh -c :` ended with {exit:?} under it"))),
    }
}
