/*
 * libdsh runs shell commands for AI agents: bounded output, hard timeouts, and process trees that really die.
 *
 *     #include <dsh.h>
 *     #include <stdio.h>
 *     #include <string.h>
 *
 *     int main(void)
 *     {
 *         dsh_executor_t *executor = NULL;
 *         dsh_result_t *result = NULL;
 *         dsh_error_t *error = NULL;
 *         dsh_request_t request = DSH_REQUEST_INIT;
 *         dsh_result_info_t info = DSH_RESULT_INFO_INIT;
 *
 *         request.command = "echo hello; exit 3";
 *         request.command_len = strlen(request.command);
 *         if (dsh_executor_new(NULL, &executor, &error) || dsh_run(executor, &request, &result, &error)
 *             || dsh_result_info(result, &info, &error))
 *             fprintf(stderr, "%s\n", dsh_error_message(error));
 *         else
 *             printf("%.*s(exit code %d)\n", (int)info.out.len, (const char *)info.out.data, (int)info.outcome.code);
 *         dsh_error_free(error);
 *         dsh_result_free(result);
 *         dsh_executor_free(executor);
 *     }
 *
 * Conventions. They hold for every function; what a function adds stands with it.
 *
 * Status     Functions give `DSH_OK` (0) or a negative code, nothing else. `DSH_E_NULL`, `DSH_E_FORKED` and
 *            `DSH_E_PANIC` can come from every function that takes a handle, `DSH_E_STRUCT` from every function that
 *            takes a struct; the other codes are named with the functions. Functions without a status can't fail.
 *
 * Errors     The last parameter, `error`, may be NULL. Otherwise `*error` becomes NULL on entry (an error that is
 *            still in it is lost) and, when the call fails, an error to be freed with dsh_error_free(). There is no
 *            "last error" of a thread.
 *
 * Out        Out-parameters come last before `error`. They become NULL or 0 on entry and are written on success only.
 *            They must not be NULL, unless it says so.
 *
 * Handles    Opaque pointers. What a function gives through `X **` is yours: free it with the function of its name.
 *            What is read out of a handle is borrowed from it, and lives as long as it does. `..._free(NULL)` does
 *            nothing. Handles hold on to what they need, so they may be freed in any order.
 *
 * NULL       Pointers are checked: NULL where there must be something is `DSH_E_NULL`, and the message names the
 *            parameter or the field.
 *
 * Threads    A function that takes a handle as pointer to const may be called from any thread at any time, also while
 *            others use the handle: kill during read during wait. Only the `..._free` of a handle must be the last
 *            call on it. No function needs to be called on the thread that called another.
 *
 * Structs    Structs that are passed by pointer begin with `size_t size`, which the caller sets: by `DSH_..._INIT`, or
 *            to `sizeof` after clearing. That lets programs and libraries of different versions work together: fields
 *            are only ever added at the end. Of a shorter struct, the missing fields count as 0. A longer one is taken
 *            when the rest is 0; otherwise it asks for something that this library does not know, and that is
 *            `DSH_E_STRUCT`. A struct that is filled in is filled as far as its `size`. Sizes below 24 or above 65,536
 *            are `DSH_E_STRUCT`. In options, 0 and NULL always mean the default, and unknown flag bits are
 *            `DSH_E_FLAGS`.
 *
 * Text       The command, its input and its output are pointer and length; output is bytes, not promised to be UTF-8.
 *            Paths, names and environment entries are NUL-terminated. Nothing that is passed in is kept or changed:
 *            it is read during the call.
 *
 * Blocking   dsh_run(), dsh_wait(), dsh_executor_shutdown() and dsh_executor_free() wait for commands, and dsh_start()
 *            for as long as `attend_ms` says; nothing else does, but for the first confined command of an executor and
 *            dsh_sandbox_doctor(), which try the backends. A host with an event loop uses dsh_start(),
 *            dsh_executor_event_fd() and dsh_next_event() instead.
 *
 * Fork       In a forked child of the process that made a handle, every function on it gives `DSH_E_FORKED`, touches
 *            nothing and takes no lock; its `..._free` does nothing. Errors can be read and freed there.
 *
 * Failures   A failure inside the library never ends the host: the call gives `DSH_E_PANIC`, and so does every later
 *            call on that handle, which can only be freed. One thing does end it: when the system refuses memory for
 *            something small. Memory for input and output that is refused is an error, or less output in memory.
 *
 * Guest      The library installs no signal handler, changes no signal mask or disposition, directory, limit or
 *            environment of the host, waits only for its own children, and leaves no descriptor open across an exec.
 *
 * Unloading  The library stays loaded after dlclose(), on purpose.
 *
 * This file is generated from src/capi. Change it there.
 */
#ifndef DSH_H
#define DSH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which library this is, and what the system lets it do. ---------------------------------------------------------- */

/// The major version of the header.
#define DSH_VERSION_MAJOR 0

/// The minor version of the header.
#define DSH_VERSION_MINOR 1

/// The patch level of the header.
#define DSH_VERSION_PATCH 0

/// The version of the binary interface: the number in the soname (`libdsh.so.0`). Within one number, functions and
/// constants are only added and structs only grow at their end.
#define DSH_ABI_VERSION 0u

/// Something that not every system can.
typedef uint32_t dsh_feature_t;

/// Processes can be held by descriptor (pidfd), so that no other process is ever signalled by mistake.
#define DSH_FEATURE_PIDFD 1u

/// Children are created without copying the host's page tables. Without it a plain fork is used, which is slower in
/// a big host. The first question creates a child that ends at once.
#define DSH_FEATURE_VFORK 2u

/// The library was built with its guard, which ends commands when the host dies.
#define DSH_FEATURE_GUARD 3u

/// The kernel has Landlock, of this version.
#define DSH_FEATURE_LANDLOCK 4u

/// `bwrap` is in PATH. Whether it works is for dsh_sandbox_doctor() to say.
#define DSH_FEATURE_BUBBLEWRAP 5u

/// The version of the library that was loaded, such as "0.1.0". Static text. Any thread; does not block.
const char *dsh_version(void);

/// The `DSH_ABI_VERSION` of the library that was loaded. Any thread; does not block.
uint32_t dsh_abi_version(void);

/// What this build on this system can: 0 when it can't, and when the number names no feature that this version knows;
/// otherwise 1, or the version of the system's interface where it has versions.
///
/// Any thread; does not block.
uint32_t dsh_feature(dsh_feature_t feature);

/* Status codes. The numbers are part of the ABI: they never change, and new ones are added at the end. ------------ */

/// What a call gives back: `DSH_OK` or one of the negative `DSH_E_...` codes.
typedef int32_t dsh_status_t;

/// It worked; every out-parameter is set.
#define DSH_OK 0

/// A required pointer was NULL; the message names the parameter or field.
#define DSH_E_NULL -1

/// A value that can't be used; the message names the field and the value.
#define DSH_E_INVALID -2

/// A struct has an impossible size, or asks for something that this version does not know.
#define DSH_E_STRUCT -3

/// Unknown flag bits are set.
#define DSH_E_FLAGS -4

