// What a caller asks, out of a call's arguments (executor, command, cwd, input, env, dshEnv, cancel, sandbox) and the
// shared numbers.
#pragma once

#include "sandbox.h"
#include "values.h"

namespace dsh_node {

class Request {
  public:
    explicit Request(Call &call);

    // Points into this object and into the arguments of the call.
    dsh_request_t raw = DSH_REQUEST_INIT;

  private:
    Bytes command_;
    std::string cwd_;
    Bytes input_;
    TextList env_;
    TextList dsh_env_;
    Sandbox sandbox_;
};

} // namespace dsh_node
