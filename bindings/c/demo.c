/*
 * What libdsh does, shown on real commands. Checks itself: exits with 1 when something is not as promised.
 *
 *     cc demo.c -ldsh -lpthread && ./a.out
 */
#define _POSIX_C_SOURCE 200809L

#include <dsh.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static dsh_executor_t *executor;
static int broken_promises;

static void promise(int kept, const char *what)
{
    if (!kept) {
        printf("      NOT AS PROMISED: %s\n", what);
        broken_promises++;
    }
}

/* Ends the demo when a call failed. */
static void must(dsh_status_t status, dsh_error_t *error)
{
    if (status != DSH_OK) {
        fprintf(stderr, "%s: %s\n", dsh_status_str(status), dsh_error_message(error));
        exit(1);
    }
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static double ms(uint64_t us)
{
    return (double)us / 1000;
}

static void title(const char *what, const char *command)
{
    printf("\n  %-12s $ %s\n", what, command);
}

static void fact(const char *name, const char *text)
{
    printf("    %10s  %s\n", name, text);
}

/* The first line of some bytes. */
static void first_line(const char *name, const void *data, size_t len)
{
    const char *end = len == 0 ? NULL : memchr(data, '\n', len);
    printf("    %10s  %.*s\n", name, (int)(end != NULL ? (size_t)(end - (const char *)data) : len), (const char *)data);
}

static void ended(const dsh_outcome_t *outcome)
{
    const char *const stages[] = {"", ", stopped with SIGTERM", ", stopped with SIGKILL after the grace"};
    char text[128];
    if (outcome->exit == DSH_EXIT_CODE)
        snprintf(text, sizeof text, "exit code %d", (int)outcome->code);
    else if (outcome->exit == DSH_EXIT_SIGNAL)
        snprintf(text, sizeof text, "signal %d", (int)outcome->signal);
    else
        snprintf(text, sizeof text, "unknown");
    printf("    %10s  %s%s, after %.1f ms (user %.1f ms, system %.1f ms)\n", "ended", text, stages[outcome->stage],
           ms(outcome->wall_us), ms(outcome->user_us), ms(outcome->system_us));
}

static dsh_request_t ask(const char *command)
{
    dsh_request_t request = DSH_REQUEST_INIT;
    request.command = command;
    request.command_len = strlen(command);
    return request;
}

/* Runs a command and tells how it ended. The info lives as long as the result, which is the caller's. */
static dsh_result_t *run(const char *what, const dsh_request_t *request, dsh_result_info_t *info)
{
    dsh_result_t *result = NULL;
    dsh_error_t *error = NULL;
    title(what, request->command);
    must(dsh_run(executor, request, &result, &error), error);
    must(dsh_result_info(result, info, &error), error);
    return result;
}

static void success(void)
{
    dsh_request_t request = ask("uname -srm");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = run("success", &request, &info);
    first_line("stdout", info.out.data, info.out.len);
    ended(&info.outcome);
    promise(info.outcome.exit == DSH_EXIT_CODE && info.outcome.code == 0, "exit code 0");
    promise(info.out.len > 0 && info.err.len == 0, "something on stdout, nothing on stderr");
    dsh_result_free(result);
}

static void failure(void)
{
    dsh_request_t request = ask("ls /no/such/folder");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = run("failure", &request, &info);
    first_line("stderr", info.err.data, info.err.len);
    ended(&info.outcome);
    promise(info.outcome.exit == DSH_EXIT_CODE && info.outcome.code != 0, "a non-zero exit code is a result");
    promise(info.err.len > 0, "a reason on stderr");
    dsh_result_free(result);
}

static void timeout(void)
{
    dsh_request_t request = ask("sleep 30 & sleep 30 | cat");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    request.timeout_ms = 300;
    dsh_result_t *result = run("timeout", &request, &info);
    printf("    %10s  after the %lu ms it was given; %lu of its processes are left\n", "timed out",
           (unsigned long)info.timeout_ms, (unsigned long)info.survivors_len);
    ended(&info.outcome);
    promise(info.outcome.timed_out && !info.outcome.aborted, "timed out, and not aborted");
    promise(info.outcome.wall_us >= 300000 && info.outcome.wall_us < 5000000, "in about the time it was given");
    promise(info.survivors_len == 0, "the whole tree is gone");
    dsh_result_free(result);
}

static void *cancel_soon(void *cancel)
{
    pause_ms(200);
    must(dsh_cancel(cancel, NULL), NULL);
    return NULL;
}

static void cancellation(void)
{
    dsh_request_t request = ask("while true; do sleep 1; done");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_error_t *error = NULL;
    dsh_cancel_t *cancel = NULL;
    pthread_t thread;
    must(dsh_cancel_new(&cancel, &error), error);
    request.cancel = cancel;
    if (pthread_create(&thread, NULL, cancel_soon, cancel) != 0)
        exit(1);
    dsh_result_t *result = run("cancel", &request, &info);
    pthread_join(thread, NULL);
    fact("cancelled", "by another thread, 200 ms after the start");
    ended(&info.outcome);
    promise(info.outcome.aborted && info.outcome.cause == DSH_STOP_CANCEL, "aborted by the token");
    promise(!info.outcome.timed_out, "and not timed out");
    dsh_result_free(result);
    dsh_cancel_free(cancel);
}

static void background(void)
{
    dsh_request_t request = ask("for step in 1 2 3 4 5 6 7 8 9; do echo step $step; sleep 0.1; done; sleep 30");
    dsh_process_t *process = NULL;
    dsh_process_info_t info = DSH_PROCESS_INFO_INIT;
    dsh_error_t *error = NULL;
    uint32_t was_running = 0, again = 1;
    int reads = 0, rounds = 0;
    title("background", request.command);
    must(dsh_start(executor, &request, &process, &error), error);
    while (reads < 3 && rounds++ < 5000) {
        dsh_chunk_t *chunk = NULL;
        dsh_chunk_info_t text = DSH_CHUNK_INFO_INIT;
        must(dsh_read_output(process, &chunk, &error), error);
        must(dsh_chunk_info(chunk, &text, &error), error);
        if (text.len > 0) {
            first_line("read", text.data, text.len);
            reads++;
        }
        dsh_chunk_free(chunk);
        pause_ms(2);
    }
    must(dsh_process_info(process, &info, &error), error);
    promise(reads == 3 && info.status == DSH_PROCESS_RUNNING, "read three times while it ran");
    must(dsh_kill(process, &was_running, &error), error);
    must(dsh_kill(process, &again, &error), error);
    must(dsh_wait(process, DSH_WAIT_FOREVER, &error), error);
    must(dsh_process_info(process, &info, &error), error);
    fact("killed", "while it ran");
    ended(&info.outcome);
    promise(was_running == 1 && again == 0, "a kill counts once");
    promise(info.status == DSH_PROCESS_KILLED && info.outcome.cause == DSH_STOP_KILL, "killed through its handle");
    dsh_process_free(process);
}

static void overflow(void)
{
    dsh_request_t request = ask("seq 1000000");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    char line[32] = "", first[32] = "", last[32] = "";
    long size = -1;
    dsh_result_t *result = run("overflow", &request, &info);
    printf("    %10s  the last %lu of %lu bytes\n", "in memory", (unsigned long)info.out.len,
           (unsigned long)info.out.total);
    promise(info.out.spill_path != NULL, "a file with the whole stream");
    FILE *file = info.out.spill_path != NULL ? fopen(info.out.spill_path, "r") : NULL;
    if (file != NULL) {
        while (fgets(line, sizeof line, file) != NULL) {
            line[strcspn(line, "\n")] = 0;
            memcpy(first[0] == 0 ? first : last, line, sizeof line);
        }
        size = ftell(file);
        fclose(file);
        fact("on disk", info.out.spill_path);
        printf("    %10s  %ld bytes, from line \"%s\" to line \"%s\"\n", "", size, first, last);
    }
    ended(&info.outcome);
    promise(info.out.len <= 64000 && info.out.len + info.out.omitted == info.out.total, "bounded memory, exact counts");
    promise(size >= 0 && (uint64_t)size == info.out.total, "the file is as long as the stream");
    promise(strcmp(first, "1") == 0 && strcmp(last, "1000000") == 0, "from its first line to its last");
    dsh_result_free(result);
}

int main(void)
{
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_stats_t stats = DSH_STATS_INIT;
    dsh_error_t *error = NULL;
    config.grace_ms = 1000;
    must(dsh_executor_new(&config, &executor, &error), error);
    printf("libdsh %s\n", dsh_version());

    success();
    failure();
    timeout();
    cancellation();
    background();
    overflow();

    must(dsh_executor_shutdown(executor, 0, &error), error);
    must(dsh_executor_stats(executor, &stats, &error), error);
    promise(stats.live == 0 && stats.ended == 6, "six commands have come and gone");
    promise(stats.spill_bytes == 0, "spill files go with the executor");
    dsh_executor_free(executor);
    printf("\n  %s\n", broken_promises ? "Something is not as promised." : "All as promised; nothing is left running.");
    return broken_promises != 0;
}
