/* A host that plays one scenario while one of the library's system calls fails (see faults.c), and then checks what has
 * to be so in any case: a clear error or a true result, an executor that goes on working, and nothing left behind.
 *
 *     fault_host SCENARIO [ORDER...]    prints "hits N" and how often each call was made
 *
 * Orders, carried out before the executor is made: "files N" leaves N descriptors to be opened, "processes N" sets
 * RLIMIT_NPROC, "memory N" leaves N KiB of address space, "full" and "readonly" mount such a TMPDIR. With "late" they
 * are carried out, and calls fail, only after a first command. */
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void (*arm)(void), (*disarm)(void), (*report)(FILE *);
static int (*hits)(void);
static int expected_errno;
static const char *fault;
static char mark[64];
static int may_be_unknown, is_without_memory;

/* A failed call says what went wrong, and never blames anything else. */
static int worked(dsh_status_t status, dsh_error_t *error, const char *call)
{
    if (status == DSH_OK) {
        CHECK(error == NULL);
        return 1;
    }
    int is_of_place = status <= DSH_E_WORKDIR_MISSING && status >= DSH_E_SHELL_MISSING;
    int is_of_system = status == DSH_E_SPAWN || status == DSH_E_SYSTEM || status == DSH_E_OUT_OF_MEMORY;
    int number = dsh_error_errno(error);
    int is_expected = number == expected_errno || (is_without_memory && number == ENOMEM);
    int is_clear = (is_of_system || is_of_place) && is_expected && *dsh_error_stage(error) != 0
                   && *dsh_error_message(error) != 0;
    if (!is_clear)
        fprintf(stderr, "%s: %s gave %d at \"%s\", errno %d, not %d: %s\n", fault, call, status, dsh_error_stage(error),
                dsh_error_errno(error), expected_errno, dsh_error_message(error));
    CHECK(is_clear);
    dsh_error_free(error);
    return 0;
}

static dsh_error_t *error;
static dsh_status_t status;
#define WORKED(call) (error = NULL, status = (call), worked(status, error, #call))

static int ended_with(dsh_outcome_t outcome, int code)
{
    if (may_be_unknown && outcome.exit == DSH_EXIT_UNKNOWN)
        return 1;
    return outcome.exit == DSH_EXIT_CODE && outcome.code == code && !outcome.timed_out && !outcome.aborted;
}

static int ended_by(dsh_outcome_t outcome, int number)
{
    if (may_be_unknown && outcome.exit == DSH_EXIT_UNKNOWN)
        return 1;
    return outcome.exit == DSH_EXIT_SIGNAL && outcome.signal == number;
}

/* The result, or NULL after a clear error. */
static dsh_result_t *try(const dsh_executor_t *executor, const dsh_request_t *request, dsh_result_info_t *info)
{
    dsh_result_t *result = NULL;
    if (!WORKED(dsh_run(executor, request, &result, &error)))
        return NULL;
    OK(dsh_result_info(result, info, &error));
    return result;
}

static void plain(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of("echo out; echo err >&2; exit 3");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    for (int round = 0; round < 2; round++) {
        dsh_result_t *result = try(executor, &request, &info);
        if (result == NULL)
            continue;
        CHECK(ended_with(info.outcome, 3));
        CHECK(is_text(info.out.data, info.out.len, "out\n") && is_text(info.err.data, info.err.len, "err\n"));
        CHECK(!info.outcome.pipes_held && info.survivors_len == 0);
        dsh_result_free(result);
    }
}

static void overflow(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of("for i in {1..30000}; do echo $i; done; exit 2");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    struct stat file;
    dsh_result_t *result = try(executor, &request, &info);
    if (result == NULL)
        return;
    CHECK(ended_with(info.outcome, 2));
    CHECK(info.out.total == 168894 && info.out.len + info.out.omitted == info.out.total && info.out.len > 60000);
    CHECK(memcmp((const char *)info.out.data + info.out.len - 12, "29999\n30000\n", 12) == 0);
    CHECK((info.out.spill_path == NULL) != (info.out.spill_error == NULL));
    if (info.out.spill_path != NULL) /* complete, or not offered */
        CHECK(stat(info.out.spill_path, &file) == 0 && file.st_size == 168894);
    dsh_result_free(result);
}

static const char *const deaf = "trap '' TERM; setsid sleep 60 & (trap '' TERM; echo up; sleep 60; sleep 60) &"
                                " sleep 60; sleep 60";

