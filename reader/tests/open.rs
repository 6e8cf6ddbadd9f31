//! What is refused as a segment, and why.

use std::fs::{hard_link, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use crate::common::segment::{Writer, header, path_in};
use crate::common::{Removed, euid, namespace, new_file};
use shm_layout::control::ROWS_PUBLISHED;
use shm_layout::{MAJOR, store_pod};
use tt_shm_os::{WriteMap, path_of, segment_file_name};
use tt_shm_reader::{FileError, LayoutError, MAX_FILE_LEN, OpenError, Segment, SegmentHeader, segment_paths};

fn refusal(path: &Path) -> OpenError {
    Segment::open(path).expect_err("must be refused")
}

/// The error for a file with this header, at the name that the untouched header belongs to.
fn refusal_of(header: SegmentHeader) -> OpenError {
    let path = path_in(&namespace());
    let (file, _removed) = new_file(&path, header.total_len, 0o600);
    store_pod(WriteMap::new(&file, header.total_len as usize).unwrap().words(), &header);
    refusal(&path)
}

#[test]
fn an_honest_segment_is_opened() {
    let writer = Writer::new(2);
    let segment = writer.open();
    assert_eq!(*segment.header(), writer.header);
    assert_eq!(segment.identity(), writer.header.identity);
    assert_eq!((segment.pid(), segment.uid()), (std::process::id(), euid()));
    assert_eq!(segment.file_name(), writer.path().file_name().unwrap().to_str().unwrap());
    assert_eq!(segment.process_name(), "tester");
    let stat = std::fs::metadata(writer.path()).unwrap();
    assert_eq!(segment.inode(), (stat.dev(), stat.ino()));
    let chips: Vec<u64> = segment.devices().iter().map(|device| device.chip_id).collect();
    assert_eq!(chips, [100, 101]);
    assert_eq!(segment.devices()[1].board_name().as_deref(), Some("n300"));
}

#[test]
fn reading_touches_no_holes() {
    let writer = Writer::new(1);
    let SegmentHeader { name_index, ring, rows, .. } = writer.header;
    let map = writer.map.as_ref().unwrap();
    map.populate(0, name_index.offset as usize).unwrap();
    map.populate(ring.offset as usize, ring.end(64).min(rows.offset) as usize - ring.offset as usize)
        .unwrap();
    writer.set(ROWS_PUBLISHED, 0);
    let blocks = || std::fs::metadata(writer.path()).unwrap().blocks();
    let before = blocks();
    let segment = writer.open();
    assert_eq!((segment.devices().len(), segment.counters().unwrap().counters.len()), (1, 1));
    assert!(segment.allocations().exact && segment.programs().is_empty());
    assert_eq!((segment.follow_from_start().count(), segment.name(7)), (0, None));
    assert_eq!(blocks(), before, "what nobody wrote was not allocated by reading it");
}

#[test]
fn a_missing_file() {
    let error = refusal(&path_in(&namespace()));
    assert!(error.is_not_found() && !error.is_permission_denied());
    assert!(error.to_string().contains("list the segments again"), "{error}");
}

#[test]
fn a_symbolic_link() {
    let writer = Writer::new(1);
    let link = Removed(path_in(&namespace()));
    symlink(writer.path(), link.path()).unwrap();
    assert!(matches!(
        refusal(link.path()),
        OpenError::File(FileError::NotRegular { kind: "a symbolic link", .. })
    ));
}

#[test]
fn a_directory() {
    let path = Removed(path_in(&namespace()));
    std::fs::create_dir(path.path()).unwrap();
    assert!(matches!(
        refusal(path.path()),
        OpenError::File(FileError::NotRegular { kind: "a directory", .. })
    ));
}

#[test]
fn a_fifo_does_not_block() {
    let path = Removed(path_in(&namespace()));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path.path(), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(matches!(refusal(path.path()), OpenError::File(FileError::NotRegular { kind: "a FIFO", .. })));
}

#[test]
fn a_second_link() {
    let writer = Writer::new(1);
    let link = Removed(path_in(&namespace()));
    hard_link(writer.path(), link.path()).unwrap();
    assert!(matches!(refusal(writer.path()), OpenError::File(FileError::Links { links: 2, .. })));
}

#[test]
fn write_permission_for_others() {
    let writer = Writer::new(1);
    for mode in [0o620, 0o602, 0o666] {
        set_permissions(writer.path(), PermissionsExt::from_mode(mode)).unwrap();
        let error = refusal(writer.path());
        assert!(matches!(error, OpenError::File(FileError::Writable { mode: found, .. }) if found == mode));
    }
    set_permissions(writer.path(), PermissionsExt::from_mode(0o644)).unwrap();
    writer.open();
}

#[test]
fn sizes_that_no_segment_has() {
    for len in [0, 1023, MAX_FILE_LEN + 1] {
        let path = path_in(&namespace());
        let (_, _removed) = new_file(&path, len, 0o600);
        assert!(matches!(
            refusal(&path),
            OpenError::File(FileError::Size { len: found, min: 1024, .. }) if found == len
        ));
    }
}

#[test]
fn a_foreign_or_broken_header() {
    let mut bad = header();
    bad.magic = 1;
    assert!(matches!(refusal_of(bad), OpenError::Layout { cause: LayoutError::Magic { found: 1, .. }, .. }));
    let mut bad = header();
    bad.major = MAJOR + 1;
    let error = refusal_of(bad);
    assert!(matches!(&error, OpenError::Layout { cause: LayoutError::Version { .. }, .. }));
    assert!(error.to_string().contains("/dev/shm/"), "{error}");
    let mut bad = header();
    bad.ring.offset = bad.total_len;
    assert!(matches!(refusal_of(bad), OpenError::Layout { cause: LayoutError::Block { .. }, .. }));
}

#[test]
fn an_identity_other_than_the_name_says() {
    let mut bad = header();
    bad.identity = 5;
    assert!(matches!(refusal_of(bad), OpenError::Identity { identity: 5, .. }));
    let mut bad = header();
    bad.pid += 1 << 32;
    assert!(
        matches!(refusal_of(bad), OpenError::Identity { name_pid, .. } if name_pid == std::process::id())
    );
}

#[test]
fn a_name_that_is_no_segments_says_nothing() {
    let ns = namespace();
    let path = path_of(&format!("{}.x", segment_file_name(&ns, 1, 1)));
    let (file, _removed) = new_file(&path, header().total_len, 0o600);
    let map = WriteMap::new(&file, header().total_len as usize).unwrap();
    map.populate(0, header().total_len as usize).unwrap();
    store_pod(map.words(), &header());
    assert_eq!(Segment::open(&path).unwrap().pid(), std::process::id());
    store_pod(map.words(), &SegmentHeader { pid: 1 << 32, ..header() });
    assert!(matches!(refusal(&path), OpenError::Field { what: "pid", .. }));
}

#[test]
fn a_clock_that_the_layout_does_not_have() {
    for clock_kind in [0, 4, 1 << 32 | 1] {
        let error = refusal_of(SegmentHeader { clock_kind, ..header() });
        assert!(
            matches!(error, OpenError::Field { what: "clock_kind", found, .. } if found == clock_kind),
            "{error}"
        );
    }
}

#[test]
fn listing_finds_the_segments_of_a_namespace_only() {
    let ns = namespace();
    // Sorted neither forwards nor backwards: folders are listed in either order.
    let names = [20, 40, 30].map(|pid| segment_file_name(&ns, pid, 1));
    let _table = new_file(&path_of(&format!("tt-shm.v2.{ns}.0.table")), 0, 0o600);
    let _files = names.each_ref().map(|name| new_file(&path_of(name), 0, 0o600));
    let other = namespace();
    let _other = new_file(&path_of(&segment_file_name(&other, 1, 1)), 0, 0o600);
    assert_eq!(segment_paths(&ns).unwrap(), [0, 2, 1].map(|i: usize| path_of(&names[i])));
}

#[test]
fn file_names_have_the_major_version() {
    assert!(segment_file_name(&namespace(), 1, 2).starts_with(&format!("tt-shm.v{MAJOR}.")));
}
