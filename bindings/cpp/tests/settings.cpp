// Budgets of an executor.
#include "check.hpp"

#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

TEST("an executor without settings has the documented defaults")
{
    const dsh::Settings settings = dsh::Executor().settings();
    CHECK(settings.timeout == 2min);
    CHECK(settings.max_timeout == 10min);
    CHECK(settings.grace == 3s);
    CHECK(settings.drain == 3s);
    CHECK(settings.max_output_bytes == 64'000U);
    CHECK(settings.max_spill_bytes == 67'108'864U);
    CHECK(settings.max_total_spill_bytes == 1'073'741'824U);
    CHECK(settings.keep == dsh::Keep::tail);
    CHECK(settings.inherit_env && settings.guard && !settings.keep_spill_files);
    CHECK(settings.shell && settings.shell->front() == '/');
    CHECK(settings.env_allow.empty() && settings.env_deny.empty());
    CHECK(!settings.cwd);
}

TEST("all settings come back as they were given")
{
    dsh::Settings asked;
    asked.cwd = "/usr";
    asked.shell = "/bin/bash";
    asked.spill_dir = "/tmp";
    asked.inherit_env = false;
    asked.env_allow = {"A_*", "B_TOKEN"};
    asked.env_deny = {"C*"};
    asked.timeout = 1s;
    asked.max_timeout = 2s;
    asked.grace = 3ms;
    asked.drain = 4ms;
    asked.max_output_bytes = 5;
    asked.max_spill_bytes = 6;
    asked.max_total_spill_bytes = 7;
    asked.keep = dsh::Keep::head_tail;
    asked.guard = false;
    asked.keep_spill_files = true;
    const dsh::Settings given = dsh::Executor(asked).settings();
    CHECK(given.cwd == asked.cwd);
    CHECK(given.shell == asked.shell);
    CHECK(given.spill_dir == asked.spill_dir);
    CHECK(given.inherit_env == asked.inherit_env);
    CHECK(given.env_allow == asked.env_allow);
    CHECK(given.env_deny == asked.env_deny);
    CHECK(given.timeout == asked.timeout);
    CHECK(given.max_timeout == asked.max_timeout);
    CHECK(given.grace == asked.grace);
    CHECK(given.drain == asked.drain);
    CHECK(given.max_output_bytes == asked.max_output_bytes);
    CHECK(given.max_spill_bytes == asked.max_spill_bytes);
    CHECK(given.max_total_spill_bytes == asked.max_total_spill_bytes);
    CHECK(given.keep == asked.keep);
    CHECK(given.guard == asked.guard);
    CHECK(given.keep_spill_files == asked.keep_spill_files);
}

TEST("one budget is changed by reading all, changing it and giving all back, also on another thread")
{
    const dsh::Executor executor(check::quick());
    std::thread([&executor] {
        dsh::Settings settings = executor.settings();
        settings.max_output_bytes = 3;
        executor.configure(settings);
    }).join();
    CHECK(executor.settings().grace == 300ms);
    const dsh::Result result = executor.run("printf 12345");
    EQUAL(result.out().text, "345");
}

TEST("an explicit zero is refused by name before anything is made")
{
    const auto refused = [](auto change) {
        dsh::Settings settings;
        change(settings);
        const dsh::Error error = ERROR_OF(dsh::Executor(settings));
        EQUAL(error.code(), dsh::ErrorCode::invalid);
        EQUAL(std::string(error.stage()), "argument");
        return std::string(error.what());
    };
    CHECK(check::has(refused([](auto& s) { s.timeout = 0s; }), "timeout 0 ms"));
    CHECK(check::has(refused([](auto& s) { s.max_timeout = 0s; }), "max_timeout 0 ms"));
    CHECK(check::has(refused([](auto& s) { s.grace = 0s; }), "grace 0 ms"));
    CHECK(check::has(refused([](auto& s) { s.drain = 0s; }), "drain 0 ms"));
    CHECK(check::has(refused([](auto& s) { s.max_output_bytes = 0; }), "max_output_bytes 0"));
    CHECK(check::has(refused([](auto& s) { s.max_spill_bytes = 0; }), "max_spill_bytes 0"));
    CHECK(check::has(refused([](auto& s) { s.max_total_spill_bytes = 0; }), "max_total_spill_bytes 0"));
}

TEST("a time that is negative or not a number is refused by name and value")
{
    dsh::Settings settings;
    settings.grace = -5ms;
    CHECK(check::has(ERROR_OF(dsh::Executor(settings)).what(), "grace -5 ms: is negative"));
    settings.grace = std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN());
    CHECK(check::has(ERROR_OF(dsh::Executor(settings)).what(), "grace: is not a number"));
}

TEST("text with a NUL byte is refused, not cut")
{
    dsh::Settings settings;
    settings.cwd = std::string("/tmp\0/x", 7);
    CHECK(check::has(ERROR_OF(dsh::Executor(settings)).what(), "cwd \"/tmp\\0"));
    settings = {};
    settings.env_deny = {"A", std::string("B\0C", 3)};
    CHECK(check::has(ERROR_OF(dsh::Executor(settings)).what(), "env_deny[1] \"B\\0"));
}

TEST("budgets that can't be used are refused by the library, and the executor stays on its last good ones")
{
    const dsh::Executor executor(check::quick());
    dsh::Settings bad = executor.settings();
    bad.shell = "/no/such/shell";
    bad.grace = 1s;
    const dsh::Error error = ERROR_OF(executor.configure(bad));
    EQUAL(error.code(), dsh::ErrorCode::shell_missing);
    EQUAL(error.error_number(), ENOENT);
    CHECK(executor.settings().grace == 300ms);
}

TEST("the longest times are taken and capped, not wrapped")
{
    dsh::Settings settings = check::quick();
    settings.timeout = std::chrono::hours::max();
    settings.max_timeout = std::chrono::hours::max();
    const dsh::Executor executor(settings);
    CHECK(executor.run("exit 0").outcome().success());
    CHECK(executor.settings().timeout == std::chrono::milliseconds::max());
}
