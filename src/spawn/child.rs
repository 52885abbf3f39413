//! What a new child does until it executes its program: system calls only.
//!
//! The code runs in a child that may share the host's memory while the host's other threads go on, or that is the
//! copy of a process whose locks may be held by threads that no longer exist. So it may not allocate, format, drop,
//! lock, panic, or touch anything but its own stack and the prepared [`Orders`].

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::{Plan, Program};
use super::restrain::Restraining;
use super::Failure;
use crate::error::Stage;

/// Room for the plan's files, the program, the report pipe, the ruleset and the witness's socket.
const MAX_KEPT: usize = Plan::MAX_FILES + 4;

/// A [`Plan`] in the shape in which the child uses it: raw pointers and numbers.
pub(super) struct Orders {
    path: *const c_char,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    workdir: *const c_char,
    /// Sources of the child's descriptors 0, 1, 2 …; the last `hidden` of them are closed by the exec.
    files: [c_int; MAX_KEPT],
    count: usize,
    program: Option<usize>,
    report: Option<usize>,
    restraint: Option<Restraining>,
    /// The signals that are blocked in the program.
    blocked: u64,
    announce: *const AtomicU64,
    encode: fn(i32) -> u64,
    /// Written by a child that shares this memory.
    pub(super) failure: Option<Failure>,
    pub(super) started: bool,
}

impl Orders {
    /// `report` is the descriptor to write a failure to, for a child that does not share memory.
    ///
    /// The orders hold pointers into the plan and are only good while it lives.
    pub(super) fn new(plan: &Plan<'_>, report: Option<c_int>) -> Orders {
        use std::os::fd::AsRawFd;
        assert!(plan.files.len() <= Plan::MAX_FILES, "a plan has too many files");
        let mut files = [-1; MAX_KEPT];
        let mut count = 0;
        let mut keep = |fd: c_int| {
            files[count] = fd;
            count += 1;
            count - 1
        };
        for file in plan.files {
            keep(file.as_raw_fd());
        }
        let (path, program) = match plan.program {
            Program::Path(path) => (path.as_ptr(), None),
            Program::Descriptor(fd) => (c"".as_ptr(), Some(keep(fd.as_raw_fd()))),
        };
        let report = report.map(&mut keep);
        let restraint = plan.restraint.as_ref().map(|restraint| Restraining::new(restraint, &mut keep));
        let pointers = |strings: &[&std::ffi::CStr]| {
            strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>()
        };
        Orders {
            path,
            arguments: pointers(plan.arguments),
            environment: pointers(plan.environment),
            workdir: plan.workdir.as_ptr(),
            files,
            count,
            program,
            report,
            restraint,
            blocked: if plan.signals_blocked { u64::MAX } else { 0 },
            announce: plan.announce.map_or(ptr::null(), |(cell, _)| ptr::from_ref(cell)),
            encode: plan.announce.map_or(|pid| pid as u64, |(_, encode)| encode),
            failure: None,
            started: false,
        }
    }
}

/// The child's whole life before its program: carries the orders out, or reports the failing step and ends.
///
/// Unsafe in all but its type, which `libc::clone` prescribes: only for a fresh child, with all signals blocked, and with
/// `orders` pointing to valid [`Orders`] whose plan is alive and which no other thread uses meanwhile.
pub(super) extern "C" fn run(orders: *mut c_void) -> c_int {
    let orders = orders.cast::<Orders>();
    // SAFETY: the caller's promise. No reference outlives a statement that could be seen by the parent: it is
    // suspended (vfork) or has its own copy (fork).
    unsafe {
        (*orders).started = true;
        let (stage, errno) = carry_out(&*orders);
        let failure = Failure { stage, errno };
        (*orders).failure = Some(failure);
        if let Some(report) = (*orders).report {
            // The descriptors may not be in place yet; then the report is still at its source. The pipe is empty and
            // the message short, so the write is whole. What else could be done about a failure here?
            let message = [failure.stage as u32 as i32, errno];
            for fd in [report as c_int, (*orders).files[report]] {
                if libc::write(fd, message.as_ptr().cast(), size_of_val(&message)) > 0 {
                    break;
                }
            }
        }
        libc::_exit(127)
    }
}

