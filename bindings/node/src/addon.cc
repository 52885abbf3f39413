// The addon's functions, for lib/addon.js alone. Arguments are not checked here beyond what keeps memory safe: the
// JavaScript in front of them does that.

#include "cancel.h"
#include "doctor.h"
#include "executor.h"
#include "process.h"
#include "reading.h"
#include "sandbox.h"
#include "spec.h"
#include "values.h"

namespace dsh_node {

namespace {

// setUp(dispatch, makeError, facts, events), once
napi_value set_up(Call &call)
{
    call.environment.set_up(call.env, call[0], call[1], call[2], call[3]);
    return undefined(call.env);
}

// hold(): keeps the event loop going
napi_value hold(Call &call)
{
    call.environment.hold(call.env);
    return undefined(call.env);
}

// release(): no longer
napi_value release(Call &call)
{
    call.environment.release(call.env);
    return undefined(call.env);
}

napi_value fact_layout(napi_env env)
{
    napi_value object = nullptr;
    check(env, napi_create_object(env, &object));
#define X(name) set(env, object, #name, number(env, FACT_##name));
    DSH_NODE_FACTS(X)
#undef X
    return object;
}

void fill(napi_env env, napi_value exports)
{
    Environment::create(env);
    const auto method = [&](const char *name, napi_callback callback) {
        napi_value function = nullptr;
        check(env, napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function));
        set(env, exports, name, function);
    };
    method("setUp", entry<set_up>);
    method("hold", entry<hold>);
    method("release", entry<release>);
    method("executorNew", entry<executor_new>);
    method("executorConfigure", entry<executor_configure>);
    method("executorConfig", entry<executor_config>);
    method("executorStats", entry<executor_stats>);
    method("executorShutdown", entry<executor_shutdown>);
    method("cancelNew", entry<cancel_new>);
    method("cancel", entry<cancel>);
    method("resolve", entry<resolve>);
    method("run", entry<run>);
    method("start", entry<start>);
    method("want", entry<want>);
    method("info", entry<info>);
    method("result", entry<result>);
    method("finish", entry<finish>);
    method("kill", entry<kill>);
    method("survivors", entry<process_survivors>);
    method("heldBy", entry<process_held_by>);
    method("spillPath", entry<spill_path>);
    method("readOutput", entry<read_output>);
    method("readStream", entry<read_stream>);
    method("sandbox", entry<process_sandbox>);
    method("widerModes", entry<wider_modes>);
    method("sandboxDoctor", entry<sandbox_doctor>);
    set(env, exports, "facts", fact_layout(env));
    set(env, exports, "version", string(env, dsh_version()));
}

} // namespace

} // namespace dsh_node

NAPI_MODULE_INIT()
{
    try {
        dsh_node::fill(env, exports);
        return exports;
    } catch (const dsh_node::Pending &) {
        return nullptr;
    }
}
