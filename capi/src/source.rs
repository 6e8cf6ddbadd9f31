//! Reading all processes, whether or not an aggregator runs.

use std::sync::{Arc, Mutex, TryLockError};

use tt_shm_aggregator::{Origin, Reading, Source};

use crate::code::{Done, Failure, TT_SHM_ERR_IN_USE, call};
use crate::handle;
use crate::objects::{self, Object, tt_shm_snapshot, tt_shm_source};
use crate::raw::{Handle, Out, OutStruct, Text, versioned};
use crate::segment::namespace;
use crate::table::give;

/// Where a snapshot comes from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_origin {
    /// `sizeof(tt_shm_origin)`.
    pub size: u32,
    /// 1 if this process has aggregated it, 0 if it is an aggregator's table.
    pub embedded: u32,
    /// The process id of the aggregator, as it sees it; 0 if this process has aggregated it.
    pub pid: u64,
    /// How old the figures are.
    pub age_ns: u64,
    /// 1 if rates are known, which takes a second of aggregation.
    pub rates_known: u32,
    /// 1 if every segment is read, as only root's aggregator may.
    pub sees_all: u32,
}

versioned!(tt_shm_origin);

// The size of the first version, which callers may have been compiled with.
const _: () = assert!(size_of::<tt_shm_origin>() == 32);

/// Opens a source of figures of a namespace (null: that of the environment): the table of a running aggregator, or else an
/// aggregation in this process, which takes some milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_source_open(name_space: Text, source: Out<*mut tt_shm_source>) -> i32 {
    call(|| {
        source.check()?;
        let opened = Source::open(&namespace(name_space)?)?;
        source.set(handle::pointer(objects::open(Object::Source(Arc::new(Mutex::new(opened))))?))
    })
}

/// Closes a source.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_source_close(source: Handle<tt_shm_source>) -> i32 {
    call(|| objects::close(source))
}

pub(crate) fn with<T>(source: Handle<tt_shm_source>, work: impl FnOnce(&mut Source) -> Done<T>) -> Done<T> {
    let source = objects::get(source)?;
    match source.try_lock() {
        Ok(mut source) => work(&mut source),
        // Nothing in it depends on a call that a panic ended.
        Err(TryLockError::Poisoned(poisoned)) => work(&mut poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::argument(TT_SHM_ERR_IN_USE, "another thread is using the source"))
        }
    }
}

/// Copies all rows as they are now. Changes between a table and an aggregation in this process when an aggregator starts, ends or
/// is replaced; `origin` (may be null) says which it was. Close the copy. A source is for one thread at a time.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_source_read(
    source: Handle<tt_shm_source>,
    snapshot: Out<*mut tt_shm_snapshot>,
    origin: OutStruct<tt_shm_origin>,
) -> i32 {
    call(|| {
        snapshot.check()?;
        let (reading, sees_all) = with(source, |source| Ok((source.read()?, source.sees_all())))?;
        let Reading { snapshot: rows, origin: found, rates_known, .. } = reading;
        let (embedded, pid, age_ns) = match found {
            Origin::Table { pid, age_ns } => (0, pid, age_ns),
            Origin::Embedded => (1, 0, 0),
        };
        let size = size_of::<tt_shm_origin>() as u32;
        let (rates_known, sees_all) = (u32::from(rates_known), u32::from(sees_all));
        origin.set_if_wanted(&tt_shm_origin { size, embedded, pid, age_ns, rates_known, sees_all })?;
        give(rows, snapshot)
    })
}

/// Keeps an aggregation in this process going: who reads more than once calls this in between, so that no ring wraps around
/// unseen and peaks stay exact. `wait_ns` (may be null) is how long may pass until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_source_poll(source: Handle<tt_shm_source>, wait_ns: Out<u64>) -> i32 {
    call(|| {
        let wait = with(source, |source| {
            source.poll();
            Ok(source.poll_interval())
        })?;
        wait_ns.set_if_wanted(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
    })
}
