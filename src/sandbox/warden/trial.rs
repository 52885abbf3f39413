//! A command under bubblewrap and the warden, as the tests start one.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::bubblewrap::{self, Extra};
use super::super::{SandboxPolicy, Terms};
use super::{Files, Status};
use crate::fd;
use crate::result::Exit;
use crate::spawn::{spawn, Child, Plan, Program};

/// After which something is taken never to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is to be started; the fields that a test does not care about stay as they are.
pub(crate) struct Ask<'a> {
    pub(crate) profile: Vec<u8>,
    pub(crate) shell: &'a CStr,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<&'a CStr>,
    pub(crate) script: Option<&'a [u8]>,
    pub(crate) seccomp: Option<&'a [u8]>,
    pub(crate) witness: Option<&'a [u8]>,
}

impl<'a> Ask<'a> {
    /// A command under this policy.
    pub(crate) fn under(terms: &Terms, command: &str) -> Ask<'a> {
        Ask::with(bubblewrap::profile(terms, &Extra { visible: &[], seccomp: false }), command)
    }

    pub(crate) fn with(profile: Vec<u8>, command: &str) -> Ask<'a> {
        Ask {
            profile,
            shell: c"/bin/bash",
            arguments: vec![c"bash".into(), c"-c".into(), CString::new(command).unwrap()],
            environment: vec![c"PATH=/usr/bin:/bin"],
            script: None,
            seccomp: None,
            witness: None,
        }
    }

    pub(crate) fn start(&self) -> Trial {
        let null = fd::dev_null().unwrap();
        let memory = |bytes: &[u8]| fd::in_memory(c"test", bytes).unwrap();
        let (stdin_read, stdin) = fd::pipe().unwrap();
        let (output, output_write) = fd::pipe().unwrap();
        let (status, theirs) = fd::socket_pair().unwrap();
        let (messages, profile) = (memory(b""), memory(&self.profile));
        let (script, seccomp, witness) = (self.script.map(memory), self.seccomp.map(memory), self.witness.map(memory));
        let (program, environment) = (super::program().unwrap(), super::environment(&self.environment).unwrap());
        let files = Files {
            null: null.as_fd(),
            messages: messages.as_fd(),
            script: script.as_ref().map(AsFd::as_fd),
            status: theirs.as_fd(),
            profile: profile.as_fd(),
            seccomp: seccomp.as_ref().map(AsFd::as_fd),
            stdio: [stdin_read.as_fd(), output_write.as_fd(), output_write.as_fd()],
            program: program.as_fd(),
            environment: environment.as_fd(),
            witness: witness.as_ref().map(AsFd::as_fd),
        };
        let bwrap = bubblewrap::find().expect("these tests need bubblewrap: apt-get install bubblewrap");
        let bwrap = CString::new(bwrap.as_os_str().as_bytes()).unwrap();
        let command = super::command(script.is_some(), witness.is_some());
        let arguments: Vec<&CStr> =
            command.into_iter().chain([self.shell]).chain(self.arguments.iter().map(CString::as_c_str)).collect();
        let plan = Plan {
            program: Program::Path(&bwrap),
            arguments: &arguments,
            environment: &super::marks(&self.environment),
            workdir: c"/",
            files: &files.in_order(),
            announce: None,
            restraint: None,
            signals_blocked: false,
        };
        let child = spawn(&plan).unwrap();
        Trial {
            child,
            status: Status::new(status),
            stdin: Some(stdin.into()),
            output: output.into(),
            messages: messages.into(),
            reaped: None,
        }
    }

    /// Runs it to its end.
    pub(crate) fn run(&self) -> Trial {
        let mut trial = self.start();
        trial.stdin = None;
        trial.finish();
        trial
    }

    /// What it writes.
    pub(crate) fn output(&self) -> String {
        let mut trial = self.start();
        trial.stdin = None;
        let text = trial.rest();
        trial.finish();
        assert!(trial.status.started, "{}", trial.messages());
        text
    }
}

