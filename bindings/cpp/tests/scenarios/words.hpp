// The words of scenario files for the values of the library.
#ifndef SCENARIOS_WORDS_HPP
#define SCENARIOS_WORDS_HPP

#include "text.hpp"

#include <dsh.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scenarios {

// The word of a value; words are the same in the other direction.
template <class Value> using Words = std::vector<std::pair<Value, std::string_view>>;

template <class Value> std::string name_of(Value value, const Words<Value>& words)
{
    for (const auto& [known, name] : words)
        if (known == value)
            return std::string(name);
    return std::to_string(static_cast<std::int64_t>(value));
}

template <class Value> Value value_of(std::string_view name, const Words<Value>& words)
{
    for (const auto& [known, its_name] : words)
        if (its_name == name)
            return known;
    throw Unknown();
}

inline const Words<dsh::Keep> keeps{{dsh::Keep::tail, "tail"}, {dsh::Keep::head_tail, "head_tail"}};
inline const Words<dsh::Survivors> policies{{dsh::Survivors::keep, "keep"}, {dsh::Survivors::kill, "kill"}};
inline const Words<dsh::Stream> streams{{dsh::Stream::out, "stdout"}, {dsh::Stream::err, "stderr"}};
inline const Words<dsh::Stop> stops{
    {dsh::Stop::timeout, "timeout"},   {dsh::Stop::cancel, "cancel"},       {dsh::Stop::kill, "kill"},
    {dsh::Stop::shutdown, "shutdown"}, {dsh::Stop::survivors, "survivors"},
};
inline const Words<dsh::StopStage> stages{{dsh::StopStage::term, "term"}, {dsh::StopStage::kill, "kill"}};
inline const Words<dsh::ProcessStatus> statuses{
    {dsh::ProcessStatus::running, "running"},
    {dsh::ProcessStatus::completed, "completed"},
    {dsh::ProcessStatus::killed, "killed"},
};
inline const Words<dsh::SandboxMode> modes{
    {dsh::SandboxMode::read_only, "read-only"},
    {dsh::SandboxMode::workspace_write, "workspace-write"},
    {dsh::SandboxMode::danger_full_access, "danger-full-access"},
};
inline const Words<dsh::Network> networks{
    {dsh::Network::full, "full"},
    {dsh::Network::loopback, "loopback"},
    {dsh::Network::none, "none"},
};
inline const Words<dsh::Backend> backends{
    {dsh::Backend::bubblewrap, "bubblewrap"},
    {dsh::Backend::landlock, "landlock"},
    {dsh::Backend::seatbelt, "seatbelt"},
    {dsh::Backend::runner, "runner"},
};
inline const Words<dsh::Enforcement> enforcements{
    {dsh::Enforcement::none, "none"},
    {dsh::Enforcement::full, "full"},
    {dsh::Enforcement::partial, "partial"},
};
inline const Words<dsh::Denied> denials{
    {dsh::Denied::unknown, "unknown"},
    {dsh::Denied::no, "no"},
    {dsh::Denied::yes, "yes"},
};
inline const Words<dsh::EventKind> kinds{
    {dsh::EventKind::output, "OUTPUT"},
    {dsh::EventKind::exit, "EXIT"},
    {dsh::EventKind::settled, "SETTLED"},
    {dsh::EventKind::quiescent, "QUIESCENT"},
};
inline const Words<dsh::ErrorCode> codes{
    {dsh::ErrorCode::null, "NULL"},
    {dsh::ErrorCode::invalid, "INVALID"},
    {dsh::ErrorCode::structure, "STRUCT"},
    {dsh::ErrorCode::flags, "FLAGS"},
    {dsh::ErrorCode::command_nul, "COMMAND_NUL"},
    {dsh::ErrorCode::env_name, "ENV_NAME"},
    {dsh::ErrorCode::env_reserved, "ENV_RESERVED"},
    {dsh::ErrorCode::env_too_big, "ENV_TOO_BIG"},
    {dsh::ErrorCode::workdir_missing, "WORKDIR_MISSING"},
    {dsh::ErrorCode::workdir_not_dir, "WORKDIR_NOT_DIR"},
    {dsh::ErrorCode::workdir_denied, "WORKDIR_DENIED"},
    {dsh::ErrorCode::workdir_unusable, "WORKDIR_UNUSABLE"},
    {dsh::ErrorCode::shell_missing, "SHELL_MISSING"},
    {dsh::ErrorCode::cancelled, "CANCELLED"},
    {dsh::ErrorCode::shutdown, "SHUTDOWN"},
    {dsh::ErrorCode::spawn, "SPAWN"},
    {dsh::ErrorCode::sandbox_unavailable, "SANDBOX_UNAVAILABLE"},
    {dsh::ErrorCode::timed_out, "TIMED_OUT"},
    {dsh::ErrorCode::system, "SYSTEM"},
    {dsh::ErrorCode::out_of_memory, "OUT_OF_MEMORY"},
    {dsh::ErrorCode::forked, "FORKED"},
    {dsh::ErrorCode::panic, "PANIC"},
};

} // namespace scenarios

#endif
