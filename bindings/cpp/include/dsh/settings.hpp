// Budgets: what an executor allows.
#ifndef DSH_SETTINGS_HPP
#define DSH_SETTINGS_HPP

#include "duration.hpp"
#include "sandbox.hpp"

#include <dsh.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsh {

/// Which part of a stream stays in memory once it is longer than its cap.
enum class Keep : std::uint32_t {
    /// The last bytes: errors and results come at the end.
    tail = DSH_KEEP_TAIL,
    /// Half the cap from the beginning, half from the end, and the exact count of what was left out between.
    head_tail = DSH_KEEP_HEAD_TAIL,
};

/// What an executor is to allow. What is left empty means the default, an explicit zero is refused.
/// Executor::settings() gives it with every default filled in, save for a `cwd` that follows the host's.
struct Settings {
    /// Working directory of requests that name none, and the base of relative ones. Default: the host's, at each call.
    std::optional<std::string> cwd{};
    /// The shell, a bash; a name without `/` is looked for in PATH, once. Default "bash".
    std::optional<std::string> shell{};
    /// Where the private directory for spill files is made. Can't change while the executor lives. Default: TMPDIR of
    /// the host, or /tmp.
    std::optional<std::string> spill_dir{};
    /// Whether commands get the host's environment, without what looks like credentials.
    bool inherit_env = true;
    /// Globs (`*`, `?`) on names of host variables that are passed on although they look like credentials.
    std::vector<std::string> env_allow{};
    /// Globs on names of host variables that are not passed on.
    std::vector<std::string> env_deny{};
    /// Timeout of foreground requests that name none. Default 2 minutes.
    std::optional<Duration> timeout{};
    /// The most that any request gets; it caps the default too. Default 10 minutes.
    std::optional<Duration> max_timeout{};
    /// Time from SIGTERM to SIGKILL. Default 3 seconds.
    std::optional<Duration> grace{};
    /// How long open pipes are waited for after the shell has exited. Default: as `grace`.
    std::optional<Duration> drain{};
    /// Bytes of each stream kept in memory. Default 64,000.
    std::optional<std::uint64_t> max_output_bytes{};
    /// Bytes of each stream kept on disk; a longer stream has no spill file. Default 67,108,864.
    std::optional<std::uint64_t> max_spill_bytes{};
    /// Bytes of all spill files together, beyond which no new one is begun. Default 1,073,741,824.
    std::optional<std::uint64_t> max_total_spill_bytes{};
    /// Which part of a long stream stays in memory.
    Keep keep = Keep::tail;
    /// Whether commands are ended when the host dies.
    bool guard = true;
    /// Whether spill files are left behind when the executor ends.
    bool keep_spill_files = false;
    /// The policy under which commands are confined, where their requests say nothing else. Empty: no confinement.
    std::optional<Sandbox> sandbox{};
};

} // namespace dsh

#endif