/// The command holds a NUL byte, which no command line can carry.
#define DSH_E_COMMAND_NUL -5

/// The name of an environment variable can't be one.
#define DSH_E_ENV_NAME -6

/// The name of an environment variable is in the reserved `DSH_` namespace.
#define DSH_E_ENV_RESERVED -7

/// The environment is larger than the system takes; the message names the largest variables.
#define DSH_E_ENV_TOO_BIG -8

/// The working directory does not exist.
#define DSH_E_WORKDIR_MISSING -9

/// The working directory is something else than a directory.
#define DSH_E_WORKDIR_NOT_DIR -10

/// The working directory may not be entered.
#define DSH_E_WORKDIR_DENIED -11

/// The working directory can't be used for another reason (a loop of links, a name too long).
#define DSH_E_WORKDIR_UNUSABLE -12

/// The shell is not there or can't be executed.
#define DSH_E_SHELL_MISSING -13

/// The cancel token was cancelled before the command was started.
#define DSH_E_CANCELLED -14

/// The executor has been shut down.
#define DSH_E_SHUTDOWN -15

/// The system refused to start the command; stage and errno say where and why.
#define DSH_E_SPAWN -16

/// No confinement backend can be used, so the command was not run.
#define DSH_E_SANDBOX_UNAVAILABLE -17

/// The time given to a wait has passed; what was waited for goes on.
#define DSH_E_TIMED_OUT -18

/// A system call that the library needs failed; stage and errno say which and why.
#define DSH_E_SYSTEM -19

/// Memory was refused.
#define DSH_E_OUT_OF_MEMORY -20

/// The call was made in a forked child of the process that made the handle.
#define DSH_E_FORKED -21

/// The library caught a failure of its own; the handle can only be freed.
#define DSH_E_PANIC -22

/// What a status code means, in a few words. For a message that names the value or the system's reason, see
/// dsh_error_message().
///
/// Gives static text, never NULL; of a number that is no status, "unknown status". Any thread, also in a forked
/// child; does not block.
const char *dsh_status_str(dsh_status_t status);

/* Errors: what went wrong, with the numbers and the names. -------------------------------------------------------- */

/// What went wrong in one call. Owned by whoever called, immutable, readable on any thread at any time and also in a
/// forked child; free it with dsh_error_free().
typedef struct dsh_error_t dsh_error_t;

/// The status code that the failed call gave; of NULL, `DSH_OK`. Does not block.
dsh_status_t dsh_error_code(const dsh_error_t *error);

/// The `errno` of the system call that failed; 0 when none did, and of NULL. Does not block.
int32_t dsh_error_errno(const dsh_error_t *error);

/// Where it went wrong, a lower-case word that stays the same between versions: "argument", "resolve", "environment",
/// "workdir", "shell", "pipe", "script", "clone", "session", "signals", "descriptors", "exec", "guard", "threads",
/// "poll", "wait", "spill" or "sandbox".
///
/// Gives NUL-terminated text that lives as long as the error; of NULL, "". Does not block.
const char *dsh_error_stage(const dsh_error_t *error);

/// The message: names the parameter or field and its value, or the step and the system's reason. For people; its
/// wording may change between versions.
///
/// Gives NUL-terminated text that lives as long as the error; of NULL, "". Does not block.
const char *dsh_error_message(const dsh_error_t *error);

/// Frees an error and the text that it gave. NULL is fine. Does not block.
void dsh_error_free(dsh_error_t *error);

/* Confinement: what a command may do, and what the system has to keep it to that. --------------------------------- */

/// In `dsh_sandbox_t.flags`: a workspace that is a linked git worktree may change those parts of the main repository that
/// a commit needs: not its hooks, and not its configuration.
#define DSH_SANDBOX_GIT_WORKTREE 1ull

/// In `dsh_sandbox_t.flags` of a request: not so, whatever the executor's policy says.
#define DSH_SANDBOX_NO_GIT_WORKTREE 2ull

/// What confinement this system has. Yours; immutable.
typedef struct dsh_doctor_t dsh_doctor_t;

/// What carries a confinement out.
typedef uint32_t dsh_backend_t;

/// How much of the file system a command may change.
typedef uint32_t dsh_sandbox_mode_t;

/// How much of the network a command may use.
typedef uint32_t dsh_network_t;

/// What a confined command may do. Zero and NULL mean what the executor's policy says, and there the default. Everything
/// it points to is read during the call only. Paths are absolute; they are resolved once, symbolic links followed.
typedef struct {
    /// `sizeof(dsh_sandbox_t)`.
    size_t size;
    /// The directory that `DSH_SANDBOX_WORKSPACE_WRITE` lets a command change. Default: the executor's `cwd`, whatever the
    /// request's `workdir` is.
    const char *workspace;
    /// Further paths that `DSH_SANDBOX_WORKSPACE_WRITE` lets a command change. They have to exist.
    const char *const *writable;
    /// How many there are; 65,536 at most.
    size_t writable_len;
    /// Paths whose contents a command does not get to see. Those that do not exist are passed over.
    const char *const *hidden;
    /// How many there are; 65,536 at most.
    size_t hidden_len;
    /// The backends to be tried, in this order: `DSH_BACKEND_...`. Default: the runner if there is one, then all of the
    /// system, bubblewrap before Landlock.
    const dsh_backend_t *backends;
    /// How many there are; 16 at most.
    size_t backends_len;
    /// The caller's own sandbox: a program (absolute, or found in PATH) and its first arguments, after which come the
    /// shell, `-c` and the command. It finds the policy in DSH_SANDBOX_MODE, DSH_SANDBOX_WORKSPACE, DSH_SANDBOX_WRITABLE
    /// (a list with `:`) and DSH_SANDBOX_NETWORK, and is trusted to enforce it.
    const char *const *runner;
    /// How many there are; 65,536 at most.
    size_t runner_len;
    /// A line on stderr that contains one of these, whatever the case, says together with a non-zero exit that the runner
    /// itself failed and the command did not run. Required with a runner.
    const char *const *runner_failures;
    /// How many there are; 65,536 at most.
    size_t runner_failures_len;
    /// `DSH_SANDBOX_...GIT_WORKTREE` bits. Others are refused.
    uint64_t flags;
    /// `DSH_SANDBOX_...`
    dsh_sandbox_mode_t mode;
    /// `DSH_NETWORK_...`
    dsh_network_t network;
} dsh_sandbox_t;

/// What was found out about one backend by really running something under it. Part of lists; it never grows.
typedef struct {
    /// What was tried.
    const char *tried;
    /// What came back.
    const char *message;
    /// What would mend it. NULL when it works.
    const char *remedy;
    /// Which backend.
    dsh_backend_t backend;
    /// 1 when it confines commands here.
    uint32_t usable;
    /// 1 when it also gives them a network of their own, or none.
    uint32_t network;
    /// The version of its interface; 0 when it has none.
    uint32_t version;
    /// The `errno` of what failed; 0 when nothing did, or no system call.
    int32_t error_number;
    /// 0.
    uint32_t reserved;
} dsh_backend_report_t;

