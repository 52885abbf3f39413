// What a caller asks.
#include "check.hpp"

#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>

using namespace std::chrono_literals;

namespace {

// The error of a request, which never came to a command: no process was counted.
dsh::Error refusal(const dsh::Request& request)
{
    const dsh::Executor executor;
    const dsh::Error error = ERROR_OF(executor.run(request));
    EQUAL(ERROR_OF(executor.start(request)).code(), error.code());
    EQUAL(ERROR_OF(executor.resolve(request)).code(), error.code());
    EQUAL(executor.stats().live + executor.stats().ended, 0U);
    EQUAL(std::string(error.stage()), "argument");
    return error;
}

} // namespace

TEST("a request with every term arrives as it was given")
{
    const dsh::Executor executor;
    const dsh::Request request = dsh::Request{"echo \"$A$B$DSH_C\"; cat"}
                                     .with_workdir("/usr")
                                     .with_input("input")
                                     .with_env("A", "1")
                                     .with_env("B", "")
                                     .without_env("HOME")
                                     .with_dsh_env("DSH_C", "3")
                                     .with_timeout(7s)
                                     .with_stdout_max_bytes(1000)
                                     .with_merged_stderr()
                                     .in_foreground()
                                     .with_survivors(dsh::Survivors::kill)
                                     .with_tag(9);
    const dsh::Spec spec = executor.resolve(request);
    EQUAL(spec.command(), request.command);
    EQUAL(std::string(spec.workdir()), "/usr");
    EQUAL(spec.shell()[0], '/');
    CHECK(spec.timeout() == 7s);
    EQUAL(spec.stdout_max_bytes(), 1000U);
    EQUAL(spec.max_output_bytes(), 64'000U);
    CHECK(spec.grace() == 3s && spec.drain() == 3s);
    EQUAL(spec.tag(), 9U);
    CHECK(spec.merge_stderr() && spec.foreground());
    CHECK(spec.survivors() == dsh::Survivors::kill);
    EQUAL(executor.stats().ended, 0U);

    const dsh::Result result = executor.run(request);
    EQUAL(result.out().text, "13\ninput");
    EQUAL(result.input_written(), 5U);
    CHECK(result.timeout() == 7s);
}

TEST("a request without terms has the executor's")
{
    dsh::Settings settings = check::quick();
    settings.cwd = "/usr";
    settings.timeout = 9s;
    const dsh::Executor executor(settings);
    const dsh::Spec spec = executor.resolve(dsh::Request{"true"});
    EQUAL(std::string(spec.workdir()), "/usr");
    CHECK(spec.timeout() == 9s);
    CHECK(!spec.merge_stderr() && !spec.foreground());
    CHECK(spec.survivors() == dsh::Survivors::keep);
}

#if __cplusplus > 201703L
TEST("a request can be written with the names of its terms")
{
    const dsh::Executor executor;
    const dsh::Result plain = executor.run({.command = "pwd", .workdir = "/usr", .timeout = 5s});
    EQUAL(plain.out().text, "/usr\n");
    const dsh::Request request{
        .command = "echo $A$B",
        .env = {{"A", "1"}, {"B", std::nullopt}},
        .merge_stderr = true,
    };
    const dsh::Result result = executor.run(request);
    EQUAL(result.out().text, "1\n");
}
#endif

TEST("a path of the standard library is a working directory")
{
    dsh::Request request{"pwd"};
    request.workdir = std::filesystem::path("/") / "usr";
    const dsh::Result result = dsh::Executor().run(request);
    EQUAL(result.out().text, "/usr\n");
}

TEST("an explicit zero is refused by name before anything is started")
{
    EQUAL(refusal(dsh::Request{"true"}.with_timeout(0s)).code(), dsh::ErrorCode::invalid);
    CHECK(check::has(refusal(dsh::Request{"true"}.with_timeout(0s)).what(), "timeout 0 ms"));
    CHECK(check::has(refusal(dsh::Request{"true"}.with_stdout_max_bytes(0)).what(), "stdout_max_bytes 0"));
}

TEST("a time that is negative or not a number is refused by name and value")
{
    CHECK(check::has(refusal(dsh::Request{"true"}.with_timeout(-1us)).what(), "timeout -1 ms: is negative"));
    CHECK(check::has(refusal(dsh::Request{"true"}.with_timeout(std::chrono::hours::min())).what(), "is negative"));
    const auto nan = std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN());
    CHECK(check::has(refusal(dsh::Request{"true"}.with_timeout(nan)).what(), "timeout: is not a number"));
}

