//! What is published without memory behind it is refused, and never allocated by reading it.

use std::os::unix::fs::MetadataExt;

use crate::common::segment::{Writer, header, path_in};
use crate::common::table::Publisher;
use crate::common::{namespace, new_file};
use rustix::fs::{FallocateFlags, fallocate};
use shm_layout::control::{DEVICE_COUNT, NAME_COUNT, ROWS_PUBLISHED};
use shm_layout::{Block, store_pod, table};
use std::sync::atomic::Ordering;
use tt_shm_os::WriteMap;
use tt_shm_reader::{FileError, Loss, OpenError, Segment, SegmentHeader, TableError};

/// Frees the memory of a part of a file, rounded inward to whole pages.
fn punch(path: &std::path::Path, offset: u64, len: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let start = offset.next_multiple_of(4096);
    let end = (offset + len) / 4096 * 4096;
    fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, end - start).unwrap();
}

fn blocks(path: &std::path::Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks()
}

/// A header with blocks of these capacities.
fn planned(slots: u64, rows: u64, name_bytes: u64) -> SegmentHeader {
    let plan = SegmentHeader::plan(slots, rows, name_bytes);
    let SegmentHeader { control, devices, counters, name_index, .. } = plan;
    let SegmentHeader { name_bytes, ring, rows, total_len, .. } = plan;
    SegmentHeader { control, devices, counters, name_index, name_bytes, ring, rows, total_len, ..header() }
}

/// A segment large enough that each of its blocks has pages of its own.
fn large() -> Writer {
    Writer::with_header(planned(1 << 12, 512, 1 << 16), 1)
}

