/* What a foreground run gives. */
#include "check.h"

#include <signal.h>

static dsh_executor_t *executor;

static void exit_codes_and_streams(void)
{
    dsh_request_t request = request_of("echo out; echo err >&2; exit 3");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(info.outcome.exit == DSH_EXIT_CODE && info.outcome.code == 3 && info.outcome.signal == 0);
    CHECK(is_text(info.out.data, info.out.len, "out\n") && info.out.total == 4 && info.out.omitted == 0);
    CHECK(is_text(info.err.data, info.err.len, "err\n") && info.err.spill_path == NULL);
    CHECK(!info.outcome.timed_out && !info.outcome.aborted && info.outcome.cause == DSH_STOP_NONE);
    CHECK(info.outcome.stage == DSH_STOP_STAGE_NONE && info.outcome.stopped_by == DSH_STOP_NONE);
    CHECK(info.outcome.wall_us > 0 && info.outcome.max_rss_bytes > 0 && info.timeout_ms == 120000);
    CHECK(info.held_by_len == 0 && info.survivors_len == 0 && info.held_by == NULL && info.survivors == NULL);
    CHECK(info.out.spill_error == NULL && !info.outcome.pipes_held && info.process_id != 0);
    dsh_result_free(result);
}

static void signals(void)
{
    dsh_request_t request = request_of("kill -USR1 $$");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_free(run(executor, &request, &info));
    CHECK(info.outcome.exit == DSH_EXIT_SIGNAL && info.outcome.signal == SIGUSR1 && info.outcome.code == -1);
    CHECK(!info.outcome.timed_out && !info.outcome.aborted);
}

static void timeouts(void)
{
    dsh_request_t request = request_of("trap 'exit 0' TERM; while :; do sleep 0.05; done");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    request.timeout_ms = 600;
    dsh_result_free(run(executor, &request, &info));
    CHECK(info.outcome.timed_out && !info.outcome.aborted && info.outcome.cause == DSH_STOP_TIMEOUT);
    CHECK(info.outcome.exit == DSH_EXIT_CODE && info.outcome.code == 0);
    CHECK(info.outcome.stage == DSH_STOP_STAGE_TERM && info.outcome.stopped_by == DSH_STOP_TIMEOUT);
    CHECK(info.timeout_ms == 600 && info.outcome.wall_us >= 600000);
}

static void input(void)
{
    dsh_request_t request = request_of("wc -c; [ -p /dev/stdin ] && echo pipe");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result;

    result = run(executor, &request, &info);
    CHECK(is_text(info.out.data, info.out.len, "0\n") && info.outcome.code == 1 && info.input_written == 0);
    dsh_result_free(result);

    request.input = "";
    result = run(executor, &request, &info);
    CHECK(is_text(info.out.data, info.out.len, "0\npipe\n") && info.input_written == 0);
    dsh_result_free(result);

    request.input = "a\0b";
    request.input_len = 3;
    result = run(executor, &request, &info);
    CHECK(is_text(info.out.data, info.out.len, "3\npipe\n") && info.input_written == 3);
    dsh_result_free(result);
}

static void environment(void)
{
    const char *env[] = {"A=1=2", "EMPTY=", "HOST_PLAIN"};
    const char *dsh_env[] = {"DSH_MODE=fast"};
    dsh_request_t request = request_of("echo \"$A,${EMPTY-unset},${HOST_PLAIN-unset},${HOST_TOKEN-unset},$DSH_MODE\"");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    setenv("HOST_PLAIN", "seen", 1);
    setenv("HOST_TOKEN", "secret", 1);
    request.env = env;
    request.env_len = 3;
    request.dsh_env = dsh_env;
    request.dsh_env_len = 1;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(is_text(info.out.data, info.out.len, "1=2,,unset,unset,fast\n"));
    int named = 0;
    for (size_t i = 0; i < info.scrubbed_len; i++)
        named |= strcmp(info.scrubbed[i], "HOST_TOKEN") == 0;
    CHECK(named);
    dsh_result_free(result);
}

static void merged_streams_and_workdir(void)
{
    dsh_request_t request = request_of("echo 1; echo 2 >&2; echo 3; pwd");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    request.flags = DSH_REQUEST_MERGE_STDERR;
    request.workdir = "/usr";
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(is_text(info.out.data, info.out.len, "1\n2\n3\n/usr\n") && info.err.len == 0 && *(const char *)info.err.data == 0);
    dsh_result_free(result);
}

static void what_is_left_behind(void)
{
    dsh_request_t request = request_of("sleep 60 & echo $!");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    if (!dsh_feature(DSH_FEATURE_PIDFD))
        return; /* what is left behind is ended through pidfds only, here after a minute by itself */
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(info.outcome.pipes_held && info.held_by_len == 1 && info.survivors_len == 1);
    int pid = atoi(info.out.data);
    CHECK(info.held_by[0] == pid && info.survivors[0].pid == pid && info.survivors[0].start_time > 0);
    CHECK(kill(pid, 0) == 0);
    dsh_result_free(result);

    request.survivors = DSH_SURVIVORS_KILL;
    result = run(executor, &request, &info);
    CHECK(info.survivors_len == 0 && info.outcome.stopped_by == DSH_STOP_SURVIVORS && !info.outcome.aborted);
    dsh_result_free(result);
}

static void overflow(void)
{
    dsh_request_t request = request_of("seq 100000; seq 9 >&2");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    char line[16] = "";
    request.stdout_max_bytes = 1000;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(info.out.total == 588895 && info.out.len == 1000 && info.out.omitted == 587895);
    CHECK(info.out.omitted_at == 0 && memcmp((const char *)info.out.data + 993, "100000\n", 7) == 0);
    CHECK(info.out.spill_path != NULL && info.out.spill_error == NULL && info.err.spill_path == NULL);
    FILE *file = fopen(info.out.spill_path, "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) && strcmp(line, "1\n") == 0);
    CHECK(fseek(file, 0, SEEK_END) == 0 && ftell(file) == 588895);
    fclose(file);
    dsh_result_free(result);
}

static void resolved(void)
{
    dsh_request_t request = request_of("exit");
    dsh_spec_info_t info = DSH_SPEC_INFO_INIT;
    dsh_spec_t *spec = NULL;
    request.timeout_ms = UINT64_MAX;
    request.tag = 5;
    request.workdir = "/";
    OK(dsh_resolve(executor, &request, &spec, &error));
    OK(dsh_spec_info(spec, &info, &error));
    CHECK(is_text(info.command, info.command_len, "exit") && info.shell[0] == '/' && strcmp(info.workdir, "/") == 0);
    CHECK(info.timeout_ms == 600000 && info.stdout_max_bytes == 64000 && info.max_output_bytes == 64000);
    CHECK(info.grace_ms == test_grace_ms() && info.drain_ms == test_drain_ms() && info.tag == 5 && info.flags == 0);
    CHECK(info.survivors == DSH_SURVIVORS_KEEP);
    dsh_spec_free(spec);
}

int main(void)
{
    executor = quick_executor();
    exit_codes_and_streams();
    signals();
    timeouts();
    input();
    environment();
    merged_streams_and_workdir();
    what_is_left_behind();
    overflow();
    resolved();
    dsh_executor_free(executor);
    CHECK(!has_children());
    return 0;
}
