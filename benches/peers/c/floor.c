/*
 * The floor: what a bare C program needs to run a command with both streams captured, and nothing more. It does what a
 * runner can't do without: a process group, a pipe per stream, descriptors that no other child gets, bounded memory.
 * It has no timeout, no cancellation, no look at descendants, and believes that everybody closes their pipes.
 *
 *   floor     posix_spawn, default pipes, poll over both, 64 KiB reads
 *   reader1m  the same with pipes of 1 MiB and 256 KiB reads
 *   splice    stdout goes from a pipe of 1 MiB to /dev/null inside the kernel: nothing is kept, stderr is not captured
 *   blocking  blocking reads of stdout; stderr is not captured
 */
#define _GNU_SOURCE

#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER_MAX (256 << 10)

extern char **environ;

/* The reading end of a pipe, -1 once it has ended, and what is kept of what came through it. */
struct source {
    int fd;
    struct stream stream;
};

static size_t buffer_size = 64 << 10;
static int pipe_size; /* 0: as the system makes them */
static int null_fd, null_out_fd;
static posix_spawnattr_t attributes;

/* Creating a child. ----------------------------------------------------------------------------------------------- */

static int begin(void)
{
    null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    null_out_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null_fd < 0 || null_out_fd < 0)
        return peer_fail_errno("/dev/null");
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP); /* pgroup 0: one of its own */
    return 0;
}

static int begin_reader1m(void)
{
    buffer_size = BUFFER_MAX;
    pipe_size = 1 << 20;
    return begin();
}

static int make_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) != 0)
        return peer_fail_errno("pipe2");
    if (pipe_size > 0)
        fcntl(fds[0], F_SETPIPE_SZ, pipe_size); /* a user's budget may be used up: then the default has to do */
    return 0;
}

