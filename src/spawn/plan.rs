//! What is to be executed, with every string and pointer in place before the child exists.

use std::ffi::CStr;
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
}

/// A cell, and how a pid is written in it.
pub(crate) type Announce<'a> = (&'a AtomicU64, fn(i32) -> u64);

#[cfg(target_os = "linux")]
impl Plan<'_> {
    pub(crate) const MAX_FILES: usize = 6;
}
