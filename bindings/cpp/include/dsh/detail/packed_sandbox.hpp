// A policy as the C interface takes it, and back.
#ifndef DSH_DETAIL_PACKED_SANDBOX_HPP
#define DSH_DETAIL_PACKED_SANDBOX_HPP

#include "../sandbox.hpp"
#include "packer.hpp"

#include <dsh.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsh::detail {

/// A policy for the C interface, or none. Points into the Sandbox that it was made of.
class PackedSandbox {
public:
    PackedSandbox(Packer& packer, const std::optional<Sandbox>& sandbox)
    {
        if (!sandbox)
            return;
        given_ = true;
        writable_ = packer.texts("sandbox.writable", sandbox->writable);
        hidden_ = packer.texts("sandbox.hidden", sandbox->hidden);
        for (const Backend backend : sandbox->backends)
            backends_.push_back(static_cast<dsh_backend_t>(backend));
        if (sandbox->runner) {
            runner_ = packer.command("sandbox.runner", sandbox->runner->command);
            failures_ = packer.texts("sandbox.runner_failures", sandbox->runner->failures);
        }
        c_.workspace = packer.text("sandbox.workspace", sandbox->workspace);
        c_.writable = writable_.data();
        c_.writable_len = writable_.size();
        c_.hidden = hidden_.data();
        c_.hidden_len = hidden_.size();
        c_.backends = backends_.data();
        c_.backends_len = backends_.size();
        c_.runner = runner_.data();
        c_.runner_len = runner_.size();
        c_.runner_failures = failures_.data();
        c_.runner_failures_len = failures_.size();
        if (sandbox->git_worktree)
            c_.flags = *sandbox->git_worktree ? DSH_SANDBOX_GIT_WORKTREE : DSH_SANDBOX_NO_GIT_WORKTREE;
        c_.mode = packer.number("sandbox.mode", sandbox->mode);
        c_.network = packer.number("sandbox.network", sandbox->network);
    }
    PackedSandbox(const PackedSandbox&) = delete;
    PackedSandbox& operator=(const PackedSandbox&) = delete;

    [[nodiscard]] const dsh_sandbox_t* get() const noexcept { return given_ ? &c_ : nullptr; }

private:
    bool given_ = false;
    std::vector<const char*> writable_, hidden_, runner_, failures_;
    std::vector<dsh_backend_t> backends_;
    dsh_sandbox_t c_ = DSH_SANDBOX_INIT;
};

/// A policy that the C interface gave, or none.
inline std::optional<Sandbox> sandbox_of(const dsh_sandbox_t* c)
{
    if (c == nullptr)
        return std::nullopt;
    Sandbox sandbox;
    if (c->mode != DSH_SANDBOX_DEFAULT)
        sandbox.mode = static_cast<SandboxMode>(c->mode);
    if (c->workspace != nullptr)
        sandbox.workspace = c->workspace;
    sandbox.writable.assign(c->writable, c->writable + c->writable_len);
    sandbox.hidden.assign(c->hidden, c->hidden + c->hidden_len);
    if (c->network != DSH_NETWORK_DEFAULT)
        sandbox.network = static_cast<Network>(c->network);
    for (std::size_t i = 0; i < c->backends_len; ++i)
        sandbox.backends.push_back(static_cast<Backend>(c->backends[i]));
    if (c->runner_len != 0) {
        Runner runner;
        runner.command.assign(c->runner, c->runner + c->runner_len);
        runner.failures.assign(c->runner_failures, c->runner_failures + c->runner_failures_len);
        sandbox.runner = std::move(runner);
    }
    if ((c->flags & DSH_SANDBOX_GIT_WORKTREE) != 0)
        sandbox.git_worktree = true;
    else if ((c->flags & DSH_SANDBOX_NO_GIT_WORKTREE) != 0)
        sandbox.git_worktree = false;
    return sandbox;
}

} // namespace dsh::detail

#endif
