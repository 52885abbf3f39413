#include "spec.h"

#include "executor.h"
#include "request.h"

namespace dsh_node {

napi_value resolve(Call &call)
{
    const Request request(call);
    OwnedSpec spec;
    OwnedError error;
    dsh_spec_info_t info = DSH_SPEC_INFO_INIT;
    dsh_status_t status = dsh_resolve(executor_of(call, call[0]), &request.raw, Out(spec), Out(error));
    require(call.env, status, error);
    status = dsh_spec_info(spec.get(), &info, Out(error));
    require(call.env, status, error);

    napi_value object = nullptr;
    check(call.env, napi_create_object(call.env, &object));
    const auto amount = [&](const char *name, uint64_t value) {
        set(call.env, object, name, number(call.env, static_cast<double>(value)));
    };
    set(call.env, object, "command", string(call.env, {info.command, info.command_len}));
    set(call.env, object, "shell", string(call.env, info.shell));
    set(call.env, object, "cwd", string(call.env, info.workdir));
    amount("timeoutMs", info.timeout_ms);
    amount("stdoutMaxBytes", info.stdout_max_bytes);
    amount("maxOutputBytes", info.max_output_bytes);
    amount("graceMs", info.grace_ms);
    amount("drainMs", info.drain_ms);
    amount("tag", info.tag);
    set(call.env, object, "survivors", string(call.env, info.survivors == DSH_SURVIVORS_KILL ? "kill" : "keep"));
    set(call.env, object, "mergeStderr", boolean(call.env, (info.flags & DSH_REQUEST_MERGE_STDERR) != 0));
    set(call.env, object, "sandboxMode",
        optional_string(call.env, info.sandbox_mode == DSH_SANDBOX_DEFAULT ? nullptr
                                                                           : dsh_sandbox_mode_str(info.sandbox_mode)));
    set(call.env, object, "scrubbed",
        info.scrubbed_len == 0 ? array(call.env, 0) : strings(call.env, info.scrubbed, info.scrubbed_len));
    return object;
}

} // namespace dsh_node