static void timeout(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of(deaf);
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    request.timeout_ms = 60;
    dsh_result_t *result = try(executor, &request, &info);
    if (result == NULL)
        return;
    CHECK(info.outcome.timed_out && info.outcome.cause == DSH_STOP_TIMEOUT && info.outcome.wall_us >= 60000);
    if (info.out.len > 0) /* otherwise the shell had not come as far as its trap */
        CHECK(ended_by(info.outcome, SIGKILL) && info.outcome.stage == DSH_STOP_STAGE_KILL);
    CHECK(info.survivors_len == 0 || hits() > 0);
    dsh_result_free(result);
}

static void killed(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of("setsid sleep 60 & echo up; sleep 60");
    dsh_process_t *process = NULL;
    uint32_t was_running = 0;
    int32_t fd = -1;
    int has_events = WORKED(dsh_executor_event_fd(executor, &fd, &error));
    if (!WORKED(dsh_start(executor, &request, &process, &error)))
        return;
    UNTIL(info_of(process).out_total == 3);
    for (size_t len = 0; len < 3;) { /* a read without memory gives less, and the rest the next time */
        dsh_chunk_t *chunk = NULL;
        dsh_chunk_info_t info = DSH_CHUNK_INFO_INIT;
        OK(dsh_read_output(process, &chunk, &error));
        OK(dsh_chunk_info(chunk, &info, &error));
        CHECK(!info.lossy && len + info.len <= 3 && memcmp(info.data, "up\n" + len, info.len) == 0);
        len += info.len;
        dsh_chunk_free(chunk);
    }
    OK(dsh_kill(process, &was_running, &error));
    OK(dsh_wait(process, 15000, &error));
    dsh_process_info_t end = info_of(process);
    CHECK(was_running && end.status == DSH_PROCESS_KILLED && end.outcome.aborted && ended_by(end.outcome, SIGTERM));
    UNTIL(info_of(process).quiescent || hits() > 0);
    for (int settled = 0; has_events && !settled;) { /* the event may come a moment after the wait has ended */
        dsh_event_t event = DSH_EVENT_INIT;
        UNTIL((dsh_next_event(executor, &event, NULL), event.kind != DSH_EVENT_NONE));
        settled = event.kind == DSH_EVENT_SETTLED;
    }
    dsh_process_free(process);
}

static void ended(const dsh_executor_t *executor)
{
    dsh_process_t *process = NULL;
    dsh_request_t request = request_of("for i in {1..30000}; do echo $i; done; exit 5");
    if (!WORKED(dsh_start(executor, &request, &process, &error)))
        return;
    OK(dsh_wait(process, 15000, &error));
    dsh_process_info_t end = info_of(process);
    CHECK(ended_with(end.outcome, 5) && end.status == DSH_PROCESS_COMPLETED && end.out_total == 168894);
    UNTIL(info_of(process).quiescent);
    dsh_process_free(process);
}

static void input(const dsh_executor_t *executor)
{
    static char bytes[200000];
    dsh_request_t request = request_of("cat; exit 4");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    memset(bytes, 'x', sizeof bytes);
    request.input = bytes;
    request.input_len = sizeof bytes;
    request.stdout_max_bytes = 2 * sizeof bytes;
    dsh_result_t *result = try(executor, &request, &info);
    if (result == NULL)
        return;
    CHECK(ended_with(info.outcome, 4) && info.input_written == sizeof bytes);
    CHECK(info.out.len == sizeof bytes && memcmp(info.out.data, bytes, sizeof bytes) == 0);
    dsh_result_free(result);
}

static void cancelled(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of("sleep 60 & sleep 60");
    dsh_process_t *process = NULL;
    dsh_cancel_t *cancel = NULL;
    OK(dsh_cancel_new(&cancel, &error));
    request.cancel = cancel;
    if (WORKED(dsh_start(executor, &request, &process, &error))) {
        OK(dsh_cancel(cancel, &error));
        OK(dsh_wait(process, 15000, &error));
        dsh_process_info_t end = info_of(process);
        CHECK(end.outcome.aborted && end.outcome.cause == DSH_STOP_CANCEL && end.status == DSH_PROCESS_KILLED);
        dsh_process_free(process);
    }
    dsh_cancel_free(cancel);
}

static void longer(const dsh_executor_t *executor)
{
    static char command[150000];
    dsh_request_t request = DSH_REQUEST_INIT;
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    memset(command, ' ', sizeof command);
    memcpy(command + sizeof command - 12, "echo; exit 8", 12);
    request.command = command;
    request.command_len = sizeof command;
    dsh_result_t *result = try(executor, &request, &info);
    if (result == NULL)
        return;
    CHECK(ended_with(info.outcome, 8) && is_text(info.out.data, info.out.len, "\n"));
    dsh_result_free(result);
}

