//! The books: one for each allocator of tt-metal, through which everything that it does is reported.
//!
//! Nothing here waits for a lock that a fork could leave taken: books are only ever added, and a forked child begins with
//! none, since the devices are its parent's.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use tt_shm_writer::{BufferType, Record};

use crate::accounts::{Accounts, Look};
use crate::calls::{Calls, Place};
use crate::metal::{Allocator, Buffer, Device};
use crate::settings;
use crate::shield::{self, shielded};
use crate::{doing, programs, segment};

/// What is known of an allocator.
struct Book {
    allocator: *mut c_void,
    /// The process that it belongs to.
    generation: u32,
    phase: AtomicU32,
    /// Set before the phase becomes OPEN.
    accounts: AtomicPtr<Accounts>,
    calls: Calls,
    next: *const Book,
}

/// Nothing was allocated yet, so its device is not known.
const NEW: u32 = 0;
/// It was there before this library: what it holds is not known yet.
const MET: u32 = 1;
/// Somebody is finding out what it holds.
const OPENING: u32 = 2;
/// Everything that it does is reported.
const OPEN: u32 = 3;
/// The same, and it was there before this library: not everything that it did before may be known yet.
const SETTLING: u32 = 6;
/// It cannot be reported: no room, or tt-metal does not tell what is needed.
const UNOBSERVED: u32 = 4;
/// It is gone. Another may be made at its address.
const GONE: u32 = 5;

static BOOKS: AtomicPtr<Book> = AtomicPtr::new(ptr::null_mut());

fn find(allocator: Allocator) -> Option<&'static Book> {
    let generation = shield::generation();
    // Acquire: pairs with the AcqRel in `add`; a book is whole before it is in the list.
    let mut next = BOOKS.load(Ordering::Acquire).cast_const();
    // SAFETY: books are never freed.
    while let Some(book) = unsafe { next.as_ref() } {
        let is_it = book.allocator == allocator.0 && book.generation == generation;
        if is_it && book.phase.load(Ordering::Acquire) != GONE {
            return Some(book);
        }
        next = book.next;
    }
    None
}

/// Adds a book, unless somebody else did.
fn add(allocator: Allocator, phase: u32) -> &'static Book {
    let book = Box::leak(Box::new(Book {
        allocator: allocator.0,
        generation: shield::generation(),
        phase: AtomicU32::new(phase),
        accounts: AtomicPtr::new(ptr::null_mut()),
        calls: Calls::new(),
        next: ptr::null(),
    }));
    loop {
        let first = BOOKS.load(Ordering::Acquire);
        if let Some(there) = find(allocator) {
            return there;
        }
        book.next = first;
        // Release: pairs with the Acquire in `find`.
        if BOOKS.compare_exchange(first, book, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return book;
        }
    }
}

impl Book {
    fn allocator(&self) -> Allocator {
        Allocator(self.allocator)
    }

    /// Finds out what it holds and on which chips, once; the others wait. `device` is its device.
    fn open(&self, device: impl Fn() -> Option<Device>) -> Option<&Accounts> {
        loop {
            let phase = self.phase.load(Ordering::Acquire);
            match phase {
                // SAFETY: set before the phase, never changed or freed after it.
                OPEN | SETTLING => return unsafe { self.accounts.load(Ordering::Acquire).as_ref() },
                NEW | MET => {
                    let won =
                        self.phase.compare_exchange(phase, OPENING, Ordering::AcqRel, Ordering::Relaxed);
                    if won.is_ok() {
                        self.set_up(device(), phase == MET);
                    }
                }
                // Sleeping, since the calls that opening may wait for need the processor, too.
                OPENING => std::thread::sleep(Duration::from_micros(50)),
                _ => return None,
            }
        }
    }

