#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Most requests need no more room than this for their lists. */
enum { FEW = 32 };

/* The next of the packed texts. */
static const char *next(const char **texts)
{
    const char *text = *texts;
    *texts += strlen(text) + 1;
    return text;
}

/* The next text; NULL, which stands for the default, when it is empty. */
static const char *next_or_default(const char **texts)
{
    const char *text = next(texts);
    return *text == 0 ? NULL : text;
}

/* The next `count` texts as a list in `room`, and the room behind it. */
static const char **list(const char **texts, size_t count, const char **room)
{
    for (size_t i = 0; i < count; i++)
        *room++ = next(texts);
    return room;
}

/* Room for `count` pointers: `few` if that is enough. NULL when memory is refused. */
static const char **room_for(size_t count, const char **few)
{
    return count <= FEW ? few : malloc(count * sizeof *few);
}

static void leave(const char **room, const char **few)
{
    if (room != few)
        free(room);
}

static dsh_status_t without_memory(dsh_error_t **error)
{
    *error = NULL;
    return DSH_E_OUT_OF_MEMORY;
}

/* How many pointers the lists of a policy need. */
static size_t width(const dshgo_policy_t *policy)
{
    const dsh_sandbox_t *terms;
    if (policy == NULL)
        return 0;
    terms = &policy->terms;
    return terms->writable_len + terms->hidden_len + terms->runner_len + terms->runner_failures_len;
}

/* Makes a policy whole, with its lists in `room`. NULL for none. */
static const dsh_sandbox_t *complete(dsh_sandbox_t *whole, const dshgo_policy_t *policy, const char **texts,
                                     const char **room)
{
    if (policy == NULL)
        return NULL;
    *whole = policy->terms;
    whole->backends = policy->backends;
    whole->workspace = next_or_default(texts);
    whole->writable = room;
    whole->hidden = room = list(texts, whole->writable_len, room);
    whole->runner = room = list(texts, whole->hidden_len, room);
    whole->runner_failures = room = list(texts, whole->runner_len, room);
    list(texts, whole->runner_failures_len, room);
    return whole;
}

dsh_status_t dshgo_configure(const dsh_executor_t *executor, const dsh_config_t *config, const dshgo_policy_t *policy,
                             const char *texts, dsh_executor_t **made, dsh_error_t **error)
{
    dsh_config_t whole = *config;
    dsh_sandbox_t sandbox;
    const char *few[FEW];
    const char **room = room_for(whole.env_allow_len + whole.env_deny_len + width(policy), few);
    const char **rest;
    dsh_status_t status;
    if (room == NULL)
        return without_memory(error);
    whole.cwd = next_or_default(&texts);
    whole.shell = next_or_default(&texts);
    whole.spill_dir = next_or_default(&texts);
    whole.env_allow = room;
    whole.env_deny = rest = list(&texts, whole.env_allow_len, room);
    rest = list(&texts, whole.env_deny_len, rest);
    whole.sandbox = complete(&sandbox, policy, &texts, rest);
    if (executor == NULL)
        status = dsh_executor_new(&whole, made, error);
    else
        status = dsh_executor_configure(executor, &whole, error);
    leave(room, few);
    return status;
}

/* Fills in the texts of a request and its policy. What it gives is left with leave(); NULL when memory is refused. */
static const char **fill_in(dsh_request_t *request, dsh_sandbox_t *sandbox, const dshgo_policy_t *policy,
                            const char *command, const char *texts, const char **few)
{
    const char **room = room_for(request->env_len + request->dsh_env_len + width(policy), few);
    const char **rest;
    if (room == NULL)
        return NULL;
    request->command = command == NULL ? "" : command; /* an empty string of Go may point nowhere */
    request->workdir = next_or_default(&texts);
    request->env = room;
    request->dsh_env = rest = list(&texts, request->env_len, room);
    rest = list(&texts, request->dsh_env_len, rest);
    request->sandbox = complete(sandbox, policy, &texts, rest);
    return room;
}

