// Events, for hosts with an event loop.
#include "check.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

using namespace std::chrono_literals;

namespace {

bool readable(int fd, int timeout_ms)
{
    pollfd wanted{fd, POLLIN, 0};
    return poll(&wanted, 1, timeout_ms) == 1;
}

// A fifo that is held open for writing, in a folder of its own.
class Gate {
public:
    Gate()
    {
        CHECK(mkdtemp(folder_.data()) != nullptr);
        CHECK(mkfifo(path().c_str(), 0600) == 0);
        writer_ = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
        CHECK(writer_ >= 0);
    }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    ~Gate()
    {
        open();
        unlink(path().c_str());
        rmdir(folder_.c_str());
    }
    std::string path() const { return folder_ + "/gate"; }
    void open()
    {
        if (writer_ >= 0)
            close(std::exchange(writer_, -1));
    }

private:
    std::string folder_ = "/tmp/dsh-gate-XXXXXX";
    int writer_ = -1;
};

// Waits for the next event as a loop would; a hang ends after a minute.
dsh::Event next(const dsh::Executor& executor)
{
    for (;;) {
        if (const auto event = executor.next_event())
            return *event;
        CHECK(readable(executor.event_fd(), 60'000));
    }
}

} // namespace

TEST("the descriptor is readable while events wait, and closed on exec")
{
    const dsh::Executor executor;
    const int fd = executor.event_fd();
    EQUAL(fd, executor.event_fd());
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK(!readable(fd, 0));
    CHECK(!executor.next_event());
    const dsh::Process process = executor.start("true");
    CHECK(readable(fd, 60'000));
    while (next(executor).kind != dsh::EventKind::quiescent) {
    }
    CHECK(!readable(fd, 0));
}

TEST("a process announces its output, its exit, that it settled, and that nothing of it is left")
{
    const dsh::Executor executor;
    executor.event_fd();
    const dsh::Process process = executor.start(dsh::Request{"echo up"}.with_tag(42));
    std::set<dsh::EventKind> seen;
    while (seen.count(dsh::EventKind::quiescent) == 0) {
        const dsh::Event event = next(executor);
        EQUAL(event.process_id, process.id());
        EQUAL(event.tag, 42U);
        if (event.kind == dsh::EventKind::settled)
            CHECK(process.info().outcome.code == 0);
        seen.insert(event.kind);
    }
    EQUAL(seen.size(), 4U);
}

TEST("500 processes at once are run to their ends by one thread, each with its whole output")
{
    constexpr std::uint64_t count = 500;
    struct Job {
        dsh::Process process;
        std::string output;
        bool waits = false;
    };
    const std::size_t threads = check::threads();
    dsh::Settings settings = check::quick();
    settings.drain = 30s;
    const dsh::Executor executor(settings);
    executor.event_fd();

    // Each command waits at the gate, so that all are there at once; the gate opens when its only writer goes.
    Gate gate;
    std::map<std::uint64_t, Job> jobs;
    for (std::uint64_t tag = 0; tag < count; ++tag) {
        dsh::Request request{"exec 3<\"$GATE\"; echo $$; read -r -u 3; printf '%1000d' \"$(cat)\"; echo end"};
        request.with_input(std::to_string(tag)).with_env("GATE", gate.path()).with_tag(tag);
        jobs[tag].process = executor.start(request);
    }
    std::uint64_t waiting = 0, settled = 0;
    while (settled < count) {
        const dsh::Event event = next(executor);
        Job& job = jobs.at(event.tag);
        if (event.kind != dsh::EventKind::output && event.kind != dsh::EventKind::settled)
            continue;
        const dsh::Chunk chunk = job.process.read_output();
        CHECK(!chunk.lossy());
        job.output += chunk.text();
        if (!job.waits && job.output.find('\n') != std::string::npos) {
            job.waits = true;
            if (++waiting == count) {
                EQUAL(executor.stats().live, count);
                EQUAL(executor.stats().threads, 2U);
                EQUAL(check::threads(), threads + 2);
                gate.open();
            }
        }
        if (event.kind == dsh::EventKind::settled) {
            const dsh::ProcessInfo info = job.process.info();
            const std::string number = std::to_string(event.tag);
            EQUAL(job.output,
                  std::to_string(info.pid) + '\n' + std::string(1000 - number.size(), ' ') + number + "end\n");
            CHECK(info.outcome.success());
            job.process = {};
            ++settled;
        }
    }
    UNTIL(executor.stats().live == 0);
    EQUAL(executor.stats().ended, count);
}

TEST("the events of a process end with its handle")
{
    const dsh::Executor executor(check::quick());
    executor.event_fd();
    {
        const dsh::Process dropped = executor.start("echo up; sleep 60");
        CHECK(next(executor).kind == dsh::EventKind::output);
        dropped.kill();
    }
    UNTIL(executor.stats().live == 0);
    const dsh::Process process = executor.start(dsh::Request{"true"}.with_tag(1));
    EQUAL(next(executor).tag, 1U);
}

TEST("a host may be woken by a call in place of a descriptor")
{
    std::mutex lock;
    std::condition_variable rung;
    bool ringing = false;
    const dsh::Executor executor(check::quick());
    executor.set_wake([&] {
        const std::lock_guard<std::mutex> guard(lock);
        ringing = true;
        rung.notify_one();
    });
    const dsh::Process process = executor.start("echo up");
    std::set<dsh::EventKind> seen;
    while (seen.count(dsh::EventKind::quiescent) == 0) {
        if (const auto event = executor.next_event()) {
            seen.insert(event->kind);
            continue;
        }
        std::unique_lock<std::mutex> guard(lock);
        CHECK(rung.wait_for(guard, 60s, [&] { return ringing; }));
        ringing = false;
    }
    EQUAL(seen.size(), 4U);
    executor.clear_wake();
}

TEST("what is woken is destroyed once, when it is replaced, when the executor ends, and when it could not be set")
{
    struct Bell {
        std::shared_ptr<int> held;
        void operator()() const {}
    };
    const auto held = std::make_shared<int>(0);
    {
        dsh::Executor executor;
        executor.set_wake(Bell{held});
        EQUAL(held.use_count(), 2);
        executor.set_wake(Bell{held});
        UNTIL(held.use_count() == 2);
        executor.clear_wake();
        UNTIL(held.use_count() == 1);
        executor.set_wake(Bell{held});
        const dsh::Executor moved = std::move(executor);
        EQUAL(held.use_count(), 2);
        EQUAL(ERROR_OF(executor.set_wake(Bell{held})).code(), dsh::ErrorCode::null);
        EQUAL(held.use_count(), 2);
    }
    UNTIL(held.use_count() == 1);
}

TEST("what is woken may be an object that can only be moved, and take the events itself")
{
    std::atomic<int> quiescent{0};
    dsh::Executor executor(check::quick());
    executor.set_wake([&executor, &quiescent, owned = std::make_unique<int>(1)] {
        while (const auto event = executor.next_event())
            if (event->kind == dsh::EventKind::quiescent)
                quiescent += *owned;
    });
    const dsh::Process one = executor.start("true"), other = executor.start("true");
    UNTIL(quiescent == 2);
}
