#include "cancel.h"

namespace dsh_node {

napi_value cancel_new(Call &call)
{
    auto token = std::make_unique<Cancel>();
    OwnedError error;
    const dsh_status_t status = dsh_cancel_new(Out(token->raw), Out(error));
    require(call.env, status, error);
    return external(call.env, std::move(token));
}

napi_value cancel(Call &call)
{
    OwnedError error;
    const dsh_status_t status = dsh_cancel(object<Cancel>(call.env, call[0]).raw.get(), Out(error));
    require(call.env, status, error);
    return undefined(call.env);
}

} // namespace dsh_node
