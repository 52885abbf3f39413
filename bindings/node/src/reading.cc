#include "reading.h"

#include "process_handle.h"

#include <algorithm>

namespace dsh_node {

napi_value read_output(Call &call)
{
    bool wait = false;
    check(call.env, napi_get_value_bool(call.env, call[1], &wait));
    if (wait)
        call.environment.inbox.want(object<Process>(call.env, call[0]).key, 1u << DSH_EVENT_OUTPUT);

    OwnedChunk chunk;
    OwnedError error;
    dsh_chunk_info_t info = DSH_CHUNK_INFO_INIT;
    dsh_status_t status = dsh_read_output(process_of(call), Out(chunk), Out(error));
    require(call.env, status, error);
    status = dsh_chunk_info(chunk.get(), &info, Out(error));
    require(call.env, status, error);

    double *facts = call.environment.facts;
    facts[FACT_OUT_MISSING] = static_cast<double>(info.out_missing);
    facts[FACT_ERR_MISSING] = static_cast<double>(info.err_missing);
    facts[FACT_LOSSY] = info.lossy;
    facts[FACT_END] = info.end;
    return array(call.env, {
                               bytes(call.env, info.data, info.len),
                               optional_string(call.env, info.out_spill_path),
                               optional_string(call.env, info.err_spill_path),
                           });
}

napi_value read_stream(Call &call)
{
    const auto stream = static_cast<dsh_stream_t>(number(call.env, call[1]));
    const uint64_t offset = unsigned_from(number(call.env, call[2]));
    const uint64_t wanted = unsigned_from(number(call.env, call[3]));

    // Not more memory than there can be output, however much is asked for.
    dsh_process_info_t info = DSH_PROCESS_INFO_INIT;
    OwnedError error;
    dsh_status_t status = dsh_process_info(process_of(call), &info, Out(error));
    require(call.env, status, error);
    const uint64_t total = stream == DSH_STDERR ? info.err_total : info.out_total;
    const size_t capacity = std::min(wanted, total > offset ? total - offset : 0);
    const std::unique_ptr<char[]> buffer(new char[capacity]);

    dsh_reading_t reading = DSH_READING_INIT;
    status = dsh_read_stream(process_of(call), stream, offset, buffer.get(), capacity, &reading, Out(error));
    require(call.env, status, error);
    double *facts = call.environment.facts;
    facts[FACT_START] = static_cast<double>(reading.start);
    facts[FACT_NEXT] = static_cast<double>(reading.next);
    facts[FACT_OUT_MISSING] = static_cast<double>(reading.missing);
    facts[FACT_LOSSY] = reading.lossy;
    facts[FACT_END] = reading.end;
    return bytes(call.env, buffer.get(), reading.len);
}

} // namespace dsh_node
