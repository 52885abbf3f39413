/* The protocol and the works of the C peers. */
#define _GNU_SOURCE

#include "peer.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The first bytes of a process's output that are looked at. */
#define HEAD 64

#define QUIET "exec sleep 300"
#define TELLS "echo r; exec sleep 300"
#define CHATTERS "while :; do echo chatter; done"
/* Pauses before it tells the time, so that whoever reads it waits for it. */
#define TELLS_TIME "sleep 0.005; echo $EPOCHREALTIME"
/* A read from a pipe that nothing ever comes from is a pause that costs no process. */
#define LINES "exec 9<> <(:); for ((i = 0; i < %zu; i++)); do echo line $i; read -t 0.001 -u 9; done; true"

struct slot {
    int wanted;
    int running;
    int said;
    size_t reads;
    size_t head_len;
    char head[HEAD + 1];
    uint64_t read_at;
};

static const struct peer_runner *runner;
static struct slot *slots;
static size_t slot_count, said, ended;
/* The groups of what runs in the background, for the signal handler. */
static volatile pid_t *groups;

/* The files of the last run in `PEER_SPILL`, of both streams. */
static char leftovers[2][256];
static size_t leftover_count;

static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;
static char failure[512];

int peer_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&failure_lock);
    vsnprintf(failure, sizeof failure, format, arguments);
    pthread_mutex_unlock(&failure_lock);
    va_end(arguments);
    return -1;
}

int peer_fail_errno(const char *what)
{
    return peer_fail("%s: %s", what, strerror(errno));
}

void peer_spilled(const char *path)
{
    if (leftover_count < sizeof leftovers / sizeof *leftovers)
        snprintf(leftovers[leftover_count++], sizeof *leftovers, "%s", path);
}

static void remove_leftovers(void)
{
    while (leftover_count > 0)
        unlink(leftovers[--leftover_count]);
}

/* Clocks and counts. ---------------------------------------------------------------------------------------------- */

static uint64_t clock_us(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static uint64_t now_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

static uint64_t cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000
        + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static long rss_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%*s %ld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static long entries(const char *path)
{
    long count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static long open_fds(void)
{
    return entries("/proc/self/fd") - 1; /* the folder itself is open while it is read */
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Background processes, for whatever runner. ---------------------------------------------------------------------- */

int peer_wants(size_t slot)
{
    return slots[slot].wanted;
}

void peer_started(size_t slot, pid_t pid)
{
    groups[slot] = pid;
}

void peer_output(size_t slot, const void *data, size_t len)
{
    struct slot *self = &slots[slot];
    size_t room = HEAD - self->head_len;
    if (len == 0)
        return;
    if (!self->said) {
        self->said = 1;
        self->read_at = clock_us(CLOCK_REALTIME); /* the clock of $EPOCHREALTIME */
        said++;
    }
    self->reads++;
    if (room > 0) {
        room = len < room ? len : room;
        memcpy(self->head + self->head_len, data, room);
        self->head_len += room;
    }
}

void peer_ended(size_t slot)
{
    groups[slot] = 0;
    slots[slot].running = 0;
    ended++;
}

/* What was started must not outlive a peer that is interrupted: it is in groups of its own. */
static void interrupted(int number)
{
    for (size_t slot = 0; slot < slot_count; slot++)
        if (groups[slot] > 0)
            kill(-groups[slot], SIGKILL);
    _exit(128 + number);
}

static void catch_interruptions(void)
{
    const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupted;
    for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++)
        sigaction(numbers[at], &action, NULL);
}

static int begin_background(size_t count)
{
    raise_descriptor_limit();
    said = ended = 0;
    slots = calloc(count, sizeof *slots);
    groups = calloc(count, sizeof *groups);
    if (slots == NULL || groups == NULL)
        return peer_fail("out of memory");
    slot_count = count;
    return runner->open != NULL ? runner->open(count) : 0;
}

static int start(size_t slot, int wanted, const char *command)
{
    memset(&slots[slot], 0, sizeof slots[slot]);
    slots[slot].wanted = wanted;
    if (runner->start(slot, command) != 0)
        return -1;
    slots[slot].running = 1;
    return 0;
}

static int pump_until_said(size_t slot)
{
    while (!slots[slot].said)
        if (runner->pump(-1) != 0)
            return -1;
    return 0;
}

static int pump_until_ended(size_t slot)
{
    if (runner->await != NULL && slots[slot].running)
        return runner->await(slot);
    while (slots[slot].running)
        if (runner->pump(-1) != 0)
            return -1;
    return 0;
}

/* Goes on reading for some time. */
static int pump_for(uint64_t us)
{
    uint64_t since = now_us(), passed;
    while ((passed = now_us() - since) < us)
        if (runner->pump((int)((us - passed + 999) / 1000)) != 0)
            return -1;
    return 0;
}

/* Until the shell has become `sleep`. Output of others has to wait: this is done only while nothing else talks. */
static int await_sleep(size_t slot)
{
    struct timespec pause = {0, 100000};
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)groups[slot]);
    for (int tries = 0; tries < 100000; tries++) {
        FILE *file = fopen(path, "re");
        int found = file != NULL && fgets(name, sizeof name, file) != NULL && strcmp(name, "sleep\n") == 0;
        if (file == NULL)
            return peer_fail_errno(path);
        fclose(file);
        if (found)
            return 0;
        nanosleep(&pause, NULL);
    }
    return peer_fail("%s: never became sleep", path);
}

