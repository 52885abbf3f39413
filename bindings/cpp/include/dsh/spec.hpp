// What would run.
#ifndef DSH_SPEC_HPP
#define DSH_SPEC_HPP

#include "detail/record.hpp"
#include "duration.hpp"
#include "request.hpp"
#include "sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace dsh {

/// A request with every default and cap applied, from Executor::resolve(). Immutable; readable on any thread.
class Spec {
public:
    /// Takes over a spec of the C interface, which this frees.
    static Expected<Spec> adopt(dsh_spec_t* owned)
    {
        auto record = Record::of(owned);
        if (!record)
            return record.error();
        return Spec(*std::move(record));
    }

    /// The text for the shell's `-c`.
    [[nodiscard]] std::string_view command() const& noexcept { return {record_->command, record_->command_len}; }
    std::string_view command() const&& = delete;

    /// The absolute path of the shell; NUL-terminated.
    [[nodiscard]] const char* shell() const& noexcept { return record_->shell; }
    const char* shell() const&& = delete;

    /// The absolute working directory; NUL-terminated.
    [[nodiscard]] const char* workdir() const& noexcept { return record_->workdir; }
    const char* workdir() const&& = delete;

    /// Names of host variables that the command does not get because they look like credentials or are denied.
    [[nodiscard]] std::vector<std::string_view> scrubbed() const&
    {
        return {record_->scrubbed, record_->scrubbed + record_->scrubbed_len};
    }
    std::vector<std::string_view> scrubbed() const&& = delete;

    /// The effective timeout of a foreground run.
    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return time(record_->timeout_ms); }

    /// Bytes of stdout kept in memory by a foreground run.
    [[nodiscard]] std::uint64_t stdout_max_bytes() const noexcept { return record_->stdout_max_bytes; }

    /// Bytes of stderr, and of a background process's stdout, kept in memory.
    [[nodiscard]] std::uint64_t max_output_bytes() const noexcept { return record_->max_output_bytes; }

    /// Time from SIGTERM to SIGKILL.
    [[nodiscard]] std::chrono::milliseconds grace() const noexcept { return time(record_->grace_ms); }

    /// How long open pipes are waited for after the shell has exited.
    [[nodiscard]] std::chrono::milliseconds drain() const noexcept { return time(record_->drain_ms); }

    /// The request's tag.
    [[nodiscard]] std::uint64_t tag() const noexcept { return record_->tag; }

    /// Whether stderr goes through stdout's pipe.
    [[nodiscard]] bool merge_stderr() const noexcept { return (record_->flags & DSH_REQUEST_MERGE_STDERR) != 0; }

    /// Whether Executor::start() would start a foreground run.
    [[nodiscard]] bool foreground() const noexcept { return (record_->flags & DSH_REQUEST_FOREGROUND) != 0; }

    /// What happens to descendants that outlive the command.
    [[nodiscard]] Survivors survivors() const noexcept { return static_cast<Survivors>(record_->survivors); }

    /// The mode that it would be confined under; empty when nobody has asked for confinement.
    [[nodiscard]] std::optional<SandboxMode> sandbox_mode() const noexcept
    {
        if (record_->sandbox_mode == DSH_SANDBOX_DEFAULT)
            return std::nullopt;
        return static_cast<SandboxMode>(record_->sandbox_mode);
    }

    /// The handle of the C interface, which stays this object's; null after a move.
    [[nodiscard]] const dsh_spec_t* native_handle() const noexcept { return record_.get(); }

private:
    using Record = detail::Record<dsh_spec_t, dsh_spec_info_t, dsh_spec_free, dsh_spec_info>;

    explicit Spec(Record record) noexcept : record_(std::move(record)) {}

    static std::chrono::milliseconds time(std::uint64_t ms) noexcept
    {
        return Duration(std::chrono::duration<std::uint64_t, std::milli>(ms)).milliseconds();
    }

    Record record_;
};

} // namespace dsh

#endif
