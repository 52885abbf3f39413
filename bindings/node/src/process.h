// Processes: `process` is what start() gave.
#pragma once

#include "values.h"

namespace dsh_node {

// start(executor, command, cwd, input, env, dshEnv, cancel, sandbox) → process; KEY, PROCESS_ID and PID are in the
// facts
napi_value start(Call &call);

// want(process, kinds): has these kinds of events told, and fills in the facts as they are after that
napi_value want(Call &call);

// info(process): fills in the facts
napi_value info(Call &call);

// result(process) → what is no number, as a list; the rest is in the facts
napi_value result(Call &call);

// run(executor, command, cwd, input, env, dshEnv, cancel, sandbox): starts a foreground run. KEY is in the facts, and
// SETTLED is told of it
napi_value run(Call &call);

// finish(key) → as result(), of a run that has settled, which is freed
napi_value finish(Call &call);

// kill(process) → whether there was still something to be killed
napi_value kill(Call &call);

// process_survivors(process) → flat list of pid and start time, or undefined
napi_value process_survivors(Call &call);

// process_held_by(process) → list of pids, or undefined
napi_value process_held_by(Call &call);

// spillPath(process, stream) → path, or undefined
napi_value spill_path(Call &call);

} // namespace dsh_node