static void survivors(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of("sleep 60 & setsid sleep 60 & exit 6");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    for (uint32_t policy = DSH_SURVIVORS_KEEP; policy <= DSH_SURVIVORS_KILL; policy++) {
        request.survivors = policy;
        dsh_result_t *result = try(executor, &request, &info);
        if (result == NULL)
            continue;
        CHECK(ended_with(info.outcome, 6) && info.outcome.cause == DSH_STOP_NONE);
        CHECK(hits() > 0 || info.survivors_len == (policy == DSH_SURVIVORS_KEEP ? 2 : 0));
        CHECK(hits() > 0 || info.outcome.pipes_held == (policy == DSH_SURVIVORS_KEEP));
        dsh_result_free(result);
    }
}

/* Trees that are ended by the shutdown that follows. */
static void left(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of(deaf);
    dsh_process_t *process = NULL;
    for (int round = 0; round < 2; round++)
        if (WORKED(dsh_start(executor, &request, &process, &error))) {
            UNTIL(info_of(process).out_total == 3);
            dsh_process_free(process);
        }
}

/* Descriptors that the host leaves open across an exec do not reach the command. */
static void leaky(const dsh_executor_t *executor)
{
    int fds[20];
    dsh_request_t request = request_of("ls /proc/$$/fd; true");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    for (int i = 0; i < 20; i++)
        CHECK((fds[i] = fcntl(0, F_DUPFD, 30 + 40 * i)) > 2);
    dsh_result_t *result = try(executor, &request, &info);
    CHECK(result == NULL || is_text(info.out.data, info.out.len, "0\n1\n2\n"));
    dsh_result_free(result);
    for (int i = 0; i < 20; i++)
        CHECK(close(fds[i]) == 0);
}

static const struct {
    const char *name;
    void (*play)(const dsh_executor_t *);
} scenarios[] = {
    {"plain", plain},   {"overflow", overflow},   {"timeout", timeout}, {"killed", killed},       {"ended", ended},
    {"leaky", leaky},
    {"input", input},   {"cancelled", cancelled}, {"longer", longer},   {"survivors", survivors}, {"left", left},
};

