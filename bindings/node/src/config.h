// Budgets, out of an object and into one. The names are those of `ExecutorOptions`.
#pragma once

#include "sandbox.h"
#include "values.h"

namespace dsh_node {

class Config {
  public:
    Config(napi_env env, napi_value options);

    // Points into this object.
    dsh_config_t raw = DSH_CONFIG_INIT;

  private:
    std::string cwd_;
    std::string shell_;
    std::string spill_dir_;
    TextList env_allow_;
    TextList env_deny_;
    Sandbox sandbox_;
};

napi_value config_value(napi_env env, const dsh_config_t &config);

} // namespace dsh_node