static int spawn(const char *command, int out, int err, pid_t *pid)
{
    char *const arguments[] = {"bash", "-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, null_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, err, 2);
    int status = posix_spawn(pid, PEER_SHELL, &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    errno = status;
    return status == 0 ? 0 : peer_fail_errno("posix_spawn");
}

static void close_pair(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

/* Starts a command with a pipe for each stream. */
static int spawn_captured(const char *command, struct source sources[2], pid_t *pid)
{
    int out[2], err[2];
    if (make_pipe(out) != 0)
        return -1;
    if (make_pipe(err) != 0) {
        close_pair(out);
        return -1;
    }
    if (spawn(command, out[1], err[1], pid) != 0) {
        close_pair(out);
        close_pair(err);
        return -1;
    }
    close(out[1]);
    close(err[1]);
    memset(sources, 0, 2 * sizeof *sources);
    sources[0].fd = out[0];
    sources[1].fd = err[0];
    return 0;
}

static void close_source(struct source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

static void release(struct source *source)
{
    close_source(source);
    stream_release(&source->stream);
}

static int reap(pid_t pid)
{
    struct rusage usage;
    int status;
    while (wait4(pid, &status, 0, &usage) < 0)
        if (errno != EINTR)
            return peer_fail_errno("wait4");
    return 0;
}

/* One command. ---------------------------------------------------------------------------------------------------- */

static int read_once(struct source *source, char *buffer, enum peer_mode mode)
{
    ssize_t n = read(source->fd, buffer, buffer_size);
    if (n < 0)
        return errno == EINTR ? 0 : peer_fail_errno("read");
    if (n > 0)
        return stream_take(&source->stream, mode, buffer, (size_t)n);
    close_source(source);
    return 0;
}

static int read_both(struct source sources[2], enum peer_mode mode)
{
    char buffer[BUFFER_MAX];
    struct pollfd polled[2] = {{sources[0].fd, POLLIN, 0}, {sources[1].fd, POLLIN, 0}};
    while (sources[0].fd >= 0 || sources[1].fd >= 0) {
        if (poll(polled, 2, -1) < 0) {
            if (errno != EINTR)
                return peer_fail_errno("poll");
            continue;
        }
        for (int at = 0; at < 2; at++) {
            if (polled[at].revents & POLLIN) {
                if (read_once(&sources[at], buffer, mode) != 0)
                    return -1;
            } else if (polled[at].revents != 0) { /* nobody writes any more and nothing is left: the end */
                close_source(&sources[at]);
            }
            polled[at].fd = sources[at].fd; /* one below 0 is passed over */
        }
    }
    return 0;
}

/* After the last byte: the child is reaped, or first ended when there was an error and nobody reads it any more. */
static int finish(pid_t pid, int status)
{
    if (status != 0)
        kill(-pid, SIGKILL);
    return reap(pid) != 0 ? -1 : status;
}

static int run(enum peer_mode mode, const char *command, uint64_t *bytes)
{
    struct source sources[2];
    pid_t pid;
    if (spawn_captured(command, sources, &pid) != 0)
        return -1;
    int status = read_both(sources, mode);
    *bytes = sources[0].stream.total;
    for (int at = 0; at < 2; at++) {
        if (sources[at].stream.path[0] != 0)
            peer_spilled(sources[at].stream.path);
        release(&sources[at]);
    }
    return finish(pid, status);
}

/* One command, only its stdout: `consume` takes it until its end. */
static int run_stdout(const char *command, uint64_t *bytes, int (*consume)(struct source *))
{
    struct source source;
    int out[2];
    pid_t pid;
    if (make_pipe(out) != 0)
        return -1;
    if (spawn(command, out[1], null_out_fd, &pid) != 0) {
        close_pair(out);
        return -1;
    }
    close(out[1]);
    memset(&source, 0, sizeof source);
    source.fd = out[0];
    int status = consume(&source);
    *bytes = source.stream.total;
    release(&source);
    return finish(pid, status);
}

static int read_blocking(struct source *source)
{
    char buffer[BUFFER_MAX];
    while (source->fd >= 0)
        if (read_once(source, buffer, PEER_KEEP) != 0)
            return -1;
    return 0;
}

static int run_blocking(enum peer_mode mode, const char *command, uint64_t *bytes)
{
    (void)mode;
    return run_stdout(command, bytes, read_blocking);
}

static int splice_away(struct source *source)
{
    for (;;) {
        ssize_t n = splice(source->fd, NULL, null_out_fd, NULL, 1 << 20, SPLICE_F_MOVE);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return peer_fail_errno("splice");
        source->stream.total += n > 0 ? (uint64_t)n : 0;
    }
}

static int run_splice(enum peer_mode mode, const char *command, uint64_t *bytes)
{
    (void)mode;
    return run_stdout(command, bytes, splice_away);
}

/* Background processes: one thread, epoll, a pidfd for each. ------------------------------------------------------ */

/* What an epoll event is about: the slot times 4, and one of these. */
enum { STDOUT, STDERR, PIDFD };

struct child {
    pid_t pid;
    int pidfd;
    /* How many of the three have not ended. */
    int open;
    struct source sources[2];
};

static struct child *children;
static size_t child_count;
static int epoll_fd = -1;

static int open_background(size_t count)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        return peer_fail_errno("epoll_create1");
    children = calloc(count, sizeof *children);
    if (children == NULL)
        return peer_fail("out of memory");
    child_count = count;
    return 0;
}

static void close_background(void)
{
    if (epoll_fd >= 0)
        close(epoll_fd);
    free(children);
    epoll_fd = -1;
    children = NULL;
    child_count = 0;
}

static int watch(int fd, size_t slot, int what)
{
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    event.data.u64 = slot * 4 + (size_t)what;
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : peer_fail_errno("epoll_ctl");
}

/* A process that can't be watched is no process. */
static int give_up(struct child *child)
{
    kill(-child->pid, SIGKILL);
    reap(child->pid);
    if (child->pidfd >= 0)
        close(child->pidfd);
    release(&child->sources[0]);
    release(&child->sources[1]);
    return -1;
}

static int start(size_t slot, const char *command)
{
    struct child *child = &children[slot];
    if (spawn_captured(command, child->sources, &child->pid) != 0)
        return -1;
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0); /* close-on-exec from birth */
    if (child->pidfd < 0) {
        peer_fail_errno("pidfd_open");
        return give_up(child);
    }
    if (watch(child->sources[0].fd, slot, STDOUT) != 0 || watch(child->sources[1].fd, slot, STDERR) != 0
        || watch(child->pidfd, slot, PIDFD) != 0)
        return give_up(child);
    child->open = 3;
    peer_started(slot, child->pid);
    return 0;
}

static void one_less(size_t slot)
{
    if (--children[slot].open == 0)
        peer_ended(slot);
}

/* Reads once; at the end of a stream its pipe is closed, and with it what epoll knows of it. */
static int read_background(size_t slot, int which, char *buffer)
{
    struct source *source = &children[slot].sources[which];
    ssize_t n = read(source->fd, buffer, buffer_size);
    if (n < 0)
        return errno == EINTR ? 0 : peer_fail_errno("read");
    if (n > 0) {
        peer_output(slot, buffer, (size_t)n);
        return stream_take(&source->stream, PEER_KEEP, buffer, (size_t)n);
    }
    release(source);
    one_less(slot);
    return 0;
}

static int reap_background(size_t slot)
{
    struct child *child = &children[slot];
    close(child->pidfd);
    child->pidfd = -1;
    if (reap(child->pid) != 0)
        return -1;
    one_less(slot);
    return 0;
}

static int pump(int timeout_ms)
{
    char buffer[BUFFER_MAX];
    struct epoll_event events[64];
    int count = epoll_wait(epoll_fd, events, 64, timeout_ms);
    if (count < 0 && errno != EINTR)
        return peer_fail_errno("epoll_wait");
    for (int at = 0; at < count; at++) {
        size_t slot = events[at].data.u64 / 4;
        int what = (int)(events[at].data.u64 % 4);
        if ((what == PIDFD ? reap_background(slot) : read_background(slot, what, buffer)) != 0)
            return -1;
    }
    return 0;
}

static int stop(size_t slot)
{
    /* Not reaped yet as long as there is a pidfd, so the number is still its. */
    if (children[slot].pidfd < 0 || kill(-children[slot].pid, SIGTERM) == 0)
        return 0;
    return peer_fail_errno("kill");
}

/* The shortest way to the end of a process that was told to end: its descriptor, its status, what is in its pipes. */
static int await(size_t slot)
{
    char buffer[BUFFER_MAX];
    struct child *child = &children[slot];
    struct pollfd polled = {child->pidfd, POLLIN, 0};
    if (child->pidfd >= 0) {
        while (poll(&polled, 1, -1) < 0)
            if (errno != EINTR)
                return peer_fail_errno("poll");
        if (reap_background(slot) != 0)
            return -1;
    }
    for (int which = 0; which < 2; which++)
        while (child->sources[which].fd >= 0)
            if (read_background(slot, which, buffer) != 0)
                return -1;
    return 0;
}

int main(int argc, char **argv)
{
    const struct peer_runner runners[] = {
        {.variant = "floor", .spills = 1, .begin = begin, .run = run, .open = open_background,
         .close = close_background, .start = start, .pump = pump, .stop = stop, .await = await},
        {.variant = "reader1m", .spills = 1, .begin = begin_reader1m, .run = run,
         .open = open_background, .close = close_background, .start = start, .pump = pump, .stop = stop,
         .await = await},
        {.variant = "splice", .begin = begin_reader1m, .run = run_splice},
        {.variant = "blocking", .begin = begin, .run = run_blocking},
    };
    char version[64];
    snprintf(version, sizeof version, "C, glibc %s", gnu_get_libc_version());
    return peer_main(argc, argv, runners, sizeof runners / sizeof *runners, version);
}
