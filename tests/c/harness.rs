//! Compiles and runs the C programs of this folder against the library that was built with the test: cargo makes the
//! shared and the static library in the same step as the one that Rust tests are linked to, and in the same folder.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wmissing-field-initializers"];

/// What a static library of Rust needs besides itself on Linux.
const NATIVE_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the libraries that cargo has built together with the one this test is linked to.
pub fn built() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// A folder in which the shared library has the name that programs look for.
fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = scratch().join("lib");
        fs::create_dir_all(&folder).unwrap();
        for name in ["libdsh.so", "libdsh.so.0"] {
            let _ = fs::remove_file(folder.join(name));
            symlink(built().join("libdsh.so"), folder.join(name)).unwrap();
        }
        folder
    })
}

/// A folder of this test's own, used again by its next run.
pub fn scratch() -> PathBuf {
    let test = env::current_exe().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test.file_name().unwrap());
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn compiler() -> Command {
    let mut command = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-std=c11", "-g", "-D_GNU_SOURCE", "-pthread"]).args(WARNINGS).arg("-I").arg(root().join("include"));
    command
}

/// Compiles `tests/c/NAME.c` and links it with the shared library.
pub fn build(name: &str) -> PathBuf {
    build_file(&root().join("tests/c").join(name).with_extension("c"))
}

/// The same with any source file.
pub fn build_file(source: &Path) -> PathBuf {
    let program = scratch().join(source.file_stem().unwrap());
    let mut command = compiler();
    command.arg(source).arg("-o").arg(&program);
    command.arg("-L").arg(installed()).arg(format!("-Wl,-rpath,{}", installed().display()));
    command.args(["-Wl,--as-needed", "-ldsh", "-ldl"]);
    finish(command);
    program
}

/// The same with the static library.
pub fn build_static(name: &str) -> PathBuf {
    let program = scratch().join(format!("{name}-static"));
    let mut command = compiler();
    command.arg(root().join("tests/c").join(name).with_extension("c")).arg("-o").arg(&program);
    command.arg(built().join("libdsh.a")).args(NATIVE_LIBRARIES);
    finish(command);
    program
}

/// Runs a command that has to succeed, and gives what it printed.
pub fn finish(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text
}
