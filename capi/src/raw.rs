//! Pointers of C callers, turned into values.
//!
//! Each type here is a pointer as an argument of an exported function, and nothing else makes one: the fields are private,
//! and no function in this crate returns one. So what the header demands of a caller holds for each: it is null, or it
//! points to what its type says, which is alive and which no other thread changes during the call. Null, alignment and
//! sizes are checked; that there is memory behind a pointer cannot be.
//!
//! Structs begin with their size, which the caller sets to `sizeof`. An older caller's struct is shorter: what it lacks is
//! zero, which means the same as before the field was added. A newer caller's is longer: what this version does not have
//! must be zero.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ptr;

use crate::code::{
    Done, Failure, TT_SHM_ERR_ALIGNMENT, TT_SHM_ERR_NULL, TT_SHM_ERR_SIZE, TT_SHM_ERR_UTF8, TT_SHM_ERR_VALUE,
};

/// A type of which every pattern of bits is a value, without padding.
///
/// # Safety
///
/// It consists of integers and pointers, in the layout of C.
pub unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: an integer. (`char` is one of these two.)
unsafe impl Plain for i8 {}
// SAFETY: an integer.
unsafe impl Plain for u16 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: an integer.
unsafe impl Plain for usize {}
// SAFETY: a pointer, which is a value whatever it points to.
unsafe impl<T> Plain for *mut T {}

/// A struct that begins with its size.
///
/// # Safety
///
/// Its first field is a `u32`.
pub unsafe trait Versioned: Plain {
    /// What it is called in messages.
    const NAME: &'static str;
}

/// Declares structs of the interface, which are made of integers, arrays of them and pointers.
macro_rules! versioned {
    ($($name:ident),* $(,)?) => {$(
        // SAFETY: made of integers and pointers in the layout of C; its fields fill it.
        unsafe impl crate::raw::Plain for $name {}
        // SAFETY: `size` comes first.
        unsafe impl crate::raw::Versioned for $name {
            const NAME: &'static str = stringify!($name);
        }
        const _: () = assert!(std::mem::offset_of!($name, size) == 0);
    )*};
}
pub(crate) use versioned;

/// Structs without a size of their own, in arrays whose elements stay as they are.
macro_rules! plain {
    ($($name:ident),* $(,)?) => {$(
        // SAFETY: made of integers in the layout of C; its fields fill it.
        unsafe impl crate::raw::Plain for $name {}
    )*};
}
pub(crate) use plain;

/// The longest struct that is looked at: no version will have a longer one.
const LONGEST: usize = 1 << 16;
/// The shortest: the size itself, and what fills its word.
const SHORTEST: usize = 8;

/// The size of somebody's struct.
fn plausible(size: u32, name: &str) -> Done<usize> {
    let size = size as usize;
    if (SHORTEST..=LONGEST).contains(&size) && size.is_multiple_of(8) {
        return Ok(size);
    }
    let text = format_args!("{name}.size is {size}: set it to sizeof({name})");
    Err(Failure::new(TT_SHM_ERR_SIZE, None, text))
}

#[cold]
fn null(what: &str) -> Failure {
    Failure::new(TT_SHM_ERR_NULL, None, format_args!("a pointer to {what} is null"))
}

#[cold]
fn misaligned(what: &str) -> Failure {
    Failure::new(TT_SHM_ERR_ALIGNMENT, None, format_args!("a pointer to {what} is not aligned"))
}

#[inline(always)]
fn check<T>(pointer: *const T, what: &str) -> Done {
    match () {
        () if pointer.is_null() => Err(null(what)),
        () if !pointer.is_aligned() => Err(misaligned(what)),
        () => Ok(()),
    }
}

/// A struct that the caller passes.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct In<T>(*const T);

impl<T: Versioned> In<T> {
    /// A copy of the struct.
    pub(crate) fn get(self) -> Done<T> {
        check(self.0, T::NAME)?;
        if let Some(value) = self.in_place() {
            return Ok(*value);
        }
        // SAFETY: not null and aligned; the caller's struct begins with its size.
        let size = unsafe { self.0.cast::<u32>().read() };
        self.resized(plausible(size, T::NAME)?)
    }

    /// The struct where it is, if it is one of this version: the caller has just stored its fields one by one, and a copy,
    /// which loads several at once, would wait until all of them have left the core.
    #[inline(always)]
    pub(crate) fn in_place<'a>(self) -> Option<&'a T> {
        if self.0.is_null() || !self.0.is_aligned() {
            return None;
        }
        // SAFETY: not null and aligned; the caller's struct begins with its size.
        let size = unsafe { self.0.cast::<u32>().read() };
        // SAFETY: the caller's struct is that long, every pattern of bits is a value, and nobody changes it during the call.
        (size as usize == size_of::<T>()).then(|| unsafe { &*self.0 })
    }

