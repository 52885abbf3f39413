//! Globs on names of variables.

/// Whether `glob` matches all of `name`: `*` stands for any bytes, `?` for exactly one, everything else for itself.
///
/// Only the last `*` is ever tried again: a match that an earlier one could make, the last one can make as well. So the
/// time is bounded by the product of the two lengths whatever the glob is.
pub(super) fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => {
                g += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    g = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_glob_matches_the_whole_name_and_minds_case() {
        assert!(matches(b"AWS_*", b"AWS_REGION"));
        assert!(matches(b"AWS_*", b"AWS_"));
        assert!(matches(b"*", b""));
        assert!(matches(b"?_*_?", b"A_B_C_D"));
        assert!(!matches(b"AWS_", b"AWS_REGION"));
        assert!(!matches(b"REGION", b"AWS_REGION"));
        assert!(!matches(b"aws_*", b"AWS_REGION"));
        assert!(!matches(b"A?", b"A"));
        assert!(!matches(b"[A]", b"A"));
    }

    #[test]
    fn a_glob_of_many_stars_takes_no_exponential_time() {
        let glob = b"a*".repeat(200);
        let name = b"a".repeat(20_000);
        assert!(matches(&glob, &name));
        assert!(!matches(&[&glob[..], b"b"].concat(), &name));
    }

    fn model(glob: &[u8], name: &[u8]) -> bool {
        match (glob.first(), name.first()) {
            (None, None) => true,
            (Some(b'*'), _) => model(&glob[1..], name) || (!name.is_empty() && model(glob, &name[1..])),
            (Some(b'?'), Some(_)) => model(&glob[1..], &name[1..]),
            (Some(a), Some(b)) => a == b && model(&glob[1..], &name[1..]),
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn the_matcher_equals_the_recursive_model(glob in "[ab*?]{0,7}", name in "[ab]{0,8}") {
            prop_assert_eq!(matches(glob.as_bytes(), name.as_bytes()), model(glob.as_bytes(), name.as_bytes()));
        }
    }
}
