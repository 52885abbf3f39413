#include "threads.h"

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

namespace dsh_node {

void Threads::run(std::function<void()> work)
{
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++running_;
    }
    // By value: the thread must own its work, and this call may need it too.
    const auto body = [this, work = std::move(work)] {
        work();
        const std::lock_guard<std::mutex> lock(mutex_);
        --running_;
        idle_.notify_all();
    };
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::thread(body).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    } catch (const std::system_error &) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        body();
    }
}

void Threads::join()
{
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [this] { return running_ == 0; });
}

} // namespace dsh_node
