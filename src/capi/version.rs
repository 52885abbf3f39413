//! Which library this is, and what the system lets it do.

use std::ffi::c_char;

use crate::feature::Feature;

/// The major version of the header.
#[cfg_attr(not(test), expect(dead_code, reason = "for the header"))]
pub const DSH_VERSION_MAJOR: i32 = 0;
/// The minor version of the header.
#[cfg_attr(not(test), expect(dead_code, reason = "for the header"))]
pub const DSH_VERSION_MINOR: i32 = 1;
/// The patch level of the header.
#[cfg_attr(not(test), expect(dead_code, reason = "for the header"))]
pub const DSH_VERSION_PATCH: i32 = 0;
/// The version of the binary interface: the number in the soname (`libdsh.so.0`). Within one number, functions and
/// constants are only added and structs only grow at their end.
pub const DSH_ABI_VERSION: u32 = 0u32;

/// Something that not every system can.
pub type dsh_feature_t = u32;
/// Processes can be held by descriptor (pidfd), so that no other process is ever signalled by mistake.
pub const DSH_FEATURE_PIDFD: dsh_feature_t = 1u32;
/// Children are created without copying the host's page tables. Without it a plain fork is used, which is slower in
/// a big host. The first question creates a child that ends at once.
pub const DSH_FEATURE_VFORK: dsh_feature_t = 2u32;
/// The library was built with its guard, which ends commands when the host dies.
pub const DSH_FEATURE_GUARD: dsh_feature_t = 3u32;
/// The kernel has Landlock, of this version.
pub const DSH_FEATURE_LANDLOCK: dsh_feature_t = 4u32;
/// `bwrap` is in PATH. Whether it works is for dsh_sandbox_doctor() to say.
pub const DSH_FEATURE_BUBBLEWRAP: dsh_feature_t = 5u32;

/// The version of the library that was loaded, such as "0.1.0". Static text. Any thread; does not block.
#[no_mangle]
pub extern "C" fn dsh_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The `DSH_ABI_VERSION` of the library that was loaded. Any thread; does not block.
#[no_mangle]
pub extern "C" fn dsh_abi_version() -> u32 {
    DSH_ABI_VERSION
}

/// What this build on this system can: 0 when it can't, and when the number names no feature that this version knows;
/// otherwise 1, or the version of the system's interface where it has versions.
///
/// Any thread; does not block.
#[no_mangle]
pub extern "C" fn dsh_feature(feature: dsh_feature_t) -> u32 {
    let feature = match feature {
        DSH_FEATURE_PIDFD => Feature::Pidfd,
        DSH_FEATURE_VFORK => Feature::Vfork,
        DSH_FEATURE_GUARD => Feature::Guard,
        DSH_FEATURE_LANDLOCK => Feature::Landlock,
        DSH_FEATURE_BUBBLEWRAP => Feature::Bubblewrap,
        _ => return 0,
    };
    std::panic::catch_unwind(|| feature.level()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_version_of_the_crate() {
        let version = format!("{DSH_VERSION_MAJOR}.{DSH_VERSION_MINOR}.{DSH_VERSION_PATCH}");
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
    }
}
