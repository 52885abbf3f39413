/* A host with all signals blocked and some ignored: commands have default dispositions and an empty mask, and the host
 * has not had a signal afterwards. */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>

static void nothing_is_pending(void)
{
    sigset_t pending;
    CHECK(sigpending(&pending) == 0);
    for (int number = 1; number <= 64; number++)
        CHECK(number == SIGCHLD || sigismember(&pending, number) != 1);
}

/* What the shell was given; bash itself ignores SIGQUIT, but an exec shows what it would pass on. */
static void commands_have_clean_signals(const dsh_executor_t *executor)
{
    static const char *clean = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
    dsh_request_t request = request_of("exec sed -n '/^Sig[BI]/p' /proc/self/status");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(is_text(info.out.data, info.out.len, clean));
    dsh_result_free(result);
}

/* Writing to a command that has closed its stdin, and to a spill file beyond the file size limit. */
static void writes_that_raise_signals_do_not_reach_the_host(const dsh_executor_t *executor)
{
    static char input[300000];
    struct rlimit limit = {100000, 100000};
    dsh_request_t request = request_of("exec <&-; seq 200000");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    request.input = input;
    request.input_len = sizeof input;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(info.outcome.code == 0 && info.input_written < sizeof input);
    CHECK(info.out.total == 1288895 && info.out.spill_path == NULL && info.out.spill_error != NULL);
    dsh_result_free(result);
    nothing_is_pending();
}

int main(void)
{
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    for (int number = 1; number <= 64; number++)
        if (number != SIGCHLD && number % 3 != 0)
            signal(number, SIG_IGN); /* refused for some numbers */
    signal(SIGPIPE, SIG_IGN);

    dsh_executor_t *executor = quick_executor();
    commands_have_clean_signals(executor);
    signal(SIGPIPE, SIG_DFL); /* now one would be pending */
    signal(SIGXFSZ, SIG_DFL);
    writes_that_raise_signals_do_not_reach_the_host(executor);

    dsh_request_t late = request_of("sleep 60");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    late.timeout_ms = 50;
    dsh_result_free(run(executor, &late, &info));
    CHECK(info.outcome.timed_out && info.outcome.signal == SIGTERM);
    dsh_executor_free(executor);
    nothing_is_pending();
    return 0;
}
