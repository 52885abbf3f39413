// What went wrong.
#ifndef DSH_ERROR_HPP
#define DSH_ERROR_HPP

#include <dsh.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace dsh {

/// What kind of failure an Error is. Programs decide by this, people read the message. A library that is newer than
/// this header may give other values.
enum class ErrorCode : std::int32_t {
    /// A handle that holds nothing was used: it was moved from, or never filled.
    null = DSH_E_NULL,
    /// A value that can't be used; the message names the field and the value.
    invalid = DSH_E_INVALID,
    /// The header asks for something that this older library does not know.
    structure = DSH_E_STRUCT,
    /// The header asks for flags that this older library does not know.
    flags = DSH_E_FLAGS,
    /// The command holds a NUL byte, which no command line can carry.
    command_nul = DSH_E_COMMAND_NUL,
    /// The name of an environment variable can't be one.
    env_name = DSH_E_ENV_NAME,
    /// The name of an environment variable is in the reserved `DSH_` namespace.
    env_reserved = DSH_E_ENV_RESERVED,
    /// The environment is larger than the system takes; the message names the largest variables.
    env_too_big = DSH_E_ENV_TOO_BIG,
    /// The working directory does not exist.
    workdir_missing = DSH_E_WORKDIR_MISSING,
    /// The working directory is something else than a directory.
    workdir_not_dir = DSH_E_WORKDIR_NOT_DIR,
    /// The working directory may not be entered.
    workdir_denied = DSH_E_WORKDIR_DENIED,
    /// The working directory can't be used for another reason (a loop of links, a name too long).
    workdir_unusable = DSH_E_WORKDIR_UNUSABLE,
    /// The shell is not there or can't be executed.
    shell_missing = DSH_E_SHELL_MISSING,
    /// The cancel token was cancelled before the command was started.
    cancelled = DSH_E_CANCELLED,
    /// The executor has been shut down.
    shutdown = DSH_E_SHUTDOWN,
    /// The system refused to start the command; stage and errno say where and why.
    spawn = DSH_E_SPAWN,
    /// No confinement backend can be used, so the command was not run.
    sandbox_unavailable = DSH_E_SANDBOX_UNAVAILABLE,
    /// What was asked for is not there yet: the process has not settled.
    timed_out = DSH_E_TIMED_OUT,
    /// A system call that the library needs failed; stage and errno say which and why.
    system = DSH_E_SYSTEM,
    /// Memory was refused.
    out_of_memory = DSH_E_OUT_OF_MEMORY,
    /// The call was made in a forked child of the process that made the handle.
    forked = DSH_E_FORKED,
    /// The library caught a failure of its own; the handle can only be destroyed.
    panic = DSH_E_PANIC,
};

/// What a code means, in a few words. Static text; of a number that is no code, "unknown status".
[[nodiscard]] inline const char* to_string(ErrorCode code) noexcept
{
    return dsh_status_str(static_cast<dsh_status_t>(code));
}

/// What went wrong in one call. `what()` is the message for people: it names the field and its value, or the step and
/// the system's reason; its wording may change between versions.
///
/// Thrown by the functions that throw, and given by the others in an Expected. Copies never throw; readable on any
/// thread and in a forked child. The attribute lets it be caught across shared objects that hide their symbols.
class __attribute__((visibility("default"))) Error : public std::runtime_error {
public:
    /// An error of these parts. Of the stage, the first 31 bytes are kept.
    Error(ErrorCode code, int error_number, std::string_view stage, const std::string& message)
        : std::runtime_error(message), code_(code), error_number_(error_number)
    {
        stage.copy(stage_, sizeof stage_ - 1);
    }

    /// What kind of failure it is.
    [[nodiscard]] ErrorCode code() const noexcept { return code_; }

    /// The `errno` of the system call that failed; 0 when none did. (`errno` itself is a macro.)
    [[nodiscard]] int error_number() const noexcept { return error_number_; }

    /// The same in the standard library's terms, to be compared with `std::errc`; no error when no system call failed.
    [[nodiscard]] std::error_code system_error() const noexcept { return {error_number_, std::generic_category()}; }

    /// Where it went wrong, a lower-case word that stays the same between versions, such as "argument", "workdir" or
    /// "exec"; <dsh.h> has the list. Lives as long as the error.
    [[nodiscard]] const char* stage() const noexcept { return stage_; }

private:
    ErrorCode code_;
    int error_number_;
    // Held in place, since an exception must be copied without throwing.
    char stage_[32] = {};
};

} // namespace dsh

#endif