pub(crate) struct Trial {
    pub(crate) child: Child,
    pub(crate) status: Status,
    pub(crate) stdin: Option<File>,
    output: File,
    messages: File,
    reaped: Option<Exit>,
}

impl Trial {
    /// Waits for the end of bubblewrap's outer process; its exit.
    pub(crate) fn finish(&mut self) -> Exit {
        let child = self.child.pid;
        let exit = *self.reaped.get_or_insert_with(|| {
            let mut status = 0;
            // SAFETY: waits for our own child, which nobody else reaps.
            wait_until(
                "bubblewrap has ended",
                || unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child,
            );
            match libc::WIFSIGNALED(status) {
                true => Exit::Signal { number: libc::WTERMSIG(status), core_dumped: false },
                false => Exit::Code(libc::WEXITSTATUS(status)),
            }
        });
        self.status.read();
        exit
    }

    /// Waits until nobody holds the warden's end of the socket any more. A child that another test is just starting may
    /// hold a copy for a moment.
    pub(crate) fn await_silence(&mut self) {
        wait_until("nobody can say anything any more", || {
            self.status.read();
            self.status.over
        });
    }

    /// The next line that the command writes.
    pub(crate) fn line(&mut self) -> String {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while self.read(&mut byte) == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Everything that it writes until nobody holds the pipe any more.
    pub(crate) fn rest(&mut self) -> String {
        let (mut text, mut bytes) = (Vec::new(), [0; 4096]);
        loop {
            match self.read(&mut bytes) {
                0 => return String::from_utf8(text).unwrap(),
                length => text.extend_from_slice(&bytes[..length]),
            }
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> usize {
        let mut polled = libc::pollfd { fd: self.output.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, a local.
        let ready = unsafe { libc::poll(&raw mut polled, 1, PATIENCE.as_millis() as i32) };
        assert!(ready == 1, "waited in vain for output or its end");
        self.output.read(bytes).unwrap()
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn messages(&self) -> String {
        use std::os::unix::fs::FileExt;
        let mut text = [0; 4096];
        let length = self.messages.read_at(&mut text, 0).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    }

    /// The pids of the sandbox's init, the warden and the shell. Asked when the shell is known to run.
    pub(crate) fn pids(&self) -> [i32; 3] {
        let only_child = |pid| *children(pid).first().expect("a child");
        let init = only_child(self.child.pid);
        let warden = only_child(init);
        [init, warden, only_child(warden)]
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if self.reaped.is_none() {
            if let Some(init) = children(self.child.pid).first() {
                signal(*init, libc::SIGKILL);
            }
            signal(self.child.pid, libc::SIGKILL);
            self.finish();
        }
    }
}

pub(crate) fn children(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

pub(crate) fn signal(pid: i32, signal: i32) {
    assert!(pid > 1);
    // SAFETY: a plain system call, to a process that the test has started.
    unsafe { libc::kill(pid, signal) };
}

/// Whether the process is there and no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < patience, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn terms(policy: SandboxPolicy, workdir: &Path) -> Terms {
    Terms::resolve(policy, workdir, workdir).unwrap().unwrap()
}

/// A filter that answers a system call with `action`, and lets all others pass; as the bytes of its instructions.
pub(crate) fn filter(call: libc::c_long, action: u32) -> Vec<u8> {
    let [load, equal, answer] = [0x20u16, 0x15, 0x06]; // BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    let instructions =
        [(load, 0, 0, 0), (equal, 0, 1, call as u32), (answer, 0, 0, action), (answer, 0, 0, libc::SECCOMP_RET_ALLOW)];
    let bytes = instructions.into_iter().flat_map(|(code, yes, no, value): (u16, u8, u8, u32)| {
        [&code.to_ne_bytes()[..], &[yes, no], &value.to_ne_bytes()].concat()
    });
    bytes.collect()
}
