//! Reading the output of a background process: consuming and merged, or by offset.

use std::ops::Deref;
use std::path::PathBuf;

use crate::output::Collector;

/// How far the consuming reads of a process have come, per stream.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    offsets: [u64; 2],
}

/// What one consuming read gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// New stdout, then, when there is new stderr, `[stderr]` on a line of its own and that.
    pub bytes: Vec<u8>,
    /// Bytes per stream (stdout first) that had slid out of memory before this read, and are not in it.
    pub missing: [u64; 2],
    /// The files that hold the whole streams, where there are any.
    pub spill_paths: [Option<PathBuf>; 2],
    /// Whether both streams have ended and everything has been delivered.
    pub end: bool,
}

impl Chunk {
    /// Whether anything is missing.
    pub fn is_lossy(&self) -> bool {
        self.missing != [0, 0]
    }
}

/// What one read by offset gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Offset of the first byte returned; above the offset asked for when the read is lossy.
    pub start: u64,
    /// How many bytes were copied.
    pub len: usize,
    /// The offset to ask for next.
    pub next: u64,
    /// Bytes between the offset asked for and `start` that had slid out of memory.
    pub missing: u64,
    /// Whether the stream has ended and this read reached its end.
    pub end: bool,
    /// The file that holds the whole stream, when the read is lossy and there is one.
    pub spill_path: Option<PathBuf>,
}

/// The deltas of both streams since the last call, as one text.
pub(crate) fn merged<C: Deref<Target = Collector>>(cursor: &mut Cursor, streams: [C; 2]) -> Chunk {
    let mut chunk = Chunk { end: true, ..Chunk::default() };
    for (index, stream) in streams.iter().enumerate() {
        let mut delta = Vec::new();
        let slice = stream.read_from(cursor.offsets[index], &mut delta);
        cursor.offsets[index] = slice.next;
        chunk.missing[index] = slice.missing;
        chunk.spill_paths[index] = stream.spill_path();
        chunk.end &= slice.end;
        if index == 0 {
            chunk.bytes = delta;
        } else if !delta.is_empty() {
            if chunk.bytes.last().is_some_and(|last| *last != b'\n') {
                chunk.bytes.push(b'\n');
            }
            chunk.bytes.extend_from_slice(b"[stderr]\n");
            chunk.bytes.append(&mut delta);
        }
    }
    chunk
}

/// Bytes of one stream from `offset` on.
pub(crate) fn at(stream: &Collector, offset: u64, buffer: &mut [u8]) -> Reading {
    let slice = stream.read_at(offset, buffer);
    Reading {
        start: slice.start,
        len: slice.len,
        next: slice.next,
        missing: slice.missing,
        end: slice.end,
        spill_path: if slice.missing > 0 { stream.spill_path() } else { None },
    }
}
