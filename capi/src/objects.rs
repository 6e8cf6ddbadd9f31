//! What is read, by its handle: segments, spans, tables, sources and snapshots.
//!
//! Each has a place in a table. A call takes a share of what is in its place, so that it stays while the call lasts, also if
//! another thread closes it meanwhile. The lock of a place is held for that moment only. It is tried, not waited for without
//! end: a child that was forked in such a moment would wait for a thread that it does not have.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use once_cell::race::OnceBox;
use tt_shm_aggregator::Source;
use tt_shm_reader::{Segment, Table, TableSnapshot};

use crate::code::{Done, Failure, TT_SHM_ERR_IN_USE};
use crate::handle::{self, Kind};
use crate::raw::Handle;
use crate::span::Measured;

/// A process's segment.
pub struct tt_shm_segment {
    _private: (),
}

/// An aggregator's table.
pub struct tt_shm_table {
    _private: (),
}

/// A copy of all rows of a table.
pub struct tt_shm_snapshot {
    _private: (),
}

/// Figures of all processes, from a table or by an aggregation in this process.
pub struct tt_shm_source {
    _private: (),
}

/// A span of time in a process.
pub struct tt_shm_span {
    _private: (),
}

/// What a handle stands for.
#[derive(Clone)]
pub(crate) enum Object {
    Segment(Arc<Segment>),
    Table(Arc<Table>),
    Snapshot(Arc<TableSnapshot>),
    Source(Arc<Mutex<Source>>),
    Span(Arc<Mutex<Measured>>),
}

impl Object {
    fn kind(&self) -> Kind {
        match self {
            Object::Segment(_) => Kind::Segment,
            Object::Table(_) => Kind::Table,
            Object::Snapshot(_) => Kind::Snapshot,
            Object::Source(_) => Kind::Source,
            Object::Span(_) => Kind::Span,
        }
    }
}

/// What there are handles of, by the type that stands for it in C.
pub(crate) trait Held: Sized {
    const KIND: Kind;
    type Share;
    fn share(object: Object) -> Option<Self::Share>;
}

macro_rules! held {
    ($($name:ident: $kind:ident of $share:ty),* $(,)?) => {$(
        impl Held for $name {
            const KIND: Kind = Kind::$kind;
            type Share = $share;
            fn share(object: Object) -> Option<$share> {
                if let Object::$kind(share) = object { Some(share) } else { None }
            }
        }
    )*};
}

held!(
    tt_shm_segment: Segment of Arc<Segment>,
    tt_shm_table: Table of Arc<Table>,
    tt_shm_snapshot: Snapshot of Arc<TableSnapshot>,
    tt_shm_source: Source of Arc<Mutex<Source>>,
    tt_shm_span: Span of Arc<Mutex<Measured>>,
);

/// Places come in chunks, which are made when they are needed.
const CHUNK: usize = 256;
const CHUNKS: usize = 256;
/// How often the lock of a place is tried, with the processor given away in between: it is held for nanoseconds.
const TRIES: usize = 10_000;

/// A handle and what it stands for, or nothing.
type Place = Mutex<Option<(u64, Object)>>;

static PLACES: [OnceBox<[Place; CHUNK]>; CHUNKS] = [const { OnceBox::new() }; CHUNKS];
/// A place that is free, perhaps.
static FREE: AtomicUsize = AtomicUsize::new(0);

fn place(number: usize) -> Option<&'static Place> {
    Some(&PLACES[number / CHUNK % CHUNKS].get()?[number % CHUNK])
}

fn lock(place: &Place) -> Done<MutexGuard<'_, Option<(u64, Object)>>> {
    for _ in 0..TRIES {
        match place.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    Err(Failure::argument(TT_SHM_ERR_IN_USE, "the handle was in use when this process was forked"))
}

/// Gives something a handle.
pub(crate) fn open(object: Object) -> Done<u64> {
    let kind = object.kind();
    let first = FREE.load(Ordering::Relaxed);
    for number in (0..CHUNK * CHUNKS).map(|step| (first + step) % (CHUNK * CHUNKS)) {
        let chunk = &PLACES[number / CHUNK];
        let chunk = chunk.get_or_init(|| Box::new([const { Mutex::new(None) }; CHUNK]));
        if let Ok(mut place) = chunk[number % CHUNK].try_lock()
            && place.is_none()
        {
            FREE.store(number + 1, Ordering::Relaxed);
            let handle = kind.number(number);
            *place = Some((handle, object));
            return Ok(handle);
        }
    }
    Err(kind.too_many(CHUNK * CHUNKS))
}

/// A share of what a handle stands for.
pub(crate) fn get<T: Held>(handle: Handle<T>) -> Done<T::Share> {
    let refused = || T::KIND.refused(handle.number());
    let place = place(handle::place(handle.number())).ok_or_else(refused)?;
    let object = match &*lock(place)? {
        Some((number, object)) if *number == handle.number() => object.clone(),
        _ => return Err(refused()),
    };
    T::share(object).ok_or_else(refused)
}

/// Takes a handle back. What it stood for ends with the last call that uses it.
pub(crate) fn close<T: Held>(handle: Handle<T>) -> Done {
    get(handle)?;
    let number = handle::place(handle.number());
    let refused = || T::KIND.refused(handle.number());
    let mut place = lock(place(number).ok_or_else(refused)?)?;
    let object = place.take_if(|(number, _)| *number == handle.number());
    drop(place);
    FREE.store(number, Ordering::Relaxed);
    // Ends here, without the lock.
    object.map(drop).ok_or_else(refused)
}
