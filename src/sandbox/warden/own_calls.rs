//! The warden's own system calls, those that it does not share with the guard.

use core::ffi::{c_char, CStr};
use core::ptr::{from_mut, from_ref, null};

use crate::calls::EINVAL;
use crate::message::Message;
use crate::sys::{syscall, Result, EINTR};

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const CLONE: usize = 56;
    pub(super) const CLOSE_RANGE: usize = 436;
    pub(super) const DUP3: usize = 292;
    pub(super) const EXECVE: usize = 59;
    pub(super) const FCNTL: usize = 72;
    pub(super) const PRCTL: usize = 157;
    pub(super) const RT_SIGACTION: usize = 13;
    pub(super) const RT_SIGPROCMASK: usize = 14;
    pub(super) const SECCOMP: usize = 317;
    pub(super) const SENDMSG: usize = 46;
    pub(super) const SETSID: usize = 112;
    pub(super) const WAIT4: usize = 61;
    pub(super) const CLOSE: usize = 3;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const CLONE: usize = 220;
    pub(super) const CLOSE_RANGE: usize = 436;
    pub(super) const DUP3: usize = 24;
    pub(super) const EXECVE: usize = 221;
    pub(super) const FCNTL: usize = 25;
    pub(super) const PRCTL: usize = 167;
    pub(super) const RT_SIGACTION: usize = 134;
    pub(super) const RT_SIGPROCMASK: usize = 135;
    pub(super) const SECCOMP: usize = 277;
    pub(super) const SENDMSG: usize = 211;
    pub(super) const SETSID: usize = 157;
    pub(super) const WAIT4: usize = 260;
    pub(super) const CLOSE: usize = 57;
}

const SIGCHLD: usize = 17;

/// Keeps everybody without special rights from this process's memory and descriptors.
pub(crate) fn make_undumpable() {
    const PR_SET_DUMPABLE: usize = 4;
    // SAFETY: takes numbers only.
    let _ = unsafe { syscall(number::PRCTL, [PR_SET_DUMPABLE, 0, 0, 0, 0, 0]) };
}

pub(crate) fn set_session() -> Result<usize> {
    // SAFETY: takes nothing.
    unsafe { syscall(number::SETSID, [0; 6]) }
}

/// A copy of this process; 0 in the copy.
pub(crate) fn fork() -> Result<i32> {
    // SAFETY: no memory is shared, and the copy goes on on its copy of the stack. There is one thread and no lock.
    unsafe { syscall(number::CLONE, [SIGCHLD, 0, 0, 0, 0, 0]) }.map(|pid| pid as i32)
}

/// Every signal back to its default. The kernel refuses 9 and 19, which have no other.
pub(crate) fn reset_signals() {
    // A kernel `sigaction` of zeros: SIG_DFL, no flags, no restorer, empty mask.
    let default = [0u64; 4];
    for signal in 1..=64 {
        // SAFETY: the kernel reads at most 32 bytes.
        let _ = unsafe { syscall(number::RT_SIGACTION, [signal, from_ref(&default) as usize, 0, 8, 0, 0]) };
    }
}

pub(crate) fn unblock_all_signals() -> Result<usize> {
    const SIG_SETMASK: usize = 2;
    let none = 0u64;
    // SAFETY: the kernel reads the mask, 8 bytes long.
    unsafe { syscall(number::RT_SIGPROCMASK, [SIG_SETMASK, from_ref(&none) as usize, 0, 8, 0, 0]) }
}

/// Makes `to` a copy of `from` that an exec leaves open.
pub(crate) fn duplicate(from: i32, to: i32) -> Result<usize> {
    // SAFETY: takes numbers only; nothing here owns `to`.
    unsafe { syscall(number::DUP3, [from as usize, to as usize, 0, 0, 0, 0]) }
}

pub(crate) fn close_on_exec(descriptor: i32) -> Result<usize> {
    const F_SETFD: usize = 2;
    const FD_CLOEXEC: usize = 1;
    // SAFETY: takes numbers only.
    unsafe { syscall(number::FCNTL, [descriptor as usize, F_SETFD, FD_CLOEXEC, 0, 0, 0]) }
}

pub(crate) fn close(descriptor: i32) {
    // SAFETY: takes a number only; nothing here owns the descriptor.
    let _ = unsafe { syscall(number::CLOSE, [descriptor as usize, 0, 0, 0, 0, 0]) };
}

/// Closes every descriptor from this one on.
pub(crate) fn close_from(first: i32) {
    // SAFETY: takes numbers only; nothing here owns these descriptors.
    if unsafe { syscall(number::CLOSE_RANGE, [first as usize, u32::MAX as usize, 0, 0, 0, 0]) }.is_err() {
        // A kernel before 5.9. Whoever started bubblewrap has left it a few descriptors with low numbers.
        (first..1024).for_each(close);
    }
}

