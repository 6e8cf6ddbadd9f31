//! The numbers of errors, for bindings and logs. A number never changes its meaning, and none is used again; 0 is no error.
//!
//! Those of the writer are below 64, of [`RecordError`](crate::RecordError) below 32. The reader's begin at 64.

/// [`RecordError::UnmatchedFree`](crate::RecordError::UnmatchedFree).
pub const UNMATCHED_FREE: u32 = 1;
/// [`RecordError::DoubleAlloc`](crate::RecordError::DoubleAlloc).
pub const DOUBLE_ALLOC: u32 = 2;
/// [`RecordError::SizeMismatch`](crate::RecordError::SizeMismatch).
pub const SIZE_MISMATCH: u32 = 3;
/// [`RecordError::UnknownDevice`](crate::RecordError::UnknownDevice).
pub const UNKNOWN_DEVICE: u32 = 4;
/// [`RecordError::DeviceListFull`](crate::RecordError::DeviceListFull).
pub const DEVICE_LIST_FULL: u32 = 5;
/// [`RecordError::NoRoom`](crate::RecordError::NoRoom).
pub const NO_ROOM: u32 = 6;
/// [`RecordError::NamesFull`](crate::RecordError::NamesFull).
pub const NAMES_FULL: u32 = 7;
/// [`RecordError::SizeOutOfRange`](crate::RecordError::SizeOutOfRange).
pub const SIZE_OUT_OF_RANGE: u32 = 8;
/// [`RecordError::UnknownProgram`](crate::RecordError::UnknownProgram).
pub const UNKNOWN_PROGRAM: u32 = 9;
/// [`RecordError::LaneOutOfRange`](crate::RecordError::LaneOutOfRange).
pub const LANE_OUT_OF_RANGE: u32 = 10;
/// [`RecordError::ForkedWithoutSegment`](crate::RecordError::ForkedWithoutSegment).
pub const FORKED_WITHOUT_SEGMENT: u32 = 11;
/// [`RecordError::Busy`](crate::RecordError::Busy).
pub const BUSY: u32 = 12;

/// [`OpenError::Namespace`](crate::OpenError::Namespace).
pub const OPEN_NAMESPACE: u32 = 32;
/// [`OpenError::Setting`](crate::OpenError::Setting).
pub const OPEN_SETTING: u32 = 33;
/// [`OpenError::Limit`](crate::OpenError::Limit).
pub const OPEN_LIMIT: u32 = 34;
/// [`OpenError::Create`](crate::OpenError::Create).
pub const OPEN_CREATE: u32 = 35;
/// [`OpenError::Map`](crate::OpenError::Map).
pub const OPEN_MAP: u32 = 36;
/// [`OpenError::NoRoom`](crate::OpenError::NoRoom).
pub const OPEN_NO_ROOM: u32 = 37;
/// [`OpenError::OldKernel`](crate::OpenError::OldKernel).
pub const OPEN_OLD_KERNEL: u32 = 38;
/// [`OpenError::Publish`](crate::OpenError::Publish).
pub const OPEN_PUBLISH: u32 = 39;
