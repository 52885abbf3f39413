//! What a caller asks ([`Request`]), and what will be run ([`Spec`]): every default and cap applied.

use std::ffi::{CString, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cancel::CancelToken;
use crate::config::{c_path, Budgets, Config, Keep};
use crate::environment::{self, Environment, Inherited};
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::sandbox::{Mode, SandboxPolicy, Terms};

/// What happens to descendants that are still alive when the command has ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Survivors {
    /// They stay, owned by the executor: listed in the result, their pipes drained, ended with the executor.
    #[default]
    Keep,
    /// They are ended before the result is returned.
    Kill,
}

/// A command and the terms it is to run under. Zero, `None` or empty means the executor's default.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The text for `bash -c`: any bytes but NUL, of any length.
    pub command: Vec<u8>,
    /// Working directory; a relative one is taken from the executor's.
    pub workdir: Option<PathBuf>,
    /// Timeout in milliseconds, capped by the executor's `max_timeout_ms`. Ignored by background processes, unless they
    /// are `foreground`.
    pub timeout_ms: u64,
    /// Bytes of stdout kept in memory. Ignored by background processes, unless they are `foreground`.
    pub stdout_max_bytes: u64,
    /// Bytes for the command's stdin, which is closed after them. `None` gives it `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Environment entries over the host's; a name without value removes the variable.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Trusted entries in the `DSH_` namespace.
    pub dsh_env: Vec<(OsString, OsString)>,
    /// Sends stderr through stdout's pipe, so that the order of both is kept.
    pub merge_stderr: bool,
    /// For [`start`](crate::Executor::start), of a foreground request: milliseconds for which the call itself drives the
    /// process. When it has settled by then, no thread but the caller's was needed, and no event tells of that.
    pub attend_ms: u64,
    /// What happens to descendants that outlive the command.
    pub survivors: Survivors,
    /// Makes a started process what a run is, for hosts that may not block: its timeout and `stdout_max_bytes` apply, it
    /// settles only once a forced stop is through, and [`Process::result`](crate::Process::result) is what a run of it
    /// would have given. [`Executor::run`](crate::Executor::run) does so anyway.
    pub foreground: bool,
    /// The policy to confine it under, where it differs from the executor's.
    pub sandbox: Option<SandboxPolicy>,
    /// Ends the command when cancelled. One token may serve many requests.
    pub cancel: Option<CancelToken>,
    /// Any number of the caller's; comes back in events and in what is known of the process.
    pub tag: u64,
}

impl Request {
    /// A request for this command, with every term left to the executor.
    pub fn new(command: impl Into<Vec<u8>>) -> Request {
        Request { command: command.into(), ..Request::default() }
    }
}

impl From<&str> for Request {
    fn from(command: &str) -> Request {
        Request::new(command)
    }
}

/// A request after [`resolve`](crate::Executor::resolve): what would run, every term explicit and capped.
#[derive(Debug, Clone)]
pub struct Spec {
    pub(crate) command: CString,
    pub(crate) workdir: PathBuf,
    pub(crate) timeout_ms: u64,
    pub(crate) stdout_max_bytes: u64,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) merge_stderr: bool,
    pub(crate) survivors: Survivors,
    pub(crate) foreground: bool,
    pub(crate) sandbox: Sandbox,
    pub(crate) cancel: Option<CancelToken>,
    pub(crate) tag: u64,
    pub(crate) environment: Environment,
    pub(crate) budgets: Arc<Budgets>,
}

/// Whether a command is confined.
#[derive(Debug, Clone)]
pub(crate) enum Sandbox {
    /// Nobody has asked for it.
    Off,
    /// The policy is full access.
    FullAccess,
    Confined(Arc<Terms>),
}

impl Spec {
    /// The text for `bash -c`.
    pub fn command(&self) -> &[u8] {
        self.command.as_bytes()
    }

    /// The absolute path of the shell.
    pub fn shell(&self) -> &Path {
        self.budgets.config().shell.as_deref().unwrap_or(Path::new("bash"))
    }

    /// The absolute working directory.
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// The effective timeout in milliseconds of a foreground run.
    pub fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    /// Bytes of stdout kept in memory by a foreground run.
    pub fn stdout_max_bytes(&self) -> u64 {
        self.stdout_max_bytes
    }

    /// Bytes of stderr (and of a background process's stdout) kept in memory.
    pub fn max_output_bytes(&self) -> u64 {
        self.budgets.config().max_output_bytes
    }

    /// Any number of the caller's.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Whether stderr goes through stdout's pipe.
    pub fn merge_stderr(&self) -> bool {
        self.merge_stderr
    }

    /// What happens to descendants that outlive the command.
    pub fn survivors(&self) -> Survivors {
        self.survivors
    }

    /// Milliseconds from SIGTERM to SIGKILL.
    pub fn grace_ms(&self) -> u64 {
        self.budgets.config().grace_ms
    }

    /// Milliseconds that open pipes are waited for after the shell has exited.
    pub fn drain_ms(&self) -> u64 {
        self.budgets.config().drain_ms
    }

    /// The mode it would be confined under; `None` when nobody has asked for confinement.
    pub fn sandbox_mode(&self) -> Option<Mode> {
        match &self.sandbox {
            Sandbox::Off => None,
            Sandbox::FullAccess => Some(Mode::DangerFullAccess),
            Sandbox::Confined(terms) => Some(terms.mode),
        }
    }

