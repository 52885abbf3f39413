//! The guard's memory: pieces of power-of-two sizes, used again when freed; large ones straight from the kernel.
//! Nothing is taken before the host has ended, so a waiting guard is a few pages.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;

use crate::calls;

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(Pieces { free: [null_mut(); CLASSES], next: 0, end: 0 }));

const SMALLEST: usize = 16;
const CLASSES: usize = 12;
/// From this size on the kernel is asked each time.
const LARGE: usize = SMALLEST << CLASSES;
/// What is taken from the kernel at a time for the small ones.
const CHUNK: usize = 4 * LARGE;

struct Heap(UnsafeCell<Pieces>);

struct Pieces {
    /// For each size the first free piece, which holds the address of the next.
    free: [*mut u8; CLASSES],
    next: usize,
    end: usize,
}

// SAFETY: the guard has one thread and no signal handlers.
unsafe impl Sync for Heap {}

/// Pieces are aligned to their size, so one that holds the alignment fits it too.
fn piece(layout: Layout) -> usize {
    layout.size().max(layout.align()).max(SMALLEST).next_power_of_two()
}

// SAFETY: a piece is handed out once until it is freed, and is as large and as aligned as asked for: by its size up to
// `LARGE`, by pages (which no layout here exceeds in alignment) beyond.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = piece(layout);
        if size >= LARGE {
            return calls::map(size).unwrap_or(null_mut());
        }
        // SAFETY: one thread, and no reference outlives a call.
        let pieces = unsafe { &mut *self.0.get() };
        let class = (size / SMALLEST).trailing_zeros() as usize;
        let first = pieces.free[class];
        if !first.is_null() {
            // SAFETY: a free piece holds the address of the next one.
            pieces.free[class] = unsafe { first.cast::<*mut u8>().read() };
            return first;
        }
        let mut start = pieces.next.next_multiple_of(size);
        if start + size > pieces.end {
            let Some(chunk) = calls::map(CHUNK) else { return null_mut() };
            start = (chunk as usize).next_multiple_of(size);
            pieces.end = chunk as usize + CHUNK;
        }
        pieces.next = start + size;
        start as *mut u8
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        let size = piece(layout);
        if size >= LARGE {
            // SAFETY: mapped with this size by `alloc`, and given back by its last user.
            unsafe { calls::unmap(address, size) };
            return;
        }
        // SAFETY: one thread, and no reference outlives a call.
        let pieces = unsafe { &mut *self.0.get() };
        let class = (size / SMALLEST).trailing_zeros() as usize;
        // SAFETY: the piece is ours again, and large and aligned enough for an address.
        unsafe { address.cast::<*mut u8>().write(pieces.free[class]) };
        pieces.free[class] = address;
    }
}
