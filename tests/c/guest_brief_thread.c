/* Threads that end right after they have started a command: the command goes on, is read, and ends rightly. */
#include "check.h"

#include <signal.h>

static dsh_executor_t *executor;

static void *start_and_end(void *command)
{
    return start(executor, command);
}

static dsh_process_t *started_by_a_thread_that_ended(const char *command)
{
    pthread_t thread;
    void *process = NULL;
    CHECK(pthread_create(&thread, NULL, start_and_end, (void *)command) == 0);
    CHECK(pthread_join(thread, &process) == 0);
    return process;
}

static void *make_executor(void *unused)
{
    (void)unused;
    executor = quick_executor();
    dsh_request_t request = request_of("true"); /* the guard is started by this thread too */
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_free(run(executor, &request, &info));
    return NULL;
}

int main(void)
{
    enum { COUNT = 10 };
    dsh_process_t *processes[COUNT];
    dsh_stats_t stats = DSH_STATS_INIT;
    pthread_t maker;
    CHECK(pthread_create(&maker, NULL, make_executor, NULL) == 0);
    CHECK(pthread_join(maker, NULL) == 0);

    for (int i = 0; i < COUNT; i++)
        processes[i] = started_by_a_thread_that_ended("sleep .3; seq 20000 | tail -1; sleep .2; exit 9");
    for (int i = 0; i < COUNT; i++) {
        dsh_chunk_t *chunk = NULL;
        dsh_chunk_info_t info = DSH_CHUNK_INFO_INIT;
        OK(dsh_wait(processes[i], 60000, &error));
        CHECK(info_of(processes[i]).outcome.code == 9 && info_of(processes[i]).outcome.wall_us > 500000);
        OK(dsh_read_output(processes[i], &chunk, &error));
        OK(dsh_chunk_info(chunk, &info, &error));
        CHECK(is_text(info.data, info.len, "20000\n") && info.end);
        dsh_chunk_free(chunk);
        dsh_process_free(processes[i]);
    }
    OK(dsh_executor_stats(executor, &stats, &error));
    CHECK(stats.guard_pid > 0 && kill(stats.guard_pid, 0) == 0);

    dsh_process_t *process = started_by_a_thread_that_ended("sleep 60");
    OK(dsh_kill(process, NULL, &error));
    OK(dsh_wait(process, 60000, &error));
    CHECK(info_of(process).outcome.signal == SIGTERM);
    dsh_process_free(process);
    dsh_executor_free(executor);
    CHECK(!has_children());
    return 0;
}
