//! One stream of a command: what is kept of it in memory, and reads of it by byte offset.
//!
//! ```text
//! offset 0        head_len               window start                total
//!   ├── head ────────┤ ······ lost ······ ├────────── tail ────────────┤
//! ```
//!
//! With `Keep::Tail` there is no head. Head and tail each hold three bytes more than they offer, so that where a cut
//! falls is decided by the bytes on both sides of it.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use super::reservoir::{Moved, Reservoir};
use super::ring::{self, Ring};
use super::spill::{SpillFile, SpillStore};
use super::utf8::{self, Split, CONTEXT};
use crate::config::Keep;

/// How much of one stream is kept, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes kept in memory.
    pub memory: u64,
    /// Bytes at most in the spill file; a longer stream has none.
    pub spill: u64,
    /// Which bytes are kept in memory when there are too many.
    pub keep: Keep,
}

/// What is kept of a stream, for the result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Capture {
    /// The bytes kept: at most `Limits::memory`, and fewer where a cut made way for a character.
    pub bytes: Vec<u8>,
    /// Bytes ever received.
    pub total: u64,
    /// Bytes received but not in `bytes`.
    pub omitted: u64,
    /// Where in `bytes` the omitted ones were: 0 when the tail is kept.
    pub omitted_at: usize,
    /// The file that holds the whole stream, if there is one.
    pub spill_path: Option<PathBuf>,
    /// Why there is no such file although one was needed.
    pub spill_error: Option<String>,
}

/// What a read by offset returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Offset of the first byte returned.
    pub start: u64,
    /// Bytes returned.
    pub len: usize,
    /// Offset to ask for next.
    pub next: u64,
    /// Bytes between the offset asked for and `start`, which are no longer in memory.
    pub missing: u64,
    /// The stream is closed and has been returned up to its end.
    pub end: bool,
}

/// One stream of a command: counts all of it, keeps a bounded part in memory, and spills the whole to disk when that
/// part no longer holds it. No read consumes anything, so any number of readers can follow at their own pace.
#[derive(Debug)]
pub(crate) struct Collector {
    limits: Limits,
    label: &'static str,
    store: Arc<SpillStore>,
    total: u64,
    closed: bool,
    /// The first bytes, at most `head_len` + 3.
    head: Vec<u8>,
    /// How much of the head is offered, in bytes.
    head_len: u64,
    /// How much of the tail is offered, in bytes.
    tail_len: u64,
    /// What follows the head, or the whole stream when there is none.
    ring: Ring,
    spill: Spill,
    /// Where the newest bytes are, while the stream is skimmed.
    reservoir: Option<Reservoir>,
}

#[derive(Debug)]
enum Spill {
    /// All bytes so far are in memory.
    Unneeded,
    /// All bytes so far are in the file.
    Whole(SpillFile),
    /// The stream has outgrown memory and is on disk nowhere; the reason.
    Lost(String),
}

impl Collector {
    /// A collector of an empty stream. Takes no memory for output and makes no file.
    ///
    /// `label` says in the spill file's name what it holds: `stdout`, `stderr` or `output`.
    pub fn new(limits: Limits, spills: Arc<SpillStore>, label: &'static str) -> Collector {
        let head_len = match limits.keep {
            Keep::Tail => 0,
            Keep::HeadTail => limits.memory / 2,
        };
        let tail_len = limits.memory - head_len;
        Collector {
            limits,
            label,
            store: spills,
            total: 0,
            closed: false,
            head: Vec::new(),
            head_len,
            tail_len,
            ring: Ring::new(with_context(tail_len), head_len),
            spill: Spill::Unneeded,
            reservoir: None,
        }
    }

