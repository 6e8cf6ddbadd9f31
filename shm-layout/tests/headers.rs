//! Headers: what is planned reads back, and what is corrupt is refused with a reason.

use shm_layout::protocol::live::LiveList;
use shm_layout::protocol::observe::Attached;
use shm_layout::table::{TABLE_MAGIC, TableHeader, TableWords};
use shm_layout::{
    HEADER_WORDS, LayoutError, MAJOR, MAX_DEVICES, MAX_NAME_BYTES, MAX_NAMES, MAX_ROWS, MINOR, SEGMENT_MAGIC,
    SegmentHeader, SegmentWords, Word, store_pod, words_of,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn zeroed(bytes: u64) -> Vec<AtomicU64> {
    (0..bytes / 8).map(|_| AtomicU64::new(0)).collect()
}

fn segment_plan() -> SegmentHeader {
    SegmentHeader::plan(64, 16, 4096)
}

/// Reads a header as it would stand in a file of the length it claims.
fn read_segment(header: &SegmentHeader, len: u64) -> Result<SegmentHeader, LayoutError> {
    let words = zeroed(1024);
    store_pod(&words, header);
    SegmentHeader::read(&words, len)
}

fn read_table(header: &TableHeader, len: u64) -> Result<TableHeader, LayoutError> {
    let words = zeroed(1024);
    store_pod(&words, header);
    TableHeader::read(&words, len)
}

#[test]
fn a_planned_segment_reads_back() {
    for (slots, rows, name_bytes) in
        [(64, 1, 1), (4096, 1 << 16, 1 << 20), (1 << 24, MAX_ROWS, MAX_NAME_BYTES)]
    {
        let header = SegmentHeader::plan(slots, rows, name_bytes);
        assert_eq!(read_segment(&header, header.total_len), Ok(header));
    }
    let header = segment_plan();
    let words = zeroed(header.total_len);
    let segment = SegmentWords::carve(&words, &header);
    assert_eq!((segment.ring.len(), segment.rows.len(), segment.name_bytes.len()), (64, 16, 512));
    assert_eq!((segment.devices.len(), segment.counters.len()), (MAX_DEVICES, MAX_DEVICES));
    assert_eq!(segment.name_index.len() as u64, MAX_NAMES);
}

#[test]
fn a_planned_table_reads_back() {
    let header = TableHeader::plan();
    assert_eq!(read_table(&header, header.total_len), Ok(header));
    let words = zeroed(header.total_len);
    let table = TableWords::carve(&words, &header);
    let found = [table.devices.len(), table.history.len(), table.processes.len(), table.usages.len()];
    assert_eq!(found, [256, 256, 4096, 4096]);
    assert_eq!(table.notices.len(), 64);
}

#[test]
fn blocks_do_not_overlap() {
    let header = segment_plan();
    let s = &header;
    let blocks = [
        (s.control, 8),
        (s.devices, 512),
        (s.counters, 8 * shm_layout::DEVICE_COUNTER_WORDS as u64),
        (s.name_index, 8),
        (s.name_bytes, 8),
        (s.ring, 64),
        (s.rows, 64),
    ];
    let mut free_from = s.header_len;
    for (block, entry) in blocks {
        assert!(block.offset >= free_from && block.offset.is_multiple_of(shm_layout::ALIGN));
        free_from = block.end(entry);
    }
    assert!(free_from <= s.total_len);
}

#[test]
fn a_file_too_short_for_a_header_is_refused() {
    let words = zeroed(1024);
    let short = Err(LayoutError::TooShort { len: 1023, needed: 1024 });
    assert_eq!(SegmentHeader::read(&words, 1023), short);
    assert!(matches!(SegmentHeader::read(&words[..127], 1 << 20), Err(LayoutError::TooShort { .. })));
    assert!(matches!(TableHeader::read(&words, 8), Err(LayoutError::TooShort { len: 8, needed: 1024 })));
}

#[test]
fn both_versions_are_named() {
    let header = SegmentHeader { major: MAJOR + 1, minor: 7, ..segment_plan() };
    let error = read_segment(&header, header.total_len).unwrap_err();
    let (found_major, found_minor) = (MAJOR + 1, 7);
    assert_eq!(error, LayoutError::Version { found_major, found_minor, major: MAJOR, minor: MINOR });
    let text = error.to_string();
    let (found, own) = (format!("{}.7", MAJOR + 1), format!("{MAJOR}.{MINOR}"));
    assert!(text.contains(&found) && text.contains(&own), "{text}");

    let header = TableHeader { incompatible: 0b1011, minor: 3, ..TableHeader::plan() };
    let text = read_table(&header, header.total_len).unwrap_err().to_string();
    let found = format!("{MAJOR}.3");
    assert!(text.contains("0xb") && text.contains(&found) && text.contains(&own), "{text}");
}

#[test]
fn a_segment_of_a_run_is_left_to_it_for_ten_seconds() {
    let made = 5_000_000_000;
    let header = SegmentHeader { run: 7, anchor_monotonic_ns: made, ..segment_plan() };
    let left = |header: &SegmentHeader| {
        [made - 1, made, made + 9_999_999_999, made + 10_000_000_000].map(|now| header.is_left_to_run(now))
    };
    assert_eq!(left(&header), [false, true, true, false]);
    assert_eq!(left(&SegmentHeader { run: 0, ..header }), [false; 4]);
}

#[test]
fn a_newer_minor_version_and_compatible_features_are_accepted() {
    let header = SegmentHeader { minor: MINOR + 9, compatible: u64::MAX, ..segment_plan() };
    assert_eq!(read_segment(&header, header.total_len), Ok(header));
    let header = TableHeader { minor: MINOR + 9, compatible: u64::MAX, ..TableHeader::plan() };
    assert_eq!(read_table(&header, header.total_len), Ok(header));
}

#[test]
fn each_corruption_of_a_segment_has_its_error() {
    let good = segment_plan();
    let refused = |spoil: &dyn Fn(&mut SegmentHeader)| {
        let mut header = good;
        spoil(&mut header);
        read_segment(&header, good.total_len).unwrap_err()
    };
    assert_eq!(
        refused(&|h| h.magic = TABLE_MAGIC),
        LayoutError::Magic { found: TABLE_MAGIC, expected: SEGMENT_MAGIC }
    );
    let header_error = |what, found, expected| LayoutError::Header { what, found, expected };
    assert_eq!(refused(&|h| h.header_len = 512), header_error("header_len", 512, 1024));
    assert_eq!(refused(&|h| h.total_len += 1), header_error("total_len", good.total_len + 1, good.total_len));
    assert_eq!(refused(&|h| h.control.capacity = 1), header_error("control words", 1, 48));
    assert_eq!(refused(&|h| h.devices.capacity = 129), header_error("devices", 129, 128));
    assert_eq!(refused(&|h| h.counters.capacity = 0), header_error("counters", 0, 128));
    assert_eq!(refused(&|h| h.name_index.capacity = 0), header_error("names", 0, MAX_NAMES));
    assert_eq!(refused(&|h| h.ring.capacity = 48), header_error("ring slots", 48, 64));
    assert_eq!(refused(&|h| h.ring.capacity = 32), header_error("ring slots", 32, 64));
    let block = |block, offset, capacity| LayoutError::Block { block, offset, capacity, len: good.total_len };
    assert_eq!(refused(&|h| h.rows.capacity = 1 << 40), block("rows", good.rows.offset, 1 << 40));
    assert_eq!(refused(&|h| h.rows.offset += 8), block("rows", good.rows.offset + 8, 16));
    assert_eq!(refused(&|h| h.ring.offset = u64::MAX - 127), block("ring", u64::MAX - 127, 64));
    assert_eq!(refused(&|h| h.name_bytes.capacity = 0), block("name bytes", good.name_bytes.offset, 0));
}

#[test]
fn each_corruption_of_a_table_has_its_error() {
    let good = TableHeader::plan();
    let refused = |spoil: &dyn Fn(&mut TableHeader)| {
        let mut header = good;
        spoil(&mut header);
        read_table(&header, good.total_len).unwrap_err()
    };
    assert!(matches!(refused(&|h| h.magic = 0), LayoutError::Magic { found: 0, expected: TABLE_MAGIC }));
    assert!(matches!(refused(&|h| h.history.capacity = 5), LayoutError::Header { what: "history", .. }));
    let blocks: [fn(&mut TableHeader); 3] =
        [|h| h.usages.capacity = 4097, |h| h.notices.offset = 1 << 60, |h| h.processes.capacity = u64::MAX];
    for spoil in blocks {
        assert!(matches!(refused(&spoil), LayoutError::Block { .. }));
    }
}

/// Numbers at the edges of what a header may say.
fn extremes() -> impl Iterator<Item = u64> {
    let powers = (0..64).step_by(4).map(|bit| 1 << bit);
    powers.flat_map(|power: u64| [power, power - 1, power.wrapping_neg(), u64::MAX - power])
}

/// Any extreme in any word of the header is refused, or its user stays within the file.
#[test]
fn no_segment_header_leads_out_of_the_file() {
    let good = segment_plan();
    let words = zeroed(good.total_len);
    for index in 0..HEADER_WORDS {
        store_pod(&words, &good);
        for value in extremes() {
            Word::store(&words[index], value);
            if let Ok(header) = SegmentHeader::read(&words, good.total_len) {
                let segment = SegmentWords::carve(&words, &header);
                assert!(segment.ring.len().is_power_of_two());
                assert_eq!(segment.rows.len() as u64, header.rows.capacity, "word {index} = {value:#x}");
                segment.slot(value).unwrap()[0].load(Relaxed);
                let _ = Attached::new(&segment);
                LiveList::read(&segment);
            }
        }
    }
}

#[test]
fn no_table_header_leads_out_of_the_file() {
    let good = TableHeader::plan();
    let words = zeroed(good.total_len);
    for index in 0..words_of::<TableHeader>() {
        store_pod(&words, &good);
        for value in extremes() {
            Word::store(&words[index], value);
            if let Ok(header) = TableHeader::read(&words, good.total_len) {
                let table = TableWords::carve(&words, &header);
                assert_eq!(table.usages.len() as u64, header.usages.capacity, "word {index} = {value:#x}");
                assert_eq!(table.history.len(), table.devices.len());
            }
        }
    }
}