/* Ends what is left; also after errors. */
static void end_background(void)
{
    for (size_t slot = 0; slot < slot_count; slot++)
        if (slots[slot].running)
            runner->stop(slot);
    for (size_t slot = 0; slot < slot_count; slot++)
        while (slots[slot].running && runner->pump(-1) == 0)
            ;
    if (runner->close != NULL)
        runner->close();
    slot_count = 0;
    free(slots);
    free((void *)groups);
    slots = NULL;
    groups = NULL;
}

/* The works. Each gives 0 after its answer, or -1 after peer_fail(). ---------------------------------------------- */

static void answer_list(const char *name, const uint64_t *values, size_t count)
{
    printf("%s=", name);
    for (size_t at = 0; at < count; at++)
        printf("%s%llu", at > 0 ? "," : "", (unsigned long long)values[at]);
}

static void answer(const char *name, uint64_t value)
{
    printf("\t%s=%llu", name, (unsigned long long)value);
}

static int run(size_t count, enum peer_mode mode, const char *command)
{
    uint64_t bytes = 0, *walls = malloc(count * sizeof *walls);
    if (walls == NULL)
        return peer_fail("out of memory");
    uint64_t cpu = cpu_us();
    for (size_t at = 0; at < count; at++) {
        uint64_t since = now_us();
        int status = runner->run(mode, command, &bytes);
        walls[at] = now_us() - since;
        remove_leftovers();
        if (status != 0) {
            free(walls);
            return -1;
        }
    }
    cpu = cpu_us() - cpu;
    answer_list("wall_us", walls, count);
    answer("cpu_us", cpu);
    answer("bytes", bytes);
    free(walls);
    return 0;
}

struct crowd {
    pthread_mutex_t lock;
    const char *command;
    size_t left;
    int failed;
};

static void *caller(void *argument)
{
    struct crowd *crowd = argument;
    uint64_t bytes;
    for (;;) {
        pthread_mutex_lock(&crowd->lock);
        int mine = crowd->left > 0 && !crowd->failed;
        crowd->left -= (size_t)mine;
        pthread_mutex_unlock(&crowd->lock);
        if (!mine)
            return NULL;
        if (runner->run(PEER_KEEP, crowd->command, &bytes) != 0) {
            pthread_mutex_lock(&crowd->lock);
            crowd->failed = 1;
            pthread_mutex_unlock(&crowd->lock);
        }
    }
}

