/* A host that runs with any of descriptors 0, 1 and 2 closed: commands work, and the numbers stay free. */
#include "check.h"

#include <fcntl.h>
#include <signal.h>

/* What is free in this round: a bit per number. */
static unsigned closed;

static void still_closed(void)
{
    for (int fd = 0; fd < 3; fd++)
        CHECK((fcntl(fd, F_GETFD) == -1) == (closed >> fd & 1));
    int first = open("/dev/null", O_RDWR);
    CHECK(closed == 0 ? first > 2 : closed >> first & 1);
    CHECK(close(first) == 0);
}

static void commands_work(void)
{
    dsh_request_t request = request_of("cat; echo out; echo err >&2; seq 30000 >&2; exit 3");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_executor_t *executor = quick_executor();
    int32_t fd = -1;
    still_closed();
    request.input = "in\n";
    request.input_len = 3;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(info.outcome.code == 3 && is_text(info.out.data, info.out.len, "in\nout\n"));
    CHECK(info.err.total == 168898 && info.err.spill_path != NULL);
    still_closed();
    OK(dsh_executor_event_fd(executor, &fd, &error));
    dsh_process_t *process = NULL;
    OK(dsh_start(executor, &request, &process, &error));
    dsh_process_t *other = start(executor, "setsid sleep 60 & echo up; sleep 60");
    UNTIL(info_of(other).out_total == 3);
    still_closed();
    OK(dsh_wait(process, 20000, &error));
    CHECK(info_of(process).outcome.code == 3 && info_of(process).out_total == 7);
    still_closed();
    dsh_stats_t stats = DSH_STATS_INIT;
    OK(dsh_executor_stats(executor, &stats, &error)); /* a guard that is replaced */
    CHECK(kill(stats.guard_pid, SIGKILL) == 0);
    pid_t first = stats.guard_pid;
    do {
        nap();
        OK(dsh_executor_stats(executor, &stats, &error));
    } while (stats.guard_pid == first || stats.guard_pid == 0);
    OK(dsh_kill(other, NULL, &error));
    OK(dsh_executor_shutdown(executor, 0, &error));
    still_closed();
    dsh_process_free(process);
    dsh_process_free(other);
    dsh_result_free(result);
    dsh_executor_free(executor);
    still_closed();
    CHECK(!has_children());
}

int main(void)
{
    int out = fcntl(2, F_DUPFD_CLOEXEC, 100);
    FILE *file = fdopen(out, "w");
    CHECK(file != NULL);
    setvbuf(file, NULL, _IONBF, 0);
    stderr = file; /* where CHECK writes */
    for (closed = 7; closed != ~0u; closed--) {
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        int null = open("/dev/null", O_RDWR); /* gets 0 */
        for (int fd = 2; fd >= 0; fd--)
            if (closed >> fd & 1)
                close(fd);
            else if (fd != null)
                CHECK(dup2(null, fd) == fd);
        commands_work();
    }
    return 0;
}
