//! What the peer uses: time, memory, threads, descriptors.

use std::fs;
use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// As much memory as a big host has, with every page in use.
pub fn ballast(mib: usize) -> Vec<u8> {
    vec![1; mib << 20]
}

/// CPU time of this process, user and system, in microseconds.
pub fn cpu_us() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills in the struct, which is valid with all zeros too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    us(usage.ru_utime) + us(usage.ru_stime)
}

pub fn rss_kib() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok())
        .unwrap_or_default();
    // SAFETY: it only asks for a number.
    pages * (unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64 / 1024)
}

fn entries(folder: &str) -> u64 {
    fs::read_dir(folder).map_or(0, |entries| entries.count() as u64)
}

pub fn threads() -> u64 {
    entries("/proc/self/task")
}

pub fn open_fds() -> u64 {
    entries("/proc/self/fd").saturating_sub(1) // the folder itself is open while it is read
}

/// Microseconds since 1970: the clock of `$EPOCHREALTIME`.
pub fn epoch_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

pub fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives longer than both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Until the shell has become `sleep`.
pub fn await_sleep(pid: i32) -> Result<(), String> {
    let path = format!("/proc/{pid}/comm");
    for _ in 0..100_000 {
        match fs::read_to_string(&path) {
            Ok(name) if name == "sleep\n" => return Ok(()),
            Ok(_) => std::thread::sleep(Duration::from_micros(100)),
            Err(error) => return Err(format!("{path}: {error}")),
        }
    }
    Err(format!("{path}: never became sleep"))
}