/// What the doctor found. What it points to lives as long as the doctor.
typedef struct {
    /// `sizeof(dsh_doctor_info_t)`, set by the caller.
    size_t size;
    /// The whole report as text for people.
    const char *text;
    /// The backends in the order in which they are tried by default.
    const dsh_backend_report_t *backends;
    /// How many there are.
    size_t backends_len;
    /// Facts of the system that decide about them, `NAME=VALUE` each.
    const char *const *facts;
    /// How many there are.
    size_t facts_len;
} dsh_doctor_info_t;

/// In a policy: what the executor's policy says, and there `DSH_SANDBOX_READ_ONLY`. In facts: nobody has asked for
/// confinement.
#define DSH_SANDBOX_DEFAULT 0u

/// Nothing but /dev/null and a private directory for temporary files, in TMPDIR.
#define DSH_SANDBOX_READ_ONLY 1u

/// That, and the workspace with everything below it, and further writable paths.
#define DSH_SANDBOX_WORKSPACE_WRITE 2u

/// No confinement.
#define DSH_SANDBOX_DANGER_FULL_ACCESS 3u

/// What the executor's policy says, and there `DSH_NETWORK_FULL`.
#define DSH_NETWORK_DEFAULT 0u

/// Whatever the host can reach.
#define DSH_NETWORK_FULL 1u

/// A loopback interface of the command's own: its processes reach each other, and nobody else. Bubblewrap only.
#define DSH_NETWORK_LOOPBACK 2u

/// No sockets but those of the file system (AF_UNIX), which can be reached as far as its permissions let them, and of
/// the kernel's own services (AF_NETLINK).
#define DSH_NETWORK_NONE 3u

/// None: full access, or no confinement.
#define DSH_BACKEND_NONE 0u

/// `bwrap`: namespaces, so that what is forbidden is not even there (Linux).
#define DSH_BACKEND_BUBBLEWRAP 1u

/// Landlock, in the command itself and without a helper program (Linux 5.13).
#define DSH_BACKEND_LANDLOCK 2u

/// `sandbox-exec` (macOS). Never run.
#define DSH_BACKEND_SEATBELT 3u

/// The caller's own program.
#define DSH_BACKEND_RUNNER 4u

/// Makes a policy all zero but for its size: `dsh_sandbox_init(&sandbox, sizeof sandbox)`.
///
/// `DSH_E_NULL`, or `DSH_E_STRUCT` for an impossible size; then nothing is written. Any thread; does not block.
dsh_status_t dsh_sandbox_init(dsh_sandbox_t *sandbox, size_t size);

/// The name of a mode: "read-only", "workspace-write" or "danger-full-access"; of any other number "". Static text. Any
/// thread, also in a forked child; does not block.
const char *dsh_sandbox_mode_str(dsh_sandbox_mode_t mode);

/// Whether `mode` is strictly wider than `than`: 1 or 0; 0 when either is no mode. What a caller could ask for when a
/// command was denied something. Any thread, also in a forked child; does not block.
uint32_t dsh_sandbox_is_wider(dsh_sandbox_mode_t mode, dsh_sandbox_mode_t than);

/// Tries every backend of the system with a shell that does nothing, and reports what works, why not more, and what
/// would mend it. Needs no executor. The report is yours; free it with dsh_doctor_free().
///
/// Blocks for some milliseconds per backend, and 10 seconds at most when one hangs. Any thread.
dsh_status_t dsh_sandbox_doctor(dsh_doctor_t **doctor, dsh_error_t **error);

/// Fills in what the doctor found. Any thread; does not block.
dsh_status_t dsh_doctor_info(const dsh_doctor_t *doctor, dsh_doctor_info_t *info, dsh_error_t **error);

/// Frees a report and the text that it gave. NULL is fine. Any thread, as the last call; does not block.
void dsh_doctor_free(dsh_doctor_t *doctor);

/* Budgets: what an executor allows. ------------------------------------------------------------------------------- */

/// In `dsh_config_t.flags`: commands get nothing of the host's environment.
#define DSH_CONFIG_NO_INHERIT_ENV 1ull

/// In `dsh_config_t.flags`: commands go on when the host dies.
#define DSH_CONFIG_NO_GUARD 2ull

/// In `dsh_config_t.flags`: spill files are left behind when the executor ends.
#define DSH_CONFIG_KEEP_SPILL_FILES 4ull

/// The budgets of an executor as they were at one moment, with every default filled in. Yours; immutable.
typedef struct dsh_settings_t dsh_settings_t;

/// Which part of a stream stays in memory once it is longer than its cap.
typedef uint32_t dsh_keep_t;

/// What an executor is to allow. Zero and NULL mean the default. Everything it points to is read during the call only.
typedef struct {
    /// `sizeof(dsh_config_t)`.
    size_t size;
    /// Working directory of requests that name none, and the base of relative ones. Default: the host's, at each call.
    const char *cwd;
    /// The shell, a bash; a name without `/` is looked for in PATH, once. Default "bash".
    const char *shell;
    /// Where the private directory for spill files is made. Can't change while the executor lives. Default: TMPDIR of
    /// the host, or /tmp.
    const char *spill_dir;
    /// Globs (`*`, `?`) on names of host variables that are passed on although they look like credentials.
    const char *const *env_allow;
    /// How many there are; 65,536 at most.
    size_t env_allow_len;
    /// Globs on names of host variables that are not passed on.
    const char *const *env_deny;
    /// How many there are; 65,536 at most.
    size_t env_deny_len;
    /// Timeout in milliseconds of foreground requests that name none. Default 120,000.
    uint64_t timeout_ms;
    /// The most that any request gets, in milliseconds; it caps the default too. Default 600,000.
    uint64_t max_timeout_ms;
    /// Bytes of each stream kept in memory. Default 64,000.
    uint64_t max_output_bytes;
    /// Bytes of each stream kept on disk; a longer stream has no spill file. Default 67,108,864.
    uint64_t max_spill_bytes;
    /// Bytes of all spill files together, beyond which no new one is begun. Default 1,073,741,824.
    uint64_t max_total_spill_bytes;
    /// Milliseconds from SIGTERM to SIGKILL. Default 3,000.
    uint64_t grace_ms;
    /// Milliseconds that open pipes are waited for after the shell has exited. Default: `grace_ms`.
    uint64_t drain_ms;
    /// `DSH_CONFIG_...` bits. Others are refused.
    uint64_t flags;
    /// Which part of a long stream stays in memory.
    dsh_keep_t keep;
    /// Must be 0.
    uint32_t reserved;
    /// The policy under which commands are confined, where their requests say nothing else. Default: no confinement. In
    /// settings, it tells whether and how the executor confines.
    const dsh_sandbox_t *sandbox;
} dsh_config_t;

/// The last bytes: errors and results come at the end. The default.
#define DSH_KEEP_TAIL 0u

/// Half the cap from the beginning, half from the end, and the exact count of what was left out between.
#define DSH_KEEP_HEAD_TAIL 1u

/// Makes a config all zero but for its size: `dsh_config_init(&config, sizeof config)`.
///
/// `DSH_E_NULL`, or `DSH_E_STRUCT` for an impossible size; then nothing is written. Any thread; does not block.
dsh_status_t dsh_config_init(dsh_config_t *config, size_t size);

