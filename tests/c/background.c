/* A process in the background: read while it runs, waited for, killed, and read after its end. */
#include "check.h"

static dsh_executor_t *executor;

/* What consuming reads give until the text is there or the streams end. */
static void read_until(const dsh_process_t *process, const char *text)
{
    char seen[4096] = "";
    for (int naps = 0; strcmp(seen, text) != 0; naps++) {
        dsh_chunk_info_t info = DSH_CHUNK_INFO_INIT;
        dsh_chunk_t *chunk = NULL;
        OK(dsh_read_output(process, &chunk, &error));
        OK(dsh_chunk_info(chunk, &info, &error));
        CHECK(info.data != NULL && !info.lossy);
        strncat(seen, info.data, info.len);
        dsh_chunk_free(chunk);
        if (naps > 4000)
            fprintf(stderr, "seen: %s\n", seen);
        CHECK(naps <= 4000);
        nap();
    }
}

static void is_read_while_it_runs(void)
{
    dsh_process_t *process = start(executor, "echo one; sleep 60");
    read_until(process, "one\n");
    dsh_process_info_t info = info_of(process);
    CHECK(info.status == DSH_PROCESS_RUNNING && info.outcome.exit == DSH_EXIT_NONE && info.outcome.code == -1);
    CHECK(info.out_total == 4 && info.pid > 0 && info.process_id != 0 && !info.quiescent);
    FAILS(dsh_wait(process, 0, &error), DSH_E_TIMED_OUT, "process");
    FAILS(dsh_wait(process, 20, &error), DSH_E_TIMED_OUT, "process");

    uint32_t was_running = 0;
    OK(dsh_kill(process, &was_running, &error));
    CHECK(was_running == 1);
    OK(dsh_kill(process, &was_running, &error));
    CHECK(was_running == 0);
    OK(dsh_kill(process, NULL, &error));
    OK(dsh_wait(process, DSH_WAIT_FOREVER, &error));
    info = info_of(process);
    CHECK(info.status == DSH_PROCESS_KILLED && info.outcome.aborted && info.outcome.cause == DSH_STOP_KILL);
    CHECK(info.outcome.exit == DSH_EXIT_SIGNAL && info.outcome.signal == 15);
    dsh_process_free(process);
}

static void its_streams_come_as_one_text_and_end(void)
{
    dsh_process_t *process = start(executor, "printf out; echo err >&2");
    dsh_chunk_info_t info = DSH_CHUNK_INFO_INIT;
    dsh_chunk_t *chunk = NULL;
    OK(dsh_wait(process, 20000, &error));
    OK(dsh_read_output(process, &chunk, &error));
    OK(dsh_chunk_info(chunk, &info, &error));
    CHECK(is_text(info.data, info.len, "out\n[stderr]\nerr\n") && info.end && !info.lossy);
    CHECK(info.out_missing == 0 && info.err_missing == 0 && info.out_spill_path == NULL);
    dsh_chunk_free(chunk);
    OK(dsh_read_output(process, &chunk, &error));
    OK(dsh_chunk_info(chunk, &info, &error));
    CHECK(info.len == 0 && info.end);
    dsh_chunk_free(chunk);
    CHECK(info_of(process).status == DSH_PROCESS_COMPLETED && info_of(process).outcome.code == 0);
    dsh_process_free(process);
}

static void one_stream_is_read_by_offset(void)
{
    dsh_process_t *process = start(executor, "printf 0123456789; printf abc >&2");
    dsh_reading_t reading = DSH_READING_INIT;
    char buffer[8];
    OK(dsh_wait(process, 20000, &error));
    OK(dsh_read_stream(process, DSH_STDOUT, 2, buffer, 5, &reading, &error));
    CHECK(is_text(buffer, reading.len, "23456") && reading.start == 2 && reading.next == 7 && !reading.end);
    OK(dsh_read_stream(process, DSH_STDOUT, 7, buffer, 8, &reading, &error));
    CHECK(is_text(buffer, reading.len, "789") && reading.end && !reading.lossy);
    OK(dsh_read_stream(process, DSH_STDERR, 0, buffer, 8, &reading, &error));
    CHECK(is_text(buffer, reading.len, "abc"));
    OK(dsh_read_stream(process, DSH_STDOUT, 0, NULL, 0, &reading, &error));
    CHECK(reading.len == 0 && reading.next == 0);
    FAILS(dsh_read_stream(process, DSH_STDOUT, 0, NULL, 8, &reading, &error), DSH_E_NULL, "buffer");
    FAILS(dsh_read_stream(process, 3, 0, buffer, 8, &reading, &error), DSH_E_INVALID, "stream 3");
    dsh_process_free(process);
}

