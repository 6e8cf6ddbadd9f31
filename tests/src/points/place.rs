//! Which point a visit belongs to. A store is known by the place in the file that it changes, so production
//! code names no stores, and a store in a place that is not listed here is found.

use super::point::Point;
use shm_layout::points::Visit;
use shm_layout::table::{self, TABLE_MAGIC, TableHeader, control as table_control};
use shm_layout::{
    Block, DEVICE_COUNTER_WORDS, DEVICE_WORDS, Row, SEGMENT_MAGIC, SLOT_WORDS, SegmentHeader, control,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, OnceLock, PoisonError};

const HEADER_BYTES: u64 = size_of::<SegmentHeader>() as u64;
const _: () = assert!(size_of::<SegmentHeader>() == size_of::<TableHeader>());
/// The word of a row that gets a name later.
const META: u64 = core::mem::offset_of!(Row, kind) as u64 / 8;

/// The point of a visit; `None` for a store to memory that no other process sees.
pub fn point_of(visit: Visit) -> Option<Point> {
    static KNOWN: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match visit {
        Visit::Call(name) => {
            // Before a file is mapped and after its header is complete there is a call, so what is known stays
            // true until the next one.
            known.clear();
            Some(Point::of_call(name))
        }
        Visit::Store(address) => {
            let address = address as u64;
            let found = known.iter().position(|mapping| (mapping.start..mapping.end).contains(&address));
            let found = found.unwrap_or_else(|| {
                known.push(Mapping::at(address));
                known.len() - 1
            });
            known[found].point(address)
        }
    }
}

/// A part of this process's memory.
struct Mapping {
    start: u64,
    end: u64,
    file: Option<MappedFile>,
}

/// A segment or table.
struct MappedFile {
    /// The address of its first byte.
    start: u64,
    is_table: bool,
    header: [u8; HEADER_BYTES as usize],
}

impl Mapping {
    /// The mapping at an address.
    fn at(address: u64) -> Mapping {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("procfs is mounted");
        let mappings = maps.lines().filter_map(Mapping::parse);
        let mut containing = mappings.filter(|mapping| (mapping.start..mapping.end).contains(&address));
        containing.next().expect("what was stored to is mapped")
    }

