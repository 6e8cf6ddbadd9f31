//! The second pass: what was held at chosen moments and never freed, by name, and the programs that ran.

use std::collections::{BTreeMap, HashMap};

use shm_layout::{Class, Counters, Event, EventKind, NO_DEVICE, Row, RowKind, flags};
use tt_shm_record::{Live, Record};

use crate::chips::Chips;
use crate::figure::{self, FIGURES, Figures};
use crate::follow::{At, Change, Visitor};
use crate::text::Texts;

/// The most groups of anything that are kept apart by name.
const MAX_GROUPS: usize = 20_000;

/// When a snapshot is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// After the change with this number.
    Change(u64),
    /// After the last change until a time.
    Time(u64),
}

/// Allocations of one process on one chip that have a class and a name in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) chip: usize,
    pub(crate) process: usize,
    pub(crate) class: u8,
    /// Of texts.
    pub(crate) name: u32,
}

/// What such a group holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) requested: u64,
    pub(crate) count: u64,
    /// The time of the oldest.
    pub(crate) oldest_ns: u64,
    /// Of the count, those that were allocated within the record.
    pub(crate) new: u64,
}

/// A part of a bank, or of the L1 of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Block {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) key: Key,
    pub(crate) count: u64,
}

/// What a chip held at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) chip: usize,
    pub(crate) figures: Figures,
    pub(crate) is_exact: bool,
    pub(crate) groups: BTreeMap<Key, Held>,
    /// Of DRAM and of L1, by address.
    pub(crate) blocks: [Vec<Block>; 2],
    /// Allocations whose address is not known.
    pub(crate) unplaced: u64,
}

/// A program by its name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Program {
    pub(crate) dispatches: u64,
    pub(crate) cached: u64,
    pub(crate) cb_bytes: u64,
    pub(crate) kernel_bytes: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

#[derive(Clone, Default)]
struct Tracked {
    is_unknown: bool,
    may_have_ended: bool,
    live: Live,
    counters: Vec<Counters>,
    /// The names of its texts, by number; made when needed.
    names: HashMap<u16, u32>,
}

/// The second pass over a record.
pub(crate) struct Census<'a> {
    record: &'a Record,
    chips: &'a Chips,
    /// Whether a chip is shown, and not another one that is the same.
    is_shown: Vec<bool>,
    pub(crate) texts: Texts,
    tracked: Vec<Tracked>,
    numbers: Vec<u32>,
    unknown_until_end: bool,
    /// By process, whether it says that its figures are not all.
    is_doubted: Vec<bool>,
    /// When to look, in order, and what was seen.
    whens: Vec<When>,
    next: usize,
    pub(crate) looks: Vec<Vec<Holding>>,
    /// What was left when its process ended, with how many bytes of it were dropped at the close of the device.
    pub(crate) left: BTreeMap<Key, Held>,
    pub(crate) dropped: BTreeMap<Key, Held>,
    pub(crate) programs: BTreeMap<(usize, usize, u32), Program>,
    pub(crate) unlisted_groups: u64,
    begin_ns: u64,
}

