/* Budgets are read, changed and refused; and what an executor does after its shutdown. */
#include "check.h"

static void settings(dsh_executor_t *executor)
{
    const char *allow[] = {"NPM_TOKEN", "CI_*"};
    dsh_config_t config = DSH_CONFIG_INIT, read = DSH_CONFIG_INIT;
    dsh_settings_t *old = NULL, *new = NULL;

    OK(dsh_executor_config(executor, &old, &error));
    OK(dsh_settings_info(old, &config, &error));
    CHECK(config.timeout_ms == 120000 && config.max_timeout_ms == 600000 && config.max_output_bytes == 64000);
    CHECK(config.max_spill_bytes == 67108864 && config.max_total_spill_bytes == 1073741824);
    CHECK(config.grace_ms == test_grace_ms() && config.drain_ms == test_drain_ms() && config.keep == DSH_KEEP_TAIL);
    CHECK(config.flags == test_flags());
    CHECK(config.shell[0] == '/' && config.spill_dir[0] == '/' && config.cwd == NULL && config.env_allow == NULL);

    config.timeout_ms = 5000;
    config.keep = DSH_KEEP_HEAD_TAIL;
    config.max_output_bytes = 10;
    config.flags = DSH_CONFIG_NO_GUARD | DSH_CONFIG_NO_INHERIT_ENV;
    config.env_allow = allow;
    config.env_allow_len = 2;
    config.cwd = "/usr";
    OK(dsh_executor_configure(executor, &config, &error));
    dsh_settings_free(old);

    OK(dsh_executor_config(executor, &new, &error));
    OK(dsh_settings_info(new, &read, &error));
    CHECK(read.timeout_ms == 5000 && read.keep == DSH_KEEP_HEAD_TAIL && read.flags == config.flags);
    CHECK(read.env_allow_len == 2 && strcmp(read.env_allow[1], "CI_*") == 0 && strcmp(read.cwd, "/usr") == 0);

    dsh_request_t request = request_of("printf 0123456789ABCDEF");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(is_text(info.out.data, info.out.len, "01234BCDEF") && info.out.omitted == 6 && info.out.omitted_at == 5);
    CHECK(info.timeout_ms == 5000);
    dsh_result_free(result);

    read.spill_dir = "/elsewhere";
    FAILS(dsh_executor_configure(executor, &read, &error), DSH_E_INVALID, "spill_dir", "/elsewhere");
    dsh_settings_free(new);
}

static void after_shutdown(dsh_executor_t *executor)
{
    dsh_request_t request = request_of("true");
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_stats_t stats = DSH_STATS_INIT;
    dsh_process_t *process = start(executor, "echo kept; sleep 60");
    dsh_process_t *refused = (dsh_process_t *)1;
    dsh_result_t *result = NULL;
    dsh_settings_t *settings = NULL;
    dsh_reading_t reading = DSH_READING_INIT;
    dsh_event_t event = DSH_EVENT_INIT;
    char buffer[8];

    UNTIL(info_of(process).out_total == 5);
    OK(dsh_executor_shutdown(executor, 20000, &error));
    OK(dsh_executor_shutdown(executor, 0, &error));
    CHECK(info_of(process).status == DSH_PROCESS_KILLED && info_of(process).outcome.cause == DSH_STOP_SHUTDOWN);
    CHECK(info_of(process).quiescent);

    FAILS(dsh_run(executor, &request, &result, &error), DSH_E_SHUTDOWN, "executor");
    FAILS(dsh_start(executor, &request, &refused, &error), DSH_E_SHUTDOWN, "executor");
    CHECK(result == NULL && refused == NULL);
    OK(dsh_read_stream(process, DSH_STDOUT, 0, buffer, 8, &reading, &error));
    CHECK(is_text(buffer, reading.len, "kept\n") && reading.end);
    uint32_t was_running = 7;
    OK(dsh_kill(process, &was_running, &error));
    CHECK(was_running == 0);
    OK(dsh_wait(process, 0, &error));
    OK(dsh_executor_configure(executor, &config, &error));
    OK(dsh_executor_config(executor, &settings, &error));
    dsh_settings_free(settings);
    OK(dsh_next_event(executor, &event, &error));
    OK(dsh_executor_stats(executor, &stats, &error));
    CHECK(stats.live == 0 && stats.threads == 0 && stats.ended == 2 && stats.guard_pid == 0);
    dsh_process_free(process);
}

int main(void)
{
    int descriptors = open_descriptors();
    dsh_executor_t *executor = quick_executor();
    dsh_stats_t stats = DSH_STATS_INIT;
    OK(dsh_executor_stats(executor, &stats, &error));
    CHECK(stats.threads == 2 && stats.live == 0 && stats.spill_bytes == 0);
    CHECK((stats.spawn_path == DSH_SPAWN_VFORK) == dsh_feature(DSH_FEATURE_VFORK));
    settings(executor);
    after_shutdown(executor);
    dsh_executor_free(executor);
    CHECK(open_descriptors() == descriptors && !has_children());
    return 0;
}
