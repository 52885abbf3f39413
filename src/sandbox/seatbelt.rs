//! `sandbox-exec` of macOS: a profile in its own language. Written by its documentation and never run.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Network, Terms};
use crate::config::c_path;
use crate::error::Result;

/// What stands before the shell.
pub(super) fn command(terms: &Terms, scratch: Option<&Path>) -> Result<Vec<CString>> {
    let profile = profile(terms, scratch);
    let profile = c_path("sandbox", Path::new(std::ffi::OsStr::from_bytes(&profile)))?;
    Ok(vec![c"/usr/bin/sandbox-exec".into(), c"-p".into(), profile])
}

/// What the policy says and a profile can't: none so far. A loopback interface of a command's own does not exist there,
/// so the host's is let through.
pub(super) fn missing(terms: &Terms) -> Vec<&'static str> {
    match terms.network {
        Network::Loopback => vec!["private-loopback"],
        _ => Vec::new(),
    }
}

/// Everything is allowed but what the policy forbids. Later rules win.
fn profile(terms: &Terms, scratch: Option<&Path>) -> Vec<u8> {
    let mut text = b"(version 1)(allow default)(deny file-write*)(allow file-write* (literal \"/dev/null\"))".to_vec();
    for root in terms.writable.iter().map(AsRef::as_ref).chain(scratch) {
        text.extend_from_slice(b"(allow file-write* (subpath ");
        quote(&mut text, root);
        text.extend_from_slice(b"))");
    }
    for path in &terms.hidden {
        text.extend_from_slice(b"(deny file-read-data file-write* (subpath ");
        quote(&mut text, path);
        text.extend_from_slice(b"))");
    }
    text.extend_from_slice(match terms.network {
        Network::Full => b"",
        Network::Loopback => {
            b"(deny network*)(allow network* (local ip \"localhost:*\"))(allow network* (remote ip \"localhost:*\"))\
              (allow network* (remote unix-socket))"
                .as_slice()
        }
        Network::None => b"(deny network*)(allow network* (remote unix-socket))",
    });
    text
}

fn quote(text: &mut Vec<u8>, path: &Path) {
    text.push(b'"');
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;

    fn terms(mode: Mode, network: Network) -> Terms {
        let writable = if mode == Mode::WorkspaceWrite { vec!["/w".into()] } else { Vec::new() };
        Terms {
            mode,
            network,
            workspace: "/w".into(),
            writable,
            hidden: vec!["/home/\"u\"/.ssh".into()],
            workdir: None,
            as_given: Vec::new(),
            backends: Vec::new(),
            runner: None,
        }
    }

    fn text(mode: Mode, network: Network) -> String {
        String::from_utf8(profile(&terms(mode, network), Some(Path::new("/private/tmp/x")))).unwrap()
    }

    #[test]
    fn only_the_temporary_directory_is_writable_when_reading_only() {
        let text = text(Mode::ReadOnly, Network::Full);
        assert_eq!(text.matches("(allow file-write*").count(), 2);
        assert!(text.contains("(subpath \"/private/tmp/x\")") && !text.contains("\"/w\""), "{text}");
    }

    #[test]
    fn the_workspace_is_writable_and_what_is_hidden_is_quoted_and_comes_last() {
        let text = text(Mode::WorkspaceWrite, Network::Full);
        let (write, hide) = (text.find("(subpath \"/w\")").unwrap(), text.find("\\\"u\\\"").unwrap());
        assert!(write < hide, "{text}");
        assert_eq!(text.matches('(').count(), text.matches(')').count());
    }

    #[test]
    fn the_network_is_denied_but_for_sockets_in_the_file_system() {
        assert!(text(Mode::ReadOnly, Network::None).ends_with("(deny network*)(allow network* (remote unix-socket))"));
        assert!(text(Mode::ReadOnly, Network::Loopback).contains("localhost"));
    }
}
