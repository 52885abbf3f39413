// Confinement: policies, facts, the doctor, and what happens when it can't be had.
#include "check.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using dsh::Backend;
using dsh::Denied;
using dsh::Enforcement;
using dsh::Network;
using dsh::SandboxMode;

namespace {

namespace fs = std::filesystem;

constexpr Backend both[] = {Backend::bubblewrap, Backend::landlock};

// A workspace, a folder outside it, and a policy. Not in /tmp, of which bubblewrap has one of its own.
class Place {
public:
    explicit Place(Backend backend)
    {
        CHECK(mkdtemp(folder_.data()) != nullptr);
        CHECK(chmod(folder_.c_str(), 0755) == 0);
        fs::create_directory(workspace());
        fs::create_directory(outside());
        settings = check::quick();
        settings.cwd = workspace();
        settings.sandbox = dsh::Sandbox{}.with_mode(SandboxMode::workspace_write).with_backend(backend);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place()
    {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    std::string workspace() const { return folder_ + "/workspace"; }
    std::string outside() const { return folder_ + "/outside"; }
    bool untouched() const { return fs::is_empty(workspace()) && fs::is_empty(outside()); }
    // A program in the folder.
    std::string program(const std::string& text) const
    {
        const std::string path = folder_ + "/program";
        std::ofstream(path) << text;
        CHECK(chmod(path.c_str(), 0755) == 0);
        return path;
    }

    dsh::Settings settings;

private:
    std::string folder_ = "/var/tmp/dsh-confined-XXXXXX";
};

dsh::Confinement facts_of(const dsh::Result& result)
{
    const auto facts = result.sandbox();
    CHECK(facts.has_value());
    return *facts;
}

dsh::Sandbox policy() { return {}; }

} // namespace

TEST("without a policy there are no facts, and full access is told as such")
{
    const dsh::Executor executor;
    const dsh::Result plain = executor.run("true");
    CHECK(!plain.sandbox());
    CHECK(!executor.settings().sandbox);
    CHECK(!executor.resolve(dsh::Request{"true"}).sandbox_mode());
    const dsh::Process process = executor.start("true");
    process.wait();
    CHECK(!process.sandbox() && !process.result().sandbox());

    const auto full = facts_of(executor.run(dsh::Request{"true"}.with_sandbox(SandboxMode::danger_full_access)));
    EQUAL(full.mode, SandboxMode::danger_full_access);
    EQUAL(full.enforcement, Enforcement::none);
    CHECK(!full.backend && !full.workspace && full.missing.empty() && full.denied == Denied::no);
}

TEST("the facts say what confined a command, how far, and what it was kept from")
{
    for (const Backend backend : both) {
        const Place place(backend);
        const dsh::Executor executor(place.settings);
        const dsh::Result result = executor.run("touch made && touch ../outside/made");
        CHECK(result.outcome().code == 1);
        CHECK(fs::exists(place.workspace() + "/made") && fs::is_empty(place.outside()));
        const dsh::Confinement facts = facts_of(result);
        EQUAL(facts.mode, SandboxMode::workspace_write);
        CHECK(facts.backend == backend);
        EQUAL(facts.network, Network::full);
        CHECK(facts.workspace == place.workspace());
        EQUAL(facts.denied, Denied::yes);
        EQUAL(facts.denial.value().path, place.outside() + "/made");
        EQUAL(facts.denial.value().rule, "outside the workspace (workspace-write)");
        CHECK(!facts.runner_failed);
        if (backend == Backend::bubblewrap) {
            EQUAL(facts.enforcement, Enforcement::full);
            CHECK(facts.missing.empty());
        } else {
            EQUAL(facts.enforcement, Enforcement::partial);
            EQUAL(facts.missing.at(0), "metadata");
        }
        const auto fine = facts_of(executor.run("exit 3"));
        CHECK(fine.denied == Denied::no && !fine.denial);
    }
}

TEST("a request says what differs from the executor's policy, and keeps the rest")
{
    for (const Backend backend : both) {
        Place place(backend);
        place.settings.sandbox->mode = SandboxMode::read_only;
        const dsh::Executor executor(place.settings);
        const dsh::Request write{"touch made"};
        CHECK(executor.run(write).outcome().code == 1);
        CHECK(place.untouched());
        CHECK(executor.resolve(write).sandbox_mode() == SandboxMode::read_only);

        const dsh::Request wider = dsh::Request(write).with_sandbox(SandboxMode::workspace_write);
        CHECK(executor.resolve(wider).sandbox_mode() == SandboxMode::workspace_write);
        const dsh::Result made = executor.run(wider);
        CHECK(made.outcome().success());
        CHECK(fs::exists(place.workspace() + "/made"));
        CHECK(facts_of(made).backend == backend);
    }
}

TEST("further paths are writable, and what is hidden is not read")
{
    for (const Backend backend : both) {
        Place place(backend);
        std::ofstream(place.outside() + "/key") << "secret";
        const std::string beside = place.workspace() + "/../beside";
        fs::create_directory(beside);
        const dsh::Executor executor(place.settings);
        const dsh::Request request = dsh::Request{"cat ../outside/key; touch ../beside/made"}.with_sandbox(
            policy().with_writable(beside).with_hidden(place.outside()).with_hidden("/not/there"));
        const dsh::Result result = executor.run(request);
        CHECK(result.outcome().success());
        EQUAL(result.out().text, "");
        CHECK(fs::exists(beside + "/made"));
        const dsh::Result open = executor.run("cat ../outside/key");
        EQUAL(open.out().text, "secret");
    }
}

TEST("a network of none has no sockets of the internet")
{
    for (const Backend backend : both) {
        const Place place(backend);
        const dsh::Executor executor(place.settings);
        // To a port where nobody listens: an error of the network, or none of the socket.
        const dsh::Request connect{"exec 3<>/dev/tcp/127.0.0.1/1"};
        const dsh::Result full = executor.run(connect);
        CHECK(check::has(full.err().text, "refused"));
        const dsh::Result none = executor.run(dsh::Request(connect).with_sandbox(policy().with_network(Network::none)));
        CHECK(!none.outcome().success() && !check::has(none.err().text, "refused"));
        EQUAL(facts_of(none).network, Network::none);
    }
}

TEST("a linked git worktree is for commits only when the policy says so")
{
    const Place place(Backend::bubblewrap);
    dsh::Settings settings = check::quick();
    settings.cwd = place.workspace();
    const dsh::Executor executor(settings);
    CHECK(executor
              .run("mkdir -p main/.git/worktrees/w w && echo ../.. > main/.git/worktrees/w/commondir && "
                   "echo \"gitdir: $PWD/main/.git/worktrees/w\" > w/.git && "
                   "echo \"$PWD/w/.git\" > main/.git/worktrees/w/gitdir && echo 'ref: x' > main/.git/HEAD && "
                   "mkdir main/.git/objects main/.git/refs")
              .outcome()
              .success());
    const auto touches = [&](std::optional<bool> git_worktree) {
        dsh::Sandbox sandbox = *place.settings.sandbox;
        sandbox.workspace = place.workspace() + "/w";
        sandbox.git_worktree = git_worktree;
        return executor.run(dsh::Request{"touch main/.git/objects/made"}.with_sandbox(sandbox)).outcome().success();
    };
    CHECK(!touches(std::nullopt));
    CHECK(!touches(false));
    CHECK(touches(true));
}

TEST("a policy of the executor can be read and given back")
{
    const Place place(Backend::landlock);
    dsh::Sandbox asked = dsh::Sandbox{}
                             .with_mode(SandboxMode::workspace_write)
                             .with_workspace(place.workspace())
                             .with_writable(place.outside())
                             .with_hidden("/not/there")
                             .with_network(Network::loopback)
                             .with_backend(Backend::runner)
                             .with_backend(Backend::landlock)
                             .with_runner({{"/bin/true", "--flag"}, {"fatal"}})
                             .with_git_worktree();
    dsh::Settings settings = check::quick();
    settings.sandbox = asked;
    const dsh::Executor executor(settings);
    executor.configure(executor.settings());
    const dsh::Sandbox given = executor.settings().sandbox.value();
    CHECK(given.mode == asked.mode);
    CHECK(given.workspace == asked.workspace);
    CHECK(given.writable == asked.writable);
    CHECK(given.hidden == asked.hidden);
    CHECK(given.network == asked.network);
    CHECK(given.backends == asked.backends);
    CHECK(given.runner.value().command == asked.runner->command);
    CHECK(given.runner.value().failures == asked.runner->failures);
    CHECK(given.git_worktree == true);

    settings.sandbox = dsh::Sandbox{};
    executor.configure(settings);
    CHECK(executor.resolve(dsh::Request{"true"}).sandbox_mode() == SandboxMode::read_only);
    settings.sandbox.reset();
    executor.configure(settings);
    CHECK(!executor.settings().sandbox);
}

TEST("a policy that can't be used is refused by field and value before anything runs")
{
    const Place place(Backend::landlock);
    const dsh::Executor executor(place.settings);
    const std::string nul("/\0x", 3);
    const std::vector<std::pair<dsh::Sandbox, std::string>> cases = {
        {policy().with_mode(static_cast<SandboxMode>(99)), "sandbox.mode 99"},
        {policy().with_mode(static_cast<SandboxMode>(0)), "sandbox.mode 0"},
        {policy().with_network(static_cast<Network>(99)), "sandbox.network 99"},
        {policy().with_network(static_cast<Network>(0)), "sandbox.network 0"},
        {policy().with_backend(static_cast<Backend>(99)), "sandbox.backends[0] 99"},
        {policy().with_backend(static_cast<Backend>(0)), "sandbox.backends[0] 0"},
        {policy().with_backend(Backend::landlock).with_backend(Backend::landlock), "sandbox.backends[1] landlock"},
        {policy().with_backend(Backend::runner), "sandbox.runner"},
        {policy().with_workspace("relative"), "sandbox.workspace \"relative\""},
        {policy().with_workspace(""), "sandbox.workspace \"\""},
        {policy().with_workspace(nul), "sandbox.workspace \"/\\0"},
        {policy().with_writable("/tmp").with_writable("x"), "sandbox.writable[1] \"x\""},
        {policy().with_writable("/not/there"), "sandbox.writable[0] \"/not/there\""},
        {policy().with_writable(nul), "sandbox.writable[0] \"/\\0"},
        {policy().with_hidden("x"), "sandbox.hidden[0] \"x\""},
        {policy().with_hidden(nul), "sandbox.hidden[0] \"/\\0"},
        {policy().with_runner({}), "sandbox.runner: names no program"},
        {policy().with_runner({{}, {"fatal"}}), "sandbox.runner: names no program"},
        {policy().with_runner({{"x"}, {}}), "sandbox.runner_failures"},
        {policy().with_runner({{"x", nul}, {"fatal"}}), "sandbox.runner[1] \"/\\0"},
        {policy().with_runner({{"x"}, {nul}}), "sandbox.runner_failures[0] \"/\\0"},
    };
    for (const auto& [sandbox, words] : cases) {
        const dsh::Request request = dsh::Request{"touch made"}.with_sandbox(sandbox);
        for (const dsh::Error& error : {ERROR_OF(executor.run(request)), ERROR_OF(executor.start(request))}) {
            EQUAL(error.code(), dsh::ErrorCode::invalid);
            if (!check::has(error.what(), words))
                EQUAL(std::string(error.what()), words);
        }
    }
    CHECK(place.untouched());
    EQUAL(executor.stats().live + executor.stats().ended, 0U);
    dsh::Settings settings = place.settings;
    settings.sandbox->workspace = "relative";
    EQUAL(ERROR_OF(dsh::Executor(settings)).code(), dsh::ErrorCode::invalid);
    EQUAL(ERROR_OF(executor.configure(settings)).code(), dsh::ErrorCode::invalid);
}

TEST("what no backend can enforce is an error, and nothing runs")
{
    const Place place(Backend::landlock);
    const dsh::Executor executor(place.settings);
    const dsh::Request request = dsh::Request{"touch made"}.with_sandbox(policy().with_network(Network::loopback));
    for (const dsh::Error& error : {ERROR_OF(executor.run(request)), ERROR_OF(executor.start(request))}) {
        EQUAL(error.code(), dsh::ErrorCode::sandbox_unavailable);
        EQUAL(std::string(error.stage()), "sandbox");
        CHECK(check::has(error.what(), "loopback"));
    }
    CHECK(place.untouched());
}

TEST("a runner of the caller's stands before the shell and knows the policy")
{
    Place place(Backend::runner);
    place.settings.sandbox->with_network(Network::none)
        .with_runner(
            {{place.program("#!/bin/sh\necho \"$1 $DSH_SANDBOX_MODE $DSH_SANDBOX_NETWORK\"; shift; exec \"$@\"\n"),
              "--flag"},
             {"fatal"}});
    const dsh::Executor executor(place.settings);
    const dsh::Result result = executor.run("echo ran; exit 5");
    EQUAL(result.out().text, "--flag workspace-write none\nran\n");
    CHECK(result.outcome().code == 5);
    CHECK(facts_of(result).backend == Backend::runner);
}

TEST("a backend that breaks is an error of a run, a fact of a process, and never an exit code")
{
    Place place(Backend::runner);
    place.settings.sandbox->runner = {{place.program("#!/bin/sh\necho 'Runner: FATAL: no luck' >&2; exit 7\n")},
                                      {"runner: fatal"}};
    const dsh::Executor executor(place.settings);
    const dsh::Error error = ERROR_OF(executor.run("touch made"));
    EQUAL(error.code(), dsh::ErrorCode::sandbox_unavailable);
    CHECK(check::has(error.what(), "no luck"));

    for (const bool foreground : {false, true}) {
        dsh::Request request{"touch made"};
        request.foreground = foreground;
        const dsh::Process process = executor.start(request);
        process.wait();
        CHECK(check::has(process.sandbox().value().runner_failed.value(), "no luck"));
        EQUAL(ERROR_OF(process.result()).code(), dsh::ErrorCode::sandbox_unavailable);
    }
    CHECK(place.untouched());
}

TEST("a process in the background has its facts while it runs, and the verdict once it has settled")
{
    for (const Backend backend : both) {
        const Place place(backend);
        const dsh::Executor executor(place.settings);
        const dsh::Process process =
            executor.start(dsh::Request{"echo up; cat > /dev/null; touch ../outside/made"}.with_input(""));
        const auto now = process.sandbox();
        CHECK(now && now->backend == backend && now->mode == SandboxMode::workspace_write);
        process.wait();
        const auto facts = process.sandbox();
        CHECK(facts && facts->denied == Denied::yes);
        EQUAL(facts->denial.value().path, place.outside() + "/made");
        EQUAL(facts_of(process.result()).denial.value().path, place.outside() + "/made");
        EQUAL(now->denied, Denied::unknown);
    }
}

TEST("the facts of a result outlive it, move with it, and are read in a forked child")
{
    const Place place(Backend::landlock);
    std::optional<dsh::Result> result(dsh::Executor(place.settings).run("touch ../outside/made"));
    dsh::Result moved = *std::move(result);
    CHECK(!result->sandbox());
    const pid_t child = fork();
    if (child == 0)
        _exit(moved.sandbox() && moved.sandbox()->denied == Denied::yes ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    const dsh::Confinement facts = facts_of(std::exchange(moved, dsh::Executor().run("true")));
    CHECK(!moved.sandbox());
    EQUAL(facts.denial.value().path, place.outside() + "/made");
}

TEST("a policy is read during the call only")
{
    const Place place(Backend::landlock);
    std::optional<dsh::Executor> executor;
    {
        dsh::Settings settings = place.settings;
        settings.sandbox->with_writable(place.outside());
        executor.emplace(settings);
        settings.sandbox->writable[0].assign(200, 'x');
    }
    CHECK(executor->run("touch ../outside/made").outcome().success());
    const dsh::Process process = executor->start(
        dsh::Request{"sleep 0.1; touch made"}.with_sandbox(policy().with_workspace(std::string(place.workspace()))));
    process.wait();
    CHECK(process.info().outcome.success());
}

TEST("modes have names, an order, and those that are wider")
{
    using Modes = std::vector<SandboxMode>;
    CHECK(dsh::wider_than(SandboxMode::read_only) ==
          Modes{SandboxMode::workspace_write, SandboxMode::danger_full_access});
    CHECK(dsh::wider_than(SandboxMode::workspace_write) == Modes{SandboxMode::danger_full_access});
    CHECK(dsh::wider_than(SandboxMode::danger_full_access).empty());
    CHECK(dsh::wider_than(static_cast<SandboxMode>(0)).empty());
    CHECK(dsh::is_wider(SandboxMode::workspace_write, SandboxMode::read_only));
    CHECK(!dsh::is_wider(SandboxMode::read_only, SandboxMode::read_only));
    for (const SandboxMode mode :
         {SandboxMode::read_only, SandboxMode::workspace_write, SandboxMode::danger_full_access})
        EQUAL(dsh::sandbox_mode(dsh::to_string(mode)), mode);
    EQUAL(std::string(dsh::to_string(SandboxMode::danger_full_access)), "danger-full-access");
    EQUAL(std::string(dsh::to_string(Network::loopback)), "loopback");
    EQUAL(std::string(dsh::to_string(Backend::seatbelt)), "seatbelt");
    EQUAL(std::string(dsh::to_string(static_cast<Backend>(0))), "");
    const dsh::Error error = ERROR_OF(dsh::sandbox_mode("read_only"));
    EQUAL(error.code(), dsh::ErrorCode::invalid);
    CHECK(check::has(error.what(), "sandbox.mode \"read_only\""));
}

TEST("the doctor reports each backend, what was tried, and facts of the system")
{
    const dsh::DoctorReport report = dsh::sandbox_doctor();
    EQUAL(report.backends.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        const dsh::BackendReport& backend = report.backends[i];
        EQUAL(backend.backend, both[i]);
        CHECK(backend.usable && backend.network && !backend.remedy && backend.error_number == 0);
        CHECK(!backend.tried.empty() && !backend.message.empty());
        CHECK(check::has(report.text, dsh::to_string(backend.backend)));
    }
    EQUAL(report.backends[1].version, dsh::feature(dsh::Feature::landlock));
    EQUAL(dsh::feature(dsh::Feature::bubblewrap), 1U);
    CHECK(!report.facts.empty());
    for (const auto& [name, value] : report.facts)
        CHECK(!name.empty() && !check::has(name, "=") && check::has(report.text, name));
}

TEST("the doctor tells what would mend a backend that is not there")
{
    const std::string path = getenv("PATH");
    CHECK(setenv("PATH", "/nowhere", 1) == 0);
    const dsh::DoctorReport report = dsh::sandbox_doctor();
    const std::uint32_t feature = dsh::feature(dsh::Feature::bubblewrap);
    CHECK(setenv("PATH", path.c_str(), 1) == 0);
    EQUAL(feature, 0U);
    CHECK(!report.backends.at(0).usable && report.backends.at(0).remedy);
}

TEST("confined commands leave no descriptor, no thread and no file behind")
{
    const std::size_t descriptors = check::descriptors(), threads = check::threads();
    for (const Backend backend : both) {
        const Place place(backend);
        dsh::Settings settings = place.settings;
        settings.spill_dir = place.outside();
        {
            const dsh::Executor executor(settings);
            executor.run("true");
            UNTIL(executor.stats().live == 0);
            const std::size_t before = check::descriptors();
            for (int i = 0; i < 10; ++i) {
                const dsh::Process process = executor.start("mktemp > /dev/null; touch /usr/made");
                CHECK(executor.run("mktemp > /dev/null; exit 2").outcome().code == 2);
                process.wait();
                CHECK(process.sandbox() && process.result().sandbox());
            }
            UNTIL(executor.stats().live == 0);
            UNTIL(check::descriptors() == before);
        }
        CHECK(place.untouched());
    }
    CHECK(!dsh::sandbox_doctor().text.empty());
    UNTIL(check::threads() == threads);
    EQUAL(check::descriptors(), descriptors);
}
