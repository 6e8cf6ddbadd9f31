//! Errors, with the operands that tell where.

use crate::codes;
use rustix::io::Errno;
use shm_layout::{LANES, MAX_BYTES, MAX_KERNEL_BYTES};
use std::io;
use std::path::PathBuf;
use tt_shm_os::{LimitError, MapError, NameError, SHM_DIR};

/// Why tracking could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The namespace is not valid.
    #[error(transparent)]
    Namespace(#[from] NameError),
    /// A setting is out of range.
    #[error("{name}={value}: {expected}")]
    Setting {
        /// The environment variable or builder method.
        name: &'static str,
        /// The value given.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// The process may not create files of the required size.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The segment's file could not be created.
    #[error("cannot create a segment in {SHM_DIR} ({step}): {cause}")]
    Create {
        /// The step that failed.
        step: &'static str,
        /// The error of the system call.
        cause: io::Error,
    },
    /// The segment's file could not be mapped.
    #[error("cannot map a segment of {SHM_DIR}: {0}")]
    Map(#[from] MapError),
    /// There is no room in /dev/shm.
    #[error(
        "no room in {SHM_DIR} for {bytes} bytes of a new segment ({cause}): free some (`tt-smi clean`), enlarge it (`mount -o remount,size=...`, in a container `--shm-size`), or lower TT_SHM_RING_SLOTS"
    )]
    NoRoom {
        /// The bytes that were to be populated.
        bytes: usize,
        /// The error of the system call.
        cause: io::Error,
    },
    /// The kernel is too old to populate pages in advance.
    #[error(
        "this kernel cannot populate shared memory in advance (MADV_POPULATE_WRITE): Linux 5.14 or newer is needed"
    )]
    OldKernel,
    /// The segment could not be linked under its name.
    #[error("cannot publish {path}: {cause}")]
    Publish {
        /// The name.
        path: PathBuf,
        /// The error of the system call.
        cause: io::Error,
    },
}

impl OpenError {
    /// Its number, one of [`codes`].
    pub fn code(&self) -> u32 {
        match self {
            OpenError::Namespace(_) => codes::OPEN_NAMESPACE,
            OpenError::Setting { .. } => codes::OPEN_SETTING,
            OpenError::Limit(_) => codes::OPEN_LIMIT,
            OpenError::Create { .. } => codes::OPEN_CREATE,
            OpenError::Map(_) => codes::OPEN_MAP,
            OpenError::NoRoom { .. } => codes::OPEN_NO_ROOM,
            OpenError::OldKernel => codes::OPEN_OLD_KERNEL,
            OpenError::Publish { .. } => codes::OPEN_PUBLISH,
        }
    }

    /// The `errno` of the system call that failed; `None` if none did.
    pub fn errno(&self) -> Option<i32> {
        match self {
            OpenError::Create { cause, .. }
            | OpenError::NoRoom { cause, .. }
            | OpenError::Publish { cause, .. }
            | OpenError::Map(MapError::System { cause, .. }) => cause.raw_os_error(),
            // What the kernel answers to an advice that it does not know.
            OpenError::OldKernel => Some(Errno::INVAL.raw_os_error()),
            OpenError::Namespace(_)
            | OpenError::Setting { .. }
            | OpenError::Limit(_)
            | OpenError::Map(MapError::TooShort { .. }) => None,
        }
    }
}

