//! The process groups of what runs in the background. They are groups of their own, which an interrupted peer must not
//! leave behind.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

static GROUPS: [AtomicI32; 8192] = [const { AtomicI32::new(0) }; 8192];

/// A group that is ended when the peer is interrupted, until this is dropped.
pub struct Group {
    pid: i32,
    slot: Option<&'static AtomicI32>,
}

impl Group {
    pub fn new(pid: i32) -> Group {
        Group { pid, slot: GROUPS.iter().find(|slot| slot.compare_exchange(0, pid, SeqCst, SeqCst).is_ok()) }
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    pub fn terminate(&self) -> Result<(), String> {
        terminate(self.pid)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.store(0, SeqCst);
        }
    }
}

/// Sends SIGTERM to a group of ours that has not been reaped.
pub fn terminate(pid: i32) -> Result<(), String> {
    // SAFETY: it touches no memory.
    match unsafe { libc::kill(-pid, libc::SIGTERM) } {
        0 => Ok(()),
        _ => Err(format!("kill {pid}: {}", io::Error::last_os_error())),
    }
}

extern "C" fn interrupted(number: libc::c_int) {
    for slot in &GROUPS {
        let pid = slot.load(SeqCst);
        if pid > 0 {
            // SAFETY: it may be called in a signal handler and touches no memory.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
    }
    // SAFETY: as above; it does not return.
    unsafe { libc::_exit(128 + number) }
}

pub fn end_when_interrupted() {
    let handler = interrupted as extern "C" fn(libc::c_int);
    for number in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler does only what a handler may do.
        unsafe { libc::signal(number, handler as libc::sighandler_t) };
    }
}
