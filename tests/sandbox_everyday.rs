//! What a workspace is for: version control, builds, package managers and servers work in it, under each backend.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/confined.rs"]
mod confined;

use common::*;
use confined::*;
use dsh::{Mode, Request};

/// Runs the command under each backend; it has to succeed, and its stdout has to contain the words.
#[track_caller]
fn works(command: &str, words: &str) {
    works_with(command, words, |_| {});
}

#[track_caller]
fn works_with(command: &str, words: &str, change: impl Fn(&mut Request)) {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let result = place.run_with(command, |request| {
            request.timeout_ms = 300_000;
            // What tools keep in the home of their user, they find in the workspace.
            request.env.push(("HOME".into(), Some(place.workspace.clone().into())));
            change(request);
        });
        let (out, err) = (text(&result.stdout), text(&result.stderr));
        assert_eq!(code(&result), Some(0), "{backend}: {out}{err}");
        assert!(out.contains(words), "{backend}: {out}{err}");
    }
}

#[test]
fn git_makes_a_repository_and_commits() {
    let identity = "git config --global user.name a && git config --global user.email a@b";
    works(&format!("{identity} && git init -q r && cd r && echo x > x && git add -A && git commit -qm first && git log --oneline && git gc -q && git status"), "first");
}

#[test]
fn npm_installs_a_local_package() {
    let command = "mkdir package && cd package && echo '{\"name\":\"local\",\"version\":\"1.0.0\",\"bin\":\"run.js\"}' > package.json && \
                   printf '#!/usr/bin/env node\\nconsole.log(\"from the package\")\\n' > run.js && cd .. && mkdir app && cd app && \
                   echo '{\"name\":\"app\",\"version\":\"1.0.0\"}' > package.json && \
                   npm install --offline --no-audit --no-fund --loglevel=error ../package && ./node_modules/.bin/local";
    works(command, "from the package");
}

#[test]
fn cargo_builds_and_runs_a_program() {
    let command = "cargo init -q --name built --vcs none built && cd built && CARGO_TARGET_DIR=$PWD/target cargo run -q --offline";
    let (home, rustup) = (cargo_home(), rustup_home());
    works_with(command, "Hello, world!", move |request| {
        request.env.push(("RUSTUP_HOME".into(), rustup.clone()));
        request.env.push(("PATH".into(), home.clone()));
    });
}

/// Where rustup keeps its toolchains, for a command whose HOME is elsewhere.
fn rustup_home() -> Option<std::ffi::OsString> {
    let own = std::env::var_os("RUSTUP_HOME");
    own.or_else(|| Some(std::path::Path::new(&std::env::var_os("HOME")?).join(".rustup").into()))
}

/// PATH with the folder of the cargo that runs this test at its front.
fn cargo_home() -> Option<std::ffi::OsString> {
    let cargo = std::path::PathBuf::from(env!("CARGO"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = cargo.parent().map(|folder| folder.to_owned()).into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).ok()
}

#[test]
fn make_compiles_a_program() {
    let command = "printf '#include <stdio.h>\\nint main(void) { puts(\"made\"); }\\n' > p.c && printf 'p: p.c\\n\\tcc -o p p.c\\n' > Makefile && make -s && ./p";
    works(command, "made");
}

#[test]
fn python_makes_a_virtual_environment() {
    works("python3 -m venv --without-pip v && ./v/bin/python -c 'import sys; print(sys.prefix)'", "/v");
}

#[test]
fn temporary_files_and_here_documents_work() {
    works(
        "f=$(mktemp) && d=$(mktemp -d) && cat > $f <<X && cat $f <(echo there) && rm -r $f $d\nhere\nX",
        "here\nthere",
    );
}

#[test]
fn files_are_renamed_linked_and_changed_within_the_workspace() {
    works("mkdir -p a/b c && echo x > a/b/f && mv a/b/f c/g && ln c/g a/h && ln -s ../c/g a/s && chmod 600 c/g && touch -d 2001-01-01 c/g && truncate -s 1 a/s && stat -c %a:%s:%Y a/h", "600:1");
}

#[test]
fn a_server_on_the_loopback_interface_is_reached() {
    let command = "python3 -c \"
import socket, threading
server = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=lambda: server.accept()[0].send(b'served'), daemon=True).start()
print(socket.create_connection(server.getsockname()).recv(10).decode())\"";
    works(command, "served");
}

#[test]
fn pipelines_jobs_and_many_processes_work() {
    works(
        "seq 1000 | sort -rn | head -1; for i in $(seq 20); do (echo $i > f$i) & done; wait; cat f* | wc -l",
        "1000\n20",
    );
}

#[test]
fn reading_the_repository_works_when_reading_only() {
    for backend in BACKENDS {
        let place = Place::new(backend);
        let made = place.run(
            "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && echo x > x",
        );
        assert_eq!(code(&made), Some(0), "{}", text(&made.stderr));
        let read =
            place.run_in_mode(Mode::ReadOnly, "git log --oneline && git status --short && git diff | cat && ls -la");
        assert_eq!(code(&read), Some(0), "{backend}: {}", text(&read.stderr));
        assert!(text(&read.stdout).contains("?? x"), "{backend}: {}", text(&read.stdout));
    }
}
