//! A confined command before its start: what it is started with, by backend.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use super::{bubblewrap, landlock, seccomp, warden, witness, Network};
use super::{seatbelt, Backend, Confinement, Terms};
use crate::config::c_path;
use crate::error::{Error, ErrorKind, Result, Stage};
#[cfg(target_os = "linux")]
use crate::fd;
use crate::output::{Scratch, SpillStore};
use crate::spawn::{self, Child, Failure, Plan, Program};
#[cfg(target_os = "linux")]
use crate::spawn::{Listening, Restraint};
#[cfg(target_os = "linux")]
use crate::tree::Leader;

/// Everything that a confined command is started with, besides what any command is.
pub(crate) struct Setup {
    terms: Arc<Terms>,
    backend: Backend,
    missing: Vec<&'static str>,
    /// The private directory for temporary files, where the backend brings none of its own.
    scratch: Option<Scratch>,
    how: How,
}

enum How {
    #[cfg(target_os = "linux")]
    Bubblewrap(Box<Wrapping>),
    #[cfg(target_os = "linux")]
    Landlock { ruleset: OwnedFd, witness: Option<(OwnedFd, OwnedFd)> },
    /// A program that stands before the shell.
    Prefix(Vec<CString>),
}

/// What bubblewrap is started with.
#[cfg(target_os = "linux")]
struct Wrapping {
    program: CString,
    warden: OwnedFd,
    /// The host's end and the warden's.
    status: (OwnedFd, OwnedFd),
    /// What bubblewrap does not do: see [`landlock::scopes`].
    scopes: Option<OwnedFd>,
    profile: OwnedFd,
    /// Where bubblewrap's own messages go.
    messages: OwnedFd,
    network_filter: Option<OwnedFd>,
    witness_filter: Option<OwnedFd>,
}

/// What the caller of [`Setup::new`] lends.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for Linux"))]
pub(crate) struct Means<'a> {
    pub(crate) spills: &'a Arc<SpillStore>,
    /// The shell, which has to be there inside.
    pub(crate) shell: &'a Path,
    /// Whether somebody will answer the witness for as long as the command lives.
    pub(crate) witness: bool,
}

impl Setup {
    pub(crate) fn new(backend: Backend, terms: &Arc<Terms>, means: &Means<'_>) -> Result<Setup> {
        let failed = |error: io::Error| {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let message = format!("sandbox: can't prepare {backend}: {error}");
            Error::os(ErrorKind::SandboxUnavailable, Stage::Sandbox, errno, message)
        };
        let own_tmp = backend == Backend::Bubblewrap;
        let scratch = if own_tmp { None } else { Some(means.spills.scratch().map_err(failed)?) };
        let (how, missing) = match backend {
            #[cfg(target_os = "linux")]
            Backend::Bubblewrap => {
                let wrapping = Wrapping::new(terms, means).map_err(failed)?;
                // A network of its own has abstract sockets of its own.
                let reaches_sockets = wrapping.scopes.is_none() && terms.network == Network::Full;
                let missing = if reaches_sockets { vec![landlock::ABSTRACT_SOCKETS] } else { Vec::new() };
                (How::Bubblewrap(Box::new(wrapping)), missing)
            }
            #[cfg(target_os = "linux")]
            Backend::Landlock => {
                let version = landlock::version().map_err(io::Error::from_raw_os_error).map_err(failed)?;
                let folder = scratch.as_ref().map_or(Path::new("/dev/null"), Scratch::path);
                let ruleset = landlock::ruleset(terms, folder).map_err(failed)?;
                let witness = if means.witness { Some(fd::socket_pair().map_err(failed)?) } else { None };
                (How::Landlock { ruleset, witness }, landlock::missing(terms, version))
            }
            Backend::Seatbelt => {
                let folder = scratch.as_ref().map(Scratch::path);
                (How::Prefix(seatbelt::command(terms, folder)?), seatbelt::missing(terms))
            }
            Backend::Runner => (How::Prefix(runner(terms)?), Vec::new()),
            #[cfg(not(target_os = "linux"))]
            Backend::Bubblewrap | Backend::Landlock => {
                return Err(failed(io::Error::from_raw_os_error(libc::ENOSYS)));
            }
        };
        Ok(Setup { terms: terms.clone(), backend, missing, scratch, how })
    }

