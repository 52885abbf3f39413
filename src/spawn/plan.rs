//! What is to be executed, with every string and pointer in place before the child exists.

use std::ffi::{c_ulong, CStr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

/// The file to execute.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Program<'a> {
    /// By absolute path.
    Path(&'a CStr),
    /// By an open descriptor (Linux), for a program that has no path.
    #[cfg(target_os = "linux")]
    Descriptor(BorrowedFd<'a>),
}

/// Everything about a child, ready to be carried out with system calls alone.
pub(crate) struct Plan<'a> {
    pub(crate) program: Program<'a>,
    pub(crate) arguments: &'a [&'a CStr],
    pub(crate) environment: &'a [&'a CStr],
    pub(crate) workdir: &'a CStr,
    /// Becomes the child's descriptors 0, 1, 2 and so on; it gets no others. At most [`Plan::MAX_FILES`].
    pub(crate) files: &'a [BorrowedFd<'a>],
    /// A cell in shared memory into which the child writes its pid before it does anything
    /// else: whoever reads the cell knows of the child before it has run an instruction of its program.
    pub(crate) announce: Option<Announce<'a>>,
    /// Rights that the child gives up for good before it executes the program (Linux).
    pub(crate) restraint: Option<Restraint<'a>>,
    /// Whether the program starts with all signals blocked, and not with none (Linux).
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for Linux"))]
    pub(crate) signals_blocked: bool,
}

/// What a child gives up by itself.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for Linux"))]
pub(crate) struct Restraint<'a> {
    /// A Landlock ruleset.
    pub(crate) ruleset: BorrowedFd<'a>,
    /// Whether privileges that no command needs go too; not for a program that needs them to confine others.
    pub(crate) drops_capabilities: bool,
    /// Seccomp filters, installed in this order.
    pub(crate) filters: &'a [&'a [Instruction]],
    /// A filter whose notifications are sent through this socket as a descriptor; the child goes on without it when it
    /// can't be installed (some outer host has one already).
    pub(crate) witness: Option<Listening<'a>>,
}

/// A filter with somebody who listens.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for Linux"))]
pub(crate) struct Listening<'a> {
    pub(crate) filter: &'a [Instruction],
    /// `SECCOMP_FILTER_FLAG_...` for its installation.
    pub(crate) flags: c_ulong,
    /// Where the descriptor to listen on is sent.
    pub(crate) socket: BorrowedFd<'a>,
}

/// One instruction of a seccomp filter.
#[cfg(target_os = "linux")]
pub(crate) type Instruction = libc::sock_filter;
#[cfg(not(target_os = "linux"))]
pub(crate) type Instruction = u64;

/// A cell, and how a pid is written in it.
pub(crate) type Announce<'a> = (&'a AtomicU64, fn(i32) -> u64);

#[cfg(target_os = "linux")]
impl Plan<'_> {
    pub(crate) const MAX_FILES: usize = 13;
}
