#include "inbox.h"

#include <algorithm>
#include <utility>

namespace dsh_node {

void Inbox::open(std::function<void()> ring)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    ring_ = std::move(ring);
}

void Inbox::close()
{
    std::vector<Job> jobs;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        ring_ = nullptr;
        jobs.swap(jobs_);
    }
    for (const Job &job : jobs)
        job(nullptr);
}

uint64_t Inbox::enter(uint32_t wanted)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t key = next_key_++;
    entries_[key].wanted = wanted;
    return key;
}

void Inbox::want(uint64_t key, uint32_t kinds)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_[key].wanted |= kinds;
}

void Inbox::leave(uint64_t key)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end())
        return;
    if (found->second.pending != 0)
        ready_.erase(std::remove(ready_.begin(), ready_.end(), key), ready_.end());
    entries_.erase(found);
}

void Inbox::collect(const dsh_executor_t *executor)
{
    // Locked while events are taken, so that none is on its way here once leave() has returned.
    const std::lock_guard<std::mutex> lock(mutex_);
    dsh_event_t event = DSH_EVENT_INIT;
    while (dsh_next_event(executor, &event, nullptr) == DSH_OK && event.kind != DSH_EVENT_NONE) {
        const auto found = entries_.find(event.tag);
        if (found == entries_.end())
            continue;
        Entry &entry = found->second;
        const uint32_t kind = entry.wanted & (1u << event.kind);
        if (kind == 0)
            continue;
        if (entry.pending == 0)
            ready_.push_back(event.tag);
        entry.wanted &= ~kind;
        entry.pending |= kind;
    }
    if (!ready_.empty())
        ring();
}

bool Inbox::post(Job job)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ring_)
        return false;
    jobs_.push_back(std::move(job));
    ring();
    return true;
}

size_t Inbox::take(double *pairs, size_t capacity)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t count = std::min(capacity, ready_.size());
    for (size_t i = 0; i < count; ++i) {
        Entry &entry = entries_[ready_[i]];
        pairs[2 * i] = static_cast<double>(ready_[i]);
        pairs[2 * i + 1] = entry.pending;
        entry.pending = 0;
    }
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
    rung_ = false;
    if (!ready_.empty())
        ring();
    return count;
}

std::vector<Inbox::Job> Inbox::take_jobs()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(jobs_, {});
}

// With the lock held. One ring is enough for all that comes until it is answered.
void Inbox::ring()
{
    if (rung_ || !ring_)
        return;
    rung_ = true;
    ring_();
}

} // namespace dsh_node
