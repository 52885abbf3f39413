// What the library's threads have to tell the thread of the event loop.
#pragma once

#include <dsh.h>
#include <node_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace dsh_node {

// One per environment. The library's threads take events out of its queues at once, and only those that somebody waits
// for wake the event loop: a command's output does not, unless it is being iterated over.
//
// Every process has a key here, which is the tag of its request, so that its events find it even when they come before
// dsh_start() has returned.
class Inbox {
  public:
    // A job for the thread of the event loop; NULL when there is no event loop any more.
    using Job = std::function<void(napi_env)>;

    // `ring` is called on any thread, with the inbox locked, when there is something to take.
    void open(std::function<void()> ring);

    // Nothing rings any more once this has returned.
    void close();

    // A new key, of which these kinds of events are waited for: bits `1 << DSH_EVENT_...`.
    uint64_t enter(uint32_t wanted);

    // Also waits for these kinds. What happened before is not told: want first, look then.
    void want(uint64_t key, uint32_t kinds);

    // Forgets a key and what waits for it.
    void leave(uint64_t key);

    // Library threads: takes all events of this executor.
    void collect(const dsh_executor_t *executor);

    // Any thread: has a job done on the thread of the event loop. Gives false, and does not keep it, once closed.
    bool post(Job job);

    // Writes pairs of key and kinds, at most `capacity` of them, and gives their number. Each kind is told once, and no
    // longer waited for then.
    size_t take(double *pairs, size_t capacity);

    // Takes the jobs.
    std::vector<Job> take_jobs();

  private:
    struct Entry {
        uint32_t wanted = 0;
        uint32_t pending = 0;
    };

    void ring();

    std::mutex mutex_;
    std::function<void()> ring_;
    bool rung_ = false;
    uint64_t next_key_ = 1;
    std::unordered_map<uint64_t, Entry> entries_;
    std::vector<uint64_t> ready_;
    std::vector<Job> jobs_;
};

} // namespace dsh_node
