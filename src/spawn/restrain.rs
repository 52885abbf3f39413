//! Giving up rights in a new child: capabilities, Landlock, seccomp. System calls only, as all that a child does.

use std::ffi::{c_int, c_ulong};
use std::mem::{offset_of, size_of};
use std::os::fd::AsRawFd;
use std::ptr;

use libc::{sock_filter, sock_fprog};

use super::plan::Restraint;

/// What a confined command of root keeps: changing files of others, as far as it may reach them, and being somebody else.
/// Not devices, mounts, modules, clocks, other processes, or raw packets, which no sandbox of files knows of.
const KEPT_CAPABILITIES: u64 = {
    const CHOWN: u64 = 1;
    const DAC_OVERRIDE: u64 = 1 << 1;
    const DAC_READ_SEARCH: u64 = 1 << 2;
    const FOWNER: u64 = 1 << 3;
    const FSETID: u64 = 1 << 4;
    const SETGID: u64 = 1 << 6;
    const SETUID: u64 = 1 << 7;
    const NET_BIND_SERVICE: u64 = 1 << 10;
    CHOWN | DAC_OVERRIDE | DAC_READ_SEARCH | FOWNER | FSETID | SETGID | SETUID | NET_BIND_SERVICE
};

const SECCOMP_SET_MODE_FILTER: c_ulong = 1;

/// A [`Restraint`] in the shape in which the child uses it.
pub(super) struct Restraining {
    ruleset: usize,
    drops_capabilities: bool,
    filters: *const &'static [sock_filter],
    filter_count: usize,
    witness: Option<Listener>,
}

struct Listener {
    filter: *const sock_filter,
    length: usize,
    flags: c_ulong,
    socket: usize,
}

impl Restraining {
    /// `keep` takes a descriptor to be kept and gives the number that it will have in the child.
    pub(super) fn new(restraint: &Restraint<'_>, keep: &mut impl FnMut(c_int) -> usize) -> Restraining {
        Restraining {
            ruleset: keep(restraint.ruleset.as_raw_fd()),
            drops_capabilities: restraint.drops_capabilities,
            filters: restraint.filters.as_ptr().cast(),
            filter_count: restraint.filters.len(),
            witness: restraint.witness.map(|witness| Listener {
                filter: witness.filter.as_ptr(),
                length: witness.filter.len(),
                flags: witness.flags,
                socket: keep(witness.socket.as_raw_fd()),
            }),
        }
    }

    /// Numbers in the child that the exec has to close.
    pub(super) fn descriptors(&self) -> [Option<usize>; 2] {
        [Some(self.ruleset), self.witness.as_ref().map(|witness| witness.socket)]
    }

    /// Gives the rights up, or gives the errno of what failed.
    ///
    /// # Safety
    /// In a fresh child whose descriptors are in place, with the plan that this was made from alive.
    pub(super) unsafe fn carry_out(&self) -> Result<(), c_int> {
        // SAFETY: each call takes numbers, or pointers to the plan or to this stack.
        unsafe {
            if self.drops_capabilities {
                drop_capabilities()?;
            }
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            check(libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset, 0))?;
            for at in 0..self.filter_count {
                let filter = *self.filters.add(at);
                install(filter.as_ptr(), filter.len(), 0)?;
            }
            if let Some(&Listener { filter, length, flags, socket }) = self.witness.as_ref() {
                if let Ok(listener) = install(filter, length, flags) {
                    let sent = send_descriptor(socket as c_int, listener as c_int);
                    libc::close(listener as c_int);
                    // A filter that nobody listens to would have its calls fail.
                    sent?;
                }
            }
        }
        Ok(())
    }
}

unsafe fn install(filter: *const sock_filter, length: usize, flags: c_ulong) -> Result<i64, c_int> {
    let program = sock_fprog { len: length as u16, filter: filter.cast_mut() };
    // SAFETY: the kernel copies the program, which the caller gives.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const program) })
}

/// Drops all capabilities but [`KEPT_CAPABILITIES`], for good. An ordinary user has none to drop.
unsafe fn drop_capabilities() -> Result<(), c_int> {
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut data = [Data { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: the structs are what the calls take, for the calling thread.
    unsafe {
        check(libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()))?;
        if data[0].permitted == 0 && data[1].permitted == 0 {
            return Ok(());
        }
        for capability in 0..64u64 {
            if KEPT_CAPABILITIES >> capability & 1 == 0 {
                // Refused above the kernel's last one, and to who lacks CAP_SETPCAP, who can't get them back either:
                // privileges never grow again from here on.
                libc::prctl(libc::PR_CAPBSET_DROP, capability as c_ulong, 0, 0, 0);
            }
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        for (word, data) in data.iter_mut().enumerate() {
            let kept = (KEPT_CAPABILITIES >> (32 * word)) as u32;
            data.permitted &= kept;
            data.effective &= kept;
            data.inheritable = 0;
        }
        check(libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()))?;
    }
    Ok(())
}

/// Sends a descriptor through a Unix socket, with one byte.
unsafe fn send_descriptor(socket: c_int, descriptor: c_int) -> Result<(), c_int> {
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        descriptor: c_int,
    }
    let mut byte = 0u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: plain data whose fields are set below as far as they matter.
    let (mut control, mut message): (Control, libc::msghdr) = unsafe { std::mem::zeroed() };
    control.header.cmsg_level = libc::SOL_SOCKET;
    control.header.cmsg_type = libc::SCM_RIGHTS;
    control.header.cmsg_len = (offset_of!(Control, descriptor) + size_of::<c_int>()) as _;
    control.descriptor = descriptor;
    message.msg_iov = ptr::from_mut(&mut part);
    message.msg_iovlen = 1;
    message.msg_control = ptr::from_mut(&mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message points to this stack only.
    check(unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) } as i64).map(drop)
}

fn check(result: i64) -> Result<i64, c_int> {
    match result {
        0.. => Ok(result),
        // SAFETY: the location is always valid.
        _ => Err(unsafe { *libc::__errno_location() }),
    }
}
