//! The numbers of errors: bindings and logs rely on them, so none may change.

use std::collections::BTreeSet;
use std::io;
use tt_shm_os::{LimitError, MapError, Namespace};
use tt_shm_writer::{OpenError, RecordError, codes};

const DENIED: i32 = 13;

fn denied() -> io::Error {
    io::Error::from_raw_os_error(DENIED)
}

fn record_errors() -> Vec<(u32, RecordError)> {
    let (what, device, id) = ("buffer", 1, 2);
    vec![
        (1, RecordError::UnmatchedFree { what, device, id }),
        (2, RecordError::DoubleAlloc { what, device, id, live_bytes: 3 }),
        (3, RecordError::SizeMismatch { what, device, id, live_bytes: 3, given_bytes: 4 }),
        (4, RecordError::UnknownDevice { device }),
        (5, RecordError::DeviceListFull),
        (6, RecordError::NoRoom),
        (7, RecordError::NamesFull),
        (8, RecordError::SizeOutOfRange { bytes: 5 }),
        (9, RecordError::UnknownProgram { device, program: 6 }),
        (10, RecordError::LaneOutOfRange { device, lane: 9 }),
        (11, RecordError::ForkedWithoutSegment),
        (12, RecordError::Busy),
    ]
}

/// With the errno.
fn open_errors() -> Vec<(u32, Option<i32>, OpenError)> {
    let setting = OpenError::Setting { name: "N", value: "V".into(), expected: "E".into() };
    let limit = LimitError::FileSize { wanted: 2, limit: 1 };
    vec![
        (32, None, Namespace::new("not/a/name").unwrap_err().into()),
        (33, None, setting),
        (34, None, limit.into()),
        (35, Some(DENIED), OpenError::Create { step: "lock", cause: denied() }),
        (35, None, OpenError::Create { step: "inherit", cause: io::Error::other("full") }),
        (36, Some(DENIED), MapError::System { wanted: 1, cause: denied() }.into()),
        (36, None, MapError::TooShort { wanted: 2, actual: 1 }.into()),
        (37, Some(DENIED), OpenError::NoRoom { bytes: 1, cause: denied() }),
        (38, Some(22), OpenError::OldKernel),
        (39, Some(DENIED), OpenError::Publish { path: "/dev/shm/x".into(), cause: denied() }),
    ]
}

#[test]
fn every_error_has_its_number() {
    for (code, error) in record_errors() {
        assert_eq!(error.code(), code, "{error}");
    }
    for (code, errno, error) in open_errors() {
        assert_eq!((error.code(), error.errno()), (code, errno), "{error}");
    }
}

#[test]
fn every_number_has_a_name_and_no_two_the_same() {
    let named = [
        codes::UNMATCHED_FREE,
        codes::DOUBLE_ALLOC,
        codes::SIZE_MISMATCH,
        codes::UNKNOWN_DEVICE,
        codes::DEVICE_LIST_FULL,
        codes::NO_ROOM,
        codes::NAMES_FULL,
        codes::SIZE_OUT_OF_RANGE,
        codes::UNKNOWN_PROGRAM,
        codes::LANE_OUT_OF_RANGE,
        codes::FORKED_WITHOUT_SEGMENT,
        codes::BUSY,
        codes::OPEN_NAMESPACE,
        codes::OPEN_SETTING,
        codes::OPEN_LIMIT,
        codes::OPEN_CREATE,
        codes::OPEN_MAP,
        codes::OPEN_NO_ROOM,
        codes::OPEN_OLD_KERNEL,
        codes::OPEN_PUBLISH,
    ];
    let set: BTreeSet<u32> = named.into_iter().collect();
    assert_eq!(set.len(), named.len());
    let records = record_errors().into_iter().map(|(code, _)| code);
    let opens = open_errors().into_iter().map(|(code, ..)| code);
    assert_eq!(set, records.chain(opens).collect());
}
