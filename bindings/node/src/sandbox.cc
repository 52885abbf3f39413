#include "sandbox.h"

#include "process_handle.h"

namespace dsh_node {

namespace {

template <class Number> Number whole(napi_env env, napi_value object, const char *name)
{
    return static_cast<Number>(unsigned_from(number(env, get(env, object, name))));
}

std::vector<dsh_backend_t> backends(napi_env env, napi_value list)
{
    std::vector<dsh_backend_t> result;
    if (is_undefined(env, list))
        return result;
    uint32_t count = 0;
    check(env, napi_get_array_length(env, list, &count));
    for (uint32_t i = 0; i < count; ++i) {
        napi_value element = nullptr;
        check(env, napi_get_element(env, list, i, &element));
        result.push_back(static_cast<dsh_backend_t>(number(env, element)));
    }
    return result;
}

napi_value facts_value(napi_env env, const dsh_sandbox_facts_t &facts)
{
    if (facts.mode == DSH_SANDBOX_DEFAULT)
        return undefined(env);
    napi_value object = nullptr;
    check(env, napi_create_object(env, &object));
    set(env, object, "mode", number(env, facts.mode));
    set(env, object, "backend", number(env, facts.backend));
    set(env, object, "enforcement", number(env, facts.enforcement));
    set(env, object, "denied", number(env, facts.denied));
    set(env, object, "network", number(env, facts.network));
    set(env, object, "workspace", optional_string(env, facts.workspace));
    set(env, object, "missing", strings(env, facts.missing, facts.missing_len));
    set(env, object, "deniedPath", optional_string(env, facts.denied_path));
    set(env, object, "deniedRule", optional_string(env, facts.denied_rule));
    set(env, object, "runnerFailed", optional_string(env, facts.runner_failed));
    return object;
}

} // namespace

Sandbox::Sandbox(napi_env env, napi_value value)
{
    if (is_undefined(env, value))
        return;
    given_ = true;
    const napi_value workspace = get(env, value, "workspace");
    if (!is_undefined(env, workspace)) {
        workspace_ = terminated(env, workspace, "sandbox.workspace");
        raw_.workspace = workspace_.c_str();
    }
    writable_ = TextList(env, get(env, value, "writable"), "sandbox.writable");
    hidden_ = TextList(env, get(env, value, "hidden"), "sandbox.hidden");
    backends_ = backends(env, get(env, value, "backends"));
    runner_ = TextList(env, get(env, value, "runner"), "sandbox.runner.command");
    runner_failures_ = TextList(env, get(env, value, "runnerFailures"), "sandbox.runner.failures");
    raw_.writable = writable_.data();
    raw_.writable_len = writable_.size();
    raw_.hidden = hidden_.data();
    raw_.hidden_len = hidden_.size();
    raw_.backends = backends_.empty() ? nullptr : backends_.data();
    raw_.backends_len = backends_.size();
    raw_.runner = runner_.data();
    raw_.runner_len = runner_.size();
    raw_.runner_failures = runner_failures_.data();
    raw_.runner_failures_len = runner_failures_.size();
    raw_.flags = whole<uint64_t>(env, value, "flags");
    raw_.mode = whole<dsh_sandbox_mode_t>(env, value, "mode");
    raw_.network = whole<dsh_network_t>(env, value, "network");
}

napi_value sandbox_value(napi_env env, const dsh_sandbox_t *sandbox)
{
    if (sandbox == nullptr)
        return undefined(env);
    napi_value object = nullptr;
    check(env, napi_create_object(env, &object));
    const napi_value backends = array(env, sandbox->backends_len);
    for (size_t i = 0; i < sandbox->backends_len; ++i)
        set_at(env, backends, i, number(env, sandbox->backends[i]));
    set(env, object, "mode", number(env, sandbox->mode));
    set(env, object, "workspace", optional_string(env, sandbox->workspace));
    set(env, object, "writable", strings(env, sandbox->writable, sandbox->writable_len));
    set(env, object, "hidden", strings(env, sandbox->hidden, sandbox->hidden_len));
    set(env, object, "network", number(env, sandbox->network));
    set(env, object, "backends", backends);
    set(env, object, "runner", strings(env, sandbox->runner, sandbox->runner_len));
    set(env, object, "runnerFailures", strings(env, sandbox->runner_failures, sandbox->runner_failures_len));
    set(env, object, "flags", number(env, static_cast<double>(sandbox->flags)));
    return object;
}

napi_value result_sandbox(napi_env env, const dsh_result_t *result)
{
    dsh_sandbox_facts_t facts = DSH_SANDBOX_FACTS_INIT;
    OwnedError error;
    const dsh_status_t status = dsh_result_sandbox(result, &facts, Out(error));
    require(env, status, error);
    return facts_value(env, facts);
}

napi_value process_sandbox(Call &call)
{
    dsh_sandbox_facts_t facts = DSH_SANDBOX_FACTS_INIT;
    OwnedError error;
    const dsh_status_t status = dsh_process_sandbox(process_of(call), &facts, Out(error));
    require(call.env, status, error);
    return facts_value(call.env, facts);
}

napi_value wider_modes(Call &call)
{
    const auto than = static_cast<dsh_sandbox_mode_t>(number(call.env, call[0]));
    const napi_value list = array(call.env, 0);
    size_t count = 0;
    for (dsh_sandbox_mode_t mode = DSH_SANDBOX_READ_ONLY; mode <= DSH_SANDBOX_DANGER_FULL_ACCESS; ++mode)
        if (dsh_sandbox_is_wider(mode, than) != 0)
            set_at(call.env, list, count++, number(call.env, mode));
    return list;
}

} // namespace dsh_node