static int parallel_by_threads(size_t callers, size_t count, const char *command)
{
    struct crowd crowd = {PTHREAD_MUTEX_INITIALIZER, command, count, 0};
    pthread_t *threads = malloc(callers * sizeof *threads);
    size_t started = 0;
    if (threads == NULL)
        return peer_fail("out of memory");
    while (started < callers && pthread_create(&threads[started], NULL, caller, &crowd) == 0)
        started++;
    for (size_t at = 0; at < started; at++)
        pthread_join(threads[at], NULL);
    free(threads);
    if (started < callers)
        return peer_fail("only %zu of %zu threads could be started", started, callers);
    return crowd.failed ? -1 : 0;
}

static int parallel(size_t callers, size_t count, const char *command)
{
    uint64_t cpu = cpu_us(), since = now_us();
    if ((runner->parallel != NULL ? runner->parallel : parallel_by_threads)(callers, count, command) != 0)
        return -1;
    uint64_t wall = now_us() - since;
    cpu = cpu_us() - cpu;
    answer_list("wall_us", &wall, 1);
    answer("cpu_us", cpu);
    return 0;
}

static int many(size_t count)
{
    uint64_t since = now_us(), cpu = cpu_us();
    long rss = rss_kib();
    for (size_t slot = 0; slot < count; slot++)
        if (start(slot, 1, TELLS) != 0)
            return -1;
    while (said < count)
        if (runner->pump(-1) != 0)
            return -1;
    uint64_t ready = now_us() - since, start_cpu = cpu_us() - cpu;
    rss = rss_kib() - rss;
    long threads = entries("/proc/self/task"), fds = open_fds();
    if (pump_for(200000) != 0)
        return -1;

    cpu = cpu_us();
    if (pump_for(1000000) != 0)
        return -1;
    uint64_t idle = cpu_us() - cpu;

    since = now_us();
    cpu = cpu_us();
    for (size_t slot = 0; slot < count; slot++)
        if (runner->stop(slot) != 0)
            return -1;
    while (ended < count)
        if (runner->pump(-1) != 0)
            return -1;
    uint64_t killed = now_us() - since, kill_cpu = cpu_us() - cpu;

    printf("ready_us=%llu", (unsigned long long)ready);
    answer("start_cpu_us", start_cpu);
    answer("rss_kib", rss > 0 ? (uint64_t)rss : 0);
    answer("threads", (uint64_t)threads);
    answer("fds", (uint64_t)fds);
    answer("idle_us", idle);
    answer("kill_us", killed);
    answer("kill_cpu_us", kill_cpu);
    return 0;
}

static int kill_one(uint64_t *wall)
{
    if (start(0, 1, TELLS) != 0 || pump_until_said(0) != 0 || await_sleep(0) != 0)
        return -1;
    uint64_t since = now_us();
    if (runner->stop(0) != 0 || pump_until_ended(0) != 0)
        return -1;
    *wall = now_us() - since;
    return 0;
}

static int kills(size_t count)
{
    uint64_t *walls = malloc(count * sizeof *walls);
    int status = walls == NULL ? peer_fail("out of memory") : 0;
    for (size_t at = 0; status == 0 && at < count; at++)
        status = kill_one(&walls[at]);
    if (status == 0)
        answer_list("wall_us", walls, count);
    free(walls);
    return status;
}

/* What $EPOCHREALTIME says: six digits follow the decimal point, which is a comma in some languages. */
static uint64_t told_us(const char *text)
{
    uint64_t us = 0;
    for (; *text != 0 && *text != '\n'; text++)
        if (*text >= '0' && *text <= '9')
            us = us * 10 + (uint64_t)(*text - '0');
    return us;
}

