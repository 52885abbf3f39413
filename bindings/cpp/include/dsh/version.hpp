// Which library this is, and what the system lets it do.
#ifndef DSH_VERSION_HPP
#define DSH_VERSION_HPP

#include <dsh.h>

#include <cstdint>

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error "dsh.hpp needs C++17"
#endif

namespace dsh {

/// Something that not every system can.
enum class Feature : std::uint32_t {
    /// Processes can be held by descriptor, so that no other process is ever signalled by mistake.
    pidfd = DSH_FEATURE_PIDFD,
    /// Children are created without copying the host's page tables.
    vfork = DSH_FEATURE_VFORK,
    /// The library was built with its guard, which ends commands when the host dies.
    guard = DSH_FEATURE_GUARD,
    /// The kernel has Landlock, of this version.
    landlock = DSH_FEATURE_LANDLOCK,
    /// `bwrap` is in PATH. Whether it works is for sandbox_doctor() to say.
    bubblewrap = DSH_FEATURE_BUBBLEWRAP,
};

/// The version of the library that was loaded, such as "0.1.0". Static text. Any thread; does not block.
[[nodiscard]] inline const char* version() noexcept { return dsh_version(); }

/// The version of the binary interface that was loaded; compare with DSH_ABI_VERSION. Any thread; does not block.
[[nodiscard]] inline std::uint32_t abi_version() noexcept { return dsh_abi_version(); }

/// What this build on this system can: 0 when it can't, otherwise 1, or the version of the system's interface where it
/// has versions. Any thread; does not block.
[[nodiscard]] inline std::uint32_t feature(Feature feature) noexcept
{
    return dsh_feature(static_cast<dsh_feature_t>(feature));
}

} // namespace dsh

#endif
