/* A library to be preloaded: it has system calls of libdsh fail on demand, and no others.
 *
 *     FAULT=NAME:ERRNO:N    the N-th call of that name fails, N+ that and all later ones, - none; more after commas
 *
 * Calls count from fault_arm() on. A call is libdsh's when it returns into libdsh's code; those that a new child makes
 * while it still shares the host's memory are among them, so what is kept here is atomic and nothing else. Names are
 * those of the functions; for reads, writes and opens with what it is on: `write_file`, `write_pipe`, `write_event`,
 * `open_proc`, `open_null`, `open_other`; calls by number have their own name (`pidfd_open`). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Every name, with how it is spelled. */
#define NAMES(X)                                                                                                       \
    X(access) X(chdir) X(clone) X(close) X(dup2) X(epoll_create1) X(epoll_ctl) X(epoll_wait) X(eventfd) X(execve)      \
    X(fchmod) X(fchmodat) X(fcntl_dup) X(fcntl_other) X(flock) X(fork) X(fstat) X(ftruncate) X(getcwd) X(getentropy)   \
    X(getrandom) X(ioctl) X(kill) X(lseek) X(lstat) X(memfd_create) X(mkdir) X(mmap) X(mprotect) X(opendir)            \
    X(open_null) X(open_other) X(open_proc) X(pipe2) X(poll) X(ppoll) X(prctl) X(pthread_create) X(read_event)         \
    X(read_file) X(read_pipe) X(readlink) X(renameat) X(rmdir) X(setsid) X(sigtimedwait) X(stat) X(statx)              \
    X(unlink) X(unlinkat) X(waitpid) X(write_event) X(write_file) X(write_pipe) X(malloc)                              \
    /* by number */                                                                                                    \
    X(close_range) X(execveat) X(getdents64) X(pidfd_open) X(pidfd_send_signal) X(rt_sigaction) X(rt_sigprocmask)      \
    X(waitid)

#define AS_ENUM(name) CALL_##name,
#define AS_TEXT(name) #name,
enum call { NAMES(AS_ENUM) CALLS };
static const char *const names[] = {NAMES(AS_TEXT)};

static atomic_int armed, counts[CALLS], hits;
static struct {
    int with_errno, from, onwards;
} orders[CALLS];
static uintptr_t code_begin, code_end;

/* The real functions, found before anything is called: a child must not search. */
#define REAL(X)                                                                                                        \
    X(access) X(chdir) X(clone) X(close) X(dup2) X(epoll_create1) X(epoll_ctl) X(epoll_wait) X(eventfd) X(execve)      \
    X(fchmod) X(fchmodat) X(fcntl) X(flock) X(fork) X(fstat) X(fstat64) X(ftruncate) X(ftruncate64) X(getcwd)          \
    X(getentropy) X(getrandom) X(ioctl) X(kill) X(lseek64) X(lstat64) X(memfd_create) X(mkdir) X(mmap) X(mmap64)       \
    X(mprotect) X(opendir) X(open) X(open64) X(openat) X(pipe2) X(poll) X(ppoll) X(prctl) X(pthread_create) X(read)    \
    X(readlink) X(renameat) X(rmdir) X(setsid) X(sigtimedwait) X(stat64) X(statx) X(unlink) X(unlinkat) X(waitpid)     \
    X(write) X(syscall)
enum real {
#define AS_REAL(name) REAL_##name,
    REAL(AS_REAL) REALS
};
static void *real[REALS];
static const char *const real_names[] = {REAL(AS_TEXT)};

static int number_of(const char *name, size_t len)
{
    for (int call = 0; call < CALLS; call++)
        if (strlen(names[call]) == len && strncmp(names[call], name, len) == 0)
            return call;
    fprintf(stderr, "faults: no call has the name %.*s\n", (int)len, name);
    _exit(90);
}

__attribute__((constructor)) static void set_up(void)
{
    const char *order = getenv("FAULT");
    for (int i = 0; i < REALS; i++)
        real[i] = dlsym(RTLD_NEXT, real_names[i]);
    while (order != NULL && *order != 0 && *order != '-') {
        const char *number = strchr(order, ':');
        char *end = NULL;
        int call = number_of(order, (size_t)(number - order));
        orders[call].with_errno = (int)strtol(number + 1, &end, 10);
        orders[call].from = (int)strtol(end + 1, &end, 10);
        orders[call].onwards = *end == '+';
        order = end + (*end == '+');
        order += *order == ',';
    }
    unsetenv("FAULT");
    unsetenv("LD_PRELOAD");
}

