//! Confinement: what a command may do, and what the system has to keep it to that.

use std::ffi::{c_char, CString, OsString};
use std::path::PathBuf;
use std::ptr;

use super::error::dsh_error_t;
use super::extensible::{flags, init, read};
use super::handle::{release, Sealed};
use super::status::dsh_status_t;
use super::text::{c_path, c_string, first, list, os_string, path, pointer, Texts};
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::{sandbox_doctor, Backend, BackendReport, Doctor, Mode, Network, Runner, SandboxPolicy};

/// How much of the file system a command may change.
pub type dsh_sandbox_mode_t = u32;
/// In a policy: what the executor's policy says, and there `DSH_SANDBOX_READ_ONLY`. In facts: nobody has asked for
/// confinement.
pub const DSH_SANDBOX_DEFAULT: dsh_sandbox_mode_t = 0u32;
/// Nothing but /dev/null and a private directory for temporary files, in TMPDIR.
pub const DSH_SANDBOX_READ_ONLY: dsh_sandbox_mode_t = 1u32;
/// That, and the workspace with everything below it, and further writable paths.
pub const DSH_SANDBOX_WORKSPACE_WRITE: dsh_sandbox_mode_t = 2u32;
/// No confinement.
pub const DSH_SANDBOX_DANGER_FULL_ACCESS: dsh_sandbox_mode_t = 3u32;

/// How much of the network a command may use.
pub type dsh_network_t = u32;
/// What the executor's policy says, and there `DSH_NETWORK_FULL`.
pub const DSH_NETWORK_DEFAULT: dsh_network_t = 0u32;
/// Whatever the host can reach.
pub const DSH_NETWORK_FULL: dsh_network_t = 1u32;
/// A loopback interface of the command's own: its processes reach each other, and nobody else. Bubblewrap only.
pub const DSH_NETWORK_LOOPBACK: dsh_network_t = 2u32;
/// No sockets but those of the file system (AF_UNIX), which can be reached as far as its permissions let them, and of
/// the kernel's own services (AF_NETLINK).
pub const DSH_NETWORK_NONE: dsh_network_t = 3u32;

/// What carries a confinement out.
pub type dsh_backend_t = u32;
/// None: full access, or no confinement.
pub const DSH_BACKEND_NONE: dsh_backend_t = 0u32;
/// `bwrap`: namespaces, so that what is forbidden is not even there (Linux).
pub const DSH_BACKEND_BUBBLEWRAP: dsh_backend_t = 1u32;
/// Landlock, in the command itself and without a helper program (Linux 5.13).
pub const DSH_BACKEND_LANDLOCK: dsh_backend_t = 2u32;
/// `sandbox-exec` (macOS). Never run.
pub const DSH_BACKEND_SEATBELT: dsh_backend_t = 3u32;
/// The caller's own program.
pub const DSH_BACKEND_RUNNER: dsh_backend_t = 4u32;

/// In `dsh_sandbox_t.flags`: a workspace that is a linked git worktree may change those parts of the main repository that
/// a commit needs: not its hooks, and not its configuration.
pub const DSH_SANDBOX_GIT_WORKTREE: u64 = 1u64;
/// In `dsh_sandbox_t.flags` of a request: not so, whatever the executor's policy says.
pub const DSH_SANDBOX_NO_GIT_WORKTREE: u64 = 2u64;

/// What a confined command may do. Zero and NULL mean what the executor's policy says, and there the default. Everything
/// it points to is read during the call only. Paths are absolute; they are resolved once, symbolic links followed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_sandbox_t {
    /// `sizeof(dsh_sandbox_t)`.
    pub size: usize,
    /// The directory that `DSH_SANDBOX_WORKSPACE_WRITE` lets a command change. Default: the executor's `cwd`, whatever the
    /// request's `workdir` is.
    pub workspace: *const c_char,
    /// Further paths that `DSH_SANDBOX_WORKSPACE_WRITE` lets a command change. They have to exist.
    pub writable: *const *const c_char,
    /// How many there are; 65,536 at most.
    pub writable_len: usize,
    /// Paths whose contents a command does not get to see. Those that do not exist are passed over.
    pub hidden: *const *const c_char,
    /// How many there are; 65,536 at most.
    pub hidden_len: usize,
    /// The backends to be tried, in this order: `DSH_BACKEND_...`. Default: the runner if there is one, then all of the
    /// system, bubblewrap before Landlock.
    pub backends: *const dsh_backend_t,
    /// How many there are; 16 at most.
    pub backends_len: usize,
    /// The caller's own sandbox: a program (absolute, or found in PATH) and its first arguments, after which come the
    /// shell, `-c` and the command. It finds the policy in DSH_SANDBOX_MODE, DSH_SANDBOX_WORKSPACE, DSH_SANDBOX_WRITABLE
    /// (a list with `:`) and DSH_SANDBOX_NETWORK, and is trusted to enforce it.
    pub runner: *const *const c_char,
    /// How many there are; 65,536 at most.
    pub runner_len: usize,
    /// A line on stderr that contains one of these, whatever the case, says together with a non-zero exit that the runner
    /// itself failed and the command did not run. Required with a runner.
    pub runner_failures: *const *const c_char,
    /// How many there are; 65,536 at most.
    pub runner_failures_len: usize,
    /// `DSH_SANDBOX_...GIT_WORKTREE` bits. Others are refused.
    pub flags: u64,
    /// `DSH_SANDBOX_...`
    pub mode: dsh_sandbox_mode_t,
    /// `DSH_NETWORK_...`
    pub network: dsh_network_t,
}

