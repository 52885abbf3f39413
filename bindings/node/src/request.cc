#include "request.h"

#include "cancel.h"

namespace dsh_node {

Request::Request(Call &call)
    : command_(call.env, call[1]), input_(call.env, call[3]), env_(call.env, call[4], "env"),
      dsh_env_(call.env, call[5], "dshEnv"), sandbox_(call.env, call[7])
{
    const double *facts = call.environment.facts;
    raw.command = command_.data();
    raw.command_len = command_.size();
    if (!is_undefined(call.env, call[2])) {
        cwd_ = terminated(call.env, call[2], "cwd");
        raw.workdir = cwd_.c_str();
    }
    raw.input = input_.data();
    raw.input_len = input_.size();
    raw.env = env_.data();
    raw.env_len = env_.size();
    raw.dsh_env = dsh_env_.data();
    raw.dsh_env_len = dsh_env_.size();
    if (!is_undefined(call.env, call[6]))
        raw.cancel = object<Cancel>(call.env, call[6]).raw.get();
    raw.timeout_ms = unsigned_from(facts[FACT_TIMEOUT]);
    raw.stdout_max_bytes = unsigned_from(facts[FACT_STDOUT_MAX]);
    raw.tag = unsigned_from(facts[FACT_TAG]);
    raw.flags = unsigned_from(facts[FACT_FLAGS]);
    raw.survivors = static_cast<dsh_survivors_t>(facts[FACT_SURVIVORS]);
    raw.sandbox = sandbox_.pointer();
}

} // namespace dsh_node
