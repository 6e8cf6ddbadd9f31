//! What processes claim in the L1 of Tensix cores: buffers, and the memory of resident programs.

use std::collections::HashMap;

use tt_shm_reader::{Class, CoreType, Counters, DeviceEntry, Row, RowKind, Segment, UNKNOWN, flags, known};

use super::ranges::{CoreRanges, Grid};
use crate::escape::Foreign;
use crate::lists::bounds::{MOST_ROWS, Names, left_out};
use crate::lists::extents::Owner;
use crate::segments::{Called, called, lost};
use crate::units::plural;

/// How often counters and list are read again until they are of one moment.
const ATTEMPTS: usize = 8;
/// Most pieces of program memory of one process that are looked at: a piece is compared with every core.
const MOST_PIECES: usize = 8192;

/// The cores that something lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// All of them, at the same address.
    All,
    /// These.
    Some(CoreRanges),
    /// So many, but its process does not tell which.
    Unknown(u64),
}

/// Something in L1.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) class: Class,
    pub(crate) at: Where,
    pub(crate) owner: Owner,
    pub(crate) called: Called,
    pub(crate) program: Option<u64>,
    pub(crate) program_name: Option<Foreign>,
    pub(crate) name: Option<Foreign>,
    /// Where it begins on each of its cores; `None` if not known.
    pub(crate) address: Option<u64>,
    /// Bytes on each of its cores.
    pub(crate) bytes: u64,
}

/// A device as a process describes it, and what the process counts there.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Index of the device.
    pub(crate) device: usize,
    pub(crate) entry: DeviceEntry,
    pub(crate) called: Called,
    /// `None` if they could not be read.
    pub(crate) counters: Option<Counters>,
    pub(crate) claims: Vec<Claim>,
    /// Whether these are all claims of the process there, of one moment, each with its bytes.
    pub(crate) is_whole: bool,
}

/// What a process claims, by device entry, and what is in doubt, in words.
pub(crate) fn read(
    segment: &Segment,
    index_of: impl Fn(&DeviceEntry) -> Option<usize>,
) -> (Vec<Entry>, Vec<String>) {
    let called = called(segment);
    let mut doubts: Vec<String> = lost(segment).into_iter().collect();
    let moment = Moment::read(segment, called.pid, &mut doubts);
    let mut is_whole = doubts.is_empty() && !segment.is_partial();
    let [_, different] = segment.self_checks();
    if segment.is_partial() || different > 0 {
        doubts.push(format!("pid {}: what it reports is not all that it holds", called.pid));
        is_whole = false;
    }
    let mut names = Names::default();
    let mut entries = Vec::new();
    for (number, entry) in segment.devices().into_iter().enumerate() {
        let Some(device) = index_of(&entry) else { continue };
        let counters = moment.counters.get(number).copied();
        let mut found = Entry { device, entry, called, counters, claims: Vec::new(), is_whole };
        moment.add_claims(&mut found, number as u8, segment, &mut names);
        entries.push(found);
    }
    doubts.extend(names.doubt(called.pid));
    (entries, doubts)
}

/// The rows and counters of a process at one position of its ring.
struct Moment {
    rows: Vec<Row>,
    counters: Vec<Counters>,
}

impl Moment {
    fn read(segment: &Segment, pid: u32, doubts: &mut Vec<String>) -> Moment {
        let mut list = segment.live_list();
        let mut counters = segment.counters();
        for _ in 0..ATTEMPTS {
            let is_one = counters.as_ref().is_ok_and(|counters| counters.position == list.position);
            if is_one {
                break;
            }
            list = segment.live_list();
            counters = segment.counters();
        }
        match &counters {
            Err(error) => doubts.push(format!("pid {pid}: {error}")),
            Ok(counters) if counters.position != list.position || !list.exact => doubts.push(format!(
                "pid {pid}: allocates faster than its list can be read; what it holds is not exact"
            )),
            Ok(_) => {}
        }
        if list.unlisted > 0 {
            let unlisted = plural(list.unlisted, "live allocation");
            doubts.push(format!("pid {pid}: {unlisted} not listed: it had no room"));
        }
        let more = list.rows.len().saturating_sub(MOST_ROWS) as u64;
        list.rows.truncate(MOST_ROWS);
        doubts.extend(left_out(pid, more));
        Moment { rows: list.rows, counters: counters.map(|counters| counters.counters).unwrap_or_default() }
    }

