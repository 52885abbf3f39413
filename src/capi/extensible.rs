//! Structs that begin with their own size, so that programs and libraries of different versions understand each other.

use std::ptr;

use super::handle::null;
use super::out::Output;
use super::status::{dsh_status_t, DSH_E_NULL, DSH_E_STRUCT, DSH_OK};
use crate::error::{Error, ErrorKind, Result, Stage};

/// The least that a struct has: its size and two more fields.
const LEAST: usize = 24;
/// No struct of any version will be longer. Keeps a size that was never set from being followed.
const MOST: usize = 64 << 10;
const SIZE: usize = size_of::<usize>();

/// A struct of the header that begins with `size_t size`.
///
/// # Safety
/// It is `repr(C)`, its first field is `size: usize`, it has no holes, and any bytes are a valid value.
pub(super) unsafe trait Extensible: Copy {
    const NAME: &'static str;
}

/// Declares structs as extensible, and checks what can be checked of that.
macro_rules! extensible {
    ($name:ident) => {
        // SAFETY: declared next to this, with integers and pointers only; the tests compile the header with -Wpadded.
        unsafe impl $crate::capi::extensible::Extensible for $name {
            const NAME: &'static str = stringify!($name);
        }
        const _: () = assert!(std::mem::offset_of!($name, size) == 0 && size_of::<$name>() >= 24);
    };
}

/// Reads an options struct: what it lacks is zero, and what it has beyond ours must be.
///
/// # Safety
/// `given` is NULL or points to as many readable bytes as its size says.
pub(super) unsafe fn read<T: Extensible>(given: *const T, name: &str) -> Result<T> {
    let size = size_of_given(given, name)?;
    let mut own = std::mem::zeroed::<T>();
    ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut own).cast::<u8>(), size.min(size_of::<T>()));
    for offset in size_of::<T>()..size {
        let byte = *given.cast::<u8>().add(offset);
        if byte != 0 {
            let (name, own) = (T::NAME, size_of::<T>());
            let version = env!("CARGO_PKG_VERSION");
            return Err(misfit(format!(
                "{name}: byte {offset} is {byte:#x}, but libdsh {version} knows {own} bytes of it and no more"
            )));
        }
    }
    Ok(own)
}

/// Empties a struct of which only the size is known.
///
/// # Safety
/// `given` is NULL or points to `size` writable bytes.
pub(super) unsafe fn init<T: Extensible>(given: *mut T, size: usize) -> dsh_status_t {
    if given.is_null() {
        return DSH_E_NULL;
    }
    if !(LEAST..=MOST).contains(&size) {
        return DSH_E_STRUCT;
    }
    given.cast::<u8>().write_bytes(0, size);
    given.cast::<usize>().write(size);
    DSH_OK
}

impl<T: Extensible> Output for *mut T {
    type Value = T;

    unsafe fn clear(self, name: &str) -> Result<()> {
        let size = size_of_given(self, name)?;
        self.cast::<u8>().add(SIZE).write_bytes(0, size - SIZE);
        Ok(())
    }

    unsafe fn write(self, value: T) {
        let size = self.cast::<usize>().read().min(size_of::<T>());
        let from = (&raw const value).cast::<u8>().add(SIZE);
        ptr::copy_nonoverlapping(from, self.cast::<u8>().add(SIZE), size - SIZE);
    }
}

unsafe fn size_of_given<T: Extensible>(given: *const T, name: &str) -> Result<usize> {
    if given.is_null() {
        return Err(null(name));
    }
    let size = given.cast::<usize>().read();
    if !(LEAST..=MOST).contains(&size) {
        let name = T::NAME;
        return Err(misfit(format!("{name}: size (offset 0) is {size}, which no version of the struct has")));
    }
    Ok(size)
}

fn misfit(message: String) -> Error {
    Error::new(ErrorKind::Struct, Stage::Argument, message)
}

/// Refuses what no field of this name may have.
pub(super) fn reserved<T: Extensible>(field: &str, offset: usize, value: u32) -> Result<()> {
    if value == 0 {
        return Ok(());
    }
    let name = T::NAME;
    Err(misfit(format!("{name}: {field} (offset {offset}) is {value:#x}; this version knows no use for it")))
}

/// Refuses unknown flag bits.
pub(super) fn flags<T: Extensible>(field: &str, value: u64, known: u64) -> Result<()> {
    let unknown = value & !known;
    if unknown == 0 {
        return Ok(());
    }
    let name = T::NAME;
    let message = format!("{name}: {field} {value:#x}: the bits {unknown:#x} are unknown");
    Err(Error::new(ErrorKind::Flags, Stage::Argument, message))
}