    /// The struct, or `None` for a null pointer.
    pub(crate) fn optional(self) -> Done<Option<T>> {
        if self.0.is_null() { Ok(None) } else { self.get().map(Some) }
    }

    #[cold]
    fn resized(self, size: usize) -> Done<T> {
        let common = size.min(size_of::<T>());
        // SAFETY: the caller's struct has `size` bytes.
        let rest = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), size) };
        if rest[common..].iter().any(|byte| *byte != 0) {
            let name = T::NAME;
            let text = format_args!("{name} has {size} bytes, and uses more than the {common} known here");
            return Err(Failure::new(TT_SHM_ERR_SIZE, None, text));
        }
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: both have `common` bytes, and the value is a variable of this function.
        unsafe { ptr::copy_nonoverlapping(self.0.cast::<u8>(), value.as_mut_ptr().cast(), common) };
        // SAFETY: every byte was set, and every pattern of bits is a value.
        Ok(unsafe { value.assume_init() })
    }
}

/// An array that the caller passes, beside the number of its elements.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Items<T>(*const T);

impl<T: Plain> Items<T> {
    /// The elements; the pointer may be null if there are none.
    #[inline(always)]
    pub(crate) fn get<'a>(self, count: usize) -> Done<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        check(self.0, "an array")?;
        if count > isize::MAX as usize / size_of::<T>() {
            return Err(Failure::argument(TT_SHM_ERR_VALUE, "an array is longer than memory"));
        }
        // SAFETY: not null, aligned, not longer than memory; the caller has that many there during the call.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}

impl Items<u8> {
    /// The only element, if there is one.
    #[inline(always)]
    pub(crate) fn one(self, count: usize) -> Option<u8> {
        // SAFETY: not null; the caller has one there.
        (count == 1 && !self.0.is_null()).then(|| unsafe { self.0.read() })
    }
}

impl<T: Versioned> Items<T> {
    /// Copies of the structs. Their distance is the size of the first; each says its own.
    pub(crate) fn copied(self, count: usize) -> Done<Vec<T>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        check(self.0, T::NAME)?;
        // SAFETY: not null and aligned; the caller's struct begins with its size.
        let stride = plausible(unsafe { self.0.cast::<u32>().read() }, T::NAME)?;
        let mut copies = Vec::with_capacity(count.min(LONGEST));
        for place in 0..count {
            let element = In(self.0.wrapping_byte_add(place.wrapping_mul(stride)));
            // SAFETY: the caller has `count` structs there, at this distance.
            let size = unsafe { element.0.cast::<u32>().read() };
            if size as usize != stride {
                let text = format_args!("element {place} has size {size}, and the first one {stride}");
                return Err(Failure::new(TT_SHM_ERR_SIZE, None, text));
            }
            copies.push(element.get()?);
        }
        Ok(copies)
    }
}

/// A text with a zero at its end.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// The bytes, or `None` for a null pointer.
    pub(crate) fn bytes<'a>(self) -> Option<&'a [u8]> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: not null; the caller's text has a zero at its end, and stays during the call.
        Some(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }

    /// The text, or `None` for a null pointer.
    pub(crate) fn get<'a>(self, what: &str) -> Done<Option<&'a str>> {
        let utf8 = |bytes| {
            let not = |_| Failure::new(TT_SHM_ERR_UTF8, None, format_args!("{what} is not UTF-8"));
            std::str::from_utf8(bytes).map_err(not)
        };
        self.bytes().map(utf8).transpose()
    }
}

// SAFETY: a pointer, which is a value whatever it points to.
unsafe impl Plain for Text {}

/// Where a value is to be put.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Out<T>(*mut T);

impl<T: Plain> Out<T> {
    /// An error if nothing can be put there: for calls that do something first.
    #[inline(always)]
    pub(crate) fn check(self) -> Done {
        check(self.0, "a result")
    }

    /// Puts the value there.
    #[inline(always)]
    pub(crate) fn set(self, value: T) -> Done {
        self.check()?;
        // SAFETY: not null and aligned; the caller has room for the value there.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Puts the value there, unless the pointer is null: the caller does not want it.
    pub(crate) fn set_if_wanted(self, value: T) -> Done {
        if self.0.is_null() { Ok(()) } else { self.set(value) }
    }
}

/// Where a struct is to be put, whose size the caller has set.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct OutStruct<T>(*mut T);

impl<T: Versioned> OutStruct<T> {
    /// Puts as much of the struct there as it has room for, and zeros after it. The size stays the caller's.
    pub(crate) fn set(self, value: &T) -> Done {
        let room = self.room()?;
        // SAFETY: `room` bytes are there, as the caller has said.
        unsafe { put(self.0, room, value) };
        Ok(())
    }