/* Which of the processes that carry the mark is alive, besides this one. */
static int anything_alive(void)
{
    int found = 0;
    DIR *processes = opendir("/proc");
    CHECK(processes != NULL);
    for (struct dirent *entry = readdir(processes); entry != NULL; entry = readdir(processes)) {
        static char environment[200000];
        char path[300];
        int pid = atoi(entry->d_name);
        if (pid <= 1 || pid == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%d/environ", pid);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = file < 0 ? -1 : read(file, environment, sizeof environment);
        if (file >= 0)
            close(file);
        if (size > 0 && memmem(environment, (size_t)size, mark, strlen(mark)) != NULL)
            found = pid;
    }
    closedir(processes);
    return found;
}

static int threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static int is_empty(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    CHECK(folder != NULL);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count++;
    closedir(folder);
    return count == 2;
}

/* An errno for what comes of a limit. */
static int limit_to(int resource, rlim_t value, int number)
{
    struct rlimit limit;
    CHECK(getrlimit(resource, &limit) == 0);
    limit.rlim_cur = value;
    CHECK(setrlimit(resource, &limit) == 0);
    return number;
}

static void mount_over(const char *path, const char *how)
{
    unsigned user = geteuid();
    if (unshare(CLONE_NEWNS) != 0) {
        CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
        FILE *map = fopen("/proc/self/uid_map", "w");
        fprintf(map, "%u %u 1", user, user);
        fclose(map);
    }
    CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    int is_full = strcmp(how, "full") == 0;
    CHECK(mount("tmpfs", path, "tmpfs", is_full ? 0 : MS_RDONLY, is_full ? "size=48k" : "") == 0);
}

static long address_space(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void carry_out(char **orders)
{
    for (; *orders != NULL; orders++) {
        long value = orders[1] != NULL ? atol(orders[1]) : 0;
        if (strcmp(*orders, "files") == 0)
            expected_errno = limit_to(RLIMIT_NOFILE, (rlim_t)(open_descriptors() - 3 + value), EMFILE);
        if (strcmp(*orders, "processes") == 0)
            expected_errno = limit_to(RLIMIT_NPROC, (rlim_t)value, EAGAIN);
        is_without_memory |= strcmp(*orders, "memory") == 0;
        if (strcmp(*orders, "memory") == 0)
            expected_errno = limit_to(RLIMIT_AS, (rlim_t)(address_space() + value * 1024), EAGAIN); /* of a thread */
        if (strcmp(*orders, "full") == 0 || strcmp(*orders, "readonly") == 0)
            mount_over(getenv("TMPDIR"), *orders);
    }
}

static void lift_limits(void)
{
    static const int resources[] = {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_AS};
    for (int i = 0; i < 3; i++) {
        struct rlimit limit;
        CHECK(getrlimit(resources[i], &limit) == 0);
        limit.rlim_cur = limit.rlim_max;
        CHECK(setrlimit(resources[i], &limit) == 0);
    }
}

static int has_order(char **orders, const char *order)
{
    for (; *orders != NULL; orders++)
        if (strcmp(*orders, order) == 0)
            return 1;
    return 0;
}

/* After the fault: the executor works, is ended, and leaves nothing. */
static void goes_on_and_ends(dsh_executor_t *executor, int must_go_on)
{
    dsh_request_t request = request_of("exit 7");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    if (executor == NULL)
        executor = quick_executor();
    if (must_go_on) {
        dsh_result_free(run(executor, &request, &info));
        CHECK(info.outcome.exit == DSH_EXIT_CODE && info.outcome.code == 7);
    }
    dsh_error_t *late = NULL;
    status = dsh_executor_shutdown(executor, 0, &late);
    if (status != DSH_OK) {
        CHECK(status == DSH_E_TIMED_OUT && hits() > 0);
        OK(dsh_executor_shutdown(executor, 0, &error));
    }
    dsh_error_free(late);
    dsh_executor_free(executor);
}

int main(int count, char **arguments)
{
    CHECK(count >= 2);
    alarm(40);
    fault = getenv("FAULT_NAME") ? getenv("FAULT_NAME") : "-";
    sscanf(fault, "%*[^:]:%d", &expected_errno);
    may_be_unknown = strncmp(fault, "waitid:", 7) == 0;
    *(void **)&arm = dlsym(RTLD_DEFAULT, "fault_arm");
    *(void **)&disarm = dlsym(RTLD_DEFAULT, "fault_disarm");
    *(void **)&hits = dlsym(RTLD_DEFAULT, "fault_hits");
    *(void **)&report = dlsym(RTLD_DEFAULT, "fault_report");
    CHECK(arm != NULL && disarm != NULL && hits != NULL && report != NULL);
    snprintf(mark, sizeof mark, "MARK_OF_FAULTS=%d-%ld", getpid(), (long)time(NULL));
    CHECK(putenv(mark) == 0);

    void (*play)(const dsh_executor_t *) = NULL;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, arguments[1]) == 0)
            play = scenarios[i].play;
    CHECK(play != NULL);

    char **orders = arguments + 2;
    int is_late = has_order(orders, "late"), files = open_descriptors(), tasks = threads();
    dsh_config_t config = DSH_CONFIG_INIT;
    config.grace_ms = 80;
    config.drain_ms = 40;
    dsh_executor_t *executor = NULL;
    if (is_late) {
        dsh_request_t request = request_of("true");
        dsh_result_info_t info = DSH_RESULT_INFO_INIT;
        OK(dsh_executor_new(&config, &executor, &error));
        dsh_result_free(run(executor, &request, &info));
    }
    carry_out(orders);
    arm();
    if (executor != NULL || WORKED(dsh_executor_new(&config, &executor, &error)))
        play(executor);
    if (executor != NULL && strcmp(arguments[1], "left") == 0) {
        dsh_error_t *late = NULL;
        status = dsh_executor_shutdown(executor, 0, &late);
        CHECK(status == DSH_OK || (status == DSH_E_TIMED_OUT && (hits() > 0 || expected_errno != 0)));
        dsh_error_free(late);
    }
    disarm();
    lift_limits();
    goes_on_and_ends(executor, strcmp(arguments[1], "left") != 0);

    UNTIL(!anything_alive());
    CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD); /* also those that raise no SIGCHLD */
    CHECK(threads() == tasks);
    CHECK(open_descriptors() == files);
    if (getenv("TMPDIR") != NULL && !has_order(orders, "readonly")) {
        dsh_executor_free(quick_executor()); /* takes away what could not be */
        CHECK(is_empty(getenv("TMPDIR")));
    }
    printf("hits %d\n", hits());
    report(stdout);
    return 0;
}
