// What a foreground run gave.
#ifndef DSH_RESULT_HPP
#define DSH_RESULT_HPP

#include "confinement.hpp"
#include "detail/record.hpp"
#include "duration.hpp"
#include "outcome.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace dsh {

/// One stream as it was kept. A view: lives as long as the result.
struct Captured {
    /// What was kept in memory: bytes that are not promised to be UTF-8.
    std::string_view text;
    /// Bytes that the command wrote.
    std::uint64_t total = 0;
    /// Bytes that were left out of `text`.
    std::uint64_t omitted = 0;
    /// Where in `text` they are missing: an offset, 0 when only the tail was kept.
    std::uint64_t omitted_at = 0;
    /// The file that holds the whole stream from its first byte, NUL-terminated. Null when memory was enough, or when
    /// `spill_error` is set.
    const char* spill_path = nullptr;
    /// Why there is no such file although memory was not enough, NUL-terminated; otherwise null.
    const char* spill_error = nullptr;
};

/// What a foreground run gave. Immutable; readable on any thread.
class Result {
public:
    /// Takes over a result of the C interface, which this frees.
    static Expected<Result> adopt(dsh_result_t* owned)
    {
        auto record = Record::of(owned);
        if (!record)
            return record.error();
        // Read now, so that it can be read in a forked child too.
        auto confinement = detail::confinement_of(dsh_result_sandbox, record->get());
        if (!confinement)
            return confinement.error();
        return Result(*std::move(record), *std::move(confinement));
    }

    /// How the command ended.
    [[nodiscard]] Outcome outcome() const noexcept { return detail::outcome_of(record_->outcome); }

    /// Its stdout (both streams, when they were merged).
    [[nodiscard]] Captured out() const& noexcept { return captured_of(record_->out); }
    Captured out() const&& = delete;

    /// Its stderr.
    [[nodiscard]] Captured err() const& noexcept { return captured_of(record_->err); }
    Captured err() const&& = delete;

    /// The pids that held the output pipes when the drain limit passed, as far as they could be seen.
    [[nodiscard]] std::vector<int> held_by() const
    {
        return {record_->held_by, record_->held_by + record_->held_by_len};
    }

    /// Descendants that were still alive.
    [[nodiscard]] std::vector<Survivor> survivors() const
    {
        std::vector<Survivor> survivors;
        for (std::size_t i = 0; i < record_->survivors_len; ++i)
            survivors.push_back(detail::survivor_of(record_->survivors[i]));
        return survivors;
    }

    /// Names of host variables that the command did not get because they look like credentials or are denied.
    [[nodiscard]] std::vector<std::string_view> scrubbed() const&
    {
        return {record_->scrubbed, record_->scrubbed + record_->scrubbed_len};
    }
    std::vector<std::string_view> scrubbed() const&& = delete;

    /// The effective timeout; zero of a background process, which has none.
    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept
    {
        return Duration(std::chrono::duration<std::uint64_t, std::milli>(record_->timeout_ms)).milliseconds();
    }

    /// Bytes of input that the command took, or that were left in the pipe for it.
    [[nodiscard]] std::uint64_t input_written() const noexcept { return record_->input_written; }

    /// What is known of the command's confinement; empty when nobody has asked for any.
    [[nodiscard]] std::optional<Confinement> sandbox() const
    {
        return confinement_ ? std::optional<Confinement>(*confinement_) : std::nullopt;
    }

    /// The library's number of the process, unique in its executor.
    [[nodiscard]] std::uint64_t process_id() const noexcept { return record_->process_id; }

    /// The handle of the C interface, which stays this object's; null after a move.
    [[nodiscard]] const dsh_result_t* native_handle() const noexcept { return record_.get(); }

private:
    using Record = detail::Record<dsh_result_t, dsh_result_info_t, dsh_result_free, dsh_result_info>;

    Result(Record record, std::optional<Confinement> confinement) : record_(std::move(record))
    {
        if (confinement)
            confinement_ = std::make_unique<const Confinement>(*std::move(confinement));
    }

    static Captured captured_of(const dsh_captured_t& c) noexcept
    {
        Captured captured;
        captured.text = std::string_view(static_cast<const char*>(c.data), c.len);
        captured.total = c.total;
        captured.omitted = c.omitted;
        captured.omitted_at = c.omitted_at;
        captured.spill_path = c.spill_path;
        captured.spill_error = c.spill_error;
        return captured;
    }

    Record record_;
    std::unique_ptr<const Confinement> confinement_;
};

} // namespace dsh

#endif
