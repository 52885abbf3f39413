// Confinement: what a command may do.
#ifndef DSH_SANDBOX_HPP
#define DSH_SANDBOX_HPP

#include "expected.hpp"

#include <dsh.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsh {

/// How much of the file system a command may change. Each is strictly wider than the one before it.
enum class SandboxMode : std::uint32_t {
    /// Nothing but /dev/null and a private directory for temporary files, in TMPDIR.
    read_only = DSH_SANDBOX_READ_ONLY,
    /// That, and the workspace with everything below it, and further writable paths.
    workspace_write = DSH_SANDBOX_WORKSPACE_WRITE,
    /// No confinement.
    danger_full_access = DSH_SANDBOX_DANGER_FULL_ACCESS,
};

/// How much of the network a command may use.
enum class Network : std::uint32_t {
    /// Whatever the host can reach.
    full = DSH_NETWORK_FULL,
    /// A loopback interface of the command's own: its processes reach each other, and nobody else. Bubblewrap only.
    loopback = DSH_NETWORK_LOOPBACK,
    /// No sockets but those of the file system (AF_UNIX), which can be reached as far as their permissions let them,
    /// and of the kernel's own services (AF_NETLINK).
    none = DSH_NETWORK_NONE,
};

/// What carries a confinement out.
enum class Backend : std::uint32_t {
    /// `bwrap`: namespaces, so that what is forbidden is not even there (Linux).
    bubblewrap = DSH_BACKEND_BUBBLEWRAP,
    /// Landlock, in the command itself and without a helper program (Linux 5.13).
    landlock = DSH_BACKEND_LANDLOCK,
    /// `sandbox-exec` (macOS).
    seatbelt = DSH_BACKEND_SEATBELT,
    /// The caller's own program, see Runner.
    runner = DSH_BACKEND_RUNNER,
};

/// The name of a mode: "read-only", "workspace-write" or "danger-full-access"; of any other number "". Static text.
[[nodiscard]] inline const char* to_string(SandboxMode mode) noexcept
{
    return dsh_sandbox_mode_str(static_cast<dsh_sandbox_mode_t>(mode));
}

/// The name of a network: "full", "loopback" or "none"; of any other number "". Static text.
[[nodiscard]] inline const char* to_string(Network network) noexcept
{
    switch (network) {
    case Network::full:
        return "full";
    case Network::loopback:
        return "loopback";
    case Network::none:
        return "none";
    }
    return "";
}

/// The name of a backend: "bubblewrap", "landlock", "seatbelt" or "runner"; of any other number "". Static text.
[[nodiscard]] inline const char* to_string(Backend backend) noexcept
{
    switch (backend) {
    case Backend::bubblewrap:
        return "bubblewrap";
    case Backend::landlock:
        return "landlock";
    case Backend::seatbelt:
        return "seatbelt";
    case Backend::runner:
        return "runner";
    }
    return "";
}

/// Whether a mode is strictly wider than another.
[[nodiscard]] inline bool is_wider(SandboxMode mode, SandboxMode than) noexcept
{
    return dsh_sandbox_is_wider(static_cast<dsh_sandbox_mode_t>(mode), static_cast<dsh_sandbox_mode_t>(than)) != 0;
}

/// The modes that are strictly wider than this one, the narrowest first: what a caller could ask for when a command was
/// denied something.
[[nodiscard]] inline std::vector<SandboxMode> wider_than(SandboxMode mode)
{
    std::vector<SandboxMode> wider;
    for (const SandboxMode other :
         {SandboxMode::read_only, SandboxMode::workspace_write, SandboxMode::danger_full_access})
        if (is_wider(other, mode))
            wider.push_back(other);
    return wider;
}

/// As sandbox_mode(), without exceptions.
inline Expected<SandboxMode> try_sandbox_mode(std::string_view name)
{
    for (const SandboxMode mode :
         {SandboxMode::read_only, SandboxMode::workspace_write, SandboxMode::danger_full_access})
        if (name == to_string(mode))
            return mode;
    return Error(ErrorCode::invalid, 0, "argument",
                 "sandbox.mode \"" + std::string(name) +
                     "\": is none of read-only, workspace-write, danger-full-access");
}