/// Returns only when it fails.
///
/// # Safety
/// Both lists hold strings and end with a null.
pub(crate) unsafe fn execute(
    program: &CStr,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> i32 {
    let arguments = [program.as_ptr() as usize, arguments as usize, environment as usize, 0, 0, 0];
    // SAFETY: the caller's word.
    unsafe { syscall(number::EXECVE, arguments) }.err().unwrap_or(0)
}

/// Installs a filter of `length` instructions, and gives the descriptor (close-on-exec) at which its notifications are
/// received. A call that has been received is interrupted by nothing but the end of its process, where the kernel knows
/// of that (Linux 5.19).
pub(crate) fn install_with_listener(instructions: *const u8, length: u16) -> Result<i32> {
    /// `struct sock_fprog`.
    #[repr(C)]
    struct Program {
        length: u16,
        instructions: *const u8,
    }
    const SECCOMP_SET_MODE_FILTER: usize = 1;
    const SECCOMP_FILTER_FLAG_NEW_LISTENER: usize = 8;
    const SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV: usize = 32;
    let program = Program { length, instructions };
    let install = |flags| {
        let arguments = [SECCOMP_SET_MODE_FILTER, flags, from_ref(&program) as usize, 0, 0, 0];
        // SAFETY: the kernel reads the program, and answers with an error when it can't.
        unsafe { syscall(number::SECCOMP, arguments) }.map(|descriptor| descriptor as i32)
    };
    match install(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(EINVAL) => install(SECCOMP_FILTER_FLAG_NEW_LISTENER),
        answer => answer,
    }
}

/// Sends a message, perhaps with a descriptor. Nobody is there to be told when that fails: the library is gone.
pub(crate) fn send(socket: i32, message: &Message, descriptor: Option<i32>) {
    /// `struct iovec`.
    #[repr(C)]
    struct Part {
        bytes: *const Message,
        length: usize,
    }
    /// `struct msghdr`.
    #[repr(C)]
    struct Header {
        name: *const u8,
        name_length: u32,
        parts: *const Part,
        part_count: usize,
        control: *const Control,
        control_length: usize,
        flags: i32,
    }
    /// `struct cmsghdr` with one descriptor.
    #[repr(C)]
    struct Control {
        length: usize,
        level: i32,
        kind: i32,
        descriptor: i32,
        padding: i32,
    }
    const SOL_SOCKET: i32 = 1;
    const SCM_RIGHTS: i32 = 1;
    const MSG_NOSIGNAL: usize = 0x4000;
    let part = Part { bytes: message, length: size_of::<Message>() };
    let control = descriptor.map(|descriptor| Control {
        length: size_of::<Control>() - size_of::<i32>(),
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        descriptor,
        padding: 0,
    });
    let header = Header {
        name: null(),
        name_length: 0,
        parts: &part,
        part_count: 1,
        control: control.as_ref().map_or(null(), from_ref),
        control_length: control.as_ref().map_or(0, size_of_val),
        flags: 0,
    };
    let arguments = [socket as usize, from_ref(&header) as usize, MSG_NOSIGNAL, 0, 0, 0];
    // SAFETY: the kernel reads what the header points to, all of it on this stack.
    while unsafe { syscall(number::SENDMSG, arguments) } == Err(EINTR) {}
}

/// `struct rusage`, the part that is used by its names.
#[repr(C)]
#[derive(Default)]
struct Usage {
    user: [u64; 2],
    system: [u64; 2],
    max_rss_kib: u64,
    other: [u64; 13],
}

/// Waits for the end of this child: its status, and what it and those it waited for have used, as the message that
/// says so.
pub(crate) fn wait_for(child: i32) -> Result<Message> {
    let (mut status, mut usage) = (0i32, Usage::default());
    let arguments = [child as usize, from_mut(&mut status) as usize, 0, from_mut(&mut usage) as usize, 0, 0];
    loop {
        // SAFETY: the kernel writes the status and the usage, which outlive the call.
        match unsafe { syscall(number::WAIT4, arguments) } {
            Ok(_) => break,
            Err(EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    let micros = |[seconds, micros]: [u64; 2]| seconds * 1_000_000 + micros;
    Ok(Message {
        kind: crate::message::kind::ENDED,
        value: status,
        user_us: micros(usage.user),
        system_us: micros(usage.system),
        max_rss_kib: usage.max_rss_kib,
        ..Message::default()
    })
}
