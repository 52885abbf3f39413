//! The ledger: how the guard learns of the commands, at no cost while the host lives.
//!
//! A table in shared memory, one cell per live command. The host's side writes it; the guard reads it only after the
//! host has ended. The first thing a starting command's child does, still in the host's memory, is to store its own
//! pid in its cell, so there is no moment at which a command runs that the guard can't find.
//!
//! A cell stands for the command's *session*: it says that the number is the session's. What has left the session
//! is found by its mark, so a cell is released as soon as the session is empty, even if escapees live on.
//!
//! This file is compiled into the library and into the guard program: the layout is here once, and is `core` only.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Tells the ledger, and this version of its layout.
const MAGIC: u32 = 0x4453_4c01;

/// How many commands can be in the ledger at once. Pages that were never touched cost nothing.
const CAPACITY: u32 = 65_536;

#[repr(C)]
struct Header {
    magic: u32,
    capacity: u32,
    grace_ms: AtomicU64,
    executor_id: [u8; 32],
    /// Cells from this index on were never used, so that the guard need not look at (and so create) their pages.
    used: AtomicU32,
    _unused: u32,
    _to_64_bytes: u64,
}

/// The header, then `CAPACITY` cells.
const SIZE: usize = size_of::<Header>() + CAPACITY as usize * size_of::<AtomicU64>();
const _: () = assert!(size_of::<Header>() == 64 && align_of::<Header>() == align_of::<AtomicU64>());

/// What a cell says. Its value is the state in the upper half and the pid in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Nothing.
    Free,
    /// A command is being started; its child has not got as far as storing its pid.
    Reserved,
    /// The leader, not reaped by the host.
    Live(i32),
    /// The leader of a session that may have members left; the host has reaped it, or is about to.
    Reaped(i32),
}

const STATE_SHIFT: u32 = 32;
const RESERVED: u64 = 1 << STATE_SHIFT;
const LIVE: u64 = 2 << STATE_SHIFT;
const REAPED: u64 = 3 << STATE_SHIFT;

/// The value that a starting child stores in its cell, with one plain (relaxed) store.
#[cfg(not(dsh_guard_program))]
pub(crate) const fn live(pid: i32) -> u64 {
    LIVE | pid as u32 as u64
}

#[cfg(not(dsh_guard_program))]
const fn reaped(pid: i32) -> u64 {
    REAPED | pid as u32 as u64
}

impl Cell {
    const fn of(value: u64) -> Self {
        let pid = value as u32 as i32;
        match value & !(u32::MAX as u64) {
            RESERVED => Self::Reserved,
            LIVE if pid > 1 => Self::Live(pid),
            REAPED if pid > 1 => Self::Reaped(pid),
            _ => Self::Free,
        }
    }
}

/// The mapped memory, as both sides see it.
#[derive(Clone, Copy)]
struct Memory(*const Header);

// SAFETY: everything that is written after the memory was set up is atomic, and both sides keep it mapped for as long
// as there is a `Memory`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn header(&self) -> &Header {
        // SAFETY: the memory is mapped, page-aligned, and begins with a header.
        unsafe { &*self.0 }
    }

    /// `index` must be below `CAPACITY`.
    fn cell(&self, index: u32) -> &AtomicU64 {
        assert!(index < CAPACITY);
        // SAFETY: the cells follow the header, aligned as it is, and there are more than `index` of them.
        unsafe { &*self.0.add(1).cast::<AtomicU64>().add(index as usize) }
    }
}

#[cfg(dsh_guard_program)]
pub(crate) use guard_side::View;
#[cfg(not(dsh_guard_program))]
pub(crate) use library_side::{Ledger, SlotId};

/// What the guard does with it: reading.
///
/// On ordering: each cell is a value by itself that announces no other memory, so relaxed loads and stores are enough.
/// What the host stored before it died is seen because the kernel's wake-up comes after it; a child that is still
/// starting may store later, and is seen by a later pass (the pass after its copy of the life pipe closed at the
/// latest, for the store comes before the close and the close before the guard's end of file).
#[cfg(dsh_guard_program)]
mod guard_side {
    use super::{Cell, Memory, Ordering, CAPACITY, MAGIC, SIZE};
    use crate::calls;
    use crate::sys::Fd;

    pub(crate) struct View(Memory);

    impl View {
        /// Maps the ledger for good; none when it is not one of ours.
        pub(crate) fn map(fd: &Fd) -> Option<Self> {
            // A mapping beyond the end of the file would be a fault at the first read.
            if calls::size_of_file(fd) < SIZE {
                return None;
            }
            let memory = Memory(calls::map_shared(fd, SIZE)?.cast());
            let header = memory.header();
            (header.magic == MAGIC && header.capacity == CAPACITY).then_some(Self(memory))
        }

        pub(crate) fn executor_id(&self) -> &[u8; 32] {
            &self.0.header().executor_id
        }

