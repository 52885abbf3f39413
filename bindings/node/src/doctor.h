// What confinement this system has.
#pragma once

#include "values.h"

namespace dsh_node {

// sandboxDoctor() → Promise of the report; tries the backends on a thread of its own
napi_value sandbox_doctor(Call &call);

} // namespace dsh_node
