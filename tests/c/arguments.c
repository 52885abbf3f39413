/* Every wrong argument has its own status and a message that names it; nothing is started and nothing is left. */
#include "check.h"

#include <sys/stat.h>

static dsh_executor_t *executor;

/* Refused by every function that takes a request. */
#define REFUSED(request, expected, ...)                                                                                \
    do {                                                                                                               \
        dsh_result_t *result = (dsh_result_t *)1;                                                                      \
        dsh_process_t *process = (dsh_process_t *)1;                                                                   \
        dsh_spec_t *spec = (dsh_spec_t *)1;                                                                            \
        FAILS(dsh_run(executor, request, &result, &error), expected, __VA_ARGS__);                                     \
        FAILS(dsh_start(executor, request, &process, &error), expected, __VA_ARGS__);                                  \
        FAILS(dsh_resolve(executor, request, &spec, &error), expected, __VA_ARGS__);                                   \
        CHECK(result == NULL && process == NULL && spec == NULL);                                                      \
        CHECK(dsh_run(executor, request, &result, NULL) == (expected));                                                \
    } while (0)

static void null_pointers(void)
{
    dsh_request_t request = request_of("true");
    dsh_executor_t *made = (dsh_executor_t *)1;
    dsh_result_t *result = (dsh_result_t *)1;
    dsh_process_t *process = NULL;
    dsh_spec_t *spec = NULL;
    dsh_cancel_t *cancel = NULL;
    dsh_chunk_t *chunk = NULL;
    dsh_settings_t *settings = NULL;
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_stats_t stats = DSH_STATS_INIT;
    dsh_event_t event = DSH_EVENT_INIT;
    dsh_reading_t reading = DSH_READING_INIT;
    dsh_result_info_t result_info = DSH_RESULT_INFO_INIT;
    dsh_process_info_t process_info = DSH_PROCESS_INFO_INIT;
    dsh_chunk_info_t chunk_info = DSH_CHUNK_INFO_INIT;
    dsh_spec_info_t spec_info = DSH_SPEC_INFO_INIT;
    uint32_t yes = 7;
    int32_t fd = 7;
    size_t count = 7;

    FAILS(dsh_executor_new(&config, NULL, &error), DSH_E_NULL, "executor");
    FAILS(dsh_executor_configure(NULL, &config, &error), DSH_E_NULL, "executor");
    FAILS(dsh_executor_configure(executor, NULL, &error), DSH_E_NULL, "config");
    FAILS(dsh_executor_config(NULL, &settings, &error), DSH_E_NULL, "executor");
    FAILS(dsh_executor_config(executor, NULL, &error), DSH_E_NULL, "settings");
    FAILS(dsh_settings_info(NULL, &config, &error), DSH_E_NULL, "settings");
    FAILS(dsh_executor_shutdown(NULL, 0, &error), DSH_E_NULL, "executor");
    FAILS(dsh_executor_stats(NULL, &stats, &error), DSH_E_NULL, "executor");
    FAILS(dsh_executor_stats(executor, NULL, &error), DSH_E_NULL, "stats");
    FAILS(dsh_executor_event_fd(NULL, &fd, &error), DSH_E_NULL, "executor");
    CHECK(fd == -1);
    FAILS(dsh_executor_event_fd(executor, NULL, &error), DSH_E_NULL, "fd");
    FAILS(dsh_next_event(NULL, &event, &error), DSH_E_NULL, "executor");
    FAILS(dsh_next_event(executor, NULL, &error), DSH_E_NULL, "event");
    FAILS(dsh_run(NULL, &request, &result, &error), DSH_E_NULL, "executor");
    CHECK(result == NULL);
    FAILS(dsh_run(executor, NULL, &result, &error), DSH_E_NULL, "request");
    FAILS(dsh_run(executor, &request, NULL, &error), DSH_E_NULL, "result");
    FAILS(dsh_result_info(NULL, &result_info, &error), DSH_E_NULL, "result");
    FAILS(dsh_start(NULL, &request, &process, &error), DSH_E_NULL, "executor");
    FAILS(dsh_start(executor, NULL, &process, &error), DSH_E_NULL, "request");
    FAILS(dsh_start(executor, &request, NULL, &error), DSH_E_NULL, "process");
    FAILS(dsh_resolve(NULL, &request, &spec, &error), DSH_E_NULL, "executor");
    FAILS(dsh_resolve(executor, NULL, &spec, &error), DSH_E_NULL, "request");
    FAILS(dsh_resolve(executor, &request, NULL, &error), DSH_E_NULL, "spec");
    FAILS(dsh_spec_info(NULL, &spec_info, &error), DSH_E_NULL, "spec");
    FAILS(dsh_kill(NULL, &yes, &error), DSH_E_NULL, "process");
    CHECK(yes == 0);
    FAILS(dsh_wait(NULL, 0, &error), DSH_E_NULL, "process");
    FAILS(dsh_process_info(NULL, &process_info, &error), DSH_E_NULL, "process");
    FAILS(dsh_process_survivors(NULL, NULL, 0, &count, &error), DSH_E_NULL, "process");
    FAILS(dsh_process_held_by(NULL, NULL, 0, &count, &error), DSH_E_NULL, "process");
    FAILS(dsh_process_spill_path(NULL, DSH_STDOUT, NULL, 0, &count, &error), DSH_E_NULL, "process");
    CHECK(count == 0);
    FAILS(dsh_read_output(NULL, &chunk, &error), DSH_E_NULL, "process");
    FAILS(dsh_chunk_info(NULL, &chunk_info, &error), DSH_E_NULL, "chunk");
    FAILS(dsh_read_stream(NULL, DSH_STDOUT, 0, NULL, 0, &reading, &error), DSH_E_NULL, "process");
    FAILS(dsh_cancel_new(NULL, &error), DSH_E_NULL, "cancel");
    FAILS(dsh_cancel(NULL, &error), DSH_E_NULL, "cancel");
    FAILS(dsh_is_cancelled(NULL, &yes, &error), DSH_E_NULL, "cancel");
    CHECK(dsh_config_init(NULL, sizeof config) == DSH_E_NULL);
    CHECK(dsh_request_init(NULL, sizeof request) == DSH_E_NULL);
    CHECK(spec == NULL && cancel == NULL && chunk == NULL && process == NULL && made != NULL);
}

