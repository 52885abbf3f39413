// Foreground runs.
#include "check.hpp"

#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

TEST("a command's exit code and its two streams are the result")
{
    const dsh::Result result = dsh::Executor().run("echo out; echo err >&2; exit 3");
    const dsh::Outcome outcome = result.outcome();
    CHECK(outcome.exit == dsh::Exit::code);
    CHECK(outcome.code == 3);
    CHECK(!outcome.signal);
    CHECK(!outcome.success());
    CHECK(!outcome.timed_out && !outcome.aborted && !outcome.pipes_held && !outcome.core_dumped);
    CHECK(outcome.cause == dsh::Stop::none && outcome.stopped_by == dsh::Stop::none);
    CHECK(outcome.stage == dsh::StopStage::none);
    CHECK(outcome.wall_time > 0us && outcome.wall_time < 1h);
    CHECK(outcome.max_rss_bytes > 0);
    EQUAL(result.out().text, "out\n");
    EQUAL(result.out().total, 4U);
    EQUAL(result.err().text, "err\n");
    CHECK(result.held_by().empty() && result.survivors().empty());
    CHECK(result.timeout() == 2min);
    CHECK(result.process_id() > 0);
}

TEST("a command that ends with code 0 has success") { CHECK(dsh::Executor().run("true").outcome().success()); }

TEST("a signal is a signal, and no code")
{
    const dsh::Outcome outcome = dsh::Executor().run("kill -9 $$").outcome();
    CHECK(outcome.exit == dsh::Exit::signal);
    CHECK(outcome.signal == SIGKILL);
    CHECK(!outcome.code && !outcome.aborted && !outcome.success());
}

TEST("a timeout is a result, also of a command that then exits with 0")
{
    const dsh::Executor executor(check::quick());
    const dsh::Result result =
        executor.run(dsh::Request{"trap 'exit 0' TERM; echo up; sleep 60 & wait"}.with_timeout(300ms));
    const dsh::Outcome outcome = result.outcome();
    CHECK(outcome.timed_out && !outcome.aborted);
    CHECK(outcome.cause == dsh::Stop::timeout && outcome.stopped_by == dsh::Stop::timeout);
    CHECK(outcome.code == 0 && !outcome.success());
    CHECK(result.timeout() == 300ms);
    EQUAL(result.out().text, "up\n");
}

TEST("a command that ignores SIGTERM is ended after the grace")
{
    const dsh::Executor executor(check::quick());
    const dsh::Result result = executor.run(dsh::Request{"trap '' TERM; sleep 60"}.with_timeout(100ms));
    CHECK(result.outcome().timed_out);
    CHECK(result.outcome().stage == dsh::StopStage::kill);
    CHECK(result.outcome().signal == SIGKILL);
}

TEST("output is bytes, with NUL and what is no UTF-8")
{
    const dsh::Result result = dsh::Executor().run("printf 'a\\0b\\xff'");
    EQUAL(result.out().text, std::string("a\0b\xff", 4));
}

