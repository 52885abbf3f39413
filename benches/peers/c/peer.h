/*
 * What the C peers have in common: the protocol, the clocks, and the works themselves, over a runner that each peer
 * brings. See benches/README.md for what the requests mean.
 */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of each stream, so many last bytes are kept. */
#define PEER_KEPT 64000
/* So long a stream goes to a file, in `PEER_SPILL`. */
#define PEER_SPILLED (64u << 20)
#define PEER_SHELL "/bin/bash"

enum peer_mode { PEER_KEEP, PEER_SPILL };

/*
 * A way of running commands. Functions give 0, or -1 after peer_fail(). What is NULL is not supported, unless it says
 * otherwise.
 *
 * Background processes have slots, from 0 on. A slot is free again once its process has ended.
 */
struct peer_runner {
    const char *variant;
    /* Does `PEER_SPILL`. */
    int spills;
    /* Ends what it started also when the peer is killed. */
    int guarded;

    /* Called once before everything else and once after. Optional. */
    int (*begin)(void);
    void (*end)(void);

    /* Runs a command to its end; `*bytes` becomes what it wrote to stdout. Any thread, but `PEER_SPILL` on one only. */
    int (*run)(enum peer_mode mode, const char *command, uint64_t *bytes);
    /* Runs a command `count` times, `callers` at a time. Optional: without it, threads call `run`. */
    int (*parallel)(size_t callers, size_t count, const char *command);

    /* Around background processes in so many slots. Optional. */
    int (*open)(size_t slots);
    void (*close)(void);
    /* Starts a background process and tells peer_started(). */
    int (*start)(size_t slot, const char *command);
    /* Waits for news for `timeout_ms` at most (-1: without limit), and tells peer_output() and peer_ended(). */
    int (*pump)(int timeout_ms);
    /* Sends SIGTERM to the process group. */
    int (*stop)(size_t slot);
    /* Waits for the end of one process and tells peer_ended(). Optional: without it, `pump` does. */
    int (*await)(size_t slot);
};

/* Takes note of an error. Gives -1. */
int peer_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, with the meaning of errno. */
int peer_fail_errno(const char *what);

/* Whether anybody asks for the output of this process; otherwise it need only be captured. */
int peer_wants(size_t slot);
/* The process of a slot leads a group and has this pid. */
void peer_started(size_t slot, pid_t pid);
/* A read gave output of the process. */
void peer_output(size_t slot, const void *data, size_t len);
/* The process has ended and been reaped, and its output is complete. */
void peer_ended(size_t slot);

/* A run in `PEER_SPILL` has made this file, which is to be removed once the clock has stopped. */
void peer_spilled(const char *path);

/* The whole program: the first runner is the one for `first`. Gives the exit code. */
int peer_main(int argc, char **argv, const struct peer_runner *runners, size_t count, const char *version);

#endif
