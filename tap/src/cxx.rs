//! The few shapes of libstdc++ that cross the border: what tt-metal returns by value.
//!
//! All wheels are built with libstdc++, whose ABI for these types has not changed since GCC 5. Whoever gets one owns
//! it: its memory comes from `operator new`, which is `malloc`, and is given back with `free`.

use std::ffi::c_void;
use std::ptr;

/// `std::vector<T>` of a type without destructor.
#[repr(C)]
pub(crate) struct Vector<T: Copy> {
    begin: *mut T,
    end: *mut T,
    capacity: *mut T,
}

impl<T: Copy> Vector<T> {
    /// Copies the elements.
    pub(crate) fn copy(&self) -> Vec<T> {
        if self.begin.is_null() {
            return Vec::new();
        }
        // SAFETY: both point into one array of T, as in every vector.
        let length = unsafe { self.end.offset_from(self.begin) };
        // SAFETY: the vector holds that many elements, and is not changed meanwhile.
        unsafe { std::slice::from_raw_parts(self.begin, length.unsigned_abs()) }.to_vec()
    }

    /// The first element, and whether it is the only one.
    pub(crate) fn first(&self) -> Option<(T, bool)> {
        if self.begin == self.end {
            return None;
        }
        // SAFETY: the vector has an element, and is not changed meanwhile.
        Some((unsafe { self.begin.read() }, self.begin.wrapping_add(1) == self.end))
    }

    /// Copies the elements and frees the vector.
    pub(crate) fn take(self) -> Vec<T> {
        let elements = self.copy();
        // SAFETY: the vector was returned by value, so its memory is ours, and came from malloc.
        unsafe { libc::free(self.begin.cast()) };
        elements
    }
}

/// `std::unordered_set<T*>`: nodes in a list, and an array of buckets.
#[repr(C)]
pub(crate) struct PointerSet {
    buckets: *mut c_void,
    bucket_count: usize,
    first: *mut Node,
    count: usize,
    max_load: f32,
    next_resize: usize,
    single_bucket: *mut c_void,
}

#[repr(C)]
struct Node {
    next: *mut Node,
    value: *mut c_void,
}

impl PointerSet {
    /// Copies the pointers and frees the set.
    pub(crate) fn take(self) -> Vec<*mut c_void> {
        let (mut values, mut next) = (Vec::with_capacity(self.count), self.first);
        while !next.is_null() {
            // SAFETY: a node of a set that was returned by value, so it is ours.
            let node = unsafe { ptr::read(next) };
            values.push(node.value);
            // SAFETY: it came from malloc, and was read for the last time.
            unsafe { libc::free(next.cast()) };
            next = node.next;
        }
        // A single bucket lies in the set itself.
        if self.bucket_count > 1 {
            // SAFETY: as of the nodes.
            unsafe { libc::free(self.buckets) };
        }
        values
    }
}

/// `std::unordered_map<int, uint64_t>`, of which only a reference is had.
#[repr(C)]
pub(crate) struct IntMap {
    buckets: *const *const IntNode,
    bucket_count: usize,
    first: *const IntNode,
    count: usize,
}

#[repr(C)]
struct IntNode {
    next: *const IntNode,
    key: i32,
    value: u64,
}

/// The value of a key.
///
/// # Safety
///
/// `map` must be a map of these types that does not change meanwhile.
pub(crate) unsafe fn find(map: *const IntMap, key: i32) -> Option<u64> {
    // SAFETY: the caller's promise.
    let mut next = unsafe { (*map).first };
    while !next.is_null() {
        // SAFETY: a node of that map.
        let node = unsafe { &*next };
        if node.key == key {
            return Some(node.value);
        }
        next = node.next;
    }
    None
}

/// `std::span<const T>`.
#[repr(C)]
pub(crate) struct Span<T: Copy> {
    begin: *const T,
    length: usize,
}

impl<T: Copy> Span<T> {
    /// Copies the elements.
    ///
    /// # Safety
    ///
    /// What it spans must live, and not change meanwhile.
    pub(crate) unsafe fn copy(&self) -> Vec<T> {
        if self.length == 0 {
            return Vec::new();
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.begin, self.length) }.to_vec()
    }
}

/// `std::string_view`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct StringView {
    length: usize,
    begin: *const u8,
}

impl StringView {
    /// The bytes of the text.
    ///
    /// # Safety
    ///
    /// What it views must live as long as that is used, and not change meanwhile.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.begin, self.length) }
    }
}

/// `std::string`: where its text is, and how long.
#[repr(C)]
pub(crate) struct CxxString {
    begin: *const u8,
    length: usize,
}

impl CxxString {
    /// Copies the text; nothing if it is no text.
    ///
    /// # Safety
    ///
    /// `string` must be a string that lives, and not change meanwhile.
    pub(crate) unsafe fn copy(string: *const CxxString) -> String {
        // SAFETY: the caller's promise.
        let CxxString { begin, length } = unsafe { ptr::read(string) };
        // SAFETY: the caller's promise.
        let bytes = unsafe { StringView { length, begin }.bytes() };
        std::str::from_utf8(bytes).unwrap_or_default().to_owned()
    }
}

/// `std::set` or `std::map`: the order, a node that stands for the whole, and the number of elements.
#[repr(C)]
pub(crate) struct Tree {
    order_and_whole: [usize; 5],
    count: usize,
}

impl Tree {
    /// The number of elements.
    ///
    /// # Safety
    ///
    /// `tree` must be a set or map that lives.
    pub(crate) unsafe fn count(tree: *const Tree) -> usize {
        // SAFETY: the caller's promise.
        unsafe { (*tree).count }
    }
}