        pub(crate) fn grace_ms(&self) -> u64 {
            self.0.header().grace_ms.load(Ordering::Relaxed)
        }

        /// All cells that were ever used, in order.
        pub(crate) fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
            let used = self.0.header().used.load(Ordering::Relaxed).min(CAPACITY);
            (0..used).map(|index| Cell::of(self.0.cell(index).load(Ordering::Relaxed)))
        }

        /// Whether there is no room left, so that a command may have been started without a cell.
        pub(crate) fn is_full(&self) -> bool {
            self.0.header().used.load(Ordering::Relaxed) >= CAPACITY
        }
    }
}

/// What the host does with it: writing.
///
/// On ordering: relaxed is enough for the guard (see its side). Between threads of the host a cell goes from one owner
/// to the next through the lock around the free list, and a child that shares the host's memory stores while its
/// parent's thread is held up in the clone, or, as a copy, before the parent learns of its success through the kernel.
#[cfg(not(dsh_guard_program))]
mod library_side {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

    use parking_lot::Mutex;

    use super::{reaped, AtomicU64, Cell, Header, Memory, Ordering, CAPACITY, MAGIC, RESERVED, SIZE};

    /// The host's side of the ledger. Dropping it unmaps it; the guard has its own mapping.
    pub(crate) struct Ledger {
        pub(super) memory: Memory,
        fd: OwnedFd,
        /// Cells that were released, used again last in first out so that few pages are touched.
        free: Mutex<Vec<u32>>,
    }

    /// One cell, owned by one command from [`Ledger::reserve`] to [`Ledger::release`].
    #[derive(Debug, PartialEq, Eq)]
    #[must_use = "a cell that is dropped without `release` is never used again"]
    pub(crate) struct SlotId(u32);

    impl Ledger {
        /// Makes an empty ledger. `executor_id` is 32 lower-case hex digits, as in the mark.
        pub(crate) fn create(executor_id: &[u8; 32], grace_ms: u64) -> io::Result<Self> {
            // SAFETY: the name ends with NUL.
            let fd = unsafe { libc::memfd_create(c"dsh-ledger".as_ptr(), libc::MFD_CLOEXEC) };
            if fd == -1 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: a new descriptor, nobody else's.
            let fd = crate::fd::above_stdio(unsafe { OwnedFd::from_raw_fd(fd) })?;
            // SAFETY: the descriptor is open for writing; nothing is mapped yet.
            if unsafe { libc::ftruncate(fd.as_raw_fd(), SIZE as libc::off_t) } == -1 {
                return Err(io::Error::last_os_error());
            }
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping at an address of the kernel's choice, of a file that is as long as it.
            let memory =
                unsafe { libc::mmap(std::ptr::null_mut(), SIZE, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
            if memory == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let header = memory.cast::<Header>();
            // SAFETY: mapped, page-aligned, large enough, and nobody reads it yet. The rest is zero: all cells free.
            unsafe {
                (*header).magic = MAGIC;
                (*header).capacity = CAPACITY;
                (*header).executor_id = *executor_id;
            }
            let ledger = Self { memory: Memory(header), fd, free: Mutex::new(Vec::new()) };
            ledger.set_grace(grace_ms);
            Ok(ledger)
        }

        /// What the guard gets as its descriptor 3.
        pub(crate) fn fd(&self) -> BorrowedFd<'_> {
            self.fd.as_fd()
        }

        /// How long the guard waits between SIGTERM and SIGKILL.
        pub(crate) fn set_grace(&self, ms: u64) {
            self.memory.header().grace_ms.store(ms, Ordering::Relaxed);
        }

        /// Takes a cell for a command that is about to be started; none when all 65,536 are taken. It must be released
        /// if the start fails.
        pub(crate) fn reserve(&self) -> Option<SlotId> {
            let mut free = self.free.lock();
            let index = free.pop().or_else(|| {
                let used = &self.memory.header().used;
                let next = used.load(Ordering::Relaxed);
                // Stored under the lock, and before any child can be in the new cell.
                (next < CAPACITY).then(|| used.store(next + 1, Ordering::Relaxed))?;
                Some(next)
            })?;
            self.memory.cell(index).store(RESERVED, Ordering::Relaxed);
            Some(SlotId(index))
        }

        /// The cell itself, in which the starting child stores [`live`](super::live) of its pid.
        pub(crate) fn slot(&self, slot: &SlotId) -> &AtomicU64 {
            self.memory.cell(slot.0)
        }

        /// The leader is going to be reaped. To be called just *before* it is: afterwards its number may be given
        /// away at once, and the guard must not take a stranger for it.
        pub(crate) fn mark_reaped(&self, slot: &SlotId) {
            let cell = self.slot(slot);
            if let Cell::Live(pid) = Cell::of(cell.load(Ordering::Relaxed)) {
                cell.store(reaped(pid), Ordering::Relaxed);
            }
        }

        /// The session is empty (its group's number answers ESRCH, or no living process is in it), or the start failed.
        /// Escapees need no cell.
        pub(crate) fn release(&self, slot: SlotId) {
            self.slot(&slot).store(0, Ordering::Relaxed);
            self.free.lock().push(slot.0);
        }
    }

