// Executors: `executor` is what executorNew() gave.
#pragma once

#include "values.h"

namespace dsh_node {

// The executor behind a value that executorNew() gave.
const dsh_executor_t *executor_of(Call &call, napi_value value);

// executorNew(config) → executor
napi_value executor_new(Call &call);

// executorConfigure(executor, config)
napi_value executor_configure(Call &call);

// executorConfig(executor) → the budgets in force
napi_value executor_config(Call &call);

// executorStats(executor) → what it is doing
napi_value executor_stats(Call &call);

// executorShutdown(executor, timeoutMs) → Promise; waits on a thread of its own
napi_value executor_shutdown(Call &call);

} // namespace dsh_node
