//! Builds the programs that the library embeds, generates the C header, and names the shared library.

use std::env;

#[path = "build/header.rs"]
mod header;
#[path = "build/programs.rs"]
mod programs;

fn main() {
    programs::compile();
    header::generate().expect("the C header can be generated from src/capi");
    name_shared_library();
}

/// The soname, and no unloading: after `dlclose` of a Rust library its thread-local destructors would be gone when the
/// host's threads end.
fn name_shared_library() {
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libdsh.so.0");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
