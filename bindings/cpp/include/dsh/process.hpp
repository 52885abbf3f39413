// A process in the background.
#ifndef DSH_PROCESS_HPP
#define DSH_PROCESS_HPP

#include "confinement.hpp"
#include "detail/call.hpp"
#include "detail/pack.hpp"
#include "duration.hpp"
#include "outcome.hpp"
#include "output.hpp"
#include "result.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsh {

/// What has become of a background process. Set once.
enum class ProcessStatus : std::uint32_t {
    /// It has not settled yet.
    running = DSH_PROCESS_RUNNING,
    /// It ended by itself, with whatever code.
    completed = DSH_PROCESS_COMPLETED,
    /// It was killed or cancelled, or died of a signal.
    killed = DSH_PROCESS_KILLED,
};

/// What is known of a background process at one moment.
struct ProcessInfo {
    /// What has become of it.
    ProcessStatus status = ProcessStatus::running;
    /// How it ended; its `exit` is Exit::none while the shell's end is not known.
    Outcome outcome;
    /// The library's number of the process, unique in its executor; also in events.
    std::uint64_t process_id = 0;
    /// The request's tag.
    std::uint64_t tag = 0;
    /// The shell's pid. Its number may belong to somebody else once the process has settled.
    int pid = 0;
    /// Whether nothing of the tree is alive any more.
    bool quiescent = false;
    /// Bytes of stdout (both streams, when they are merged) seen so far.
    std::uint64_t out_total = 0;
    /// Bytes of stderr seen so far.
    std::uint64_t err_total = 0;
    /// Bytes of input that the command took, or that were left in the pipe for it.
    std::uint64_t input_written = 0;
    /// How many descendants are still alive, see Process::survivors().
    std::size_t survivors = 0;
    /// How many held the output pipes when the drain limit passed, see Process::held_by().
    std::size_t held_by = 0;
};

/// A command in the background: the shell and all its descendants, from Executor::start().
///
/// The executor owns the process until nothing of it is alive. Destroying this object ends only its events: the process
/// goes on, and is ended with the executor. An object that is made by default holds no process.
class Process {
public:
    /// Holds no process.
    Process() noexcept = default;

    /// Takes over a process of the C interface, which this frees.
    static Process adopt(dsh_process_t* owned) noexcept { return Process(owned); }

    /// Whether this holds a process.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

#if DSH_EXCEPTIONS
    /// What is known of the process now. Any thread; does not block.
    [[nodiscard]] ProcessInfo info() const { return try_info().value(); }

    /// The library's number of the process, as in events. Any thread; does not block.
    [[nodiscard]] std::uint64_t id() const { return try_id().value(); }

    /// Takes what both streams got since the last call, as one text: new stdout, then, when there is new stderr,
    /// `[stderr]` on a line of its own and that. No byte is given twice. An incomplete UTF-8 sequence at the end waits
    /// for the next call. Any thread; does not block: a chunk without text means that there is nothing new.
    [[nodiscard]] Chunk read_output() const { return try_read_output().value(); }

    /// Copies bytes of one stream, from an absolute offset on, to a buffer. Consumes nothing, so that many readers may
    /// read the same bytes, also after the process has ended. An incomplete UTF-8 sequence at the end of the stream so
    /// far waits for a later call. Any thread; does not block: no bytes mean that there is nothing new.
    Reading read_stream(Stream stream, std::uint64_t offset, char* buffer, std::size_t capacity) const
    {
        return try_read_stream(stream, offset, buffer, capacity).value();
    }

    /// The same into an array, std::array, std::vector or std::string, as far as its size.
    template <class Buffer> Reading read_stream(Stream stream, std::uint64_t offset, Buffer& buffer) const
    {
        return try_read_stream(stream, offset, buffer).value();
    }

    /// Ends the whole tree: SIGTERM and SIGCONT, and after the grace SIGKILL to what is still alive, descendants that
    /// left their session included. What a command that has ended left behind is ended too.
    ///
    /// Gives true when there was still a command to be killed: once, and never after its own end. Any thread; does not
    /// wait for the end.
    bool kill() const { return try_kill().value(); }

    /// Waits until the process has settled: its exit is known, and its output is complete or the drain limit has
    /// passed. Blocks without limit. Any thread, any number at a time.
    void wait() const { try_wait().value(); }

    /// The same for so long at most: gives whether the process has settled by then. It goes on in any case. A time of
    /// zero or below only looks.
    [[nodiscard]] bool wait_for(Duration time) const { return try_wait_for(time).value(); }

    /// What the process gave, once it has settled; ErrorCode::timed_out before, and ErrorCode::sandbox_unavailable when
    /// its confinement broke, so that it did not run. Of a process that was started with `foreground` exactly what
    /// Executor::run() would have given; of any other what it has given so far. Any thread; does not block.
    [[nodiscard]] Result result() const { return try_result().value(); }

    /// Descendants that are still alive after the command's end. Any thread; does not block.
    [[nodiscard]] std::vector<Survivor> survivors() const { return try_survivors().value(); }

    /// The pids that held the output pipes when the drain limit passed, as far as they could be seen. Any thread; does
    /// not block.
    [[nodiscard]] std::vector<int> held_by() const { return try_held_by().value(); }

    /// The file that holds a whole stream, once it was too long for memory. Any thread; does not block.
    [[nodiscard]] std::optional<std::string> spill_path(Stream stream) const { return try_spill_path(stream).value(); }

