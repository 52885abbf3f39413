//! Short paths below `/proc`, made without allocating.

use core::ffi::CStr;

const LONGEST: usize = 40;

pub(super) struct Path([u8; LONGEST]);

impl Path {
    /// `before`, the number, `after`. The three must leave room for the NUL, as all callers' constants do.
    pub(super) fn of(before: &str, number: i32, after: &str) -> Self {
        let mut digits = [0; 10];
        let mut first = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let mut path = [0; LONGEST];
        let parts = before.bytes().chain(digits[first..].iter().copied()).chain(after.bytes());
        for (to, from) in path[..LONGEST - 1].iter_mut().zip(parts) {
            *to = from;
        }
        Self(path)
    }

    pub(super) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_full() {
        assert_eq!(Path::of("/proc/", 0, "/stat").as_c_str(), c"/proc/0/stat");
        assert_eq!(Path::of("", i32::MAX, "/children").as_c_str(), c"2147483647/children");
    }
}
