//! The header and the exports of the library are what is committed, and fit every C and C++ standard.

#[path = "c/harness.rs"]
#[allow(dead_code)]
mod harness;

use std::fs;
use std::process::Command;

use harness::{built, finish, root, scratch, WARNINGS};

#[test]
fn the_committed_header_is_what_the_source_says() {
    let generated = include_str!(concat!(env!("OUT_DIR"), "/dsh.h"));
    let path = root().join("include/dsh.h");
    if std::env::var_os("DSH_UPDATE_HEADER").is_some() {
        fs::write(&path, generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    assert!(committed == generated, "include/dsh.h is not up to date: run `make header` and commit it");
}

#[test]
fn the_header_compiles_alone_and_twice_in_every_standard() {
    for (compiler, language, standard) in
        [("cc", "c", "c99"), ("cc", "c", "c11"), ("cc", "c", "c17"), ("c++", "c++", "c++17")]
    {
        let compile = || {
            let mut command = Command::new(compiler);
            command.args(["-x", language]).arg(format!("-std={standard}")).args(WARNINGS);
            command.arg("-Wpadded").arg("-I").arg(root().join("include"));
            command
        };
        let mut alone = compile();
        alone.args(["-fsyntax-only", "-include", "dsh.h", "/dev/null"]);
        finish(alone);
        let program = scratch().join(format!("header-{standard}"));
        let mut twice = compile();
        twice.arg(root().join("tests/c/header.c")).arg("-o").arg(&program);
        finish(twice);
        finish(Command::new(program));
    }
}

#[test]
fn the_header_has_a_word_for_everything_that_it_declares() {
    let header = fs::read_to_string(root().join("include/dsh.h")).unwrap();
    let (_, body) = header.split_once("extern \"C\" {\n#endif").unwrap();
    let (body, _) = body.split_once("#ifdef __cplusplus").unwrap();
    let mut before = "";
    for line in body.lines() {
        let indent = line.len() - line.trim_start().len();
        // What is indented further continues the parameters of a function.
        let declares = indent <= 4 && !line.is_empty() && !line.trim_start().starts_with(['/', '}']);
        assert!(!declares || before.trim_start().starts_with("/// "), "without a word: {line}");
        before = line;
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_library_exports_what_is_listed_and_nothing_else() {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--format=just-symbols"]).arg(built().join("libdsh.so"));
    let printed = finish(nm);
    let mut exported: Vec<&str> = printed.lines().collect();
    exported.sort_unstable();
    let listed = fs::read_to_string(root().join("tests/abi/symbols.txt")).unwrap();
    assert_eq!(exported, listed.lines().collect::<Vec<_>>());
    let header = fs::read_to_string(root().join("include/dsh.h")).unwrap();
    for symbol in exported {
        assert!(header.contains(&format!("{symbol}(")), "{symbol} is not in the header");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_library_has_its_soname_and_is_never_unloaded() {
    let mut readelf = Command::new("readelf");
    readelf.arg("-d").arg(built().join("libdsh.so"));
    let printed = finish(readelf);
    assert!(printed.contains("Library soname: [libdsh.so.0]"), "{printed}");
    assert!(printed.lines().any(|line| line.contains("FLAGS_1") && line.contains("NODELETE")), "{printed}");
}
