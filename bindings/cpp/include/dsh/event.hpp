// Events, for hosts with an event loop.
#ifndef DSH_EVENT_HPP
#define DSH_EVENT_HPP

#include <dsh.h>

#include <cstdint>

namespace dsh {

/// What has happened to a background process. What it announces can be read when the event is there.
enum class EventKind : std::uint32_t {
    /// There is new output, or a stream has ended.
    output = DSH_EVENT_OUTPUT,
    /// The shell has exited.
    exit = DSH_EVENT_EXIT,
    /// The process has settled: its exit and its output are final.
    settled = DSH_EVENT_SETTLED,
    /// Nothing of the tree is alive any more.
    quiescent = DSH_EVENT_QUIESCENT,
};

/// A hint that something has happened, from Executor::next_event(). At most one waits per process and kind, so none is
/// ever dropped.
struct Event {
    /// What has happened.
    EventKind kind;
    /// The process, see Process::id().
    std::uint64_t process_id;
    /// The request's tag.
    std::uint64_t tag;
};

} // namespace dsh

#endif