/// Fills in a config with the settings. It can be changed and given to dsh_executor_configure(); what it points to
/// lives as long as the settings.
///
/// Any thread; does not block.
dsh_status_t dsh_settings_info(const dsh_settings_t *settings, dsh_config_t *config, dsh_error_t **error);

/// Frees settings and the text that they gave. NULL is fine. Any thread, as the last call; does not block.
void dsh_settings_free(dsh_settings_t *settings);

/* The executor. --------------------------------------------------------------------------------------------------- */

/// Runs commands, and owns what it runs until nothing of it is alive: budgets, two threads, every live process, the
/// spill directory and the guard.
typedef struct dsh_executor_t dsh_executor_t;

/// How children are created.
typedef uint32_t dsh_spawn_path_t;

/// What an executor is doing at one moment.
typedef struct {
    /// `sizeof(dsh_stats_t)`, set by the caller.
    size_t size;
    /// Processes of which something may be alive.
    uint64_t live;
    /// Processes that have come and gone.
    uint64_t ended;
    /// Bytes in spill files.
    uint64_t spill_bytes;
    /// Threads that the executor runs: 2, and 0 after its shutdown.
    uint64_t threads;
    /// How children are created: `DSH_SPAWN_...`.
    dsh_spawn_path_t spawn_path;
    /// The pid of the guard; 0 while there is none.
    int32_t guard_pid;
} dsh_stats_t;

/// A clone that shares the host's memory until the shell is executed: the cost does not grow with the host.
#define DSH_SPAWN_VFORK 1u

/// A plain fork, where memory is not really shared by a clone (emulators) or pidfds are not there.
#define DSH_SPAWN_FORK 2u

/// The spawn call of systems other than Linux.
#define DSH_SPAWN_PORTABLE 3u

/// Makes an executor. `config` may be NULL, for all defaults. Yours; free it with dsh_executor_free(). It starts two
/// threads with all signals blocked, and removes spill directories that hosts which died have left.
///
/// `DSH_E_INVALID` and `DSH_E_SHELL_MISSING` (the message names the field), `DSH_E_STRUCT`, `DSH_E_FLAGS`,
/// `DSH_E_SYSTEM`. Any thread; does not block but for the file system.
dsh_status_t dsh_executor_new(const dsh_config_t *config, dsh_executor_t **executor, dsh_error_t **error);

/// Replaces all budgets. Commands that run keep theirs, the next one gets the new ones. Budgets that can't be used are
/// refused, and the executor stays on its last good ones. To change only some, begin with dsh_executor_config().
///
/// Errors as of dsh_executor_new(). Any thread; does not block but for the file system.
dsh_status_t dsh_executor_configure(const dsh_executor_t *executor, const dsh_config_t *config, dsh_error_t **error);

/// The budgets in force, with every default filled in: a copy that later changes do not touch. Yours; read it with
/// dsh_settings_info() and free it with dsh_settings_free().
///
/// Any thread; does not block.
dsh_status_t dsh_executor_config(const dsh_executor_t *executor, dsh_settings_t **settings, dsh_error_t **error);

/// Ends every process tree that the executor owns, and waits until they are gone. No command is started any more
/// (`DSH_E_SHUTDOWN`); handles of processes and results stay readable. Any number of calls, from any thread.
///
/// Blocks for `timeout_ms` at most; 0 means the default, which is the longest grace of what is live and one second. `DSH_E_TIMED_OUT` when
/// something is still being ended then; the call may be repeated.
dsh_status_t dsh_executor_shutdown(const dsh_executor_t *executor,
                                   uint64_t timeout_ms,
                                   dsh_error_t **error);

/// Shuts the executor down, unless that was done, and frees it. NULL is fine.
///
/// Any thread, as the last call on this handle. Blocks as dsh_executor_shutdown() with timeout 0.
void dsh_executor_free(dsh_executor_t *executor);

/// What the executor is doing now. Any thread; does not block.
dsh_status_t dsh_executor_stats(const dsh_executor_t *executor, dsh_stats_t *stats, dsh_error_t **error);

/* Cancel tokens. -------------------------------------------------------------------------------------------------- */

/// A switch that ends commands: thrown once, for any number of requests, from any thread.
typedef struct dsh_cancel_t dsh_cancel_t;

/// Makes a token that has not been cancelled. Yours; free it with dsh_cancel_free().
///
/// Any thread; does not block.
dsh_status_t dsh_cancel_new(dsh_cancel_t **cancel, dsh_error_t **error);

/// Ends every command that runs with this token, as dsh_kill() does, and every one that will be asked to is refused
/// with `DSH_E_CANCELLED`. Once is enough; again does nothing.
///
/// Any thread; does not wait for the commands to end.
dsh_status_t dsh_cancel(const dsh_cancel_t *cancel, dsh_error_t **error);

/// Whether the token has been cancelled: `*is_cancelled` becomes 1 or 0.
///
/// Any thread; does not block.
dsh_status_t dsh_is_cancelled(const dsh_cancel_t *cancel, uint32_t *is_cancelled, dsh_error_t **error);

/// Frees a token. Commands that run with it go on, and can no longer be cancelled by it. NULL is fine.
///
/// Any thread, as the last call on this handle; does not block.
void dsh_cancel_free(dsh_cancel_t *cancel);

/* What a caller asks. --------------------------------------------------------------------------------------------- */

/// In `dsh_request_t.flags`: stderr goes through stdout's pipe, so that both are kept in their order of arrival.
/// Without it, the order between the two is not known.
#define DSH_REQUEST_MERGE_STDERR 1ull

/// In `dsh_request_t.flags`: dsh_start() starts a foreground run that its caller does not wait for. `timeout_ms` and
/// `stdout_max_bytes` apply, the process settles only once a forced stop is through, and dsh_process_result() then gives
/// what dsh_run() would have given. For hosts with an event loop; dsh_run() does so anyway.
#define DSH_REQUEST_FOREGROUND 2ull

/// What happens to descendants that are still alive when a command has ended by itself.
typedef uint32_t dsh_survivors_t;

