//! Builds the programs that the library embeds: the guard (`src/tree/guard`) and the warden (`src/sandbox/warden`).
//!
//! They are freestanding, so they need nothing but `core`, `alloc` and a linker: no C library of the target, no sysroot
//! of their own, and no flags of the surrounding build (a sanitizer, say, has no business in them).

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [Program; 2] = [
    Program { name: "guard", source: "src/tree/guard/program.rs" },
    Program { name: "warden", source: "src/sandbox/warden/program.rs" },
];
const SOURCES: [&str; 4] = ["src/sandbox/warden", "src/tree/guard", "src/tree/table", "src/tree/sys.rs"];

struct Program {
    name: &'static str,
    source: &'static str,
}

/// Compiles the programs for the target and says where they are: `cfg(dsh_guard)` and the variables
/// `DSH_GUARD_PROGRAM` and `DSH_WARDEN_PROGRAM`. Where one of them can't be had (another system or architecture, or a
/// toolchain that can't), the library is built without both.
pub fn compile() {
    println!("cargo:rustc-check-cfg=cfg(dsh_guard)");
    println!("cargo:rustc-check-cfg=cfg(dsh_guard_program)");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    println!("cargo:rerun-if-changed=build/programs.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    if !is_target_supported() {
        return;
    }
    match compile_all() {
        Ok(variables) => {
            println!("cargo:rustc-cfg=dsh_guard");
            variables.iter().for_each(|variable| println!("cargo:rustc-env={variable}"));
        }
        Err(reason) => {
            println!(
                "cargo:warning=the library is built without its guard (host death ends no command) and without \
                 bubblewrap: {reason}"
            );
        }
    }
}

fn is_target_supported() -> bool {
    let is = |variable, value| env::var(variable).is_ok_and(|found| found == value);
    let architecture = is("CARGO_CFG_TARGET_ARCH", "x86_64") || is("CARGO_CFG_TARGET_ARCH", "aarch64");
    architecture && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENDIAN", "little")
}

/// The variables that say where the programs are.
fn compile_all() -> Result<Vec<String>, String> {
    let missing = |error: env::VarError| error.to_string();
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").map_err(missing)?;
    let folder = PathBuf::from(env::var("OUT_DIR").map_err(missing)?);
    let compiled = PROGRAMS.iter().map(|program| {
        let file = folder.join(format!("dsh-{}", program.name));
        compile_any_way(program, &architecture, &file)?;
        Ok(format!("DSH_{}_PROGRAM={}", program.name.to_uppercase(), file.display()))
    });
    compiled.collect()
}

/// Tries each way that may work, the likeliest first; the reason is that of the first one.
fn compile_any_way(program: &Program, architecture: &str, file: &Path) -> Result<(), String> {
    let rustc = Rustc(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let mut targets = vec![env::var("TARGET").map_err(|error| error.to_string())?];
    // The programs call the kernel and nothing else, so a `core` for any Linux of this architecture is as good.
    for libc in ["gnu", "musl"] {
        let other = format!("{architecture}-unknown-linux-{libc}");
        if !targets.contains(&other) {
            targets.push(other);
        }
    }
    let with_core: Vec<&String> = targets.iter().filter(|target| rustc.has_core(target)).collect();
    if with_core.is_empty() {
        return Err(format!("the toolchain has no core library for {}", targets.join(" or ")));
    }
    let mut linkers = Vec::new();
    linkers.extend(rustc.own_linker().map(Linker::Own));
    linkers.extend(env::var_os("RUSTC_LINKER").map(Linker::Compiler));
    linkers.push(Linker::Compiler("cc".into()));
    let mut reason = None;
    for target in with_core {
        for linker in &linkers {
            match rustc.compile(program, target, linker, file) {
                Ok(()) => return Ok(()),
                Err(error) => reason = reason.or(Some(error)),
            }
        }
    }
    Err(reason.unwrap_or_default())
}

enum Linker {
    /// The one that comes with the toolchain: links for any architecture.
    Own(PathBuf),
    /// A C compiler that links for the target.
    Compiler(OsString),
}

struct Rustc(OsString);

impl Rustc {
    /// The program as it is delivered: small, at a fixed address, without start files and libraries.
    fn compile(&self, program: &Program, target: &str, linker: &Linker, file: &Path) -> Result<(), String> {
        let mut command = self.command();
        command.args(["--edition=2021", "--crate-type=bin", "--cfg=dsh_guard_program"]);
        command.arg(format!("--crate-name=dsh_{}", program.name));
        command.args(["--target", target, "-Cpanic=abort", "-Copt-level=s", "-Clto=fat", "-Cembed-bitcode=yes"]);
        command.args(["-Ccodegen-units=1", "-Cdebuginfo=0", "-Cstrip=symbols"]);
        command.args(["-Crelocation-model=static", "-Ctarget-feature=+crt-static", "-Cforce-unwind-tables=no"]);
        if target.ends_with("musl") {
            // No start files of the toolchain's own; other targets have none, and refuse the option.
            command.arg("-Clink-self-contained=no");
        }
        match linker {
            Linker::Own(path) => {
                command.arg("-Clinker-flavor=ld.lld").arg("-C").arg(option("linker", path.as_os_str()));
                command.args(["-Clink-arg=--build-id=none", "-Clink-arg=-znorelro"]);
            }
            Linker::Compiler(path) => {
                command.arg("-Clinker-flavor=gcc").arg("-C").arg(option("linker", path));
                command.args(["-Clink-arg=-nostartfiles", "-Clink-arg=-nostdlib", "-Clink-arg=-static"]);
                command.args(["-Clink-arg=-Wl,--build-id=none"]);
            }
        }
        run(command.arg("-o").arg(file).arg(program.source)).map(|_| ())
    }

    fn has_core(&self, target: &str) -> bool {
        let libraries = run(self.command().args(["--print=target-libdir", "--target", target]));
        let entries = libraries.ok().and_then(|path| std::fs::read_dir(path).ok());
        entries.is_some_and(|entries| {
            entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
        })
    }

    fn own_linker(&self) -> Option<PathBuf> {
        let sysroot = run(self.command().arg("--print=sysroot")).ok()?;
        let linker = Path::new(&sysroot).join("lib/rustlib").join(env::var("HOST").ok()?).join("bin/rust-lld");
        linker.exists().then_some(linker)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "SDKROOT"] {
            command.env_remove(variable);
        }
        command
    }
}

fn option(name: &str, value: &OsStr) -> OsString {
    let mut option = OsString::from(name);
    option.push("=");
    option.push(value);
    option
}

/// Runs to the end; standard output without the newline, or the reason for the failure.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let first = errors.lines().find(|line| line.contains("error")).unwrap_or("no message");
    Err(format!("rustc failed ({}): {first}", output.status))
}