TEST("a long stream keeps its tail in memory and is whole in a private file")
{
    dsh::Settings settings = check::quick();
    settings.max_output_bytes = 1000;
    const dsh::Executor executor(settings);
    const dsh::Result result = executor.run("seq 1 10000");
    const dsh::Captured out = result.out();
    EQUAL(out.total, 48'894U);
    EQUAL(out.text.size() + out.omitted, out.total);
    CHECK(out.text.size() <= 1000U);
    EQUAL(out.text.substr(out.text.size() - 6), "10000\n");
    CHECK(out.spill_path != nullptr && out.spill_error == nullptr);
    struct stat info = {};
    CHECK(stat(out.spill_path, &info) == 0);
    EQUAL(info.st_mode & 0777U, 0600U);
    std::ifstream file(out.spill_path, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    EQUAL(whole.size(), out.total);
    EQUAL(whole.substr(0, 4), "1\n2\n");
}

TEST("of head and tail, the gap is told")
{
    dsh::Settings settings;
    settings.max_output_bytes = 10;
    settings.keep = dsh::Keep::head_tail;
    const dsh::Executor executor(settings);
    const dsh::Result result = executor.run("printf 0123456789abcdefghij");
    EQUAL(result.out().text, "01234fghij");
    EQUAL(result.out().omitted, 10U);
    EQUAL(result.out().omitted_at, 5U);
}

TEST("a stream beyond the limit of spill files says why there is none")
{
    dsh::Settings settings;
    settings.max_output_bytes = 10;
    settings.max_spill_bytes = 20;
    const dsh::Executor executor(settings);
    const dsh::Result result = executor.run("seq 1 100");
    CHECK(result.out().spill_path == nullptr);
    CHECK(result.out().spill_error != nullptr && *result.out().spill_error != '\0');
}

TEST("survivors are listed when they are kept, and gone when they are not")
{
    dsh::Settings settings = check::quick();
    const dsh::Executor executor(settings);
    const char* const command = "sleep 60 >/dev/null 2>&1 & echo $!";
    const dsh::Result kept = executor.run(command);
    CHECK(kept.outcome().success());
    const std::vector<dsh::Survivor> survivors = kept.survivors();
    EQUAL(survivors.size(), 1U);
    EQUAL(std::to_string(survivors[0].pid) + '\n', kept.out().text);
    CHECK(survivors[0].start_time > 0);
    CHECK(::kill(survivors[0].pid, 0) == 0);

    const dsh::Result killed = executor.run(dsh::Request{command}.with_survivors(dsh::Survivors::kill));
    CHECK(killed.survivors().empty());
    CHECK(killed.outcome().stopped_by == dsh::Stop::survivors);
    CHECK(killed.outcome().cause == dsh::Stop::none && killed.outcome().success());
}

TEST("who holds the pipes after the command's end is told, and not waited for")
{
    const dsh::Executor executor(check::quick());
    const dsh::Result result = executor.run("sleep 60 & echo up");
    CHECK(result.outcome().code == 0);
    CHECK(result.outcome().pipes_held);
    EQUAL(result.held_by().size(), 1U);
    EQUAL(result.out().text, "up\n");
}

TEST("names of variables that look like credentials are told, and their values don't reach the command")
{
    setenv("CHECK_API_KEY", "hunter2", 1);
    const dsh::Executor executor;
    const dsh::Result result = executor.run("echo \"[$CHECK_API_KEY]\"");
    EQUAL(result.out().text, "[]\n");
    const auto has_it = [](const std::vector<std::string_view>& names) {
        for (const std::string_view name : names)
            if (name == "CHECK_API_KEY")
                return true;
        return false;
    };
    CHECK(has_it(result.scrubbed()));
    const dsh::Spec spec = executor.resolve(dsh::Request{"true"});
    CHECK(has_it(spec.scrubbed()));
    unsetenv("CHECK_API_KEY");
}

TEST("runs of many threads at once do not mix")
{
    const dsh::Executor executor;
    std::vector<std::thread> threads;
    std::vector<std::string> outputs(16);
    for (std::size_t i = 0; i < outputs.size(); ++i)
        threads.emplace_back([&, i] {
            const dsh::Result result = executor.run("echo " + std::to_string(i));
            outputs[i] = result.out().text;
        });
    for (std::thread& thread : threads)
        thread.join();
    for (std::size_t i = 0; i < outputs.size(); ++i)
        EQUAL(outputs[i], std::to_string(i) + '\n');
}

TEST("a command beyond the kernel's limit for arguments runs")
{
    const dsh::Result result = dsh::Executor().run(": " + std::string(200'000, 'x') + "; echo done");
    EQUAL(result.out().text, "done\n");
}

TEST("a command that does not read its input is no error")
{
    const dsh::Result result = dsh::Executor().run(dsh::Request{"exit 4"}.with_input(std::string(1'000'000, 'x')));
    CHECK(result.outcome().code == 4);
    CHECK(result.input_written() < 1'000'000);
}
