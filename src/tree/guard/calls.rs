//! The guard's own system calls, each with the types it deserves.

use core::ffi::CStr;

use crate::sys::{syscall, Fd, Result, SYS};

pub(crate) const ESRCH: i32 = 3;
pub(crate) const EINVAL: i32 = 22;

pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGCONT: i32 = 18;

pub(crate) const POLLIN: i16 = 1;
pub(crate) const POLLHUP: i16 = 0x10;
pub(crate) const POLLNVAL: i16 = 0x20;

/// `struct pollfd`.
#[repr(C)]
pub(crate) struct PollFd {
    fd: i32,
    wanted: i16,
    pub(crate) answered: i16,
}

impl PollFd {
    /// Waits for something to read, or the end. A negative number is passed over.
    pub(crate) fn new(fd: i32) -> Self {
        Self { fd, wanted: POLLIN, answered: 0 }
    }
}

/// `struct timespec` and `struct __kernel_timespec`: the same on 64-bit systems.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// Waits until a descriptor answers, or so many milliseconds.
pub(crate) fn poll(fds: &mut [PollFd], timeout_ms: Option<u64>) -> Result<usize> {
    let mut timeout = timeout_ms.map(|ms| Timespec {
        seconds: (ms / 1000).min(i64::MAX as u64) as i64,
        nanoseconds: (ms % 1000 * 1_000_000) as i64,
    });
    let timeout = timeout.as_mut().map_or(0, |timeout| core::ptr::from_mut(timeout) as usize);
    // SAFETY: the kernel reads and writes the descriptors and the timeout, which outlive the call. No mask is given.
    unsafe { syscall(SYS.ppoll, [fds.as_mut_ptr() as usize, fds.len(), timeout, 0, 0, 0]) }
}

/// Milliseconds that pass while the machine is awake.
pub(crate) fn now_ms() -> u64 {
    const CLOCK_MONOTONIC: usize = 1;
    let now = clock(CLOCK_MONOTONIC);
    now.seconds as u64 * 1000 + now.nanoseconds as u64 / 1_000_000
}

/// Now, in the unit of start times in the process table: hundredths of a second since boot (`USER_HZ` is 100 on all
/// architectures that the guard is built for).
pub(crate) fn now_ticks() -> u64 {
    const CLOCK_BOOTTIME: usize = 7;
    let now = clock(CLOCK_BOOTTIME);
    now.seconds as u64 * 100 + now.nanoseconds as u64 / 10_000_000
}

fn clock(id: usize) -> Timespec {
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the kernel writes the time, which outlives the call.
    let _ = unsafe { syscall(SYS.clock_gettime, [id, core::ptr::from_mut(&mut now) as usize, 0, 0, 0, 0]) };
    now
}

/// The parent now: the host, or after its end whoever took over its children.
pub(crate) fn parent() -> i32 {
    // SAFETY: takes nothing.
    unsafe { syscall(SYS.getppid, [0; 6]) }.unwrap_or(0) as i32
}

pub(crate) fn pidfd_open(pid: i32) -> Result<Fd> {
    // SAFETY: takes numbers only; the descriptor is new, and close-on-exec by itself.
    unsafe { syscall(SYS.pidfd_open, [pid as usize, 0, 0, 0, 0, 0]) }.map(|number| Fd::from_raw(number as i32))
}

pub(crate) fn pidfd_send_signal(pidfd: &Fd, signal: i32) -> Result<usize> {
    let pidfd = pidfd.number() as usize;
    // SAFETY: takes numbers only; no further information is given.
    unsafe { syscall(SYS.pidfd_send_signal, [pidfd, signal as usize, 0, 0, 0, 0]) }
}

/// To one process, by number. The caller has made sure who that is.
pub(crate) fn kill(pid: i32, signal: i32) -> Result<usize> {
    if pid <= 1 {
        return Err(EINVAL);
    }
    // SAFETY: takes numbers only.
    unsafe { syscall(SYS.kill, [pid as usize, signal as usize, 0, 0, 0, 0]) }
}

pub(crate) fn block_all_signals() {
    const SIG_SETMASK: usize = 2;
    let all = u64::MAX;
    // SAFETY: the kernel reads the mask, 8 bytes long.
    let _ = unsafe { syscall(SYS.rt_sigprocmask, [SIG_SETMASK, core::ptr::from_ref(&all) as usize, 0, 8, 0, 0]) };
}

pub(crate) fn set_name(name: &CStr) {
    const PR_SET_NAME: usize = 15;
    // SAFETY: the kernel reads the name up to its NUL.
    let _ = unsafe { syscall(SYS.prctl, [PR_SET_NAME, name.as_ptr() as usize, 0, 0, 0, 0]) };
}

const RLIMIT_NOFILE: usize = 7;

/// `struct rlimit64`.
#[repr(C)]
struct Limit {
    soft: u64,
    hard: u64,
}

/// How many descriptors the guard can hold.
pub(crate) fn descriptor_limit() -> u64 {
    limits().map_or(0, |limit| limit.soft)
}

pub(crate) fn raise_descriptor_limit() {
    if let Ok(Limit { hard, .. }) = limits() {
        let new = core::ptr::from_ref(&Limit { soft: hard, hard }) as usize;
        // SAFETY: of the own process; the kernel reads the limit.
        let _ = unsafe { syscall(SYS.prlimit64, [0, RLIMIT_NOFILE, new, 0, 0, 0]) };
    }
}

fn limits() -> Result<Limit> {
    let mut limit = Limit { soft: 0, hard: 0 };
    let address = core::ptr::from_mut(&mut limit) as usize;
    // SAFETY: of the own process; the kernel writes the limit.
    unsafe { syscall(SYS.prlimit64, [0, RLIMIT_NOFILE, 0, address, 0, 0]) }?;
    Ok(limit)
}

pub(crate) fn size_of_file(fd: &Fd) -> usize {
    const SEEK_END: usize = 2;
    // SAFETY: takes numbers only.
    unsafe { syscall(SYS.lseek, [fd.number() as usize, 0, SEEK_END, 0, 0, 0]) }.unwrap_or(0)
}

const PROT_READ: usize = 1;
const PROT_WRITE: usize = 2;

/// Maps the start of a file for reading, shared with those who write it.
pub(crate) fn map_shared(fd: &Fd, size: usize) -> Option<*const u8> {
    const MAP_SHARED: usize = 1;
    // SAFETY: a new mapping, where the kernel likes.
    let address = unsafe { syscall(SYS.mmap, [0, size, PROT_READ, MAP_SHARED, fd.number() as usize, 0]) };
    address.ok().map(|address| address as *const u8)
}

/// Fresh memory, all zero.
pub(crate) fn map(size: usize) -> Option<*mut u8> {
    const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
    // SAFETY: a new mapping, where the kernel likes.
    let address = unsafe { syscall(SYS.mmap, [0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE_ANONYMOUS, usize::MAX, 0]) };
    address.ok().map(|address| address as *mut u8)
}

/// # Safety
/// The memory came from [`map`] with this size, and nobody uses it any more.
pub(crate) unsafe fn unmap(address: *mut u8, size: usize) {
    // SAFETY: the caller's word.
    let _ = unsafe { syscall(SYS.munmap, [address as usize, size, 0, 0, 0, 0]) };
}

pub(crate) fn exit(code: u8) -> ! {
    loop {
        // SAFETY: ends the process.
        let _ = unsafe { syscall(SYS.exit_group, [usize::from(code), 0, 0, 0, 0, 0]) };
    }
}
