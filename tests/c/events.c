/* A host with an event loop: it polls one descriptor, takes events, and never blocks. */
#include "check.h"

#include <fcntl.h>
#include <poll.h>

static int is_readable(int fd)
{
    struct pollfd entry = {fd, POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
}

int main(void)
{
    dsh_executor_t *executor = quick_executor();
    dsh_event_t event = DSH_EVENT_INIT;
    int32_t fd = 0, again = 0;

    OK(dsh_next_event(executor, &event, &error));
    CHECK(event.kind == DSH_EVENT_NONE);
    OK(dsh_executor_event_fd(executor, &fd, &error));
    OK(dsh_executor_event_fd(executor, &again, &error));
    CHECK(fd > 2 && fd == again && !is_readable(fd));
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);

    dsh_request_t request = request_of("echo hello");
    dsh_process_t *process = NULL;
    request.tag = 4711;
    OK(dsh_start(executor, &request, &process, &error));
    uint32_t seen[5] = {0};
    while (!seen[DSH_EVENT_QUIESCENT]) {
        struct pollfd entry = {fd, POLLIN, 0};
        CHECK(poll(&entry, 1, 20000) == 1);
        for (;;) {
            OK(dsh_next_event(executor, &event, &error));
            if (event.kind == DSH_EVENT_NONE)
                break;
            CHECK(event.tag == 4711 && event.process_id == info_of(process).process_id && event.kind <= 4);
            seen[event.kind]++;
        }
    }
    CHECK(event.process_id == 0 && event.tag == 0);
    CHECK(seen[DSH_EVENT_OUTPUT] >= 1 && seen[DSH_EVENT_EXIT] == 1 && seen[DSH_EVENT_SETTLED] == 1);
    CHECK(!is_readable(fd));
    dsh_process_free(process);

    process = start(executor, "echo more");
    OK(dsh_wait(process, 20000, &error));
    CHECK(is_readable(fd));
    dsh_process_free(process);
    CHECK(!is_readable(fd)); /* what waited for it went with the handle */

    dsh_executor_free(executor);
    CHECK(fcntl(fd, F_GETFD) == -1);
    return 0;
}
