// What a caller asks.
#ifndef DSH_REQUEST_HPP
#define DSH_REQUEST_HPP

#include "cancel.hpp"
#include "duration.hpp"
#include "sandbox.hpp"

#include <dsh.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsh {

/// What happens to descendants that are still alive when a command has ended by itself.
enum class Survivors : std::uint32_t {
    /// They stay, owned by the executor: listed in the result, their pipes drained, ended with the executor.
    keep = DSH_SURVIVORS_KEEP,
    /// They are ended before the result is there.
    kill = DSH_SURVIVORS_KILL,
};

/// An environment variable.
struct Variable {
    /// Its name.
    std::string name;
    /// Its value. Empty means that the variable is removed.
    std::optional<std::string> value{};
};

/// A command and the terms it is to run under. What is left empty means the executor's default, an explicit zero is
/// refused. Owns all it holds, save for the cancel token; may be kept and used again, also by many threads.
///
///     executor.run({.command = "make -j2", .workdir = "/src", .timeout = 5min});                      // C++20
///     executor.run(dsh::Request{"make -j2"}.with_workdir("/src").with_timeout(std::chrono::minutes(5)));
struct Request {
    /// The text for `bash -c`: any bytes but NUL, of any length. Required.
    std::string command{};
    /// Working directory; a relative one is taken from the executor's `cwd`.
    std::optional<std::string> workdir{};
    /// Bytes for the command's stdin, which is closed after them: none at all is an empty stdin. Without it, stdin is
    /// /dev/null.
    std::optional<std::string> input{};
    /// Variables over the host's. Names in `DSH_` are refused. 65,536 at most.
    std::vector<Variable> env{};
    /// Trusted variables in the `DSH_` namespace, each with a value. 65,536 at most.
    std::vector<Variable> dsh_env{};
    /// Timeout, capped by the executor's `max_timeout`. Ignored by Executor::start() without `foreground`.
    std::optional<Duration> timeout{};
    /// Bytes of stdout kept in memory. Ignored by Executor::start() without `foreground`.
    std::optional<std::uint64_t> stdout_max_bytes{};
    /// Ends the command when cancelled. Not owned: it must live until the call with this request has returned, and may
    /// be destroyed then.
    const CancelToken* cancel = nullptr;
    /// Whether stderr goes through stdout's pipe, so that both are kept in their order of arrival. Without it, the
    /// order between the two is not known.
    bool merge_stderr = false;
    /// Executor::start() starts a foreground run that its caller does not wait for: `timeout` and `stdout_max_bytes`
    /// apply, the process settles only once a forced stop is through, and Process::result() then gives what
    /// Executor::run() would have given. For hosts with an event loop.
    bool foreground = false;
    /// What happens to descendants that outlive the command.
    Survivors survivors = Survivors::keep;
    /// Any number of the caller's; comes back in events and in Process::info().
    std::uint64_t tag = 0;
    /// The policy to confine the command under, where it differs from the executor's. Empty: the executor's.
    std::optional<Sandbox> sandbox{};

    /// Sets the working directory.
    Request& with_workdir(std::string path)
    {
        workdir = std::move(path);
        return *this;
    }

    /// Sets what the command reads from stdin.
    Request& with_input(std::string bytes)
    {
        input = std::move(bytes);
        return *this;
    }

    /// Adds a variable.
    Request& with_env(std::string name, std::string value)
    {
        env.push_back({std::move(name), std::move(value)});
        return *this;
    }

    /// Removes a variable of the host's.
    Request& without_env(std::string name)
    {
        env.push_back({std::move(name), std::nullopt});
        return *this;
    }

    /// Adds a trusted variable in the `DSH_` namespace.
    Request& with_dsh_env(std::string name, std::string value)
    {
        dsh_env.push_back({std::move(name), std::move(value)});
        return *this;
    }

    /// Sets the timeout.
    Request& with_timeout(Duration time)
    {
        timeout = time;
        return *this;
    }

    /// Sets how many bytes of stdout are kept in memory.
    Request& with_stdout_max_bytes(std::uint64_t bytes)
    {
        stdout_max_bytes = bytes;
        return *this;
    }

    /// Lets a token cancel the command. It must live until the call with this request has returned.
    Request& with_cancel(const CancelToken& token)
    {
        cancel = &token;
        return *this;
    }
    Request& with_cancel(const CancelToken&& token) = delete;

    /// Sends stderr through stdout's pipe.
    Request& with_merged_stderr()
    {
        merge_stderr = true;
        return *this;
    }

    /// Has Executor::start() start a foreground run.
    Request& in_foreground()
    {
        foreground = true;
        return *this;
    }

    /// Sets what happens to descendants that outlive the command.
    Request& with_survivors(Survivors policy)
    {
        survivors = policy;
        return *this;
    }

    /// Sets the tag.
    Request& with_tag(std::uint64_t number)
    {
        tag = number;
        return *this;
    }

    /// Sets the policy to confine the command under, where it differs from the executor's.
    Request& with_sandbox(Sandbox policy)
    {
        sandbox = std::move(policy);
        return *this;
    }

    /// Sets the mode to confine the command under; the rest of the policy stays as it is.
    Request& with_sandbox(SandboxMode mode)
    {
        if (!sandbox)
            sandbox.emplace();
        sandbox->mode = mode;
        return *this;
    }
};

} // namespace dsh

#endif