    /// What the command's environment gets, unless the request has set it.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let tmp = self.scratch.as_ref().map_or_else(|| own_temp(&self.terms), Scratch::path);
        let mut variables =
            vec![("TMPDIR", tmp.as_os_str().to_owned()), ("TMPPREFIX", tmp.join("zsh").into_os_string())];
        if self.backend == Backend::Runner {
            let roots = self.terms.writable.iter().map(|root| root.as_os_str());
            variables.extend([
                ("DSH_SANDBOX_MODE", self.terms.mode.name().into()),
                ("DSH_SANDBOX_NETWORK", self.terms.network.name().into()),
                ("DSH_SANDBOX_WORKSPACE", self.terms.workspace.as_os_str().to_owned()),
                ("DSH_SANDBOX_WRITABLE", roots.collect::<Vec<_>>().join(OsStr::new(":"))),
            ]);
        }
        variables
    }

    /// Starts the planned shell under the confinement.
    pub(crate) fn spawn(
        self,
        plan: Plan<'_>,
        #[cfg_attr(not(target_os = "linux"), allow(unused_variables, reason = "for bubblewrap"))] null: BorrowedFd<'_>,
    ) -> std::result::Result<(Child, Confinement), Failure> {
        let child = match &self.how {
            #[cfg(target_os = "linux")]
            How::Bubblewrap(wrapping) => wrapping.spawn(&plan, null)?,
            #[cfg(target_os = "linux")]
            How::Landlock { ruleset, witness } => {
                let filters: Vec<_> = match self.terms.network {
                    Network::None => vec![seccomp::without_network().ok_or(UNBUILT)?],
                    _ => Vec::new(),
                };
                let witness = witness.as_ref().and_then(|(_, theirs)| {
                    let (filter, flags) = (witness::filter(), witness::flags()?);
                    (!filter.is_empty()).then(|| Listening { filter, flags, socket: theirs.as_fd() })
                });
                let ruleset = ruleset.as_fd();
                let restraint = Restraint { ruleset, drops_capabilities: true, filters: &filters, witness };
                spawn::spawn(&Plan { restraint: Some(restraint), ..plan })?
            }
            How::Prefix(prefix) => {
                let shell = path_of(plan.program)?;
                let own = plan.arguments.iter().skip(1).copied();
                let arguments: Vec<&CStr> = prefix.iter().map(CString::as_c_str).chain([shell]).chain(own).collect();
                let program = Program::Path(prefix.first().ok_or(UNBUILT)?);
                spawn::spawn(&Plan { program, arguments: &arguments, ..plan })?
            }
        };
        let confinement = Confinement::new(self.terms, self.backend, self.missing, self.scratch);
        let confinement = match self.how {
            #[cfg(target_os = "linux")]
            How::Bubblewrap(wrapping) => confinement.with_warden(wrapping.status.0, wrapping.messages),
            #[cfg(target_os = "linux")]
            How::Landlock { witness: Some((ours, theirs)), .. } => {
                drop(theirs);
                match fd::received(&ours) {
                    Ok(listener) => confinement.with_witness(listener),
                    // Nobody could answer its calls: it can't go on.
                    Err(errno) => {
                        end(child);
                        return Err(Failure { stage: Stage::Sandbox, errno });
                    }
                }
            }
            _ => confinement,
        };
        Ok((child, confinement))
    }
}

/// The directory for temporary files that bubblewrap brings.
pub(super) fn own_temp(terms: &Terms) -> &'static Path {
    #[cfg(target_os = "linux")]
    return bubblewrap::temp(terms);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = terms;
        Path::new("/tmp")
    }
}

/// Ends a child that has just been started.
#[cfg(target_os = "linux")]
fn end(child: Child) {
    let mut leader = Leader::new(child.pid, child.pidfd, None);
    leader.signal_group(libc::SIGKILL);
    leader.await_exit(None);
    leader.reap();
}

/// What a program that stands before the shell has to be told of it.
fn path_of(program: Program<'_>) -> std::result::Result<&CStr, Failure> {
    match program {
        Program::Path(path) => Ok(path),
        #[cfg(target_os = "linux")]
        Program::Descriptor(_) => Err(UNBUILT),
    }
}