    /// The same, unless the pointer is null: the caller does not want it.
    pub(crate) fn set_if_wanted(self, value: &T) -> Done {
        if self.0.is_null() { Ok(()) } else { self.set(value) }
    }

    /// Whether the caller does not want it.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The size that the caller has set.
    pub(crate) fn room(self) -> Done<usize> {
        check(self.0, T::NAME)?;
        // SAFETY: not null and aligned; the caller's struct begins with its size.
        plausible(unsafe { self.0.cast::<u32>().read() }, T::NAME)
    }
}

/// Puts a struct into `room` bytes, with zeros after it and `room` as its size.
///
/// # Safety
///
/// There are `room` bytes at that place, at least 4, which begin at a multiple of 8.
unsafe fn put<T: Versioned>(place: *mut T, room: usize, value: &T) {
    let common = room.min(size_of::<T>());
    // SAFETY: the caller says that there is room; the value is a variable of ours.
    unsafe { ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), place.cast(), common) };
    // SAFETY: as above, for what is beyond the value.
    unsafe { ptr::write_bytes(place.cast::<u8>().wrapping_add(common), 0, room - common) };
    // SAFETY: as above; a place of a struct is aligned.
    unsafe { place.cast::<u32>().write(room as u32) };
}

/// An array of structs that is to be filled, beside the number of those that there is room for. The first says the size
/// of each.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct OutStructs<T>(*mut T);

impl<T: Versioned> OutStructs<T> {
    /// Puts the first of these values there, as far as there is room.
    pub(crate) fn fill(self, capacity: usize, values: impl IntoIterator<Item = T>) -> Done {
        if capacity == 0 {
            return Ok(());
        }
        let room = OutStruct(self.0).room()?;
        for (place, value) in values.into_iter().take(capacity).enumerate() {
            let at = self.0.wrapping_byte_add(place.wrapping_mul(room));
            // SAFETY: the caller has room for `capacity` structs of this size, and this is one of them.
            unsafe { put(at, room, &value) };
        }
        Ok(())
    }
}

/// An array of values that is to be filled, beside the number of those that there is room for.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct OutItems<T>(*mut T);

impl<T: Plain> OutItems<T> {
    /// The room, which may have any content.
    fn get<'a>(self, capacity: usize) -> Done<&'a mut [MaybeUninit<T>]> {
        if capacity == 0 {
            return Ok(&mut []);
        }
        check(self.0, "an array")?;
        if capacity > isize::MAX as usize / size_of::<T>() {
            return Err(Failure::argument(TT_SHM_ERR_VALUE, "an array is longer than memory"));
        }
        // SAFETY: not null, aligned, not longer than memory; the caller has room for that many, and nobody else uses it.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast::<MaybeUninit<T>>(), capacity) })
    }

    /// The room, with zeros in it.
    pub(crate) fn zeroed<'a>(self, capacity: usize) -> Done<&'a mut [T]> {
        let room = self.get(capacity)?;
        room.fill(MaybeUninit::zeroed());
        // SAFETY: all of it was just set, and every pattern of bits is a value.
        Ok(unsafe { room.assume_init_mut() })
    }

    /// Puts the first of these values there, as far as there is room.
    pub(crate) fn fill(self, capacity: usize, values: impl IntoIterator<Item = T>) -> Done {
        for (place, value) in self.get(capacity)?.iter_mut().zip(values) {
            place.write(value);
        }
        Ok(())
    }
}

impl OutItems<c_char> {
    /// Puts a text there, cut if there is no room for all of it; with a zero after it if there is any room.
    pub(crate) fn text(self, capacity: usize, text: &[u8]) -> Done {
        let shown = &text[..text.len().min(capacity.saturating_sub(1))];
        let end = (capacity > 0).then_some(0);
        #[allow(clippy::cast_possible_wrap, reason = "the same bits")]
        self.fill(capacity, shown.iter().map(|byte| *byte as c_char).chain(end))
    }
}

/// A handle: a number that looks like a pointer, so that C distinguishes its kinds. Never followed.
#[repr(transparent)]
pub struct Handle<T>(*mut T);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> Handle<T> {
    /// Its number; 0 for null.
    #[inline(always)]
    pub(crate) fn number(self) -> u64 {
        self.0.addr() as u64
    }
}

/// A descriptor of the caller's, duplicated: the caller keeps its own.
pub(crate) fn duplicate(descriptor: i32) -> Done<std::os::fd::OwnedFd> {
    let failed = |error: std::io::Error| {
        let text = format_args!("descriptor {descriptor} cannot be used: {error}");
        Failure::new(crate::code::TT_SHM_ERR_IO, error.raw_os_error(), text)
    };
    if descriptor < 0 {
        return Err(failed(std::io::Error::from_raw_os_error(libc::EBADF)));
    }
    // SAFETY: not -1; the caller keeps it open during the call, and if it is none the system says so.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned().map_err(failed)
}
