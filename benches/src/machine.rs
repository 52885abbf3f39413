//! What this machine is, and how busy it is with other things.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The names and values of a small table.
pub fn describe(root: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("date", said("date", &["-u", "+%F"])),
        ("libdsh", format!("{}, commit {}", library_version(root), commit(root))),
        ("kernel", format!("Linux {}", kernel())),
        ("processor", format!("{}, {} cores", processor(), cores())),
        ("memory", format!("{} GiB", (meminfo("MemTotal") as f64 / f64::from(1 << 20)).round())),
        ("bash", bash()),
    ]
}

/// The first line of what a program says, or a question mark.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("?").to_owned()
}

fn library_version(root: &Path) -> String {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    version.map_or("?".to_owned(), |version| version.trim_matches('"').to_owned())
}

fn commit(root: &Path) -> String {
    let root = root.to_string_lossy();
    let commit = said("git", &["-C", &root, "rev-parse", "--short=12", "HEAD"]);
    // Only what goes into the library counts: the report itself is being written.
    let changed =
        said("git", &["-C", &root, "status", "--porcelain", "--", "src", "bindings", "Cargo.lock", "Cargo.toml"]);
    if changed == "?" {
        commit
    } else {
        commit + " and changes"
    }
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // What follows the number names a distribution's build.
    release.trim().split('-').next().unwrap_or_default().to_owned()
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or(std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

/// A line of /proc/meminfo, in KiB.
fn meminfo(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

pub fn available_mib() -> u32 {
    (meminfo("MemAvailable") >> 10) as u32
}

fn bash() -> String {
    let line = said("bash", &["--version"]);
    let version = line.split_once("version ").map(|(_, rest)| rest.split('(').next().unwrap_or(rest));
    version.unwrap_or("?").to_owned()
}

/// The CPU time that has been used, in clock ticks: by the whole machine, and by a peer and the conductor
/// with all that they have reaped.
pub struct Ticks {
    machine: u64,
    peer: u64,
    conductor: u64,
}

impl Ticks {
    pub fn now(peer: Option<u32>) -> Ticks {
        Ticks {
            machine: fs::read_to_string("/proc/stat").map_or(0, |text| machine_ticks(&text)),
            peer: peer.map_or(0, process_ticks),
            conductor: process_ticks(std::process::id()),
        }
    }

    /// Milliseconds of CPU that others used since `before`: a little off, since the kernel counts ticks.
    pub fn of_others_since(&self, before: &Ticks) -> f64 {
        let machine = self.machine.saturating_sub(before.machine);
        let ours = self.peer.saturating_sub(before.peer) + self.conductor.saturating_sub(before.conductor);
        // SAFETY: asks for a number.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        machine.saturating_sub(ours) as f64 * 1000.0 / per_second as f64
    }
}

/// User, nice, system and stolen time of all processors. Stolen is what the host of a virtual machine gave to others, which
/// disturbs as much.
fn machine_ticks(stat: &str) -> u64 {
    let fields: Vec<u64> = stat.lines().next().unwrap_or("").split_whitespace().skip(1).flat_map(str::parse).collect();
    [0, 1, 2, 7].into_iter().filter_map(|i| fields.get(i)).sum()
}

fn process_ticks(pid: u32) -> u64 {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(0, |text| stat_ticks(&text))
}

/// utime, stime, cutime and cstime. The name, which may have anything in it, ends with the last parenthesis.
fn stat_ticks(stat: &str) -> u64 {
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(4).flat_map(str::parse::<u64>).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_a_process_count_its_children() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1 0 99";
        assert_eq!(stat_ticks(stat), 127);
    }

    #[test]
    fn ticks_of_the_machine_are_those_that_were_worked() {
        assert_eq!(machine_ticks("cpu  100 20 3 5000 600 70 80 4 9 9\ncpu0 1 1 1"), 127);
    }
}
