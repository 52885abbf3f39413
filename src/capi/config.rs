//! Budgets: what an executor allows.

use std::ffi::{c_char, CString};

use super::error::dsh_error_t;
use super::extensible::{flags, init, reserved};
use super::handle::{release, Sealed};
use super::sandbox::{dsh_sandbox_t, Policy};
use super::status::dsh_status_t;
use super::text::{c_path, list, os_string, path, pointer, Texts};
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::{Config, Keep};

/// Which part of a stream stays in memory once it is longer than its cap.
pub type dsh_keep_t = u32;
/// The last bytes: errors and results come at the end. The default.
pub const DSH_KEEP_TAIL: dsh_keep_t = 0u32;
/// Half the cap from the beginning, half from the end, and the exact count of what was left out between.
pub const DSH_KEEP_HEAD_TAIL: dsh_keep_t = 1u32;

/// In `dsh_config_t.flags`: commands get nothing of the host's environment.
pub const DSH_CONFIG_NO_INHERIT_ENV: u64 = 1u64;
/// In `dsh_config_t.flags`: commands go on when the host dies.
pub const DSH_CONFIG_NO_GUARD: u64 = 2u64;
/// In `dsh_config_t.flags`: spill files are left behind when the executor ends.
pub const DSH_CONFIG_KEEP_SPILL_FILES: u64 = 4u64;
const KNOWN_FLAGS: u64 = DSH_CONFIG_NO_INHERIT_ENV | DSH_CONFIG_NO_GUARD | DSH_CONFIG_KEEP_SPILL_FILES;

/// What an executor is to allow. Zero and NULL mean the default. Everything it points to is read during the call only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_config_t {
    /// `sizeof(dsh_config_t)`.
    pub size: usize,
    /// Working directory of requests that name none, and the base of relative ones. Default: the host's, at each call.
    pub cwd: *const c_char,
    /// The shell, a bash; a name without `/` is looked for in PATH, once. Default "bash".
    pub shell: *const c_char,
    /// Where the private directory for spill files is made. Can't change while the executor lives. Default: TMPDIR of
    /// the host, or /tmp.
    pub spill_dir: *const c_char,
    /// Globs (`*`, `?`) on names of host variables that are passed on although they look like credentials.
    pub env_allow: *const *const c_char,
    /// How many there are; 65,536 at most.
    pub env_allow_len: usize,
    /// Globs on names of host variables that are not passed on.
    pub env_deny: *const *const c_char,
    /// How many there are; 65,536 at most.
    pub env_deny_len: usize,
    /// Timeout in milliseconds of foreground requests that name none. Default 120,000.
    pub timeout_ms: u64,
    /// The most that any request gets, in milliseconds; it caps the default too. Default 600,000.
    pub max_timeout_ms: u64,
    /// Bytes of each stream kept in memory. Default 64,000.
    pub max_output_bytes: u64,
    /// Bytes of each stream kept on disk; a longer stream has no spill file. Default 67,108,864.
    pub max_spill_bytes: u64,
    /// Bytes of all spill files together, beyond which no new one is begun. Default 1,073,741,824.
    pub max_total_spill_bytes: u64,
    /// Milliseconds from SIGTERM to SIGKILL. Default 3,000.
    pub grace_ms: u64,
    /// Milliseconds that open pipes are waited for after the shell has exited. Default: `grace_ms`.
    pub drain_ms: u64,
    /// `DSH_CONFIG_...` bits. Others are refused.
    pub flags: u64,
    /// Which part of a long stream stays in memory.
    pub keep: dsh_keep_t,
    /// Must be 0.
    pub reserved: u32,
    /// The policy under which commands are confined, where their requests say nothing else. Default: no confinement. In
    /// settings, it tells whether and how the executor confines.
    pub sandbox: *const dsh_sandbox_t,
}

extensible!(dsh_config_t);

/// Makes a config all zero but for its size: `dsh_config_init(&config, sizeof config)`.
///
/// `DSH_E_NULL`, or `DSH_E_STRUCT` for an impossible size; then nothing is written. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_config_init(config: *mut dsh_config_t, size: usize) -> dsh_status_t {
    init(config, size)
}

