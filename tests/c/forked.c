/* After a fork of the host, every call in the child is refused and touches nothing of the parent's. */
#include "check.h"

#include <signal.h>

#define FORKED(call)                                                                                                   \
    do {                                                                                                               \
        dsh_error_t *error = NULL;                                                                                     \
        if ((call) != DSH_E_FORKED || dsh_error_code(error) != DSH_E_FORKED || !*dsh_error_message(error)) {           \
            fprintf(stderr, "%s:%d: not refused: %s\n", __FILE__, __LINE__, #call);                                    \
            _exit(1);                                                                                                  \
        }                                                                                                              \
        dsh_error_free(error);                                                                                         \
    } while (0)

int main(void)
{
    dsh_executor_t *executor = quick_executor();
    dsh_request_t request = request_of("echo hello; sleep 60");
    dsh_process_t *process = start(executor, request.command);
    dsh_cancel_t *cancel = NULL;
    dsh_settings_t *settings = NULL;
    dsh_result_t *result = NULL;
    dsh_spec_t *spec = NULL;
    dsh_chunk_t *chunk = NULL;
    dsh_result_info_t result_info = DSH_RESULT_INFO_INIT;
    OK(dsh_cancel_new(&cancel, &error));
    OK(dsh_executor_config(executor, &settings, &error));
    OK(dsh_resolve(executor, &request, &spec, &error));
    OK(dsh_read_output(process, &chunk, &error));
    dsh_request_t quick = request_of("true");
    result = run(executor, &quick, &result_info);
    UNTIL(info_of(process).out_total == 6);

    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dsh_config_t config = DSH_CONFIG_INIT;
        dsh_stats_t stats = DSH_STATS_INIT;
        dsh_event_t event = DSH_EVENT_INIT;
        dsh_reading_t reading = DSH_READING_INIT;
        dsh_process_info_t process_info = DSH_PROCESS_INFO_INIT;
        dsh_chunk_info_t chunk_info = DSH_CHUNK_INFO_INIT;
        dsh_spec_info_t spec_info = DSH_SPEC_INFO_INIT;
        dsh_result_t *other_result;
        dsh_process_t *other_process;
        dsh_spec_t *other_spec;
        dsh_chunk_t *other_chunk;
        dsh_settings_t *other_settings;
        uint32_t yes;
        int32_t fd;
        size_t count;
        alarm(10); /* a lock that a thread of the parent holds would hang this child */
        FORKED(dsh_executor_configure(executor, &config, &error));
        FORKED(dsh_executor_config(executor, &other_settings, &error));
        FORKED(dsh_settings_info(settings, &config, &error));
        FORKED(dsh_executor_shutdown(executor, 0, &error));
        FORKED(dsh_executor_stats(executor, &stats, &error));
        FORKED(dsh_executor_event_fd(executor, &fd, &error));
        FORKED(dsh_next_event(executor, &event, &error));
        FORKED(dsh_resolve(executor, &quick, &other_spec, &error));
        FORKED(dsh_spec_info(spec, &spec_info, &error));
        FORKED(dsh_run(executor, &quick, &other_result, &error));
        FORKED(dsh_result_info(result, &result_info, &error));
        FORKED(dsh_start(executor, &quick, &other_process, &error));
        FORKED(dsh_read_output(process, &other_chunk, &error));
        FORKED(dsh_chunk_info(chunk, &chunk_info, &error));
        FORKED(dsh_read_stream(process, DSH_STDOUT, 0, NULL, 0, &reading, &error));
        FORKED(dsh_kill(process, &yes, &error));
        FORKED(dsh_wait(process, DSH_WAIT_FOREVER, &error));
        FORKED(dsh_process_info(process, &process_info, &error));
        FORKED(dsh_process_survivors(process, NULL, 0, &count, &error));
        FORKED(dsh_process_held_by(process, NULL, 0, &count, &error));
        FORKED(dsh_process_spill_path(process, DSH_STDOUT, NULL, 0, &count, &error));
        FORKED(dsh_cancel(cancel, &error));
        FORKED(dsh_is_cancelled(cancel, &yes, &error));
        dsh_chunk_free(chunk);
        dsh_spec_free(spec);
        dsh_result_free(result);
        dsh_settings_free(settings);
        dsh_cancel_free(cancel);
        dsh_process_free(process);
        dsh_executor_free(executor);
        execlp("true", "true", (char *)NULL); /* an exit would have valgrind count what is the parent's as lost */
        _exit(2);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);

    CHECK(info_of(process).status == DSH_PROCESS_RUNNING && kill(info_of(process).pid, 0) == 0);
    dsh_result_free(run(executor, &quick, &result_info));
    CHECK(result_info.outcome.code == 0);
    dsh_chunk_free(chunk);
    dsh_spec_free(spec);
    dsh_result_free(result);
    dsh_settings_free(settings);
    dsh_cancel_free(cancel);
    dsh_process_free(process);
    dsh_executor_free(executor);
    CHECK(!has_children());
    return 0;
}