    /// Names of host variables that the command does not get because they look like credentials or are denied.
    pub fn scrubbed(&self) -> &[OsString] {
        self.environment.scrubbed()
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    pub(crate) fn keep(&self) -> Keep {
        self.budgets.config().keep
    }
}

/// Fills in and caps every term of a request. Nothing is started, and a wrong value is named.
pub(crate) fn resolve(request: Request, budgets: Arc<Budgets>, inherited: &Arc<Inherited>) -> Result<Spec> {
    let command = CString::new(request.command).map_err(|error| {
        let at = error.nul_position();
        let message = format!("command: holds a NUL byte at offset {at}, which no command line can carry");
        Error::new(ErrorKind::CommandNul, Stage::Argument, message)
    })?;
    let config = budgets.config();
    let workdir = workdir(request.workdir.as_deref(), config.cwd.as_deref())?;
    let or = |asked: u64, default: u64| if asked == 0 { default } else { asked };
    let sandbox = confine(request.sandbox, config, &workdir)?;
    let mut env = request.env;
    if matches!(sandbox, Sandbox::Confined(_)) {
        // The host's is not the command's: it gets one that it can write to, unless the request names one.
        let hosts = ["TMPDIR", "TMPPREFIX"].map(|name| (name.into(), None));
        env.splice(0..0, hosts);
    }
    let environment = environment::layer(inherited, &workdir, &env, &request.dsh_env)?;
    Ok(Spec {
        command,
        timeout_ms: or(request.timeout_ms, config.timeout_ms).min(config.max_timeout_ms),
        stdout_max_bytes: or(request.stdout_max_bytes, config.max_output_bytes),
        stdin: request.stdin,
        merge_stderr: request.merge_stderr,
        survivors: request.survivors,
        foreground: request.foreground,
        sandbox,
        cancel: request.cancel,
        tag: request.tag,
        workdir,
        environment,
        budgets,
    })
}

fn confine(asked: Option<SandboxPolicy>, config: &Config, workdir: &Path) -> Result<Sandbox> {
    let policy = match (asked, &config.sandbox) {
        (None, None) => return Ok(Sandbox::Off),
        (asked, base) => {
            let asked = asked.unwrap_or_default();
            base.as_ref().map_or(asked.clone(), |base| asked.over(base))
        }
    };
    let cwd = self::workdir(None, config.cwd.as_deref())?;
    Ok(Terms::resolve(policy, &cwd, workdir)?.map_or(Sandbox::FullAccess, |terms| Sandbox::Confined(Arc::new(terms))))
}

/// The absolute working directory. Whether it can be entered is found out by entering it.
fn workdir(asked: Option<&Path>, base: Option<&Path>) -> Result<PathBuf> {
    if let Some(asked) = asked {
        c_path("workdir", asked)?;
        if asked.as_os_str().is_empty() {
            return Err(Error::new(ErrorKind::Invalid, Stage::Argument, "workdir \"\": is empty"));
        }
        if asked.is_absolute() {
            return Ok(asked.to_owned());
        }
    }
    let base = match base {
        Some(base) => base.to_owned(),
        None => std::env::current_dir().map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::ENOENT);
            Error::os(workdir_kind(errno), Stage::Workdir, errno, "workdir: the host's own can't be determined")
        })?,
    };
    Ok(match asked {
        Some(asked) => base.join(asked),
        None => base,
    })
}

/// Which of the workdir's kinds of trouble an errno is.
pub(crate) fn workdir_kind(errno: i32) -> ErrorKind {
    match errno {
        libc::ENOENT => ErrorKind::WorkdirMissing,
        libc::ENOTDIR => ErrorKind::WorkdirNotDir,
        libc::EACCES | libc::EPERM => ErrorKind::WorkdirDenied,
        _ => ErrorKind::WorkdirUnusable,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resolve_with(request: Request, config: &Config) -> Result<Spec> {
        let budgets = Budgets::new(config).unwrap();
        let inherited = Arc::new(environment::inherit([], budgets.policy()));
        resolve(request, budgets.into(), &inherited)
    }

    #[test]
    fn a_nul_byte_in_the_command_is_named_by_its_offset() {
        let error = resolve_with(Request::new("echo\0x"), &Config::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommandNul);
        assert!(error.message().contains("offset 4"));
    }

    #[test]
    fn a_relative_workdir_is_taken_from_the_executors() {
        let config = Config { cwd: Some("/usr".into()), ..Config::default() };
        let at = |workdir: Option<&str>| {
            let request = Request { workdir: workdir.map(PathBuf::from), ..Request::new("pwd") };
            resolve_with(request, &config).unwrap().workdir
        };
        assert_eq!(at(None), Path::new("/usr"));
        assert_eq!(at(Some("lib")), Path::new("/usr/lib"));
        assert_eq!(at(Some("/tmp")), Path::new("/tmp"));
    }

    #[test]
    fn an_empty_workdir_is_refused() {
        let request = Request { workdir: Some("".into()), ..Request::new("pwd") };
        let error = resolve_with(request, &Config::default()).unwrap_err();
        assert_eq!((error.kind(), error.stage()), (ErrorKind::Invalid, Stage::Argument));
    }

    proptest! {
        #[test]
        fn a_timeout_is_the_asked_or_default_one_and_never_above_the_cap(
            asked: u64, default: u64, cap: u64, out in any::<u64>(), kept in 1u64..,
        ) {
            let config = Config { timeout_ms: default, max_timeout_ms: cap, max_output_bytes: kept, ..Config::default() };
            let request = Request { timeout_ms: asked, stdout_max_bytes: out, ..Request::new("true") };
            let spec = resolve_with(request, &config).unwrap();
            let or = |value: u64, default| if value == 0 { default } else { value };
            prop_assert_eq!(spec.timeout_ms(), or(asked, or(default, 120_000)).min(or(cap, 600_000)));
            prop_assert_eq!(spec.stdout_max_bytes(), or(out, kept));
        }
    }
}