extensible!(dsh_sandbox_t);

/// Makes a policy all zero but for its size: `dsh_sandbox_init(&sandbox, sizeof sandbox)`.
///
/// `DSH_E_NULL`, or `DSH_E_STRUCT` for an impossible size; then nothing is written. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_sandbox_init(sandbox: *mut dsh_sandbox_t, size: usize) -> dsh_status_t {
    init(sandbox, size)
}

/// The name of a mode: "read-only", "workspace-write" or "danger-full-access"; of any other number "". Static text. Any
/// thread, also in a forked child; does not block.
#[no_mangle]
pub extern "C" fn dsh_sandbox_mode_str(mode: dsh_sandbox_mode_t) -> *const c_char {
    let name = match mode {
        DSH_SANDBOX_READ_ONLY => c"read-only",
        DSH_SANDBOX_WORKSPACE_WRITE => c"workspace-write",
        DSH_SANDBOX_DANGER_FULL_ACCESS => c"danger-full-access",
        _ => c"",
    };
    name.as_ptr()
}

/// Whether `mode` is strictly wider than `than`: 1 or 0; 0 when either is no mode. What a caller could ask for when a
/// command was denied something. Any thread, also in a forked child; does not block.
#[no_mangle]
pub extern "C" fn dsh_sandbox_is_wider(mode: dsh_sandbox_mode_t, than: dsh_sandbox_mode_t) -> u32 {
    match (mode_of(mode), mode_of(than)) {
        (Ok(Some(mode)), Ok(Some(than))) => than.wider().contains(&mode).into(),
        _ => 0,
    }
}

impl dsh_sandbox_t {
    /// A policy, of which NULL means none.
    ///
    /// # Safety
    /// The pointer is NULL or to a struct that is what the header says.
    pub(super) unsafe fn optional(given: *const dsh_sandbox_t) -> Result<Option<SandboxPolicy>> {
        if given.is_null() {
            return Ok(None);
        }
        read(given, "sandbox")?.to_policy().map(Some)
    }

    unsafe fn to_policy(self) -> Result<SandboxPolicy> {
        const MOST_BACKENDS: usize = 16;
        flags::<Self>("flags", self.flags, DSH_SANDBOX_GIT_WORKTREE | DSH_SANDBOX_NO_GIT_WORKTREE)?;
        let paths = |list: Vec<&[u8]>| list.into_iter().map(|path| PathBuf::from(os_string(path))).collect();
        if self.backends.is_null() && self.backends_len > 0 {
            return Err(super::handle::null("sandbox.backends"));
        }
        if self.backends_len > MOST_BACKENDS {
            return Err(invalid(format!(
                "sandbox.backends_len {}: a list has {MOST_BACKENDS} entries at most",
                self.backends_len
            )));
        }
        let backends = match self.backends_len {
            0 => &[],
            len => std::slice::from_raw_parts(self.backends, len),
        };
        let command: Vec<OsString> =
            list("sandbox.runner", self.runner, self.runner_len)?.into_iter().map(os_string).collect();
        let failures: Vec<String> = list("sandbox.runner_failures", self.runner_failures, self.runner_failures_len)?
            .into_iter()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect();
        if command.is_empty() && !failures.is_empty() {
            return Err(invalid("sandbox.runner_failures: is given without sandbox.runner".into()));
        }
        Ok(SandboxPolicy {
            mode: mode_of(self.mode)?,
            workspace: path(self.workspace),
            writable: paths(list("sandbox.writable", self.writable, self.writable_len)?),
            hidden: paths(list("sandbox.hidden", self.hidden, self.hidden_len)?),
            network: network_of(self.network)?,
            backends: backends.iter().enumerate().map(|(i, backend)| backend_of(i, *backend)).collect::<Result<_>>()?,
            runner: if command.is_empty() { None } else { Some(Runner { command, failures }) },
            git_worktree: match self.flags {
                0 => None,
                DSH_SANDBOX_GIT_WORKTREE => Some(true),
                DSH_SANDBOX_NO_GIT_WORKTREE => Some(false),
                _ => return Err(invalid(format!("sandbox.flags {:#x}: contradict each other", self.flags))),
            },
        })
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, Stage::Argument, message)
}

