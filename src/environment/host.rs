//! The host's own variables, and whether they are what they were.

#[cfg(target_os = "linux")]
use std::ffi::{c_char, CStr};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// How the host's variables are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// Through the standard library, whose lock keeps a Rust host from changing them meanwhile.
    Rust,
    /// As C has them. That lock is then not the host's, and copying them would cost more than all else that the
    /// library does for a command: so they are compared where they are. As with getenv, the host must not change them
    /// from another thread meanwhile, which it can't do without harm either way.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the list has no such name elsewhere"))]
    C,
}

/// The variables as they were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot(Vec<u8>);

impl Host {
    pub(crate) const OF_C: Host = if cfg!(target_os = "linux") { Host::C } else { Host::Rust };

    /// The variables now; `None` when they are those of the last look.
    pub(crate) fn look(self, last: &Snapshot) -> Option<Snapshot> {
        let now = match self {
            #[cfg(target_os = "linux")]
            // SAFETY: the host does not change its environment during a call that reads it.
            Host::C => unsafe {
                if last.is_what(list()) {
                    return None;
                }
                Snapshot::of_c(list())
            },
            _ => std::env::vars_os().collect(),
        };
        (now != *last).then_some(now)
    }
}

impl Snapshot {
    /// Each variable as name and value.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let entries = self.0.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        entries.filter_map(|entry| {
            // A name may begin with '=', as the standard library has it.
            let at = 1 + entry[1..].iter().position(|byte| *byte == b'=')?;
            Some((OsStr::from_bytes(&entry[..at]), OsStr::from_bytes(&entry[at + 1..])))
        })
    }

    #[cfg(target_os = "linux")]
    unsafe fn of_c(list: impl Iterator<Item = *const c_char>) -> Snapshot {
        // SAFETY: the caller gives NUL-terminated strings.
        Snapshot(list.flat_map(|entry| unsafe { CStr::from_ptr(entry) }.to_bytes_with_nul()).copied().collect())
    }

    #[cfg(target_os = "linux")]
    unsafe fn is_what(&self, list: impl Iterator<Item = *const c_char>) -> bool {
        let mut rest = &self.0[..];
        for entry in list {
            // SAFETY: the caller gives NUL-terminated strings.
            match rest.strip_prefix(unsafe { CStr::from_ptr(entry) }.to_bytes_with_nul()) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty()
    }
}

/// What holds a NUL byte is left out: no environment can.
impl FromIterator<(OsString, OsString)> for Snapshot {
    fn from_iter<T: IntoIterator<Item = (OsString, OsString)>>(variables: T) -> Snapshot {
        let mut bytes = Vec::new();
        for (name, value) in variables {
            if !name.is_empty() && !name.as_bytes().contains(&0) && !value.as_bytes().contains(&0) {
                for part in [name.as_bytes(), b"=", value.as_bytes(), b"\0"] {
                    bytes.extend_from_slice(part);
                }
            }
        }
        Snapshot(bytes)
    }
}

/// The entries of `environ`; none when it is NULL, as clearenv leaves it.
#[cfg(target_os = "linux")]
unsafe fn list() -> impl Iterator<Item = *const c_char> {
    extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the caller sees to it that nobody writes to it now.
    let list = unsafe { environ };
    let mut at = 0;
    std::iter::from_fn(move || {
        if list.is_null() {
            return None;
        }
        // SAFETY: the list ends with a NULL, behind which nothing is read.
        let entry = unsafe { *list.add(at) };
        at += usize::from(!entry.is_null());
        (!entry.is_null()).then_some(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(list: &[(&str, &str)]) -> Snapshot {
        list.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    #[test]
    fn the_variables_of_a_snapshot_are_those_it_was_made_of() {
        let list = [("A", "1"), ("EMPTY", ""), ("URL", "a=b=c")];
        let made = snapshot(&list);
        let found: Vec<_> = made.variables().map(|(n, v)| (n.to_str().unwrap(), v.to_str().unwrap())).collect();
        assert_eq!(found, list);
    }

    #[test]
    fn both_ways_find_the_same_variables() {
        let all = |snapshot: Option<Snapshot>| {
            let snapshot = snapshot.expect("tests have an environment");
            snapshot.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(all(Host::OF_C.look(&Snapshot::default())), all(Host::Rust.look(&Snapshot::default())));
    }

    #[test]
    fn a_second_look_finds_nothing_new() {
        for host in [Host::OF_C, Host::Rust] {
            let first = host.look(&Snapshot::default()).unwrap();
            assert_eq!(host.look(&first), None, "{host:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn whatever_differs_is_seen() {
        let list =
            |entries: &[&'static CStr]| entries.iter().map(|entry| entry.as_ptr()).collect::<Vec<_>>().into_iter();
        let base = snapshot(&[("A", "1"), ("B", "2")]);
        // SAFETY: literals.
        unsafe {
            assert!(base.is_what(list(&[c"A=1", c"B=2"])));
            for other in
                [&[c"A=1"][..], &[c"A=1", c"B=3"], &[c"B=2", c"A=1"], &[c"A=1", c"B=2", c"C=3"], &[], &[c"A=1B=2"]]
            {
                assert!(!base.is_what(list(other)), "{other:?}");
            }
            assert_eq!(Snapshot::of_c(list(&[c"A=1", c"B=2"])), base);
        }
    }
}
