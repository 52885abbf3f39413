// How a command ended.
#ifndef DSH_OUTCOME_HPP
#define DSH_OUTCOME_HPP

#include <dsh.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace dsh {

/// How the shell ended: by a code or by a signal, never both, never one made up from the other.
enum class Exit : std::uint32_t {
    /// It has not ended yet.
    none = DSH_EXIT_NONE,
    /// It exited with a code.
    code = DSH_EXIT_CODE,
    /// A signal ended it.
    signal = DSH_EXIT_SIGNAL,
    /// It has ended, but the host took its status away (by ignoring SIGCHLD or reaping strangers) on a system that
    /// can't tell it again.
    unknown = DSH_EXIT_UNKNOWN,
};

/// Who stops a command.
enum class Stop : std::uint32_t {
    /// Nobody.
    none = DSH_STOP_NONE,
    /// The timeout passed.
    timeout = DSH_STOP_TIMEOUT,
    /// The cancel token was cancelled.
    cancel = DSH_STOP_CANCEL,
    /// The process was killed through its handle.
    kill = DSH_STOP_KILL,
    /// The executor was shut down.
    shutdown = DSH_STOP_SHUTDOWN,
    /// The command had ended by itself, and the request's policy was to end what it left behind.
    survivors = DSH_STOP_SURVIVORS,
};

/// How far a forced stop had to go.
enum class StopStage : std::uint32_t {
    /// Nothing was signalled.
    none = DSH_STOP_STAGE_NONE,
    /// SIGTERM (and SIGCONT) was enough.
    term = DSH_STOP_STAGE_TERM,
    /// SIGKILL was sent to something that was still alive after the grace.
    kill = DSH_STOP_STAGE_KILL,
};

/// How a command ended.
struct Outcome {
    /// How the shell ended.
    Exit exit = Exit::none;
    /// The exit code, 0 to 255, when it exited with one.
    std::optional<int> code;
    /// The number of the signal, when one ended it.
    std::optional<int> signal;
    /// Whether that signal had memory dumped.
    bool core_dumped = false;
    /// Whether the timeout was the first cause to cut the command short, whatever it then exited with.
    bool timed_out = false;
    /// Whether a cancellation, kill or shutdown was that cause. Never with `timed_out`.
    bool aborted = false;
    /// Whether something still held the output pipes when the drain limit had passed.
    bool pipes_held = false;
    /// The first cause that cut the command short while it ran.
    Stop cause = Stop::none;
    /// Who first ordered a stop, also of what was left behind after the command's own end.
    Stop stopped_by = Stop::none;
    /// How far that stop had to go.
    StopStage stage = StopStage::none;
    /// From the start until the shell's end.
    std::chrono::microseconds wall_time{0};
    /// CPU time in user mode, of the shell and the descendants that it waited for.
    std::chrono::microseconds user_time{0};
    /// The same in the kernel.
    std::chrono::microseconds system_time{0};
    /// Peak resident memory in bytes of the largest of them.
    std::uint64_t max_rss_bytes = 0;

    /// Whether the command ended by itself, with code 0.
    [[nodiscard]] bool success() const noexcept { return code == 0 && cause == Stop::none; }
};

/// A process that is still alive.
struct Survivor {
    /// Its pid.
    int pid = 0;
    /// When it started, in clock ticks since boot: with it, the pid can't be mistaken for a later process.
    std::uint64_t start_time = 0;
};

namespace detail {

inline Outcome outcome_of(const dsh_outcome_t& c) noexcept
{
    // Unsigned microseconds are never too many for the signed ones: those last for 292,000 years.
    const auto time = [](std::uint64_t us) { return std::chrono::microseconds(static_cast<std::int64_t>(us)); };
    Outcome outcome;
    outcome.exit = static_cast<Exit>(c.exit);
    if (c.exit == DSH_EXIT_CODE)
        outcome.code = c.code;
    if (c.exit == DSH_EXIT_SIGNAL)
        outcome.signal = c.signal;
    outcome.core_dumped = c.core_dumped != 0;
    outcome.timed_out = c.timed_out != 0;
    outcome.aborted = c.aborted != 0;
    outcome.pipes_held = c.pipes_held != 0;
    outcome.cause = static_cast<Stop>(c.cause);
    outcome.stopped_by = static_cast<Stop>(c.stopped_by);
    outcome.stage = static_cast<StopStage>(c.stage);
    outcome.wall_time = time(c.wall_us);
    outcome.user_time = time(c.user_us);
    outcome.system_time = time(c.system_us);
    outcome.max_rss_bytes = c.max_rss_bytes;
    return outcome;
}

inline Survivor survivor_of(const dsh_survivor_t& c) noexcept { return {c.pid, c.start_time}; }

} // namespace detail

} // namespace dsh

#endif
