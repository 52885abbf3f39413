//! The last bytes of a stream, in memory that is taken only as they arrive.

/// Bytes of the first allocation: most commands print a line or two.
const FIRST: usize = 256;

/// A ring of the newest bytes of a stream, addressed by their offset in it.
///
/// It starts without memory, doubles as bytes arrive, and never takes more than `max` bytes. When memory is refused it
/// keeps what it has room for, and goes on counting.
#[derive(Debug)]
pub(super) struct Ring {
    /// Filled from the front; the oldest byte is at `oldest`, which is 0 until the ring first wraps.
    buf: Vec<u8>,
    oldest: usize,
    max: usize,
    first: u64,
    end: u64,
}

impl Ring {
    /// A ring of at most `max` bytes, for the part of a stream that begins at offset `first`.
    pub fn new(max: usize, first: u64) -> Ring {
        Ring { buf: Vec::new(), oldest: 0, max, first, end: first }
    }

    /// Offset of the oldest byte held.
    pub fn start(&self) -> u64 {
        self.end - self.buf.len() as u64
    }

    /// Offset behind the newest byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether the ring has let go of bytes that it was given.
    pub fn has_lost(&self) -> bool {
        self.start() > self.first
    }

    /// Takes memory for `n` more bytes. Returns whether all bytes held now would still be held after pushing them.
    pub fn reserve(&mut self, n: usize) -> bool {
        let need = self.buf.len().saturating_add(n);
        grow(&mut self.buf, need.min(self.max), self.max);
        need <= self.room()
    }

    /// Adds bytes at the end, letting go of the oldest ones where there is no room.
    pub fn push(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.end += bytes.len() as u64;
        let room = self.room();
        if bytes.len() >= room {
            self.buf.clear();
            self.oldest = 0;
            self.buf.extend_from_slice(&bytes[bytes.len() - room..]);
            return;
        }
        let free = room - self.buf.len();
        if free > 0 && self.oldest > 0 {
            // It has wrapped while memory was refused, and has grown since.
            self.buf.rotate_left(self.oldest);
            self.oldest = 0;
        }
        let (appended, rest) = bytes.split_at(free.min(bytes.len()));
        self.buf.extend_from_slice(appended);
        if !rest.is_empty() {
            self.overwrite(rest);
        }
    }

    /// Passes over bytes that are not there to be held. Nothing before them is held any more.
    pub fn skip(&mut self, count: u64) {
        self.buf.clear();
        self.oldest = 0;
        self.end += count;
    }

    /// The bytes from offset `from` up to `to`, in two parts; both offsets must be within the ring.
    pub fn slices(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
        let start = self.start();
        debug_assert!(start <= from && from <= to && to <= self.end);
        let (from, to) = ((from - start) as usize, (to - start) as usize);
        let (newer, older) = self.buf.split_at(self.oldest);
        let seam = older.len();
        (&older[from.min(seam)..to.min(seam)], &newer[from.max(seam) - seam..to.max(seam) - seam])
    }

    /// The byte at an offset, if the ring holds it.
    pub fn byte(&self, offset: u64) -> Option<u8> {
        if offset < self.start() || offset >= self.end {
            return None;
        }
        let (older, newer) = self.slices(offset, offset + 1);
        older.first().or(newer.first()).copied()
    }

    /// Bytes of memory taken.
    #[cfg(test)]
    pub fn allocated(&self) -> usize {
        self.buf.capacity()
    }

    /// How many bytes can be held with the memory there is.
    fn room(&self) -> usize {
        self.buf.capacity().min(self.max)
    }

    /// Writes fewer bytes than the ring holds over the oldest ones; the ring is full.
    fn overwrite(&mut self, bytes: &[u8]) {
        let (now, rest) = bytes.split_at(bytes.len().min(self.buf.len() - self.oldest));
        self.buf[self.oldest..self.oldest + now.len()].copy_from_slice(now);
        self.buf[..rest.len()].copy_from_slice(rest);
        self.oldest = (self.oldest + bytes.len()) % self.buf.len();
    }
}

/// Gives `buf` a capacity of `need` bytes, at least doubling it, up to `max`. Returns whether memory was given.
pub(super) fn grow(buf: &mut Vec<u8>, need: usize, max: usize) -> bool {
    if need <= buf.capacity() {
        return true;
    }
    let target = need.max(buf.capacity().saturating_mul(2)).max(FIRST).min(max);
    #[cfg(test)]
    if target > refusal::ABOVE.get() {
        return false;
    }
    buf.try_reserve_exact(target - buf.len()).is_ok()
}