    /// A line of /proc/PID/maps: range, access, offset, device, inode, path.
    fn parse(line: &str) -> Option<Mapping> {
        let mut fields = line.split_ascii_whitespace();
        let (range, access, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let path = fields.nth(2).unwrap_or_default();
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = range.split_once('-')?;
        let (start, end, first) = (number(start)?, number(end)?, number(start)?.checked_sub(number(offset)?));
        let is_ours = access == "rw-s" && path.starts_with("/dev/shm/");
        let file = first.filter(|_| is_ours).and_then(|start| {
            let mut header = [0; HEADER_BYTES as usize];
            read(start, &mut header)?;
            Some(MappedFile { start, is_table: path.contains(".table"), header })
        });
        Some(Mapping { start, end, file })
    }

    fn point(&self, address: u64) -> Option<Point> {
        let MappedFile { start, is_table, header } = self.file.as_ref()?;
        let offset = address - start;
        Some(match is_table {
            true => table_point(&bytemuck::pod_read_unaligned(header), offset),
            false => segment_point(&bytemuck::pod_read_unaligned(header), offset, *start),
        })
    }
}

/// Reads the memory of this process.
fn read(address: u64, bytes: &mut [u8]) -> Option<()> {
    static MEMORY: OnceLock<File> = OnceLock::new();
    let memory = MEMORY.get_or_init(|| File::open("/proc/self/mem").expect("procfs is mounted"));
    memory.read_exact_at(bytes, address).ok()
}

/// The word of a block of such entries at a byte of the file.
fn word_in(block: Block, entry_words: usize, offset: u64) -> Option<u64> {
    (block.offset..block.end(8 * entry_words as u64)).contains(&offset).then(|| (offset - block.offset) / 8)
}

fn segment_point(header: &SegmentHeader, offset: u64, start: u64) -> Point {
    // Before the header there are no blocks: what is stored first is part of the header's step.
    if offset < HEADER_BYTES || header.magic != SEGMENT_MAGIC {
        return Point::SegmentHeader;
    }
    if let Some(word) = word_in(header.control, 1, offset) {
        return match word as usize {
            control::HEAD => Point::EmitHead,
            control::STATE | control::CLOSED_AT => Point::SegmentState,
            control::DEVICE_COUNT => Point::DeviceCount,
            control::NAME_COUNT => Point::NameCount,
            control::ROWS_PUBLISHED => Point::GrowthPublished,
            control::UNLISTED => Point::UnlistedCount,
            control::SELF_CHECKS | control::SELF_CHECKS_DIFFERENT => Point::SelfChecks,
            control::ANOMALIES.. => Point::Anomaly,
            _ => Point::Unknown,
        };
    }
    if let Some(word) = word_in(header.rows, SLOT_WORDS, offset) {
        let is_meta = word % SLOT_WORDS as u64 == META;
        return if is_meta && has_stamp(start + offset - 8 * META) {
            Point::EmitName
        } else {
            Point::EmitRow
        };
    }
    let blocks = [
        (header.devices, DEVICE_WORDS, Point::DeviceEntry),
        (header.counters, DEVICE_COUNTER_WORDS, Point::EmitCheckpoint),
        (header.name_index, 1, Point::NameText),
        (header.name_bytes, 1, Point::NameText),
        (header.ring, SLOT_WORDS, Point::EmitSlot),
    ];
    block_point(&blocks, offset)
}

/// Whether a row has a stamp: while it is written it has none, and when it gets a name it keeps its own.
fn has_stamp(cell: u64) -> bool {
    let mut stamp = [0; 8];
    read(cell, &mut stamp).expect("a row is mapped");
    stamp != [0; 8]
}

fn table_point(header: &TableHeader, offset: u64) -> Point {
    if offset < HEADER_BYTES || header.magic != TABLE_MAGIC {
        return Point::TableHeader;
    }
    if let Some(word) = word_in(header.control, 1, offset) {
        return match word as usize {
            table_control::GENERATION => Point::TableGeneration,
            table_control::HEARTBEAT | table_control::INTERVAL | table_control::AS_OF => {
                Point::TableHeartbeat
            }
            table_control::CLOSED => Point::TableClosed,
            word if table_control::ALL.iter().any(|known| known.value == word as u64) => Point::TableControl,
            _ => Point::Unknown,
        };
    }
    let blocks = [
        (header.devices, table::DEVICE_ROW_WORDS, Point::TableDevice),
        (header.processes, table::PROCESS_ROW_WORDS, Point::TableProcess),
        (header.usages, table::USAGE_ROW_WORDS, Point::TableUsage),
        (header.notices, table::NOTICE_ROW_WORDS, Point::TableNotice),
        (header.failures, table::FAILURE_ROW_WORDS, Point::TableFailure),
        (header.history, table::HISTORY_WORDS, Point::TableHistory),
    ];
    block_point(&blocks, offset)
}

fn block_point(blocks: &[(Block, usize, Point)], offset: u64) -> Point {
    let found = blocks.iter().find(|(block, entry_words, _)| word_in(*block, *entry_words, offset).is_some());
    found.map_or(Point::Unknown, |(.., point)| *point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_in_no_known_place_is_found() {
        let header = SegmentHeader::plan(64, 64, 4096);
        let word = |number: usize| segment_point(&header, header.control.offset + 8 * number as u64, 0);
        assert_eq!(word(control::HEAD), Point::EmitHead);
        assert_eq!(word(control::HEAD + 1), Point::Unknown);
        assert_eq!(segment_point(&header, header.total_len, 0), Point::Unknown);
        let header = TableHeader::plan();
        let word = |number: usize| table_point(&header, header.control.offset + 8 * number as u64);
        assert_eq!(word(table_control::EVENTS), Point::TableControl);
        assert_eq!(word(table_control::ALL.len()), Point::Unknown);
    }

    #[test]
    fn memory_of_this_process_alone_has_no_point() {
        let word = 0_u64;
        assert_eq!(point_of(Visit::Store(core::ptr::from_ref(&word).addr())), None);
    }
}
