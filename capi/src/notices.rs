//! Notices for the operator: refusals, ends of processes, clocks that step.

use std::ffi::c_char;

use tt_shm_reader::Notice;

use crate::code::call;
use crate::objects::{self, tt_shm_snapshot};
use crate::raw::{Handle, Out, OutStructs, versioned};
use crate::types::{TT_SHM_CLASSES, by_class, fixed};

/// Kinds of notices: it no longer holds, as a file that was refused is read now.
pub const TT_SHM_NOTICE_WITHDRAWN: u32 = 0;
/// A file was refused; `text` says why.
pub const TT_SHM_NOTICE_REFUSED: u32 = 1;
/// A process ended and what it held was reclaimed; `bytes` and `counts` say what.
pub const TT_SHM_NOTICE_RECLAIMED: u32 = 2;
/// A process's events are impossible; `text` says why.
pub const TT_SHM_NOTICE_BROKEN: u32 = 3;
/// A process is alive, or may be, and cannot be read any more; `text` says why.
pub const TT_SHM_NOTICE_UNSEEN: u32 = 4;
/// A clock stepped; `text` says in which direction, and what is not known as a result.
pub const TT_SHM_NOTICE_CLOCK: u32 = 5;
/// A user has usages for which there is no room.
pub const TT_SHM_NOTICE_UNCOUNTED: u32 = 6;

/// A notice.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_notice {
    /// `sizeof(tt_shm_notice)`.
    pub size: u32,
    /// `TT_SHM_NOTICE_...`.
    pub kind: u32,
    /// When it was noticed, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The process; 0 if unknown.
    pub pid: u64,
    /// Owner of the file.
    pub uid: u64,
    /// Bytes that were reclaimed by `TT_SHM_CLASS_...`, all devices together.
    pub bytes: [u64; TT_SHM_CLASSES],
    /// Allocations by `TT_SHM_CLASS_...`.
    pub counts: [u64; TT_SHM_CLASSES],
    /// Name of the file. Not trusted.
    pub file: [c_char; 104],
    /// The reason. Not trusted.
    pub text: [c_char; 168],
}

versioned!(tt_shm_notice);

// The size of the first version, which callers may have been compiled with.
const _: () = assert!(size_of::<tt_shm_notice>() == 560);

/// The notices, newest first.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_snapshot_notices(
    snapshot: Handle<tt_shm_snapshot>,
    notices: OutStructs<tt_shm_notice>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let snapshot = objects::get(snapshot)?;
        notices.fill(capacity, snapshot.notices.iter().map(tt_shm_notice::from))?;
        total.set_if_wanted(snapshot.notices.len())
    })
}

impl From<&Notice> for tt_shm_notice {
    fn from(notice: &Notice) -> tt_shm_notice {
        tt_shm_notice {
            size: size_of::<tt_shm_notice>() as u32,
            kind: notice.kind as u32,
            time_ns: notice.time,
            pid: notice.pid,
            uid: notice.uid,
            bytes: by_class(&notice.bytes),
            counts: by_class(&notice.counts),
            file: fixed(&notice.file),
            text: fixed(&notice.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::notice_kind;

    #[test]
    fn numbers_are_those_of_the_layout() {
        let kinds = [
            (TT_SHM_NOTICE_WITHDRAWN, notice_kind::WITHDRAWN),
            (TT_SHM_NOTICE_REFUSED, notice_kind::REFUSED),
            (TT_SHM_NOTICE_RECLAIMED, notice_kind::RECLAIMED),
            (TT_SHM_NOTICE_BROKEN, notice_kind::BROKEN),
            (TT_SHM_NOTICE_UNSEEN, notice_kind::UNSEEN),
            (TT_SHM_NOTICE_CLOCK, notice_kind::CLOCK),
            (TT_SHM_NOTICE_UNCOUNTED, notice_kind::UNCOUNTED),
        ];
        assert!(kinds.iter().all(|(ours, theirs)| u64::from(*ours) == *theirs));
        assert_eq!(kinds.len(), notice_kind::ALL.len(), "a kind is missing");
    }
}
