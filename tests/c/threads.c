/* Handles are used from several threads at once: cancel during a run, kill during read during wait. */
#include "check.h"

static dsh_executor_t *executor;

struct run {
    const dsh_cancel_t *cancel;
    dsh_result_info_t info;
};

static void *run_with_token(void *argument)
{
    struct run *order = argument;
    dsh_request_t request = request_of("sleep 60");
    request.cancel = order->cancel;
    dsh_result_free(run(executor, &request, &order->info));
    return NULL;
}

static void one_token_ends_runs_of_many_threads(void)
{
    enum { RUNS = 4 };
    pthread_t threads[RUNS];
    struct run orders[RUNS];
    dsh_cancel_t *cancel = NULL;
    dsh_stats_t stats = DSH_STATS_INIT;
    OK(dsh_cancel_new(&cancel, &error));
    for (int i = 0; i < RUNS; i++) {
        orders[i] = (struct run){cancel, DSH_RESULT_INFO_INIT};
        CHECK(pthread_create(&threads[i], NULL, run_with_token, &orders[i]) == 0);
    }
    do {
        nap();
        OK(dsh_executor_stats(executor, &stats, &error));
    } while (stats.live < RUNS);
    OK(dsh_cancel(cancel, &error));
    for (int i = 0; i < RUNS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(orders[i].info.outcome.aborted && orders[i].info.outcome.cause == DSH_STOP_CANCEL);
        CHECK(!orders[i].info.outcome.timed_out);
    }
    dsh_cancel_free(cancel);
}

static void a_token_may_be_freed_while_it_is_in_use(void)
{
    dsh_request_t request = request_of("sleep 60");
    dsh_process_t *process = NULL;
    dsh_cancel_t *cancel = NULL;
    OK(dsh_cancel_new(&cancel, &error));
    request.cancel = cancel;
    OK(dsh_start(executor, &request, &process, &error));
    dsh_cancel_free(cancel);
    CHECK(info_of(process).status == DSH_PROCESS_RUNNING);
    OK(dsh_kill(process, NULL, &error));
    OK(dsh_wait(process, 20000, &error));
    dsh_process_free(process);
}

static void *wait_for(void *process)
{
    OK(dsh_wait(process, DSH_WAIT_FOREVER, &error));
    return NULL;
}

static void *read_all(void *process)
{
    uint64_t *total = malloc(sizeof *total);
    dsh_chunk_info_t info = DSH_CHUNK_INFO_INIT;
    *total = 0;
    do {
        dsh_chunk_t *chunk = NULL;
        OK(dsh_read_output(process, &chunk, &error));
        OK(dsh_chunk_info(chunk, &info, &error));
        *total += info.len + info.out_missing;
        dsh_chunk_free(chunk);
        if (info.len == 0)
            nap();
    } while (!info.end);
    return total;
}

static void kill_during_read_during_wait(void)
{
    dsh_process_t *process = start(executor, "while :; do echo 0123456789; done");
    pthread_t waiters[2], reader;
    void *total = NULL;
    CHECK(pthread_create(&waiters[0], NULL, wait_for, process) == 0);
    CHECK(pthread_create(&waiters[1], NULL, wait_for, process) == 0);
    CHECK(pthread_create(&reader, NULL, read_all, process) == 0);
    UNTIL(info_of(process).out_total > 1000);
    OK(dsh_kill(process, NULL, &error));
    CHECK(pthread_join(waiters[0], NULL) == 0 && pthread_join(waiters[1], NULL) == 0);
    CHECK(pthread_join(reader, &total) == 0);
    CHECK(*(uint64_t *)total == info_of(process).out_total);
    free(total);
    dsh_process_free(process);
}

static void *shut_down(void *unused)
{
    (void)unused;
    OK(dsh_executor_shutdown(executor, 20000, &error));
    return NULL;
}

static void shutdown_ends_a_run_of_another_thread(void)
{
    struct run order = {NULL, DSH_RESULT_INFO_INIT};
    pthread_t runner, enders[2];
    dsh_stats_t stats = DSH_STATS_INIT;
    CHECK(pthread_create(&runner, NULL, run_with_token, &order) == 0);
    do {
        nap();
        OK(dsh_executor_stats(executor, &stats, &error));
    } while (stats.live == 0);
    CHECK(pthread_create(&enders[0], NULL, shut_down, NULL) == 0);
    CHECK(pthread_create(&enders[1], NULL, shut_down, NULL) == 0);
    CHECK(pthread_join(enders[0], NULL) == 0 && pthread_join(enders[1], NULL) == 0);
    CHECK(pthread_join(runner, NULL) == 0);
    CHECK(order.info.outcome.aborted && order.info.outcome.cause == DSH_STOP_SHUTDOWN);
}

int main(void)
{
    executor = quick_executor();
    one_token_ends_runs_of_many_threads();
    a_token_may_be_freed_while_it_is_in_use();
    kill_during_read_during_wait();
    shutdown_ends_a_run_of_another_thread();
    dsh_executor_free(executor);
    CHECK(!has_children());
    return 0;
}
