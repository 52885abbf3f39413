// How a command ended, and everything else in a result.
#pragma once

#include "values.h"

namespace dsh_node {

void write_outcome(double *facts, const dsh_outcome_t &outcome);

// Numbers to the facts; the rest as a list, undefined where there is nothing: stdout, stderr, stdout's spill path and
// spill error, stderr's, pids that held the pipes, survivors, scrubbed names, confinement.
napi_value result_value(napi_env env, double *facts, const dsh_result_t *result);

} // namespace dsh_node