/// A filter that the library could not build: nothing runs without it.
const UNBUILT: Failure = Failure { stage: Stage::Sandbox, errno: libc::ENOSYS };

#[cfg(target_os = "linux")]
impl Wrapping {
    fn new(terms: &Terms, means: &Means<'_>) -> io::Result<Wrapping> {
        let missing = || io::Error::from_raw_os_error(libc::ENOENT);
        let program = bubblewrap::find().ok_or_else(missing)?;
        let network_filter = match terms.network {
            Network::None => Some(as_file(seccomp::without_network().ok_or_else(missing)?)?),
            _ => None,
        };
        let visible: Vec<_> = means.spills.directory().into_iter().chain([means.shell.to_owned()]).collect();
        let extra = bubblewrap::Extra { visible: &visible, seccomp: network_filter.is_some() };
        Ok(Wrapping {
            program: c_path("bwrap", &program).map_err(io::Error::other)?,
            warden: warden::program()?,
            status: fd::socket_pair()?,
            scopes: if is_setuid(&program) { None } else { landlock::scopes()? },
            profile: fd::in_memory(c"dsh-profile", &bubblewrap::profile(terms, &extra))?,
            messages: fd::in_memory(c"dsh-messages", b"")?,
            network_filter,
            witness_filter: if means.witness { Some(as_file(witness::filter())?) } else { None },
        })
    }

    fn spawn(&self, plan: &Plan<'_>, null: BorrowedFd<'_>) -> std::result::Result<Child, Failure> {
        let shell = path_of(plan.program)?;
        let script = plan.files.get(3).copied();
        let arguments: Vec<&CStr> = warden::command(script.is_some(), self.witness_filter.is_some())
            .iter()
            .copied()
            .chain([shell])
            .chain(plan.arguments.iter().copied())
            .collect();
        let lack =
            |error: io::Error| Failure { stage: Stage::Sandbox, errno: error.raw_os_error().unwrap_or(libc::EIO) };
        let environment = warden::environment(plan.environment).map_err(lack)?;
        let files = warden::Files {
            null,
            messages: self.messages.as_fd(),
            script,
            status: self.status.1.as_fd(),
            profile: self.profile.as_fd(),
            seccomp: self.network_filter.as_ref().map(AsFd::as_fd),
            stdio: [plan.files[0], plan.files[1], plan.files[2]],
            program: self.warden.as_fd(),
            environment: environment.as_fd(),
            witness: self.witness_filter.as_ref().map(AsFd::as_fd),
        };
        spawn::spawn(&Plan {
            program: Program::Path(&self.program),
            arguments: &arguments,
            environment: &warden::marks(plan.environment),
            files: &files.in_order(),
            restraint: self.scopes.as_ref().map(|scopes| Restraint {
                ruleset: scopes.as_fd(),
                drops_capabilities: false,
                filters: &[],
                witness: None,
            }),
            ..*plan
        })
    }
}

/// A program that has its rights from the file system loses them with whatever its caller gives up beforehand.
#[cfg(target_os = "linux")]
fn is_setuid(program: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    program.metadata().is_ok_and(|meta| meta.mode() & libc::S_ISUID != 0)
}

/// The filter as the bytes that programs take it in.
#[cfg(target_os = "linux")]
fn as_file(filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let bytes: Vec<u8> = filter
        .iter()
        .flat_map(|one| {
            let [code, k] = [one.code.to_ne_bytes().to_vec(), one.k.to_ne_bytes().to_vec()];
            [code, vec![one.jt, one.jf], k].concat()
        })
        .collect();
    fd::in_memory(c"dsh-filter", &bytes)
}

/// The caller's own sandbox, its program found in PATH.
fn runner(terms: &Terms) -> Result<Vec<CString>> {
    let Some(runner) = &terms.runner else { return Ok(Vec::new()) };
    let mut command = Vec::new();
    for (i, argument) in runner.command.iter().enumerate() {
        let found = if i == 0 { crate::config::in_path(Path::new(argument)) } else { None };
        let argument = found.as_deref().unwrap_or(Path::new(argument));
        command.push(c_path("sandbox.runner", argument)?);
    }
    Ok(command)
}
