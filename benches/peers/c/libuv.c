/* libuv, as its guide runs child processes: uv_spawn with pipes, on one loop. */
#define _POSIX_C_SOURCE 200809L

#include "stream.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* What libuv suggests for each read. One buffer does for all: every read is over before the next begins. */
#define BUFFER (64 << 10)

/* A pipe, and what is kept of what came through it. */
struct source {
    uv_pipe_t pipe; /* first: whoever has the one has the other */
    struct stream stream;
};

struct child {
    uv_process_t process;
    struct source sources[2];
    enum peer_mode mode;
    /* In the background: the slot. */
    int background;
    size_t slot;
    int started;
    /* Handles that are not closed yet: the process and its pipes. */
    int open;
    int failed;
    void (*ended)(struct child *);
};

static uv_loop_t *loop;
static char buffer[BUFFER];

static int fail(const char *what, int status)
{
    return peer_fail("%s: %s", what, uv_strerror(status));
}

static int begin(void)
{
    loop = uv_default_loop();
    return loop != NULL ? 0 : peer_fail("uv_default_loop failed");
}

static void end(void)
{
    uv_loop_close(loop);
}

/* A child, from spawn to its last handle closed. ------------------------------------------------------------------ */

static void on_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;
    if (--child->open == 0)
        child->ended(child);
}

