// The binding without exceptions and without run-time types.
#include <dsh.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#if DSH_EXCEPTIONS
#error "compile this with -fno-exceptions"
#endif

namespace {

int failed = 0;

void check(bool holds, const char* what)
{
    std::printf("%s  %s\n", holds ? "ok    " : "FAILED", what);
    failed += !holds;
}

} // namespace

int main()
{
    dsh::Settings settings;
    settings.grace = std::chrono::milliseconds(300);
    auto executor = dsh::Executor::try_make(settings);
    check(executor.has_value(), "an executor is made");

    const auto result = executor->try_run("echo hello; exit 3");
    check(result && result->out().text == "hello\n" && result->outcome().code == 3, "a command is run");

    const auto refused = executor->try_run(dsh::Request{"true"}.with_workdir("/no/such/folder"));
    check(!refused && refused.error().code() == dsh::ErrorCode::workdir_missing, "an error is given, not thrown");
    check(!refused && std::string(refused.error().what()).find("/no/such/folder") != std::string::npos,
          "its message names the folder");

    const auto zero = executor->try_run(dsh::Request{"true"}.with_timeout(std::chrono::seconds(0)));
    check(!zero && zero.error().code() == dsh::ErrorCode::invalid, "an explicit zero is refused");

    settings.shell = "/no/such/shell";
    check(!dsh::Executor::try_make(settings), "an executor without a shell is not made");
    check(!executor->try_configure(settings), "nor is one configured so");
    check(executor->try_settings().has_value() && executor->try_stats().has_value(), "settings and stats are read");
    check(executor->try_resolve(dsh::Request{"true"}).has_value(), "a request is resolved");

    const auto token = dsh::CancelToken::try_make();
    check(token && !*token->try_cancelled(), "a token is made");
    const auto event_fd = executor->try_event_fd();
    check(event_fd && *event_fd >= 0, "events have a descriptor");
    check(executor->try_set_wake([] {}) && executor->try_clear_wake(), "or a call");

    const auto process = executor->try_start(dsh::Request{"echo up; sleep 60"}.with_cancel(*token));
    check(process.has_value(), "a process is started");
    const auto soon = process->try_wait_for(std::chrono::seconds(0));
    check(soon && !*soon, "a wait may end before the process");
    char buffer[16];
    while (process->try_read_stream(dsh::Stream::out, 0, buffer)->text != "up\n") {
    }
    check(token->try_cancel().has_value() && process->try_wait().has_value(), "it is cancelled");
    check(process->try_info()->outcome.cause == dsh::Stop::cancel, "and says so");
    check(process->try_read_output()->text() == "up\n", "its output is read");
    check(process->try_result()->out().text == "up\n", "and its result");
    check(process->try_survivors()->empty() && process->try_held_by()->empty(), "nothing is left");
    check(!process->try_spill_path(dsh::Stream::out)->has_value(), "there is no file");
    check(!*process->try_kill(), "there is nothing to kill");
    check(executor->try_next_event()->has_value(), "events have come");

    const auto ended = executor->try_shutdown();
    check(ended && *ended, "the executor is shut down");
    const auto late = executor->try_start("true");
    check(!late && late.error().code() == dsh::ErrorCode::shutdown, "and starts nothing more");
    const dsh::Executor moved = *std::move(executor);
    const auto null = executor->try_run("true");
    check(!null && null.error().code() == dsh::ErrorCode::null, "an executor that was moved from says so");
    return failed != 0;
}
