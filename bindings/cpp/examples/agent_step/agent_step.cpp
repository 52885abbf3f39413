// One step of an agent's loop: takes a command as a model would ask for it, runs it, and shows the text that the model
// would see.
//
//     agent_step [--timeout MS] [--workdir DIR] [--sandbox MODE] COMMAND...
//
// Each COMMAND is a step of its own, in a fresh shell; one executor runs them all.

#include <dsh.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

// What a model may ask for.
struct ToolCall {
    std::string command;
    std::optional<std::string> workdir;
    std::optional<std::chrono::milliseconds> timeout;
    std::optional<dsh::SandboxMode> sandbox;
};

std::string signal_name(int number)
{
    switch (number) {
    case SIGHUP:
        return "SIGHUP";
    case SIGINT:
        return "SIGINT";
    case SIGQUIT:
        return "SIGQUIT";
    case SIGILL:
        return "SIGILL";
    case SIGABRT:
        return "SIGABRT";
    case SIGFPE:
        return "SIGFPE";
    case SIGKILL:
        return "SIGKILL";
    case SIGSEGV:
        return "SIGSEGV";
    case SIGPIPE:
        return "SIGPIPE";
    case SIGTERM:
        return "SIGTERM";
    default:
        return "signal " + std::to_string(number);
    }
}

// What the model sees: the output, then the facts that differ from a plain success, each on a line of its own.
std::string rendered(const dsh::Result& result)
{
    std::string text(result.out().text);
    const auto line = [&text](const std::string& words) {
        if (!text.empty() && text.back() != '\n')
            text += '\n';
        text += words + '\n';
    };

    if (text.empty())
        line("(no output)");
    if (result.out().spill_path != nullptr)
        line("[output truncated; full output: " + std::string(result.out().spill_path) + "]");
    else if (result.out().omitted > 0)
        line("[output truncated]");
    const dsh::Outcome outcome = result.outcome();
    if (outcome.timed_out)
        line("[timed out after " + std::to_string(result.timeout().count()) + "ms]");
    if (outcome.signal)
        line("[killed by signal: " + signal_name(*outcome.signal) + "]");
    else if (outcome.code && *outcome.code != 0)
        line("[exit code: " + std::to_string(*outcome.code) + "]");
    if (const auto facts = result.sandbox(); facts && facts->denial) {
        line("[denied: " + facts->denial->path + ": " + facts->denial->rule + "]");
        // What the model may ask the user for.
        for (const dsh::SandboxMode mode : dsh::wider_than(facts->mode))
            line("[a wider mode: " + std::string(dsh::to_string(mode)) + "]");
    }
    return text;
}

// The step. A command that could not be run at all is told to the model too: it may know better.
std::string step(const dsh::Executor& executor, const ToolCall& call)
{
    dsh::Request request{call.command};
    request.workdir = call.workdir;
    request.timeout = call.timeout;
    if (call.sandbox)
        request.with_sandbox(*call.sandbox);
    // One stream, in the order in which it was written: what a person would see in a terminal.
    request.merge_stderr = true;
    // A spill file lives as long as the executor, so that later steps can read it.
    try {
        return rendered(executor.run(request));
    } catch (const dsh::Error& error) {
        return "[not run: " + std::string(error.what()) + "]\n";
    }
}

std::vector<ToolCall> calls_of(int argc, char** argv)
{
    std::vector<ToolCall> calls;
    ToolCall terms;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--timeout") == 0 && i + 1 < argc) {
            terms.timeout = std::chrono::milliseconds(std::strtoll(argv[++i], nullptr, 10));
        } else if (std::strcmp(argv[i], "--workdir") == 0 && i + 1 < argc) {
            terms.workdir = argv[++i];
        } else if (std::strcmp(argv[i], "--sandbox") == 0 && i + 1 < argc) {
            terms.sandbox = dsh::sandbox_mode(argv[++i]);
        } else {
            calls.push_back(terms);
            calls.back().command = argv[i];
        }
    }
    return calls;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        const std::vector<ToolCall> calls = calls_of(argc, argv);
        if (calls.empty()) {
            std::cerr << "usage: agent_step [--timeout MS] [--workdir DIR] [--sandbox MODE] COMMAND...\n";
            return 2;
        }
        const dsh::Executor executor;
        for (const ToolCall& call : calls)
            std::cout << step(executor, call) << std::flush;
    } catch (const dsh::Error& error) {
        std::cerr << "agent_step: " << error.what() << '\n';
        return 1;
    }
}
