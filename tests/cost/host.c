/* A host whose use of the library is counted: what happens between two marks is one call, its result read and freed.
 *
 *     host CASE RUNS [MIB]
 *
 * Memory functions are taken from the C library and counted here: how often memory is asked for, and how many bytes are
 * copied and looked at. The C library does the latter by whatever the processor is best at, so that instructions would
 * say more about the processor than about the library; bytes are the same everywhere. Under `steps` (with STEPPED in the
 * environment) these functions are therefore skipped.
 *
 * Without STEPPED the marks are writes to no file, for strace, and what was counted is printed: for each call how often
 * memory was asked for, how many bytes of it, how many bytes were copied (or set), and how many compared (or searched).
 *
 * To be compiled without builtins, and with little optimization: a loop must not become a call of what it is part of.
 */
#include <dsh.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "marks.h"

struct counts {
    size_t allocations, allocated, copied, scanned;
};

static volatile int counting, stepped;
static struct counts now;

static void add(size_t *counter, size_t n)
{
    if (counting)
        __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static void asked(size_t bytes)
{
    add(&now.allocations, 1);
    add(&now.allocated, bytes);
}

/* Names by which glibc still has its own. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    asked(bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    asked(count * bytes);
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    asked(bytes);
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    asked(bytes);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    asked(bytes);
    *memory = __libc_memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}

/* Begins and ends what is not stepped through. Only for the first thread: the others do nothing meanwhile, and children
 * call nothing of this before their exec. */
#define SKIPPED(work)                                                                                                  \
    do {                                                                                                               \
        int skip = counting && stepped;                                                                                \
        if (skip)                                                                                                      \
            MARK(MARK_SKIP);                                                                                           \
        work;                                                                                                          \
        if (skip)                                                                                                      \
            MARK(MARK_ON);                                                                                             \
    } while (0)

static void copy(unsigned char *to, const unsigned char *from, size_t n)
{
#ifdef __x86_64__
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
    while (n-- > 0)
        *to++ = *from++;
#endif
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    SKIPPED(add(&now.copied, n); copy(to, from, n));
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    SKIPPED(add(&now.copied, n); if ((size_t)target - (size_t)source >= n) copy(target, source, n);
            else while (n-- > 0) target[n] = source[n]);
    return to;
}

void *memset(void *to, int value, size_t n)
{
    unsigned char *target = to;
    SKIPPED(add(&now.copied, n); while (n-- > 0) target[n] = (unsigned char)value);
    return to;
}

int memcmp(const void *left, const void *right, size_t n)
{
    const unsigned char *a = left, *b = right;
    size_t i = 0;
    SKIPPED(while (i < n && a[i] == b[i]) i++; add(&now.scanned, i));
    return i < n ? a[i] - b[i] : 0;
}

int bcmp(const void *left, const void *right, size_t n)
{
    return memcmp(left, right, n);
}

size_t strlen(const char *text)
{
    size_t n = 0;
    SKIPPED(while (text[n]) n++; add(&now.scanned, n));
    return n;
}

void *memchr(const void *memory, int value, size_t n)
{
    const unsigned char *bytes = memory;
    size_t i = 0;
    SKIPPED(while (i < n && bytes[i] != (unsigned char)value) i++; add(&now.scanned, i));
    return i < n ? (void *)(bytes + i) : NULL;
}

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        dsh_error_t *error = NULL;                                                                                     \
        if ((call) != DSH_OK) {                                                                                        \
            fprintf(stderr, "%s: %s\n", #call, dsh_error_message(error));                                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint64_t call(const dsh_executor_t *executor, const dsh_request_t *request)
{
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = NULL;
    OK(dsh_run(executor, request, &result, &error));
    OK(dsh_result_info(result, &info, &error));
    uint64_t total = info.outcome.exit == DSH_EXIT_CODE && info.outcome.code == 0 ? info.out.total : UINT64_MAX;
    dsh_result_free(result);
    return total;
}

int main(int argc, char **argv)
{
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_request_t request = DSH_REQUEST_INIT;
    dsh_executor_t *executor = NULL;
    char command[100] = "true";
    if (argc < 3)
        return 2;
    const char *name = argv[1];
    size_t runs = strtoul(argv[2], NULL, 10), mib = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    size_t warm = mib ? 2 : 10; /* the C library's allocator settles after some */
    struct counts *each = calloc(runs, sizeof *each);
    stepped = getenv("STEPPED") != NULL;

    /* Blocks as big as the pipe: a reader that comes later than its writer always finds whole ones. */
    if (mib > 0) {
        config.flags = DSH_CONFIG_NO_INHERIT_ENV; /* less to step through */
        snprintf(command, sizeof command, "exec dd if=/dev/zero bs=65536 count=%zu status=none", mib * 16);
    }
    if (strcmp(name, "kept") == 0)
        request.stdout_max_bytes = 64 << 20;
    else if (strcmp(name, "thrown-away") == 0)
        config.max_spill_bytes = 1;
    else if (strcmp(name, "run") != 0 && strcmp(name, "spilled") != 0)
        return 2;
    request.command = command;
    request.command_len = strlen(command);

    /* A signal that nobody handles would still stop a host that is stepped through. */
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);

    OK(dsh_executor_new(&config, &executor, &error));
    for (size_t run = 0; run < warm + runs; run++) {
        int counted = run >= warm; /* what is done the first time is not the cost of a call */
        struct counts before = now;
        if (counted) {
            if (stepped)
                MARK(MARK_BEGIN);
            else if (write(-1, "begin", 5) == 0)
                return 1;
            counting = 1;
        }
        uint64_t total = call(executor, &request);
        counting = 0;
        if (counted) {
            if (stepped)
                MARK(MARK_END);
            else if (write(-1, "end", 3) == 0)
                return 1;
            each[run - warm] = (struct counts){now.allocations - before.allocations, now.allocated - before.allocated,
                                            now.copied - before.copied, now.scanned - before.scanned};
        }
        if (total != (uint64_t)mib << 20) {
            fprintf(stderr, "the command failed, or gave %llu bytes\n", (unsigned long long)total);
            return 1;
        }
    }
    dsh_executor_free(executor);
    for (size_t run = 0; !stepped && run < runs; run++)
        printf("%zu %zu %zu %zu\n", each[run].allocations, each[run].allocated, each[run].copied, each[run].scanned);
    return 0;
}