/// Lets a test refuse memory, which the allocator of a test machine never does.
#[cfg(test)]
pub(super) mod refusal {
    use std::cell::Cell;

    thread_local! {
        pub static ABOVE: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// Runs `body` while no buffer may grow beyond `bytes`.
    pub fn above<T>(bytes: usize, body: impl FnOnce() -> T) -> T {
        ABOVE.set(bytes);
        let result = body();
        ABOVE.set(usize::MAX);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(ring: &Ring) -> Vec<u8> {
        let (older, newer) = ring.slices(ring.start(), ring.end());
        [older, newer].concat()
    }

    #[test]
    fn no_memory_is_taken_before_the_first_byte() {
        let mut ring = Ring::new(64_003, 0);
        assert_eq!(ring.allocated(), 0);
        ring.push(b"x");
        assert_eq!(ring.allocated(), FIRST);
    }

    #[test]
    fn memory_doubles_with_need_and_stays_within_the_limit() {
        let mut ring = Ring::new(1003, 0);
        let mut sizes = vec![];
        for _ in 0..5000 {
            ring.push(b"x");
            assert!(ring.allocated() <= 1003);
            if sizes.last() != Some(&ring.allocated()) {
                sizes.push(ring.allocated());
            }
        }
        assert_eq!(sizes, [256, 512, 1003]);
        let mut large = Ring::new(1003, 0);
        large.push(&[0; 100_000]);
        assert_eq!((large.allocated(), large.start(), large.end()), (1003, 98_997, 100_000));
    }

    #[test]
    fn the_newest_bytes_are_held_whatever_the_chunks() {
        let stream: Vec<u8> = (0..5000).map(|i| (i % 251) as u8).collect();
        for max in [1, 2, 7, 255, 256, 257, 1000, 4999, 5000, 6000] {
            for chunk in [1, 2, 3, 6, 7, 8, 100, 256, 999, 1000, 1001, 5000] {
                let mut ring = Ring::new(max, 10);
                let mut pushed = 0;
                for bytes in stream.chunks(chunk) {
                    ring.push(bytes);
                    pushed += bytes.len();
                    let start = pushed.saturating_sub(max);
                    assert_eq!(held(&ring), stream[start..pushed], "max {max}, chunk {chunk}, {pushed} pushed");
                    assert_eq!((ring.start(), ring.end()), (10 + start as u64, 10 + pushed as u64));
                    assert_eq!(ring.has_lost(), start > 0);
                    assert_eq!(ring.byte(ring.end() - 1), bytes.last().copied());
                    assert_eq!(ring.byte(ring.start()), Some(stream[start]));
                    assert_eq!((ring.byte(ring.end()), ring.byte(ring.start() - 1)), (None, None));
                }
            }
        }
    }

    #[test]
    fn after_bytes_that_were_skipped_only_newer_ones_are_held() {
        let mut ring = Ring::new(7, 10);
        ring.push(b"0123456789");
        ring.skip(100);
        assert_eq!((ring.start(), ring.end(), ring.has_lost()), (120, 120, true));
        ring.push(b"abc");
        assert_eq!((held(&ring), ring.start()), (b"abc".to_vec(), 120));
        ring.push(b"defghij");
        assert_eq!((held(&ring), ring.end()), (b"defghij".to_vec(), 130));
    }

    #[test]
    fn refused_memory_leaves_a_shorter_tail_and_an_exact_count() {
        let stream: Vec<u8> = (0..3000).map(|i| (i % 251) as u8).collect();
        let mut ring = Ring::new(1003, 0);
        refusal::above(0, || ring.push(&stream[..100]));
        assert_eq!((ring.start(), ring.end(), ring.allocated()), (100, 100, 0));
        refusal::above(300, || ring.push(&stream[100..200]));
        assert_eq!(held(&ring), stream[100..200]);
        refusal::above(300, || ring.push(&stream[200..450]));
        assert_eq!(held(&ring), stream[450 - 256..450], "no more than was given");
        ring.push(&stream[450..460]);
        assert_eq!(held(&ring), stream[450 - 256..460], "memory is asked for again, and order kept");
        ring.push(&stream[460..]);
        assert_eq!(held(&ring), stream[3000 - 1003..]);
    }
}