static int find_code(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (strstr(info->dlpi_name, "libdsh.so") == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            code_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            code_end = code_begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

void fault_arm(void)
{
    dl_iterate_phdr(find_code, NULL);
    armed = 1;
}

void fault_disarm(void)
{
    armed = 0;
}

int fault_hits(void)
{
    return hits;
}

void fault_report(FILE *out)
{
    for (int call = 0; call < CALLS; call++)
        if (counts[call] > 0)
            fprintf(out, "%s %d\n", names[call], counts[call]);
}

/* Whether this call is to fail; then errno is set. */
static int is_to_fail(enum call call, const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    if (!armed || at < code_begin || at >= code_end)
        return 0;
    int count = ++counts[call];
    if (orders[call].from == 0 || (orders[call].onwards ? count < orders[call].from : count != orders[call].from))
        return 0;
    hits++;
    errno = orders[call].with_errno;
    return 1;
}

#define FAILS(name) is_to_fail(CALL_##name, __builtin_return_address(0))
#define CALL(result, name, parameters, ...) ((result(*) parameters)real[REAL_##name])(__VA_ARGS__)

/* A function that is passed on as it is. */
#define PASS(result, failure, name, counted, parameters, ...)                                                          \
    result name parameters                                                                                             \
    {                                                                                                                  \
        return FAILS(counted) ? failure : CALL(result, name, parameters, __VA_ARGS__);                                 \
    }

PASS(int, -1, access, access, (const char *path, int mode), path, mode)
PASS(int, -1, chdir, chdir, (const char *path), path)
PASS(int, -1, dup2, dup2, (int from_fd, int to), from_fd, to)
PASS(int, -1, epoll_create1, epoll_create1, (int flags), flags)
PASS(int, -1, epoll_ctl, epoll_ctl, (int set, int what, int fd, struct epoll_event *event), set, what, fd, event)
PASS(int, -1, epoll_wait, epoll_wait, (int set, struct epoll_event *events, int most, int time), set, events, most,
     time)
PASS(int, -1, eventfd, eventfd, (unsigned count, int flags), count, flags)
PASS(int, -1, execve, execve, (const char *path, char *const arguments[], char *const env[]), path, arguments, env)
PASS(int, -1, fchmod, fchmod, (int fd, mode_t mode), fd, mode)
PASS(int, -1, fchmodat, fchmodat, (int fd, const char *path, mode_t mode, int flags), fd, path, mode, flags)
PASS(int, -1, flock, flock, (int fd, int what), fd, what)
PASS(pid_t, -1, fork, fork, (void), )
PASS(int, -1, fstat, fstat, (int fd, struct stat *stat), fd, stat)
PASS(int, -1, fstat64, fstat, (int fd, struct stat64 *stat), fd, stat)
PASS(int, -1, ftruncate, ftruncate, (int fd, off_t size), fd, size)
PASS(int, -1, ftruncate64, ftruncate, (int fd, off64_t size), fd, size)
PASS(char *, NULL, getcwd, getcwd, (char *buffer, size_t size), buffer, size)
PASS(int, -1, getentropy, getentropy, (void *buffer, size_t size), buffer, size)
PASS(ssize_t, -1, getrandom, getrandom, (void *buffer, size_t size, unsigned flags), buffer, size, flags)
PASS(int, -1, kill, kill, (pid_t pid, int number), pid, number)
PASS(off64_t, -1, lseek64, lseek, (int fd, off64_t offset, int whence), fd, offset, whence)
PASS(int, -1, lstat64, lstat, (const char *path, struct stat64 *stat), path, stat)
PASS(int, -1, memfd_create, memfd_create, (const char *name, unsigned flags), name, flags)
PASS(int, -1, mkdir, mkdir, (const char *path, mode_t mode), path, mode)
PASS(void *, MAP_FAILED, mmap, mmap, (void *at, size_t size, int prot, int flags, int fd, off_t offset), at, size, prot,
     flags, fd, offset)
PASS(void *, MAP_FAILED, mmap64, mmap, (void *at, size_t size, int prot, int flags, int fd, off64_t offset), at, size,
     prot, flags, fd, offset)
PASS(int, -1, mprotect, mprotect, (void *at, size_t size, int prot), at, size, prot)
PASS(void *, NULL, opendir, opendir, (const char *path), path)
PASS(int, -1, pipe2, pipe2, (int ends[2], int flags), ends, flags)
PASS(int, -1, poll, poll, (struct pollfd *entries, nfds_t count, int time), entries, count, time)
PASS(int, -1, ppoll, ppoll, (struct pollfd *entries, nfds_t count, const struct timespec *time, const sigset_t *mask),
     entries, count, time, mask)
PASS(ssize_t, -1, readlink, readlink, (const char *path, char *buffer, size_t size), path, buffer, size)
PASS(int, -1, renameat, renameat, (int from_fd, const char *old, int to, const char *new), from_fd, old, to, new)
PASS(int, -1, rmdir, rmdir, (const char *path), path)
PASS(pid_t, -1, setsid, setsid, (void), )
PASS(int, -1, sigtimedwait, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *time), set,
     info, time)
PASS(int, -1, stat64, stat, (const char *path, struct stat64 *stat), path, stat)
PASS(int, -1, statx, statx, (int fd, const char *path, int flags, unsigned mask, struct statx *stat), fd, path, flags,
     mask, stat)
PASS(int, -1, unlink, unlink, (const char *path), path)
PASS(int, -1, unlinkat, unlinkat, (int fd, const char *path, int flags), fd, path, flags)
PASS(pid_t, -1, waitpid, waitpid, (pid_t pid, int *status, int options), pid, status, options)

/* Threads give the error as a result. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int before = errno;
    if (FAILS(pthread_create)) {
        errno = before;
        return orders[CALL_pthread_create].with_errno;
    }
    return CALL(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *), thread,
                attributes, start, argument);
}

/* A close that fails has closed all the same. */
int close(int fd)
{
    int fails_now = FAILS(close);
    int result = CALL(int, close, (int), fd);
    if (fails_now)
        errno = orders[CALL_close].with_errno;
    return fails_now ? -1 : result;
}

static enum call by_kind(int fd, enum call file, enum call pipe, enum call event)
{
    struct stat stat;
    int before = errno;
    int result = CALL(int, fstat, (int, struct stat *), fd, &stat);
    errno = before;
    if (result != 0)
        return file;
    return S_ISFIFO(stat.st_mode) ? pipe : S_ISREG(stat.st_mode) ? file : event;
}

ssize_t read(int fd, void *buffer, size_t size)
{
    if (is_to_fail(by_kind(fd, CALL_read_file, CALL_read_pipe, CALL_read_event), __builtin_return_address(0)))
        return -1;
    return CALL(ssize_t, read, (int, void *, size_t), fd, buffer, size);
}

ssize_t write(int fd, const void *buffer, size_t size)
{
    if (is_to_fail(by_kind(fd, CALL_write_file, CALL_write_pipe, CALL_write_event), __builtin_return_address(0)))
        return -1;
    return CALL(ssize_t, write, (int, const void *, size_t), fd, buffer, size);
}

static enum call by_path(const char *path, int directory)
{
    if (strncmp(path, "/proc", 5) == 0)
        return CALL_open_proc;
    if (strcmp(path, "/dev/null") == 0)
        return CALL_open_null;
    return path[0] != '/' && directory >= 0 && path[0] >= '0' && path[0] <= '9' ? CALL_open_proc : CALL_open_other;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                        \
        va_end(rest);                                                                                                  \
        if (is_to_fail(by_path(path, -1), __builtin_return_address(0)))                                                \
            return -1;                                                                                                 \
        return CALL(int, name, (const char *, int, ...), path, flags, mode);                                           \
    }
OPEN(open)
OPEN(open64)

int openat(int directory, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (is_to_fail(by_path(path, directory), __builtin_return_address(0)))
        return -1;
    return CALL(int, openat, (int, const char *, int, ...), directory, path, flags, mode);
}

int fcntl(int fd, int what, ...)
{
    va_list rest;
    va_start(rest, what);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (is_to_fail(what == F_DUPFD_CLOEXEC ? CALL_fcntl_dup : CALL_fcntl_other, __builtin_return_address(0)))
        return -1;
    return CALL(int, fcntl, (int, int, ...), fd, what, argument);
}

int ioctl(int fd, unsigned long what, ...)
{
    va_list rest;
    va_start(rest, what);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return FAILS(ioctl) ? -1 : CALL(int, ioctl, (int, unsigned long, ...), fd, what, argument);
}

int prctl(int what, ...)
{
    unsigned long a[4];
    va_list rest;
    va_start(rest, what);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(rest, unsigned long);
    va_end(rest);
    return FAILS(prctl) ? -1 : CALL(int, prctl, (int, ...), what, a[0], a[1], a[2], a[3]);
}

int clone(int (*run)(void *), void *stack, int flags, void *argument, ...)
{
    void *a[3];
    va_list rest;
    va_start(rest, argument);
    for (int i = 0; i < 3; i++)
        a[i] = va_arg(rest, void *);
    va_end(rest);
    if (FAILS(clone))
        return -1;
    return CALL(int, clone, (int (*)(void *), void *, int, void *, ...), run, stack, flags, argument, a[0], a[1], a[2]);
}

long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    int call = -1;
    switch (number) {
    case SYS_close_range: call = CALL_close_range; break;
    case SYS_execveat: call = CALL_execveat; break;
    case SYS_getdents64: call = CALL_getdents64; break;
    case SYS_pidfd_open: call = CALL_pidfd_open; break;
    case SYS_pidfd_send_signal: call = CALL_pidfd_send_signal; break;
    case SYS_rt_sigaction: call = CALL_rt_sigaction; break;
    case SYS_rt_sigprocmask: call = CALL_rt_sigprocmask; break;
    case SYS_waitid: call = CALL_waitid; break;
    case SYS_openat: call = (int)by_path((const char *)a[1], (int)a[0]); break;
    case SYS_read: call = CALL_read_file; break;
    }
    if (call >= 0 && is_to_fail((enum call)call, __builtin_return_address(0)))
        return -1;
    return CALL(long, syscall, (long, ...), number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* The search for the real functions takes memory itself, hence these. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    return FAILS(malloc) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return FAILS(malloc) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return FAILS(malloc) ? NULL : __libc_realloc(old, size);
}
