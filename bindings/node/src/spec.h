// What would run.
#pragma once

#include "values.h"

namespace dsh_node {

// resolve(executor, command, cwd, input, env, dshEnv, undefined, sandbox) → spec
napi_value resolve(Call &call);

} // namespace dsh_node
