// A forked child of the process that made the handles.
#include "check.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

namespace {

// Whether a check holds in a forked child, which ends without destroying what it has of its parent.
template <class Body> bool holds_in_child(Body body)
{
    const pid_t child = fork();
    if (child == 0) {
        bool holds = false;
        try {
            holds = body();
        } catch (...) {
        }
        _exit(holds ? 0 : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <class Expected> bool forked(const Expected& called)
{
    return !called && called.error().code() == dsh::ErrorCode::forked;
}

} // namespace

TEST("in a forked child every call says so, results can be read, and destroying does nothing")
{
    std::optional<dsh::Executor> executor(std::in_place, check::quick());
    std::optional<dsh::Process> process(executor->start("sleep 60"));
    std::optional<dsh::CancelToken> token(std::in_place);
    std::optional<dsh::Result> result(executor->run("echo hello"));
    CHECK(holds_in_child([&] {
        bool holds = forked(executor->try_run("true")) && forked(executor->try_start("true")) &&
                     forked(executor->try_settings()) && forked(executor->try_shutdown()) &&
                     forked(executor->try_event_fd()) && forked(process->try_kill()) && forked(process->try_info()) &&
                     forked(process->try_wait()) && forked(token->try_cancel());
        holds = holds && result->out().text == "hello\n" && result->outcome().code == 0;
        process.reset();
        token.reset();
        result.reset();
        executor.reset();
        return holds;
    }));
    CHECK(process->info().status == dsh::ProcessStatus::running);
    CHECK(process->kill());
    process->wait();
}
