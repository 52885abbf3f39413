//! A foreground run, driven by the thread that called it: no hand-off to another thread is paid.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pipes::{Intake, Intaken, Pipes};
use super::tending::{Look, Next, Tending};
use super::BUFFER;
use crate::fd::Waker;
use crate::signals::Shield;
use crate::tree::Census;

/// What a run needs besides its own pipes; used again by the next one.
pub(crate) struct Kit {
    pub(crate) waker: Arc<Waker>,
    buffer: Vec<u8>,
}

/// Members watched at a time. When they have ended, the others are looked at.
const WATCHED: usize = 64;

impl Kit {
    pub(crate) fn new() -> std::io::Result<Kit> {
        Ok(Kit { waker: Arc::new(Waker::new()?), buffer: vec![0; BUFFER] })
    }
}

/// Drives the process until its result is there, or until the given moment. What is left of it then has to be handed over.
pub(crate) fn drive(
    tending: &mut Tending,
    pipes: &mut Pipes,
    kit: &mut Kit,
    census: &Census,
    until: Option<Instant>,
) -> Next {
    let core = tending.core().clone();
    let mut shield = Shield::for_host();
    let mut naps: Vec<Option<Instant>> = vec![None; pipes.outputs.len()];
    if let Some(stdin) = &mut pipes.stdin {
        if !stdin.feed(&core, &mut shield) {
            pipes.stdin = None;
        }
    }
    let mut leader = false;
    let mut polled = Vec::with_capacity(8);
    loop {
        let mut next = tending.step(Look { now: Instant::now(), leader, table: None });
        while next.table || next.drain {
            if next.drain {
                pipes
                    .outputs
                    .retain_mut(|output| !matches!(output.take_in(&core, &mut kit.buffer, &mut shield), Intaken::End));
                core.mark_drained(pipes.outputs.iter().filter_map(Intake::inode).collect());
            }
            let table = next.table.then(|| census.take());
            let table = table.as_ref().map(|table| table.as_ref().map_err(|errno| *errno));
            next = tending.step(Look { now: Instant::now(), leader: true, table });
        }
        let now = Instant::now();
        if next.settled || until.is_some_and(|until| now >= until) {
            return next;
        }
        if tending.leader_exited() || pipes.outputs.len() < naps.len() {
            // What is in the pipe now is all there will be, or nearly; or the naps are not those of the pipes left.
            naps = vec![None; pipes.outputs.len()];
        }
        polled.clear();
        polled.push(entry(kit.waker.as_raw_fd(), libc::POLLIN));
        polled.push(entry(tending.unended_leader().unwrap_or(-1), libc::POLLIN));
        polled.push(entry(pipes.stdin.as_ref().map_or(-1, |stdin| stdin.fd()), libc::POLLOUT));
        for (output, nap) in pipes.outputs.iter().zip(&mut naps) {
            *nap = nap.filter(|until| now < *until);
            polled.push(entry(output.fd(), if nap.is_some() { 0 } else { libc::POLLIN }));
        }
        polled.extend(tending.tree().watched().take(WATCHED).map(|fd| entry(fd, libc::POLLIN)));
        let wake_at = naps.iter().copied().flatten().chain(next.at).chain(until).min();
        poll(&mut polled, wake_at.map(|at| at.saturating_duration_since(now)));

        if polled[0].revents != 0 {
            kit.waker.clear();
        }
        leader = polled[1].revents != 0;
        if polled[2].revents != 0 && !pipes.stdin.as_mut().is_some_and(|stdin| stdin.feed(&core, &mut shield)) {
            pipes.stdin = None;
        }
        let mut answers = polled[3..].iter();
        let mut pause = naps.iter_mut();
        pipes.outputs.retain_mut(|output| {
            let (Some(answer), Some(nap)) = (answers.next(), pause.next()) else { return true };
            if answer.revents == 0 {
                return true;
            }
            match output.take_in(&core, &mut kit.buffer, &mut shield) {
                Intaken::Empty(time) => *nap = (!time.is_zero()).then(|| Instant::now() + time),
                Intaken::More => *nap = None,
                Intaken::End => return false,
            }
            true
        });
    }
}

fn entry(fd: RawFd, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// Waits for any of the descriptors, or the time. When the system can't wait, everything counts as ready: nothing that
/// is done then blocks, and a short pause keeps it from being done all the time.
fn poll(polled: &mut [libc::pollfd], limit: Option<Duration>) {
    #[cfg(target_os = "linux")]
    let result = {
        let time = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs().min(i32::MAX as u64) as _,
            tv_nsec: limit.subsec_nanos() as _,
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the array is as long as said, and the time is a local or null; no mask is given.
        unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, time, std::ptr::null()) }
    };
    #[cfg(not(target_os = "linux"))]
    let result = {
        let time = limit.map_or(-1, |limit| limit.as_millis().min(i32::MAX as u128 - 1) as i32 + 1);
        // SAFETY: the array is as long as said.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, time) }
    };
    if result < 0 {
        let interrupted = std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        for entry in polled.iter_mut() {
            entry.revents = if interrupted || entry.fd < 0 { 0 } else { libc::POLLERR };
        }
        if !interrupted {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
