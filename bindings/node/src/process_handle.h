// What a value of JavaScript has of a process. When it is collected, the process goes on, owned by its executor.
#pragma once

#include "values.h"

namespace dsh_node {

struct Process {
    std::shared_ptr<Environment> environment;
    uint64_t key = 0;
    OwnedProcess raw;

    ~Process();
};

// The process that is the first argument of the call.
const dsh_process_t *process_of(Call &call);

} // namespace dsh_node
