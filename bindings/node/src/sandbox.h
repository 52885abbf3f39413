// Confinement: policies and facts. Modes, backends and networks cross the border as the library's numbers;
// lib/sandbox.js has their names.
#pragma once

#include "values.h"

namespace dsh_node {

// A policy out of what lib/sandbox.js made of it, or none out of undefined.
class Sandbox {
  public:
    Sandbox(napi_env env, napi_value value);

    // Points into this object; NULL when there is no policy.
    const dsh_sandbox_t *pointer() const noexcept
    {
        return given_ ? &raw_ : nullptr;
    }

  private:
    bool given_ = false;
    dsh_sandbox_t raw_ = DSH_SANDBOX_INIT;
    std::string workspace_;
    TextList writable_;
    TextList hidden_;
    std::vector<dsh_backend_t> backends_;
    TextList runner_;
    TextList runner_failures_;
};

// The members of an executor's policy; undefined for NULL.
napi_value sandbox_value(napi_env env, const dsh_sandbox_t *sandbox);

// What is known of the confinement of a run; undefined when nobody has asked for any.
napi_value result_sandbox(napi_env env, const dsh_result_t *result);

// sandbox(process) → what is known of its confinement, or undefined
napi_value process_sandbox(Call &call);

// widerModes(mode) → the modes that are strictly wider, the narrowest first
napi_value wider_modes(Call &call);

} // namespace dsh_node
