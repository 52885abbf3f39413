// Processes in the background.
#include "check.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

// All that a process gave, once it has settled.
std::string output_of(const dsh::Process& process)
{
    process.wait();
    std::string text;
    for (;;) {
        const dsh::Chunk chunk = process.read_output();
        text += chunk.text();
        if (chunk.end())
            return text;
    }
}

// Adds what is new to what was read before.
std::string& read_more(const dsh::Process& process, std::string& text)
{
    const dsh::Chunk chunk = process.read_output();
    return text += chunk.text();
}

} // namespace

TEST("a process is started, read while it runs, and killed once")
{
    const dsh::Executor executor(check::quick());
    const dsh::Process process = executor.start(dsh::Request{"echo up; sleep 60"}.with_tag(7));
    std::string text;
    UNTIL(read_more(process, text) == "up\n");

    dsh::ProcessInfo info = process.info();
    CHECK(info.status == dsh::ProcessStatus::running);
    CHECK(info.outcome.exit == dsh::Exit::none && !info.outcome.code && !info.outcome.signal);
    EQUAL(info.tag, 7U);
    EQUAL(info.process_id, process.id());
    EQUAL(info.out_total, 3U);
    CHECK(info.pid > 1 && !info.quiescent);
    CHECK(!process.wait_for(0s));
    CHECK(!process.wait_for(-1s));
    EQUAL(ERROR_OF(process.result()).code(), dsh::ErrorCode::timed_out);

    CHECK(process.kill());
    CHECK(!process.kill());
    process.wait();
    info = process.info();
    CHECK(info.status == dsh::ProcessStatus::killed);
    CHECK(info.outcome.aborted && info.outcome.cause == dsh::Stop::kill);
    UNTIL(process.info().quiescent);
}

TEST("a process that ended by itself is completed, whatever its code, and can't be killed any more")
{
    const dsh::Executor executor;
    const dsh::Process process = executor.start("exit 3");
    CHECK(process.wait_for(std::chrono::hours::max()));
    CHECK(process.info().status == dsh::ProcessStatus::completed);
    CHECK(process.info().outcome.code == 3);
    CHECK(!process.kill());
}

TEST("a wait that is no number is refused")
{
    const dsh::Executor executor;
    const dsh::Process process = executor.start("true");
    const dsh::Error error =
        ERROR_OF(process.wait_for(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())));
    EQUAL(error.code(), dsh::ErrorCode::invalid);
    CHECK(check::has(error.what(), "time: is not a number"));
}

TEST("consuming reads give both streams as one text, and no byte twice")
{
    const dsh::Executor executor;
    const dsh::Process process = executor.start("echo out; echo err >&2");
    EQUAL(output_of(process), "out\n[stderr]\nerr\n");
    const dsh::Chunk chunk = process.read_output();
    CHECK(chunk.text().empty() && chunk.end() && !chunk.lossy());
    CHECK(chunk.spill_path(dsh::Stream::out) == nullptr);
}

TEST("consuming reads tell what has slid out of memory, and where the whole stream is")
{
    dsh::Settings settings;
    settings.max_output_bytes = 10;
    const dsh::Executor executor(settings);
    const dsh::Process process = executor.start("printf 0123456789abc; printf 0123456789abcde >&2");
    process.wait();
    const dsh::Chunk chunk = process.read_output();
    CHECK(chunk.lossy());
    EQUAL(chunk.missing(dsh::Stream::out), 3U);
    EQUAL(chunk.missing(dsh::Stream::err), 5U);
    EQUAL(chunk.text(), "3456789abc\n[stderr]\n56789abcde");
    const std::optional<std::string> out = process.spill_path(dsh::Stream::out);
    CHECK(out && chunk.spill_path(dsh::Stream::out) == *out);
    CHECK(process.spill_path(dsh::Stream::err) == std::string(chunk.spill_path(dsh::Stream::err)));
}

TEST("a stream that memory was enough for has no file")
{
    const dsh::Executor executor;
    const dsh::Process process = executor.start("echo");
    process.wait();
    CHECK(!process.spill_path(dsh::Stream::out));
}

