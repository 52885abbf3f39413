//! Creating the child on Linux: a clone that shares the host's memory until the exec, or a plain fork.

use std::ffi::{c_int, c_void};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use parking_lot::Mutex;

use super::child::{self, Orders};
use super::plan::Plan;
use super::{Child, Failure};
use crate::error::Stage;
use crate::fd;

const CLONE_FLAGS: c_int = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;

/// Creates the child with the host's memory shared and the calling thread suspended until it has executed.
///
/// Page tables are not copied, so the cost does not grow with the host; a fork of a host with 2 GiB took 30 times as
/// long. All signals are blocked meanwhile: a handler of the host that ran in the child would write to the host's
/// memory. The child has no parent-death signal, since that would follow the calling *thread*.
pub(super) fn vfork(plan: &Plan<'_>) -> Result<Child, Failure> {
    let stack = Stack::take().map_err(|error| Failure::from_io(Stage::Clone, &error))?;
    let mut orders = Orders::new(plan, None);
    let signals = AllSignalsBlocked::new();
    let mut pidfd: RawFd = -1;
    // SAFETY: the stack is mapped, big enough for `child::run` and used by nobody else; the orders live until the call
    // returns, and with CLONE_VFORK it returns only when the child no longer uses this memory.
    let pid = unsafe {
        libc::clone(
            child::run,
            stack.top(),
            CLONE_FLAGS | libc::SIGCHLD,
            ptr::from_mut(&mut orders).cast::<c_void>(),
            &raw mut pidfd,
        )
    };
    let error = io::Error::last_os_error();
    drop(signals);
    stack.give_back();
    if pid < 0 {
        return Err(Failure::from_io(Stage::Clone, &error));
    }
    // SAFETY: CLONE_PIDFD has stored a new descriptor that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    // SAFETY: reads a local that the child wrote through the shared memory, before the parent was resumed.
    if let Some(failure) = unsafe { ptr::read_volatile(&raw const orders.failure) } {
        reap(pid);
        return Err(failure);
    }
    let pidfd = fd::above_stdio(pidfd).map_err(|error| {
        // The program runs already, but can't be watched: it must not run unwatched.
        // SAFETY: the child is ours and has not been reaped, so the number is its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        reap(pid);
        Failure::from_io(Stage::Descriptors, &error)
    })?;
    Ok(Child { pid, pidfd: Some(pidfd) })
}

/// Creates the child as a copy of the host. A failure comes back through a pipe that the exec closes.
pub(super) fn fork(plan: &Plan<'_>) -> Result<Child, Failure> {
    let (report_read, report_write) = fd::pipe().map_err(|error| Failure::from_io(Stage::Pipe, &error))?;
    let mut orders = Orders::new(plan, Some(report_write.as_raw_fd()));
    let signals = AllSignalsBlocked::new();
    // SAFETY: the child calls nothing but `child::run`, which makes system calls only and never returns.
    let pid = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            child::run(ptr::from_mut(&mut orders).cast::<c_void>());
        }
        pid
    };
    let error = io::Error::last_os_error();
    drop(signals);
    if pid < 0 {
        return Err(Failure::from_io(Stage::Clone, &error));
    }
    drop(report_write);
    // SAFETY: pidfd_open takes a pid and flags; the child is unreaped, so the number is its own.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: a non-negative result is a new descriptor that nobody else owns.
    let pidfd = (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw as RawFd) });
    let pidfd = pidfd.and_then(|pidfd| fd::above_stdio(pidfd).ok());
    let mut report = [0u8; 8];
    match std::fs::File::from(report_read).read_exact(&mut report) {
        Err(_) => Ok(Child { pid, pidfd }), // closed by the exec
        Ok(()) => {
            reap(pid);
            let word = |at: usize| i32::from_ne_bytes([report[at], report[at + 1], report[at + 2], report[at + 3]]);
            Err(Failure { stage: stage_of(word(0)), errno: word(4) })
        }
    }
}

fn stage_of(number: i32) -> Stage {
    [Stage::Session, Stage::Signals, Stage::Descriptors, Stage::Workdir, Stage::Exec]
        .into_iter()
        .find(|stage| *stage as u32 as i32 == number)
        .unwrap_or(Stage::Clone)
}

