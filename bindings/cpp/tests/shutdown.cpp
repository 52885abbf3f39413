// The end of an executor.
#include "check.hpp"

#include <chrono>
#include <csignal>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

TEST("a shutdown ends what runs, in the background and in the foreground, and nothing starts any more")
{
    const dsh::Executor executor(check::quick());
    const dsh::Process process = executor.start("echo up; sleep 60");
    dsh::Outcome outcome;
    std::thread runner([&] { outcome = executor.run("sleep 60").outcome(); });
    UNTIL(executor.stats().live == 2);
    char buffer[10];
    UNTIL(process.read_stream(dsh::Stream::out, 0, buffer).text == "up\n");

    CHECK(executor.shutdown());
    runner.join();
    CHECK(outcome.aborted && outcome.cause == dsh::Stop::shutdown);
    CHECK(process.wait_for(0s));
    CHECK(process.info().outcome.cause == dsh::Stop::shutdown && process.info().quiescent);
    const dsh::Chunk chunk = process.read_output();
    EQUAL(chunk.text(), "up\n");
    EQUAL(executor.stats().live, 0U);
    EQUAL(executor.stats().threads, 0U);
    EQUAL(ERROR_OF(executor.run("true")).code(), dsh::ErrorCode::shutdown);
    EQUAL(ERROR_OF(executor.start("true")).code(), dsh::ErrorCode::shutdown);
}

TEST("a shutdown may be asked for again, and by many threads")
{
    const dsh::Executor executor(check::quick());
    executor.start("trap '' TERM; sleep 60");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] { executor.shutdown_for(1min); });
    for (std::thread& thread : threads)
        thread.join();
    CHECK(executor.shutdown());
    EQUAL(executor.stats().live, 0U);
}

TEST("a shutdown without time only begins the end")
{
    dsh::Settings settings = check::quick();
    settings.grace = 30s;
    const dsh::Executor executor(settings);
    const dsh::Process process =
        executor.start("trap 'echo bye; sleep 0.3; exit 0' TERM; echo up; while :; do sleep 0.05; done 2>/dev/null");
    char buffer[100];
    UNTIL(process.read_stream(dsh::Stream::out, 0, buffer).text == "up\n");
    CHECK(!executor.shutdown_for(0s));
    CHECK(executor.shutdown_for(1min));
    CHECK(process.info().outcome.code == 0);
    EQUAL(process.read_stream(dsh::Stream::out, 0, buffer).text, "up\nbye\n");
    const auto nan = std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN());
    EQUAL(ERROR_OF(executor.shutdown_for(nan)).code(), dsh::ErrorCode::invalid);
}

TEST("an executor that another is assigned to ends what it ran")
{
    dsh::Executor executor(check::quick());
    const int pid = executor.start("exec sleep 60").info().pid;
    executor = dsh::Executor();
    CHECK(::kill(pid, 0) != 0);
    CHECK(executor.run("true").outcome().success());
}

TEST("an executor that was moved from says so")
{
    dsh::Executor executor;
    const dsh::Executor moved = std::move(executor);
    CHECK(moved && !executor);
    CHECK(moved.run("true").outcome().success());
    EQUAL(ERROR_OF(executor.run("true")).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(executor.settings()).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(executor.shutdown()).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(executor.event_fd()).code(), dsh::ErrorCode::null);
}

TEST("results outlive their executor")
{
    const dsh::Result result = dsh::Executor().run("echo hello");
    EQUAL(result.out().text, "hello\n");
}
