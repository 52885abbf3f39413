//! Text, bytes and lists of both, in each direction.

use std::ffi::{c_char, c_void, CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;

use super::handle::null;
use crate::error::{Error, ErrorKind, Result, Stage};

/// The longest list that is taken: a count beyond it was never meant.
const MOST_ENTRIES: usize = 65_536;

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, Stage::Argument, message)
}

/// # Safety
/// `bytes` is NULL or points to `len` bytes.
pub(super) unsafe fn bytes(field: &str, bytes: *const c_void, len: usize) -> Result<Vec<u8>> {
    if bytes.is_null() {
        return Err(null(field));
    }
    if isize::try_from(len).is_err() {
        return Err(invalid(format!("{field}_len {len}: more than there is memory")));
    }
    let mut copy = Vec::new();
    copy.try_reserve_exact(len + 1).map_err(|_| {
        let message = format!("{field}_len {len}: there is no memory for a copy");
        Error::new(ErrorKind::OutOfMemory, Stage::Argument, message)
    })?;
    copy.extend_from_slice(std::slice::from_raw_parts(bytes.cast::<u8>(), len));
    Ok(copy)
}

/// # Safety
/// `text` is NULL or NUL-terminated.
pub(super) unsafe fn path(text: *const c_char) -> Option<PathBuf> {
    (!text.is_null()).then(|| PathBuf::from(os_string(CStr::from_ptr(text).to_bytes())))
}

/// # Safety
/// `list` is NULL or points to `len` pointers, each NULL or to a NUL-terminated string.
pub(super) unsafe fn list<'a>(field: &str, list: *const *const c_char, len: usize) -> Result<Vec<&'a [u8]>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    if list.is_null() {
        return Err(null(field));
    }
    if len > MOST_ENTRIES {
        return Err(invalid(format!("{field}_len {len}: a list has {MOST_ENTRIES} entries at most")));
    }
    let entries = std::slice::from_raw_parts(list, len).iter().enumerate();
    entries
        .map(|(i, entry)| match entry.is_null() {
            true => Err(null(&format!("{field}[{i}]"))),
            false => Ok(CStr::from_ptr(*entry).to_bytes()),
        })
        .collect()
}

pub(super) fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// The two sides of `NAME=VALUE`.
pub(super) fn split(entry: &[u8]) -> (OsString, Option<OsString>) {
    let mut sides = entry.splitn(2, |byte| *byte == b'=');
    let name = os_string(sides.next().unwrap_or_default());
    (name, sides.next().map(os_string))
}

/// Text without the NUL bytes that it could hold only by mistake.
pub(super) fn c_string(text: impl AsRef<OsStr>) -> CString {
    let mut bytes = text.as_ref().as_bytes().to_vec();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

pub(super) fn c_path(path: Option<&Path>) -> Option<CString> {
    path.map(c_string)
}

/// A pointer to text that something else keeps; NULL when there is none.
pub(super) fn pointer(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

/// A list of text as C sees it.
pub(super) struct Texts {
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl Texts {
    pub(super) fn new<T: AsRef<OsStr>>(texts: &[T]) -> Texts {
        let texts: Vec<CString> = texts.iter().map(c_string).collect();
        Texts { pointers: texts.iter().map(|text| text.as_ptr()).collect(), _texts: texts }
    }

    /// The list, NULL when it is empty.
    pub(super) fn pointer(&self) -> *const *const c_char {
        first(&self.pointers)
    }

    pub(super) fn len(&self) -> usize {
        self.pointers.len()
    }
}

/// A pointer to a list that something else keeps; NULL when it is empty.
pub(super) fn first<T>(list: &[T]) -> *const T {
    if list.is_empty() {
        ptr::null()
    } else {
        list.as_ptr()
    }
}

/// A pointer to bytes that something else keeps: a real address also when there are none, since languages that check
/// pointers end over one that is made up.
pub(super) fn address(bytes: &[u8]) -> *const c_void {
    static NOTHING: [u8; 1] = [0];
    if bytes.is_empty() { NOTHING.as_ptr() } else { bytes.as_ptr() }.cast()
}

/// Copies as much of a list as there is room for, and says how long the list is.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` items.
pub(super) unsafe fn copy<T: Copy>(items: &[T], buffer: *mut T, capacity: usize) -> Result<usize> {
    if capacity > 0 {
        if buffer.is_null() {
            return Err(null("buffer"));
        }
        ptr::copy_nonoverlapping(items.as_ptr(), buffer, items.len().min(capacity));
    }
    Ok(items.len())
}