    /// Takes the next bytes of the stream. Never fails: trouble with the spill file is recorded (see
    /// [`spill_error`](Self::spill_error)), and refused memory makes what is kept shorter. Ignored once closed.
    ///
    /// Writes to disk when [`spills_on`](Self::spills_on) says so; the signals of that (SIGXFSZ) are the caller's care.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.closed || bytes.is_empty() {
            return;
        }
        let fits = self.make_room(bytes.len());
        self.spill(bytes, fits);
        let head_max = with_context(self.head_len);
        if self.head_len > 0 && self.head.len() < head_max {
            // Room for these was made above.
            self.head.extend_from_slice(&bytes[..bytes.len().min(head_max - self.head.len())]);
        }
        self.ring.push(&bytes[self.before_ring(bytes.len())..]);
        self.total += bytes.len() as u64;
    }

    /// How many bytes of the stream's end have to be kept, if nothing else of what is still to come will be: the head is
    /// complete, and the whole is on disk nowhere.
    pub fn keeps_only_tail(&self) -> Option<usize> {
        let full = self.head.len() == with_context(self.head_len) || self.head_len == 0;
        let only_tail = !self.closed && matches!(self.spill, Spill::Lost(_)) && self.gap().is_some() && full;
        only_tail.then(|| with_context(self.tail_len))
    }

    /// From here on the stream goes through a reservoir, by [`skim`](Self::skim), until that gives [`Moved::Full`]. Only
    /// when it [keeps only the tail](Self::keeps_only_tail).
    pub fn keep_in(&mut self, reservoir: Reservoir) {
        debug_assert!(self.keeps_only_tail().is_some(), "what is skipped would be missed");
        self.reservoir = Some(reservoir);
    }

    /// Takes the next bytes of the stream out of its pipe, without a look at them.
    pub fn skim(&mut self, pipe: impl AsFd) -> Moved {
        let Some(reservoir) = &mut self.reservoir else { return Moved::Full };
        let moved = reservoir.fill(pipe);
        match moved {
            Moved::Some { skipped, .. } if skipped > 0 => {
                self.ring.skip(skipped as u64);
                self.total += skipped as u64;
            }
            Moved::Full => self.stop_skimming(),
            _ => {}
        }
        moved
    }

    /// Takes in what the reservoir holds, so that it can be read. Goes on skimming.
    pub fn gather_in(&mut self) {
        if let Some(mut reservoir) = self.reservoir.take() {
            reservoir.empty(|part| self.push(part));
            self.reservoir = Some(reservoir);
        }
    }

    fn stop_skimming(&mut self) {
        self.gather_in();
        self.reservoir = None;
    }

    /// Ends the stream: an unfinished character at its end is now just bytes, and the spill file's descriptor is
    /// closed. The spill file stays until the store is finished.
    pub fn close(&mut self) {
        if self.closed {
            return;
        }
        self.stop_skimming();
        self.closed = true;
        if let Spill::Whole(file) = &mut self.spill {
            if let Err(error) = file.close() {
                self.lose_spill(error.message().to_owned());
            }
        }
    }

    /// Whether the stream has ended.
    #[cfg(test)]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Bytes ever pushed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether a push of `len` bytes will write to disk (or will try to), memory permitting.
    pub fn spills_on(&self, len: usize) -> bool {
        match self.spill {
            _ if self.closed => false,
            Spill::Unneeded => self.total.saturating_add(len as u64) > self.head_len + self.tail_len,
            Spill::Whole(_) => true,
            Spill::Lost(_) => false,
        }
    }

    /// What is kept of the stream so far.
    ///
    /// A run has no next read, so the end is taken as it is: an unfinished character there is included.
    pub fn capture(&self) -> Capture {
        let (head_end, tail_start) = match self.gap() {
            None => (0, 0),
            Some((head_end, tail_start)) => {
                let back = self.split(head_end, false).map_or(0, |split| split.back as u64);
                let forward = self.split(tail_start, false).map_or(0, |split| split.forward as u64);
                (head_end - back, tail_start + forward)
            }
        };
        let mut bytes = Vec::new();
        let mut omitted_at = 0;
        if bytes.try_reserve_exact((head_end + self.total - tail_start) as usize).is_ok() {
            self.copy(0, head_end, |part| bytes.extend_from_slice(part));
            omitted_at = bytes.len();
            self.copy(tail_start, self.total, |part| bytes.extend_from_slice(part));
        }
        Capture {
            omitted: self.total - bytes.len() as u64,
            bytes,
            total: self.total,
            omitted_at,
            spill_path: self.spill_path(),
            spill_error: self.spill_error().map(str::to_owned),
        }
    }

    /// Copies the bytes of the stream from `offset` on into `out`, as many as there are and fit.
    ///
    /// An offset whose bytes are no longer in memory is moved to the first that are, at the beginning of a character,
    /// and the way is counted in `missing`; an offset beyond the end is moved back to it. The end waits for an
    /// unfinished character while the stream is open, and for a whole one when `out` is full, unless `out` has no room
    /// for even one: then its bytes come in pieces. Offsets given are taken as they are, inside a character or not.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Slice {
        let slice = self.locate(offset, out.len());
        let mut filled = 0;
        self.copy(slice.start, slice.next, |part| {
            out[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        });
        slice
    }

    /// The same as [`read_at`](Self::read_at), appending to `bytes` all there is up to the next gap or the end. Refused
    /// memory shortens what is returned.
    pub fn read_from(&self, offset: u64, bytes: &mut Vec<u8>) -> Slice {
        let mut slice = self.locate(offset, usize::MAX);
        if bytes.try_reserve(slice.len).is_err() {
            slice = self.locate(offset, bytes.capacity() - bytes.len());
        }
        self.copy(slice.start, slice.next, |part| bytes.extend_from_slice(part));
        slice
    }

    /// The first offset from which everything up to the end is in memory: a read from before it misses bytes, unless
    /// it is in the head of a `Keep::HeadTail` stream and stops there.
    #[cfg(test)]
    pub fn window_start(&self) -> u64 {
        self.gap().map_or(0, |(_, tail_start)| tail_start)
    }

    /// The file that holds the whole stream so far, if there is one and nobody has touched it.
    pub fn spill_path(&self) -> Option<PathBuf> {
        match &self.spill {
            Spill::Whole(file) if file.is_intact() => Some(file.path().to_owned()),
            _ => None,
        }
    }

    /// Why there is no spill file although the stream has outgrown memory.
    pub fn spill_error(&self) -> Option<&str> {
        match &self.spill {
            Spill::Unneeded => None,
            Spill::Whole(file) if file.is_intact() => None,
            Spill::Whole(_) => Some("the spill file was removed, replaced or changed by someone else"),
            Spill::Lost(reason) => Some(reason),
        }
    }

    /// Takes memory for `n` more bytes; returns whether everything so far and those bytes will be in memory.
    fn make_room(&mut self, n: usize) -> bool {
        if self.head_len > 0 && self.total < with_context(self.head_len) as u64 {
            let max = with_context(self.head_len);
            let need = self.head.len().saturating_add(n).min(max);
            if !ring::grow(&mut self.head, need, max) {
                self.end_head_here();
            }
        }
        let room = self.ring.reserve(n - self.before_ring(n));
        room && self.total + n as u64 <= self.head_len + self.tail_len
    }

    /// How many of the next `n` bytes are for the head only.
    fn before_ring(&self, n: usize) -> usize {
        usize::try_from(self.ring.end() - self.ring.end().min(self.total)).map_or(n, |before| before.min(n))
    }

    /// Goes on with a shorter head when memory for a longer one is refused. The head holds all bytes so far, the last
    /// of which are now its context.
    fn end_head_here(&mut self) {
        self.head_len = self.head.len().saturating_sub(CONTEXT) as u64;
        self.ring = Ring::new(with_context(self.tail_len), self.total);
    }

    /// Writes `bytes` to the spill file, which is made, with all that came before, when memory no longer holds it all.
    fn spill(&mut self, bytes: &[u8], fits: bool) {
        let total = self.total + bytes.len() as u64;
        let needed = match self.spill {
            Spill::Unneeded => !fits,
            Spill::Whole(_) => true,
            Spill::Lost(_) => false,
        };
        if !needed {
            return;
        }
        if total > self.limits.spill {
            return self.lose_spill(format!("the output exceeds max_spill_bytes {}", self.limits.spill));
        }
        if let Spill::Unneeded = self.spill {
            if let Err(reason) = self.open_spill() {
                return self.lose_spill(reason);
            }
        }
        if let Spill::Whole(file) = &mut self.spill {
            if let Err(error) = file.append(bytes) {
                self.lose_spill(error.message().to_owned());
            }
        }
    }

    /// Makes the spill file and writes all bytes so far to it.
    fn open_spill(&mut self) -> Result<(), String> {
        let mut file = self.store.open(self.label).map_err(|error| error.message().to_owned())?;
        let mut result = Ok(());
        self.copy(0, self.total, |part| {
            if result.is_ok() {
                result = file.append(part);
            }
        });
        // Kept even after an error: whoever takes note of that also removes the file.
        self.spill = Spill::Whole(file);
        result.map_err(|error| error.message().to_owned())
    }

    fn lose_spill(&mut self, reason: String) {
        if let Spill::Whole(file) = std::mem::replace(&mut self.spill, Spill::Lost(reason)) {
            file.discard();
        }
    }

    /// The bytes that are no longer offered, as the end of the head and the start of the tail, both as the limits
    /// have it and not yet moved out of a character. None while everything is in memory.
    fn gap(&self) -> Option<(u64, u64)> {
        let lost = self.ring.has_lost();
        if !lost && self.total <= self.head_len + self.tail_len {
            return None;
        }
        // The ring's first bytes are context, also where it has less memory than it should have.
        let readable = if lost { self.ring.start() + CONTEXT as u64 } else { 0 };
        let start = self.total.saturating_sub(self.tail_len).max(readable).min(self.total);
        Some((self.head_len, start))
    }

    /// Copies the bytes from offset `from` up to `to` in up to three parts; all of them must be in memory.
    fn copy(&self, from: u64, to: u64, mut take: impl FnMut(&[u8])) {
        let in_head = self.head.len() as u64;
        if from < in_head && from < to {
            take(&self.head[from as usize..to.min(in_head) as usize]);
        }
        let from = from.max(in_head);
        if from < to {
            let (older, newer) = self.ring.slices(from, to);
            take(older);
            take(newer);
        }
    }

    /// Which bytes a read from `offset` into `room` bytes returns.
    fn locate(&self, offset: u64, room: usize) -> Slice {
        let at = |start: u64, next: u64, missing: u64| {
            let end = self.closed && next == self.total;
            Slice { start, len: (next - start) as usize, next, missing, end }
        };
        if offset >= self.total {
            return at(self.total, self.total, 0);
        }
        let open = !self.closed;
        let (mut start, mut limit) = (offset, self.total);
        if let Some((head_end, tail_start)) = self.gap() {
            let head_end = head_end - self.split(head_end, open).map_or(0, |split| split.back as u64);
            if offset < head_end {
                limit = head_end;
            } else if offset < tail_start {
                start = tail_start + self.split(tail_start, open).map_or(0, |split| split.forward as u64);
                if start > self.total {
                    // The window is shorter than the character that is just arriving: nothing to say before it is whole.
                    return at(offset, offset, 0);
                }
            }
        }
        let missing = start - offset;
        if open && limit == self.total {
            let unfinished = self.split(limit, true).map_or(0, |split| split.back as u64);
            // Of a character that begins before the read, the reader has the first bytes already.
            if limit - unfinished >= start {
                limit -= unfinished;
            }
        }
        let mut next = limit;
        if room as u64 <= limit - start {
            next = start + room as u64;
            if next < limit {
                let back = self.split(next, open).map_or(0, |split| split.back as u64);
                if next > start + back {
                    next -= back;
                }
            }
        }
        at(start, next, missing)
    }

    /// The character that a cut at this offset falls into, if any. `more`: one at the end may still be finished.
    fn split(&self, cut: u64, more: bool) -> Option<Split> {
        let context = CONTEXT as u64;
        let mut before = [0; CONTEXT];
        let mut after = [0; CONTEXT];
        let mut found = (0, 0);
        for offset in (cut.saturating_sub(context)..cut).rev() {
            let Some(byte) = self.byte(offset) else { break };
            found.0 += 1;
            before[CONTEXT - found.0] = byte;
        }
        for offset in cut..cut + context {
            let Some(byte) = self.byte(offset) else { break };
            after[found.1] = byte;
            found.1 += 1;
        }
        utf8::split(&before[CONTEXT - found.0..], &after[..found.1], more)
    }

    /// Bytes of memory taken for output.
    #[cfg(test)]
    pub fn allocated(&self) -> usize {
        self.head.capacity() + self.ring.allocated()
    }

    fn byte(&self, offset: u64) -> Option<u8> {
        self.head.get(usize::try_from(offset).ok()?).copied().or_else(|| self.ring.byte(offset))
    }
}

/// A length in memory with the context that a cut needs.
fn with_context(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX).saturating_add(CONTEXT)
}
