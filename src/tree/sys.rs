//! The system calls that the process-table reader and the guard program share.
//!
//! The guard program has no libc, so its calls are a few lines of assembly. The library makes the same calls through
//! `libc::syscall`. Everything above [`raw`] is the same code in both.

use core::ffi::CStr;

/// A system call's answer, or its errno.
pub(crate) type Result<T> = core::result::Result<T, i32>;

#[cfg(dsh_guard_program)]
pub(crate) use raw::{syscall, SYS};

pub(crate) const EINTR: i32 = 4;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const ENFILE: i32 = 23;
pub(crate) const EMFILE: i32 = 24;
/// The directory descriptor that makes a relative path start at the working directory.
const AT_FDCWD: i32 = -100;
const O_CLOEXEC: usize = 0o2_000_000;

/// An open descriptor, closed on drop.
#[derive(Debug)]
pub(crate) struct Fd(i32);

impl Fd {
    /// Opens `path` for reading, close-on-exec.
    pub(crate) fn open(path: &CStr) -> Result<Self> {
        open_at(AT_FDCWD, path)
    }

    /// Opens `path`, relative to this directory, for reading, close-on-exec.
    pub(crate) fn open_below(&self, path: &CStr) -> Result<Self> {
        open_at(self.0, path)
    }

    /// Reads once; 0 is the end.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            // SAFETY: the kernel writes at most `buffer.len()` bytes to the buffer.
            let done = unsafe { raw::syscall(raw::SYS.read, [self.0 as usize, addr(buffer), buffer.len(), 0, 0, 0]) };
            if done != Err(EINTR) {
                return done;
            }
        }
    }

    /// The next batch of directory entries, in the kernel's `linux_dirent64` form; 0 is the end.
    pub(crate) fn list(&self, buffer: &mut [u8]) -> Result<usize> {
        // SAFETY: the kernel writes at most `buffer.len()` bytes to the buffer.
        unsafe { raw::syscall(raw::SYS.getdents64, [self.0 as usize, addr(buffer), buffer.len(), 0, 0, 0]) }
    }

    /// Takes over a descriptor that nobody else closes.
    #[cfg(dsh_guard_program)]
    pub(crate) fn from_raw(number: i32) -> Self {
        Self(number)
    }

    #[cfg(dsh_guard_program)]
    pub(crate) fn number(&self) -> i32 {
        self.0
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours alone, and nothing uses it after this.
        let _ = unsafe { raw::syscall(raw::SYS.close, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

/// The calling process.
pub(crate) fn own_pid() -> i32 {
    // SAFETY: takes nothing and can't fail.
    unsafe { raw::syscall(raw::SYS.getpid, [0; 6]) }.unwrap_or(0) as i32
}

fn open_at(directory: i32, path: &CStr) -> Result<Fd> {
    loop {
        // SAFETY: the path ends with NUL and outlives the call.
        let opened =
            unsafe { raw::syscall(raw::SYS.openat, [directory as usize, path.as_ptr() as usize, O_CLOEXEC, 0, 0, 0]) };
        if opened != Err(EINTR) {
            return opened.map(|number| Fd(number as i32));
        }
    }
}

fn addr(buffer: &mut [u8]) -> usize {
    buffer.as_mut_ptr() as usize
}

/// The calls through libc, on any architecture it knows.
#[cfg(not(dsh_guard_program))]
mod raw {
    pub(super) struct Numbers {
        pub(super) close: libc::c_long,
        pub(super) getdents64: libc::c_long,
        pub(super) getpid: libc::c_long,
        pub(super) openat: libc::c_long,
        pub(super) read: libc::c_long,
    }

    pub(super) const SYS: Numbers = Numbers {
        close: libc::SYS_close,
        getdents64: libc::SYS_getdents64,
        getpid: libc::SYS_getpid,
        openat: libc::SYS_openat,
        read: libc::SYS_read,
    };

    /// # Safety
    /// The arguments must be what the call with this number takes.
    pub(super) unsafe fn syscall(number: libc::c_long, args: [usize; 6]) -> super::Result<usize> {
        let [a, b, c, d, e, f] = args;
        // SAFETY: the caller's word.
        let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
        if answer == -1 {
            return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
        }
        Ok(answer as usize)
    }
}

/// The calls themselves.
#[cfg(dsh_guard_program)]
mod raw {
    use core::arch::asm;

    pub(crate) struct Numbers {
        pub(crate) clock_gettime: usize,
        pub(crate) close: usize,
        pub(crate) exit_group: usize,
        pub(crate) getdents64: usize,
        pub(crate) getpid: usize,
        pub(crate) getppid: usize,
        pub(crate) kill: usize,
        pub(crate) lseek: usize,
        pub(crate) mmap: usize,
        pub(crate) munmap: usize,
        pub(crate) openat: usize,
        pub(crate) pidfd_open: usize,
        pub(crate) pidfd_send_signal: usize,
        pub(crate) ppoll: usize,
        pub(crate) prctl: usize,
        pub(crate) prlimit64: usize,
        pub(crate) read: usize,
        pub(crate) rt_sigprocmask: usize,
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) const SYS: Numbers = Numbers {
        clock_gettime: 228,
        close: 3,
        exit_group: 231,
        getdents64: 217,
        getpid: 39,
        getppid: 110,
        kill: 62,
        lseek: 8,
        mmap: 9,
        munmap: 11,
        openat: 257,
        pidfd_open: 434,
        pidfd_send_signal: 424,
        ppoll: 271,
        prctl: 157,
        prlimit64: 302,
        read: 0,
        rt_sigprocmask: 14,
    };

    #[cfg(target_arch = "aarch64")]
    pub(crate) const SYS: Numbers = Numbers {
        clock_gettime: 113,
        close: 57,
        exit_group: 94,
        getdents64: 61,
        getpid: 172,
        getppid: 173,
        kill: 129,
        lseek: 62,
        mmap: 222,
        munmap: 215,
        openat: 56,
        pidfd_open: 434,
        pidfd_send_signal: 424,
        ppoll: 73,
        prctl: 167,
        prlimit64: 261,
        read: 63,
        rt_sigprocmask: 135,
    };

    /// # Safety
    /// The arguments must be what the call with this number takes.
    pub(crate) unsafe fn syscall(number: usize, args: [usize; 6]) -> super::Result<usize> {
        let [a, b, c, d, e, f] = args;
        let answer: isize;
        // SAFETY: the kernel's calling convention; what the call does to memory is the caller's word.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!("syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
                in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!("svc 0", in("x8") number, inlateout("x0") a => answer, in("x1") b, in("x2") c, in("x3") d,
                in("x4") e, in("x5") f, options(nostack));
        }
        // The last page of the address space can't be mapped, so these values are errors and never addresses.
        match answer {
            -4095..=-1 => Err(-answer as i32),
            _ => Ok(answer as usize),
        }
    }
}
