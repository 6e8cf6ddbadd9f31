//! Handles: numbers for what C callers hold.
//!
//! A handle has a mark of its kind, a place in a table and a number that is used once. None of it is an address, so that a
//! closed handle, one of another kind and one that never was are all refused, without touching any memory that may be
//! gone.
//!
//! Trackers are looked up by a load and a comparison, since their calls take tens of nanoseconds. So nothing tells whether
//! a thread is still in a call, and a closed tracker is never freed: its segment is gone, and some kilobytes stay. What is
//! read is in [`crate::objects`], and is freed.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use tt_shm_writer::{Record, Tracker};

use crate::code::{
    Done, Failure, TT_SHM_ERR_HANDLE, TT_SHM_ERR_IN_USE, TT_SHM_ERR_NULL, TT_SHM_ERR_TOO_MANY,
    TT_SHM_ERR_VALUE,
};
use crate::exclusive::Exclusive;
use crate::raw::Handle;

/// A tracker.
pub struct tt_shm_tracker {
    _private: (),
}

/// Places are the low bits of a handle.
const PLACE_BITS: u32 = 16;
/// The mark of a kind is in the high bits.
const MARK_BITS: u32 = 8;

/// The kinds of handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Tracker = 0x74,
    Segment = 0x73,
    Table = 0x62,
    Snapshot = 0x6e,
    Source = 0x72,
    Span = 0x70,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Tracker => "tracker",
            Kind::Segment => "segment",
            Kind::Table => "table",
            Kind::Snapshot => "snapshot",
            Kind::Source => "source",
            Kind::Span => "span",
        }
    }

    /// A handle that was not given out before.
    pub(crate) fn number(self, place: usize) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed) << PLACE_BITS << MARK_BITS >> MARK_BITS;
        // The lowest bit of the mark's neighbour is free for NO_WAIT.
        u64::from(self as u8) << (64 - MARK_BITS) | serial & !NO_WAIT | place as u64
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn refused(self, number: u64) -> Failure {
        let name = self.name();
        if number == 0 {
            return Failure::new(TT_SHM_ERR_NULL, None, format_args!("the {name} is null"));
        }
        let text = format_args!("{number:#x} is not an open {name}: it was closed, or never was one");
        Failure::new(TT_SHM_ERR_HANDLE, None, text)
    }

    #[cold]
    pub(crate) fn too_many(self, most: usize) -> Failure {
        let text = format_args!("{most} handles of the kind {} are open", self.name());
        Failure::new(TT_SHM_ERR_TOO_MANY, None, text)
    }
}

/// The place that a handle names.
pub(crate) fn place(number: u64) -> usize {
    number as usize % (1 << PLACE_BITS)
}

/// The bit of a tracker's handle whose calls do not wait.
const NO_WAIT: u64 = 1 << (63 - MARK_BITS);
/// Trackers that may be open at a time; a process has one.
const TRACKERS: usize = 1024;

/// Whether a number in the table is that of an open tracker. That of a closed one is turned over, and thereby names another
/// place: whatever a caller passes as a handle, it is not found there, and looking one up is a single comparison.
fn is_open(number: u64) -> bool {
    number >> (64 - MARK_BITS) == u64::from(Kind::Tracker as u8)
}

/// A tracker, by who may use it.
pub(crate) enum Writer {
    Shared(Tracker),
    Exclusive(Exclusive),
}

impl Writer {
    /// Ends its reports. An exclusive one refuses that to other threads.
    fn close(&self) -> Done {
        match self {
            Writer::Shared(tracker) => tracker.close(),
            Writer::Exclusive(exclusive) => exclusive.get()?.close(),
        }
        Ok(())
    }
}

/// An open tracker. Never freed.
pub(crate) struct Opened {
    /// Its handle, turned over when it was closed: see [`is_open`].
    number: AtomicU64,
    pub(crate) writer: Writer,
    /// Whether its calls record anything, until it is closed.
    pub(crate) is_enabled: bool,
    /// Whether it reports what no tap sees.
    pub(crate) is_beside_tap: bool,
    /// The closed one that had its place: so that tools which look for leaks find it.
    before: AtomicPtr<Opened>,
}

impl Opened {
    /// Whether it has this handle.
    pub(crate) fn has_number(&self, number: u64) -> bool {
        self.number.load(Ordering::Acquire) == number
    }

