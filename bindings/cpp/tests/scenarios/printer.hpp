// What happened, in the form of scenario files.
#ifndef SCENARIOS_PRINTER_HPP
#define SCENARIOS_PRINTER_HPP

#include "text.hpp"
#include "words.hpp"

#include <dsh.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scenarios {

// Prints result lines to stdout, with the case's folder as `@DIR@`.
class Printer {
public:
    explicit Printer(std::string folder) : folder_(std::move(folder)) {}

    static void say(const std::string& words) { std::cout << "= " << words << '\n'; }

    void print(const dsh::Error& error) const
    {
        std::string words = "error " + name_of(error.code(), codes) + " stage=" + error.stage();
        if (error.error_number() != 0)
            words += " errno=" + std::to_string(error.error_number());
        say(words + ' ' + shown(error.what()));
    }

    void print(const dsh::Result& result, bool has_input) const
    {
        print(result.outcome(), false, result.held_by().size(), result.survivors().size());
        print(result.sandbox(), true);
        print("stdout", result.out());
        print("stderr", result.err());
        if (result.timeout() != std::chrono::minutes(2))
            say("timeout " + std::to_string(result.timeout().count()));
        if (has_input)
            say("input " + std::to_string(result.input_written()));
        print_scrubbed(result.scrubbed());
    }

    void print(const dsh::ProcessInfo& info, const std::optional<dsh::Confinement>& sandbox, bool has_input) const
    {
        say("status " + name_of(info.status, statuses));
        print(info.outcome, true, info.held_by, info.survivors);
        print(sandbox, info.status != dsh::ProcessStatus::running);
        if (info.out_total != 0)
            say("out " + std::to_string(info.out_total));
        if (info.err_total != 0)
            say("err " + std::to_string(info.err_total));
        if (has_input)
            say("input " + std::to_string(info.input_written));
        if (info.tag != 0)
            say("tag " + std::to_string(info.tag));
    }

    void print(const dsh::Reading& reading) const
    {
        std::string words = "start " + std::to_string(reading.start) + " next " + std::to_string(reading.next);
        if (reading.missing != 0)
            words += " missing " + std::to_string(reading.missing);
        say(words);
        if (reading.end)
            say("end");
        say("text " + shown(reading.text));
    }

    void print(const dsh::Spec& spec) const
    {
        say("command " + shown(spec.command().substr(0, 60)));
        say("workdir " + shown(spec.workdir()));
        say("timeout " + std::to_string(spec.timeout().count()));
        say("stdout max " + std::to_string(spec.stdout_max_bytes()));
        say("max output " + std::to_string(spec.max_output_bytes()));
        say("grace " + std::to_string(spec.grace().count()));
        say("drain " + std::to_string(spec.drain().count()));
        say("survivors " + name_of(spec.survivors(), policies));
        if (spec.sandbox_mode())
            say("sandbox " + name_of(*spec.sandbox_mode(), modes));
        if (spec.merge_stderr())
            say("merge_stderr");
        if (spec.tag() != 0)
            say("tag " + std::to_string(spec.tag()));
        print_scrubbed(spec.scrubbed());
    }

    void print(const std::string& key, const dsh::Settings& settings) const
    {
        const auto ms = [](const std::optional<dsh::Duration>& time) { return std::to_string(time->count()); };
        const auto on_off = [](bool on) { return std::string(on ? "on" : "off"); };
        std::string value;
        if (key == "cwd")
            value = settings.cwd.value_or("");
        else if (key == "shell")
            value = settings.shell.value_or("");
        else if (key == "spill_dir")
            value = settings.spill_dir.value_or("");
        else if (key == "timeout_ms")
            value = ms(settings.timeout);
        else if (key == "max_timeout_ms")
            value = ms(settings.max_timeout);
        else if (key == "grace_ms")
            value = ms(settings.grace);
        else if (key == "drain_ms")
            value = ms(settings.drain);
        else if (key == "max_output_bytes")
            value = std::to_string(*settings.max_output_bytes);
        else if (key == "max_spill_bytes")
            value = std::to_string(*settings.max_spill_bytes);
        else if (key == "max_total_spill_bytes")
            value = std::to_string(*settings.max_total_spill_bytes);
        else if (key == "keep")
            value = name_of(settings.keep, keeps);
        else if (key == "inherit_env")
            value = on_off(settings.inherit_env);
        else if (key == "guard")
            value = on_off(settings.guard);
        else if (key == "keep_spill_files")
            value = on_off(settings.keep_spill_files);
        else if (key == "sandbox.mode")
            value = settings.sandbox ? name_of(settings.sandbox->mode.value(), modes) : "none";
        else
            throw Unknown();
        say(key + ' ' + replaced(value, folder_, "@DIR@"));
    }