static void on_exit(uv_process_t *process, int64_t status, int signal)
{
    (void)status;
    (void)signal;
    uv_close((uv_handle_t *)process, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(buffer, sizeof buffer);
}

static void on_read(uv_stream_t *pipe, ssize_t n, const uv_buf_t *buf)
{
    struct child *child = pipe->data;
    struct source *source = (struct source *)pipe;
    if (n < 0) {
        uv_close((uv_handle_t *)pipe, on_closed);
        return;
    }
    if (n == 0)
        return;
    if (child->background)
        peer_output(child->slot, buf->base, (size_t)n);
    /* uv_fs_write() without a callback would be the same write. */
    if (stream_take(&source->stream, child->mode, buf->base, (size_t)n) != 0) {
        child->failed = 1;
        uv_close((uv_handle_t *)pipe, on_closed);
    }
}

static void release(struct child *child)
{
    for (int at = 0; at < 2; at++)
        stream_release(&child->sources[at].stream);
}

/* `ended` is called once the process is reaped and its output complete; if this fails, after that too. */
static int spawn(struct child *child, const char *command, void (*ended)(struct child *))
{
    char *arguments[] = {(char *)"bash", (char *)"-c", (char *)command, NULL};
    uv_stdio_container_t stdio[3];
    uv_process_options_t options;
    memset(&options, 0, sizeof options);
    options.file = PEER_SHELL;
    options.args = arguments;
    options.flags = UV_PROCESS_DETACHED; /* a session of its own */
    options.exit_cb = on_exit;
    options.stdio = stdio;
    options.stdio_count = 3;
    stdio[0].flags = UV_IGNORE; /* which is /dev/null */
    for (int at = 0; at < 2; at++) {
        uv_pipe_t *pipe = &child->sources[at].pipe;
        uv_pipe_init(loop, pipe, 0);
        pipe->data = child;
        stdio[at + 1].flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE;
        stdio[at + 1].data.stream = (uv_stream_t *)pipe;
    }
    child->process.data = child;
    child->ended = ended;
    child->open = 3;
    int status = uv_spawn(loop, &child->process, &options);
    if (status != 0) {
        child->failed = 1;
        uv_close((uv_handle_t *)&child->process, on_closed);
        for (int at = 0; at < 2; at++)
            uv_close((uv_handle_t *)&child->sources[at].pipe, on_closed);
        return fail("uv_spawn", status);
    }
    for (int at = 0; at < 2; at++)
        uv_read_start((uv_stream_t *)&child->sources[at].pipe, on_alloc, on_read);
    return 0;
}

/* One command. ---------------------------------------------------------------------------------------------------- */

static void run_ended(struct child *child)
{
    for (int at = 0; at < 2; at++)
        if (child->sources[at].stream.path[0] != 0)
            peer_spilled(child->sources[at].stream.path);
    release(child);
}

static int run(enum peer_mode mode, const char *command, uint64_t *bytes)
{
    struct child child;
    memset(&child, 0, sizeof child);
    child.mode = mode;
    spawn(&child, command, run_ended);
    uv_run(loop, UV_RUN_DEFAULT); /* also after an error: until the handles are closed */
    *bytes = child.sources[0].stream.total;
    return child.failed ? -1 : 0;
}

/* Commands side by side: a loop needs no threads for that. Whichever ends starts the next. */
static struct {
    const char *command;
    size_t left;
    int failed;
} crowd;

static void next_of_crowd(struct child *child)
{
    crowd.failed |= child->failed;
    release(child);
    memset(child, 0, sizeof *child);
    if (crowd.left > 0 && !crowd.failed) {
        crowd.left--;
        spawn(child, crowd.command, next_of_crowd);
    }
}

static int parallel(size_t callers, size_t count, const char *command)
{
    struct child *children = calloc(callers, sizeof *children);
    if (children == NULL)
        return peer_fail("out of memory");
    crowd.command = command;
    crowd.left = count;
    crowd.failed = 0;
    for (size_t at = 0; at < callers && crowd.left > 0; at++) {
        crowd.left--;
        spawn(&children[at], command, next_of_crowd);
    }
    uv_run(loop, UV_RUN_DEFAULT);
    free(children);
    return crowd.failed ? -1 : 0;
}

/* Background processes. ------------------------------------------------------------------------------------------- */

static struct child **children;
static uv_timer_t timer;
static int timer_is_there;

static int open_background(size_t count)
{
    children = calloc(count, sizeof *children);
    if (children == NULL)
        return peer_fail("out of memory");
    uv_timer_init(loop, &timer);
    timer_is_there = 1;
    return 0;
}

static void close_background(void)
{
    if (timer_is_there)
        uv_close((uv_handle_t *)&timer, NULL);
    timer_is_there = 0;
    uv_run(loop, UV_RUN_DEFAULT);
    free(children);
    children = NULL;
}

static void background_ended(struct child *child)
{
    release(child);
    children[child->slot] = NULL;
    if (child->started)
        peer_ended(child->slot);
    free(child);
}

static int start(size_t slot, const char *command)
{
    struct child *child = calloc(1, sizeof *child);
    if (child == NULL)
        return peer_fail("out of memory");
    child->background = 1;
    child->slot = slot;
    if (spawn(child, command, background_ended) != 0)
        return -1;
    child->started = 1;
    children[slot] = child;
    peer_started(slot, uv_process_get_pid(&child->process));
    return 0;
}

/* It may be due before the loop waits, which it then must not do. */
static void on_timer(uv_timer_t *handle)
{
    uv_stop(handle->loop);
}

static int pump(int timeout_ms)
{
    uv_update_time(loop); /* it knows the time of its last turn, which may be long ago */
    if (timeout_ms >= 0)
        uv_timer_start(&timer, on_timer, (uint64_t)timeout_ms, 0);
    uv_run(loop, UV_RUN_ONCE);
    uv_timer_stop(&timer);
    return 0;
}

static int stop(size_t slot)
{
    if (children[slot] == NULL || !uv_is_active((uv_handle_t *)&children[slot]->process))
        return 0; /* reaped already */
    int status = uv_kill(-uv_process_get_pid(&children[slot]->process), SIGTERM);
    return status == 0 ? 0 : fail("uv_kill", status);
}

int main(int argc, char **argv)
{
    const struct peer_runner runner = {
        .variant = "libuv", .spills = 1, .begin = begin, .end = end, .run = run, .parallel = parallel,
        .open = open_background, .close = close_background, .start = start, .pump = pump, .stop = stop,
    };
    char version[64];
    snprintf(version, sizeof version, "C, libuv %s", uv_version_string());
    return peer_main(argc, argv, &runner, 1, version);
}
