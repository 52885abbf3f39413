// Options as the C interface takes them.
#ifndef DSH_DETAIL_PACK_HPP
#define DSH_DETAIL_PACK_HPP

#include "../duration.hpp"
#include "../error.hpp"
#include "../request.hpp"
#include "../settings.hpp"
#include "packed_sandbox.hpp"
#include "packer.hpp"

#include <dsh.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <vector>

namespace dsh::detail {

inline std::vector<const char*> pointers_to(const std::vector<std::string>& texts)
{
    std::vector<const char*> pointers;
    for (const std::string& text : texts)
        pointers.push_back(text.c_str());
    return pointers;
}

/// A request for the C interface. Points into the Request that it was made of.
class PackedRequest {
public:
    explicit PackedRequest(const Request& request)
        : env_(packer_.entries("env", request.env)), dsh_env_(packer_.entries("dsh_env", request.dsh_env)),
          env_pointers_(pointers_to(env_)), dsh_env_pointers_(pointers_to(dsh_env_)), sandbox_(packer_, request.sandbox)
    {
        c_.command = request.command.data();
        c_.command_len = request.command.size();
        c_.workdir = packer_.text("workdir", request.workdir);
        if (request.input) {
            c_.input = request.input->data();
            c_.input_len = request.input->size();
        }
        c_.env = env_pointers_.data();
        c_.env_len = env_pointers_.size();
        c_.dsh_env = dsh_env_pointers_.data();
        c_.dsh_env_len = dsh_env_pointers_.size();
        c_.cancel = packer_.token("cancel", request.cancel);
        c_.timeout_ms = packer_.time("timeout", request.timeout);
        c_.stdout_max_bytes = packer_.bytes("stdout_max_bytes", request.stdout_max_bytes);
        c_.tag = request.tag;
        c_.flags =
            (request.merge_stderr ? DSH_REQUEST_MERGE_STDERR : 0) | (request.foreground ? DSH_REQUEST_FOREGROUND : 0);
        c_.survivors = static_cast<dsh_survivors_t>(request.survivors);
        c_.sandbox = sandbox_.get();
    }
    PackedRequest(const PackedRequest&) = delete;
    PackedRequest& operator=(const PackedRequest&) = delete;

    [[nodiscard]] const std::optional<Error>& error() const noexcept { return packer_.error(); }
    [[nodiscard]] const dsh_request_t* get() const noexcept { return &c_; }

private:
    Packer packer_;
    std::vector<std::string> env_, dsh_env_;
    std::vector<const char*> env_pointers_, dsh_env_pointers_;
    PackedSandbox sandbox_;
    dsh_request_t c_ = DSH_REQUEST_INIT;
};

/// A config for the C interface. Points into the Settings that it was made of.
class PackedSettings {
public:
    explicit PackedSettings(const Settings& settings)
        : env_allow_(packer_.texts("env_allow", settings.env_allow)),
          env_deny_(packer_.texts("env_deny", settings.env_deny)), sandbox_(packer_, settings.sandbox)
    {
        c_.cwd = packer_.text("cwd", settings.cwd);
        c_.shell = packer_.text("shell", settings.shell);
        c_.spill_dir = packer_.text("spill_dir", settings.spill_dir);
        c_.env_allow = env_allow_.data();
        c_.env_allow_len = env_allow_.size();
        c_.env_deny = env_deny_.data();
        c_.env_deny_len = env_deny_.size();
        c_.timeout_ms = packer_.time("timeout", settings.timeout);
        c_.max_timeout_ms = packer_.time("max_timeout", settings.max_timeout);
        c_.max_output_bytes = packer_.bytes("max_output_bytes", settings.max_output_bytes);
        c_.max_spill_bytes = packer_.bytes("max_spill_bytes", settings.max_spill_bytes);
        c_.max_total_spill_bytes = packer_.bytes("max_total_spill_bytes", settings.max_total_spill_bytes);
        c_.grace_ms = packer_.time("grace", settings.grace);
        c_.drain_ms = packer_.time("drain", settings.drain);
        c_.flags = (settings.inherit_env ? 0 : DSH_CONFIG_NO_INHERIT_ENV) | (settings.guard ? 0 : DSH_CONFIG_NO_GUARD) |
                   (settings.keep_spill_files ? DSH_CONFIG_KEEP_SPILL_FILES : 0);
        c_.keep = static_cast<dsh_keep_t>(settings.keep);
        c_.sandbox = sandbox_.get();
    }
    PackedSettings(const PackedSettings&) = delete;
    PackedSettings& operator=(const PackedSettings&) = delete;

    [[nodiscard]] const std::optional<Error>& error() const noexcept { return packer_.error(); }
    [[nodiscard]] const dsh_config_t* get() const noexcept { return &c_; }

private:
    Packer packer_;
    std::vector<const char*> env_allow_, env_deny_;
    PackedSandbox sandbox_;
    dsh_config_t c_ = DSH_CONFIG_INIT;
};

/// Settings of a config that the C interface filled in.
inline Settings settings_of(const dsh_config_t& c)
{
    const auto text = [](const char* given) { return given ? std::optional<std::string>(given) : std::nullopt; };
    const auto time = [](std::uint64_t ms) { return Duration(std::chrono::duration<std::uint64_t, std::milli>(ms)); };
    Settings settings;
    settings.cwd = text(c.cwd);
    settings.shell = text(c.shell);
    settings.spill_dir = text(c.spill_dir);
    settings.inherit_env = (c.flags & DSH_CONFIG_NO_INHERIT_ENV) == 0;
    settings.env_allow.assign(c.env_allow, c.env_allow + c.env_allow_len);
    settings.env_deny.assign(c.env_deny, c.env_deny + c.env_deny_len);
    settings.timeout = time(c.timeout_ms);
    settings.max_timeout = time(c.max_timeout_ms);
    settings.grace = time(c.grace_ms);
    settings.drain = time(c.drain_ms);
    settings.max_output_bytes = c.max_output_bytes;
    settings.max_spill_bytes = c.max_spill_bytes;
    settings.max_total_spill_bytes = c.max_total_spill_bytes;
    settings.keep = static_cast<Keep>(c.keep);
    settings.guard = (c.flags & DSH_CONFIG_NO_GUARD) == 0;
    settings.keep_spill_files = (c.flags & DSH_CONFIG_KEEP_SPILL_FILES) != 0;
    settings.sandbox = sandbox_of(c.sandbox);
    return settings;
}

} // namespace dsh::detail

#endif
