// Reading the output of a process.
#pragma once

#include "values.h"

namespace dsh_node {

// readOutput(process, wait) → [bytes, stdout's spill path, stderr's], undefined where there is nothing; with `wait`,
// new output from here on is told as an event
napi_value read_output(Call &call);

// readStream(process, stream, offset, maxBytes) → bytes, undefined when there are none
napi_value read_stream(Call &call);

} // namespace dsh_node
