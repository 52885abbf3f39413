/* The header can be included twice, and its initialisers compile without a warning in every standard. */
#include <dsh.h>
#include <dsh.h>

int main(void)
{
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_stats_t stats = DSH_STATS_INIT;
    dsh_request_t request = DSH_REQUEST_INIT;
    dsh_spec_info_t spec = DSH_SPEC_INFO_INIT;
    dsh_result_info_t result = DSH_RESULT_INFO_INIT;
    dsh_process_info_t process = DSH_PROCESS_INFO_INIT;
    dsh_chunk_info_t chunk = DSH_CHUNK_INFO_INIT;
    dsh_reading_t reading = DSH_READING_INIT;
    dsh_event_t event = DSH_EVENT_INIT;
    uint64_t flags = DSH_CONFIG_NO_INHERIT_ENV | DSH_CONFIG_NO_GUARD | DSH_CONFIG_KEEP_SPILL_FILES;

    if (config.size != sizeof config || stats.size != sizeof stats || request.size != sizeof request)
        return 1;
    if (spec.size != sizeof spec || result.size != sizeof result || process.size != sizeof process)
        return 2;
    if (chunk.size != sizeof chunk || reading.size != sizeof reading || event.size != sizeof event)
        return 3;
    if (config.flags != 0 || request.command != 0 || result.out.len != 0 || event.kind != DSH_EVENT_NONE)
        return 4;
    return flags == 7 && DSH_WAIT_FOREVER == UINT64_MAX ? 0 : 5;
}