    impl Drop for Ledger {
        fn drop(&mut self) {
            // SAFETY: the mapping is ours, and cells are only borrowed from `self`.
            unsafe { libc::munmap(self.memory.0.cast_mut().cast(), SIZE) };
        }
    }
}

#[cfg(all(test, not(dsh_guard_program)))]
mod tests {
    use super::*;

    const ID: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

    fn read(ledger: &Ledger, slot: &SlotId) -> Cell {
        Cell::of(ledger.slot(slot).load(Ordering::Relaxed))
    }

    #[test]
    fn a_cell_goes_through_its_states() {
        let ledger = Ledger::create(ID, 3000).unwrap();
        let slot = ledger.reserve().unwrap();
        assert_eq!(read(&ledger, &slot), Cell::Reserved);
        ledger.mark_reaped(&slot);
        assert_eq!(read(&ledger, &slot), Cell::Reserved);
        ledger.slot(&slot).store(live(4_194_303), Ordering::Relaxed);
        assert_eq!(read(&ledger, &slot), Cell::Live(4_194_303));
        ledger.mark_reaped(&slot);
        assert_eq!(read(&ledger, &slot), Cell::Reaped(4_194_303));
        ledger.release(slot);
        let again = ledger.reserve().unwrap();
        assert_eq!(read(&ledger, &again), Cell::Reserved);
        ledger.release(again);
    }

    #[test]
    fn values_that_name_nobody_are_free() {
        for value in [0, 7, live(0), live(1), live(-5), reaped(1), reaped(-1), 4 << STATE_SHIFT | 77, u64::MAX] {
            assert_eq!(Cell::of(value), Cell::Free, "{value:#x}");
        }
        assert_eq!(Cell::of(live(i32::MAX)), Cell::Live(i32::MAX));
    }

    #[test]
    fn a_full_ledger_refuses_and_recovers() {
        let ledger = Ledger::create(ID, 0).unwrap();
        let mut slots: Vec<SlotId> = std::iter::from_fn(|| ledger.reserve()).collect();
        assert_eq!(slots.len(), CAPACITY as usize);
        ledger.release(slots.pop().unwrap());
        slots.push(ledger.reserve().unwrap());
        assert_eq!(ledger.reserve(), None);
    }

    #[test]
    fn no_cell_has_two_owners() {
        let ledger = Ledger::create(ID, 0).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let ledger = &ledger;
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let mine = live(2 + thread * 10_000 + round);
                        let slots: Vec<SlotId> = (0..5).map(|_| ledger.reserve().unwrap()).collect();
                        for slot in &slots {
                            assert_eq!(ledger.slot(slot).swap(mine, Ordering::Relaxed), RESERVED);
                        }
                        for slot in slots {
                            assert_eq!(ledger.slot(&slot).load(Ordering::Relaxed), mine);
                            ledger.release(slot);
                        }
                    }
                });
            }
        });
        assert!(ledger.memory.header().used.load(Ordering::Relaxed) <= 40);
    }

    #[test]
    fn another_mapping_of_the_descriptor_sees_it_all() {
        use std::os::fd::AsRawFd;
        let ledger = Ledger::create(ID, 1234).unwrap();
        let slot = ledger.reserve().unwrap();
        // SAFETY: a new read-only mapping of a file that is long enough.
        let seen = unsafe {
            libc::mmap(std::ptr::null_mut(), SIZE, libc::PROT_READ, libc::MAP_SHARED, ledger.fd().as_raw_fd(), 0)
        };
        assert_ne!(seen, libc::MAP_FAILED);
        let seen = Memory(seen.cast());
        ledger.slot(&slot).store(live(77), Ordering::Relaxed);
        ledger.set_grace(99);
        assert_eq!((seen.header().magic, seen.header().capacity), (MAGIC, CAPACITY));
        assert_eq!(&seen.header().executor_id, ID);
        assert_eq!(seen.header().grace_ms.load(Ordering::Relaxed), 99);
        assert_eq!(seen.header().used.load(Ordering::Relaxed), 1);
        assert_eq!(Cell::of(seen.cell(0).load(Ordering::Relaxed)), Cell::Live(77));
        drop(ledger);
        assert_eq!(Cell::of(seen.cell(0).load(Ordering::Relaxed)), Cell::Live(77));
        // SAFETY: mapped above, not used any more.
        unsafe { libc::munmap(seen.0.cast_mut().cast(), SIZE) };
    }
}