TEST("many readers read the same bytes by offset, into any kind of buffer")
{
    const dsh::Executor executor;
    const dsh::Process process = executor.start("printf 0123456789; printf abc >&2");
    process.wait();
    char array[4];
    dsh::Reading reading = process.read_stream(dsh::Stream::out, 2, array);
    EQUAL(reading.text, "2345");
    EQUAL(reading.start, 2U);
    EQUAL(reading.next, 6U);
    CHECK(!reading.end && !reading.lossy);
    std::array<char, 100> standard_array{};
    reading = process.read_stream(dsh::Stream::out, reading.next, standard_array);
    EQUAL(reading.text, "6789");
    CHECK(reading.end);
    std::vector<char> vector(2);
    EQUAL(process.read_stream(dsh::Stream::err, 0, vector).text, "ab");
    std::string string(2, '\0');
    EQUAL(process.read_stream(dsh::Stream::err, 1, string).text, "bc");
    EQUAL(process.read_stream(dsh::Stream::err, 0, nullptr, 0).text, "");
    EQUAL(ERROR_OF(process.read_stream(static_cast<dsh::Stream>(9), 0, string)).code(), dsh::ErrorCode::invalid);
}

TEST("a read by offset tells what has slid out of memory")
{
    dsh::Settings settings;
    settings.max_output_bytes = 4;
    const dsh::Executor executor(settings);
    const dsh::Process process = executor.start("printf 0123456789");
    process.wait();
    std::string buffer(10, '\0');
    const dsh::Reading reading = process.read_stream(dsh::Stream::out, 1, buffer);
    EQUAL(reading.text, "6789");
    EQUAL(reading.start, 6U);
    EQUAL(reading.missing, 5U);
    CHECK(reading.lossy && reading.end);
}

TEST("a foreground run that nobody waits for gives what a run would have given")
{
    const dsh::Executor executor(check::quick());
    const dsh::Process process = executor.start(dsh::Request{"echo up; sleep 60"}.with_timeout(200ms).in_foreground());
    process.wait();
    const dsh::Result result = process.result();
    CHECK(result.outcome().timed_out);
    CHECK(result.timeout() == 200ms);
    EQUAL(result.out().text, "up\n");
    EQUAL(result.process_id(), process.id());
}

TEST("survivors and holders of the pipes are listed")
{
    const dsh::Executor executor(check::quick());
    const dsh::Process process = executor.start("for i in 1 2 3; do sleep 60 & echo $!; done");
    process.wait();
    const dsh::ProcessInfo info = process.info();
    CHECK(info.outcome.pipes_held && !info.quiescent);
    EQUAL(info.survivors, 3U);
    EQUAL(info.held_by, 3U);
    std::vector<int> pids;
    for (const dsh::Survivor& survivor : process.survivors())
        pids.push_back(survivor.pid);
    std::sort(pids.begin(), pids.end());
    std::vector<int> holders = process.held_by();
    std::sort(holders.begin(), holders.end());
    CHECK(pids == holders);
    for (const int pid : pids)
        CHECK(::kill(pid, 0) == 0);
    CHECK(!process.kill());
    UNTIL(process.info().quiescent);
    CHECK(process.survivors().empty());
}

TEST("a process whose handle is dropped goes on, and is ended with its executor")
{
    int pid = 0;
    {
        const dsh::Executor executor(check::quick());
        pid = executor.start("exec sleep 60").info().pid;
        CHECK(::kill(pid, 0) == 0);
        EQUAL(executor.stats().live, 1U);
    }
    CHECK(::kill(pid, 0) != 0);
}

TEST("a process can be read after its executor is gone")
{
    dsh::Process process;
    CHECK(!process);
    {
        const dsh::Executor executor(check::quick());
        process = executor.start("echo hello; sleep 60");
        char buffer[10];
        UNTIL(process.read_stream(dsh::Stream::out, 0, buffer).text == "hello\n");
    }
    CHECK(process);
    EQUAL(output_of(process), "hello\n");
    CHECK(process.info().outcome.cause == dsh::Stop::shutdown);
}

TEST("a process is killed, waited for and read by different threads at once")
{
    const dsh::Executor executor(check::quick());
    const dsh::Process process = executor.start("while :; do echo tick; done");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] { process.wait(); });
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&] {
            while (!process.read_output().end())
                std::this_thread::yield();
        });
    UNTIL(process.info().out_total > 10'000);
    CHECK(process.kill());
    for (std::thread& thread : threads)
        thread.join();
    CHECK(process.info().status == dsh::ProcessStatus::killed);
}

TEST("an object that holds no process says so")
{
    dsh::Process process = dsh::Executor(check::quick()).start("true");
    const dsh::Process moved = std::move(process);
    CHECK(moved && !process);
    EQUAL(ERROR_OF(process.info()).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(process.kill()).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(process.wait()).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(process.wait_for(1s)).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(process.read_output()).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(process.survivors()).code(), dsh::ErrorCode::null);
}