#if DSH_EXCEPTIONS
/// The mode of a name, as people and models write it. ErrorCode::invalid when there is none; the message names it.
[[nodiscard]] inline SandboxMode sandbox_mode(std::string_view name) { return try_sandbox_mode(name).value(); }
#endif

/// A caller's own sandbox: what stands before the shell, and how its failures are told.
struct Runner {
    /// The program (absolute, or found in PATH) and its first arguments, after which come the shell, `-c` and the
    /// command. It finds the policy in DSH_SANDBOX_MODE, DSH_SANDBOX_WORKSPACE, DSH_SANDBOX_WRITABLE (a list with `:`)
    /// and DSH_SANDBOX_NETWORK, and is trusted to enforce it.
    std::vector<std::string> command{};
    /// A line on stderr that contains one of these, whatever the case, says together with a non-zero exit that the
    /// runner itself failed and the command did not run. Required.
    std::vector<std::string> failures{};
};

/// What a confined command may do: a policy, of an executor or of one request. What is left empty means the executor's
/// policy, and there the default. Paths are absolute; they are resolved once, symbolic links followed.
///
///     request.sandbox = {.mode = dsh::SandboxMode::workspace_write, .network = dsh::Network::none};   // C++20
///     request.with_sandbox(dsh::Sandbox{}.with_mode(dsh::SandboxMode::read_only).with_hidden("/home/u/.ssh"));
struct Sandbox {
    /// How much of the file system a command may change. Default: SandboxMode::read_only.
    std::optional<SandboxMode> mode{};
    /// The directory that SandboxMode::workspace_write lets a command change. Default: the executor's `cwd`, whatever
    /// the request's `workdir` is.
    std::optional<std::string> workspace{};
    /// Further paths that SandboxMode::workspace_write lets a command change. They have to exist. 65,536 at most.
    std::vector<std::string> writable{};
    /// Paths whose contents a command does not get to see. Those that do not exist are passed over. 65,536 at most.
    std::vector<std::string> hidden{};
    /// How much of the network a command may use. Default: Network::full.
    std::optional<Network> network{};
    /// The backends to be tried, in this order. Default: the runner if there is one, then all of the system, bubblewrap
    /// before Landlock.
    std::vector<Backend> backends{};
    /// The caller's own sandbox.
    std::optional<Runner> runner{};
    /// Whether a workspace that is a linked git worktree may change those parts of the main repository that a commit
    /// needs: not its hooks, and not its configuration. Default: false.
    std::optional<bool> git_worktree{};

    /// Sets how much of the file system a command may change.
    Sandbox& with_mode(SandboxMode which)
    {
        mode = which;
        return *this;
    }

    /// Sets the directory that a command may change.
    Sandbox& with_workspace(std::string path)
    {
        workspace = std::move(path);
        return *this;
    }

    /// Adds a path that a command may change.
    Sandbox& with_writable(std::string path)
    {
        writable.push_back(std::move(path));
        return *this;
    }

    /// Adds a path whose contents a command does not get to see.
    Sandbox& with_hidden(std::string path)
    {
        hidden.push_back(std::move(path));
        return *this;
    }

    /// Sets how much of the network a command may use.
    Sandbox& with_network(Network which)
    {
        network = which;
        return *this;
    }

    /// Adds a backend to be tried after those that were added before.
    Sandbox& with_backend(Backend which)
    {
        backends.push_back(which);
        return *this;
    }

    /// Sets the caller's own sandbox.
    Sandbox& with_runner(Runner program)
    {
        runner = std::move(program);
        return *this;
    }

    /// Sets whether a linked git worktree can be committed in.
    Sandbox& with_git_worktree(bool may = true)
    {
        git_worktree = may;
        return *this;
    }
};

} // namespace dsh

#endif