#[track_caller]
fn assert_refused(writer: &Writer, expected: &str) {
    let before = blocks(writer.path());
    match Segment::open(writer.path()).expect_err("must be refused") {
        OpenError::File(error @ FileError::NotBacked { what, .. }) => {
            assert_eq!(what, expected);
            assert!(error.to_string().contains("are not backed by memory"), "{error}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(blocks(writer.path()), before, "looking at {expected} allocated them");
}

#[test]
fn a_file_without_a_header() {
    let path = path_in(&namespace());
    let (_file, _removed) = new_file(&path, header().total_len, 0o600);
    assert!(matches!(
        Segment::open(&path),
        Err(OpenError::File(FileError::NotBacked { what: "header words", .. }))
    ));
    assert_eq!(blocks(&path), 0);
}

#[test]
fn a_ring_in_whole_or_in_part() {
    let writer = large();
    let ring = writer.header.ring;
    writer.open();
    punch(writer.path(), ring.offset + 128 * 1024, 4096 * 2);
    assert_refused(&writer, "event slots");
    punch(writer.path(), ring.offset, ring.end(64) - ring.offset);
    assert_refused(&writer, "event slots");
}

#[test]
fn what_is_counted_but_not_there() {
    type Lie = (&'static str, usize, u64, fn(&SegmentHeader) -> (Block, u64));
    let lies: [Lie; 4] = [
        ("counters", DEVICE_COUNT, 128, |header| {
            (header.counters, 8 * shm_layout::DEVICE_COUNTER_WORDS as u64)
        }),
        ("devices", DEVICE_COUNT, 128, |header| (header.devices, 8 * shm_layout::DEVICE_WORDS as u64)),
        ("names", NAME_COUNT, 1 << 16, |header| (header.name_index, 8)),
        ("rows", ROWS_PUBLISHED, u64::MAX, |header| (header.rows, 64)),
    ];
    for (what, word, count, place) in lies {
        let writer = large();
        let (block, entry) = place(&writer.header);
        punch(writer.path(), block.offset + 4096, block.end(entry) - block.offset - 4096);
        writer.set(word, count);
        assert_refused(&writer, what);
    }
}

#[test]
fn what_is_published_later_is_looked_at_before_it_is_read() {
    let writer = large();
    let SegmentHeader { rows, name_index, .. } = writer.header;
    writer.set(ROWS_PUBLISHED, 0);
    punch(writer.path(), rows.offset, rows.end(64) - rows.offset);
    let segment = writer.open();
    assert!(segment.live_list().exact && segment.loss().is_none());
    let before = blocks(writer.path());
    writer.set(ROWS_PUBLISHED, 512);
    assert!(!segment.live_list().exact);
    assert_eq!(segment.loss(), Some(Loss::NotBacked("rows")));

    let named = writer.open_with(|writer| writer.set(ROWS_PUBLISHED, 0));
    writer.words().name_index[1].store(40_000 << 32 | 8, Ordering::Relaxed);
    writer.set(NAME_COUNT, 2);
    assert_eq!((named.name(1), named.loss()), (None, Some(Loss::NotBacked("names"))));

    let counted = writer.open_with(|_| {});
    assert_eq!(counted.loss(), None);
    writer.set(NAME_COUNT, 1 << 16);
    assert_eq!(
        counted.words().name_index.len() * 8 % 4096,
        (4096 - name_index.offset % 4096) as usize % 4096
    );
    assert_eq!(counted.loss(), Some(Loss::NotBacked("names")));
    assert_eq!(blocks(writer.path()), before, "looking at it allocated it");
}

#[test]
fn holes_that_are_punched_later_are_noticed() {
    let writer = large();
    let (ring, rows) = (writer.header.ring, writer.header.rows);
    let segment = writer.open();
    assert!(segment.is_alive().unwrap() && segment.live_list().exact && segment.loss().is_none());
    punch(writer.path(), rows.offset, rows.end(64) - rows.offset);
    let before = blocks(writer.path());
    assert!(!segment.live_list().exact);
    assert_eq!(segment.loss(), Some(Loss::NotBacked("rows")));
    assert_eq!(blocks(writer.path()), before);

    let writer = large();
    let segment = writer.open();
    punch(writer.path(), ring.offset, ring.end(64) - ring.offset);
    let before = blocks(writer.path());
    assert!(segment.is_alive().unwrap());
    assert_eq!(segment.loss(), Some(Loss::NotBacked("event slots")));
    assert_eq!(segment.follow_from_start().count(), 0);
    assert_eq!(blocks(writer.path()), before);
}

#[test]
fn a_file_that_is_cut_and_grown_again_is_lost() {
    let writer = large();
    let segment = writer.open();
    let file = std::fs::File::options().write(true).open(writer.path()).unwrap();
    file.set_len(writer.header.ring.offset).unwrap();
    assert!(segment.is_alive().unwrap());
    assert_eq!(segment.loss(), Some(Loss::CutShort));
    file.set_len(writer.header.total_len).unwrap();
    assert_eq!(segment.loss(), Some(Loss::CutShort), "what was lost stays lost");
}

/// Holes that an honest writer leaves stay holes, and are no reason to refuse it.
#[test]
fn a_real_writer_is_read_without_touching_its_holes() {
    use tt_shm_writer::{Alloc, BufferType, DeviceInfo, Record, Tracker};
    let ns = namespace();
    let tracker = Tracker::builder().enabled(true).namespace(ns.as_str()).open().unwrap();
    let path = tt_shm_reader::segment_paths(&ns).unwrap().pop().unwrap();
    let segment = Segment::open(&path).unwrap();
    let device = tracker.register_device(&DeviceInfo { chip_id: 7, ..Default::default() }).unwrap();
    for id in 0..20_000 {
        let name = tracker.intern(format!("a name of some length, number {}", id % 3000)).unwrap();
        tracker.alloc(device, Alloc::new(BufferType::Dram, id, 64).name(name)).unwrap();
        if id % 1000 == 0 {
            assert!(segment.live_list().exact);
        }
    }
    let before = blocks(&path);
    for segment in [segment, Segment::open(&path).unwrap()] {
        let live = segment.allocations();
        assert_eq!((live.list.len(), live.exact), (20_000, true));
        assert!(live.list.iter().all(|allocation| allocation.name.is_some()));
        assert_eq!(segment.counters().unwrap().counters[0].dram_used(), 20_000 * 64);
        assert!(segment.follow_from_start().count() > 10_000);
        assert_eq!((segment.is_alive().unwrap(), segment.loss()), (true, None));
    }
    assert_eq!(blocks(&path), before, "reading allocated something");
}

#[test]
fn a_table_whose_rows_are_not_there() {
    for word in [
        table::control::DEVICES,
        table::control::PROCESSES,
        table::control::USAGES,
        table::control::NOTICES,
        table::control::FAILURES,
    ] {
        let publisher = Publisher::new();
        let behind = publisher.header.devices.offset;
        punch(publisher.path(), behind, publisher.header.total_len - behind);
        let table = publisher.open();
        let before = blocks(publisher.path());
        publisher.set(word, 64);
        assert!(matches!(publisher.try_open(), Err(TableError::File(FileError::NotBacked { .. }))));
        assert!(!table.snapshot().consistent, "rows appeared that cannot be read");
        assert!(table.history(3, 0).is_empty() && table.device(3).read(|_| ()).is_none());
        assert_eq!(blocks(publisher.path()), before);
    }
}

#[test]
fn a_table_without_a_header() {
    let publisher = Publisher::new();
    let file = std::fs::File::options().write(true).open(publisher.path()).unwrap();
    file.set_len(0).unwrap();
    file.set_len(publisher.header.total_len).unwrap();
    assert!(matches!(
        publisher.try_open(),
        Err(TableError::File(FileError::NotBacked { what: "header words", .. }))
    ));
    assert_eq!(blocks(publisher.path()), 0);
}

/// Only the header's page exists: the rest of a forged file costs its reader nothing.
#[test]
fn a_header_alone() {
    let huge = planned(1 << 24, 1 << 23, 1 << 26);
    let path = path_in(&namespace());
    let (file, _removed) = new_file(&path, huge.total_len, 0o600);
    store_pod(WriteMap::new(&file, huge.total_len as usize).unwrap().words(), &huge);
    assert!(matches!(
        Segment::open(&path),
        Err(OpenError::File(FileError::NotBacked { what: "event slots", .. }))
    ));
    assert_eq!(blocks(&path) * 512, 4096);
}