impl<'a> Census<'a> {
    /// A pass that looks at these moments, which are in order, at these chips.
    pub(crate) fn new(
        record: &'a Record,
        chips: &'a Chips,
        is_shown: Vec<bool>,
        is_doubted: Vec<bool>,
        whens: Vec<When>,
    ) -> Census<'a> {
        Census {
            record,
            chips,
            is_shown,
            texts: Texts::new(),
            tracked: vec![Tracked::default(); record.processes().len()],
            numbers: record.processes().map(|process| process.number()).collect(),
            unknown_until_end: false,
            is_doubted,
            whens,
            next: 0,
            looks: Vec::new(),
            left: BTreeMap::new(),
            dropped: BTreeMap::new(),
            programs: BTreeMap::new(),
            unlisted_groups: 0,
            begin_ns: record.span_ns().0,
        }
    }

    fn name(&mut self, process: usize, name: u16) -> u32 {
        if name == 0 {
            return Texts::NONE;
        }
        if let Some(number) = self.tracked[process].names.get(&name) {
            return *number;
        }
        let known = self.record.process(self.numbers[process]).and_then(|known| known.name(name));
        let text = known.map_or_else(|| format!("name {name}"), |known| known.to_string());
        let number = self.texts.number(&text);
        self.tracked[process].names.insert(name, number);
        number
    }

    fn shown_chip(&self, process: usize, device: u8) -> Option<usize> {
        self.chips.place(process, device).filter(|chip| self.is_shown[*chip])
    }

    fn ns(&self, process: usize, ticks: u64) -> u64 {
        let known = self.record.process(self.numbers[process]);
        known.map_or(0, |known| self.record.to_monotonic_ns(known, ticks))
    }

    /// Looks at everything whose time has come before a change.
    fn look(&mut self, at: At) {
        while let Some(when) = self.whens.get(self.next) {
            let is_due = match *when {
                When::Change(number) => number < at.number,
                When::Time(ns) => ns < at.ns,
            };
            if !is_due {
                break;
            }
            self.next += 1;
            let look = self.holdings();
            self.looks.push(look);
        }
    }

    /// Takes what is left to be looked at, after the last change.
    pub(crate) fn finish(&mut self) {
        self.look(At { ns: u64::MAX, number: u64::MAX });
        for process in 0..self.tracked.len() {
            self.leave(process);
        }
    }

    fn rows_of(&self, process: usize) -> Vec<Row> {
        self.tracked[process].live.clone().finish()
    }

    fn holdings(&mut self) -> Vec<Holding> {
        let rows: Vec<Vec<Row>> = (0..self.tracked.len()).map(|process| self.rows_of(process)).collect();
        let shown: Vec<usize> = (0..self.is_shown.len()).filter(|chip| self.is_shown[*chip]).collect();
        shown.into_iter().map(|chip| self.holding(chip, &rows)).collect()
    }

    fn holding(&mut self, chip: usize, rows: &[Vec<Row>]) -> Holding {
        let mut holding = Holding {
            chip,
            figures: [0; FIGURES],
            is_exact: !self.unknown_until_end,
            groups: BTreeMap::new(),
            blocks: Default::default(),
            unplaced: 0,
        };
        for process in self.chips.list[chip].processes.clone() {
            let tracked = &self.tracked[process];
            let may_be_gone = tracked.may_have_ended && !rows[process].is_empty();
            holding.is_exact &= !tracked.is_unknown && !may_be_gone && !self.is_doubted[process];
            let counters = tracked.counters.clone();
            for (device, counters) in counters.iter().enumerate() {
                let Ok(device) = u8::try_from(device) else { continue };
                if self.chips.place(process, device) == Some(chip) {
                    self.hold(&mut holding, process, device, counters, &rows[process]);
                }
            }
        }
        for blocks in &mut holding.blocks {
            *blocks = joined(std::mem::take(blocks));
        }
        holding
    }

    /// Adds what a process holds on a device.
    fn hold(&mut self, holding: &mut Holding, process: usize, device: u8, counters: &Counters, rows: &[Row]) {
        let figures = figure::of(counters);
        (0..FIGURES).for_each(|figure| holding.figures[figure] += figures[figure]);
        let mut programs: HashMap<u64, u32> = HashMap::new();
        for row in rows.iter().filter(|row| row.device == device && row.kind() == Some(RowKind::Program)) {
            programs.insert(row.id, self.name(process, row.name));
        }
        for row in rows.iter().filter(|row| row.device == device) {
            let key =
                Key { chip: holding.chip, process, class: row.class, name: self.name(process, row.name) };
            match row.kind() {
                Some(RowKind::Buffer) => {
                    self.count(holding.groups.entry(key).or_default(), process, row);
                    self.block(holding, key, row);
                }
                Some(RowKind::Cb) if counters.lane_of(row.aux).is_some() => {
                    let name = programs.get(&row.aux).copied().unwrap_or(key.name);
                    self.block(holding, Key { name, ..key }, row);
                }
                _ => {}
            }
        }
        for lane in counters.lanes.iter().filter(|lane| lane.cb_bytes > 0) {
            let name = programs.get(&lane.program).copied().unwrap_or(Texts::NONE);
            let key = Key { chip: holding.chip, process, class: Class::Cb as u8, name };
            let held = holding.groups.entry(key).or_default();
            held.bytes += lane.cb_bytes;
            held.requested += lane.cb_bytes;
            held.count += 1;
        }
    }

    fn count(&self, held: &mut Held, process: usize, row: &Row) {
        let ns = self.ns(process, row.time);
        held.oldest_ns = if held.count == 0 { ns } else { held.oldest_ns.min(ns) };
        held.bytes = held.bytes.saturating_add(row.size);
        held.requested = held.requested.saturating_add(row.requested());
        held.count += 1;
        held.new += u64::from(ns >= self.begin_ns);
    }

    /// Adds the place of a row to the map.
    fn block(&self, holding: &mut Holding, key: Key, row: &Row) {
        let (Some(class), Some(entry)) = (row.class(), &self.chips.list[holding.chip].entry) else { return };
        let parts = match class {
            Class::Cb => Some(u64::from(row.cores)).filter(|cores| *cores > 0),
            _ => entry.pool(class).map(|pool| pool.banks).filter(|banks| *banks > 0),
        };
        let memory = if class.is_dram() { 0 } else { 1 };
        if class == Class::SystemMemory || row.size == 0 {
            return;
        }
        match parts {
            Some(parts) if row.address < 1 << 48 => {
                let len = row.size.div_ceil(parts);
                holding.blocks[memory].push(Block { start: row.address, len, key, count: 1 });
            }
            _ => holding.unplaced += 1,
        }
    }

    /// Notes what a process holds as never freed: it ended, or the record did.
    fn leave(&mut self, process: usize) {
        for row in self.rows_of(process) {
            let Some(chip) = self.shown_chip(process, row.device) else { continue };
            if row.kind() == Some(RowKind::Buffer) {
                let key = Key { chip, process, class: row.class, name: self.name(process, row.name) };
                let mut held = self.left.get(&key).copied().unwrap_or_default();
                self.count(&mut held, process, &row);
                if self.left.len() < MAX_GROUPS || self.left.contains_key(&key) {
                    self.left.insert(key, held);
                } else {
                    self.unlisted_groups += 1;
                }
            }
        }
        self.tracked[process] = Tracked { names: self.tracked[process].names.clone(), ..Tracked::default() };
    }

    fn event(&mut self, at: At, process: usize, event: &Event) -> bool {
        if event.device == NO_DEVICE {
            return true;
        }
        let Some(chip) = self.chips.place(process, event.device) else { return false };
        if !self.is_shown[chip] {
            return true;
        }
        let index = usize::from(event.device);
        if event.kind() == Some(EventKind::KernelDispatch) {
            self.dispatch(at, process, chip, event);
        }
        let tracked = &mut self.tracked[process];
        if index >= tracked.counters.len() {
            tracked.counters.resize(index + 1, Counters::ZERO);
        }
        if tracked.counters[index].apply(event).is_err() {
            return false;
        }
        if event.kind() == Some(EventKind::Free) && event.has(flags::DROPPED) {
            self.drop_row(process, chip, event);
        }
        self.tracked[process].live.apply(event);
        true
    }

    #[cold]
    fn drop_row(&mut self, process: usize, chip: usize, event: &Event) {
        let row = self.tracked[process].live.get(event.row).copied();
        let row = row.unwrap_or(Row::from_event(event));
        let key = Key { chip, process, class: event.class, name: self.name(process, row.name) };
        let mut held = self.dropped.get(&key).copied().unwrap_or_default();
        self.count(&mut held, process, &row);
        if self.dropped.len() < MAX_GROUPS || self.dropped.contains_key(&key) {
            self.dropped.insert(key, held);
        } else {
            self.unlisted_groups += 1;
        }
    }

    fn dispatch(&mut self, at: At, process: usize, chip: usize, event: &Event) {
        let name = self.name(process, event.name);
        if self.programs.len() >= MAX_GROUPS && !self.programs.contains_key(&(chip, process, name)) {
            self.unlisted_groups += 1;
            return;
        }
        let program = self.programs.entry((chip, process, name)).or_default();
        if program.dispatches == 0 {
            program.first_ns = at.ns;
        }
        program.dispatches += event.times();
        program.cached += if event.has(flags::CACHED) { event.times() } else { 0 };
        program.last_ns = at.ns;
        if event.has(flags::RESIDENT) {
            program.cb_bytes = program.cb_bytes.max(event.size);
            program.kernel_bytes = program.kernel_bytes.max(event.dispatched_kernels().iter().sum());
        }
    }
}

