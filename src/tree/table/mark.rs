//! The mark in a process's environment: `DSH_PROCESS_ID=<executor id>-<process id>`, or, where a host inside the command
//! has started the process, `DSH_OUTER_<executor id>=<process id>`.

use super::path::Path;
use super::sys::{Fd, Result, ENOMEM};

const ID: usize = 32;

/// What stands before and after the executor's id.
type Spelling = (&'static [u8], u8);
const OWN: Spelling = (b"DSH_PROCESS_ID=", b'-');
const OUTER: Spelling = (b"DSH_OUTER_", b'=');

/// Longer environments than this can't be made by `execve`; the bound is for a process that has given itself one.
const LONGEST: usize = 16 << 20;

/// The process id in the mark of a process, when it has this executor's mark and lets us read it.
pub(super) fn read(proc_dir: &Fd, pid: i32, executor_id: &[u8; ID]) -> Result<Option<u64>> {
    let path = Path::of("", pid, "/environ");
    let Some(environ) = super::open_of_process(proc_dir, &path)? else { return Ok(None) };
    let mut matchers = [OWN, OUTER].map(|spelling| Matcher::new(executor_id, spelling));
    let mut chunk = [0; 8192];
    let mut total = 0;
    while total < LONGEST {
        match environ.read(&mut chunk) {
            Ok(length @ 1..) => {
                total += length;
                let found = matchers.iter_mut().find_map(|matcher| matcher.feed(&chunk[..length]));
                if found.is_some() {
                    return Ok(found);
                }
            }
            Err(ENOMEM) => return Err(ENOMEM),
            _ => break,
        }
    }
    Ok(None)
}

/// Finds the mark in an environment that comes in pieces. Only a whole entry counts, from one NUL to the next.
struct Matcher<'a> {
    executor_id: &'a [u8; ID],
    spelling: Spelling,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// So many bytes of name, id and dash were seen.
    Start(usize),
    /// All of them were, then at least one digit of the process id.
    Digits(u64),
    /// The entry is another one.
    Skip,
}

impl<'a> Matcher<'a> {
    fn new(executor_id: &'a [u8; ID], spelling: Spelling) -> Self {
        Self { executor_id, spelling, state: State::Start(0) }
    }

    /// Takes the next piece; the answer is the first mark that is complete.
    fn feed(&mut self, mut piece: &[u8]) -> Option<u64> {
        while let Some((&byte, rest)) = piece.split_first() {
            piece = rest;
            self.state = match (self.state, byte) {
                (State::Digits(id), 0) => return Some(id),
                (_, 0) => State::Start(0),
                (State::Start(seen), _) if Some(byte) == self.expected(seen) => State::Start(seen + 1),
                (State::Start(seen), b'0'..=b'9') if self.expected(seen).is_none() => {
                    State::Digits(u64::from(byte - b'0'))
                }
                // One spelling only: no leading zero, nothing beyond 64 bits.
                (State::Digits(id @ 1..), b'0'..=b'9') => id
                    .checked_mul(10)
                    .and_then(|id| id.checked_add(u64::from(byte - b'0')))
                    .map_or(State::Skip, State::Digits),
                _ => {
                    // Most bytes are those of other entries: go straight to their end.
                    let Some(end) = piece.iter().position(|&byte| byte == 0) else {
                        self.state = State::Skip;
                        return None;
                    };
                    piece = &piece[end..];
                    State::Skip
                }
            };
        }
        None
    }

    /// The byte at this place of name, id and separator; none after them.
    fn expected(&self, place: usize) -> Option<u8> {
        let (name, separator) = self.spelling;
        match place.checked_sub(name.len()) {
            None => Some(name[place]),
            Some(ID) => Some(separator),
            Some(in_id) => self.executor_id.get(in_id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXECUTOR: &[u8; ID] = b"00112233445566778899aabbccddeeff";

    /// The answer must not depend on where the pieces are cut.
    fn find(environ: &[u8]) -> Option<u64> {
        find_spelt(OWN, environ)
    }

    fn find_spelt(spelling: Spelling, environ: &[u8]) -> Option<u64> {
        let whole = Matcher::new(EXECUTOR, spelling).feed(environ);
        for size in 1..=environ.len() {
            let mut matcher = Matcher::new(EXECUTOR, spelling);
            let found = environ.chunks(size).find_map(|piece| matcher.feed(piece));
            assert_eq!(found, whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn the_mark_is_found_wherever_it_stands() {
        let mark = "DSH_PROCESS_ID=00112233445566778899aabbccddeeff-1734\0";
        for before in ["", "A=1\0", "PATH=/bin\0\0\0HOME=/\0", "DSH_PROCESS_ID=\0", "DSH_PROCESS\0"] {
            for after in ["", "Z=\0", "no end"] {
                assert_eq!(find(format!("{before}{mark}{after}").as_bytes()), Some(1734));
            }
        }
        assert_eq!(find(b"DSH_PROCESS_ID=00112233445566778899aabbccddeeff-0\0"), Some(0));
        assert_eq!(find(b"DSH_PROCESS_ID=00112233445566778899aabbccddeeff-18446744073709551615\0"), Some(u64::MAX));
    }

    #[test]
    fn the_mark_of_an_outer_host_is_found() {
        let environ = b"DSH_PROCESS_ID=x\0DSH_OUTER_00112233445566778899aabbccddeeff=12\0";
        assert_eq!((find(environ), find_spelt(OUTER, environ)), (None, Some(12)));
        assert_eq!(find_spelt(OUTER, b"DSH_OUTER_00112233445566778899aabbccddeeff-12\0"), None);
    }

    #[test]
    fn look_alikes_are_not_the_mark() {
        for other in [
            "",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff-12",
            "XDSH_PROCESS_ID=00112233445566778899aabbccddeeff-12\0",
            "DSH_PROCESS_IDX=00112233445566778899aabbccddeeff-12\0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeefe-12\0",
            "DSH_PROCESS_ID=0112233445566778899aabbccddeeff-12\0",
            "DSH_PROCESS_ID=000112233445566778899aabbccddeeff-12\0",
            "DSH_PROCESS_ID=00112233445566778899AABBCCDDEEFF-12\0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff\0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff12\0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff-\0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff-12 \0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff-12x\0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff--12\0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff-012\0",
            "DSH_PROCESS_ID=00112233445566778899aabbccddeeff-18446744073709551616\0",
            "dsh_process_id=00112233445566778899aabbccddeeff-12\0",
            " DSH_PROCESS_ID=00112233445566778899aabbccddeeff-12\0",
            "A=DSH_PROCESS_ID=00112233445566778899aabbccddeeff-12\0",
            "DSH_PROCESS_ID=DSH_PROCESS_ID=00112233445566778899aabbccddeeff-12\0",
        ] {
            assert_eq!(find(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn a_large_environment_costs_no_memory() {
        let mut matcher = Matcher::new(EXECUTOR, OWN);
        for _ in 0..1000 {
            assert_eq!(matcher.feed(&[b'x'; 8192]), None);
        }
        assert_eq!(matcher.feed(b"\0DSH_PROCESS_ID=00112233445566778899aab"), None);
        assert_eq!(matcher.feed(b"bccddeeff-5"), None);
        assert_eq!(matcher.feed(b"5\0"), Some(55));
    }
}
