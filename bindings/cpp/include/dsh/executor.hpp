// The executor.
#ifndef DSH_EXECUTOR_HPP
#define DSH_EXECUTOR_HPP

#include "detail/call.hpp"
#include "detail/pack.hpp"
#include "event.hpp"
#include "process.hpp"
#include "request.hpp"
#include "result.hpp"
#include "settings.hpp"
#include "spec.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dsh {

/// How children are created.
enum class SpawnPath : std::uint32_t {
    /// A clone that shares the host's memory until the shell is executed: the cost does not grow with the host.
    vfork = DSH_SPAWN_VFORK,
    /// A plain fork, where memory is not really shared by a clone (emulators) or pidfds are not there.
    fork = DSH_SPAWN_FORK,
    /// The spawn call of systems other than Linux.
    portable = DSH_SPAWN_PORTABLE,
};

/// What an executor is doing at one moment.
struct Stats {
    /// Processes of which something may be alive.
    std::uint64_t live = 0;
    /// Processes that have come and gone.
    std::uint64_t ended = 0;
    /// Bytes in spill files.
    std::uint64_t spill_bytes = 0;
    /// Threads that the executor runs: 2, and 0 after its shutdown.
    std::uint64_t threads = 0;
    /// How children are created.
    SpawnPath spawn_path = SpawnPath::vfork;
    /// The pid of the guard; 0 while there is none.
    int guard_pid = 0;
};

/// Runs commands, and owns what it runs until nothing of it is alive: budgets, two threads, every live process, the
/// spill directory and the guard. One is enough for a program.
///
/// Destroying it ends every process tree that it owns; blocks as shutdown() does. Processes and results stay readable.
class Executor {
public:
#if DSH_EXCEPTIONS
    /// An executor with all defaults. Starts two threads with all signals blocked, and removes spill directories that
    /// hosts which died have left.
    Executor() : Executor(try_make().value()) {}

    /// An executor with these budgets. Those that can't be used are refused with ErrorCode::invalid or
    /// ErrorCode::shell_missing; the message names the field.
    explicit Executor(const Settings& settings) : Executor(try_make(settings).value()) {}

    /// Runs a command in a fresh, non-interactive `bash -c` and waits for its result. Everything that a command can do,
    /// exits and timeouts included, is a result; an error means that it was not run: ErrorCode::sandbox_unavailable
    /// when nothing here can confine it as its policy says.
    ///
    /// Blocks until the command has settled: its exit is known, and its output is complete or the drain limit has
    /// passed. The timeout bounds that; CancelToken::cancel() and shutdown() from another thread end it. Any thread,
    /// any number at a time.
    Result run(const Request& request) const { return try_run(request).value(); }

    /// Runs a command on the executor's terms.
    Result run(std::string_view command) const { return try_run(command).value(); }

    /// Starts a command in the background and returns at once. No timeout applies, unless the request says
    /// `foreground`. The process is the executor's until nothing of it is alive, whether or not the handle is kept. Any
    /// thread; does not block, but for the first confined command of an executor, which tries the backends.
    Process start(const Request& request) const { return try_start(request).value(); }

    /// Starts a command on the executor's terms.
    Process start(std::string_view command) const { return try_start(command).value(); }

    /// Tells what would run, and starts nothing. Gives the errors that run() gives for its request, but not
    /// ErrorCode::cancelled; whether the working directory can be entered is found out only by running. Any thread;
    /// does not block.
    [[nodiscard]] Spec resolve(const Request& request) const { return try_resolve(request).value(); }

    /// The budgets in force, with every default filled in. Any thread; does not block.
    [[nodiscard]] Settings settings() const { return try_settings().value(); }

    /// Replaces all budgets. Commands that run keep theirs, the next one gets the new ones. Budgets that can't be used
    /// are refused, and the executor stays on its last good ones. To change only some, begin with settings(). Any
    /// thread; does not block but for the file system.
    void configure(const Settings& settings) const { try_configure(settings).value(); }