dsh_status_t dshgo_start(const dsh_executor_t *executor, const dsh_request_t *terms, const dshgo_policy_t *policy,
                         const char *command, const void *input, const char *texts, const dsh_cancel_t *cancel,
                         dsh_process_t **process, uint32_t *settled, dsh_error_t **error)
{
    dsh_request_t request = *terms;
    dsh_sandbox_t sandbox;
    const char *few[FEW];
    const char **room = fill_in(&request, &sandbox, policy, command, texts, few);
    dsh_status_t status;
    if (room == NULL)
        return without_memory(error);
    request.input = input;
    request.cancel = cancel;
    status = dsh_start(executor, &request, process, error);
    leave(room, few);
    *settled = status == DSH_OK && request.attend_ms > 0 && dsh_wait(*process, 0, NULL) == DSH_OK;
    return status;
}

dsh_status_t dshgo_resolve(const dsh_executor_t *executor, const dsh_request_t *terms, const dshgo_policy_t *policy,
                           const char *command, const char *texts, dsh_spec_t **spec, dsh_spec_info_t *info,
                           dsh_error_t **error)
{
    dsh_request_t request = *terms;
    dsh_sandbox_t sandbox;
    const char *few[FEW];
    const char **room = fill_in(&request, &sandbox, policy, command, texts, few);
    dsh_status_t status;
    if (room == NULL)
        return without_memory(error);
    request.input_len = 0; /* what the command is to read changes nothing about what would run */
    status = dsh_resolve(executor, &request, spec, error);
    leave(room, few);
    if (status != DSH_OK)
        return status;
    info->size = sizeof *info;
    status = dsh_spec_info(*spec, info, error);
    if (status != DSH_OK) {
        dsh_spec_free(*spec);
        *spec = NULL;
    }
    return status;
}

dsh_status_t dshgo_event_fd(const dsh_executor_t *executor, int32_t *fd, int32_t *number, dsh_error_t **error)
{
    int32_t own = -1;
    dsh_status_t status = dsh_executor_event_fd(executor, &own, error);
    *number = 0;
    if (status != DSH_OK)
        return status;
    *fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
    if (*fd >= 0)
        return DSH_OK;
    *number = errno;
    return DSH_E_SYSTEM;
}

dsh_status_t dshgo_events(const dsh_executor_t *executor, dshgo_event_t *events, size_t capacity, size_t *count,
                          dsh_error_t **error)
{
    dsh_event_t event = DSH_EVENT_INIT;
    *error = NULL;
    for (*count = 0; *count < capacity; ++*count) {
        dsh_status_t status = dsh_next_event(executor, &event, error);
        if (status != DSH_OK)
            return status;
        if (event.kind == DSH_EVENT_NONE)
            return DSH_OK;
        events[*count].tag = event.tag;
        events[*count].kind = event.kind;
    }
    return DSH_OK;
}

/*
 * Where bytes are. The library gives some number that is not NULL for none; Go takes any pointer on its stack that can't
 * be one for a broken program.
 */
static const void *bytes_or_null(const void *data, size_t len)
{
    return len == 0 ? NULL : data;
}

dsh_status_t dshgo_result(const dsh_process_t *process, dsh_result_t **result, dsh_result_info_t *info,
                          dsh_sandbox_facts_t *facts, dsh_error_t **error)
{
    dsh_status_t status = dsh_process_result(process, result, error);
    if (status != DSH_OK)
        return status;
    info->size = sizeof *info;
    status = dsh_result_info(*result, info, error);
    if (status == DSH_OK) {
        facts->size = sizeof *facts;
        status = dsh_result_sandbox(*result, facts, error);
    }
    if (status != DSH_OK) {
        dsh_result_free(*result);
        *result = NULL;
        return status;
    }
    info->out.data = bytes_or_null(info->out.data, info->out.len);
    info->err.data = bytes_or_null(info->err.data, info->err.len);
    return DSH_OK;
}

dsh_status_t dshgo_read_output(const dsh_process_t *process, dsh_chunk_t **chunk, dsh_chunk_info_t *info,
                               dsh_error_t **error)
{
    dsh_status_t status = dsh_read_output(process, chunk, error);
    if (status != DSH_OK)
        return status;
    info->size = sizeof *info;
    status = dsh_chunk_info(*chunk, info, error);
    if (status != DSH_OK) {
        dsh_chunk_free(*chunk);
        *chunk = NULL;
        return status;
    }
    info->data = bytes_or_null(info->data, info->len);
    return DSH_OK;
}

void dshgo_free(dsh_result_t *result, dsh_process_t *process, dsh_cancel_t *cancel)
{
    dsh_result_free(result);
    dsh_process_free(process);
    dsh_cancel_free(cancel);
}