static int first_byte_one(size_t slot, uint64_t *delay)
{
    if (start(slot, 1, TELLS_TIME) != 0 || pump_until_said(slot) != 0)
        return -1;
    while (slots[slot].running)
        if (runner->pump(-1) != 0)
            return -1;
    uint64_t told = told_us(slots[slot].head), read_at = slots[slot].read_at;
    if (told == 0)
        return peer_fail("no $EPOCHREALTIME: that needs bash 5");
    *delay = read_at > told ? read_at - told : 0;
    return 0;
}

static int first_bytes(size_t count, size_t chatty)
{
    uint64_t *walls = malloc(count * sizeof *walls);
    int status = walls == NULL ? peer_fail("out of memory") : 0;
    for (size_t slot = 0; status == 0 && slot < chatty; slot++)
        status = start(slot, 0, CHATTERS);
    if (status == 0)
        status = pump_for(100000); /* until they chatter */
    for (size_t at = 0; status == 0 && at < count; at++)
        status = first_byte_one(chatty, &walls[at]);
    if (status == 0)
        answer_list("wall_us", walls, count);
    free(walls);
    return status;
}

static int wakeup(size_t quiet, size_t count)
{
    char command[256];
    snprintf(command, sizeof command, LINES, count);
    for (size_t slot = 0; slot < quiet; slot++)
        if (start(slot, 1, QUIET) != 0)
            return -1;
    for (size_t slot = 0; slot < quiet; slot++)
        if (await_sleep(slot) != 0)
            return -1;
    if (pump_for(200000) != 0)
        return -1;
    uint64_t cpu = cpu_us();
    if (start(quiet, 1, command) != 0)
        return -1;
    while (slots[quiet].running)
        if (runner->pump(-1) != 0)
            return -1;
    cpu = cpu_us() - cpu;
    printf("cpu_us=%llu", (unsigned long long)cpu);
    answer("wakeups", slots[quiet].reads);
    return 0;
}

/* The protocol. --------------------------------------------------------------------------------------------------- */

/* Takes the next field off a request; the last one is what is left. */
static char *field(char **rest)
{
    char *start = *rest;
    if (start == NULL)
        return NULL;
    *rest = strchr(start, '\t');
    if (*rest != NULL)
        *(*rest)++ = 0;
    return start;
}

static int number(char **rest, size_t least, size_t *value)
{
    char *text = field(rest), *end = NULL;
    if (text == NULL || *text < '0' || *text > '9')
        return peer_fail("a number is missing");
    errno = 0;
    *value = strtoul(text, &end, 10);
    if (errno != 0 || *end != 0 || *value < least || *value > 1000000)
        return peer_fail("%s: not a number that can be used", text);
    return 0;
}

static int unsupported(void)
{
    printf("unsupported");
    return 0;
}

static int answer_run(char *rest)
{
    size_t count;
    if (number(&rest, 1, &count) != 0)
        return -1;
    const char *mode = field(&rest);
    if (mode == NULL || rest == NULL)
        return peer_fail("run needs COUNT, MODE and COMMAND");
    if (strcmp(mode, "keep") == 0)
        return run(count, PEER_KEEP, rest);
    if (strcmp(mode, "spill") == 0)
        return runner->spills ? run(count, PEER_SPILL, rest) : unsupported();
    return peer_fail("%s: no such mode", mode);
}

static int answer_parallel(char *rest)
{
    size_t callers, count;
    if (number(&rest, 1, &callers) != 0 || number(&rest, 1, &count) != 0)
        return -1;
    return rest == NULL ? peer_fail("parallel needs CALLERS, COUNT and COMMAND") : parallel(callers, count, rest);
}

/* A work with background processes: one that takes one number, or one that takes two. */
static int in_background(size_t needed, size_t first, size_t second, int (*of_one)(size_t),
                         int (*of_two)(size_t, size_t))
{
    int status = begin_background(needed);
    if (status == 0)
        status = of_one != NULL ? of_one(first) : of_two(first, second);
    end_background();
    return status;
}