    /// Ends every process tree that the executor owns, and waits until they are gone, for the grace and one second at
    /// most. No command is started any more (ErrorCode::shutdown); handles of processes and results stay readable. Any
    /// number of calls, from any thread.
    ///
    /// Gives true when all is gone, and false when something is still being ended; the call may be repeated.
    bool shutdown() const { return try_shutdown().value(); }

    /// The same with a limit of one's own. A time of zero or below begins the end and hardly waits (for 1 ms).
    bool shutdown_for(Duration time) const { return try_shutdown_for(time).value(); }

    /// What the executor is doing now. Any thread; does not block.
    [[nodiscard]] Stats stats() const { return try_stats().value(); }

    /// A descriptor that is readable while events wait, for poll loops: the read end of a non-blocking, close-on-exec
    /// pipe. It stays the executor's: don't read from it and don't close it. Events are kept from the first call on.
    /// Any thread; does not block.
    int event_fd() const { return try_event_fd().value(); }

    /// Takes the next event that waits, if any. When the descriptor was readable, call it until there is none.
    /// Destroying the handle of a process takes back what waits for it. Any thread; does not block.
    [[nodiscard]] std::optional<Event> next_event() const { return try_next_event().value(); }

    /// Has `wake()` called whenever events begin to wait, in place of the descriptor or beside it: for hosts that are
    /// woken by a call. Replaces what was set before. Events are kept from the first call on.
    ///
    /// It is called on a thread of the library, with all signals blocked, now and then on two at a time; and once
    /// during this call, on this thread, when events wait already. It must return soon, must not throw (that ends the
    /// program), and may call next_event() and nothing else of the library. When it does not take the events itself,
    /// take them until none is left: it is called again only when the first event after that comes.
    ///
    /// It is destroyed once it was replaced or the executor is gone, and no call of it is under way; on the thread of
    /// that call or on one of the library. Any thread; does not block.
    template <class Wake> void set_wake(Wake wake) const { try_set_wake(std::move(wake)).value(); }

    /// Ends the calls of what set_wake() has set. Any thread; does not block.
    void clear_wake() const { try_clear_wake().value(); }
#endif

    /// Makes an executor, without exceptions.
    static Expected<Executor> try_make(const Settings& settings = {})
    {
        const detail::PackedSettings packed(settings);
        if (packed.error())
            return *packed.error();
        dsh_executor_t* executor = nullptr;
        if (auto called = detail::call(dsh_executor_new, packed.get(), &executor); !called)
            return called.error();
        return Executor(executor);
    }

    /// As run(), without exceptions.
    Expected<Result> try_run(const Request& request) const
    {
        const detail::PackedRequest packed(request);
        if (packed.error())
            return *packed.error();
        dsh_result_t* result = nullptr;
        if (auto called = detail::call(dsh_run, native_handle(), packed.get(), &result); !called)
            return called.error();
        return Result::adopt(result);
    }

    /// As run(), without exceptions.
    Expected<Result> try_run(std::string_view command) const { return try_run(Request{std::string(command)}); }

    /// As start(), without exceptions.
    Expected<Process> try_start(const Request& request) const
    {
        const detail::PackedRequest packed(request);
        if (packed.error())
            return *packed.error();
        dsh_process_t* process = nullptr;
        if (auto called = detail::call(dsh_start, native_handle(), packed.get(), &process); !called)
            return called.error();
        return Process::adopt(process);
    }

    /// As start(), without exceptions.
    Expected<Process> try_start(std::string_view command) const { return try_start(Request{std::string(command)}); }

    /// As resolve(), without exceptions.
    Expected<Spec> try_resolve(const Request& request) const
    {
        const detail::PackedRequest packed(request);
        if (packed.error())
            return *packed.error();
        dsh_spec_t* spec = nullptr;
        if (auto called = detail::call(dsh_resolve, native_handle(), packed.get(), &spec); !called)
            return called.error();
        return Spec::adopt(spec);
    }

