//! What is kept of a stream, and which commands write so little that nobody would bother to bound it.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::way::{Result, KEPT, SHELL};

/// The last bytes of a stream: a ring, once it is full.
#[derive(Default)]
pub struct Tail {
    ring: Vec<u8>,
    pub total: u64,
}

impl Tail {
    pub fn push(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let fresh = bytes.len().min(KEPT - self.ring.len());
        self.ring.extend_from_slice(&bytes[..fresh]);
        bytes = &bytes[fresh..];
        if bytes.is_empty() {
            return;
        }
        let at = ((self.total - bytes.len() as u64) % KEPT as u64) as usize;
        let straight = bytes.len().min(KEPT - at);
        self.ring[at..at + straight].copy_from_slice(&bytes[..straight]);
        self.ring[..bytes.len() - straight].copy_from_slice(&bytes[straight..]);
    }
}

/// Reads a stream to its end, at most `size` bytes at a time, and keeps its last bytes.
pub fn read_tail(mut stream: impl Read, size: usize) -> Result<Tail> {
    let mut tail = Tail::default();
    let mut buffer = vec![0; size];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(tail),
            Ok(n) => tail.push(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// The commands that were seen, and whether their output is no longer than what is kept.
static SEEN: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);

/// Whether the output of a command is so short that it is taken as a whole, as everybody does. Found out by running it
/// once, until there is more.
pub fn is_short(command: &str) -> Result<bool> {
    let seen = |seen: &Option<HashMap<String, bool>>| seen.as_ref()?.get(command).copied();
    if let Some(short) = seen(&SEEN.lock().unwrap()) {
        return Ok(short);
    }
    let short = try_out(command).map_err(|error| error.to_string())?;
    SEEN.lock().unwrap().get_or_insert_default().insert(command.to_owned(), short);
    Ok(short)
}

fn try_out(command: &str) -> std::io::Result<bool> {
    let mut child = Command::new(SHELL)
        .args(["-c", "eval \"$1\" 2>&1", "bash", command]) // one pipe for both
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = child.stdout.take().expect("a pipe was asked for").take(KEPT as u64 + 1);
    let length = std::io::copy(&mut output, &mut std::io::sink());
    if !matches!(length, Ok(length) if length <= KEPT as u64) {
        // SAFETY: it touches no memory. The child has not been reaped, so the number is its.
        unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    }
    child.wait()?;
    Ok(length? <= KEPT as u64)
}
