// Threads for the few calls of the library that block: shutting an executor down and freeing it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>

namespace dsh_node {

class Threads {
  public:
    // Runs `work` on a thread of its own with all signals blocked; on this one when the system refuses a thread.
    void run(std::function<void()> work);

    // Waits until all that was run has ended.
    void join();

  private:
    std::mutex mutex_;
    std::condition_variable idle_;
    size_t running_ = 0;
};

} // namespace dsh_node
