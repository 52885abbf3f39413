// A case of a scenario file.
#ifndef SCENARIOS_CASE_HPP
#define SCENARIOS_CASE_HPP

#include "folder.hpp"
#include "printer.hpp"
#include "text.hpp"
#include "words.hpp"

#include <dsh.hpp>

#include <poll.h>
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <ratio>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace scenarios {

// An executor, the terms of the next request, and a process.
class Case {
public:
    // Plays a line. Throws Unknown when it is none that this driver knows.
    void play(const std::string& line)
    {
        std::string_view rest(line);
        const std::string first = word(rest);
        if (first == "config") {
            const std::string key = word(rest);
            config(key, value(rest));
        } else if (first == "set") {
            const std::string key = word(rest);
            set(key, value(rest));
        } else if (first == "fill") {
            const std::string key = word(rest);
            const std::uint64_t count = number(word(rest));
            const std::string text = value(rest);
            std::string filled;
            for (std::uint64_t i = 0; i < count; ++i)
                filled += text;
            set(key, filled);
        } else if (first == "file") {
            const std::string name = word(rest);
            const std::uint64_t mode = number(word(rest), 8);
            make_file(name, static_cast<mode_t>(mode), value(rest));
        } else {
            std::cout << line << '\n';
            try {
                step(first, rest);
            } catch (const dsh::Error& error) {
                printer_.print(error);
            }
        }
    }

private:
    std::string value(std::string_view text) const { return replaced(unescaped(text), "@DIR@", folder_.path()); }

    void config(const std::string& key, const std::string& text)
    {
        if (key == "cwd")
            settings_.cwd = text;
        else if (key == "shell")
            settings_.shell = text;
        else if (key == "spill_dir")
            settings_.spill_dir = text;
        else if (key == "timeout_ms")
            settings_.timeout = time(text);
        else if (key == "max_timeout_ms")
            settings_.max_timeout = time(text);
        else if (key == "grace_ms")
            settings_.grace = time(text);
        else if (key == "drain_ms")
            settings_.drain = time(text);
        else if (key == "max_output_bytes")
            settings_.max_output_bytes = bytes(text);
        else if (key == "max_spill_bytes")
            settings_.max_spill_bytes = bytes(text);
        else if (key == "max_total_spill_bytes")
            settings_.max_total_spill_bytes = bytes(text);
        else if (key == "keep")
            settings_.keep = value_of(text, keeps);
        else if (key == "inherit_env")
            settings_.inherit_env = on(text);
        else if (key == "guard")
            settings_.guard = on(text);
        else if (key == "keep_spill_files")
            settings_.keep_spill_files = on(text);
        else if (key == "env_allow")
            settings_.env_allow.push_back(text);
        else if (key == "env_deny")
            settings_.env_deny.push_back(text);
        else if (key.compare(0, 8, "sandbox.") == 0)
            confine(settings_.sandbox, key.substr(8), text);
        else
            throw Unknown();
    }

    void set(const std::string& key, const std::string& text)
    {
        if (key == "command")
            request_.command = text;
        else if (key == "workdir")
            request_.workdir = text;
        else if (key == "timeout_ms")
            request_.timeout = time(text);
        else if (key == "stdout_max_bytes")
            request_.stdout_max_bytes = bytes(text);
        else if (key == "tag")
            request_.tag = number(text);
        else if (key == "input")
            request_.input = text;
        else if (key == "env")
            request_.env.push_back(variable(text));
        else if (key == "dsh_env")
            request_.dsh_env.push_back(variable(text));
        else if (key == "merge_stderr")
            request_.merge_stderr = on(text);
        else if (key == "survivors")
            request_.survivors = value_of(text, policies);
        else if (key == "cancel")
            request_.cancel = on(text) ? &token_ : nullptr;
        else if (key.compare(0, 8, "sandbox.") == 0)
            confine(request_.sandbox, key.substr(8), text);
        else
            throw Unknown();
    }

    static void confine(std::optional<dsh::Sandbox>& policy, const std::string& key, const std::string& text)
    {
        if (!policy)
            policy.emplace();
        if (key == "mode")
            policy->mode = value_of(text, modes);
        else if (key == "workspace")
            policy->workspace = text;
        else if (key == "writable")
            policy->writable.push_back(text);
        else if (key == "hidden")
            policy->hidden.push_back(text);
        else if (key == "network")
            policy->network = value_of(text, networks);
        else if (key == "backend")
            policy->backends.push_back(value_of(text, backends));
        else if (key == "git_worktree")
            policy->git_worktree = on(text);
        else
            throw Unknown();
    }

    // 0 is the default in the scenarios, as in C.
    static std::optional<std::uint64_t> bytes(std::string_view text)
    {
        const std::uint64_t count = number(text);
        return count == 0 ? std::nullopt : std::optional<std::uint64_t>(count);
    }

    static std::optional<dsh::Duration> time(std::string_view text)
    {
        const std::uint64_t ms = number(text);
        return ms == 0 ? std::nullopt : std::optional<dsh::Duration>(milliseconds(ms));
    }

    static dsh::Duration milliseconds(std::uint64_t count)
    {
        return std::chrono::duration<std::uint64_t, std::milli>(count);
    }

    static dsh::Variable variable(const std::string& entry)
    {
        const std::size_t sign = entry.find('=');
        if (sign == std::string::npos)
            return {entry};
        return {entry.substr(0, sign), entry.substr(sign + 1)};
    }

    void make_file(const std::string& name, mode_t mode, const std::string& text) const
    {
        const std::string path = folder_.path() + '/' + name;
        if (name.back() == '/')
            std::filesystem::create_directories(path);
        else
            std::ofstream(path, std::ios::binary) << text;
        if (chmod(path.c_str(), mode) != 0)
            throw std::runtime_error("can't chmod " + path);
    }

    void step(const std::string& name, std::string_view rest)
    {
        if (name == "run") {
            const dsh::Request request = take_request();
            printer_.print(executor().run(request), request.input.has_value());
        } else if (name == "start") {
            const dsh::Request request = take_request();
            process_ = dsh::Process();
            process_ = executor().start(request);
            has_input_ = request.input.has_value();
            printer_.say("started");
        } else if (name == "resolve") {
            printer_.print(executor().resolve(take_request()));
        } else if (name == "until") {
            const dsh::Stream stream = value_of(word(rest), streams);
            printer_.say(seen(stream, value(rest)) ? "seen" : "ended");
        } else if (name == "wait" && rest.empty()) {
            process_.wait();
            print_process();
        } else if (name == "wait") {
            if (process_.wait_for(milliseconds(number(rest))))
                print_process();
            else
                printer_.say("timed out");
        } else if (name == "read" || name == "read_all") {
            read(name == "read_all");
        } else if (name == "stream") {
            const dsh::Stream stream = value_of(word(rest), streams);
            const std::uint64_t offset = number(word(rest));
            std::string buffer(number(rest), '\0');
            printer_.print(process_.read_stream(stream, offset, buffer));
        } else if (name == "kill") {
            printer_.say(process_.kill() ? "was running" : "was not running");
        } else if (name == "cancel") {
            token_.cancel();
        } else if (name == "quiescent") {
            while (!process_.info().quiescent)
                nap();
        } else if (name == "events") {
            see_events();
        } else if (name == "configure") {
            executor().configure(settings_);
            printer_.say("configured");
        } else if (name == "settings") {
            printer_.print(std::string(rest), executor().settings());
        } else if (name == "shutdown") {
            if (!executor().shutdown())
                printer_.say("error TIMED_OUT");
        } else {
            throw Unknown();
        }
    }

    void print_process() const { printer_.print(process_.info(), process_.sandbox(), has_input_); }

    dsh::Executor& executor()
    {
        if (!executor_) {
            executor_.emplace(settings_);
            events_ = executor_->event_fd();
        }
        return *executor_;
    }

    static void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

    dsh::Request take_request() { return std::exchange(request_, dsh::Request()); }

    bool seen(dsh::Stream stream, const std::string& text) const
    {
        std::string seen;
        std::string buffer(65536, '\0');
        for (std::uint64_t offset = 0;;) {
            const dsh::Reading reading = process_.read_stream(stream, offset, buffer);
            seen += reading.text;
            if (seen.find(text) != std::string::npos)
                return true;
            if (reading.end)
                return false;
            offset = reading.next;
            if (reading.text.empty())
                nap();
        }
    }

    // One consuming read, or all of them as one.
    void read(bool all) const
    {
        if (all)
            process_.wait();
        std::string text;
        std::uint64_t out_missing = 0, err_missing = 0;
        for (;;) {
            const dsh::Chunk chunk = process_.read_output();
            text += chunk.text();
            out_missing += chunk.missing(dsh::Stream::out);
            err_missing += chunk.missing(dsh::Stream::err);
            // Of a process that left its pipes to others the end may never come.
            if (all && !chunk.end() && !chunk.text().empty())
                continue;
            if (out_missing != 0 || err_missing != 0)
                printer_.say("missing " + std::to_string(out_missing) + ' ' + std::to_string(err_missing));
            if (chunk.spill_path(dsh::Stream::out) != nullptr)
                printer_.say("spill out");
            if (chunk.spill_path(dsh::Stream::err) != nullptr)
                printer_.say("spill err");
            if (chunk.end())
                printer_.say("end");
            printer_.say("text " + printer_.shown(text));
            return;
        }
    }

    void see_events() const
    {
        const std::uint64_t id = process_.id();
        std::set<dsh::EventKind> seen;
        while (seen.count(dsh::EventKind::quiescent) == 0) {
            pollfd wanted{events_, POLLIN, 0};
            poll(&wanted, 1, -1);
            while (const auto event = executor_->next_event())
                if (event->process_id == id)
                    seen.insert(event->kind);
        }
        std::string words = "events";
        for (const auto& [kind, name] : kinds)
            if (seen.count(kind) != 0)
                (words += ' ') += name;
        printer_.say(words);
    }

    // In this order: what is below is freed first, the folder last.
    Folder folder_;
    Printer printer_{folder_.path()};
    dsh::CancelToken token_;
    dsh::Settings settings_;
    std::optional<dsh::Executor> executor_;
    int events_ = -1;
    dsh::Request request_;
    dsh::Process process_;
    bool has_input_ = false;
};

} // namespace scenarios

#endif