/// Returns only on failure: with the step and the errno.
unsafe fn carry_out(orders: &Orders) -> (Stage, c_int) {
    // SAFETY: see `run`; each call gets valid pointers of the orders or of this stack.
    unsafe {
        if !orders.announce.is_null() {
            (*orders.announce).store((orders.encode)(libc::getpid()), Ordering::Release);
        }
        if libc::setsid() < 0 {
            return (Stage::Session, errno());
        }
        reset_signals();
        if let Err(errno) = place(orders) {
            return (Stage::Descriptors, errno);
        }
        if libc::chdir(orders.workdir) < 0 {
            return (Stage::Workdir, errno());
        }
        // All handlers are gone, so unblocking can't run code of the host in this child.
        let blocked = &raw const orders.blocked;
        let size = size_of::<u64>();
        if libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, blocked, ptr::null_mut::<u64>(), size) < 0 {
            return (Stage::Signals, errno());
        }
        if let Some(restraint) = &orders.restraint {
            if let Err(errno) = restraint.carry_out() {
                return (Stage::Sandbox, errno);
            }
        }
        match orders.program {
            None => {
                libc::execve(orders.path, orders.arguments.as_ptr(), orders.environment.as_ptr());
            }
            Some(fd) => {
                let (arguments, environment) = (orders.arguments.as_ptr(), orders.environment.as_ptr());
                libc::syscall(libc::SYS_execveat, fd, c"".as_ptr(), arguments, environment, libc::AT_EMPTY_PATH);
            }
        }
        (Stage::Exec, errno())
    }
}

/// Every signal back to its default: ignored ones would stay ignored in the program, and handlers would run here once
/// signals are unblocked. The C library's own functions leave 32 and 33 out, hence the bare system call: a host that
/// was started with them ignored passes that on as well. The kernel refuses 9 and 19, which is no error here.
unsafe fn reset_signals() {
    // A kernel `sigaction` of zeros: SIG_DFL, no flags, no restorer, empty mask.
    let default = [0u64; 4];
    for signal in 1..=64 {
        let before = ptr::null_mut::<u64>();
        // SAFETY: the kernel reads at most 32 bytes, and the signal table is this child's own.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &default, before, size_of::<u64>()) };
    }
}

/// Puts the files on 0, 1, 2 … and closes all others.
unsafe fn place(orders: &Orders) -> Result<(), c_int> {
    let count = orders.count as c_int;
    let mut sources = orders.files;
    // SAFETY: plain descriptor calls in the child's own table.
    unsafe {
        // First out of the way of the targets, so that no dup2 overwrites a source that is still needed.
        for source in sources.iter_mut().take(orders.count) {
            if *source < count {
                let moved = libc::fcntl(*source, libc::F_DUPFD_CLOEXEC, count);
                if moved < 0 {
                    return Err(errno());
                }
                *source = moved;
            }
        }
        for (target, source) in sources.iter().enumerate().take(orders.count) {
            if libc::dup2(*source, target as c_int) < 0 {
                return Err(errno());
            }
        }
        let restraint = orders.restraint.as_ref().map_or([None, None], Restraining::descriptors);
        for hidden in [orders.program, orders.report].into_iter().chain(restraint).flatten() {
            if libc::fcntl(hidden as c_int, libc::F_SETFD, libc::FD_CLOEXEC) < 0 {
                return Err(errno());
            }
        }
        if libc::syscall(libc::SYS_close_range, count, c_int::MAX, 0) < 0 {
            close_listed(count);
        }
    }
    Ok(())
}

/// Closes all descriptors from `first` on, for kernels before 5.9 and filters that refuse `close_range`.
unsafe fn close_listed(first: c_int) {
    #[repr(C, align(8))]
    struct Buffer([u8; 4096]);
    let mut buffer = Buffer([0; 4096]);
    // SAFETY: the buffer is this stack's, and getdents64 fills it with records whose length field says where the next
    // one begins; each field read lies within the length that the call returned.
    unsafe {
        let folder = libc::open(c"/proc/self/fd".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        if folder < 0 {
            // Without /proc every possible number has to be tried, up to a bound that ends in good time.
            for fd in first..65_536 {
                libc::close(fd);
            }
            return;
        }
        loop {
            let size = libc::syscall(libc::SYS_getdents64, folder, buffer.0.as_mut_ptr(), buffer.0.len());
            if size <= 0 {
                break;
            }
            let mut at = 0;
            while at < size as usize {
                let record = buffer.0.as_ptr().add(at).cast::<libc::dirent64>();
                let fd = decimal((&raw const (*record).d_name).cast());
                if fd >= first && fd != folder {
                    libc::close(fd);
                }
                at += (*record).d_reclen as usize;
            }
        }
        libc::close(folder);
    }
}

/// The value of a NUL-terminated decimal number, or -1.
unsafe fn decimal(mut text: *const u8) -> c_int {
    let mut value: c_int = -1;
    // SAFETY: the caller gives a NUL-terminated string.
    unsafe {
        while (*text).is_ascii_digit() {
            value = value.max(0).wrapping_mul(10).wrapping_add(c_int::from(*text - b'0'));
            text = text.add(1);
        }
        if *text == 0 {
            value
        } else {
            -1
        }
    }
}

fn errno() -> c_int {
    // SAFETY: the location is always valid. In a child that shares memory it is the suspended parent thread's.
    unsafe { *libc::__errno_location() }
}