    fn add_claims(&self, to: &mut Entry, number: u8, segment: &Segment, names: &mut Names) {
        let resident = Resident::new(&self.rows, number, to.counters.as_ref());
        let mut ranges: HashMap<u16, Option<String>> = HashMap::new();
        // Thousands of rows share a few names.
        let mut called: HashMap<u16, Option<Foreign>> = HashMap::new();
        let (mut pieces, mut resident_bytes) = (0, 0_u64);
        for row in self.rows.iter().filter(|row| row.device == number) {
            let placed = match row.kind() {
                Some(RowKind::Buffer) => buffer(row, &to.entry),
                Some(RowKind::Cb) if resident.has(row) => {
                    pieces += 1;
                    resident_bytes = resident_bytes.saturating_add(row.size);
                    let text = ranges.entry(row.place).or_insert_with(|| segment.name(row.place));
                    if pieces > MOST_PIECES {
                        Placed::Unclear
                    } else {
                        piece(row, &to.entry, text.as_deref())
                    }
                }
                _ => Placed::Nowhere,
            };
            let (class, at, bytes) = match placed {
                Placed::Nowhere => continue,
                Placed::Unclear => {
                    to.is_whole = false;
                    continue;
                }
                Placed::At(class, at, bytes) => (class, at, bytes),
            };
            let owner = Owner { process: segment.identity(), entry: number, is_program: class == Class::Cb };
            let mut name = |number: u16| {
                let found = || segment.name(number).map(|name| names.fit(name.into()));
                called.entry(number).or_insert_with(found).clone()
            };
            to.claims.push(Claim {
                class,
                at,
                owner,
                called: to.called,
                program: row.program(),
                program_name: name(resident.name(row.program())),
                name: name(row.name),
                address: Some(row.address).filter(|address| *address != UNKNOWN),
                bytes,
            });
        }
        // What the counters call resident must all have been found.
        to.is_whole &= to.counters.is_some_and(|counters| counters.cb_resident_bytes == resident_bytes);
    }
}

/// The programs that are resident on a device, with the position of their last dispatch and their name.
struct Resident(HashMap<u64, (u64, u16)>);

impl Resident {
    fn new(rows: &[Row], device: u8, counters: Option<&Counters>) -> Resident {
        let mut last: HashMap<u64, (u64, u16)> = HashMap::new();
        let is_program = |row: &&Row| row.device == device && row.kind() == Some(RowKind::Program);
        for row in rows.iter().filter(is_program) {
            let is_resident = counters.is_some_and(|counters| counters.lane_of(row.id).is_some());
            if is_resident {
                let newest = last.entry(row.id).or_default();
                *newest = (row.stamp, row.name).max(*newest);
            }
        }
        Resident(last)
    }

    /// Whether a circular buffer is resident: there when its program was dispatched last.
    fn has(&self, row: &Row) -> bool {
        self.0.get(&row.aux).is_some_and(|(stamp, _)| row.stamp < *stamp)
    }

    /// The name of a program, 0 for none.
    fn name(&self, program: Option<u64>) -> u16 {
        program.and_then(|program| self.0.get(&program)).map_or(0, |(_, name)| *name)
    }
}

enum Placed {
    /// Not in the L1 of Tensix cores, or without bytes of its own.
    Nowhere,
    /// There, but nothing tells how much of it is on a core.
    Unclear,
    At(Class, Where, u64),
}

/// The place of a buffer. Allocators work in lock step: it takes the same range of addresses in every bank.
fn buffer(row: &Row, entry: &DeviceEntry) -> Placed {
    let Some(class) = row.class().filter(|class| matches!(class, Class::L1 | Class::L1Small)) else {
        return Placed::Nowhere;
    };
    let cores = u64::from(row.cores);
    let Some(pool) = entry.pool(class).filter(|pool| pool.banks > 0 && !row.is_requested_basis()) else {
        return Placed::Unclear;
    };
    match cores {
        _ if row.size == 0 => Placed::Nowhere,
        // Not in hybrid mode: there it may be in some of them only.
        0 if entry.is_hybrid() == Some(true) => Placed::Unclear,
        0 => Placed::At(class, Where::All, row.size / pool.banks),
        _ if cores == pool.banks => Placed::At(class, Where::All, row.size / cores),
        // On each of these cores it has an address of its own, and at most this many bytes.
        _ => Placed::At(class, Where::Unknown(cores), row.size.div_ceil(cores)),
    }
}

/// The place of program memory, which is as large on each of its cores.
fn piece(row: &Row, entry: &DeviceEntry, ranges: Option<&str>) -> Placed {
    let cores = u64::from(row.cores);
    let is_global = row.flags & flags::GLOBAL != 0;
    if row.size == 0 || is_global || row.core_type() != CoreType::Tensix {
        return Placed::Nowhere;
    }
    let Some(bytes) = row.size.checked_div(cores) else { return Placed::Unclear };
    let banks = entry.pool(Class::L1).map(|pool| pool.banks);
    let grid = entry.grid().and_then(|(columns, rows)| Grid::new(columns, rows));
    let ranges = ranges.zip(grid).and_then(|(text, grid)| CoreRanges::parse(text, cores, grid));
    let tensix = (entry.known & known::L1 != 0).then_some(entry.tensix_cores);
    let at = match ranges {
        Some(ranges) => Where::Some(ranges),
        // As many as there are: all of them.
        None if Some(cores) == banks && banks == tensix => Where::All,
        None => Where::Unknown(cores),
    };
    Placed::At(Class::Cb, at, bytes)
}