/// Why a call was not recorded as given. Every error is also counted in the segment, except
/// [`Busy`](RecordError::Busy) and [`ForkedWithoutSegment`](RecordError::ForkedWithoutSegment), which do not reach it. None
/// makes a total wrong, and none is a reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A free or name of something that is not live. Nothing changed.
    #[error("{what} {id:#x} on device {device} cannot be freed or named: it is not live")]
    UnmatchedFree {
        /// Buffer, circular buffer or kernel.
        what: &'static str,
        /// The index of the device.
        device: u8,
        /// Its id.
        id: u64,
    },
    /// An allocation of something that is live. Nothing changed.
    #[error("{what} {id:#x} on device {device} is already live, with {live_bytes} bytes")]
    DoubleAlloc {
        /// Buffer, circular buffer.
        what: &'static str,
        /// The index of the device.
        device: u8,
        /// Its id.
        id: u64,
        /// The bytes of the live one.
        live_bytes: u64,
    },
    /// A free with a different size than was requested. The allocation is freed.
    #[error("{what} {id:#x} on device {device} has {live_bytes} bytes, not {given_bytes}")]
    SizeMismatch {
        /// Buffer, circular buffer or kernel.
        what: &'static str,
        /// The index of the device.
        device: u8,
        /// Its id.
        id: u64,
        /// The bytes requested.
        live_bytes: u64,
        /// The bytes given.
        given_bytes: u64,
    },
    /// The device is not registered with this tracker.
    #[error("device {device} is not registered")]
    UnknownDevice {
        /// The index of the device.
        device: u8,
    },
    /// More devices than a segment lists.
    #[error("a segment lists at most {} devices", shm_layout::MAX_DEVICES)]
    DeviceListFull,
    /// There is no room in /dev/shm for the counters of another device.
    #[error(
        "no room in {SHM_DIR} for the counters of another device: free some (`tt-smi clean`) or enlarge it (`mount -o remount,size=...`, in a container `--shm-size`)"
    )]
    NoRoom,
    /// More names, or more bytes of names, than a segment holds.
    #[error("no room for another name")]
    NamesFull,
    /// A size that no device can hold.
    #[error(
        "{bytes} bytes are too many: a class of one device holds at most {MAX_BYTES}, the kernels of a program {MAX_KERNEL_BYTES}"
    )]
    SizeOutOfRange {
        /// The bytes requested.
        bytes: u64,
    },
    /// A dispatch of a program that has neither kernels nor circular buffers.
    #[error("program {program:#x} has nothing loaded on device {device}")]
    UnknownProgram {
        /// The index of the device.
        device: u8,
        /// Its id.
        program: u64,
    },
    /// The lane is out of range. Nothing changed.
    #[error("lane {lane} of device {device}: a device has lanes 0 to {}", LANES - 1)]
    LaneOutOfRange {
        /// The index of the device.
        device: u8,
        /// The lane.
        lane: u8,
    },
    /// This process was forked and could not create a segment of its own.
    #[error("this forked process could not create a segment of its own; its calls are not recorded")]
    ForkedWithoutSegment,
    /// The call would have had to wait: another thread is in a call, or the one that this signal handler interrupted, or
    /// this is a forked child that has not made a segment of its own yet. Nothing changed. Only
    /// [`WithoutWaiting`](crate::WithoutWaiting) returns it.
    #[error("the tracker is in use, and this call does not wait for it; it is not recorded")]
    Busy,
}

impl RecordError {
    /// Its number, one of [`codes`].
    pub fn code(&self) -> u32 {
        match self {
            RecordError::UnmatchedFree { .. } => codes::UNMATCHED_FREE,
            RecordError::DoubleAlloc { .. } => codes::DOUBLE_ALLOC,
            RecordError::SizeMismatch { .. } => codes::SIZE_MISMATCH,
            RecordError::UnknownDevice { .. } => codes::UNKNOWN_DEVICE,
            RecordError::DeviceListFull => codes::DEVICE_LIST_FULL,
            RecordError::NoRoom => codes::NO_ROOM,
            RecordError::NamesFull => codes::NAMES_FULL,
            RecordError::SizeOutOfRange { .. } => codes::SIZE_OUT_OF_RANGE,
            RecordError::UnknownProgram { .. } => codes::UNKNOWN_PROGRAM,
            RecordError::LaneOutOfRange { .. } => codes::LANE_OUT_OF_RANGE,
            RecordError::ForkedWithoutSegment => codes::FORKED_WITHOUT_SEGMENT,
            RecordError::Busy => codes::BUSY,
        }
    }
}

/// Where a batch stopped: `done` items were recorded, the next one was refused, and those after it were not tried.
///
/// To go on without the refused one, call again with `&items[error.done + 1..]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("item {done} of a batch was refused: {error}")]
pub struct BatchError {
    /// How many were recorded; also the place of the refused one.
    pub done: usize,
    /// Why it was refused.
    pub error: RecordError,
}
