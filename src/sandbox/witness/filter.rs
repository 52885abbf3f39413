//! The seccomp program that announces what may change something.

use std::os::raw::{c_long, c_ulong};
use std::ptr;
use std::sync::OnceLock;

use libc::{sock_filter, SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF};

use super::calls::{BLINDING, CHANGES, OLD_CHANGES, SIFTED};

/// The architecture whose calls the program knows, as the kernel names it.
const ARCHITECTURE: Option<u32> = if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
    Some(0xc000_003e)
} else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
    Some(0xc000_00b7)
} else {
    None
};
/// From here on are the numbers of x86-64's calls with 32-bit pointers.
const X32: u32 = 0x4000_0000;

/// Where the kernel puts what the program looks at: `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// The half of an argument in which flags are.
const fn low_half(argument: usize) -> u32 {
    16 + 8 * argument as u32
}

/// The program; empty where there can't be a witness. Everything it does not announce it allows.
pub(crate) fn filter() -> &'static [sock_filter] {
    static FILTER: OnceLock<Vec<sock_filter>> = OnceLock::new();
    FILTER.get_or_init(|| match (ARCHITECTURE, flags()) {
        (Some(architecture), Some(_)) => build(architecture),
        _ => Vec::new(),
    })
}

/// The flags to install it with; `None` when the kernel can't let announced calls go on (before Linux 5.7; it could
/// since 5.5, but that can't be asked).
pub(crate) fn flags() -> Option<c_ulong> {
    static FLAGS: OnceLock<Option<c_ulong>> = OnceLock::new();
    *FLAGS.get_or_init(|| {
        let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // A signal does not make a call that is being answered start over.
        let undisturbed = listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        if knows(undisturbed) {
            Some(undisturbed)
        } else if knows(libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH) && knows(listener) {
            Some(listener)
        } else {
            None
        }
    })
}

/// Whether the kernel knows these flags: then it minds the missing program, and before that nothing.
fn knows(flags: c_ulong) -> bool {
    let none = ptr::null::<libc::sock_fprog>();
    // SAFETY: without a program nothing is installed; the kernel reports the address.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, none) };
    answer < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

/// The program in the kernel's order of thought: the architecture, then the number, then the flags of some.
///
/// For most calls it looks at nothing but the number. Such answers the kernel remembers (since 5.11), so that what is not
/// announced costs next to nothing.
fn build(architecture: u32) -> Vec<sock_filter> {
    let announced: Vec<c_long> =
        CHANGES.iter().chain(OLD_CHANGES).map(|call| call.number).chain(BLINDING.iter().copied()).collect();
    // The ends come last; how far away they are has to fit into a byte, and does with room to spare.
    let allow = 4 + SIFTED.len() + announced.len();
    let sieves = allow + 1;
    let notify = sieves + 3 * SIFTED.len();
    let mut program = vec![
        load(ARCH),
        // Skips nothing, or everything.
        jump(libc::BPF_JEQ, architecture, 0, allow - 2),
        load(NUMBER),
        jump(libc::BPF_JGE, X32, allow - 4, 0),
    ];
    for (i, call) in SIFTED.iter().enumerate() {
        let distance = sieves + 3 * i - program.len() - 1;
        program.push(jump(libc::BPF_JEQ, call.number as u32, distance, 0));
    }
    for number in announced {
        let distance = notify - program.len() - 1;
        program.push(jump(libc::BPF_JEQ, number as u32, distance, 0));
    }
    program.push(end(SECCOMP_RET_ALLOW));
    for call in SIFTED {
        let (argument, flags) = call.sieve().unwrap_or((0, u32::MAX));
        let distance = notify - program.len() - 2;
        program.extend([load(low_half(argument)), jump(libc::BPF_JSET, flags, distance, 0), end(SECCOMP_RET_ALLOW)]);
    }
    program.push(end(SECCOMP_RET_USER_NOTIF));
    program
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

/// Skips `jt` instructions if the comparison with `k` holds, else `jf`.
fn jump(comparison: u32, k: u32, jt: usize, jf: usize) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | comparison | libc::BPF_K) as u16, jt: jt as u8, jf: jf as u8, k }
}

fn end(answer: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: answer }
}
