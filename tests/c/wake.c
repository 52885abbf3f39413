/* A host that is woken by a call, and runs commands to their results without ever blocking in the library. */
#include "check.h"

#include <pthread.h>

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    int rings, destroyed;
};

static void ring(void *user_data)
{
    struct bell *bell = user_data;
    pthread_mutex_lock(&bell->lock);
    bell->rings++;
    pthread_cond_signal(&bell->rung);
    pthread_mutex_unlock(&bell->lock);
}

static void destroy(void *user_data)
{
    struct bell *bell = user_data;
    pthread_mutex_lock(&bell->lock);
    bell->destroyed++;
    pthread_mutex_unlock(&bell->lock);
}

/* A last call may be under way on another thread, which then destroys it. */
static void is_destroyed(struct bell *bell, int times)
{
    for (int done = 0; !done; nap()) {
        pthread_mutex_lock(&bell->lock);
        CHECK(bell->destroyed <= times);
        done = bell->destroyed == times;
        pthread_mutex_unlock(&bell->lock);
    }
}

static dsh_event_t next_event(const dsh_executor_t *executor, struct bell *bell)
{
    dsh_event_t event = DSH_EVENT_INIT;
    for (;;) {
        pthread_mutex_lock(&bell->lock);
        bell->rings = 0;
        pthread_mutex_unlock(&bell->lock);
        OK(dsh_next_event(executor, &event, &error));
        if (event.kind != DSH_EVENT_NONE)
            return event;
        pthread_mutex_lock(&bell->lock);
        while (!bell->rings)
            pthread_cond_wait(&bell->rung, &bell->lock);
        pthread_mutex_unlock(&bell->lock);
    }
}

int main(void)
{
    dsh_executor_t *executor = quick_executor();
    struct bell bell = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}, other = bell;
    OK(dsh_executor_wake(executor, ring, &bell, destroy, &error));

    dsh_request_t request = request_of("echo hello; sleep 60");
    request.flags = DSH_REQUEST_FOREGROUND;
    request.timeout_ms = 100;
    dsh_process_t *process = NULL;
    dsh_result_t *result = NULL;
    OK(dsh_start(executor, &request, &process, &error));
    CHECK(dsh_process_result(process, &result, NULL) == DSH_E_TIMED_OUT && !result);
    while (next_event(executor, &bell).kind != DSH_EVENT_SETTLED)
        ;
    OK(dsh_process_result(process, &result, &error));
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    OK(dsh_result_info(result, &info, &error));
    CHECK(info.outcome.timed_out && info.timeout_ms == 100 && is_text(info.out.data, info.out.len, "hello\n"));
    dsh_result_free(result);

    /* A replaced one is destroyed once, and one that could not be set at once. */
    OK(dsh_executor_wake(executor, ring, &other, destroy, &error));
    is_destroyed(&bell, 1);
    CHECK(dsh_executor_wake(NULL, ring, &bell, destroy, NULL) == DSH_E_NULL);
    is_destroyed(&bell, 2);
    OK(dsh_executor_wake(executor, NULL, &bell, destroy, &error));
    is_destroyed(&bell, 3);
    is_destroyed(&other, 1);

    OK(dsh_executor_wake(executor, ring, &other, destroy, &error));
    dsh_executor_free(executor);
    is_destroyed(&other, 2);
    dsh_process_free(process);
    return 0;
}