static int answer_background(const char *name, char *rest)
{
    size_t first, second = 0;
    if (runner->start == NULL)
        return unsupported();
    if (number(&rest, strcmp(name, "wakeup") == 0 ? 0 : 1, &first) != 0)
        return -1;
    if (strcmp(name, "many") == 0)
        return in_background(first, first, 0, many, NULL);
    if (strcmp(name, "kill") == 0)
        return in_background(1, first, 0, kills, NULL);
    if (strcmp(name, "first_byte") == 0)
        return number(&rest, 0, &second) != 0 ? -1 : in_background(second + 1, first, second, NULL, first_bytes);
    return number(&rest, 1, &second) != 0 ? -1 : in_background(first / 2 + 1, first / 2, second, NULL, wakeup);
}

static int is_background(const char *name)
{
    return strcmp(name, "many") == 0 || strcmp(name, "kill") == 0 || strcmp(name, "first_byte") == 0
        || strcmp(name, "wakeup") == 0;
}

static void serve(char *request)
{
    char *rest = request;
    const char *name = field(&rest);
    int status;
    if (strcmp(name, "run") == 0)
        status = answer_run(rest);
    else if (strcmp(name, "parallel") == 0)
        status = answer_parallel(rest);
    else if (is_background(name))
        status = answer_background(name, rest);
    else
        status = unsupported();
    if (status != 0)
        printf("error\t%s", failure);
    putchar('\n');
    fflush(stdout);
}

static void serve_all(void)
{
    char *line = NULL;
    size_t size = 0;
    for (ssize_t len; (len = getline(&line, &size, stdin)) > 0;) {
        if (line[len - 1] == '\n')
            line[len - 1] = 0;
        serve(line);
    }
    free(line);
}

/* As much memory as a big host has, with every page in use. */
static int take_ballast(size_t mib)
{
    size_t size = mib << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    if (size == 0)
        return 0;
    volatile char *ballast = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ballast == MAP_FAILED)
        return peer_fail_errno("ballast");
    for (size_t at = 0; at < size; at += page)
        ballast[at] = 1;
    return 0;
}

static const struct peer_runner *find(const char *variant, const struct peer_runner *runners, size_t count)
{
    for (size_t at = 0; at < count; at++)
        if (strcmp(runners[at].variant, variant) == 0)
            return &runners[at];
    return NULL;
}

static int begin_and_run_once(void)
{
    uint64_t bytes;
    if (runner->begin != NULL && runner->begin() != 0)
        return -1;
    return runner->run(PEER_KEEP, "true", &bytes);
}

static int usage(const char *program, const struct peer_runner *runners, size_t count)
{
    fprintf(stderr, "usage: %s VARIANT [--ballast MIB], VARIANT one of: first", program);
    for (size_t at = 0; at < count; at++)
        fprintf(stderr, " %s", runners[at].variant);
    fputc('\n', stderr);
    return 2;
}

int peer_main(int argc, char **argv, const struct peer_runner *runners, size_t count, const char *version)
{
    int first = argc == 2 && strcmp(argv[1], "first") == 0;
    if (argc != 2 && (argc != 4 || strcmp(argv[2], "--ballast") != 0))
        return usage(argv[0], runners, count);
    runner = first ? runners : find(argv[1], runners, count);
    if (runner == NULL)
        return usage(argv[0], runners, count);
    if (!runner->guarded && !first)
        catch_interruptions();
    if ((argc == 4 && take_ballast(strtoul(argv[3], NULL, 10)) != 0) || begin_and_run_once() != 0) {
        fprintf(stderr, "%s: %s\n", argv[0], failure);
        return 1;
    }
    if (!first) {
        printf("ready\tversion=%s\n", version);
        fflush(stdout);
        serve_all();
    }
    if (runner->end != NULL)
        runner->end();
    return 0;
}
