/*
 * What Go asks of the C library in one call instead of several, and in a form that its rules for pointers allow: no Go
 * memory that is passed to C holds a pointer to other Go memory. Texts come packed, one after the other, each with its
 * NUL.
 */
#ifndef DSHGO_SHIM_H
#define DSHGO_SHIM_H

#include <dsh.h>

/* An event as the loop needs it. */
typedef struct {
    uint64_t tag;
    uint32_t kind;
    uint32_t reserved;
} dshgo_event_t;

/* How many backends a policy may name. */
#define DSHGO_MOST_BACKENDS 16

/*
 * The numbers of a policy. Its texts stand behind those of what it belongs to: workspace (empty for the default), then
 * writable, hidden, runner and runner_failures.
 */
typedef struct {
    dsh_sandbox_t terms;
    dsh_backend_t backends[DSHGO_MOST_BACKENDS];
} dshgo_policy_t;

/*
 * Makes an executor, or, when there is one, gives it new budgets. `config` has all numbers, `texts` its texts: cwd,
 * shell, spill_dir (each empty for the default), then env_allow and env_deny. `policy` is NULL for none.
 */
dsh_status_t dshgo_configure(const dsh_executor_t *executor, const dsh_config_t *config, const dshgo_policy_t *policy,
                             const char *texts, dsh_executor_t **made, dsh_error_t **error);

/*
 * Starts a command. `terms` has all numbers; `texts` is the workdir (empty for the default), then env and dsh_env. `policy`
 * is NULL for the executor's, `cancel` for none. *settled becomes 1 when the command was attended to until it had settled.
 */
dsh_status_t dshgo_start(const dsh_executor_t *executor, const dsh_request_t *terms, const dshgo_policy_t *policy,
                         const char *command, const void *input, const char *texts, const dsh_cancel_t *cancel,
                         dsh_process_t **process, uint32_t *settled, dsh_error_t **error);

/* Tells what would run, see dshgo_start(). Both out-parameters are set, or none. */
dsh_status_t dshgo_resolve(const dsh_executor_t *executor, const dsh_request_t *terms, const dshgo_policy_t *policy,
                           const char *command, const char *texts, dsh_spec_t **spec, dsh_spec_info_t *info,
                           dsh_error_t **error);

/*
 * A duplicate of the event descriptor, to be closed by the caller. Go's poller holds on to a descriptor of its own; the
 * executor's may be closed only by the executor. When the system refuses it, *error is NULL and *number the errno.
 */
dsh_status_t dshgo_event_fd(const dsh_executor_t *executor, int32_t *fd, int32_t *number, dsh_error_t **error);

/* Takes up to `capacity` events. Fewer mean that none waits any more. */
dsh_status_t dshgo_events(const dsh_executor_t *executor, dshgo_event_t *events, size_t capacity, size_t *count,
                          dsh_error_t **error);

/* The result of a process that has settled, and what it holds: NULL for a stream of no bytes. All are set, or none. */
dsh_status_t dshgo_result(const dsh_process_t *process, dsh_result_t **result, dsh_result_info_t *info,
                          dsh_sandbox_facts_t *facts, dsh_error_t **error);

/* One consuming read, and what it gave: NULL for no bytes. Both out-parameters are set, or none. */
dsh_status_t dshgo_read_output(const dsh_process_t *process, dsh_chunk_t **chunk, dsh_chunk_info_t *info,
                               dsh_error_t **error);

/* Frees what there is of a command. */
void dshgo_free(dsh_result_t *result, dsh_process_t *process, dsh_cancel_t *cancel);

#endif
