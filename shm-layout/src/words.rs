//! Shared memory as 64-bit words.
//!
//! Memory that another process may change is never accessed through `&T` or `&[u8]`: it is a slice of words,
//! each read and written by one relaxed atomic access. Ordering comes from the fences and the release store
//! below, which only [`crate::protocol`] uses. The protocols are generic over [`Word`] so that loom runs the
//! very code that runs in production.

use bytemuck::Pod;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// One 64-bit word of shared memory, and the fences that order accesses to such words.
///
/// There is no acquire load: on a read-only mapping Rust allows only relaxed loads, so readers load relaxed
/// and place [`Word::fence_acquire`] after it.
pub trait Word {
    /// Loads the word, relaxed.
    fn load(&self) -> u64;
    /// Stores the word, relaxed.
    fn store(&self, value: u64);
    /// Stores the word and publishes everything written before it.
    fn store_release(&self, value: u64);
    /// Orders the loads before it before everything after it.
    fn fence_acquire();
    /// Orders everything before it before the stores after it.
    fn fence_release();
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::Relaxed)
    }
    #[inline(always)]
    fn store(&self, value: u64) {
        AtomicU64::store(self, value, Ordering::Relaxed);
        #[cfg(feature = "test-points")]
        crate::points::visit(crate::points::Visit::Store(core::ptr::from_ref(self).addr()));
    }
    #[inline(always)]
    fn store_release(&self, value: u64) {
        AtomicU64::store(self, value, Ordering::Release);
        #[cfg(feature = "test-points")]
        crate::points::visit(crate::points::Visit::Store(core::ptr::from_ref(self).addr()));
    }
    #[inline(always)]
    fn fence_acquire() {
        fence(Ordering::Acquire);
    }
    #[inline(always)]
    fn fence_release() {
        fence(Ordering::Release);
    }
}

/// The number of words that `T` occupies. Fails to compile for a type that is not made of whole words.
pub const fn words_of<T>() -> usize {
    assert!(size_of::<T>().is_multiple_of(8));
    size_of::<T>() / 8
}

/// Copies a value out of shared words; missing words at the end read as zero.
#[inline]
pub fn load_pod<T: Pod, W: Word>(words: &[W]) -> T {
    const { words_of::<T>() };
    let mut value = T::zeroed();
    let (bytes, _) = bytemuck::bytes_of_mut(&mut value).as_chunks_mut();
    for (bytes, word) in bytes.iter_mut().zip(words) {
        *bytes = word.load().to_le_bytes();
    }
    value
}

/// Copies a value into shared words; missing words at the end are skipped.
#[inline]
pub fn store_pod<T: Pod, W: Word>(words: &[W], value: &T) {
    const { words_of::<T>() };
    let (bytes, _) = bytemuck::bytes_of(value).as_chunks();
    for (word, bytes) in words.iter().zip(bytes) {
        word.store(u64::from_le_bytes(*bytes));
    }
}

/// A `T` in shared memory, read field by field and in place.
///
/// A view says nothing about validity: the code that hands it out checks afterwards whether what was read
/// through it is consistent (see [`crate::protocol::latch`]).
pub struct View<'a, T, W = AtomicU64> {
    words: &'a [W],
    of: PhantomData<fn() -> T>,
}

impl<T, W> Clone for View<'_, T, W> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, W> Copy for View<'_, T, W> {}

impl<'a, T: Pod, W: Word> View<'a, T, W> {
    /// A view of the `T` that starts with the first of these words.
    pub fn new(words: &'a [W]) -> Self {
        View { words, of: PhantomData }
    }

    /// Copies the whole value out.
    pub fn load(&self) -> T {
        load_pod(self.words)
    }

    /// Reads the field at a byte offset, which is a multiple of 8.
    #[inline]
    pub(crate) fn field<F: Pod>(&self, offset: usize) -> F {
        load_pod(self.words.get(offset / 8..).unwrap_or_default())
    }
}

/// Declares a `repr(C)` Pod struct with the byte offset of each field and the size of the whole, all
/// checked at compile time, and keeps the descriptions of the fields for the document.
macro_rules! shared_struct {
    ($(#[$meta:meta])* pub struct $name:ident, size $size:literal {
        $($(#[doc = $doc:literal])* $offset:literal => pub $field:ident: $ty:ty,)*
    }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
        pub struct $name { $($(#[doc = $doc])* pub $field: $ty,)* }
        const _: () = {
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
            assert!(size_of::<$name>() == $size && align_of::<$name>() == 8);
        };
        impl $crate::describe::Fields for $name {
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [$crate::describe::Field] = &[$($crate::describe::Field {
                name: stringify!($field),
                offset: $offset,
                size: size_of::<$ty>(),
                ty: stringify!($ty),
                doc: concat!($($doc, "\n"),*),
            },)*];
        }
    };
}

/// [`shared_struct!`] for structs of whole-word fields, with an accessor per field on its [`View`].
macro_rules! viewed_struct {
    ($(#[$meta:meta])* pub struct $name:ident, size $size:literal {
        $($(#[doc = $doc:literal])* $offset:literal => pub $field:ident: $ty:ty,)*
    }) => {
        $crate::words::shared_struct! {
            $(#[$meta])*
            pub struct $name, size $size { $($(#[doc = $doc])* $offset => pub $field: $ty,)* }
        }
        impl<W: $crate::words::Word> $crate::words::View<'_, $name, W> {
            $($(#[doc = $doc])* #[inline] pub fn $field(&self) -> $ty { self.field($offset) })*
        }
    };
}
pub(crate) use {shared_struct, viewed_struct};
