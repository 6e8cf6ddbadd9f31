//! The numbers of errors, which callers in other languages keep.

use std::fs::set_permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::io::Errno;

use crate::common::segment::{Writer, header, path_in};
use crate::common::{namespace, new_file};
use shm_layout::{MAJOR, SEGMENT_MAGIC, store_pod};
use tt_shm_os::WriteMap;
use tt_shm_reader::{FileError, OpenError, ReadError, Segment, SegmentHeader, Table, TableError, codes};

fn numbers(path: &Path) -> (u32, Option<i32>) {
    let error = Segment::open(path).expect_err("must be refused");
    (error.code(), error.errno())
}

fn with_header(header: SegmentHeader) -> (u32, Option<i32>) {
    let path = path_in(&namespace());
    let (file, _removed) = new_file(&path, header.total_len, 0o600);
    store_pod(WriteMap::new(&file, header.total_len as usize).unwrap().words(), &header);
    numbers(&path)
}

#[test]
fn they_are_those_that_were_given_out() {
    let all = [
        codes::MISSING,
        codes::NOT_PERMITTED,
        codes::REFUSED,
        codes::LAYOUT,
        codes::BUSY,
        codes::BROKEN,
        codes::SYSTEM,
    ];
    assert_eq!(all, [64, 65, 66, 67, 68, 69, 70]);
}

#[test]
fn a_file_that_cannot_be_opened_has_an_error_number() {
    assert_eq!(numbers(&path_in(&namespace())), (codes::MISSING, Some(Errno::NOENT.raw_os_error())));
    let refused = |errno: Errno| FileError::Open { path: path_in(&namespace()), cause: errno.into() };
    let error = OpenError::from(refused(Errno::ACCESS));
    assert_eq!((error.code(), error.errno()), (codes::NOT_PERMITTED, Some(Errno::ACCESS.raw_os_error())));
    let error = TableError::from(refused(Errno::MFILE));
    assert_eq!((error.code(), error.errno()), (codes::SYSTEM, Some(Errno::MFILE.raw_os_error())));
}

#[test]
fn what_is_no_segment_is_refused_and_what_is_of_another_version_has_another_layout() {
    let writer = Writer::new(1);
    set_permissions(writer.path(), PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(numbers(writer.path()), (codes::REFUSED, None));
    assert_eq!(with_header(SegmentHeader { magic: 1, ..header() }), (codes::REFUSED, None));
    assert_eq!(with_header(SegmentHeader { identity: 5, ..header() }), (codes::REFUSED, None));
    assert_eq!(with_header(SegmentHeader { major: MAJOR + 1, ..header() }), (codes::LAYOUT, None));
    assert_eq!(with_header(SegmentHeader { clock_kind: 99, ..header() }), (codes::LAYOUT, None));
    assert_eq!(header().magic, SEGMENT_MAGIC);
}

#[test]
fn a_table_that_nobody_published_is_missing() {
    let error = Table::open(&namespace()).unwrap_err();
    assert_eq!((error.code(), error.errno()), (codes::MISSING, None));
}

#[test]
fn a_process_that_is_too_fast_is_not_a_broken_one() {
    let file = String::from("x");
    let busy = ReadError::Busy { file: file.clone(), attempts: 1, cause: String::new() };
    let broken = ReadError::ImplausibleCounters { file, device: 0 };
    assert_eq!([busy.code(), broken.code()], [codes::BUSY, codes::BROKEN]);
    assert_eq!([busy.errno(), broken.errno()], [None, None]);
}
