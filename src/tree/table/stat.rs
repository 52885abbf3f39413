//! `/proc/PID/stat`, one line of fields (proc_pid_stat(5)).

use super::Entry;

/// Longer than the line can be up to the last field that is read.
pub(super) const BUFFER: usize = 1024;

/// The flag of kernel threads in field 9.
const PF_KTHREAD: u64 = 0x0020_0000;

pub(super) struct Stat {
    pub(super) entry: Entry,
    pub(super) kernel_thread: bool,
}

/// Takes a line apart. The name of the program is in parentheses and may itself hold blanks, parentheses and newlines,
/// so the fields are counted from the last parenthesis.
pub(super) fn parse(line: &[u8]) -> Option<Stat> {
    let pid = number(&line[..line.iter().position(|&byte| byte == b' ')?])?;
    let after_name = line.iter().rposition(|&byte| byte == b')')? + 2;
    let mut fields = line.get(after_name..)?.split(|&byte| byte == b' ' || byte == b'\n');
    // Field 3 of the manual is the first one here.
    let state = *fields.next()?.first()?;
    let ppid = number(fields.next()?)?;
    let group = number(fields.next()?)?;
    let session = number(fields.next()?)?;
    let flags = number(fields.nth(2)?)?;
    let threads = number(fields.nth(10)?)?;
    let start_time = number(fields.nth(1)?)?;
    let entry = Entry {
        pid: i32::try_from(pid).ok()?,
        ppid: i32::try_from(ppid).ok()?,
        group: i32::try_from(group).ok()?,
        session: i32::try_from(session).ok()?,
        start_time,
        // A process whose first thread has ended while others go on is shown as a zombie, but it is alive.
        zombie: matches!(state, b'Z' | b'X' | b'x') && threads <= 1,
        mark: None,
    };
    Some(Stat { entry, kernel_thread: flags & PF_KTHREAD != 0 })
}

/// A decimal number and nothing else. A group or session outside our pid namespace is shown as `-1` by some kernels;
/// that is 0 here, nobody's number.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits == b"-1" {
        return Some(0);
    }
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, state: char, flags: u64, threads: u64) -> Vec<u8> {
        format!(
            "4242 ({name}) {state} 17 4240 4239 34816 -1 {flags} 1 2 3 4 5 6 7 8 20 0 {threads} 0 987654 1234 5 \
             18446744073709551615 1 2 3\n"
        )
        .into_bytes()
    }

    #[test]
    fn every_field_is_found_whatever_the_name() {
        for name in ["bash", "", "a b", ")", "x) R 1 1 1 (", "new\nline) Z 1", "((()))", ") S 9 9 9 9 9 9 9"] {
            let stat = parse(&line(name, 'S', 0, 1)).unwrap();
            let wanted = Entry {
                pid: 4242,
                ppid: 17,
                group: 4240,
                session: 4239,
                start_time: 987_654,
                zombie: false,
                mark: None,
            };
            assert_eq!(stat.entry, wanted, "{name:?}");
            assert!(!stat.kernel_thread);
        }
    }

    #[test]
    fn the_dead_are_zombies_but_not_a_process_whose_first_thread_ended() {
        assert!(parse(&line("a", 'Z', 0, 1)).unwrap().entry.zombie);
        assert!(parse(&line("a", 'X', 0, 0)).unwrap().entry.zombie);
        assert!(!parse(&line("a", 'Z', 0, 3)).unwrap().entry.zombie);
        assert!(!parse(&line("a", 'T', 0, 1)).unwrap().entry.zombie);
    }

    #[test]
    fn kernel_threads_are_told_by_their_flag() {
        assert!(parse(&line("kworker/0:1-events", 'I', 0x0420_8060, 1)).unwrap().kernel_thread);
    }

    #[test]
    fn a_torn_line_is_no_process() {
        let whole = line("bash", 'S', 0, 1);
        let start_time = whole.windows(6).position(|part| part == b"987654").unwrap();
        for end in 0..start_time {
            assert!(parse(&whole[..end]).is_none(), "{end}");
        }
        assert!(parse(b"12 (x) R x 1 1").is_none());
    }

    #[test]
    fn numbers_are_decimal_and_bounded() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for wrong in ["18446744073709551616", "", " 1", "1 ", "+1", "-2", "0x1"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(number(b"-1"), Some(0));
    }
}
