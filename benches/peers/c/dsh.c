/* Ourselves, through the C ABI. */
#define _POSIX_C_SOURCE 200809L

#include "peer.h"

#include <dsh.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest that the library lets a foreground command run. */
#define TIMEOUT_MS 600000

static dsh_executor_t *executor;
/* What the executor is set to. */
static enum peer_mode current = PEER_KEEP;

static int fail(dsh_error_t *error)
{
    peer_fail("%s", dsh_error_message(error));
    dsh_error_free(error);
    return -1;
}

static dsh_request_t ask(const char *command)
{
    dsh_request_t request = DSH_REQUEST_INIT;
    request.command = command;
    request.command_len = strlen(command);
    request.timeout_ms = TIMEOUT_MS;
    return request;
}

/* A stream beyond `max_spill_bytes` has no file: with 1, none is ever made. 0 is the default, 64 MiB. */
static dsh_config_t config_for(enum peer_mode mode)
{
    dsh_config_t config = DSH_CONFIG_INIT;
    config.shell = PEER_SHELL;
    config.max_spill_bytes = mode == PEER_KEEP ? 1 : 0;
    return config;
}

static int begin(void)
{
    dsh_config_t config = config_for(PEER_KEEP);
    dsh_error_t *error = NULL;
    return dsh_executor_new(&config, &executor, &error) == DSH_OK ? 0 : fail(error);
}

static void end(void)
{
    dsh_executor_free(executor);
}

/* One command. ---------------------------------------------------------------------------------------------------- */

static int set_mode(enum peer_mode mode)
{
    dsh_config_t config = config_for(mode);
    dsh_error_t *error = NULL;
    if (mode == current)
        return 0;
    if (dsh_executor_configure(executor, &config, &error) != DSH_OK)
        return fail(error);
    current = mode;
    return 0;
}

/* The library notices the removal, and has room for the next. */
static void note_spill(const dsh_captured_t *captured)
{
    if (captured->spill_path != NULL)
        peer_spilled(captured->spill_path);
}

/* Threads call this at the same time, with `PEER_KEEP` only. */
static int run(enum peer_mode mode, const char *command, uint64_t *bytes)
{
    dsh_request_t request = ask(command);
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = NULL;
    dsh_error_t *error = NULL;
    if (set_mode(mode) != 0)
        return -1;
    if (dsh_run(executor, &request, &result, &error) != DSH_OK)
        return fail(error);
    if (dsh_result_info(result, &info, &error) != DSH_OK) {
        dsh_result_free(result);
        return fail(error);
    }
    *bytes = info.out.total;
    int cut_short = info.outcome.timed_out != 0;
    if (mode == PEER_SPILL) {
        note_spill(&info.out);
        note_spill(&info.err);
    }
    dsh_result_free(result);
    return cut_short ? peer_fail("it timed out") : 0;
}

/* Background processes: events by descriptor, the slot as tag. ---------------------------------------------------- */

static dsh_process_t **processes;
static int event_fd = -1;

static int open_background(size_t count)
{
    dsh_error_t *error = NULL;
    processes = calloc(count, sizeof *processes);
    if (processes == NULL)
        return peer_fail("out of memory");
    if (set_mode(PEER_KEEP) != 0)
        return -1;
    return dsh_executor_event_fd(executor, &event_fd, &error) == DSH_OK ? 0 : fail(error);
}

static void close_background(void)
{
    free(processes);
    processes = NULL;
}

static int start(size_t slot, const char *command)
{
    dsh_request_t request = ask(command);
    dsh_process_info_t info = DSH_PROCESS_INFO_INIT;
    dsh_error_t *error = NULL;
    request.tag = slot;
    if (dsh_start(executor, &request, &processes[slot], &error) != DSH_OK
        || dsh_process_info(processes[slot], &info, &error) != DSH_OK)
        return fail(error);
    peer_started(slot, info.pid);
    return 0;
}

static int read_output(size_t slot)
{
    dsh_chunk_info_t info = DSH_CHUNK_INFO_INIT;
    dsh_chunk_t *chunk = NULL;
    dsh_error_t *error = NULL;
    if (dsh_read_output(processes[slot], &chunk, &error) != DSH_OK)
        return fail(error);
    if (dsh_chunk_info(chunk, &info, &error) != DSH_OK) {
        dsh_chunk_free(chunk);
        return fail(error);
    }
    peer_output(slot, info.data, info.len);
    dsh_chunk_free(chunk);
    return 0;
}

static int take(const dsh_event_t *event)
{
    size_t slot = event->tag;
    if (event->kind == DSH_EVENT_OUTPUT && peer_wants(slot))
        return read_output(slot);
    if (event->kind == DSH_EVENT_SETTLED) {
        dsh_process_free(processes[slot]);
        processes[slot] = NULL;
        peer_ended(slot);
    }
    return 0;
}

static int pump(int timeout_ms)
{
    struct pollfd polled = {event_fd, POLLIN, 0};
    dsh_event_t event = DSH_EVENT_INIT;
    dsh_error_t *error = NULL;
    if (poll(&polled, 1, timeout_ms) < 0 && errno != EINTR)
        return peer_fail_errno("poll");
    for (;;) {
        if (dsh_next_event(executor, &event, &error) != DSH_OK)
            return fail(error);
        if (event.kind == DSH_EVENT_NONE)
            return 0;
        if (take(&event) != 0)
            return -1;
    }
}

static int stop(size_t slot)
{
    dsh_error_t *error = NULL;
    return dsh_kill(processes[slot], NULL, &error) == DSH_OK ? 0 : fail(error);
}

int main(int argc, char **argv)
{
    const struct peer_runner runner = {
        .variant = "dsh", .spills = 1, .guarded = 1, .begin = begin, .end = end, .run = run,
        .open = open_background, .close = close_background, .start = start, .pump = pump, .stop = stop,
    };
    char version[64];
    snprintf(version, sizeof version, "C, libdsh %s", dsh_version());
    return peer_main(argc, argv, &runner, 1, version);
}
