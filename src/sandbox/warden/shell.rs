//! The shell: everything that it is executed with.

use core::ffi::{c_char, CStr};
use core::ptr::null;

use crate::calls::{self, EINVAL};
use crate::message::{kind, step, Message, ENVIRONMENT, SCRIPT, STATUS, STDIO, WITNESS};
use crate::own_calls;
use crate::sys::{Fd, Result, ENOMEM};

/// In the flags: the shell gets descriptor [`SCRIPT`].
const PASSES_SCRIPT: u8 = b's';
/// In the flags: the shell is put under the filter in [`WITNESS`].
const HAS_WITNESS: u8 = b'w';
/// The size of a `struct sock_filter`.
const INSTRUCTION: usize = 8;

pub(crate) struct Shell {
    program: &'static CStr,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    passes_script: bool,
    witness: Option<Result<Bytes>>,
}

/// A file in memory, for as long as the program runs.
#[derive(Clone, Copy)]
struct Bytes {
    start: *const u8,
    length: usize,
}

impl Shell {
    /// `arguments` are the shell's own, ended by a null.
    pub(crate) fn prepare(flags: &[u8], program: &'static CStr, arguments: *const *const c_char) -> Result<Shell> {
        Ok(Shell {
            program,
            arguments,
            environment: list(map(ENVIRONMENT)?)?,
            passes_script: flags.contains(&PASSES_SCRIPT),
            witness: flags.contains(&HAS_WITNESS).then(|| map(WITNESS)),
        })
    }

    /// Turns this process into the shell. Returns only when that fails: with the step and the errno.
    pub(crate) fn execute(&self) -> (u32, i32) {
        if let Err(errno) = own_calls::set_session() {
            return (step::SESSION, errno);
        }
        own_calls::reset_signals();
        if let Err(errno) = self.place_descriptors() {
            return (step::DESCRIPTORS, errno);
        }
        // Nothing is handled, so unblocking runs nothing.
        if let Err(errno) = own_calls::unblock_all_signals() {
            return (step::SIGNALS, errno);
        }
        if let Some(filter) = self.witness {
            witness(filter);
        }
        // SAFETY: the kernel's own list of arguments, and ours of the environment, both ended by a null.
        (step::EXEC, unsafe { own_calls::execute(self.program, self.arguments, self.environment) })
    }

    fn place_descriptors(&self) -> Result<()> {
        for (target, source) in (STDIO..STDIO + 3).enumerate() {
            own_calls::duplicate(source, target as i32)?;
        }
        if !self.passes_script {
            own_calls::close(SCRIPT);
        }
        own_calls::close_on_exec(STATUS)?;
        own_calls::close_from(STATUS + 1);
        Ok(())
    }
}

/// Puts this process under the filter and sends its listener away. From here on only these calls are made, which the
/// filter therefore has to let pass: `sendmsg` and `execve`.
fn witness(filter: Result<Bytes>) {
    let listener = filter.and_then(|filter| {
        let length = u16::try_from(filter.length / INSTRUCTION).map_err(|_| EINVAL)?;
        own_calls::install_with_listener(filter.start, length)
    });
    let message = Message { kind: kind::WITNESS, value: listener.err().unwrap_or(0), ..Message::default() };
    own_calls::send(STATUS, &message, listener.ok());
}

/// Maps the whole file and closes it. An empty one (`/dev/null`) is nothing to map.
fn map(descriptor: i32) -> Result<Bytes> {
    let file = Fd::from_raw(descriptor);
    let length = calls::size_of_file(&file);
    let start = if length == 0 { Some(null()) } else { calls::map_shared(&file, length) };
    start.map(|start| Bytes { start, length }).ok_or(ENOMEM)
}

/// The list of these strings, each ended by NUL, as an exec takes it.
fn list(strings: Bytes) -> Result<*const *const c_char> {
    let Bytes { start, length } = strings;
    // SAFETY: a mapping of this length, for good. An empty slice has no address.
    let bytes = if length == 0 { &[][..] } else { unsafe { core::slice::from_raw_parts(start, length) } };
    if bytes.last().is_some_and(|last| *last != 0) {
        return Err(EINVAL);
    }
    let count = bytes.iter().filter(|byte| **byte == 0).count();
    let list = calls::map((count + 1) * size_of::<*const c_char>()).ok_or(ENOMEM)?.cast::<*const c_char>();
    let mut at = 0;
    for (index, string) in bytes.split_inclusive(|byte| *byte == 0).enumerate() {
        debug_assert!(index < count);
        // SAFETY: fresh memory, page-aligned, for `count` addresses and a null, which is there already.
        unsafe { *list.add(index) = bytes.as_ptr().add(at).cast() };
        at += string.len();
    }
    Ok(list)
}