static void what_slid_out_of_memory_is_in_its_file(void)
{
    dsh_process_t *process = start(executor, "seq 100000");
    dsh_reading_t reading = DSH_READING_INIT;
    char buffer[8], path[4096], line[16] = "";
    size_t length = 0, count = 0;
    OK(dsh_wait(process, 20000, &error));
    OK(dsh_read_stream(process, DSH_STDOUT, 0, buffer, 8, &reading, &error));
    CHECK(reading.lossy && reading.missing == reading.start && reading.start == 588895 - 64000);

    OK(dsh_process_spill_path(process, DSH_STDOUT, NULL, 0, &length, &error));
    CHECK(length > 1 && length < sizeof path);
    memset(path, 'x', sizeof path);
    OK(dsh_process_spill_path(process, DSH_STDOUT, path, 5, &count, &error));
    CHECK(count == length && path[5] == 'x');
    OK(dsh_process_spill_path(process, DSH_STDOUT, path, sizeof path, &count, &error));
    CHECK(count == length && strlen(path) == length - 1);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) && strcmp(line, "1\n") == 0);
    CHECK(fseek(file, 0, SEEK_END) == 0 && ftell(file) == 588895);
    fclose(file);
    OK(dsh_process_spill_path(process, DSH_STDERR, path, sizeof path, &count, &error));
    CHECK(count == 0);
    FAILS(dsh_process_spill_path(process, 9, path, sizeof path, &count, &error), DSH_E_INVALID, "stream 9");
    dsh_process_free(process);
}

static void what_it_leaves_behind_is_listed(void)
{
    if (!dsh_feature(DSH_FEATURE_PIDFD))
        return; /* what is left behind is ended through pidfds only, here after a minute by itself */
    dsh_process_t *process = start(executor, "sleep 60 & echo $!");
    dsh_reading_t reading = DSH_READING_INIT;
    dsh_survivor_t survivors[4];
    int32_t held_by[4];
    char buffer[16] = "";
    size_t count = 0;
    OK(dsh_wait(process, 20000, &error));
    OK(dsh_read_stream(process, DSH_STDOUT, 0, buffer, sizeof buffer - 1, &reading, &error));
    dsh_process_info_t info = info_of(process);
    CHECK(info.status == DSH_PROCESS_COMPLETED && info.outcome.pipes_held && !info.quiescent);
    CHECK(info.survivors_len == 1 && info.held_by_len == 1);
    OK(dsh_process_survivors(process, survivors, 4, &count, &error));
    CHECK(count == 1 && survivors[0].pid == atoi(buffer) && survivors[0].start_time > 0);
    OK(dsh_process_held_by(process, held_by, 4, &count, &error));
    CHECK(count == 1 && held_by[0] == atoi(buffer));
    OK(dsh_process_survivors(process, NULL, 0, &count, &error));
    CHECK(count == 1);
    FAILS(dsh_process_survivors(process, NULL, 4, &count, &error), DSH_E_NULL, "buffer");

    uint32_t was_running = 7;
    OK(dsh_kill(process, &was_running, &error));
    CHECK(was_running == 0);
    UNTIL(info_of(process).quiescent);
    OK(dsh_process_survivors(process, NULL, 0, &count, &error));
    CHECK(count == 0 && info_of(process).status == DSH_PROCESS_COMPLETED);
    dsh_process_free(process);
}

static void freeing_the_handle_does_not_kill(void)
{
    dsh_stats_t stats = DSH_STATS_INIT;
    dsh_process_free(start(executor, "sleep 60"));
    OK(dsh_executor_stats(executor, &stats, &error));
    CHECK(stats.live == 1);
}

int main(void)
{
    executor = quick_executor();
    is_read_while_it_runs();
    its_streams_come_as_one_text_and_end();
    one_stream_is_read_by_offset();
    what_slid_out_of_memory_is_in_its_file();
    what_it_leaves_behind_is_listed();
    freeing_the_handle_does_not_kill();

    dsh_process_t *process = start(executor, "echo last");
    OK(dsh_wait(process, 20000, &error));
    dsh_executor_free(executor);
    CHECK(!has_children());
    read_until(process, "last\n"); /* a handle outlives its executor */
    dsh_process_free(process);
    return 0;
}
