#include "outcome.h"

#include "sandbox.h"

namespace dsh_node {

void write_outcome(double *facts, const dsh_outcome_t &outcome)
{
    facts[FACT_EXIT] = outcome.exit;
    facts[FACT_CODE] = outcome.code;
    facts[FACT_SIGNAL] = outcome.signal;
    facts[FACT_CORE_DUMPED] = outcome.core_dumped;
    facts[FACT_TIMED_OUT] = outcome.timed_out;
    facts[FACT_ABORTED] = outcome.aborted;
    facts[FACT_CAUSE] = outcome.cause;
    facts[FACT_STOPPED_BY] = outcome.stopped_by;
    facts[FACT_STAGE] = outcome.stage;
    facts[FACT_PIPES_HELD] = outcome.pipes_held;
    facts[FACT_WALL_US] = static_cast<double>(outcome.wall_us);
    facts[FACT_USER_US] = static_cast<double>(outcome.user_us);
    facts[FACT_SYSTEM_US] = static_cast<double>(outcome.system_us);
    facts[FACT_MAX_RSS] = static_cast<double>(outcome.max_rss_bytes);
}

napi_value result_value(napi_env env, double *facts, const dsh_result_t *result)
{
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    OwnedError error;
    const dsh_status_t status = dsh_result_info(result, &info, Out(error));
    require(env, status, error);

    write_outcome(facts, info.outcome);
    facts[FACT_PROCESS_ID] = static_cast<double>(info.process_id);
    facts[FACT_TIMEOUT] = static_cast<double>(info.timeout_ms);
    facts[FACT_INPUT_WRITTEN] = static_cast<double>(info.input_written);
    facts[FACT_OUT_TOTAL] = static_cast<double>(info.out.total);
    facts[FACT_OUT_OMITTED] = static_cast<double>(info.out.omitted);
    facts[FACT_OUT_OMITTED_AT] = static_cast<double>(info.out.omitted_at);
    facts[FACT_ERR_TOTAL] = static_cast<double>(info.err.total);
    facts[FACT_ERR_OMITTED] = static_cast<double>(info.err.omitted);
    facts[FACT_ERR_OMITTED_AT] = static_cast<double>(info.err.omitted_at);

    // Only what is there is set: most results have a little output and nothing else.
    const napi_value parts = array(env, 10);
    size_t index = 0;
    const auto part = [&](bool there, auto make) {
        if (there)
            set_at(env, parts, index, make());
        ++index;
    };
    const auto text = [&](const char *from) { part(from != nullptr, [&] { return string(env, from); }); };
    part(info.out.len != 0, [&] { return bytes(env, info.out.data, info.out.len); });
    part(info.err.len != 0, [&] { return bytes(env, info.err.data, info.err.len); });
    text(info.out.spill_path);
    text(info.out.spill_error);
    text(info.err.spill_path);
    text(info.err.spill_error);
    part(info.held_by_len != 0, [&] { return pids(env, info.held_by, info.held_by_len); });
    part(info.survivors_len != 0, [&] { return survivors(env, info.survivors, info.survivors_len); });
    part(info.scrubbed_len != 0, [&] { return strings(env, info.scrubbed, info.scrubbed_len); });
    const napi_value sandbox = result_sandbox(env, result);
    part(!is_undefined(env, sandbox), [&] { return sandbox; });
    return parts;
}

} // namespace dsh_node
