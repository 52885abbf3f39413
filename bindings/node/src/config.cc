#include "config.h"

namespace dsh_node {

namespace {

const char *path(napi_env env, napi_value options, const char *name, std::string &storage)
{
    const napi_value value = get(env, options, name);
    if (is_undefined(env, value))
        return nullptr;
    storage = terminated(env, value, name);
    return storage.c_str();
}

uint64_t amount(napi_env env, napi_value options, const char *name)
{
    const napi_value value = get(env, options, name);
    return is_undefined(env, value) ? 0 : unsigned_from(number(env, value));
}

bool is(napi_env env, napi_value options, const char *name, bool wanted)
{
    const napi_value value = get(env, options, name);
    if (is_undefined(env, value))
        return false;
    bool result = false;
    check(env, napi_get_value_bool(env, value, &result));
    return result == wanted;
}

void set_path(napi_env env, napi_value object, const char *name, const char *text)
{
    set(env, object, name, optional_string(env, text));
}

void set_amount(napi_env env, napi_value object, const char *name, uint64_t value)
{
    set(env, object, name, number(env, static_cast<double>(value)));
}

void set_list(napi_env env, napi_value object, const char *name, const char *const *texts, size_t count)
{
    set(env, object, name, count == 0 ? array(env, 0) : strings(env, texts, count));
}

} // namespace

Config::Config(napi_env env, napi_value options)
    : env_allow_(env, get(env, options, "envAllow"), "envAllow"),
      env_deny_(env, get(env, options, "envDeny"), "envDeny"), sandbox_(env, get(env, options, "sandbox"))
{
    raw.cwd = path(env, options, "cwd", cwd_);
    raw.shell = path(env, options, "shell", shell_);
    raw.spill_dir = path(env, options, "spillDir", spill_dir_);
    raw.env_allow = env_allow_.data();
    raw.env_allow_len = env_allow_.size();
    raw.env_deny = env_deny_.data();
    raw.env_deny_len = env_deny_.size();
    raw.timeout_ms = amount(env, options, "timeoutMs");
    raw.max_timeout_ms = amount(env, options, "maxTimeoutMs");
    raw.max_output_bytes = amount(env, options, "maxOutputBytes");
    raw.max_spill_bytes = amount(env, options, "maxSpillBytes");
    raw.max_total_spill_bytes = amount(env, options, "maxTotalSpillBytes");
    raw.grace_ms = amount(env, options, "graceMs");
    raw.drain_ms = amount(env, options, "drainMs");
    raw.flags = (is(env, options, "inheritEnv", false) ? DSH_CONFIG_NO_INHERIT_ENV : 0) |
                (is(env, options, "guard", false) ? DSH_CONFIG_NO_GUARD : 0) |
                (is(env, options, "keepSpillFiles", true) ? DSH_CONFIG_KEEP_SPILL_FILES : 0);
    const napi_value keep = get(env, options, "keep");
    if (!is_undefined(env, keep))
        raw.keep = terminated(env, keep, "keep") == "head-tail" ? DSH_KEEP_HEAD_TAIL : DSH_KEEP_TAIL;
    raw.sandbox = sandbox_.pointer();
}

napi_value config_value(napi_env env, const dsh_config_t &config)
{
    napi_value object = nullptr;
    check(env, napi_create_object(env, &object));
    set_path(env, object, "cwd", config.cwd);
    set_path(env, object, "shell", config.shell);
    set_path(env, object, "spillDir", config.spill_dir);
    set_amount(env, object, "timeoutMs", config.timeout_ms);
    set_amount(env, object, "maxTimeoutMs", config.max_timeout_ms);
    set_amount(env, object, "maxOutputBytes", config.max_output_bytes);
    set_amount(env, object, "maxSpillBytes", config.max_spill_bytes);
    set_amount(env, object, "maxTotalSpillBytes", config.max_total_spill_bytes);
    set_amount(env, object, "graceMs", config.grace_ms);
    set_amount(env, object, "drainMs", config.drain_ms);
    set(env, object, "keep", string(env, config.keep == DSH_KEEP_HEAD_TAIL ? "head-tail" : "tail"));
    set(env, object, "inheritEnv", boolean(env, (config.flags & DSH_CONFIG_NO_INHERIT_ENV) == 0));
    set_list(env, object, "envAllow", config.env_allow, config.env_allow_len);
    set_list(env, object, "envDeny", config.env_deny, config.env_deny_len);
    set(env, object, "guard", boolean(env, (config.flags & DSH_CONFIG_NO_GUARD) == 0));
    set(env, object, "keepSpillFiles", boolean(env, (config.flags & DSH_CONFIG_KEEP_SPILL_FILES) != 0));
    set(env, object, "sandbox", sandbox_value(env, config.sandbox));
    return object;
}

} // namespace dsh_node
