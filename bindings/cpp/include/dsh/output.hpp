// Output of a process in the background.
#ifndef DSH_OUTPUT_HPP
#define DSH_OUTPUT_HPP

#include "detail/record.hpp"

#include <dsh.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace dsh {

/// One of the two streams of a process.
enum class Stream : std::uint32_t {
    /// Standard output (and standard error, when they are merged).
    out = DSH_STDOUT,
    /// Standard error.
    err = DSH_STDERR,
};

/// What one consuming read gave, from Process::read_output(). Immutable; readable on any thread.
class Chunk {
public:
    /// Takes over a chunk of the C interface, which this frees.
    static Expected<Chunk> adopt(dsh_chunk_t* owned)
    {
        auto record = Record::of(owned);
        if (!record)
            return record.error();
        return Chunk(*std::move(record));
    }

    /// The text: bytes that are not promised to be UTF-8. Empty when there was nothing new.
    [[nodiscard]] std::string_view text() const& noexcept
    {
        return {static_cast<const char*>(record_->data), record_->len};
    }
    std::string_view text() const&& = delete;

    /// Whether both streams have ended and everything has been given.
    [[nodiscard]] bool end() const noexcept { return record_->end != 0; }

    /// Whether anything had slid out of memory before this read, and is not in it.
    [[nodiscard]] bool lossy() const noexcept { return record_->lossy != 0; }

    /// Bytes of one stream that are missing for that reason.
    [[nodiscard]] std::uint64_t missing(Stream stream) const noexcept
    {
        return stream == Stream::err ? record_->err_missing : record_->out_missing;
    }

    /// The file that holds a whole stream, NUL-terminated; null when there is none.
    [[nodiscard]] const char* spill_path(Stream stream) const& noexcept
    {
        return stream == Stream::err ? record_->err_spill_path : record_->out_spill_path;
    }
    const char* spill_path(Stream stream) const&& = delete;

    /// The handle of the C interface, which stays this object's; null after a move.
    [[nodiscard]] const dsh_chunk_t* native_handle() const noexcept { return record_.get(); }

private:
    using Record = detail::Record<dsh_chunk_t, dsh_chunk_info_t, dsh_chunk_free, dsh_chunk_info>;

    explicit Chunk(Record record) noexcept : record_(std::move(record)) {}

    Record record_;
};

/// What one read by offset gave, from Process::read_stream().
struct Reading {
    /// The bytes, in the caller's buffer. Empty when there was nothing new.
    std::string_view text;
    /// The offset of the first of them; above the one that was asked for when the read is lossy.
    std::uint64_t start = 0;
    /// The offset to ask for next.
    std::uint64_t next = 0;
    /// Bytes between the offset that was asked for and `start`, which had slid out of memory. The whole stream may be
    /// in a file, see Process::spill_path().
    std::uint64_t missing = 0;
    /// Whether anything is missing.
    bool lossy = false;
    /// Whether the stream has ended and this read reached its end.
    bool end = false;
};

} // namespace dsh

#endif
