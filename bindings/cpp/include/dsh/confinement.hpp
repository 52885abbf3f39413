// What is known of the confinement of a command.
#ifndef DSH_CONFINEMENT_HPP
#define DSH_CONFINEMENT_HPP

#include "detail/call.hpp"
#include "sandbox.hpp"

#include <dsh.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsh {

/// How much of the policy the backend enforces.
enum class Enforcement : std::uint32_t {
    /// Nothing: full access.
    none = DSH_ENFORCEMENT_NONE,
    /// All of it.
    full = DSH_ENFORCEMENT_FULL,
    /// Not what Confinement::missing names.
    partial = DSH_ENFORCEMENT_PARTIAL,
};

/// Whether the confinement has kept a command from something.
enum class Denied : std::uint32_t {
    /// There is no telling (yet), or it did not matter to the command.
    unknown = DSH_DENIED_UNKNOWN,
    /// Nothing shows that it has.
    no = DSH_DENIED_NO,
    /// It has.
    yes = DSH_DENIED_YES,
};

/// What a command was kept from.
struct Denial {
    /// The path, absolute.
    std::string path;
    /// The rule that forbids it, in a few words.
    std::string rule;
};

/// What is known of the confinement of a command, from Result::sandbox() and Process::sandbox(). Owns all it holds.
struct Confinement {
    /// The mode that it ran under.
    SandboxMode mode = SandboxMode::read_only;
    /// What confined it. Empty under full access.
    std::optional<Backend> backend;
    /// How much is enforced.
    Enforcement enforcement = Enforcement::none;
    /// What the policy says and the backend can't enforce here, a name each: "metadata" (modes, owners, times and
    /// attributes of files), "hidden-names", "truncate", "ioctl-dev", "signal", "abstract-unix-socket",
    /// "private-loopback".
    std::vector<std::string> missing;
    /// The network that it could use.
    Network network = Network::full;
    /// The workspace without symbolic links. Empty under full access.
    std::optional<std::string> workspace;
    /// Whether it was kept from something; known once the process has settled.
    Denied denied = Denied::unknown;
    /// What from, with Denied::yes.
    std::optional<Denial> denial;
    /// Why the backend failed to set itself up, in which case the command did not run. Of processes only:
    /// Executor::run() and Process::result() give ErrorCode::sandbox_unavailable.
    std::optional<std::string> runner_failed;
};

namespace detail {

inline std::optional<std::string> text_of(const char* given)
{
    return given != nullptr ? std::optional<std::string>(given) : std::nullopt;
}

/// The facts of a handle that `read` fills in; none when nobody has asked for confinement.
template <class Object> Expected<std::optional<Confinement>>
confinement_of(dsh_status_t (*read)(const Object*, dsh_sandbox_facts_t*, dsh_error_t**), const Object* object)
{
    const auto c = info<dsh_sandbox_facts_t, Object>(read, object);
    if (!c)
        return c.error();
    if (c->mode == DSH_SANDBOX_DEFAULT)
        return std::optional<Confinement>();
    Confinement facts;
    facts.mode = static_cast<SandboxMode>(c->mode);
    if (c->backend != DSH_BACKEND_NONE)
        facts.backend = static_cast<Backend>(c->backend);
    facts.enforcement = static_cast<Enforcement>(c->enforcement);
    facts.missing.assign(c->missing, c->missing + c->missing_len);
    facts.network = static_cast<Network>(c->network);
    facts.workspace = text_of(c->workspace);
    facts.denied = static_cast<Denied>(c->denied);
    if (c->denied_path != nullptr && c->denied_rule != nullptr)
        facts.denial = Denial{c->denied_path, c->denied_rule};
    facts.runner_failed = text_of(c->runner_failed);
    return std::optional<Confinement>(std::move(facts));
}

} // namespace detail

} // namespace dsh

#endif
