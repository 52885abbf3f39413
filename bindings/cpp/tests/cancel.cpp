// Cancel tokens.
#include "check.hpp"

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

TEST("a token ends the commands that run with it, from another thread")
{
    const dsh::Executor executor(check::quick());
    const dsh::CancelToken token;
    CHECK(!token.cancelled());
    const dsh::Process process = executor.start(dsh::Request{"sleep 60"}.with_cancel(token));
    std::thread thread([&] {
        UNTIL(executor.stats().live == 2);
        token.cancel();
        token.cancel();
    });
    const dsh::Result result = executor.run(dsh::Request{"sleep 60"}.with_cancel(token));
    thread.join();
    CHECK(token.cancelled());
    CHECK(result.outcome().aborted && !result.outcome().timed_out);
    CHECK(result.outcome().cause == dsh::Stop::cancel);
    process.wait();
    CHECK(process.info().status == dsh::ProcessStatus::killed);
}

TEST("a token that was cancelled lets no command start, and one without it is not touched")
{
    const dsh::Executor executor;
    const dsh::CancelToken token;
    token.cancel();
    const dsh::Request request = dsh::Request{"true"}.with_cancel(token);
    EQUAL(ERROR_OF(executor.run(request)).code(), dsh::ErrorCode::cancelled);
    EQUAL(ERROR_OF(executor.start(request)).code(), dsh::ErrorCode::cancelled);
    CHECK(executor.run("true").outcome().success());
}

TEST("a token may be destroyed while commands run with it; they go on")
{
    const dsh::Executor executor(check::quick());
    const dsh::Process process = [&] {
        const dsh::CancelToken token;
        return executor.start(dsh::Request{"sleep 0.2; exit 5"}.with_cancel(token));
    }();
    process.wait();
    CHECK(process.info().outcome.code == 5);
}

TEST("a token that was moved from says so")
{
    dsh::CancelToken token;
    const dsh::CancelToken moved = std::move(token);
    CHECK(!moved.cancelled());
    EQUAL(ERROR_OF(token.cancel()).code(), dsh::ErrorCode::null);
    EQUAL(ERROR_OF(token.cancelled()).code(), dsh::ErrorCode::null);
}

TEST("in a storm of cancellations at any moment every command settles, and nothing is left")
{
    constexpr std::size_t count = 300;
    dsh::Settings settings = check::quick();
    settings.grace = 10s;
    const dsh::Executor executor(settings);
    const std::uint32_t seed = std::random_device()();
    std::cout << "        seed " << seed << '\n';
    std::mt19937 random(seed);
    std::vector<dsh::CancelToken> tokens(count);
    std::vector<dsh::Process> processes;
    const auto any = [&](std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
    };

    // Another thread runs commands in the foreground that are cancelled like the others.
    std::vector<dsh::CancelToken> runs(20);
    std::thread runner([&] {
        for (const dsh::CancelToken& token : runs) {
            const auto result = executor.try_run(dsh::Request{"sleep 60 & sleep 60"}.with_cancel(token));
            CHECK(result ? result->outcome().cause == dsh::Stop::cancel
                         : result.error().code() == dsh::ErrorCode::cancelled);
        }
    });
    const char* const commands[] = {"sleep 60", "sleep 60 & wait", "setsid sleep 60", "while :; do echo x; done",
                                    "true"};
    for (std::size_t i = 0; i < count; ++i) {
        processes.push_back(executor.start(dsh::Request{commands[any(5)]}.with_cancel(tokens[i])));
        if (any(3) != 0)
            tokens[any(i + 1)].cancel();
        if (any(10) == 0)
            processes[any(i + 1)].kill();
    }
    for (const dsh::CancelToken& token : tokens)
        token.cancel();
    for (const dsh::CancelToken& token : runs)
        token.cancel();
    runner.join();
    for (const dsh::Process& process : processes) {
        process.wait();
        const dsh::ProcessInfo info = process.info();
        CHECK(info.status != dsh::ProcessStatus::running);
        if (info.outcome.cause == dsh::Stop::none)
            CHECK(info.outcome.code == 0);
    }
    UNTIL(executor.stats().live == 0);
    for (const dsh::Process& process : processes)
        CHECK(process.info().quiescent && process.survivors().empty());
}
