//! The collector against a model: a plain `Vec<u8>` of the whole stream, and the standard library's view of UTF-8.

use std::ops::Range;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::collector::Slice;
use super::ring::refusal;
use super::{Capture, Collector, Limits, SpillStore};
use crate::config::Keep;

const PLENTY: u64 = 1 << 30;

fn store() -> (tempfile::TempDir, Arc<SpillStore>) {
    let parent = tempfile::tempdir().unwrap();
    let store = Arc::new(SpillStore::new(parent.path().to_owned(), PLENTY));
    (parent, store)
}

fn collector(memory: u64, keep: Keep) -> (tempfile::TempDir, Collector) {
    let (parent, store) = store();
    (parent, Collector::new(Limits { memory, spill: PLENTY, keep }, store, "stdout"))
}

/// All bytes received, and what the contract says about them.
struct Model {
    stream: Vec<u8>,
    /// The characters of several bytes.
    characters: Vec<Range<usize>>,
    /// A character at the end whose rest is missing, in its full length.
    unfinished: Option<Range<usize>>,
    closed: bool,
    memory: usize,
    keep: Keep,
}

impl Model {
    fn new(memory: u64, keep: Keep) -> Model {
        let (stream, characters) = (vec![], vec![]);
        Model { stream, characters, unfinished: None, closed: false, memory: memory as usize, keep }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
        self.characters.clear();
        self.unfinished = None;
        let mut at = 0;
        for chunk in self.stream.utf8_chunks() {
            let chars = chunk.valid().char_indices().filter(|(_, c)| c.len_utf8() > 1);
            self.characters.extend(chars.map(|(i, c)| at + i..at + i + c.len_utf8()));
            at += chunk.valid().len();
            let invalid = chunk.invalid();
            let torn = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if torn && at + invalid.len() == self.stream.len() {
                self.unfinished = Some(at..at + invalid[0].leading_ones() as usize);
            }
            at += invalid.len();
        }
    }

    /// The character that a cut falls into; with `more`, also one that is unfinished at the end.
    fn around(&self, cut: usize, more: bool) -> Option<Range<usize>> {
        let unfinished = self.unfinished.iter().filter(|_| more);
        self.characters.iter().chain(unfinished).find(|c| c.start < cut && cut < c.end).cloned()
    }

    /// What is kept of a long stream, in bytes: its head and its tail.
    fn parts(&self) -> (usize, usize) {
        let head = if self.keep == Keep::HeadTail { self.memory / 2 } else { 0 };
        (head, self.memory - head)
    }

    /// End of the head and start of the tail, if bytes between them are left out.
    fn gap(&self, more: bool) -> Option<(usize, usize)> {
        let total = self.stream.len();
        let (head, tail) = self.parts();
        let tail = total.saturating_sub(tail);
        let head_end = self.around(head, more).map_or(head, |c| c.start);
        let tail_start = self.around(tail, more).map_or(tail, |c| c.end);
        (total > self.memory).then_some((head_end, tail_start))
    }

    fn capture(&self) -> (Vec<u8>, u64, usize) {
        match self.gap(false) {
            None => (self.stream.clone(), 0, 0),
            Some((head, tail)) => ([&self.stream[..head], &self.stream[tail..]].concat(), (tail - head) as u64, head),
        }
    }

    fn read(&self, offset: usize, room: usize) -> Slice {
        let total = self.stream.len();
        let more = !self.closed;
        let asked = offset.min(total);
        let (mut start, mut next) = (asked, total);
        if let Some((head, tail)) = self.gap(more) {
            if asked < head {
                next = head;
            } else if asked < total - self.parts().1 {
                start = tail;
            }
        }
        if start > total {
            (start, next) = (asked, asked);
        }
        if let Some(unfinished) = self.unfinished.as_ref().filter(|_| more && next == total) {
            next = if unfinished.start >= start { unfinished.start } else { next };
        }
        if next - start > room {
            next = start + room;
            if let Some(character) = self.around(next, more).filter(|c| c.start > start) {
                next = character.start;
            }
        }
        Slice {
            start: start as u64,
            len: next - start,
            next: next as u64,
            missing: (start - asked) as u64,
            end: self.closed && next == total,
        }
    }
}

