/* A host whose threads are inside the library when it ends: by exit() on another thread, by a return from main, or by
 * exit() with a handler that frees the executor. Its status is its own, and nothing of its commands is left. */
#include "check.h"

static dsh_executor_t *executor;

static void *run_for_long(void *unused)
{
    dsh_request_t request = request_of("setsid sleep 60 & (trap '' TERM; sleep 60) & while :; do echo x; done");
    dsh_result_t *result = NULL;
    (void)unused;
    dsh_run(executor, &request, &result, NULL); /* freed under it, or ended with the host */
    for (;;)
        pause();
    return NULL;
}

static void *start_and_read(void *unused)
{
    (void)unused;
    for (;;) {
        dsh_request_t request = request_of("echo up; sleep 60");
        dsh_process_t *process = NULL;
        dsh_chunk_t *chunk = NULL;
        if (dsh_start(executor, &request, &process, NULL) != DSH_OK)
            pause();
        dsh_read_output(process, &chunk, NULL);
        dsh_wait(process, 1, NULL);
        dsh_kill(process, NULL, NULL);
        dsh_chunk_free(chunk);
        dsh_process_free(process);
    }
    return NULL;
}

static void *exit_soon(void *delay)
{
    struct timespec time = {0, *(long *)delay};
    nanosleep(&time, NULL);
    exit(7);
    return NULL;
}

static void shut_down(void)
{
    dsh_executor_shutdown(executor, 0, NULL);
}

int main(int count, char **arguments)
{
    pthread_t threads[4];
    dsh_stats_t stats = DSH_STATS_INIT;
    CHECK(count == 3);
    long delay = atol(arguments[2]);
    executor = quick_executor();
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, i == 0 ? start_and_read : run_for_long, NULL) == 0);
    do
        OK(dsh_executor_stats(executor, &stats, &error));
    while (stats.live < 3);
    if (strcmp(arguments[1], "returns") == 0) {
        struct timespec time = {0, delay};
        nanosleep(&time, NULL);
        return 7;
    }
    if (strcmp(arguments[1], "handler") == 0)
        CHECK(atexit(shut_down) == 0);
    CHECK(pthread_create(&threads[3], NULL, exit_soon, &delay) == 0);
    run_for_long(NULL);
}
