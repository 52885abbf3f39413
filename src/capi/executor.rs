//! The executor.

use std::time::Duration;

use super::config::{dsh_config_t, dsh_settings_t};
use super::error::dsh_error_t;
use super::extensible::read;
use super::handle::{release, Sealed};
use super::status::dsh_status_t;
use crate::environment::Host;
use crate::{Config, Executor, SpawnPath, Stats};

/// Runs commands, and owns what it runs until nothing of it is alive: budgets, two threads, every live process, the
/// spill directory and the guard.
pub struct dsh_executor_t(Sealed<Executor>);

handle!(dsh_executor_t holds Executor);

/// Makes an executor. `config` may be NULL, for all defaults. Yours; free it with dsh_executor_free(). It starts two
/// threads with all signals blocked, and removes spill directories that hosts which died have left.
///
/// `DSH_E_INVALID` and `DSH_E_SHELL_MISSING` (the message names the field), `DSH_E_STRUCT`, `DSH_E_FLAGS`,
/// `DSH_E_SYSTEM`. Any thread; does not block but for the file system.
#[no_mangle]
pub unsafe extern "C" fn dsh_executor_new(
    config: *const dsh_config_t,
    executor: *mut *mut dsh_executor_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, out executor, {
        let config = if config.is_null() { Config::default() } else { read(config, "config")?.to_config()? };
        Executor::for_host(&config, Host::OF_C)?
    })
}

/// Replaces all budgets. Commands that run keep theirs, the next one gets the new ones. Budgets that can't be used are
/// refused, and the executor stays on its last good ones. To change only some, begin with dsh_executor_config().
///
/// Errors as of dsh_executor_new(). Any thread; does not block but for the file system.
#[no_mangle]
pub unsafe extern "C" fn dsh_executor_configure(
    executor: Option<&dsh_executor_t>,
    config: *const dsh_config_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on executor, { executor.configure(&read(config, "config")?.to_config()?)? })
}

/// The budgets in force, with every default filled in: a copy that later changes do not touch. Yours; read it with
/// dsh_settings_info() and free it with dsh_settings_free().
///
/// Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_executor_config(
    executor: Option<&dsh_executor_t>,
    settings: *mut *mut dsh_settings_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on executor, out settings, { executor.config()?.into() })
}

/// Ends every process tree that the executor owns, and waits until they are gone. No command is started any more
/// (`DSH_E_SHUTDOWN`); handles of processes and results stay readable. Any number of calls, from any thread.
///
/// Blocks for `timeout_ms` at most; 0 means the default, which is the longest grace of what is live and one second. `DSH_E_TIMED_OUT` when
/// something is still being ended then; the call may be repeated.
#[no_mangle]
pub unsafe extern "C" fn dsh_executor_shutdown(
    executor: Option<&dsh_executor_t>,
    timeout_ms: u64,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    let limit = (timeout_ms != 0).then(|| Duration::from_millis(timeout_ms));
    border!(error, on executor, { executor.shutdown(limit)? })
}

/// Shuts the executor down, unless that was done, and frees it. NULL is fine.
///
/// Any thread, as the last call on this handle. Blocks as dsh_executor_shutdown() with timeout 0.
#[no_mangle]
pub extern "C" fn dsh_executor_free(executor: Option<Box<dsh_executor_t>>) {
    release(executor);
}

/// How children are created.
pub type dsh_spawn_path_t = u32;
/// A clone that shares the host's memory until the shell is executed: the cost does not grow with the host.
pub const DSH_SPAWN_VFORK: dsh_spawn_path_t = 1u32;
/// A plain fork, where memory is not really shared by a clone (emulators) or pidfds are not there.
pub const DSH_SPAWN_FORK: dsh_spawn_path_t = 2u32;
/// The spawn call of systems other than Linux.
pub const DSH_SPAWN_PORTABLE: dsh_spawn_path_t = 3u32;

/// What an executor is doing at one moment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_stats_t {
    /// `sizeof(dsh_stats_t)`, set by the caller.
    pub size: usize,
    /// Processes of which something may be alive.
    pub live: u64,
    /// Processes that have come and gone.
    pub ended: u64,
    /// Bytes in spill files.
    pub spill_bytes: u64,
    /// Threads that the executor runs: 2, and 0 after its shutdown.
    pub threads: u64,
    /// How children are created: `DSH_SPAWN_...`.
    pub spawn_path: dsh_spawn_path_t,
    /// The pid of the guard; 0 while there is none.
    pub guard_pid: i32,
}

extensible!(dsh_stats_t);

/// What the executor is doing now. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_executor_stats(
    executor: Option<&dsh_executor_t>,
    stats: *mut dsh_stats_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on executor, out stats, { executor.stats()?.into() })
}

impl From<Stats> for dsh_stats_t {
    fn from(stats: Stats) -> dsh_stats_t {
        dsh_stats_t {
            size: size_of::<dsh_stats_t>(),
            live: stats.live,
            ended: stats.ended,
            spill_bytes: stats.spill_bytes,
            threads: stats.threads,
            spawn_path: match stats.spawn_path {
                SpawnPath::Vfork => DSH_SPAWN_VFORK,
                SpawnPath::Fork => DSH_SPAWN_FORK,
                SpawnPath::Portable => DSH_SPAWN_PORTABLE,
            },
            guard_pid: stats.guard_pid.unwrap_or(0),
        }
    }
}