    fn set_up(&self, device: Option<Device>, holds_something: bool) {
        let open = || {
            if holds_something {
                shield::wait_for_earlier_calls();
            }
            Accounts::open(self.allocator(), device?, holds_something)
        };
        let accounts = shielded(open).flatten();
        let phase = match &accounts {
            Some(accounts) if accounts.is_late() => SETTLING,
            Some(_) => OPEN,
            None => UNOBSERVED,
        };
        match accounts {
            Some(accounts) => self.accounts.store(Box::into_raw(Box::new(accounts)), Ordering::Release),
            None => _ = shielded(segment::partial),
        }
        // Release: pairs with the Acquire in `open`.
        self.phase.store(phase, Ordering::Release);
    }

    fn is_settling(&self) -> bool {
        self.phase.load(Ordering::Acquire) == SETTLING
    }

    /// The accounts, if there are any yet.
    fn accounts(&self) -> Option<&'static Accounts> {
        // SAFETY: set before the phase, never changed or freed after it.
        let accounts = || unsafe { self.accounts.load(Ordering::Acquire).as_ref() };
        if matches!(self.phase.load(Ordering::Acquire), OPEN | SETTLING) { accounts() } else { None }
    }
}

/// A call of an allocator that is being forwarded.
pub(crate) struct Call {
    book: Option<&'static Book>,
    /// Where this thread counts its calls; nowhere, if there is no room.
    place: Option<&'static Place>,
    /// Whether a comparison with the allocator is due at its end, and of which kind of memory.
    is_due: bool,
    kind: Option<BufferType>,
}

impl Call {
    #[inline]
    fn begin(book: &'static Book) -> Call {
        let place = book.calls.begin();
        let is_due = place.is_some_and(|place| place.is_due(settings::check_mask()));
        Call { book: Some(book), place, is_due, kind: None }
    }

    fn unobserved() -> Call {
        Call { book: None, place: None, is_due: false, kind: None }
    }

    fn accounts(&self) -> Option<&'static Accounts> {
        self.book?.accounts()
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        let (Some(book), Some(place)) = (self.book, self.place) else { return };
        if let Some(kind) = self.kind.filter(|_| self.is_due) {
            shielded(|| verify(book, place, kind));
        }
        place.end();
    }
}

/// Compares what was reported with what the allocator says.
#[cold]
fn verify(book: &Book, place: &Place, kind: BufferType) {
    let Some(accounts) = book.accounts() else { return };
    if book.is_settling() {
        return settle(book, accounts, place, kind);
    }
    if let Some(agrees) = book.calls.alone(place, || accounts.agrees(book.allocator(), kind)) {
        let _ = accounts.tracker().self_checks(1, u64::from(!agrees));
    }
}

/// Looks for what was missed because this library came late: at comparisons that find a difference, and at every call once
/// it is time to be done with it.
fn settle(book: &Book, accounts: &Accounts, place: &Place, kind: BufferType) {
    let allocator = book.allocator();
    let count = |different: bool| _ = accounts.tracker().self_checks(1, u64::from(different));
    let may_settle = accounts.may_settle();
    if !may_settle && accounts.is_late() {
        if !place.is_due(settings::check_mask()) {
            return;
        }
        match book.calls.alone(place, || accounts.agrees(allocator, kind)) {
            Some(true) => return count(false),
            Some(false) => (),
            None => return,
        }
    }
    let look = || accounts.reconcile(allocator, &book.calls, place);
    // A call that is being missed right now may be in the sums, and not have been in the list yet.
    match look().map(|first| if first == Look::Different { look().unwrap_or(Look::Early) } else { first }) {
        Some(Look::Early) => return,
        Some(look) => {
            count(look == Look::Different);
            accounts.settled();
        }
        // Ended otherwise, as when everything was freed at once; else somebody was in the middle of a call.
        None if accounts.is_late() => return,
        None => (),
    }
    // Unless it is gone meanwhile. Relaxed: the accounts are what they were.
    let _ = book.phase.compare_exchange(SETTLING, OPEN, Ordering::Relaxed, Ordering::Relaxed);
}

/// An allocation on its way: failed, unless it is said to have succeeded.
pub(crate) struct Allocation {
    call: Call,
    buffer: Buffer,
    is_pending: bool,
}