    /// Its handle is refused from now on. At most one of several threads turns the number over.
    fn forget(&self) {
        let number = self.number.load(Ordering::Acquire);
        if is_open(number) {
            let _ = self.number.compare_exchange(number, !number, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Ends its reports. From now on its handle is refused.
    pub(crate) fn close(&self) -> Done {
        if let Writer::Exclusive(exclusive) = &self.writer {
            exclusive.get()?;
        }
        self.forget();
        self.writer.close()
    }

    /// The tracker, if any thread may use it.
    pub(crate) fn shared(&self) -> Option<&Tracker> {
        match &self.writer {
            Writer::Shared(tracker) => Some(tracker),
            Writer::Exclusive(_) => None,
        }
    }
}

static OPENED: [AtomicPtr<Opened>; TRACKERS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; TRACKERS];

/// What is in a place of the table.
#[inline(always)]
fn at(place: usize) -> Option<&'static Opened> {
    // Acquire: pairs with the Release in `open`.
    let opened = OPENED[place % TRACKERS].load(Ordering::Acquire);
    // SAFETY: null, or from a leaked box, which is never freed.
    unsafe { opened.as_ref() }
}

/// Gives a tracker a handle.
pub(crate) fn open(tracker: Tracker, is_beside_tap: bool) -> Done<u64> {
    let is_enabled = tracker.is_enabled();
    put(Writer::Shared(tracker), is_enabled, is_beside_tap)
}

/// Gives a tracker that belongs to this thread a handle. It must have no clones.
pub(crate) fn open_exclusive(tracker: Tracker, is_beside_tap: bool) -> Done<u64> {
    let is_enabled = tracker.is_enabled();
    let shared = |_| Failure::argument(TT_SHM_ERR_IN_USE, "the tracker is in use elsewhere");
    let exclusive = Exclusive::new(tracker.into_exclusive().map_err(shared)?);
    put(Writer::Exclusive(exclusive), is_enabled, is_beside_tap)
}

fn put(writer: Writer, is_enabled: bool, is_beside_tap: bool) -> Done<u64> {
    let (number, before) = (AtomicU64::new(0), AtomicPtr::new(std::ptr::null_mut()));
    let new = Opened { number, writer, is_enabled, is_beside_tap, before };
    let new: &'static Opened = Box::leak(Box::new(new));
    for (place, free) in OPENED.iter().enumerate() {
        if at(place).is_some_and(|opened| is_open(opened.number.load(Ordering::Acquire))) {
            continue;
        }
        let number = Kind::Tracker.number(place);
        let before = free.load(Ordering::Acquire);
        new.number.store(number, Ordering::Relaxed);
        new.before.store(before, Ordering::Relaxed);
        let pointer = std::ptr::from_ref(new).cast_mut();
        // Release: pairs with the Acquire in `at`. If it fails, another thread took the place.
        if free.compare_exchange(before, pointer, Ordering::Release, Ordering::Relaxed).is_ok() {
            return Ok(number);
        }
    }
    new.writer.close()?;
    Err(Kind::Tracker.too_many(TRACKERS))
}

/// An open tracker by its handle, and whether its calls wait.
pub(crate) fn tracker(handle: Handle<tt_shm_tracker>) -> Done<(&'static Opened, bool)> {
    let number = handle.number();
    match at(place(number)) {
        // Relaxed: an open tracker is as it was when its handle was given out, whichever way that came here.
        Some(opened) if opened.number.load(Ordering::Relaxed) == number & !NO_WAIT => {
            Ok((opened, number & NO_WAIT == 0))
        }
        _ => Err(Kind::Tracker.refused(number)),
    }
}

/// The same for a handle whose calls wait; `None` for any other.
#[inline(always)]
pub(crate) fn waiting(handle: Handle<tt_shm_tracker>) -> Option<&'static Opened> {
    let number = handle.number();
    // Relaxed: as above.
    at(place(number)).filter(|opened| opened.number.load(Ordering::Relaxed) == number)
}

/// The tracker of a handle whose calls do not wait. An error for any other that is not [`waiting`].
#[cold]
#[inline(never)]
pub(crate) fn not_waiting(handle: Handle<tt_shm_tracker>) -> Done<&'static Tracker> {
    let exclusive = || Failure::argument(TT_SHM_ERR_VALUE, "an exclusive tracker has nothing to wait for");
    tracker(handle)?.0.shared().ok_or_else(exclusive)
}

/// Takes a handle back without ending the reports of its tracker, which has another one.
pub(crate) fn forget(number: u64) {
    if let Some(opened) = trackers().find(|opened| opened.has_number(number)) {
        opened.forget();
    }
}

/// All open trackers.
pub(crate) fn trackers() -> impl Iterator<Item = &'static Opened> {
    (0..TRACKERS).filter_map(at).filter(|opened| is_open(opened.number.load(Ordering::Acquire)))
}

/// The handle of the same tracker whose calls do not wait.
pub(crate) fn without_waiting(number: u64) -> u64 {
    number | NO_WAIT
}

/// A handle as C sees it.
pub(crate) fn pointer<T>(number: u64) -> *mut T {
    std::ptr::without_provenance_mut(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_once_and_says_its_kind_and_place() {
        let (one, two) = (Kind::Tracker.number(5), Kind::Tracker.number(5));
        assert!(one != two && one & 0xffff == 5 && two >> 56 == 0x74);
        assert_eq!((one & NO_WAIT, two & NO_WAIT), (0, 0));
    }

    #[test]
    fn no_number_finds_a_closed_tracker() {
        let number = open(Tracker::disabled(), false).unwrap();
        let opened = at(place(number)).unwrap();
        opened.close().unwrap();
        opened.close().unwrap();
        let left = opened.number.load(Ordering::Relaxed);
        assert!(!is_open(left) && place(left) % TRACKERS != place(number) % TRACKERS);
    }

    #[test]
    fn places_of_closed_trackers_are_used_again_by_other_handles() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..TRACKERS + 10 {
            let number = open(Tracker::disabled(), false).unwrap();
            assert!(seen.insert(number));
            at(number as usize % TRACKERS).unwrap().close().unwrap();
        }
    }
}
