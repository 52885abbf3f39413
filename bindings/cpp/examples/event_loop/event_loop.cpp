// Many commands at once from one thread, with poll(): each line of output is shown as it comes, and each command's end.
//
//     event_loop COMMAND...
//
// The program never waits in the library. An event is only a hint, so the data is asked for when one has come.

#include <dsh.hpp>

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <system_error>

namespace {

// A command, and its output that is not a whole line yet.
struct Job {
    dsh::Process process;
    std::string partial;
};

// Shows what is new, line by line; a line that is not whole only when it is the last.
void show_output(const std::string& name, Job& job, bool last)
{
    const dsh::Chunk chunk = job.process.read_output();
    job.partial += chunk.text();
    std::size_t begin = 0;
    for (std::size_t end; (end = job.partial.find('\n', begin)) != std::string::npos; begin = end + 1)
        std::cout << name << ": " << job.partial.substr(begin, end - begin) << '\n';
    job.partial.erase(0, begin);
    if (last && !job.partial.empty())
        std::cout << name << ": " << job.partial << '\n';
}

void show_end(const std::string& name, const dsh::Outcome& outcome)
{
    if (outcome.code)
        std::cout << name << ": exit code " << *outcome.code << '\n';
    else if (outcome.signal)
        std::cout << name << ": signal " << *outcome.signal << '\n';
    else
        std::cout << name << ": ended\n";
}

// Waits until the descriptor is readable. A real loop has more descriptors here.
void wait_for(int fd)
{
    pollfd wanted{fd, POLLIN, 0};
    while (poll(&wanted, 1, -1) < 0)
        if (errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "poll");
}

} // namespace

int main(int argc, char** argv)
{
    try {
        const dsh::Executor executor;
        // Asked for before the first start, since events are kept from then on.
        const int events = executor.event_fd();

        std::map<std::uint64_t, Job> jobs; // by tag
        for (int i = 1; i < argc; ++i) {
            const auto tag = static_cast<std::uint64_t>(i);
            jobs[tag].process = executor.start(dsh::Request{argv[i]}.with_tag(tag));
        }
        while (!jobs.empty()) {
            wait_for(events);
            while (const auto event = executor.next_event()) {
                const auto job = jobs.find(event->tag);
                const std::string name = '[' + std::to_string(event->tag) + ']';
                const bool settled = event->kind == dsh::EventKind::settled;
                if (settled || event->kind == dsh::EventKind::output)
                    show_output(name, job->second, settled);
                if (settled) {
                    show_end(name, job->second.process.info().outcome);
                    // The handle's events end with it. What the command left running is the executor's.
                    jobs.erase(job);
                }
            }
        }
    } catch (const std::exception& error) {
        std::cerr << "event_loop: " << error.what() << '\n';
        return 1;
    }
}