/// A buffer is about to be allocated.
pub(crate) fn allocation(allocator: Allocator, buffer: Buffer) -> Allocation {
    let call = observe(allocator, buffer);
    Allocation { is_pending: call.book.is_some(), call, buffer }
}

/// A call with a buffer begins.
#[inline]
fn observe(allocator: Allocator, buffer: Buffer) -> Call {
    // As nearly always: nothing here can fail, so nothing has to be shielded.
    match find(allocator).filter(|book| shield::is_on() && book.phase.load(Ordering::Acquire) == OPEN) {
        Some(book) => Call::begin(book),
        None => meet(allocator, buffer),
    }
}

/// A call of an allocator that is not reported yet.
#[cold]
fn meet(allocator: Allocator, buffer: Buffer) -> Call {
    let book = shielded(|| {
        shield::prepare();
        let book = find(allocator).unwrap_or_else(|| add(allocator, MET));
        book.open(|| buffer.device()).map(|_| book)
    });
    let mut call = book.flatten().map_or_else(Call::unobserved, Call::begin);
    call.is_due |= call.book.is_some_and(Book::is_settling);
    call
}

impl Allocation {
    /// It was allocated at this address.
    #[inline]
    pub(crate) fn succeeded(mut self, address: u64) {
        self.is_pending = false;
        let Some(accounts) = self.call.accounts() else { return };
        let buffer = self.buffer;
        self.call.kind = shielded(|| {
            let (kind, id) = accounts.allocated(buffer, Some(address))?;
            doing::allocated(accounts, id);
            Some(kind)
        })
        .flatten();
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if !self.is_pending {
            return;
        }
        let (Some(book), Some(accounts)) = (self.call.book, self.call.accounts()) else { return };
        shielded(|| accounts.failed(book.allocator(), self.buffer));
    }
}

/// A buffer is about to be freed.
pub(crate) fn free(allocator: Allocator, buffer: Buffer) -> Call {
    let mut call = observe(allocator, buffer);
    if let Some(accounts) = call.accounts() {
        let is_due = call.is_due;
        call.kind = shielded(|| {
            accounts.freed(buffer);
            if is_due { buffer.kind() } else { None }
        })
        .flatten();
    }
    call
}

/// Everything that an allocator holds is about to be dropped, as when a device is closed.
pub(crate) fn free_all(allocator: Allocator) -> Call {
    let Some(book) = shielded(|| find(allocator)).flatten() else { return Call::unobserved() };
    let call = Call::begin(book);
    if let Some(accounts) = call.accounts() {
        shielded(|| accounts.freed_all(allocator));
    }
    call
}

/// An allocator was made.
pub(crate) fn born(allocator: Allocator) {
    shielded(|| {
        shield::prepare();
        if let Some(before) = find(allocator) {
            before.phase.store(GONE, Ordering::Release);
        }
        add(allocator, NEW);
    });
}

/// A mesh was opened: its chips are shown from now on, though nothing is allocated yet.
pub(crate) fn opened(mesh: Device) {
    shielded(|| {
        // Only an allocator that was seen to be made.
        if let Some(book) = mesh.allocator().and_then(find) {
            book.open(|| Some(mesh));
        }
    });
}

/// The accounts of a device or mesh.
pub(crate) fn accounts_of(device: Device) -> Option<&'static Accounts> {
    let generation = shield::generation();
    let mut next = BOOKS.load(Ordering::Acquire).cast_const();
    // SAFETY: books are never freed.
    while let Some(book) = unsafe { next.as_ref() } {
        let accounts = book.accounts().filter(|accounts| accounts.device() == device);
        if accounts.is_some() && book.generation == generation {
            return accounts;
        }
        next = book.next;
    }
    None
}

/// An allocator is about to be destroyed.
pub(crate) fn dies(allocator: Allocator) {
    shielded(|| {
        let Some(book) = find(allocator) else { return };
        if let Some(accounts) = book.accounts() {
            programs::closed(accounts);
            accounts.freed_all(allocator);
            accounts.close();
        }
        book.phase.store(GONE, Ordering::Release);
    });
}