static void requests(void)
{
    const char *entries[] = {"A=1", "B=2", NULL};
    dsh_request_t request = request_of("echo a\nb");

    request.command = NULL;
    REFUSED(&request, DSH_E_NULL, "command");
    request.command = "echo \0b";
    REFUSED(&request, DSH_E_COMMAND_NUL, "command", "offset 5");

    request = request_of("true");
    request.command_len = SIZE_MAX;
    REFUSED(&request, DSH_E_INVALID, "command_len", "18446744073709551615");
    request.command_len = SIZE_MAX / 4; /* refused before anything is read */
    REFUSED(&request, DSH_E_OUT_OF_MEMORY, "command_len", "4611686018427387903");

    request = request_of("true");
    request.flags = 1ull << 40 | DSH_REQUEST_MERGE_STDERR;
    REFUSED(&request, DSH_E_FLAGS, "dsh_request_t", "flags 0x10000000001", "0x10000000000");
    request.flags = 0;
    request.reserved = 9;
    REFUSED(&request, DSH_E_STRUCT, "dsh_request_t", "reserved", "124", "0x9");
    request.reserved = 0;
    request.survivors = 77;
    REFUSED(&request, DSH_E_INVALID, "survivors 77");

    request = request_of("true");
    request.input_len = 3;
    REFUSED(&request, DSH_E_NULL, "input");

    request = request_of("true");
    request.env_len = 2;
    REFUSED(&request, DSH_E_NULL, "env");
    request.env = entries;
    request.env_len = 3;
    REFUSED(&request, DSH_E_NULL, "env[2]");
    request.env_len = 65537;
    REFUSED(&request, DSH_E_INVALID, "env_len 65537");
    request.env_len = 1;
    entries[0] = "=value";
    REFUSED(&request, DSH_E_ENV_NAME, "env[0]", "\"\"");
    entries[0] = "DSH_MODE=1";
    REFUSED(&request, DSH_E_ENV_RESERVED, "env[0]", "DSH_MODE");
    entries[0] = "dsh_mode";
    REFUSED(&request, DSH_E_ENV_RESERVED, "env[0]", "dsh_mode");

    request = request_of("true");
    request.dsh_env = entries;
    request.dsh_env_len = 1;
    entries[0] = "MODE=1";
    REFUSED(&request, DSH_E_ENV_NAME, "dsh_env[0]", "MODE");
    entries[0] = "DSH_MODE";
    REFUSED(&request, DSH_E_INVALID, "dsh_env[0]", "DSH_MODE");
    entries[0] = "DSH_PROCESS_ID=1";
    REFUSED(&request, DSH_E_ENV_RESERVED, "dsh_env[0]", "DSH_PROCESS_ID");
    request.dsh_env_len = 65537;
    REFUSED(&request, DSH_E_INVALID, "dsh_env_len 65537");

    request = request_of("true");
    request.workdir = "";
    REFUSED(&request, DSH_E_INVALID, "workdir");
}