/// A command and the terms it is to run under. Zero and NULL mean the executor's default. Everything it points to is
/// read during the call only.
typedef struct {
    /// `sizeof(dsh_request_t)`.
    size_t size;
    /// The text for `bash -c`: any bytes but NUL, of any length. Required.
    const char *command;
    /// Its length in bytes.
    size_t command_len;
    /// Working directory; a relative one is taken from the executor's `cwd`.
    const char *workdir;
    /// Bytes for the command's stdin, which is closed after them. NULL gives it /dev/null; a pointer with length 0
    /// gives it an empty stdin; NULL with a length is `DSH_E_NULL`.
    const void *input;
    /// How many bytes.
    size_t input_len;
    /// Environment entries over the host's: `NAME=VALUE` sets, `NAME` alone removes. Names in `DSH_` are refused.
    const char *const *env;
    /// How many entries; 65,536 at most.
    size_t env_len;
    /// Trusted entries in the `DSH_` namespace: `DSH_NAME=VALUE` only.
    const char *const *dsh_env;
    /// How many entries; 65,536 at most.
    size_t dsh_env_len;
    /// Ends the command when cancelled. The handle may be freed once the call with this request has returned.
    const dsh_cancel_t *cancel;
    /// Timeout in milliseconds, capped by the executor's `max_timeout_ms`. Ignored by dsh_start()
    /// without `DSH_REQUEST_FOREGROUND`.
    uint64_t timeout_ms;
    /// Bytes of stdout kept in memory. Ignored by dsh_start() without `DSH_REQUEST_FOREGROUND`.
    uint64_t stdout_max_bytes;
    /// Any number of the caller's; comes back in events and in dsh_process_info().
    uint64_t tag;
    /// `DSH_REQUEST_...` bits. Others are refused.
    uint64_t flags;
    /// What happens to descendants that outlive the command.
    dsh_survivors_t survivors;
    /// Must be 0.
    uint32_t reserved;
    /// The policy to confine the command under, where it differs from the executor's. NULL: the executor's.
    const dsh_sandbox_t *sandbox;
    /// For dsh_start() with `DSH_REQUEST_FOREGROUND`: for so many milliseconds the call itself drives the process, as
    /// dsh_run() does, and returns when it has settled; otherwise the library's threads go on with it. A short command is
    /// spared the way through another thread. Of what happens meanwhile no events tell, but that there is output or an
    /// exit when it goes on; so look whether it has settled first, by dsh_wait() with a limit of 0. 0: not at all.
    uint64_t attend_ms;
} dsh_request_t;

/// They stay, owned by the executor: listed in the result, their pipes drained, ended with the executor. The default.
#define DSH_SURVIVORS_KEEP 0u

/// They are ended before the result is there: at once, or, while they hold the output pipes, after `drain_ms`.
#define DSH_SURVIVORS_KILL 1u

/// Makes a request all zero but for its size: `dsh_request_init(&request, sizeof request)`.
///
/// `DSH_E_NULL`, or `DSH_E_STRUCT` for an impossible size; then nothing is written. Any thread; does not block.
dsh_status_t dsh_request_init(dsh_request_t *request, size_t size);

/* What would run. ------------------------------------------------------------------------------------------------- */

/// A request with every default and cap applied. Yours; immutable.
typedef struct dsh_spec_t dsh_spec_t;

/// What would run. What it points to lives as long as the spec.
typedef struct {
    /// `sizeof(dsh_spec_info_t)`, set by the caller.
    size_t size;
    /// The text for the shell's `-c`; NUL-terminated too.
    const char *command;
    /// Its length in bytes.
    size_t command_len;
    /// The absolute path of the shell.
    const char *shell;
    /// The absolute working directory.
    const char *workdir;
    /// Names of host variables that the command does not get because they look like credentials or are denied.
    const char *const *scrubbed;
    /// How many there are.
    size_t scrubbed_len;
    /// The effective timeout in milliseconds of a foreground run.
    uint64_t timeout_ms;
    /// Bytes of stdout kept in memory by a foreground run.
    uint64_t stdout_max_bytes;
    /// Bytes of stderr, and of a background process's stdout, kept in memory.
    uint64_t max_output_bytes;
    /// Milliseconds from SIGTERM to SIGKILL.
    uint64_t grace_ms;
    /// Milliseconds that open pipes are waited for after the shell has exited.
    uint64_t drain_ms;
    /// The request's tag.
    uint64_t tag;
    /// The request's flags.
    uint64_t flags;
    /// What happens to descendants that outlive the command.
    dsh_survivors_t survivors;
    /// The mode that it would be confined under; `DSH_SANDBOX_DEFAULT` when nobody has asked for confinement.
    dsh_sandbox_mode_t sandbox_mode;
} dsh_spec_info_t;

/// Tells what would run, and starts nothing. Yours; free it with dsh_spec_free().
///
/// The errors that dsh_run() gives for its request, but not `DSH_E_CANCELLED`; whether the workdir can be entered is
/// found out only by running.
/// Any thread; does not block.
dsh_status_t dsh_resolve(const dsh_executor_t *executor,
                         const dsh_request_t *request,
                         dsh_spec_t **spec,
                         dsh_error_t **error);

/// Fills in what is known of a spec. Any thread; does not block.
dsh_status_t dsh_spec_info(const dsh_spec_t *spec, dsh_spec_info_t *info, dsh_error_t **error);

/// Frees a spec and the text that it gave. NULL is fine. Any thread, as the last call; does not block.
void dsh_spec_free(dsh_spec_t *spec);

/* How a command ended, in the foreground or in the background. ---------------------------------------------------- */

/// How the shell ended: by a code or by a signal, never both, never one made up from the other.
typedef uint32_t dsh_exit_t;

/// Who stops a command.
typedef uint32_t dsh_stop_t;

/// How far a forced stop had to go.
typedef uint32_t dsh_stop_stage_t;

/// How a command ended. Part of other structs; it never grows.
typedef struct {
    /// How the shell ended: `DSH_EXIT_...`.
    dsh_exit_t exit;
    /// The exit code, 0 to 255, with `DSH_EXIT_CODE`; otherwise -1.
    int32_t code;
    /// The number of the signal, with `DSH_EXIT_SIGNAL`; otherwise 0.
    int32_t signal;
    /// 1 when that signal had memory dumped.
    uint32_t core_dumped;
    /// 1 when the timeout was the first cause to cut the command short, whatever it then exited with.
    uint32_t timed_out;
    /// 1 when a cancellation, kill or shutdown was the first cause to cut the command short. Never with `timed_out`.
    uint32_t aborted;
    /// The first cause that cut the command short while it ran; `DSH_STOP_NONE` when it ended by itself.
    dsh_stop_t cause;
    /// Who first ordered a stop, also of what was left behind after the command's own end.
    dsh_stop_t stopped_by;
    /// How far that stop had to go: `DSH_STOP_STAGE_...`.
    dsh_stop_stage_t stage;
    /// 1 when something still held the output pipes when `drain_ms` had passed.
    uint32_t pipes_held;
    /// Microseconds from the start until the shell's end.
    uint64_t wall_us;
    /// Microseconds of CPU time in user mode, of the shell and the descendants that it waited for.
    uint64_t user_us;
    /// The same in the kernel.
    uint64_t system_us;
    /// Peak resident memory in bytes of the largest of them.
    uint64_t max_rss_bytes;
} dsh_outcome_t;

/// A process that is still alive. Part of lists; it never grows.
typedef struct {
    /// When it started, in clock ticks since boot: with it, the pid can't be mistaken for a later process.
    uint64_t start_time;
    /// Its pid.
    int32_t pid;
    /// 0.
    uint32_t reserved;
} dsh_survivor_t;

/// It has not ended yet.
#define DSH_EXIT_NONE 0u

/// It exited with `code`.
#define DSH_EXIT_CODE 1u

/// `signal` ended it.
#define DSH_EXIT_SIGNAL 2u

/// It has ended, but the host took its status away (by ignoring SIGCHLD or reaping strangers) on a system that can't
/// tell it again.
#define DSH_EXIT_UNKNOWN 3u

