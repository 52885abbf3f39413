//! The warden as the library sees it: the program (`program.rs`), what it is started with, and what it tells
//! (`message.rs`).
//!
//! Bubblewrap by itself does not say enough. It makes an exit code of the signal that ended the shell, its usage is not
//! the command's, its outer process is ended by a SIGTERM that is meant for the command, and a set-up that failed looks
//! like a command that failed. So the warden stands between bubblewrap and the shell, and speaks through a socket.
//!
//! Of the processes that come into being, the host's child is bubblewrap's outer process; its child is the init of the
//! sandbox, then comes the warden, then the shell, these two each in a session of its own. All but the shell hold none
//! of the command's pipes. The outer process ends with the warden and so with the shell; the init ends with the last
//! process of the sandbox, and the kernel ends every process of the sandbox with the init. When the outer process is
//! ended before, everything else goes on: the host ends it, found by the marks in its environment, which all but the
//! warden show to everybody of the same user.

mod message;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags};

use crate::embedded;
use crate::error::Stage;
use crate::fd;
use crate::mark;
use crate::result::{Exit, Usage};
use message::{kind, step, Message, ENVIRONMENT, SCRIPT, STATUS, STDIO, WITNESS};

/// The program, built for the target by the build script. Empty where it could not be built.
#[cfg(dsh_guard)]
static PROGRAM: &[u8] = include_bytes!(env!("DSH_WARDEN_PROGRAM"));
#[cfg(not(dsh_guard))]
static PROGRAM: &[u8] = &[];

/// Whether this build of the library has a warden, without which bubblewrap is not used.
pub(crate) const AVAILABLE: bool = cfg!(dsh_guard);

/// The program, for [`Files`]. It can be used any number of times.
pub(crate) fn program() -> io::Result<OwnedFd> {
    if !AVAILABLE {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
    }
    embedded::executable(c"dsh-warden", PROGRAM)
}

/// The command line of bubblewrap up to the path of the shell, which is to be followed by the shell's own arguments,
/// its name first.
pub(crate) fn command(passes_script: bool, has_witness: bool) -> [&'static CStr; 6] {
    let flags = match (passes_script, has_witness) {
        (false, false) => c"-",
        (true, false) => c"-s",
        (false, true) => c"-w",
        (true, true) => c"-sw",
    };
    // With the numbers of `PROFILE` and `PROGRAM_FILE`.
    [c"bwrap", c"--args", c"5", c"--", c"/proc/self/fd/10", flags]
}

/// The descriptors that only bubblewrap uses; for the others see `message.rs`.
const STDERR: i32 = 2;
const PROFILE: i32 = 5;
const SECCOMP: i32 = 6;
const PROGRAM_FILE: i32 = 10;

/// What bubblewrap and the warden find on their descriptors.
#[derive(Clone, Copy)]
pub(crate) struct Files<'a> {
    /// `/dev/null`.
    pub(crate) null: BorrowedFd<'a>,
    /// Gets what bubblewrap says, for people.
    pub(crate) messages: BorrowedFd<'a>,
    /// The text of a long command. The command line has to say so.
    pub(crate) script: Option<BorrowedFd<'a>>,
    /// The other end of the socket that [`Status`] reads.
    pub(crate) status: BorrowedFd<'a>,
    /// Bubblewrap's arguments, at their beginning: good for one command.
    pub(crate) profile: BorrowedFd<'a>,
    /// The filter of which the profile says that it is there, at its beginning: good for one command.
    pub(crate) seccomp: Option<BorrowedFd<'a>>,
    /// The command's own stdin, stdout and stderr.
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    pub(crate) program: BorrowedFd<'a>,
    /// See [`environment`].
    pub(crate) environment: BorrowedFd<'a>,
    /// The filter whose notifications are wanted, an array of `struct sock_filter`. The command line has to say so. It
    /// has to let `sendmsg` and `execve` pass: the first sends the listener, and whoever is to answer for the second
    /// may not have it yet.
    pub(crate) witness: Option<BorrowedFd<'a>>,
}

impl<'a> Files<'a> {
    /// For [`Plan::files`](crate::spawn::Plan::files).
    pub(crate) fn in_order(&self) -> [BorrowedFd<'a>; 13] {
        let mut files = [self.null; 13];
        let own = [(STDERR, self.messages), (PROFILE, self.profile), (PROGRAM_FILE, self.program)];
        let wardens = [(STATUS, self.status), (ENVIRONMENT, self.environment)];
        let perhaps = [(SCRIPT, self.script), (SECCOMP, self.seccomp), (WITNESS, self.witness)];
        let perhaps = perhaps.into_iter().filter_map(|(number, file)| Some((number, file?)));
        for (number, file) in own.into_iter().chain(wardens).chain((STDIO..).zip(self.stdio)).chain(perhaps) {
            files[number as usize] = file;
        }
        files
    }
}

/// The command's environment as the warden takes it.
///
/// It is not bubblewrap's own: that runs outside of the sandbox, where a variable of the command's (`LD_PRELOAD`) could
/// make it run what the command has written. And bubblewrap changes `PWD`.
pub(crate) fn environment(entries: &[&CStr]) -> io::Result<OwnedFd> {
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes_with_nul()).copied().collect();
    fd::in_memory(c"dsh-environment", &bytes)
}