impl Visitor for Census<'_> {
    fn visit(&mut self, at: At, process: usize, change: Change<'_>) -> bool {
        if self.next < self.whens.len() {
            self.look(at);
        }
        match change {
            Change::Event(event) => return self.event(at, process, event),
            Change::Known(state) => {
                let names = std::mem::take(&mut self.tracked[process].names);
                let mut live = Live::default();
                state.rows.iter().for_each(|row| live.insert(*row));
                let counters = state.counters.clone();
                self.tracked[process] = Tracked { live, counters, names, ..Tracked::default() };
            }
            Change::Unknown => {
                let names = std::mem::take(&mut self.tracked[process].names);
                self.tracked[process] = Tracked { names, is_unknown: true, ..Tracked::default() };
            }
            Change::MayHaveEnded => self.tracked[process].may_have_ended = true,
            Change::Ended => self.leave(process),
            Change::Incomplete => self.unknown_until_end = true,
            Change::Begin => {}
        }
        true
    }
}

/// Blocks by address; neighbours that are of one kind are one.
fn joined(mut blocks: Vec<Block>) -> Vec<Block> {
    blocks.sort_unstable();
    let mut list: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match list.last_mut() {
            Some(last) if last.key == block.key && last.start + last.len == block.start => {
                last.len += block.len;
                last.count += block.count;
            }
            _ => list.push(block),
        }
    }
    list
}
