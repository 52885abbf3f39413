//! Descriptors: made close-on-exec, and never one of the three that belong to the host's standard streams.

#[cfg(target_os = "linux")]
use std::ffi::CStr;
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::io::{Seek, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::fcntl::{fcntl, FcntlArg, OFlag};

#[cfg(target_os = "linux")]
use crate::signals::Shield;

/// Moves a descriptor that landed on 0, 1 or 2 to a higher number.
///
/// A host that runs with its standard streams closed gets these numbers back from the next `open` or `pipe`. Its next
/// `printf` would then write into one of our pipes, and the child's `dup2` onto 0, 1 and 2 would overwrite its own
/// sources.
pub(crate) fn above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    let raised = fcntl(&fd, FcntlArg::F_DUPFD_CLOEXEC(3))?;
    // SAFETY: F_DUPFD_CLOEXEC has just returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(raised) })
}

/// A pipe `(read end, write end)`, both close-on-exec from birth where the system can.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(target_os = "linux")]
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    #[cfg(not(target_os = "linux"))]
    let (read, write) = {
        let (read, write) = nix::unistd::pipe()?;
        for end in [&read, &write] {
            fcntl(end, FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
        }
        (read, write)
    };
    Ok((above_stdio(read)?, above_stdio(write)?))
}

/// Makes reads and writes through this description return at once. The other end of a pipe is not affected.
pub(crate) fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    // A pipe's or eventfd's description has no other status flag worth keeping, so nothing has to be read first.
    fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// A file in memory with these bytes, at its beginning. The host's limit on file sizes holds for it too.
#[cfg(target_os = "linux")]
pub(crate) fn in_memory(name: &CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    use nix::sys::memfd::{memfd_create, MFdFlags};
    let mut shield = Shield::for_host();
    shield.raise(); // the limit comes as a signal
    let mut file = File::from(above_stdio(memfd_create(name, MFdFlags::MFD_CLOEXEC)?)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Two ends of a socket that keeps messages apart and passes descriptors, close-on-exec; the first is non-blocking.
#[cfg(target_os = "linux")]
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    set_nonblocking(&ours)?;
    Ok((above_stdio(ours)?, above_stdio(theirs)?))
}

/// The descriptor in the message that waits in this non-blocking socket; `None` without a message. A message whose
/// descriptor got lost, for want of a free number, is EMFILE.
#[cfg(target_os = "linux")]
pub(crate) fn received(socket: &OwnedFd) -> Result<Option<OwnedFd>, i32> {
    use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags};
    let (mut byte, mut space) = ([0u8; 1], nix::cmsg_space!(RawFd));
    let mut parts = [io::IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let Ok(message) = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) else { return Ok(None) };
    let raw = message.cmsgs().into_iter().flatten().find_map(|part| match part {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    });
    // SAFETY: the kernel has just made it for this message, and nobody else owns it.
    let received = raw.map(|raw| unsafe { OwnedFd::from_raw_fd(raw) }).ok_or(libc::EMFILE)?;
    above_stdio(received).map(Some).map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))
}

/// `/dev/null`, open for reading and writing.
pub(crate) fn dev_null() -> io::Result<OwnedFd> {
    above_stdio(File::options().read(true).write(true).open("/dev/null")?.into())
}

/// Keeps 0, 1 and 2 occupied while descriptors are made by code that can't be told to stay above them.
pub(crate) struct StdioPlug(#[allow(dead_code, reason = "held for its descriptors")] Vec<OwnedFd>);

impl StdioPlug {
    pub(crate) fn new() -> StdioPlug {
        let mut held = Vec::new();
        while held.len() < 3 {
            match File::open("/dev/null") {
                Ok(file) if file.as_raw_fd() <= 2 => held.push(OwnedFd::from(file)),
                _ => break,
            }
        }
        StdioPlug(held)
    }
}

/// Wakes a thread that waits in `poll` or `epoll`; any number of wakes before it looks count as one.
pub(crate) struct Waker {
    read: OwnedFd,
    /// `None` where one descriptor serves both ways (eventfd).
    write: Option<OwnedFd>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        #[cfg(target_os = "linux")]
        {
            use nix::sys::eventfd::{EfdFlags, EventFd};
            let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
            Ok(Waker { read: above_stdio(event.into())?, write: None })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let (read, write) = pipe()?;
            set_nonblocking(&read)?;
            set_nonblocking(&write)?;
            Ok(Waker { read, write: Some(write) })
        }
    }

    /// Wakes the waiter. A full counter or pipe means that a wake is pending already.
    pub(crate) fn wake(&self) {
        let _ = nix::unistd::write(self.write.as_ref().unwrap_or(&self.read), &1u64.to_ne_bytes());
    }

    /// Takes all pending wakes back. Called by the waiter before it looks for work.
    pub(crate) fn clear(&self) {
        let mut sink = [0u8; 64];
        while matches!(nix::unistd::read(&self.read, &mut sink), Ok(n) if n == sink.len()) {}
    }

    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.read.as_raw_fd()
    }
}