/// Takes away a child that did not get as far as its program. A host that reaps strangers may have been faster.
fn reap(pid: i32) {
    // SAFETY: waits for our own child, also for one without an exit signal; no status is asked for.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) } < 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
}

/// Whether a clone here really shares memory and gives a pidfd. Emulators carry it out as a fork, and then neither a
/// failure nor the pid of the child would be seen.
pub(super) fn shares_memory() -> bool {
    extern "C" fn mark(cell: *mut c_void) -> c_int {
        // SAFETY: points to the caller's local, which outlives this child.
        unsafe { cell.cast::<u32>().write_volatile(0x5eed) };
        // SAFETY: ends the child without running anything of the host.
        unsafe { libc::_exit(0) }
    }
    if has_thread_sanitizer() {
        return false;
    }
    let Ok(stack) = Stack::take() else { return false };
    let signals = AllSignalsBlocked::new();
    let (mut cell, mut pidfd): (u32, RawFd) = (0, -1);
    // No exit signal: this child executes nothing, so it stays hidden from the host's own waits.
    // SAFETY: as in `vfork`; the child writes one word and ends.
    let pid = unsafe {
        libc::clone(mark, stack.top(), CLONE_FLAGS, ptr::from_mut(&mut cell).cast::<c_void>(), &raw mut pidfd)
    };
    drop(signals);
    stack.give_back();
    if pid < 0 {
        return false;
    }
    reap(pid);
    if pidfd >= 0 {
        // SAFETY: the clone has stored a new descriptor that nobody else owns.
        drop(unsafe { OwnedFd::from_raw_fd(pidfd) });
    }
    // SAFETY: a local.
    pidfd >= 0 && unsafe { ptr::read_volatile(&raw const cell) } == 0x5eed
}

/// Whether the host was built with ThreadSanitizer. That takes every clone for a fork, and ends the host when the child
/// shares its memory after all.
fn has_thread_sanitizer() -> bool {
    // SAFETY: looks a name up, which ends with NUL.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_init".as_ptr()) }.is_null()
}

/// All signals blocked on this thread until dropped, those of the C library too (its own functions leave them out).
struct AllSignalsBlocked {
    before: u64,
}

impl AllSignalsBlocked {
    fn new() -> AllSignalsBlocked {
        let mut before = 0;
        Self::set(&u64::MAX, &mut before);
        AllSignalsBlocked { before }
    }

    fn set(mask: &u64, before: *mut u64) {
        // SAFETY: both are 8-byte kernel signal sets; the call can't fail with a valid `how`.
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, mask, before, size_of::<u64>()) };
    }
}

impl Drop for AllSignalsBlocked {
    fn drop(&mut self) {
        Self::set(&self.before, ptr::null_mut());
    }
}

/// Memory for a child's stack. A few are kept, since touching fresh memory costs more than the clone.
struct Stack(*mut c_void);

// SAFETY: a mapping is not bound to a thread, and each is owned by one `Stack`.
unsafe impl Send for Stack {}

static SPARE_STACKS: Mutex<Vec<Stack>> = Mutex::new(Vec::new());

impl Stack {
    const SIZE: usize = 64 << 10;
    const GUARD: usize = 64 << 10; // a whole number of pages wherever pages have up to 64 KiB
    const SPARE: usize = 8;

    fn take() -> io::Result<Stack> {
        if let Some(stack) = SPARE_STACKS.lock().pop() {
            return Ok(stack);
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: a new private mapping; its lower part becomes a guard that an overflow faults on.
        unsafe {
            let base = libc::mmap(ptr::null_mut(), Self::GUARD + Self::SIZE, libc::PROT_NONE, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let stack = Stack(base);
            if libc::mprotect(base.byte_add(Self::GUARD), Self::SIZE, libc::PROT_READ | libc::PROT_WRITE) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(stack)
        }
    }

    fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping, and a multiple of 16.
        unsafe { self.0.byte_add(Self::GUARD + Self::SIZE) }
    }

    fn give_back(self) {
        let mut spare = SPARE_STACKS.lock();
        if spare.len() < Self::SPARE {
            spare.push(self);
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: our own mapping, used by nobody any more.
        unsafe { libc::munmap(self.0, Self::GUARD + Self::SIZE) };
    }
}
