/* A host that forks without exec while commands run: the child ends as any process does, or lives on for longer than
 * the commands; the parent's commands, output, events and files are what they would have been. What every call answers
 * in the child is checked in forked.c. */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

enum { COUNT = 6, LINES = 200 };

static dsh_executor_t *executor;
static int event_fd;

/* A child that ends by exit(), with everything that libraries do then; or that stays until it is killed. */
static pid_t fork_child(dsh_process_t **processes, int stays)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0)
        return child;
    alarm(20);
    while (stays)
        pause();
    dsh_request_t request = request_of("echo never");
    dsh_result_t *result = NULL;
    dsh_event_t event = DSH_EVENT_INIT;
    if (dsh_run(executor, &request, &result, NULL) != DSH_E_FORKED || dsh_kill(processes[0], NULL, NULL) != DSH_E_FORKED
        || dsh_next_event(executor, &event, NULL) != DSH_E_FORKED)
        _exit(3);
    for (int i = 0; i < COUNT; i++)
        dsh_process_free(processes[i]);
    dsh_executor_free(executor);
    exit(0);
}

/* Takes events until every process has settled; each kind comes for each. */
static void all_settle_and_tell_so(void)
{
    int settled = 0, exited = 0;
    while (settled < COUNT) {
        struct pollfd entry = {event_fd, POLLIN, 0};
        CHECK(poll(&entry, 1, 20000) == 1);
        for (;;) {
            dsh_event_t event = DSH_EVENT_INIT;
            OK(dsh_next_event(executor, &event, &error));
            if (event.kind == DSH_EVENT_NONE)
                break;
            settled += event.kind == DSH_EVENT_SETTLED;
            exited += event.kind == DSH_EVENT_EXIT;
        }
    }
    CHECK(settled == COUNT && exited == COUNT);
}

static void output_is_whole(const dsh_process_t *process)
{
    char text[LINES * 8], expected[LINES * 8];
    size_t len = 0;
    dsh_reading_t reading = DSH_READING_INIT;
    for (int line = 1; line <= LINES; line++)
        len += (size_t)snprintf(expected + len, sizeof expected - len, "%d\n", line);
    OK(dsh_read_stream(process, DSH_STDOUT, 0, text, sizeof text, &reading, &error));
    CHECK(reading.len == len && memcmp(text, expected, len) == 0 && reading.end);
}

static void forks_while_commands_run(int stays)
{
    dsh_process_t *processes[COUNT];
    pid_t children[COUNT];
    struct stat file;
    for (int i = 0; i < COUNT; i++) {
        processes[i] = start(executor, "for i in {1..200}; do echo $i; [ $((i % 40)) = 0 ] && sleep .05; done; exit 4");
        OK(dsh_executor_event_fd(executor, &event_fd, &error));
    }
    dsh_request_t big = request_of("seq 100000");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = run(executor, &big, &info);
    for (int i = 0; i < COUNT; i++)
        children[i] = fork_child(processes, stays);
    for (int i = 0; i < COUNT && !stays; i++) {
        int status = -1;
        CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    all_settle_and_tell_so();
    for (int i = 0; i < COUNT; i++) {
        dsh_process_info_t end = info_of(processes[i]);
        CHECK(end.outcome.code == 4 && end.status == DSH_PROCESS_COMPLETED && !end.outcome.pipes_held);
        output_is_whole(processes[i]);
        dsh_process_free(processes[i]);
    }
    CHECK(stat(info.out.spill_path, &file) == 0 && (uint64_t)file.st_size == info.out.total);
    dsh_result_free(result);
    if (stays) { /* the library goes on beside the copies of its descriptors, without turning in circles */
        struct timespec before, after;
        dsh_process_t *process = start(executor, "sleep .5; echo on");
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        OK(dsh_wait(process, 20000, &error));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        CHECK(info_of(process).out_total == 3 && info_of(process).outcome.code == 0);
        CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 < 250);
        dsh_process_free(process);
        OK(dsh_executor_shutdown(executor, 0, &error));
    }
    for (int i = 0; i < COUNT && stays; i++) {
        CHECK(kill(children[i], SIGKILL) == 0 && waitpid(children[i], NULL, 0) == children[i]);
    }
}

int main(void)
{
    executor = quick_executor();
    OK(dsh_executor_event_fd(executor, &event_fd, &error));
    forks_while_commands_run(0);
    dsh_event_t event = DSH_EVENT_INIT;
    do
        OK(dsh_next_event(executor, &event, &error));
    while (event.kind != DSH_EVENT_NONE);
    forks_while_commands_run(1);
    dsh_executor_free(executor);
    CHECK(!has_children());
    return 0;
}
