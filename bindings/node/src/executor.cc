#include "executor.h"

#include "config.h"

#include <utility>

namespace dsh_node {

namespace {

// What a value of JavaScript has of an executor. When it is collected, the executor is forgotten, not ended.
struct Holder {
    std::shared_ptr<Environment> environment;
    std::shared_ptr<Executor> executor;

    ~Holder()
    {
        if (executor)
            environment->abandon(executor);
    }
};

Holder &holder(Call &call, napi_value value)
{
    return object<Holder>(call.env, value);
}

const char *spawn_path(dsh_spawn_path_t path)
{
    switch (path) {
    case DSH_SPAWN_VFORK:
        return "vfork";
    case DSH_SPAWN_FORK:
        return "fork";
    default:
        return "portable";
    }
}

} // namespace

const dsh_executor_t *executor_of(Call &call, napi_value value)
{
    return holder(call, value).executor->raw();
}

napi_value executor_new(Call &call)
{
    const Config config(call.env, call[0]);
    OwnedExecutor raw;
    OwnedError error;
    dsh_status_t status = dsh_executor_new(&config.raw, Out(raw), Out(error));
    require(call.env, status, error);
    auto made = std::make_unique<Holder>();
    made->environment = call.environment.shared_from_this();
    made->executor = std::make_shared<Executor>(std::move(raw));
    status = made->executor->listen(made->environment, Out(error));
    require(call.env, status, error);
    call.environment.adopt(made->executor);
    return external(call.env, std::move(made));
}

napi_value executor_configure(Call &call)
{
    const Config config(call.env, call[1]);
    OwnedError error;
    const dsh_status_t status = dsh_executor_configure(executor_of(call, call[0]), &config.raw, Out(error));
    require(call.env, status, error);
    return undefined(call.env);
}

napi_value executor_config(Call &call)
{
    OwnedSettings settings;
    OwnedError error;
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_status_t status = dsh_executor_config(executor_of(call, call[0]), Out(settings), Out(error));
    require(call.env, status, error);
    status = dsh_settings_info(settings.get(), &config, Out(error));
    require(call.env, status, error);
    return config_value(call.env, config);
}

napi_value executor_stats(Call &call)
{
    dsh_stats_t stats = DSH_STATS_INIT;
    OwnedError error;
    const dsh_status_t status = dsh_executor_stats(executor_of(call, call[0]), &stats, Out(error));
    require(call.env, status, error);
    napi_value object = nullptr;
    check(call.env, napi_create_object(call.env, &object));
    set(call.env, object, "live", number(call.env, static_cast<double>(stats.live)));
    set(call.env, object, "ended", number(call.env, static_cast<double>(stats.ended)));
    set(call.env, object, "spillBytes", number(call.env, static_cast<double>(stats.spill_bytes)));
    set(call.env, object, "threads", number(call.env, static_cast<double>(stats.threads)));
    set(call.env, object, "spawnPath", string(call.env, spawn_path(stats.spawn_path)));
    set(call.env, object, "guardPid", stats.guard_pid == 0 ? undefined(call.env) : number(call.env, stats.guard_pid));
    return object;
}

napi_value executor_shutdown(Call &call)
{
    struct Outcome {
        napi_deferred deferred = nullptr;
        dsh_status_t status = DSH_OK;
        OwnedError error;
    };
    auto outcome = std::make_shared<Outcome>();
    napi_value promise = nullptr;
    check(call.env, napi_create_promise(call.env, &outcome->deferred, &promise));

    const uint64_t timeout = unsigned_from(number(call.env, call[1]));
    const Holder &held = holder(call, call[0]);
    call.environment.threads.run([home = held.environment, executor = held.executor, outcome, timeout] {
        outcome->status = dsh_executor_shutdown(executor->raw(), timeout, Out(outcome->error));
        home->inbox.post([outcome](napi_env env) {
            if (env == nullptr)
                return;
            if (outcome->status == DSH_OK)
                napi_resolve_deferred(env, outcome->deferred, undefined(env));
            else
                napi_reject_deferred(env, outcome->deferred, error_value(env, outcome->error.get()));
        });
    });
    return promise;
}

} // namespace dsh_node
