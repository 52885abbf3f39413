//! Where a stream may be cut without cutting a character.
//!
//! UTF-8 marks the first byte of every character, so a look at three bytes on each side of a cut is enough. Bytes
//! that are no UTF-8 belong to no character: a cut between them is as good as any other, and nothing waits for them.

/// The most bytes of a character that can lie on one side of a cut inside it, and so the context that a cut needs.
pub(crate) const CONTEXT: usize = 3;

/// A character that a cut falls into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Split {
    /// Bytes of the character before the cut, 1 to 3.
    pub back: usize,
    /// Bytes of the character after the cut, 1 to 3; some may not have arrived yet.
    pub forward: usize,
}

/// The character that a cut between `before` and `after` falls into, if it falls into one.
///
/// Only the last three bytes of `before` and the first three of `after` are looked at. `more` says what it means when
/// `after` ends before the character does: with `more`, the rest may still come, and the character counts if all of
/// it so far is valid; without, it is a torn sequence like any other invalid bytes and doesn't count.
pub(crate) fn split(before: &[u8], after: &[u8], more: bool) -> Option<Split> {
    let before = &before[before.len().saturating_sub(CONTEXT)..];
    let after = &after[..after.len().min(CONTEXT)];
    let back = 1 + before.iter().rev().position(|byte| !is_continuation(*byte))?;
    let lead = before.len() - back;
    let len = announced_len(before[lead])?;
    if len <= back {
        return None;
    }
    let mut around = [0; 2 * CONTEXT];
    around[..before.len()].copy_from_slice(before);
    around[before.len()..before.len() + after.len()].copy_from_slice(after);
    let there = (before.len() + after.len()).min(lead + len);
    let counts = match std::str::from_utf8(&around[lead..there]) {
        Ok(_) => true,
        // No length of an error means that the input ended too early: overlong forms, surrogates and the like have one.
        Err(error) => more && error.error_len().is_none(),
    };
    counts.then_some(Split { back, forward: len - back })
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// Length of the sequence that a first byte announces; none for bytes that begin no sequence of several.
fn announced_len(lead: u8) -> Option<usize> {
    match lead {
        0xC2..=0xDF => Some(2),
        0xE0..=0xEF => Some(3),
        0xF0..=0xF4 => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes at the end begin a character whose rest may still come.
    fn unfinished(bytes: &[u8]) -> usize {
        split(bytes, &[], true).map_or(0, |split| split.back)
    }

    #[test]
    fn a_cut_inside_a_character_is_found_at_every_place() {
        for text in ["é", "€", "😀"] {
            let bytes = text.as_bytes();
            for cut in 1..bytes.len() {
                let expected = Split { back: cut, forward: bytes.len() - cut };
                for more in [false, true] {
                    assert_eq!(split(&bytes[..cut], &bytes[cut..], more), Some(expected), "{text} at {cut}");
                }
            }
            assert_eq!(split(bytes, b"x", true), None, "after {text}");
            assert_eq!(split(b"x", bytes, true), None, "before {text}");
            assert_eq!(split(bytes, bytes, true), None, "between two {text}");
        }
    }

    #[test]
    fn a_torn_character_counts_only_while_more_may_come() {
        assert_eq!(split(b"a\xF0\x9F", b"\x98", true), Some(Split { back: 2, forward: 2 }));
        assert_eq!(split(b"a\xF0\x9F", b"\x98", false), None);
        assert_eq!(split(b"\xF0\x9F", b"\x98x", true), None, "the rest is something else");
    }

    #[test]
    fn only_what_may_become_valid_is_unfinished() {
        let cases: [(&[u8], usize); 16] = [
            (b"", 0),
            (b"abc", 0),
            ("é".as_bytes(), 0),
            (b"ab\xC3", 1),
            (b"ab\xE2\x82", 2),
            (b"\xF0\x9F\x98", 3),
            (b"\x80\x80\x80", 0),
            (b"\xC0", 0),     // overlong
            (b"\xE0\x80", 0), // overlong
            (b"\xE0\xA0", 2),
            (b"\xED\xA0", 0), // surrogate
            (b"\xF4\x90", 0), // beyond U+10FFFF
            (b"\xF5", 0),     // begins nothing
            (b"\xFF", 0),
            (b"\xE2\x28", 0),             // the sequence was broken off
            (b"\xF0\x9F\x98\x80\x80", 0), // a stray byte after a whole character
        ];
        for (bytes, expected) in cases {
            assert_eq!(unfinished(bytes), expected, "{bytes:02X?}");
        }
    }

    #[test]
    fn it_agrees_with_the_standard_library_on_every_short_end() {
        let bytes = [b'a', 0x80, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC3, 0xE0, 0xE2, 0xED, 0xF0, 0xF1, 0xF4, 0xF5];
        for a in bytes {
            for b in bytes {
                for c in bytes {
                    let end = [b'x', a, b, c];
                    let tail = end.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
                    let open = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
                    assert_eq!(unfinished(&end), if open { tail.len() } else { 0 }, "{end:02X?}");
                }
            }
        }
    }
}