TEST("a time that is too long is capped")
{
    const dsh::Executor executor;
    const auto capped = [&](dsh::Duration time) {
        return executor.resolve(dsh::Request{"true"}.with_timeout(time)).timeout();
    };
    CHECK(capped(std::chrono::hours::max()) == 10min);
    CHECK(capped(std::chrono::duration<double>(std::numeric_limits<double>::infinity())) == 10min);
    CHECK(capped(std::chrono::milliseconds(std::int64_t{1} << 32)) == 10min);
}

TEST("a name with '=' is refused, and what follows it is not shown")
{
    const dsh::Error error = refusal(dsh::Request{"true"}.with_env("A", "1").with_env("TOKEN=hunter2", "x"));
    EQUAL(error.code(), dsh::ErrorCode::env_name);
    CHECK(check::has(error.what(), "env[1] \"TOKEN=…\""));
    CHECK(!check::has(error.what(), "hunter2"));
    EQUAL(refusal(dsh::Request{"true"}.without_env("A=1")).code(), dsh::ErrorCode::env_name);
    EQUAL(refusal(dsh::Request{"true"}.with_dsh_env("DSH_A=1", "2")).code(), dsh::ErrorCode::env_name);
}

TEST("text with a NUL byte is refused, not cut")
{
    CHECK(check::has(refusal(dsh::Request{"true"}.with_workdir(std::string("/\0x", 3))).what(), "workdir \"/\\0"));
    const dsh::Error name = refusal(dsh::Request{"true"}.with_env(std::string("A\0B", 3), "1"));
    EQUAL(name.code(), dsh::ErrorCode::env_name);
    CHECK(check::has(name.what(), "env[0] \"A\\0"));
    const dsh::Error value = refusal(dsh::Request{"true"}.with_env("A", std::string("secret\0", 7)));
    EQUAL(value.code(), dsh::ErrorCode::invalid);
    CHECK(check::has(value.what(), "env[0] \"A\": the value holds a NUL byte"));
    CHECK(!check::has(value.what(), "secret"));
}

TEST("what the library refuses, it names")
{
    EQUAL(refusal(dsh::Request{"true"}.with_env("DSH_A", "1")).code(), dsh::ErrorCode::env_reserved);
    CHECK(check::has(refusal(dsh::Request{"true"}.with_workdir("")).what(), "workdir"));
    EQUAL(refusal(dsh::Request{"true"}.with_env("", "1")).code(), dsh::ErrorCode::env_name);
}

TEST("a cancel token that was moved from is refused, since the command could not be cancelled")
{
    dsh::CancelToken token;
    const dsh::CancelToken moved = std::move(token);
    EQUAL(refusal(dsh::Request{"true"}.with_cancel(token)).code(), dsh::ErrorCode::null);
}

TEST("a request may be used again, and by many executors")
{
    const dsh::Request request = dsh::Request{"echo $A"}.with_env("A", "1");
    const dsh::Executor one, other;
    for (const dsh::Executor* executor : {&one, &other, &one}) {
        const dsh::Result result = executor->run(request);
        EQUAL(result.out().text, "1\n");
    }
}

TEST("no input is /dev/null, and an empty one is an empty stdin")
{
    const dsh::Executor executor;
    const char* const kind = "if [ -p /dev/stdin ]; then echo pipe; else echo other; fi; cat";
    const dsh::Result without = executor.run(kind);
    EQUAL(without.out().text, "other\n");
    const dsh::Result empty = executor.run(dsh::Request{kind}.with_input(""));
    EQUAL(empty.out().text, "pipe\n");
}