    /// What is known of the command's confinement, final once the process has settled; empty when nobody has asked for
    /// any. Any thread; does not block.
    [[nodiscard]] std::optional<Confinement> sandbox() const { return try_sandbox().value(); }
#endif

    /// As info(), without exceptions.
    Expected<ProcessInfo> try_info() const
    {
        const auto c = detail::info(dsh_process_info, native_handle());
        if (!c)
            return c.error();
        ProcessInfo info;
        info.status = static_cast<ProcessStatus>(c->status);
        info.outcome = detail::outcome_of(c->outcome);
        info.process_id = c->process_id;
        info.tag = c->tag;
        info.pid = c->pid;
        info.quiescent = c->quiescent != 0;
        info.out_total = c->out_total;
        info.err_total = c->err_total;
        info.input_written = c->input_written;
        info.survivors = static_cast<std::size_t>(c->survivors_len);
        info.held_by = static_cast<std::size_t>(c->held_by_len);
        return info;
    }

    /// As id(), without exceptions.
    Expected<std::uint64_t> try_id() const
    {
        const auto c = detail::info(dsh_process_info, native_handle());
        if (!c)
            return c.error();
        return c->process_id;
    }

    /// As read_output(), without exceptions.
    Expected<Chunk> try_read_output() const
    {
        dsh_chunk_t* chunk = nullptr;
        if (auto called = detail::call(dsh_read_output, native_handle(), &chunk); !called)
            return called.error();
        return Chunk::adopt(chunk);
    }

    /// As read_stream(), without exceptions.
    Expected<Reading> try_read_stream(Stream stream, std::uint64_t offset, char* buffer, std::size_t capacity) const
    {
        dsh_reading_t c = DSH_READING_INIT;
        if (auto called = detail::call(dsh_read_stream, native_handle(), static_cast<dsh_stream_t>(stream), offset,
                                       static_cast<void*>(buffer), capacity, &c);
            !called)
            return called.error();
        Reading reading;
        reading.text = std::string_view(buffer, static_cast<std::size_t>(c.len));
        reading.start = c.start;
        reading.next = c.next;
        reading.missing = c.missing;
        reading.lossy = c.lossy != 0;
        reading.end = c.end != 0;
        return reading;
    }

    /// As read_stream(), without exceptions.
    template <class Buffer> Expected<Reading> try_read_stream(Stream stream, std::uint64_t offset, Buffer& buffer) const
    {
        return try_read_stream(stream, offset, std::data(buffer), std::size(buffer));
    }

    /// As kill(), without exceptions.
    Expected<bool> try_kill() const
    {
        std::uint32_t was_running = 0;
        if (auto called = detail::call(dsh_kill, native_handle(), &was_running); !called)
            return called.error();
        return was_running != 0;
    }

    /// As wait(), without exceptions.
    Expected<void> try_wait() const { return detail::call(dsh_wait, native_handle(), std::uint64_t{DSH_WAIT_FOREVER}); }

    /// As wait_for(), without exceptions.
    Expected<bool> try_wait_for(Duration time) const
    {
        const auto ms = detail::wait_ms("time", time);
        if (!ms)
            return ms.error();
        return detail::in_time(detail::call(dsh_wait, native_handle(), *ms));
    }

    /// As result(), without exceptions.
    Expected<Result> try_result() const
    {
        dsh_result_t* result = nullptr;
        if (auto called = detail::call(dsh_process_result, native_handle(), &result); !called)
            return called.error();
        return Result::adopt(result);
    }

    /// As survivors(), without exceptions.
    Expected<std::vector<Survivor>> try_survivors() const
    {
        const auto list = detail::list<dsh_survivor_t>([this](auto buffer, auto capacity, auto count) {
            return detail::call(dsh_process_survivors, native_handle(), buffer, capacity, count);
        });
        if (!list)
            return list.error();
        std::vector<Survivor> survivors;
        for (const dsh_survivor_t& survivor : *list)
            survivors.push_back(detail::survivor_of(survivor));
        return survivors;
    }

    /// As held_by(), without exceptions.
    Expected<std::vector<int>> try_held_by() const
    {
        return detail::list<int>([this](auto buffer, auto capacity, auto count) {
            return detail::call(dsh_process_held_by, native_handle(), buffer, capacity, count);
        });
    }

    /// As spill_path(), without exceptions.
    Expected<std::optional<std::string>> try_spill_path(Stream stream) const
    {
        const auto path = detail::list<char>([&](auto buffer, auto capacity, auto count) {
            return detail::call(dsh_process_spill_path, native_handle(), static_cast<dsh_stream_t>(stream), buffer,
                                capacity, count);
        });
        if (!path)
            return path.error();
        if (path->empty())
            return std::optional<std::string>();
        return std::optional<std::string>(path->data());
    }

    /// As sandbox(), without exceptions.
    Expected<std::optional<Confinement>> try_sandbox() const
    {
        return detail::confinement_of(dsh_process_sandbox, native_handle());
    }

    /// The handle of the C interface, which stays this object's; null when it holds no process.
    [[nodiscard]] const dsh_process_t* native_handle() const noexcept { return handle_.get(); }

private:
    explicit Process(dsh_process_t* owned) noexcept : handle_(owned) {}

    detail::Handle<dsh_process_t, dsh_process_free> handle_;
};

} // namespace dsh

#endif
