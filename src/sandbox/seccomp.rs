//! System calls that a confined command may not make, for what neither Landlock nor a namespace keeps from it.

use std::sync::OnceLock;

use libc::sock_filter;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Without network: sockets of the file system and of the kernel's own services only. `io_uring` is refused as well,
/// since it makes sockets without the call for it.
///
/// Connections to sockets in the file system stay possible as far as its permissions let them: whoever listens there can
/// be reached.
pub(crate) fn without_network() -> Option<&'static [sock_filter]> {
    static FILTER: OnceLock<Option<Vec<sock_filter>>> = OnceLock::new();
    FILTER.get_or_init(|| build().map(|program| program.iter().map(plain).collect())).as_deref()
}

/// The same instruction in the type of the libc crate.
fn plain(instruction: &seccompiler::sock_filter) -> sock_filter {
    sock_filter { code: instruction.code, jt: instruction.jt, jf: instruction.jf, k: instruction.k }
}

fn build() -> Option<BpfProgram> {
    let not =
        |family: i32| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family as u64).map_err(drop);
    let other_families = SeccompRule::new(vec![not(libc::AF_UNIX).ok()?, not(libc::AF_NETLINK).ok()?]).ok()?;
    let mut rules = vec![(libc::SYS_socket, vec![other_families]), (libc::SYS_io_uring_setup, Vec::new())];
    // The 32-bit-pointer calls of x86-64 have numbers of their own and pass for the same architecture.
    #[cfg(target_arch = "x86_64")]
    {
        const X32: i64 = 0x4000_0000;
        rules.extend(rules.clone().into_iter().map(|(call, rules)| (call | X32, rules)));
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules.drain(..).collect(), SeccompAction::Allow, refused, architecture()?).ok()?;
    filter.try_into().ok()
}

fn architecture() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}