    std::string shown(std::string_view bytes) const { return escaped(replaced(std::string(bytes), folder_, "@DIR@")); }

private:
    void print(const dsh::Outcome& outcome, bool always, std::size_t held_by, std::size_t survivors) const
    {
        if (outcome.code && (always || outcome.code != 0))
            say("exit code " + std::to_string(*outcome.code));
        if (outcome.signal)
            say("exit signal " + std::to_string(*outcome.signal));
        if (outcome.exit == dsh::Exit::unknown)
            say("exit unknown");
        if (outcome.timed_out)
            say("timed out");
        if (outcome.aborted)
            say("aborted");
        if (outcome.cause != dsh::Stop::none)
            say("cause " + name_of(outcome.cause, stops));
        if (outcome.stopped_by != dsh::Stop::none)
            say("stopped by " + name_of(outcome.stopped_by, stops));
        if (outcome.stage != dsh::StopStage::none)
            say("stage " + name_of(outcome.stage, stages));
        if (outcome.pipes_held)
            say("pipes held");
        if (held_by != 0)
            say("held by " + std::to_string(held_by));
        if (survivors != 0)
            say("survivors " + std::to_string(survivors));
    }

    void print(const std::optional<dsh::Confinement>& facts, bool settled) const
    {
        if (!facts)
            return;
        const std::string backend = facts->backend ? name_of(*facts->backend, backends) : "none";
        say("sandbox " + name_of(facts->mode, modes) + ' ' + backend + ' ' + name_of(facts->enforcement, enforcements) +
            ' ' + name_of(facts->network, networks));
        std::string missing;
        for (const std::string& name : facts->missing)
            (missing += ' ') += name;
        if (!missing.empty())
            say("missing" + missing);
        if (facts->runner_failed) {
            say("runner failed");
        } else if (settled) {
            say("denied " + name_of(facts->denied, denials));
            if (facts->denial)
                say("denied path " + shown(facts->denial->path) + " rule " + shown(facts->denial->rule));
        }
    }

    void print(const std::string& name, const dsh::Captured& stream) const
    {
        if (stream.total == 0)
            return;
        std::string words = name + " total=" + std::to_string(stream.total);
        if (stream.omitted != 0)
            words += " omitted=" + std::to_string(stream.omitted);
        if (stream.omitted_at != 0)
            words += " at=" + std::to_string(stream.omitted_at);
        if (stream.spill_path != nullptr)
            words += holds(stream.spill_path, stream.total) ? " spill=whole" : " spill=broken";
        else if (stream.spill_error != nullptr)
            words += " spill=failed";
        say(words + ' ' + shown(stream.text));
    }

    void print_scrubbed(std::vector<std::string_view> names) const
    {
        std::sort(names.begin(), names.end());
        std::string words;
        for (const std::string_view name : names)
            if (name.substr(0, 9) == "SCENARIO_")
                (words += ' ') += name;
        if (!words.empty())
            say("scrubbed" + words);
    }

    static bool holds(const char* path, std::uint64_t total)
    {
        struct stat file = {};
        return stat(path, &file) == 0 && static_cast<std::uint64_t>(file.st_size) == total &&
               (file.st_mode & 07777) == 0600;
    }

    std::string folder_;
};

} // namespace scenarios

#endif
