// Cancel tokens.
#pragma once

#include "values.h"

namespace dsh_node {

struct Cancel {
    OwnedCancel raw;
};

// cancelNew() → token
napi_value cancel_new(Call &call);

// cancel(token)
napi_value cancel(Call &call);

} // namespace dsh_node
