//! Reading the output of a background process.

use std::ffi::{c_char, c_void, CString};

use super::error::dsh_error_t;
use super::handle::{null, release, Sealed};
use super::process::dsh_process_t;
use super::status::dsh_status_t;
use super::text::{address, c_path, copy, pointer};
use crate::error::{Error, ErrorKind, Result, Stage};
use crate::{Chunk, Reading, Stream};

/// One of the two streams of a process.
pub type dsh_stream_t = u32;
/// Standard output (and standard error, when they are merged).
pub const DSH_STDOUT: dsh_stream_t = 1u32;
/// Standard error.
pub const DSH_STDERR: dsh_stream_t = 2u32;

pub(super) fn stream_of(stream: dsh_stream_t) -> Result<Stream> {
    match stream {
        DSH_STDOUT => Ok(Stream::Stdout),
        DSH_STDERR => Ok(Stream::Stderr),
        _ => {
            let message = format!("stream {stream}: is neither DSH_STDOUT nor DSH_STDERR");
            Err(Error::new(ErrorKind::Invalid, Stage::Argument, message))
        }
    }
}

/// What one consuming read gave. Yours; immutable.
pub struct dsh_chunk_t(Sealed<Delta>);

handle!(dsh_chunk_t holds Delta);

/// A chunk, and its text as C sees it.
pub(super) struct Delta {
    chunk: Chunk,
    spill_paths: [Option<CString>; 2],
}

impl From<Chunk> for Delta {
    fn from(chunk: Chunk) -> Delta {
        Delta { spill_paths: [0, 1].map(|stream| c_path(chunk.spill_paths[stream].as_deref())), chunk }
    }
}

/// Takes what both streams got since the last call, as one text: new stdout, then, when there is new stderr,
/// `[stderr]` on a line of its own and that. No byte is given twice. An incomplete UTF-8 sequence at the end waits for
/// the next call. The chunk is yours; free it with dsh_chunk_free().
///
/// Any thread; does not block: a chunk without data means that there is nothing new.
#[no_mangle]
pub unsafe extern "C" fn dsh_read_output(
    process: Option<&dsh_process_t>,
    chunk: *mut *mut dsh_chunk_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on process, out chunk, { process.read_output()?.into() })
}

/// What one consuming read gave. What it points to lives as long as the chunk.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_chunk_info_t {
    /// `sizeof(dsh_chunk_info_t)`, set by the caller.
    pub size: usize,
    /// The text: bytes that are not promised to be UTF-8; not NUL-terminated. Never NULL.
    pub data: *const c_void,
    /// How many bytes; 0 when there was nothing new.
    pub len: usize,
    /// Bytes of stdout that had slid out of memory before this read, and are not in it.
    pub out_missing: u64,
    /// Bytes of stderr that had.
    pub err_missing: u64,
    /// The file that holds the whole stdout; NULL when there is none.
    pub out_spill_path: *const c_char,
    /// The file that holds the whole stderr; NULL when there is none.
    pub err_spill_path: *const c_char,
    /// 1 when anything is missing.
    pub lossy: u32,
    /// 1 when both streams have ended and everything has been given.
    pub end: u32,
}

extensible!(dsh_chunk_info_t);

/// Fills in what a chunk holds. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_chunk_info(
    chunk: Option<&dsh_chunk_t>,
    info: *mut dsh_chunk_info_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on chunk, out info, { chunk.to_c() })
}

impl Delta {
    fn to_c(&self) -> dsh_chunk_info_t {
        let chunk = &self.chunk;
        dsh_chunk_info_t {
            size: size_of::<dsh_chunk_info_t>(),
            data: address(&chunk.bytes),
            len: chunk.bytes.len(),
            out_missing: chunk.missing[0],
            err_missing: chunk.missing[1],
            out_spill_path: pointer(self.spill_paths[0].as_ref()),
            err_spill_path: pointer(self.spill_paths[1].as_ref()),
            lossy: chunk.is_lossy().into(),
            end: chunk.end.into(),
        }
    }
}

/// Frees a chunk and what it gave. NULL is fine. Any thread, as the last call; does not block.
#[no_mangle]
pub extern "C" fn dsh_chunk_free(chunk: Option<Box<dsh_chunk_t>>) {
    release(chunk);
}

/// What one read by offset gave.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_reading_t {
    /// `sizeof(dsh_reading_t)`, set by the caller.
    pub size: usize,
    /// The offset of the first byte given; above the one that was asked for when the read is lossy.
    pub start: u64,
    /// How many bytes were written to the buffer.
    pub len: u64,
    /// The offset to ask for next.
    pub next: u64,
    /// Bytes between the offset that was asked for and `start`, which had slid out of memory. The whole stream may be
    /// in a file, see dsh_process_spill_path().
    pub missing: u64,
    /// 1 when anything is missing.
    pub lossy: u32,
    /// 1 when the stream has ended and this read reached its end.
    pub end: u32,
}

extensible!(dsh_reading_t);

/// Copies bytes of one stream, from an absolute offset on, to a buffer. Consumes nothing, so that many readers may
/// read the same bytes, also after the process has ended. An incomplete UTF-8 sequence at the end of the stream so far
/// waits for a later call.
///
/// `DSH_E_NULL` for a NULL buffer with a capacity, `DSH_E_INVALID` for an unknown stream. Any thread; does not block:
/// 0 bytes mean that there is nothing new.
#[no_mangle]
pub unsafe extern "C" fn dsh_read_stream(
    process: Option<&dsh_process_t>,
    stream: dsh_stream_t,
    offset: u64,
    buffer: *mut c_void,
    capacity: usize,
    reading: *mut dsh_reading_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on process, out reading, {
        let stream = stream_of(stream)?;
        process.read_stream(stream, offset, writable(buffer, capacity)?)?.into()
    })
}

/// # Safety
/// `buffer` is NULL or has room for `capacity` bytes.
unsafe fn writable<'a>(buffer: *mut c_void, capacity: usize) -> Result<&'a mut [u8]> {
    if capacity == 0 {
        return Ok(&mut []);
    }
    if buffer.is_null() {
        return Err(null("buffer"));
    }
    // More than there can be memory is a promise that can't be kept; as much as a slice may have is taken at its word.
    Ok(std::slice::from_raw_parts_mut(buffer.cast(), capacity.min(isize::MAX as usize)))
}

impl From<Reading> for dsh_reading_t {
    fn from(reading: Reading) -> dsh_reading_t {
        dsh_reading_t {
            size: size_of::<dsh_reading_t>(),
            start: reading.start,
            len: reading.len as u64,
            next: reading.next,
            missing: reading.missing,
            lossy: (reading.missing > 0).into(),
            end: reading.end.into(),
        }
    }
}

/// The file that holds a whole stream, once it was too long for memory. It is filled as by dsh_process_survivors(): at
/// most `capacity` bytes are written to `buffer`, and `*count` becomes how many bytes there are, the NUL included. 0
/// when there is no such file.
///
/// `DSH_E_INVALID` for an unknown stream. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_process_spill_path(
    process: Option<&dsh_process_t>,
    stream: dsh_stream_t,
    buffer: *mut c_char,
    capacity: usize,
    count: *mut usize,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on process, out count, {
        let path = c_path(process.spill_path(stream_of(stream)?)?.as_deref());
        copy(path.as_ref().map_or(&[], |path| path.as_bytes_with_nul()), buffer.cast(), capacity)?
    })
}
