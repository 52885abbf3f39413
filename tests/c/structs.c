/* Structs of older and newer headers work as far as both sides know them, and never beyond. */
#include "check.h"

/* As a later version might have it. */
struct newer_request {
    dsh_request_t known;
    uint64_t added[8];
};

struct newer_result_info {
    dsh_result_info_t known;
    uint64_t added[4];
};

static void a_short_one_is_completed_with_zeros(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of("pwd; cat");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    request.size = offsetof(dsh_request_t, workdir);
    request.workdir = "/nowhere";
    request.flags = 1ull << 63;
    dsh_result_free(run(executor, &request, &info));
    CHECK(info.outcome.exit == DSH_EXIT_CODE && info.outcome.code == 0);
}

static void a_long_one_is_taken_while_what_is_unknown_is_zero(const dsh_executor_t *executor)
{
    struct newer_request request = {request_of("echo new"), {0}};
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = NULL;
    request.known.size = sizeof request;
    result = run(executor, &request.known, &info);
    CHECK(is_text(info.out.data, info.out.len, "new\n"));
    dsh_result_free(result);

    request.added[7] = 1;
    FAILS(dsh_run(executor, &request.known, &result, &error), DSH_E_STRUCT, "dsh_request_t", "byte 200 is 0x1");
    CHECK(result == NULL);
}

static void an_impossible_size_is_refused(const dsh_executor_t *executor)
{
    const size_t sizes[] = {0, 7, 23, (64 << 10) + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        dsh_request_t request = request_of("true");
        dsh_config_t config = DSH_CONFIG_INIT;
        dsh_stats_t stats = DSH_STATS_INIT;
        dsh_result_t *result = NULL;
        dsh_executor_t *made = NULL;
        char text[32];
        snprintf(text, sizeof text, "%zu", sizes[i]);
        request.size = config.size = stats.size = sizes[i];
        stats.live = 77;
        FAILS(dsh_run(executor, &request, &result, &error), DSH_E_STRUCT, "dsh_request_t", "size", text);
        FAILS(dsh_executor_new(&config, &made, &error), DSH_E_STRUCT, "dsh_config_t", "size", text);
        FAILS(dsh_executor_stats(executor, &stats, &error), DSH_E_STRUCT, "dsh_stats_t", "size", text);
        CHECK(stats.live == 77);
        CHECK(dsh_config_init(&config, sizes[i]) == DSH_E_STRUCT && config.size == sizes[i]);
        CHECK(dsh_request_init(&request, sizes[i]) == DSH_E_STRUCT && request.size == sizes[i]);
    }
}

static void what_is_filled_in_ends_where_the_struct_does(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of("echo x");
    struct newer_result_info newer;
    dsh_result_info_t older;
    dsh_result_t *result = NULL;
    OK(dsh_run(executor, &request, &result, &error));

    memset(&older, 0xee, sizeof older);
    older.size = offsetof(dsh_result_info_t, held_by);
    OK(dsh_result_info(result, &older, &error));
    CHECK(older.out.len == 2 && older.err.len == 0 && older.size == offsetof(dsh_result_info_t, held_by));
    for (size_t i = older.size; i < sizeof older; i++)
        CHECK(((unsigned char *)&older)[i] == 0xee);

    memset(&newer, 0xee, sizeof newer);
    newer.known.size = sizeof newer;
    OK(dsh_result_info(result, &newer.known, &error));
    CHECK(newer.known.process_id != 0 && newer.known.out.len == 2);
    for (size_t i = 0; i < 4; i++)
        CHECK(newer.added[i] == 0);
    dsh_result_free(result);
}

int main(void)
{
    dsh_executor_t *executor = quick_executor();
    a_short_one_is_completed_with_zeros(executor);
    a_long_one_is_taken_while_what_is_unknown_is_zero(executor);
    an_impossible_size_is_refused(executor);
    what_is_filled_in_ends_where_the_struct_does(executor);
    dsh_executor_free(executor);
    return 0;
}