/// Streams that are mostly text of all widths, with broken bytes among it.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => any::<char>().prop_map(|c| c.to_string().into_bytes()),
        3 => "[é€😀]{1,4}".prop_map(String::into_bytes),
        2 => "[a-z\n]{1,20}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 1..4),
        1 => vec(prop::sample::select(vec![0x80u8, 0xBF, 0xC3, 0xE2, 0xED, 0xF0, 0x9F, 0xF4, 0xFF]), 1..5),
    ];
    vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

fn keeps() -> impl Strategy<Value = Keep> {
    prop::sample::select(vec![Keep::Tail, Keep::HeadTail])
}

fn rooms() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..6, 4usize..40, Just(100_000)]
}

/// The pushes that make up `stream`: their lengths are taken from `sizes` in turn.
fn chunks<'a>(stream: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = stream;
    sizes.iter().cycle().map_while(move |size| {
        let (chunk, others) = rest.split_at((*size).min(rest.len()));
        rest = others;
        (!chunk.is_empty()).then_some(chunk)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn captures_and_reads_are_what_the_whole_stream_says(
        stream in streams(),
        sizes in vec(prop_oneof![1usize..8, 1usize..300], 1..8),
        memory in prop_oneof![1u64..12, 1u64..200, 200u64..2000],
        spill in prop_oneof![4 => Just(PLENTY), 1 => 1u64..500],
        keep in keeps(),
        reads in vec((any::<prop::sample::Index>(), rooms()), 1..12),
        prefill in 0usize..5,
    ) {
        let (_parent, store) = store();
        let mut collector = Collector::new(Limits { memory, spill, keep }, store, "stdout");
        let mut model = Model::new(memory, keep);
        let check = |collector: &Collector, model: &Model| -> Result<(), TestCaseError> {
            let total = model.stream.len() as u64;
            prop_assert_eq!(collector.total(), total);
            prop_assert!(collector.allocated() <= memory as usize + 6, "{} bytes taken", collector.allocated());
            let Capture { bytes, total: captured_total, omitted, omitted_at, spill_path, spill_error } = collector.capture();
            prop_assert!(bytes.len() as u64 <= memory);
            prop_assert_eq!((captured_total, bytes.len() as u64 + omitted), (total, total));
            prop_assert_eq!((bytes, omitted, omitted_at), model.capture());
            let window_start = model.gap(true).map_or(0, |_| model.stream.len() - model.parts().1);
            prop_assert_eq!(collector.window_start(), window_start as u64);
            prop_assert_eq!(spill_path.is_some(), total > memory && total <= spill);
            prop_assert_eq!(spill_error.is_some(), total > memory && total > spill);
            if let Some(path) = spill_path {
                prop_assert_eq!(std::fs::read(path).unwrap(), &model.stream[..]);
            }
            for (index, room) in &reads {
                let offset = index.index(model.stream.len() + 3);
                let mut out = vec![0xEE; *room];
                let slice = collector.read_at(offset as u64, &mut out);
                prop_assert_eq!(slice, model.read(offset, *room), "offset {}, room {}", offset, room);
                prop_assert_eq!(&out[..slice.len], &model.stream[slice.start as usize..slice.next as usize]);
                prop_assert!(out[slice.len..].iter().all(|byte| *byte == 0xEE));
                let mut bytes = vec![b'p'; prefill];
                let slice = collector.read_from(offset as u64, &mut bytes);
                prop_assert_eq!(slice, model.read(offset, usize::MAX), "all from offset {}", offset);
                prop_assert_eq!(&bytes[prefill..], &model.stream[slice.start as usize..slice.next as usize]);
            }
            Ok(())
        };
        check(&collector, &model)?;
        for chunk in chunks(&stream, &sizes) {
            collector.push(chunk);
            model.push(chunk);
            check(&collector, &model)?;
        }
        collector.close();
        model.closed = true;
        collector.push(b"too late");
        check(&collector, &model)?;
    }

    #[test]
    fn a_follower_gets_every_byte_or_the_count_of_those_it_missed(
        stream in streams(),
        sizes in vec(1usize..40, 1..8),
        rooms in vec(rooms(), 1..8),
        memory in prop_oneof![4u64..200, Just(1_000_000)],
        keep in keeps(),
        every in 1usize..6,
    ) {
        let (_parent, mut collector) = collector(memory, keep);
        let mut model = Model::new(memory, keep);
        model.push(&stream);
        let mut followed: Vec<(u64, Vec<u8>)> = vec![];
        let (mut next, mut missing) = (0, 0);
        let mut rooms = rooms.iter().cycle().copied();
        let mut read = |collector: &Collector, room: usize| -> Result<bool, TestCaseError> {
            let mut out = vec![0; room];
            let slice = collector.read_at(next, &mut out);
            prop_assert_eq!(slice.start, next + slice.missing);
            prop_assert_eq!(slice.next, slice.start + slice.len as u64);
            prop_assert!(slice.missing == 0 || next < collector.window_start());
            // Where we cut, no character of the whole stream is cut.
            if slice.missing > 0 && memory >= 8 {
                prop_assert_eq!(model.around(slice.start as usize, false), None);
            }
            if let Some(character) = model.around(slice.next as usize, false) {
                prop_assert!(slice.len == 0 || room < 4 || character.start < slice.start as usize);
            }
            missing += slice.missing;
            next = slice.next;
            followed.push((slice.start, out[..slice.len].to_vec()));
            Ok(slice.end)
        };
        for (i, chunk) in chunks(&model.stream, &sizes).enumerate() {
            collector.push(chunk);
            if i % every == 0 {
                read(&collector, rooms.next().unwrap())?;
            }
        }
        collector.close();
        let mut reads = 0;
        while !read(&collector, rooms.next().unwrap().max(1))? {
            reads += 1;
            prop_assert!(reads <= model.stream.len(), "a reader makes no progress");
        }
        let got: usize = followed.iter().map(|(_, bytes)| bytes.len()).sum();
        prop_assert_eq!(got as u64 + missing, model.stream.len() as u64);
        for (start, bytes) in &followed {
            prop_assert_eq!(&bytes[..], &model.stream[*start as usize..*start as usize + bytes.len()]);
        }
        if memory == 1_000_000 {
            prop_assert_eq!(missing, 0);
        }
    }

    #[test]
    fn refused_memory_costs_bytes_but_never_the_count(
        stream in vec(streams(), 1..6).prop_map(|parts| parts.concat()),
        sizes in vec(1usize..400, 1..8),
        memory in 1u64..4000,
        keep in keeps(),
        limits in vec(0usize..5000, 1..6),
    ) {
        let (_parent, mut collector) = collector(memory, keep);
        let mut model = Model::new(memory, keep);
        model.push(&stream);
        let mut pushed = 0;
        for (chunk, limit) in chunks(&stream, &sizes).zip(limits.iter().cycle()) {
            refusal::above(*limit, || collector.push(chunk));
            pushed += chunk.len();
            let capture = collector.capture();
            prop_assert_eq!((collector.total(), capture.total), (pushed as u64, pushed as u64));
            prop_assert_eq!(capture.bytes.len() as u64 + capture.omitted, pushed as u64);
            let (head, tail) = capture.bytes.split_at(capture.omitted_at);
            prop_assert_eq!(head, &stream[..head.len()]);
            prop_assert_eq!(tail, &stream[pushed - tail.len()..pushed]);
            // Of a character that has only begun to arrive, a result may hold what there is.
            for cut in [head.len(), pushed - tail.len()].into_iter().filter(|_| capture.omitted > 0) {
                let split = model.around(cut, false).filter(|character| character.end <= pushed);
                prop_assert_eq!(split, None, "cut at {} of {}", cut, pushed);
            }
            if let Some(path) = &capture.spill_path {
                prop_assert_eq!(std::fs::read(path).unwrap(), &stream[..pushed]);
            }
            prop_assert!(capture.omitted == 0 || capture.spill_path.is_some(), "bytes lost without a spill");
            let mut bytes = vec![];
            let slice = collector.read_from(0, &mut bytes);
            prop_assert_eq!(&bytes[..], &stream[slice.start as usize..slice.next as usize]);
        }
    }
}

#[test]
fn an_idle_stream_takes_no_memory_and_makes_no_file() {
    for keep in [Keep::Tail, Keep::HeadTail] {
        let (parent, mut collector) = collector(64_000, keep);
        collector.push(b"");
        assert_eq!(collector.allocated(), 0);
        assert!(collector.spills_on(usize::MAX));
        collector.close();
        assert!(!collector.spills_on(usize::MAX) && collector.is_closed());
        let nothing = Slice { start: 0, len: 0, next: 0, missing: 0, end: true };
        assert_eq!(collector.read_at(7, &mut [0; 8]), nothing);
        assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 0);
    }
}