fn mode_of(mode: dsh_sandbox_mode_t) -> Result<Option<Mode>> {
    match mode {
        DSH_SANDBOX_DEFAULT => Ok(None),
        DSH_SANDBOX_READ_ONLY => Ok(Some(Mode::ReadOnly)),
        DSH_SANDBOX_WORKSPACE_WRITE => Ok(Some(Mode::WorkspaceWrite)),
        DSH_SANDBOX_DANGER_FULL_ACCESS => Ok(Some(Mode::DangerFullAccess)),
        _ => Err(invalid(format!("sandbox.mode {mode}: is no DSH_SANDBOX_... mode"))),
    }
}

pub(super) fn mode_to_c(mode: Option<Mode>) -> dsh_sandbox_mode_t {
    match mode {
        None => DSH_SANDBOX_DEFAULT,
        Some(Mode::ReadOnly) => DSH_SANDBOX_READ_ONLY,
        Some(Mode::WorkspaceWrite) => DSH_SANDBOX_WORKSPACE_WRITE,
        Some(Mode::DangerFullAccess) => DSH_SANDBOX_DANGER_FULL_ACCESS,
    }
}

fn network_of(network: dsh_network_t) -> Result<Option<Network>> {
    match network {
        DSH_NETWORK_DEFAULT => Ok(None),
        DSH_NETWORK_FULL => Ok(Some(Network::Full)),
        DSH_NETWORK_LOOPBACK => Ok(Some(Network::Loopback)),
        DSH_NETWORK_NONE => Ok(Some(Network::None)),
        _ => Err(invalid(format!("sandbox.network {network}: is none of DSH_NETWORK_..."))),
    }
}

pub(super) fn network_to_c(network: Option<Network>) -> dsh_network_t {
    match network {
        None => DSH_NETWORK_DEFAULT,
        Some(Network::Full) => DSH_NETWORK_FULL,
        Some(Network::Loopback) => DSH_NETWORK_LOOPBACK,
        Some(Network::None) => DSH_NETWORK_NONE,
    }
}

fn backend_of(i: usize, backend: dsh_backend_t) -> Result<Backend> {
    match backend {
        DSH_BACKEND_BUBBLEWRAP => Ok(Backend::Bubblewrap),
        DSH_BACKEND_LANDLOCK => Ok(Backend::Landlock),
        DSH_BACKEND_SEATBELT => Ok(Backend::Seatbelt),
        DSH_BACKEND_RUNNER => Ok(Backend::Runner),
        _ => Err(invalid(format!("sandbox.backends[{i}] {backend}: is none of DSH_BACKEND_..."))),
    }
}

pub(super) fn backend_to_c(backend: Option<Backend>) -> dsh_backend_t {
    match backend {
        None => DSH_BACKEND_NONE,
        Some(Backend::Bubblewrap) => DSH_BACKEND_BUBBLEWRAP,
        Some(Backend::Landlock) => DSH_BACKEND_LANDLOCK,
        Some(Backend::Seatbelt) => DSH_BACKEND_SEATBELT,
        Some(Backend::Runner) => DSH_BACKEND_RUNNER,
    }
}

/// A policy, its text as C sees it, and the struct that points to it.
pub(super) struct Policy {
    /// Pointed to by settings, so it stays where it is.
    shown: Box<dsh_sandbox_t>,
    _workspace: Option<CString>,
    _lists: [Texts; 4],
    _backends: Vec<dsh_backend_t>,
}

impl From<&SandboxPolicy> for Policy {
    fn from(policy: &SandboxPolicy) -> Policy {
        let workspace = c_path(policy.workspace.as_deref());
        let (command, failures) = policy
            .runner
            .as_ref()
            .map_or((&[][..], &[][..]), |runner| (runner.command.as_slice(), runner.failures.as_slice()));
        let lists =
            [Texts::new(&policy.writable), Texts::new(&policy.hidden), Texts::new(command), Texts::new(failures)];
        let backends: Vec<_> = policy.backends.iter().map(|backend| backend_to_c(Some(*backend))).collect();
        let [writable, hidden, runner, runner_failures] = &lists;
        let shown = Box::new(dsh_sandbox_t {
            size: size_of::<dsh_sandbox_t>(),
            workspace: pointer(workspace.as_ref()),
            writable: writable.pointer(),
            writable_len: writable.len(),
            hidden: hidden.pointer(),
            hidden_len: hidden.len(),
            backends: first(&backends),
            backends_len: backends.len(),
            runner: runner.pointer(),
            runner_len: runner.len(),
            runner_failures: runner_failures.pointer(),
            runner_failures_len: runner_failures.len(),
            flags: match policy.git_worktree {
                None => 0,
                Some(true) => DSH_SANDBOX_GIT_WORKTREE,
                Some(false) => DSH_SANDBOX_NO_GIT_WORKTREE,
            },
            mode: mode_to_c(policy.mode),
            network: network_to_c(policy.network),
        });
        Policy { shown, _workspace: workspace, _lists: lists, _backends: backends }
    }
}

