//! The marks by which the descendants of a command are found, whatever they do: entries in their environment.
//!
//! `DSH_PROCESS_ID=<executor>-<process>` is a command's own. A host that itself runs inside a command of another host
//! gives its commands the marks of that one too, as `DSH_OUTER_<executor>=<process>`: the outer host still finds them
//! when the inner one and its guard are gone.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;

/// The mark of a command.
pub(crate) const PROCESS_ID: &str = "DSH_PROCESS_ID";
/// What the names of the marks of outer hosts begin with.
pub(crate) const OUTER: &str = "DSH_OUTER_";
/// Hosts within hosts whose marks are passed on. Nobody nests as deep; a bound for what comes from outside.
const DEPTH: usize = 16;

/// Digits of the longest number of a process.
const DIGITS: usize = 20;

/// The mark of a command of this executor.
pub(crate) fn own(executor_id: &[u8; 32], process: u64) -> CString {
    // Put together by hand: `format!` takes ten times as long, which counts once for every command.
    let mut text = Vec::with_capacity(PROCESS_ID.len() + executor_id.len() + DIGITS + 3);
    for part in [PROCESS_ID.as_bytes(), b"=", executor_id, b"-"] {
        text.extend_from_slice(part);
    }
    let mut digits = [0; DIGITS];
    let (mut at, mut rest) = (DIGITS, process);
    while at == DIGITS || rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text.extend_from_slice(&digits[at..]);
    CString::new(text).unwrap_or_default()
}

/// The marks of the commands inside which the host runs, as its own commands carry them.
pub(crate) fn outer(host: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<CString> {
    let marks = host.into_iter().filter_map(|(name, value)| {
        let (name, value) = (std::str::from_utf8(name.as_bytes()).ok()?, std::str::from_utf8(value.as_bytes()).ok()?);
        let (executor, process) = match name.strip_prefix(OUTER) {
            Some(executor) => (executor, value),
            None if name == PROCESS_ID => value.split_once('-')?,
            None => return None,
        };
        let is_id = executor.len() == 32 && executor.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        (is_id && is_number).then(|| CString::new(format!("{OUTER}{executor}={process}")).ok())?
    });
    marks.take(DEPTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "00112233445566778899aabbccddeeff";
    const B: &str = "ffeeddccbbaa99887766554433221100";

    fn outer_of(host: &[(&str, &str)]) -> Vec<String> {
        let host = host.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        outer(host).into_iter().map(|mark| mark.into_string().unwrap()).collect()
    }

    #[test]
    fn a_mark_names_executor_and_process() {
        for process in [0, 7, 10, 1_234_567_890, u64::MAX] {
            let mark = own(b"00112233445566778899aabbccddeeff", process);
            assert_eq!(mark.to_str().unwrap(), format!("DSH_PROCESS_ID={A}-{process}"));
        }
    }

    #[test]
    fn the_marks_of_all_outer_hosts_are_passed_on() {
        let host = [("DSH_PROCESS_ID", &*format!("{A}-7")), ("X", "1"), (&*format!("DSH_OUTER_{B}"), "12")];
        assert_eq!(outer_of(&host), [format!("DSH_OUTER_{A}=7"), format!("DSH_OUTER_{B}=12")]);
    }

    #[test]
    fn what_is_no_mark_is_not_passed_on() {
        let host = [("DSH_PROCESS_ID", "x-1"), ("DSH_OUTER_", "1"), (&*format!("DSH_OUTER_{A}"), "1x")];
        assert_eq!(outer_of(&host), [""; 0]);
        assert_eq!(outer_of(&[("DSH_PROCESS_ID", &format!("{A}-")), ("DSH_PROCESS_ID", A)]), [""; 0]);
    }
}
