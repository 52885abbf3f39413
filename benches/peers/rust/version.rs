//! Which compiler, and so which standard library, a benchmark was built with.

use std::process::Command;

fn main() {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    println!("cargo:rerun-if-changed=peers/rust/version.rs");
    println!("cargo:rustc-env=BENCH_RUSTC={}", text.split(' ').nth(1).unwrap_or("of unknown version"));
}