#[test]
fn a_spill_is_foreseen_by_the_length_of_the_push() {
    let (_parent, mut collector) = collector(100, Keep::Tail);
    assert!(!collector.spills_on(100) && collector.spills_on(101));
    collector.push(&[b'x'; 60]);
    assert!(!collector.spills_on(40) && collector.spills_on(41));
    collector.push(&[b'x'; 41]);
    assert!(collector.spills_on(1));
}

#[test]
fn limits_beyond_all_memory_work() {
    for keep in [Keep::Tail, Keep::HeadTail] {
        let (_parent, mut collector) = collector(u64::MAX, keep);
        collector.push(&[b'x'; 1000]);
        assert_eq!(collector.capture().bytes, [b'x'; 1000]);
        assert_eq!(collector.allocated(), 1000);
    }
}

#[test]
fn an_unfinished_character_waits_for_its_rest_and_is_flushed_at_the_end() {
    let (_parent, mut collector) = collector(100, Keep::Tail);
    collector.push(b"a\xE2\x82");
    let mut out = [0; 8];
    assert_eq!(collector.read_at(0, &mut out), Slice { start: 0, len: 1, next: 1, missing: 0, end: false });
    assert_eq!(collector.read_at(1, &mut out), Slice { start: 1, len: 0, next: 1, missing: 0, end: false });
    assert_eq!(collector.capture().bytes, b"a\xE2\x82", "a result has no next read");
    collector.push(b"\xAC");
    assert_eq!(collector.read_at(1, &mut out), Slice { start: 1, len: 3, next: 4, missing: 0, end: false });
    assert_eq!(collector.read_at(1, &mut out[..1]).len, 1, "without room for a character, its bytes");
    collector.push(b"\xE2\x82");
    collector.close();
    assert_eq!(collector.read_at(4, &mut out), Slice { start: 4, len: 2, next: 6, missing: 0, end: true });
}

