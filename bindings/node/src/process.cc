#include "process.h"

#include "executor.h"
#include "outcome.h"
#include "process_handle.h"
#include "request.h"

#include <utility>

namespace dsh_node {

Process::~Process()
{
    // In this order: after the first, no event of it is taken any more.
    raw.reset();
    environment->inbox.leave(key);
}

const dsh_process_t *process_of(Call &call)
{
    return object<Process>(call.env, call[0]).raw.get();
}

namespace {

void write_info(Call &call)
{
    dsh_process_info_t info = DSH_PROCESS_INFO_INIT;
    OwnedError error;
    const dsh_status_t status = dsh_process_info(process_of(call), &info, Out(error));
    require(call.env, status, error);
    double *facts = call.environment.facts;
    write_outcome(facts, info.outcome);
    facts[FACT_PROCESS_ID] = static_cast<double>(info.process_id);
    facts[FACT_PID] = info.pid;
    facts[FACT_STATUS] = info.status;
    facts[FACT_QUIESCENT] = info.quiescent;
    facts[FACT_SURVIVORS_LEN] = static_cast<double>(info.survivors_len);
    facts[FACT_HELD_BY_LEN] = static_cast<double>(info.held_by_len);
    facts[FACT_INPUT_WRITTEN] = static_cast<double>(info.input_written);
    facts[FACT_OUT_TOTAL] = static_cast<double>(info.out_total);
    facts[FACT_ERR_TOTAL] = static_cast<double>(info.err_total);
}

// Takes the key back, and what was told of it, when a run has come to nothing or to its end.
void leave(Call &call, uint64_t key, OwnedProcess process)
{
    // In this order: after the first, no event of it is taken any more.
    process.reset();
    call.environment.inbox.leave(key);
}

// For the library's lists that are filled: asks how long it is, and again when it grew meanwhile.
template <class Element, class Fill> std::vector<Element> filled(Call &call, Fill fill)
{
    std::vector<Element> list;
    for (;;) {
        size_t count = 0;
        OwnedError error;
        const dsh_status_t status = fill(list.data(), list.size(), &count, Out(error));
        require(call.env, status, error);
        const bool enough = count <= list.size();
        list.resize(count);
        if (enough)
            return list;
    }
}

} // namespace

napi_value start(Call &call)
{
    Request request(call);
    const dsh_executor_t *executor = executor_of(call, call[0]);
    double *facts = call.environment.facts;
    auto process = std::make_unique<Process>();
    process->environment = call.environment.shared_from_this();
    process->key = call.environment.inbox.enter(0);
    request.raw.tag = process->key;
    OwnedError error;
    const dsh_status_t status = dsh_start(executor, &request.raw, Out(process->raw), Out(error));
    require(call.env, status, error);

    dsh_process_info_t info = DSH_PROCESS_INFO_INIT;
    require(call.env, dsh_process_info(process->raw.get(), &info, Out(error)), error);
    facts[FACT_KEY] = static_cast<double>(process->key);
    facts[FACT_PROCESS_ID] = static_cast<double>(info.process_id);
    facts[FACT_PID] = info.pid;
    return external(call.env, std::move(process));
}

napi_value want(Call &call)
{
    const Process &process = object<Process>(call.env, call[0]);
    call.environment.inbox.want(process.key, static_cast<uint32_t>(number(call.env, call[1])));
    write_info(call);
    return undefined(call.env);
}

napi_value info(Call &call)
{
    write_info(call);
    return undefined(call.env);
}

napi_value result(Call &call)
{
    OwnedResult result;
    OwnedError error;
    const dsh_status_t status = dsh_process_result(process_of(call), Out(result), Out(error));
    require(call.env, status, error);
    return result_value(call.env, call.environment.facts, result.get());
}

napi_value run(Call &call)
{
    Request request(call);
    const dsh_executor_t *executor = executor_of(call, call[0]);
    const uint64_t key = call.environment.inbox.enter(1u << DSH_EVENT_SETTLED);
    request.raw.tag = key;
    request.raw.flags |= DSH_REQUEST_FOREGROUND;
    OwnedProcess process;
    OwnedError error;
    const dsh_status_t status = dsh_start(executor, &request.raw, Out(process), Out(error));
    if (status != DSH_OK)
        leave(call, key, nullptr);
    require(call.env, status, error);
    call.environment.runs.emplace(key, std::move(process));
    call.environment.facts[FACT_KEY] = static_cast<double>(key);
    return undefined(call.env);
}

napi_value finish(Call &call)
{
    const uint64_t key = unsigned_from(number(call.env, call[0]));
    const auto found = call.environment.runs.find(key);
    if (found == call.environment.runs.end())
        raise(call.env, "no such run");
    OwnedProcess process = std::move(found->second);
    call.environment.runs.erase(found);
    OwnedResult result;
    OwnedError error;
    const dsh_status_t status = dsh_process_result(process.get(), Out(result), Out(error));
    leave(call, key, std::move(process));
    require(call.env, status, error);
    return result_value(call.env, call.environment.facts, result.get());
}

napi_value kill(Call &call)
{
    uint32_t was_running = 0;
    OwnedError error;
    const dsh_status_t status = dsh_kill(process_of(call), &was_running, Out(error));
    require(call.env, status, error);
    return boolean(call.env, was_running != 0);
}

napi_value process_survivors(Call &call)
{
    const auto list = filled<dsh_survivor_t>(call, [&](auto... to) {
        return dsh_process_survivors(process_of(call), to...);
    });
    return survivors(call.env, list.data(), list.size());
}

napi_value process_held_by(Call &call)
{
    const auto list = filled<int32_t>(call, [&](auto... to) { return dsh_process_held_by(process_of(call), to...); });
    return pids(call.env, list.data(), list.size());
}

napi_value spill_path(Call &call)
{
    const auto stream = static_cast<dsh_stream_t>(number(call.env, call[1]));
    const auto text = filled<char>(call, [&](auto... to) {
        return dsh_process_spill_path(process_of(call), stream, to...);
    });
    return optional_string(call.env, text.empty() ? nullptr : text.data());
}

} // namespace dsh_node
