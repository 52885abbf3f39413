//! Budgets: what an executor allows, with defaults, and checked before they take effect.

use std::env;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::environment::Policy;
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::sandbox::SandboxPolicy;

/// Which part of a stream stays in memory once it is longer than its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Keep {
    /// The last bytes: errors and results come at the end.
    #[default]
    Tail,
    /// Half the cap from the beginning, half from the end, and the exact count of what was left out between.
    HeadTail,
}

/// What an executor is asked to allow. A zero, `None` or empty value means the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Working directory of requests that name none, and the base of relative ones. Default: the host's, at each call.
    pub cwd: Option<PathBuf>,
    /// Timeout in milliseconds of foreground requests that name none. Default 120,000.
    pub timeout_ms: u64,
    /// The most that any request gets, in milliseconds. Default 600,000.
    pub max_timeout_ms: u64,
    /// Bytes of each stream kept in memory. Default 64,000.
    pub max_output_bytes: u64,
    /// Bytes of each stream kept on disk. A stream beyond it has no spill file. Default 67,108,864.
    pub max_spill_bytes: u64,
    /// Bytes of all spill files together, beyond which no new one is begun. Default 1 GiB.
    pub max_total_spill_bytes: u64,
    /// Milliseconds from SIGTERM to SIGKILL. Default 3,000.
    pub grace_ms: u64,
    /// Milliseconds that open pipes are waited for after the shell has exited. Default: `grace_ms`.
    pub drain_ms: u64,
    /// Which part of a long stream stays in memory.
    pub keep: Keep,
    /// The shell, a bash; a name without `/` is looked for in PATH. Default `bash`.
    pub shell: Option<PathBuf>,
    /// Where the private directory for spill files is made. Default: the host's directory for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// Whether commands get the host's environment (less credentials). Default on.
    pub inherit_env: bool,
    /// Globs (`*`, `?`) on names of host variables that are passed on although they look like credentials.
    pub env_allow: Vec<OsString>,
    /// Globs on names of host variables that are not passed on.
    pub env_deny: Vec<OsString>,
    /// Whether trees are ended when the host dies. Default on.
    pub guard: bool,
    /// Whether spill files are left behind when the executor ends. Default off.
    pub keep_spill_files: bool,
    /// The policy under which commands are confined, where their requests say nothing else. Default: none.
    pub sandbox: Option<SandboxPolicy>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            cwd: None,
            timeout_ms: 0,
            max_timeout_ms: 0,
            max_output_bytes: 0,
            max_spill_bytes: 0,
            max_total_spill_bytes: 0,
            grace_ms: 0,
            drain_ms: 0,
            keep: Keep::Tail,
            shell: None,
            spill_dir: None,
            inherit_env: true,
            env_allow: Vec::new(),
            env_deny: Vec::new(),
            guard: true,
            keep_spill_files: false,
            sandbox: None,
        }
    }
}

/// A configuration that has been checked: every field explicit.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    config: Config,
    shell: CString,
    policy: Policy,
}

impl Budgets {
    pub(crate) fn new(asked: &Config) -> Result<Budgets> {
        let or = |value: u64, default: u64| if value == 0 { default } else { value };
        let policy =
            Policy { inherit: asked.inherit_env, allow: asked.env_allow.clone(), deny: asked.env_deny.clone() };
        policy.validate()?;
        asked.sandbox.iter().try_for_each(SandboxPolicy::validate)?;
        let shell = resolve_shell(asked.shell.as_deref().unwrap_or(Path::new("bash")))?;
        let max_timeout_ms = or(asked.max_timeout_ms, 600_000);
        let grace_ms = or(asked.grace_ms, 3_000);
        let config = Config {
            cwd: asked.cwd.as_deref().map(|cwd| absolute("cwd", cwd)).transpose()?,
            timeout_ms: or(asked.timeout_ms, 120_000).min(max_timeout_ms),
            max_timeout_ms,
            max_output_bytes: or(asked.max_output_bytes, 64_000),
            max_spill_bytes: or(asked.max_spill_bytes, 64 << 20),
            max_total_spill_bytes: or(asked.max_total_spill_bytes, 1 << 30),
            grace_ms,
            drain_ms: or(asked.drain_ms, grace_ms),
            keep: asked.keep,
            spill_dir: Some(absolute("spill_dir", &asked.spill_dir.clone().unwrap_or_else(env::temp_dir))?),
            shell: Some(shell.clone()),
            sandbox: asked.sandbox.clone().map(SandboxPolicy::with_defaults),
            ..asked.clone()
        };
        Ok(Budgets { shell: c_path("shell", &shell)?, policy, config })
    }