static void workdirs(void)
{
    const struct { const char *workdir; dsh_status_t status; int errno_is; } cases[] = {
        {"/no/such/folder", DSH_E_WORKDIR_MISSING, ENOENT},
        {"/dev/null", DSH_E_WORKDIR_NOT_DIR, ENOTDIR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dsh_request_t request = request_of("true");
        dsh_result_t *result = NULL;
        dsh_process_t *process = NULL;
        dsh_error_t *error = NULL;
        request.workdir = cases[i].workdir;
        FAILS(dsh_start(executor, &request, &process, &error), cases[i].status, "workdir", cases[i].workdir);
        CHECK(dsh_run(executor, &request, &result, &error) == cases[i].status && result == NULL);
        CHECK(strstr(dsh_error_message(error), cases[i].workdir));
        CHECK(dsh_error_errno(error) == cases[i].errno_is);
        CHECK(strcmp(dsh_error_stage(error), "workdir") == 0);
        dsh_error_free(error);
    }
    dsh_request_t request = request_of("true");
    dsh_result_t *result = NULL;
    char path[5000];
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = 0;
    request.workdir = path;
    FAILS(dsh_run(executor, &request, &result, &error), DSH_E_WORKDIR_UNUSABLE, "workdir", "xxx");
}

/* As somebody who may not do everything. */
static void forbidden_workdir(void)
{
    char folder[] = "/tmp/dsh-forbidden-XXXXXX";
    dsh_request_t request = request_of("true");
    dsh_result_t *result = NULL;
    CHECK(mkdtemp(folder) != NULL && chmod(folder, 0) == 0);
    CHECK(geteuid() != 0 || seteuid(65534) == 0);
    executor = quick_executor();
    request.workdir = folder;
    FAILS(dsh_run(executor, &request, &result, &error), DSH_E_WORKDIR_DENIED, "workdir", folder);
    dsh_executor_free(executor);
    CHECK(getuid() != 0 || seteuid(0) == 0);
    CHECK(rmdir(folder) == 0);
}

static void configs(void)
{
    const char *globs[] = {"A=B"};
    dsh_executor_t *made = (dsh_executor_t *)1;
    dsh_config_t config = DSH_CONFIG_INIT;

#define CONFIG_REFUSED(expected, ...)                                                                                  \
    do {                                                                                                               \
        FAILS(dsh_executor_new(&config, &made, &error), expected, __VA_ARGS__);                                        \
        CHECK(made == NULL);                                                                                           \
        FAILS(dsh_executor_configure(executor, &config, &error), expected, __VA_ARGS__);                               \
        dsh_config_init(&config, sizeof config);                                                                       \
    } while (0)

    config.shell = "/no/such/shell";
    CONFIG_REFUSED(DSH_E_SHELL_MISSING, "shell", "/no/such/shell");
    config.flags = 8;
    CONFIG_REFUSED(DSH_E_FLAGS, "dsh_config_t", "flags 0x8", "bits 0x8");
    config.reserved = 1;
    CONFIG_REFUSED(DSH_E_STRUCT, "dsh_config_t", "reserved", "132");
    config.keep = 5;
    CONFIG_REFUSED(DSH_E_INVALID, "keep 5");
    config.cwd = "";
    CONFIG_REFUSED(DSH_E_INVALID, "cwd");
    config.env_deny_len = 1;
    CONFIG_REFUSED(DSH_E_NULL, "env_deny");
    config.env_allow = globs;
    config.env_allow_len = 1;
    CONFIG_REFUSED(DSH_E_INVALID, "env_allow[0]", "A=");
    config.env_allow_len = SIZE_MAX;
    config.env_allow = globs;
    CONFIG_REFUSED(DSH_E_INVALID, "env_allow_len 18446744073709551615");
}

static void cancelled_token(void)
{
    dsh_request_t request = request_of("true");
    dsh_cancel_t *cancel = NULL;
    dsh_result_t *result = NULL;
    dsh_process_t *process = NULL;
    uint32_t is_cancelled = 7;
    OK(dsh_cancel_new(&cancel, &error));
    OK(dsh_is_cancelled(cancel, &is_cancelled, &error));
    CHECK(is_cancelled == 0);
    OK(dsh_cancel(cancel, &error));
    OK(dsh_cancel(cancel, &error));
    OK(dsh_is_cancelled(cancel, &is_cancelled, &error));
    CHECK(is_cancelled == 1);
    request.cancel = cancel;
    FAILS(dsh_run(executor, &request, &result, &error), DSH_E_CANCELLED, "cancel");
    FAILS(dsh_start(executor, &request, &process, &error), DSH_E_CANCELLED, "cancel");
    dsh_cancel_free(cancel);
}

int main(void)
{
    dsh_stats_t stats = DSH_STATS_INIT;
    executor = quick_executor();
    null_pointers();
    requests();
    configs();
    cancelled_token();
    OK(dsh_executor_stats(executor, &stats, &error));
    CHECK(stats.live == 0 && stats.ended == 0 && stats.guard_pid == 0);

    workdirs();
    int descriptors = open_descriptors(); /* the guard's among them, from the first command on */
    workdirs();
    CHECK(open_descriptors() == descriptors);
    OK(dsh_executor_stats(executor, &stats, &error));
    CHECK(stats.live == 0);
    dsh_executor_free(executor);
    forbidden_workdir();
    CHECK(!has_children());
    return 0;
}