    /// As settings(), without exceptions.
    Expected<Settings> try_settings() const
    {
        dsh_settings_t* given = nullptr;
        if (auto called = detail::call(dsh_executor_config, native_handle(), &given); !called)
            return called.error();
        const detail::Handle<dsh_settings_t, dsh_settings_free> settings(given);
        const auto config = detail::info<dsh_config_t, dsh_settings_t>(dsh_settings_info, given);
        if (!config)
            return config.error();
        return detail::settings_of(*config);
    }

    /// As configure(), without exceptions.
    Expected<void> try_configure(const Settings& settings) const
    {
        const detail::PackedSettings packed(settings);
        if (packed.error())
            return *packed.error();
        return detail::call(dsh_executor_configure, native_handle(), packed.get());
    }

    /// As shutdown(), without exceptions.
    Expected<bool> try_shutdown() const
    {
        return detail::in_time(detail::call(dsh_executor_shutdown, native_handle(), std::uint64_t{0}));
    }

    /// As shutdown_for(), without exceptions.
    Expected<bool> try_shutdown_for(Duration time) const
    {
        const auto ms = detail::wait_ms("time", time);
        if (!ms)
            return ms.error();
        // 0 would be the default.
        const std::uint64_t at_least_1 = std::max<std::uint64_t>(*ms, 1);
        return detail::in_time(detail::call(dsh_executor_shutdown, native_handle(), at_least_1));
    }

    /// As stats(), without exceptions.
    Expected<Stats> try_stats() const
    {
        const auto c = detail::info(dsh_executor_stats, native_handle());
        if (!c)
            return c.error();
        Stats stats;
        stats.live = c->live;
        stats.ended = c->ended;
        stats.spill_bytes = c->spill_bytes;
        stats.threads = c->threads;
        stats.spawn_path = static_cast<SpawnPath>(c->spawn_path);
        stats.guard_pid = c->guard_pid;
        return stats;
    }

    /// As event_fd(), without exceptions.
    Expected<int> try_event_fd() const
    {
        std::int32_t fd = -1;
        if (auto called = detail::call(dsh_executor_event_fd, native_handle(), &fd); !called)
            return called.error();
        return fd;
    }

    /// As next_event(), without exceptions.
    Expected<std::optional<Event>> try_next_event() const
    {
        const auto c = detail::info(dsh_next_event, native_handle());
        if (!c)
            return c.error();
        if (c->kind == DSH_EVENT_NONE)
            return std::optional<Event>();
        return std::optional<Event>({static_cast<EventKind>(c->kind), c->process_id, c->tag});
    }

    /// As set_wake(), without exceptions.
    template <class Wake> Expected<void> try_set_wake(Wake wake) const
    {
        auto owned = std::make_unique<Wake>(std::move(wake));
        const dsh_wake_t call = [](void* data) noexcept { (*static_cast<Wake*>(data))(); };
        const dsh_destroy_t destroy = [](void* data) noexcept { delete static_cast<Wake*>(data); };
        // Given away in any case: the library destroys it also when the call fails.
        return detail::call(dsh_executor_wake, native_handle(), call, static_cast<void*>(owned.release()), destroy);
    }

    /// As clear_wake(), without exceptions.
    Expected<void> try_clear_wake() const
    {
        return detail::call(dsh_executor_wake, native_handle(), dsh_wake_t{}, static_cast<void*>(nullptr),
                            dsh_destroy_t{});
    }

    /// Whether this holds an executor: not after a move.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// The handle of the C interface, which stays this object's; null after a move.
    [[nodiscard]] const dsh_executor_t* native_handle() const noexcept { return handle_.get(); }

private:
    explicit Executor(dsh_executor_t* owned) noexcept : handle_(owned) {}

    detail::Handle<dsh_executor_t, dsh_executor_free> handle_;
};

} // namespace dsh

#endif