impl Policy {
    pub(super) fn pointer(policy: Option<&Policy>) -> *const dsh_sandbox_t {
        policy.map_or(ptr::null(), |policy| &raw const *policy.shown)
    }
}

/// What confinement this system has. Yours; immutable.
pub struct dsh_doctor_t(Sealed<Examined>);

handle!(dsh_doctor_t holds Examined);

/// What was found out about one backend by really running something under it. Part of lists; it never grows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_backend_report_t {
    /// What was tried.
    pub tried: *const c_char,
    /// What came back.
    pub message: *const c_char,
    /// What would mend it. NULL when it works.
    pub remedy: *const c_char,
    /// Which backend.
    pub backend: dsh_backend_t,
    /// 1 when it confines commands here.
    pub usable: u32,
    /// 1 when it also gives them a network of their own, or none.
    pub network: u32,
    /// The version of its interface; 0 when it has none.
    pub version: u32,
    /// The `errno` of what failed; 0 when nothing did, or no system call.
    pub error_number: i32,
    /// 0.
    pub reserved: u32,
}

/// What the doctor found. What it points to lives as long as the doctor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_doctor_info_t {
    /// `sizeof(dsh_doctor_info_t)`, set by the caller.
    pub size: usize,
    /// The whole report as text for people.
    pub text: *const c_char,
    /// The backends in the order in which they are tried by default.
    pub backends: *const dsh_backend_report_t,
    /// How many there are.
    pub backends_len: usize,
    /// Facts of the system that decide about them, `NAME=VALUE` each.
    pub facts: *const *const c_char,
    /// How many there are.
    pub facts_len: usize,
}

extensible!(dsh_doctor_info_t);

/// A report, and its text as C sees it.
pub(super) struct Examined {
    text: CString,
    backends: Vec<dsh_backend_report_t>,
    facts: Texts,
    _texts: Vec<CString>,
}

impl From<Doctor> for Examined {
    fn from(doctor: Doctor) -> Examined {
        let mut texts = Vec::new();
        let backends = doctor.backends.iter().map(|report| report_to_c(report, &mut texts)).collect();
        let facts: Vec<String> = doctor.facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Examined { text: c_string(doctor.to_string()), backends, facts: Texts::new(&facts), _texts: texts }
    }
}

fn report_to_c(report: &BackendReport, texts: &mut Vec<CString>) -> dsh_backend_report_t {
    // The bytes of a CString stay where they are when it is moved.
    let mut keep = |text: &str| {
        let text = c_string(text);
        let pointer = text.as_ptr();
        texts.push(text);
        pointer
    };
    dsh_backend_report_t {
        tried: keep(&report.tried),
        message: keep(&report.message),
        remedy: report.remedy.as_deref().map_or(ptr::null(), &mut keep),
        backend: backend_to_c(Some(report.backend)),
        usable: report.usable.into(),
        network: report.network.into(),
        version: report.version,
        error_number: report.errno,
        reserved: 0,
    }
}

/// Tries every backend of the system with a shell that does nothing, and reports what works, why not more, and what
/// would mend it. Needs no executor. The report is yours; free it with dsh_doctor_free().
///
/// Blocks for some milliseconds per backend, and 10 seconds at most when one hangs. Any thread.
#[no_mangle]
pub unsafe extern "C" fn dsh_sandbox_doctor(
    doctor: *mut *mut dsh_doctor_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, out doctor, { sandbox_doctor().into() })
}

/// Fills in what the doctor found. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_doctor_info(
    doctor: Option<&dsh_doctor_t>,
    info: *mut dsh_doctor_info_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on doctor, out info, {
        dsh_doctor_info_t {
            size: size_of::<dsh_doctor_info_t>(),
            text: doctor.text.as_ptr(),
            backends: first(&doctor.backends),
            backends_len: doctor.backends.len(),
            facts: doctor.facts.pointer(),
            facts_len: doctor.facts.len(),
        }
    })
}

/// Frees a report and the text that it gave. NULL is fine. Any thread, as the last call; does not block.
#[no_mangle]
pub extern "C" fn dsh_doctor_free(doctor: Option<Box<dsh_doctor_t>>) {
    release(doctor);
}