impl dsh_config_t {
    /// # Safety
    /// Its pointers are what the header says.
    pub(super) unsafe fn to_config(self) -> Result<Config> {
        flags::<Self>("flags", self.flags, KNOWN_FLAGS)?;
        reserved::<Self>("reserved", std::mem::offset_of!(Self, reserved), self.reserved)?;
        let globs = |globs: Vec<&[u8]>| globs.into_iter().map(os_string).collect();
        Ok(Config {
            cwd: path(self.cwd),
            timeout_ms: self.timeout_ms,
            max_timeout_ms: self.max_timeout_ms,
            max_output_bytes: self.max_output_bytes,
            max_spill_bytes: self.max_spill_bytes,
            max_total_spill_bytes: self.max_total_spill_bytes,
            grace_ms: self.grace_ms,
            drain_ms: self.drain_ms,
            keep: keep_of(self.keep)?,
            shell: path(self.shell),
            spill_dir: path(self.spill_dir),
            inherit_env: self.flags & DSH_CONFIG_NO_INHERIT_ENV == 0,
            env_allow: globs(list("env_allow", self.env_allow, self.env_allow_len)?),
            env_deny: globs(list("env_deny", self.env_deny, self.env_deny_len)?),
            guard: self.flags & DSH_CONFIG_NO_GUARD == 0,
            keep_spill_files: self.flags & DSH_CONFIG_KEEP_SPILL_FILES != 0,
            sandbox: dsh_sandbox_t::optional(self.sandbox)?,
        })
    }
}

fn keep_of(keep: dsh_keep_t) -> Result<Keep> {
    match keep {
        DSH_KEEP_TAIL => Ok(Keep::Tail),
        DSH_KEEP_HEAD_TAIL => Ok(Keep::HeadTail),
        _ => {
            let message = format!("keep {keep}: is none of DSH_KEEP_...");
            Err(Error::new(ErrorKind::Invalid, Stage::Argument, message))
        }
    }
}

/// The budgets of an executor as they were at one moment, with every default filled in. Yours; immutable.
pub struct dsh_settings_t(Sealed<Settings>);

handle!(dsh_settings_t holds Settings);

/// A configuration, and its text as C sees it.
pub(super) struct Settings {
    config: Config,
    cwd: Option<CString>,
    shell: Option<CString>,
    spill_dir: Option<CString>,
    env_allow: Texts,
    env_deny: Texts,
    sandbox: Option<Policy>,
}

impl From<Config> for Settings {
    fn from(config: Config) -> Settings {
        Settings {
            cwd: c_path(config.cwd.as_deref()),
            shell: c_path(config.shell.as_deref()),
            spill_dir: c_path(config.spill_dir.as_deref()),
            env_allow: Texts::new(&config.env_allow),
            env_deny: Texts::new(&config.env_deny),
            sandbox: config.sandbox.as_ref().map(Policy::from),
            config,
        }
    }
}

/// Fills in a config with the settings. It can be changed and given to dsh_executor_configure(); what it points to
/// lives as long as the settings.
///
/// Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_settings_info(
    settings: Option<&dsh_settings_t>,
    config: *mut dsh_config_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on settings, out config, { settings.to_c() })
}

impl Settings {
    fn to_c(&self) -> dsh_config_t {
        let bit = |set: bool, flag: u64| if set { flag } else { 0 };
        let config = &self.config;
        dsh_config_t {
            size: size_of::<dsh_config_t>(),
            cwd: pointer(self.cwd.as_ref()),
            shell: pointer(self.shell.as_ref()),
            spill_dir: pointer(self.spill_dir.as_ref()),
            env_allow: self.env_allow.pointer(),
            env_allow_len: self.env_allow.len(),
            env_deny: self.env_deny.pointer(),
            env_deny_len: self.env_deny.len(),
            timeout_ms: config.timeout_ms,
            max_timeout_ms: config.max_timeout_ms,
            max_output_bytes: config.max_output_bytes,
            max_spill_bytes: config.max_spill_bytes,
            max_total_spill_bytes: config.max_total_spill_bytes,
            grace_ms: config.grace_ms,
            drain_ms: config.drain_ms,
            flags: bit(!config.inherit_env, DSH_CONFIG_NO_INHERIT_ENV)
                | bit(!config.guard, DSH_CONFIG_NO_GUARD)
                | bit(config.keep_spill_files, DSH_CONFIG_KEEP_SPILL_FILES),
            keep: match config.keep {
                Keep::Tail => DSH_KEEP_TAIL,
                Keep::HeadTail => DSH_KEEP_HEAD_TAIL,
            },
            reserved: 0,
            sandbox: Policy::pointer(self.sandbox.as_ref()),
        }
    }
}

/// Frees settings and the text that they gave. NULL is fine. Any thread, as the last call; does not block.
#[no_mangle]
pub extern "C" fn dsh_settings_free(settings: Option<Box<dsh_settings_t>>) {
    release(settings);
}
