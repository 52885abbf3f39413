//! What a libc would bring to a freestanding program: the entry point, the memory functions that the compiler calls,
//! and the end after a panic. The program brings `main` and `calls`.

use core::arch::global_asm;
use core::ffi::{c_char, CStr};

use crate::calls;

// The kernel enters here with the stack pointer at argc, argv and the environment, and no return address.
#[cfg(target_arch = "x86_64")]
global_asm!(".globl _start", "_start:", "xor ebp, ebp", "mov rdi, rsp", "and rsp, -16", "call {start}", "ud2",
    start = sym start);
#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "mov x29, #0", "mov x30, #0", "mov x0, sp", "bl {start}", "brk #1",
    start = sym start);

/// # Safety
/// `stack` is what the kernel left for a new program: argc, then that many argument pointers and a null.
unsafe extern "C" fn start(stack: *const usize) -> ! {
    calls::exit(crate::main(Arguments(stack)))
}

/// What the program was started with.
#[derive(Clone, Copy)]
pub(crate) struct Arguments(*const usize);

impl Arguments {
    /// The argument at this place; the first is the program's name.
    pub(crate) fn get(self, index: usize) -> Option<&'static CStr> {
        // SAFETY: made from what the kernel left, which is there for as long as the program runs: the number of
        // arguments, then the arguments, each a string.
        unsafe { (index < *self.0).then(|| CStr::from_ptr(*self.from(index))) }
    }

    /// All from this one on, which must be there, ended by a null: as an exec takes them.
    pub(crate) fn from(self, index: usize) -> *const *const c_char {
        self.0.wrapping_add(1 + index).cast()
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    calls::exit(1)
}

/// Named by the precompiled `core`, never called: a panic ends the program.
#[no_mangle]
extern "C" fn rust_eh_personality() {}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    for index in 0..length {
        // SAFETY: the caller's word.
        unsafe { *to.add(index) = *from.add(index) };
    }
    to
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= length {
        // SAFETY: the caller's word; going up, nothing is overwritten before it is read.
        return unsafe { memcpy(to, from, length) };
    }
    for index in (0..length).rev() {
        // SAFETY: the caller's word.
        unsafe { *to.add(index) = *from.add(index) };
    }
    to
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8 {
    for index in 0..length {
        // SAFETY: the caller's word.
        unsafe { *to.add(index) = value as u8 };
    }
    to
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    for index in 0..length {
        // SAFETY: the caller's word.
        let (left, right) = unsafe { (*left.add(index), *right.add(index)) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    // SAFETY: the caller's word.
    unsafe { memcmp(left, right, length) }
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn strlen(string: *const c_char) -> usize {
    let mut length = 0;
    // SAFETY: the caller's word: there is a NUL.
    while unsafe { *string.add(length) } != 0 {
        length += 1;
    }
    length
}