/// Nobody.
#define DSH_STOP_NONE 0u

/// The timeout passed.
#define DSH_STOP_TIMEOUT 1u

/// The cancel token was cancelled.
#define DSH_STOP_CANCEL 2u

/// The process was killed through its handle.
#define DSH_STOP_KILL 3u

/// The executor was shut down.
#define DSH_STOP_SHUTDOWN 4u

/// The command had ended by itself, and the request's policy was to end what it left behind.
#define DSH_STOP_SURVIVORS 5u

/// Nothing was signalled.
#define DSH_STOP_STAGE_NONE 0u

/// SIGTERM (and SIGCONT) was enough.
#define DSH_STOP_STAGE_TERM 1u

/// SIGKILL was sent to something that was still alive after the grace.
#define DSH_STOP_STAGE_KILL 2u

/* What a foreground run gave. ------------------------------------------------------------------------------------- */

/// What a foreground run gave. Yours; immutable.
typedef struct dsh_result_t dsh_result_t;

/// One stream as it was kept. Part of other structs; it never grows.
typedef struct {
    /// What was kept in memory, bytes that are not promised to be UTF-8; not NUL-terminated. Never NULL.
    const void *data;
    /// How many bytes that are.
    size_t len;
    /// Bytes that the command wrote.
    uint64_t total;
    /// Bytes that were left out of `data`.
    uint64_t omitted;
    /// Where in `data` they are missing: an offset, 0 when only the tail was kept.
    uint64_t omitted_at;
    /// The file that holds the whole stream from its first byte. NULL when memory was enough, or `spill_error` is set.
    const char *spill_path;
    /// Why there is no such file although memory was not enough; otherwise NULL.
    const char *spill_error;
} dsh_captured_t;

/// What a foreground run gave. What it points to lives as long as the result.
typedef struct {
    /// `sizeof(dsh_result_info_t)`, set by the caller.
    size_t size;
    /// How the command ended.
    dsh_outcome_t outcome;
    /// Its stdout (both streams, when they were merged).
    dsh_captured_t out;
    /// Its stderr.
    dsh_captured_t err;
    /// The pids that held the output pipes when the drain limit passed, as far as they could be seen. NULL when none.
    const int32_t *held_by;
    /// How many there are.
    size_t held_by_len;
    /// Descendants that were still alive. NULL when none.
    const dsh_survivor_t *survivors;
    /// How many there are.
    size_t survivors_len;
    /// Names of host variables that the command did not get because they look like credentials or are denied.
    const char *const *scrubbed;
    /// How many there are.
    size_t scrubbed_len;
    /// The effective timeout in milliseconds.
    uint64_t timeout_ms;
    /// Bytes of input that the command took, or that were left in the pipe for it.
    uint64_t input_written;
    /// The library's number of the process, unique in its executor.
    uint64_t process_id;
} dsh_result_info_t;

/// Runs a command in a fresh, non-interactive `bash -c` and waits for its result. Everything that a command can do,
/// exits and timeouts included, is a result; an error means that it was not run. The result is yours; free it with
/// dsh_result_free().
///
/// Blocks until the command has settled: its exit is known, and its output is complete or `drain_ms` have passed. The
/// timeout bounds that; dsh_cancel() and dsh_executor_shutdown() from another thread end it. Any thread, any number at
/// a time.
///
/// Errors of the request: `DSH_E_STRUCT`, `DSH_E_FLAGS`, `DSH_E_INVALID`, `DSH_E_COMMAND_NUL`, `DSH_E_ENV_NAME`,
/// `DSH_E_ENV_RESERVED`, `DSH_E_ENV_TOO_BIG`, `DSH_E_CANCELLED`. Of the place: `DSH_E_WORKDIR_MISSING`,
/// `DSH_E_WORKDIR_NOT_DIR`, `DSH_E_WORKDIR_DENIED`, `DSH_E_WORKDIR_UNUSABLE`, `DSH_E_SHELL_MISSING`. Of the system:
/// `DSH_E_SPAWN`, `DSH_E_SYSTEM`, `DSH_E_SANDBOX_UNAVAILABLE`. Of the executor: `DSH_E_SHUTDOWN`.
dsh_status_t dsh_run(const dsh_executor_t *executor,
                     const dsh_request_t *request,
                     dsh_result_t **result,
                     dsh_error_t **error);

/// Fills in what a result holds. Any thread; does not block.
dsh_status_t dsh_result_info(const dsh_result_t *result, dsh_result_info_t *info, dsh_error_t **error);

/// Frees a result and everything that it gave. NULL is fine. Any thread, as the last call; does not block.
void dsh_result_free(dsh_result_t *result);

/* A process in the background. ------------------------------------------------------------------------------------ */

/// For dsh_wait(): no limit.
#define DSH_WAIT_FOREVER 18446744073709551615ull

/// A command in the background: the shell and all its descendants.
typedef struct dsh_process_t dsh_process_t;

/// What has become of a background process. Set once.
typedef uint32_t dsh_process_status_t;

/// What is known of a background process at one moment.
typedef struct {
    /// `sizeof(dsh_process_info_t)`, set by the caller.
    size_t size;
    /// How it ended; `DSH_EXIT_NONE` while the shell's end is not known.
    dsh_outcome_t outcome;
    /// The library's number of the process, unique in its executor; also in events.
    uint64_t process_id;
    /// The request's tag.
    uint64_t tag;
    /// Bytes of stdout (both streams, when they are merged) seen so far.
    uint64_t out_total;
    /// Bytes of stderr seen so far.
    uint64_t err_total;
    /// Bytes of input that the command took, or that were left in the pipe for it.
    uint64_t input_written;
    /// The shell's pid. Its number may belong to somebody else once the process has settled.
    int32_t pid;
    /// What has become of it: `DSH_PROCESS_...`.
    dsh_process_status_t status;
    /// 1 when nothing of the tree is alive any more.
    uint32_t quiescent;
    /// 0.
    uint32_t reserved;
    /// How many descendants are still alive, see dsh_process_survivors().
    uint64_t survivors_len;
    /// How many held the output pipes when the drain limit passed, see dsh_process_held_by().
    uint64_t held_by_len;
} dsh_process_info_t;

/// It has not settled yet.
#define DSH_PROCESS_RUNNING 1u

/// It ended by itself, with whatever code.
#define DSH_PROCESS_COMPLETED 2u

/// It was killed or cancelled, or died of a signal.
#define DSH_PROCESS_KILLED 3u

/// Starts a command in the background and returns at once. No timeout applies, unless the request says
/// `DSH_REQUEST_FOREGROUND`. The process is the executor's until
/// nothing of it is alive, whether or not the handle is kept. The handle is yours; free it with dsh_process_free().
///
/// Errors as of dsh_run(). Any thread; does not block, but for the request's `attend_ms`.
dsh_status_t dsh_start(const dsh_executor_t *executor,
                       const dsh_request_t *request,
                       dsh_process_t **process,
                       dsh_error_t **error);

