/* A host that has the kernel throw its children away, or reaps everybody's: commands end with the right status, or
 * with "unknown" where the kernel can't tell it any more; never with another one. */
#include "check.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/utsname.h>

static dsh_executor_t *executor;
static atomic_int stolen;
static int unknown;

/* Since Linux 6.15 a pidfd tells the status after somebody else has reaped. */
static int kernel_tells(void)
{
    struct utsname name;
    int major = 0, minor = 0;
    CHECK(uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2);
    return major > 6 || (major == 6 && minor >= 15);
}

static void *reap_everybody(void *unused)
{
    (void)unused;
    for (;;) {
        if (waitpid(-1, NULL, 0) > 0)
            stolen++;
        else
            sched_yield();
    }
    return NULL;
}

static void throw_children_away(int handler_flags)
{
    struct sigaction action = {.sa_flags = handler_flags};
    action.sa_handler = handler_flags == 0 ? SIG_IGN : SIG_DFL;
    CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
}

static void ends_with(dsh_outcome_t outcome, int code, int number)
{
    if (outcome.exit == DSH_EXIT_UNKNOWN) {
        unknown++;
        CHECK(outcome.code == -1 && outcome.signal == 0);
    } else if (number != 0) {
        CHECK(outcome.exit == DSH_EXIT_SIGNAL && outcome.signal == number && outcome.code == -1);
    } else {
        CHECK(outcome.exit == DSH_EXIT_CODE && outcome.code == code && outcome.signal == 0);
    }
    CHECK(!outcome.timed_out && !outcome.aborted);
}

static void ends(const char *command, int code, int number)
{
    dsh_request_t request = request_of(command);
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_free(run(executor, &request, &info));
    ends_with(info.outcome, code, number);

    dsh_process_t *process = start(executor, command);
    OK(dsh_wait(process, 60000, &error));
    ends_with(info_of(process).outcome, code, number);
    dsh_process_free(process);
}

static void codes_and_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGKILL, SIGUSR1, SIGSEGV, SIGPIPE, SIGTERM, SIGXFSZ, SIGSYS, 34, 64};
    char command[64];
    for (int code = 0; code < 256; code += code < 4 || code > 250 ? 1 : 11) {
        snprintf(command, sizeof command, "exit %d", code);
        ends(command, code, 0);
    }
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        snprintf(command, sizeof command, "ulimit -c 0; kill -%d $$; sleep 60", signals[i]);
        ends(command, 0, signals[i]);
    }
}

/* Many times, for a status that is asked for just as somebody else takes it. */
static void short_commands(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        dsh_request_t request = request_of("exit 3");
        dsh_result_info_t info = DSH_RESULT_INFO_INIT;
        dsh_result_free(run(executor, &request, &info));
        ends_with(info.outcome, 3, 0);
    }
}

static void an_ended_tree_is_gone(void)
{
    dsh_request_t late = request_of("trap '' TERM; sleep 60 & setsid sleep 60 & wait; sleep 60");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    late.timeout_ms = 100;
    dsh_result_free(run(executor, &late, &info));
    CHECK(info.outcome.timed_out && info.survivors_len == 0 && info.outcome.stage == DSH_STOP_STAGE_KILL);
    CHECK(info.outcome.exit == DSH_EXIT_UNKNOWN || info.outcome.signal == SIGKILL);

    dsh_process_t *process = start(executor, "sleep 60 & sleep 60");
    uint32_t was_running = 0;
    OK(dsh_kill(process, &was_running, &error));
    OK(dsh_wait(process, 60000, &error));
    CHECK(was_running && info_of(process).status == DSH_PROCESS_KILLED);
    UNTIL(info_of(process).quiescent);
    dsh_process_free(process);
}

static void what_was_never_executed_is_an_error(void)
{
    dsh_request_t request = request_of("true");
    dsh_result_t *result = NULL;
    request.workdir = "/nowhere";
    FAILS(dsh_run(executor, &request, &result, &error), DSH_E_WORKDIR_MISSING, "/nowhere");
}

int main(int count, char **arguments)
{
    pthread_t thread;
    CHECK(count == 2);
    if (strcmp(arguments[1], "ignores") == 0)
        throw_children_away(0);
    else if (strcmp(arguments[1], "nocldwait") == 0)
        throw_children_away(SA_NOCLDWAIT);
    else
        CHECK(pthread_create(&thread, NULL, reap_everybody, NULL) == 0);

    executor = quick_executor();
    codes_and_signals();
    short_commands(strcmp(arguments[1], "reaps") == 0 ? 800 : 100);
    an_ended_tree_is_gone();
    what_was_never_executed_is_an_error();
    dsh_executor_free(executor);
    printf("%d unknown, %d stolen\n", unknown, stolen);
    CHECK(unknown == 0 || !kernel_tells());
    return 0;
}