    /// Checks a replacement of these budgets. What can't change while an executor lives is refused.
    pub(crate) fn replaced_by(&self, asked: &Config) -> Result<Budgets> {
        let mut asked = asked.clone();
        asked.spill_dir = asked.spill_dir.or_else(|| self.config.spill_dir.clone());
        let new = Budgets::new(&asked)?;
        if new.config.spill_dir != self.config.spill_dir {
            return Err(Error::new(
                ErrorKind::Invalid,
                Stage::Argument,
                format!("spill_dir {:?}: can't change while the executor lives", new.spill_dir()),
            ));
        }
        Ok(new)
    }

    /// The budgets in the caller's vocabulary, with every default filled in.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn shell(&self) -> &CString {
        &self.shell
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn spill_dir(&self) -> &Path {
        self.config.spill_dir.as_deref().unwrap_or(Path::new("/tmp"))
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_millis(self.config.grace_ms)
    }

    pub(crate) fn drain(&self) -> Duration {
        Duration::from_millis(self.config.drain_ms)
    }
}

/// A path as the kernel takes it.
pub(crate) fn c_path(field: &str, path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::new(ErrorKind::Invalid, Stage::Argument, format!("{field} {path:?}: holds a NUL byte")))
}

fn absolute(field: &str, path: &Path) -> Result<PathBuf> {
    c_path(field, path)?;
    if path.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::Invalid, Stage::Argument, format!("{field} {path:?}: is empty")));
    }
    std::path::absolute(path).map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
        Error::os(ErrorKind::Invalid, Stage::Argument, errno, format!("{field} {path:?}: can't be made absolute"))
    })
}

/// The absolute path of the shell, found once so that no run has to search PATH again.
fn resolve_shell(shell: &Path) -> Result<PathBuf> {
    let missing =
        |errno, why: &str| Error::os(ErrorKind::ShellMissing, Stage::Shell, errno, format!("shell {shell:?}: {why}"));
    c_path("shell", shell)?;
    if shell.as_os_str().as_bytes().contains(&b'/') {
        let shell = absolute("shell", shell)?;
        return match executable(&shell) {
            Ok(()) => Ok(shell),
            Err(errno) => Err(missing(errno, "can't be executed")),
        };
    }
    if shell.as_os_str().is_empty() {
        return Err(missing(libc::ENOENT, "is empty"));
    }
    in_path(shell).ok_or_else(|| missing(libc::ENOENT, "not found in PATH"))
}

/// The program of this name, which has no `/`, in PATH.
pub(crate) fn in_path(name: &Path) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    env::split_paths(&path)
        .filter(|folder| folder.is_absolute()) // a relative one would name another file after the host's next chdir
        .map(|folder| folder.join(name))
        .find(|candidate| executable(candidate).is_ok())
}

fn executable(path: &Path) -> std::result::Result<(), i32> {
    let meta = std::fs::metadata(path).map_err(|error| error.raw_os_error().unwrap_or(libc::ENOENT))?;
    if !meta.is_file() {
        return Err(libc::EACCES);
    }
    nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).map_err(|errno| errno as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_means_the_default() {
        let budgets = Budgets::new(&Config::default()).unwrap();
        let config = budgets.config();
        assert_eq!((config.timeout_ms, config.max_timeout_ms), (120_000, 600_000));
        assert_eq!((config.max_output_bytes, config.max_spill_bytes), (64_000, 67_108_864));
        assert_eq!((config.max_total_spill_bytes, config.grace_ms, config.drain_ms), (1 << 30, 3_000, 3_000));
        assert!(config.shell.as_ref().unwrap().is_absolute());
    }

    #[test]
    fn the_drain_limit_follows_the_grace_unless_named() {
        let drain = |grace_ms, drain_ms| {
            Budgets::new(&Config { grace_ms, drain_ms, ..Config::default() }).unwrap().config().drain_ms
        };
        assert_eq!((drain(70, 0), drain(70, 9)), (70, 9));
    }

    #[test]
    fn a_default_timeout_above_the_cap_is_clamped() {
        let asked = Config { timeout_ms: u64::MAX, max_timeout_ms: 5, ..Config::default() };
        assert_eq!(Budgets::new(&asked).unwrap().config().timeout_ms, 5);
    }

    #[test]
    fn a_shell_that_is_not_there_is_refused_by_name() {
        let not_executable = tempfile::NamedTempFile::new().unwrap();
        let not_executable = not_executable.path().to_str().unwrap();
        for shell in ["/nowhere/bash", "no-such-shell-here", not_executable, "/usr"] {
            let asked = Config { shell: Some(shell.into()), ..Config::default() };
            let error = Budgets::new(&asked).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ShellMissing);
            assert!(error.message().contains("shell") && error.message().contains(shell), "{error}");
        }
    }

    #[test]
    fn a_replacement_keeps_the_spill_directory() {
        let budgets = Budgets::new(&Config::default()).unwrap();
        assert!(budgets.replaced_by(&Config { grace_ms: 1, ..Config::default() }).is_ok());
        let error = budgets.replaced_by(&Config { spill_dir: Some("/elsewhere".into()), ..Config::default() });
        assert!(error.unwrap_err().message().contains("/elsewhere"));
    }
}