#[test]
fn a_tail_begins_at_a_character_but_keeps_broken_bytes() {
    let cases: [(&[u8], &[u8]); 4] = [
        ("xxé€😀".as_bytes(), "€😀".as_bytes()),
        (b"xx\xC3\x80\x80\x80abcde", b"\x80\x80abcde"), // stray bytes behind a whole character
        (b"xx\x80\x80\x80abcdef", b"\x80\x80abcdef"),   // stray bytes alone
        (b"xx\xE2\x82abcdefg", b"\x82abcdefg"),         // a character torn by the command
    ];
    for (stream, expected) in cases {
        let (_parent, mut collector) = collector(8, Keep::Tail);
        collector.push(stream);
        assert_eq!(collector.capture().bytes, expected, "{stream:02X?}");
    }
}

#[test]
fn head_and_tail_are_kept_with_the_exact_count_between() {
    let (_parent, mut collector) = collector(10, Keep::HeadTail);
    collector.push("abcd€".as_bytes());
    assert_eq!(collector.capture().bytes, "abcd€".as_bytes(), "nothing is left out before it has to be");
    collector.push("0123456789😀xy".as_bytes());
    let capture = collector.capture();
    assert_eq!(capture.bytes, b"abcdxy");
    assert_eq!((capture.total, capture.omitted, capture.omitted_at), (23, 17, 4));
    let mut out = [0; 100];
    assert_eq!(collector.read_at(1, &mut out), Slice { start: 1, len: 3, next: 4, missing: 0, end: false });
    assert_eq!(collector.read_at(4, &mut out), Slice { start: 21, len: 2, next: 23, missing: 17, end: false });
}

#[test]
fn a_head_cut_short_by_refused_memory_still_ends_at_a_character() {
    let (_parent, mut collector) = collector(2000, Keep::HeadTail);
    let mut stream = [b'a'; 254].to_vec();
    stream.extend("😀".as_bytes());
    refusal::above(256, || stream.chunks(256).for_each(|chunk| collector.push(chunk)));
    collector.push(&[b'b'; 5000]);
    let capture = collector.capture();
    assert_eq!((&capture.bytes[..253], &capture.bytes[253..]), (&stream[..253], &[b'b'; 1000][..]));
    assert_eq!((capture.omitted_at, capture.omitted), (253, 258 + 5000 - 253 - 1000));
    assert_eq!(std::fs::read(capture.spill_path.unwrap()).unwrap().len(), 5258);
}
