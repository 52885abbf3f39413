//! Signals that our own writes may raise, kept from the host.

use std::mem::MaybeUninit;
use std::ptr;

/// Keeps SIGPIPE and SIGXFSZ, raised by a write of this thread, from the host's handlers and from ending the host.
///
/// On a thread of the host they are blocked from the first need on; a signal that came meanwhile is consumed, and the
/// thread's mask is what it was, when the shield is dropped. Threads of the library block all signals anyway.
pub(crate) struct Shield {
    raised: Option<Raised>,
    needed: bool,
}

struct Raised {
    before: libc::sigset_t,
    /// The signals that were not pending before, so that a pending one is ours.
    ours: libc::sigset_t,
}

const SIGNALS: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

impl Shield {
    /// For a thread of the host.
    pub(crate) fn for_host() -> Shield {
        Shield { raised: None, needed: true }
    }

    /// For a thread of the library.
    pub(crate) fn for_own_thread() -> Shield {
        Shield { raised: None, needed: false }
    }

    /// Makes sure that the next write can't hurt the host.
    pub(crate) fn raise(&mut self) {
        if self.needed && self.raised.is_none() {
            self.raised = Some(Raised::new());
        }
    }
}

impl Raised {
    fn new() -> Raised {
        let mut ours = empty_set();
        let mut before = empty_set();
        let mut pending = empty_set();
        // SAFETY: all sets are initialised locals, and the calls can't fail with these arguments.
        unsafe {
            libc::sigpending(&mut pending);
            for signal in SIGNALS {
                if libc::sigismember(&pending, signal) == 0 {
                    libc::sigaddset(&mut ours, signal);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
        }
        Raised { before, ours }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        // SAFETY: all sets are initialised, and the calls can't fail with these arguments.
        unsafe {
            let mut pending = empty_set();
            libc::sigpending(&mut pending);
            for signal in SIGNALS {
                if libc::sigismember(&self.ours, signal) == 1 && libc::sigismember(&pending, signal) == 1 {
                    let mut one = empty_set();
                    libc::sigaddset(&mut one, signal);
                    consume(&one);
                }
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut());
        }
    }
}

/// Takes a pending signal away without running its handler.
unsafe fn consume(set: &libc::sigset_t) {
    #[cfg(target_os = "linux")]
    {
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: valid pointers; returns at once.
        unsafe { libc::sigtimedwait(set, ptr::null_mut(), &none) };
    }
    #[cfg(not(target_os = "linux"))]
    {
        let mut signal = 0;
        // SAFETY: valid pointers. The signal is pending, so this returns at once.
        unsafe { libc::sigwait(set, &mut signal) };
    }
}

/// Runs `start` with all signals blocked on this thread, so that a thread that it makes has them blocked from birth.
pub(crate) fn with_all_blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = empty_set();
    let mut before = empty_set();
    // SAFETY: the sets are initialised locals.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let result = start();
    // SAFETY: the mask that the call above has stored.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
    result
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}