/// Ends the whole tree: SIGTERM and SIGCONT, and after `grace_ms` SIGKILL to what is still alive, descendants that left
/// their session included. What a command that has ended left behind is ended too.
///
/// `*was_running` becomes 1 when there was still a command to be killed: once, and never after its own end; otherwise
/// 0. `was_running` may be NULL. Any thread; does not wait for the end.
dsh_status_t dsh_kill(const dsh_process_t *process, uint32_t *was_running, dsh_error_t **error);

/// Waits until the process has settled: its exit is known, and its output is complete or `drain_ms` have passed.
///
/// Blocks for `timeout_ms` at most; 0 only looks, and `DSH_WAIT_FOREVER` has no limit. `DSH_E_TIMED_OUT` when it has
/// not settled by then, which changes nothing about the process. Any thread, any number at a time.
dsh_status_t dsh_wait(const dsh_process_t *process, uint64_t timeout_ms, dsh_error_t **error);

/// Fills in what is known of the process now. Any thread; does not block.
dsh_status_t dsh_process_info(const dsh_process_t *process, dsh_process_info_t *info, dsh_error_t **error);

/// What a process gave, as dsh_run() gives it, once it has settled. Of a process that was started with
/// `DSH_REQUEST_FOREGROUND` exactly what dsh_run() would have given; of any other what it has given so far, with
/// `timeout_ms` 0. Yours, each time it is asked for; free it with dsh_result_free().
///
/// `DSH_E_TIMED_OUT` when it has not settled yet. Any thread; does not block.
dsh_status_t dsh_process_result(const dsh_process_t *process, dsh_result_t **result, dsh_error_t **error);

/// Descendants that are still alive after the command's end, as a list that is filled: at most `capacity` of them are
/// written to `buffer`, and `*count` becomes how many there are. With capacity 0, `buffer` may be NULL.
///
/// Any thread; does not block.
dsh_status_t dsh_process_survivors(const dsh_process_t *process,
                                   dsh_survivor_t *buffer,
                                   size_t capacity,
                                   size_t *count,
                                   dsh_error_t **error);

/// The pids that held the output pipes when the drain limit passed, as far as they could be seen: a list that is filled
/// as by dsh_process_survivors().
///
/// Any thread; does not block.
dsh_status_t dsh_process_held_by(const dsh_process_t *process,
                                 int32_t *buffer,
                                 size_t capacity,
                                 size_t *count,
                                 dsh_error_t **error);

/// Frees the handle. The process goes on, owned by the executor; its events end. NULL is fine.
///
/// Any thread, as the last call on this handle; does not block.
void dsh_process_free(dsh_process_t *process);

/* What is known of the confinement of a command. ------------------------------------------------------------------ */

/// How much of the policy the backend enforces.
typedef uint32_t dsh_enforcement_t;

/// Whether the confinement has kept a command from something.
typedef uint32_t dsh_denied_t;

/// What is known of the confinement of a command. What it points to lives as long as the handle that it was read out of.
typedef struct {
    /// `sizeof(dsh_sandbox_facts_t)`, set by the caller.
    size_t size;
    /// The workspace without symbolic links. NULL under full access.
    const char *workspace;
    /// What the policy says and the backend can't enforce here, a name each: "metadata" (modes, owners, times and
    /// attributes of files), "hidden-names", "truncate", "ioctl-dev", "signal", "abstract-unix-socket",
    /// "private-loopback". NULL when nothing.
    const char *const *missing;
    /// How many there are.
    size_t missing_len;
    /// The path that the command was kept from, absolute; with `DSH_DENIED_UNKNOWN` one that it tried and may have done
    /// without. NULL when there is none.
    const char *denied_path;
    /// The rule that forbids it, in a few words. NULL when there is no such path.
    const char *denied_rule;
    /// Why the backend failed to set itself up, in which case the command did not run. NULL when it did not fail. Of
    /// processes only: dsh_run() and dsh_process_result() give `DSH_E_SANDBOX_UNAVAILABLE`.
    const char *runner_failed;
    /// The mode that it ran under; `DSH_SANDBOX_DEFAULT` when nobody has asked for confinement, and then everything else
    /// here is 0.
    dsh_sandbox_mode_t mode;
    /// What confined it.
    dsh_backend_t backend;
    /// How much is enforced.
    dsh_enforcement_t enforcement;
    /// Whether it was kept from something; known once the process has settled.
    dsh_denied_t denied;
    /// The network that it could use.
    dsh_network_t network;
    /// 0.
    uint32_t reserved;
} dsh_sandbox_facts_t;

/// Nothing: full access, or no confinement.
#define DSH_ENFORCEMENT_NONE 0u

/// All of it.
#define DSH_ENFORCEMENT_FULL 1u

/// Not what `missing` names.
#define DSH_ENFORCEMENT_PARTIAL 2u

/// There is no telling (yet), or it did not matter to the command.
#define DSH_DENIED_UNKNOWN 0u

/// Nothing shows that it has.
#define DSH_DENIED_NO 1u

/// It has.
#define DSH_DENIED_YES 2u

/// Fills in what is known of the confinement of a run. Any thread; does not block.
dsh_status_t dsh_result_sandbox(const dsh_result_t *result, dsh_sandbox_facts_t *facts, dsh_error_t **error);

/// Fills in what is known of the confinement of a process; final once it has settled. Any thread; does not block.
dsh_status_t dsh_process_sandbox(const dsh_process_t *process, dsh_sandbox_facts_t *facts, dsh_error_t **error);

/* Reading the output of a background process. --------------------------------------------------------------------- */

/// What one consuming read gave. Yours; immutable.
typedef struct dsh_chunk_t dsh_chunk_t;

/// What one consuming read gave. What it points to lives as long as the chunk.
typedef struct {
    /// `sizeof(dsh_chunk_info_t)`, set by the caller.
    size_t size;
    /// The text: bytes that are not promised to be UTF-8; not NUL-terminated. Never NULL.
    const void *data;
    /// How many bytes; 0 when there was nothing new.
    size_t len;
    /// Bytes of stdout that had slid out of memory before this read, and are not in it.
    uint64_t out_missing;
    /// Bytes of stderr that had.
    uint64_t err_missing;
    /// The file that holds the whole stdout; NULL when there is none.
    const char *out_spill_path;
    /// The file that holds the whole stderr; NULL when there is none.
    const char *err_spill_path;
    /// 1 when anything is missing.
    uint32_t lossy;
    /// 1 when both streams have ended and everything has been given.
    uint32_t end;
} dsh_chunk_info_t;

/// One of the two streams of a process.
typedef uint32_t dsh_stream_t;

/// What one read by offset gave.
typedef struct {
    /// `sizeof(dsh_reading_t)`, set by the caller.
    size_t size;
    /// The offset of the first byte given; above the one that was asked for when the read is lossy.
    uint64_t start;
    /// How many bytes were written to the buffer.
    uint64_t len;
    /// The offset to ask for next.
    uint64_t next;
    /// Bytes between the offset that was asked for and `start`, which had slid out of memory. The whole stream may be
    /// in a file, see dsh_process_spill_path().
    uint64_t missing;
    /// 1 when anything is missing.
    uint32_t lossy;
    /// 1 when the stream has ended and this read reached its end.
    uint32_t end;
} dsh_reading_t;