/// The part of the command's environment that bubblewrap itself gets: the marks by which it is found.
pub(crate) fn marks<'a>(entries: &[&'a CStr]) -> Vec<&'a CStr> {
    let is_mark = |entry: &&&CStr| {
        let own = entry.to_bytes().strip_prefix(mark::PROCESS_ID.as_bytes());
        own.is_some_and(|rest| rest.starts_with(b"=")) || entry.to_bytes().starts_with(mark::OUTER.as_bytes())
    };
    entries.iter().filter(is_mark).copied().collect()
}

/// What the warden has said so far.
#[derive(Debug)]
pub(crate) struct Status {
    socket: OwnedFd,
    /// The sandbox stands. Without this it was bubblewrap that failed.
    pub(crate) started: bool,
    /// Why the shell could not be executed: the step, and the errno.
    pub(crate) failure: Option<(Stage, i32)>,
    /// How the shell ended, and what it used. When everything is over and this is not known, the warden was killed.
    pub(crate) exit: Option<(Exit, Usage)>,
    /// The listener of the witness's filter.
    pub(crate) witness: Option<OwnedFd>,
    /// Why there is none, when there should be one: the errno; 0 when it got lost on the way.
    pub(crate) witness_refused: Option<i32>,
    /// Nobody is there any more who could say anything.
    pub(crate) over: bool,
}

impl Status {
    /// `socket` is the host's end, of the kind that keeps messages apart. The host must not go on holding the other one,
    /// else the end is not seen.
    pub(crate) fn new(socket: OwnedFd) -> Status {
        Status { socket, started: false, failure: None, exit: None, witness: None, witness_refused: None, over: false }
    }

    /// Whether the listener was sent and could not be received, for want of a free descriptor.
    pub(crate) fn has_lost_witness(&self) -> bool {
        self.witness_refused == Some(0)
    }

    /// Takes in all that has been said. Never waits.
    pub(crate) fn read(&mut self) {
        while !self.over {
            match receive(self.socket.as_raw_fd()) {
                Ok(Some(received)) => self.take(received),
                Ok(None) => self.over = true,
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => return,
                Err(_) => self.over = true,
            }
        }
    }

    fn take(&mut self, Received { message, descriptor }: Received) {
        let Some(message) = message else { return };
        match message.kind {
            kind::STARTED => self.started = true,
            kind::WITNESS => match descriptor {
                Some(listener) => match fd::above_stdio(listener) {
                    Ok(listener) => self.witness = Some(listener),
                    Err(_) => self.witness_refused = Some(0),
                },
                None => self.witness_refused = Some(message.value),
            },
            kind::FAILED => self.failure = Some((stage_of(message.step), message.value)),
            kind::ENDED => self.exit = Some(end_of(&message)),
            _ => {}
        }
    }
}

/// Readable when something has been said, or nothing will be any more.
impl AsFd for Status {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Message {
    fn read(bytes: &[u8]) -> Option<Message> {
        // SAFETY: as many bytes as a message has, which is made of integers only, so that any bytes are one.
        (bytes.len() == size_of::<Message>()).then(|| unsafe { bytes.as_ptr().cast::<Message>().read_unaligned() })
    }
}

/// What came in one piece.
struct Received {
    /// `None` for what is none of ours.
    message: Option<Message>,
    descriptor: Option<OwnedFd>,
}

/// `None` at the end.
fn receive(socket: RawFd) -> Result<Option<Received>, i32> {
    // One byte more, so that a longer message is not taken for one of ours.
    let (mut bytes, mut space) = ([0; size_of::<Message>() + 1], nix::cmsg_space!(RawFd));
    let mut parts = [io::IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let received = recvmsg::<()>(socket, &mut parts, Some(&mut space), flags).map_err(|errno| errno as i32)?;
    let mut descriptor = None;
    for part in received.cmsgs().into_iter().flatten() {
        if let ControlMessageOwned::ScmRights(descriptors) = part {
            for raw in descriptors {
                // SAFETY: the kernel has just made it for this message, and nobody else owns it.
                descriptor = Some(unsafe { OwnedFd::from_raw_fd(raw) });
            }
        }
    }
    let length = received.bytes;
    Ok((length > 0).then(|| Received { message: Message::read(&bytes[..length]), descriptor }))
}

fn stage_of(number: u32) -> Stage {
    match number {
        step::ENVIRONMENT => Stage::Environment,
        step::CLONE => Stage::Clone,
        step::SESSION => Stage::Session,
        step::SIGNALS => Stage::Signals,
        step::DESCRIPTORS => Stage::Descriptors,
        step::EXEC => Stage::Exec,
        _ => Stage::Sandbox,
    }
}

fn end_of(message: &Message) -> (Exit, Usage) {
    let exit = if libc::WIFSIGNALED(message.value) {
        Exit::Signal { number: libc::WTERMSIG(message.value), core_dumped: libc::WCOREDUMP(message.value) }
    } else {
        Exit::Code(libc::WEXITSTATUS(message.value))
    };
    let usage = Usage {
        user: Duration::from_micros(message.user_us),
        system: Duration::from_micros(message.system_us),
        max_rss: message.max_rss_kib.saturating_mul(1024),
    };
    (exit, usage)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) mod trial;
