//! Allocations that failed: what was requested, who held what then, and what came before.

use std::ffi::c_char;

use tt_shm_reader::{FAILURE_EVENTS, FAILURE_HOLDERS, FailureHolder, FailureRecord, PastEvent};

use crate::code::call;
use crate::composition::TT_SHM_HOLDERS;
use crate::objects::{self, tt_shm_snapshot};
use crate::raw::{Handle, Out, OutStructs, versioned};
use crate::types::{TT_SHM_CLASSES, by_class, fixed};

/// Bits of `tt_shm_failure_record.flags`: all holders are listed, and their bytes are exact.
pub const TT_SHM_FAILURE_HOLDERS_EXACT: u64 = 1 << 0;
/// The events are the last before the failure, of all processes that were followed.
pub const TT_SHM_FAILURE_EVENTS_COMPLETE: u64 = 1 << 1;
/// Free bytes and the largest free block are those of one bank, not of all.
pub const TT_SHM_FAILURE_PER_BANK: u64 = 1 << 2;

/// Events that are kept with a failure.
pub const TT_SHM_FAILURE_EVENTS: usize = 16;

/// A process's bytes on the device when an allocation failed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_failure_holder {
    /// Identity of its segment; 0 in an unused entry.
    pub identity: u64,
    /// Its pid, as it sees it.
    pub pid: u64,
    /// Inode of its PID namespace; 0 if unknown.
    pub pid_namespace: u64,
    /// Bytes by `TT_SHM_CLASS_...`; circular buffers as resident, kernels 0.
    pub classes: [u64; TT_SHM_CLASSES],
    /// Its name. Not trusted.
    pub name: [c_char; 72],
}

/// An event before a failure, on the same device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_past_event {
    /// When, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Identity of the segment.
    pub identity: u64,
    /// Pid of the process, as it sees it.
    pub pid: u64,
    /// `TT_SHM_EVENT_...`.
    pub kind: u32,
    /// `TT_SHM_CLASS_...`.
    pub class_: u32,
    /// Buffer, circular buffer, kernel or program id.
    pub id: u64,
    /// Bytes.
    pub bytes: u64,
}

/// An allocation that failed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_failure_record {
    /// `sizeof(tt_shm_failure_record)`.
    pub size: u32,
    /// `TT_SHM_CLASS_...`.
    pub class_: u32,
    /// `TT_SHM_FAILURE_...` bits.
    pub flags: u64,
    /// When, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The chip.
    pub chip_id: u64,
    /// Identity of the segment of the process that made the request.
    pub identity: u64,
    /// Position of the event in its ring.
    pub position: u64,
    /// Pid of the process, as it sees it.
    pub pid: u64,
    /// Inode of its PID namespace; 0 if unknown.
    pub pid_namespace: u64,
    /// Its owner.
    pub uid: u64,
    /// Bytes requested.
    pub request_bytes: u64,
    /// Bytes free then; `TT_SHM_UNKNOWN` if the process did not know.
    pub free_bytes: u64,
    /// Largest free block then; `TT_SHM_UNKNOWN` if the process did not know.
    pub largest_free_bytes: u64,
    /// Bytes needed in each bank; `TT_SHM_UNKNOWN` if the process did not know.
    pub needed_per_bank_bytes: u64,
    /// Banks; 0 if the process did not know.
    pub banks: u64,
    /// Bytes on the device then by `TT_SHM_CLASS_...`, all holders together.
    pub classes: [u64; TT_SHM_CLASSES],
    /// Bytes of the holders that are not listed.
    pub others: [u64; TT_SHM_CLASSES],
    /// Processes that held memory on the device.
    pub holder_count: u64,
    /// Elements of `events` in use.
    pub event_count: u64,
    /// Name of the process. Not trusted.
    pub name: [c_char; 72],
    /// The largest holders, by what they held of the requested memory.
    pub holders: [tt_shm_failure_holder; TT_SHM_HOLDERS],
    /// The events before it on the device, of all processes, oldest first.
    pub events: [tt_shm_past_event; TT_SHM_FAILURE_EVENTS],
}

versioned!(tt_shm_failure_record);

const _: () = {
    assert!(TT_SHM_HOLDERS == FAILURE_HOLDERS && TT_SHM_FAILURE_EVENTS == FAILURE_EVENTS);
    // The size of the first version, which callers may have been compiled with.
    assert!(size_of::<tt_shm_failure_record>() == 3016);
};

/// The last failed allocations of all devices, newest first.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_failures(
    snapshot: Handle<tt_shm_snapshot>,
    failures: OutStructs<tt_shm_failure_record>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        failures.fill(capacity, snapshot.failures.iter().map(tt_shm_failure_record::from))?;
        total.set_if_wanted(snapshot.failures.len())
    })
}

impl From<&FailureRecord> for tt_shm_failure_record {
    fn from(record: &FailureRecord) -> tt_shm_failure_record {
        tt_shm_failure_record {
            size: size_of::<tt_shm_failure_record>() as u32,
            class_: record.class as u32,
            flags: record.flags,
            time_ns: record.time,
            chip_id: record.chip_id,
            identity: record.identity,
            position: record.position,
            pid: record.pid,
            pid_namespace: record.pid_namespace,
            uid: record.uid,
            request_bytes: record.request_bytes,
            free_bytes: record.free_bytes,
            largest_free_bytes: record.largest_free_bytes,
            needed_per_bank_bytes: record.needed_per_bank_bytes,
            banks: record.banks,
            classes: by_class(&record.classes),
            others: by_class(&record.others),
            holder_count: record.holder_count,
            // A number of an aggregator that may be broken is no reason to read beyond the array.
            event_count: record.event_count.min(FAILURE_EVENTS as u64),
            name: fixed(&record.name),
            holders: record.holders.each_ref().map(holder),
            events: record.events.each_ref().map(event),
        }
    }
}

fn holder(holder: &FailureHolder) -> tt_shm_failure_holder {
    tt_shm_failure_holder {
        identity: holder.identity,
        pid: holder.pid,
        pid_namespace: holder.pid_namespace,
        classes: by_class(&holder.classes),
        name: fixed(&holder.name),
    }
}

fn event(event: &PastEvent) -> tt_shm_past_event {
    tt_shm_past_event {
        time_ns: event.time,
        identity: event.identity,
        pid: event.pid,
        kind: event.kind as u32,
        class_: event.class as u32,
        id: event.id,
        bytes: event.size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::failure_flags;

    #[test]
    fn numbers_are_those_of_the_layout() {
        assert_eq!(
            [TT_SHM_FAILURE_HOLDERS_EXACT, TT_SHM_FAILURE_EVENTS_COMPLETE, TT_SHM_FAILURE_PER_BANK],
            [failure_flags::HOLDERS_EXACT, failure_flags::EVENTS_COMPLETE, failure_flags::PER_BANK]
        );
    }
}