/// Standard output (and standard error, when they are merged).
#define DSH_STDOUT 1u

/// Standard error.
#define DSH_STDERR 2u

/// Takes what both streams got since the last call, as one text: new stdout, then, when there is new stderr,
/// `[stderr]` on a line of its own and that. No byte is given twice. An incomplete UTF-8 sequence at the end waits for
/// the next call. The chunk is yours; free it with dsh_chunk_free().
///
/// Any thread; does not block: a chunk without data means that there is nothing new.
dsh_status_t dsh_read_output(const dsh_process_t *process, dsh_chunk_t **chunk, dsh_error_t **error);

/// Fills in what a chunk holds. Any thread; does not block.
dsh_status_t dsh_chunk_info(const dsh_chunk_t *chunk, dsh_chunk_info_t *info, dsh_error_t **error);

/// Frees a chunk and what it gave. NULL is fine. Any thread, as the last call; does not block.
void dsh_chunk_free(dsh_chunk_t *chunk);

/// Copies bytes of one stream, from an absolute offset on, to a buffer. Consumes nothing, so that many readers may
/// read the same bytes, also after the process has ended. An incomplete UTF-8 sequence at the end of the stream so far
/// waits for a later call.
///
/// `DSH_E_NULL` for a NULL buffer with a capacity, `DSH_E_INVALID` for an unknown stream. Any thread; does not block:
/// 0 bytes mean that there is nothing new.
dsh_status_t dsh_read_stream(const dsh_process_t *process,
                             dsh_stream_t stream,
                             uint64_t offset,
                             void *buffer,
                             size_t capacity,
                             dsh_reading_t *reading,
                             dsh_error_t **error);

/// The file that holds a whole stream, once it was too long for memory. It is filled as by dsh_process_survivors(): at
/// most `capacity` bytes are written to `buffer`, and `*count` becomes how many bytes there are, the NUL included. 0
/// when there is no such file.
///
/// `DSH_E_INVALID` for an unknown stream. Any thread; does not block.
dsh_status_t dsh_process_spill_path(const dsh_process_t *process,
                                    dsh_stream_t stream,
                                    char *buffer,
                                    size_t capacity,
                                    size_t *count,
                                    dsh_error_t **error);

/* Events, for hosts with an event loop. --------------------------------------------------------------------------- */

/// What dsh_executor_wake() is to call: `user_data` comes back in it.
typedef void (*dsh_wake_t)(void *user_data);

/// What frees `user_data`, once nothing is called with it any more.
typedef void (*dsh_destroy_t)(void *user_data);

/// What has happened to a background process. What it announces can be read when the event is there.
typedef uint32_t dsh_event_kind_t;

/// A hint that something has happened. At most one waits per process and kind, so none is ever dropped.
typedef struct {
    /// `sizeof(dsh_event_t)`, set by the caller.
    size_t size;
    /// The process, see `dsh_process_info_t.process_id`.
    uint64_t process_id;
    /// The request's tag.
    uint64_t tag;
    /// What has happened: `DSH_EVENT_...`.
    dsh_event_kind_t kind;
    /// 0.
    uint32_t reserved;
} dsh_event_t;

/// No event waits.
#define DSH_EVENT_NONE 0u

/// There is new output, or a stream has ended.
#define DSH_EVENT_OUTPUT 1u

/// The shell has exited.
#define DSH_EVENT_EXIT 2u

/// The process has settled: its exit and its output are final.
#define DSH_EVENT_SETTLED 3u

/// Nothing of the tree is alive any more.
#define DSH_EVENT_QUIESCENT 4u

/// A descriptor that is readable while events wait, for poll loops: the read end of a non-blocking, close-on-exec pipe.
/// It stays the executor's: don't read from it and don't close it; dsh_executor_free() does. Events are kept from
/// the first call on. `*fd` is -1 after an error.
///
/// `DSH_E_SYSTEM` when there is no descriptor left. Any thread; does not block.
dsh_status_t dsh_executor_event_fd(const dsh_executor_t *executor, int32_t *fd, dsh_error_t **error);

/// Has `wake(user_data)` called whenever events begin to wait, in place of the descriptor or beside it: for hosts
/// that are woken by a call. Replaces what was set before; NULL ends it. Events are kept from the first call on.
///
/// `wake` is called on a thread of the library, with all signals blocked, now and then on two at a time; and once during
/// this call, on this thread, when events wait already. It must return soon, and may call dsh_next_event() and nothing
/// else of the library. When it does not take the events itself, take them until none is left: it is called again only
/// when the first event after that comes.
///
/// `destroy(user_data)` (may be NULL) is called exactly once: when `wake` was replaced or the executor is freed, and no
/// call of it is under way; on the thread of that call or on one of the library. Also when this call fails, before it
/// returns. Any thread; does not block.
dsh_status_t dsh_executor_wake(const dsh_executor_t *executor,
                               dsh_wake_t wake,
                               void *user_data,
                               dsh_destroy_t destroy,
                               dsh_error_t **error);

/// Takes the next event that waits; `kind` is `DSH_EVENT_NONE` when none does. When the descriptor was readable, call
/// it until then. Freeing the handle of a process takes back what waits for it.
///
/// Any thread; does not block.
dsh_status_t dsh_next_event(const dsh_executor_t *executor, dsh_event_t *event, dsh_error_t **error);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* Structs that begin with their size, all zero but for that: `dsh_request_t request = DSH_REQUEST_INIT;` */
#ifdef __cplusplus
template <class Struct> inline Struct dsh_init_value()
{
    Struct value = Struct();
    value.size = sizeof value;
    return value;
}
#define DSH_INIT_VALUE(type) dsh_init_value<type>()
#else
#define DSH_INIT_VALUE(type) { .size = sizeof(type) }
#endif

#define DSH_SANDBOX_INIT DSH_INIT_VALUE(dsh_sandbox_t)
#define DSH_DOCTOR_INFO_INIT DSH_INIT_VALUE(dsh_doctor_info_t)
#define DSH_CONFIG_INIT DSH_INIT_VALUE(dsh_config_t)
#define DSH_STATS_INIT DSH_INIT_VALUE(dsh_stats_t)
#define DSH_REQUEST_INIT DSH_INIT_VALUE(dsh_request_t)
#define DSH_SPEC_INFO_INIT DSH_INIT_VALUE(dsh_spec_info_t)
#define DSH_RESULT_INFO_INIT DSH_INIT_VALUE(dsh_result_info_t)
#define DSH_PROCESS_INFO_INIT DSH_INIT_VALUE(dsh_process_info_t)
#define DSH_SANDBOX_FACTS_INIT DSH_INIT_VALUE(dsh_sandbox_facts_t)
#define DSH_CHUNK_INFO_INIT DSH_INIT_VALUE(dsh_chunk_info_t)
#define DSH_READING_INIT DSH_INIT_VALUE(dsh_reading_t)
#define DSH_EVENT_INIT DSH_INIT_VALUE(dsh_event_t)

#endif /* DSH_H */
