//! What is known of all processes and devices at one moment of merged time. No I/O, no clock of its own:
//! processes, events and states go in, rows come out.

mod advance;
pub(crate) mod device;
pub(crate) mod failures;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod notice;
mod rates;
pub(crate) mod rows;
mod snapshot;
pub(crate) mod timeline;
pub(crate) mod uncounted;

use std::collections::{BTreeMap, BTreeSet};

use shm_layout::claims::{Claims, Standing};
use shm_layout::table::{
    DeviceStats, MAX_PROCESSES, MAX_USAGES, ProcessStats, TABLE_DEVICES, UsageStats, usage_flags,
};
use shm_layout::{Counters, DeviceEntry, MAX_DEVICES};
use tt_shm_os::ClockKind;

use crate::model::device::Device;
use crate::model::failures::Failures;
use crate::model::figures::Share;
use crate::model::notice::{Holdings, Notices};
use crate::model::rates::Rate;
use crate::model::rows::Rows;
use crate::model::timeline::{Doubt, Span, Timeline};
use crate::model::uncounted::{Forgotten, Pair, Recount, Uncounted};
use crate::segments::clock::Clock;

/// Device rows that users other than our own may fill each: as many as a process can list.
const FOREIGN_DEVICES: usize = MAX_DEVICES;
/// Device rows that all of them may fill together; the rest stays for our own.
const ALL_FOREIGN_DEVICES: usize = TABLE_DEVICES - MAX_DEVICES / 2;
/// Processes on devices that are counted. The table has rows for the first of them; the others are in all sums.
const MAX_COUNTED: usize = 1 << 18;
/// The same of each user other than our own: bounds what a crowd of processes can make us keep.
const FOREIGN_COUNTED: usize = if cfg!(test) { 8 } else { 1 << 16 };
/// Rows of the table for them that each other user may fill.
const FOREIGN_USAGES: usize = MAX_USAGES / 4;
/// Longer than any poll takes: what is later than that is not true.
const MAX_POLL_NS: u64 = 1_000_000_000;
/// Rows that are given to those without one in a poll.
const MAX_PROMOTED: usize = 256;

/// A process, as the table shows it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) stats: ProcessStats,
    pub(crate) rate: Rate,
    /// `None` if its times mean nothing here.
    pub(crate) clock: Option<ClockKind>,
    /// When its counters were last read as a whole, 0 if never.
    pub(crate) read_at: u64,
    /// Usage row by the process's device index; `None` if there was no room for one.
    pub(crate) usages: Vec<Option<usize>>,
}

/// A process on a device.
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) process: usize,
    pub(crate) device: usize,
    pub(crate) uid: u32,
    /// What the process says of the device.
    pub(crate) entry: DeviceEntry,
    /// Whether that is not what is taken for true.
    pub(crate) conflict: bool,
    /// Times in ticks of the process's clock.
    pub(crate) counters: Counters,
    /// Whether the row is freed with the next generation.
    retired: bool,
}

/// How many processes on devices a user has.
#[derive(Clone, Copy, Debug, Default)]
struct UserUsages {
    counted: usize,
    /// Those with a row of the table's.
    listed: usize,
}

/// Counts over everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) events: u64,
    pub(crate) missed: u64,
    pub(crate) late: u64,
    /// Processes whose file was gone before it could be opened.
    pub(crate) lost: u64,
}

/// The window that peaks refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) since: u64,
    /// Windows opened by a reset.
    pub(crate) count: u64,
    pub(crate) gap: Option<(u64, u64)>,
    /// The first window of all reaches back to the start of the processes that were found.
    pub(crate) reaches_back: bool,
}

impl Window {
    /// Events before this do not count; 0 if all do.
    pub(crate) fn begin(&self) -> u64 {
        if self.reaches_back { 0 } else { self.since }
    }

    /// A process was found at the start.
    pub(crate) fn reach_back(&mut self, started: u64) {
        if self.count == 0 && self.gap.is_none() {
            (self.reaches_back, self.since) = (true, self.since.min(started));
        }
    }

    /// Whether a time is known and in the window.
    pub(crate) fn has(&self, time: u64) -> bool {
        time != 0 && time >= self.begin()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) devices: Rows<Device>,
    pub(crate) processes: Rows<Process>,
    pub(crate) usages: Rows<Usage>,
    pub(crate) notices: Notices,
    pub(crate) failures: Failures,
    pub(crate) totals: Totals,
    pub(crate) window: Window,
    pub(crate) clock: Clock,
    /// When the aggregator began to look.
    pub(crate) started: u64,
    /// Since when the sums are those of all processes, so that histories can be kept.
    pub(crate) history_since: u64,
    /// Time of the poll that is running.
    pub(crate) now: u64,
    /// Everything that processes had reported by then is folded.
    pub(crate) as_of: u64,
    /// How far events were folded at the last tick.
    advanced_to: u64,
    /// Whether of some process less is folded than of the others.
    pub(crate) behind: bool,
    /// Whether somebody who could not be read may have something on any device.
    incomplete: bool,
    /// When, in the window, somebody who was not read may have had something on any device, also on one that is named
    /// only later.
    unread: Option<Span>,
    /// The processes that an earlier aggregator followed up to the gap, by identity, as it last saw them.
    pub(crate) followed_before: BTreeMap<u64, ProcessStats>,
    uid: u32,
    generation: u64,
    dirty: bool,
    /// Usage rows to free with the next generation.
    retired: Vec<usize>,
    /// Devices of which somebody said something new, or left, in this generation.
    unsettled: BTreeSet<usize>,
    /// Devices on which counters were read as a whole in this generation.
    pub(crate) uncapped: BTreeSet<usize>,
    /// Whether rows of the table were freed that those without one have not been offered.
    promotable: bool,
    usages_of: BTreeMap<u32, UserUsages>,
    /// Processes on devices that found no room.
    pub(crate) uncounted: Uncounted,
    /// Counters of such processes, by process row, that wait for their moment in the merge.
    pub(crate) recounts: BTreeMap<usize, Recount>,
    /// Chips that somebody used who was not counted, or that had a row before.
    forgotten: Forgotten,
}

impl Model {
    pub(crate) fn new(clock: Clock, uid: u32, now: u64) -> Model {
        Model {
            devices: Rows::new(TABLE_DEVICES),
            processes: Rows::new(MAX_PROCESSES),
            usages: Rows::new(MAX_COUNTED),
            notices: Notices::default(),
            failures: Failures::default(),
            totals: Totals::default(),
            window: Window { since: now, ..Window::default() },
            clock,
            started: now,
            history_since: u64::MAX,
            now,
            as_of: 0,
            advanced_to: 0,
            behind: false,
            incomplete: false,
            unread: None,
            followed_before: BTreeMap::new(),
            uid,
            generation: 0,
            dirty: false,
            retired: Vec::new(),
            unsettled: BTreeSet::new(),
            uncapped: BTreeSet::new(),
            promotable: false,
            usages_of: BTreeMap::new(),
            uncounted: Uncounted::default(),
            recounts: BTreeMap::new(),
            forgotten: Forgotten::default(),
        }
    }

    /// When a process's clock showed so many ticks; 0 if that is not known. A clock that went back takes ticks of before
    /// for later than now.
    pub(crate) fn time_of(&self, clock: Option<ClockKind>, ticks: u64) -> u64 {
        let time = if ticks == 0 { 0 } else { self.clock.to_ns(clock, ticks) };
        if time > self.now.saturating_add(MAX_POLL_NS) { 0 } else { time }
    }

    /// The last complete generation.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The number of the generation that is being made. Asking for it means that something changes.
    #[inline]
    pub(crate) fn mark_changed(&mut self) -> u64 {
        self.dirty = true;
        self.generation + 1
    }

    /// Ends the generation, if anything changed in it.
    pub(crate) fn end_generation(&mut self) -> bool {
        // Both ask everybody on the device, so once for all who came and went.
        for device in std::mem::take(&mut self.unsettled) {
            self.settle_claims(device);
        }
        while let Some(device) = self.uncapped.first().copied() {
            self.cap_peaks(device);
        }
        self.generation += u64::from(self.dirty);
        std::mem::take(&mut self.dirty)
    }

    /// Adds a process; `None` if there is no row for it.
    pub(crate) fn add_process(&mut self, stats: ProcessStats, clock: Option<ClockKind>) -> Option<usize> {
        let generation = self.mark_changed();
        let process = Process { stats, rate: Rate::default(), clock, read_at: 0, usages: Vec::new() };
        match self.processes.insert(generation, process) {
            Ok(row) => Some(row),
            Err(process) => {
                let oldest = self.oldest_ended()?;
                self.processes.remove(generation, oldest);
                self.processes.insert(generation, process).ok()
            }
        }
    }

    fn oldest_ended(&self) -> Option<usize> {
        let ended = self.processes.values().filter(|(_, process)| process.stats.ended != 0);
        ended.min_by_key(|(_, process)| process.stats.ended).map(|(row, _)| row)
    }

    /// Adds the next device of a process's list.
    pub(crate) fn add_device(&mut self, process: usize, entry: &DeviceEntry) {
        let uid = self.uid_of(process);
        let usage = self.count(process, entry, uid);
        let generation = self.mark_changed();
        let Some(owner) = self.processes.change(generation, process) else { return };
        let device = owner.usages.len();
        owner.usages.push(usage);
        if usage.is_none() {
            self.uncounted.add((process, device), entry.chip_id, uid);
        }
    }

    fn uid_of(&self, process: usize) -> u32 {
        self.processes.get(process).map_or(0, |process| process.stats.uid as u32)
    }

    /// Gives a process a row for one of its devices, if there is room.
    fn count(&mut self, process: usize, entry: &DeviceEntry, uid: u32) -> Option<usize> {
        let device = self.device_row(entry, uid)?;
        let usage = self.usage_row(process, device, entry, uid)?;
        let generation = self.mark_changed();
        self.devices.change(generation, device)?.usages.push(usage);
        self.unsettled.insert(device);
        Some(usage)
    }

    fn row_of_chip(&self, chip: u64) -> Option<usize> {
        self.devices.values().find(|(_, device)| device.entry.chip_id == chip).map(|(row, _)| row)
    }

    pub(crate) fn device_row(&mut self, entry: &DeviceEntry, uid: u32) -> Option<usize> {
        let chip = entry.chip_id;
        if let Some(row) = self.row_of_chip(chip) {
            return Some(row);
        }
        let room = self.room_for_device(uid)?;
        let generation = self.mark_changed();
        if let Some(gone) = room.and_then(|unused| self.devices.remove(generation, unused)) {
            self.forgotten.note(gone.entry.chip_id, self.now);
        }
        let mut device = Device::new(chip, uid, Timeline::new(self.window.begin(), self.started));
        device.set_incomplete(self.incomplete);
        if let Some(span) = self.unread {
            device.peaks.doubt(span, &Doubt::ANYTHING_MORE);
            device.peaks.note_others(span);
        }
        if self.now >= self.history_since {
            // Until now, nobody who is followed had anything on it.
            device.observe(self.now);
        }
        let unknown_until = if self.uncounted.is_on(chip) { self.now } else { self.forgotten.take(chip) };
        if unknown_until > 0 {
            let life = Span { from: 0, to: unknown_until };
            device.doubt(life, &Doubt::ANYTHING_MORE);
            device.peaks.note_others(life);
        }
        // Who was not counted on it had no row to be counted in.
        self.uncounted.ask_again();
        self.devices.insert(generation, device).ok()
    }

    /// Whether a device that a user names may have a row, and in place of which, if not in a free one. A user's own rows
    /// that nobody uses go first, then those of other users; what our own user had is kept as long as can be.
    fn room_for_device(&self, uid: u32) -> Option<Option<usize>> {
        let theirs = |device: &Device| device.uid == uid;
        let foreign = |device: &Device| device.uid != self.uid;
        let count =
            |of: &dyn Fn(&Device) -> bool| self.devices.values().filter(|(_, device)| of(device)).count();
        let unused = |of: &dyn Fn(&Device) -> bool| {
            let rows = self.devices.values().filter(|(_, device)| device.usages.is_empty() && of(device));
            rows.min_by_key(|(_, device)| device.gone_until).map(|(row, _)| row)
        };
        if uid != self.uid && count(&theirs) >= FOREIGN_DEVICES {
            return unused(&theirs).map(Some);
        }
        if uid != self.uid && count(&foreign) >= ALL_FOREIGN_DEVICES {
            return unused(&theirs).or_else(|| unused(&foreign)).map(Some);
        }
        if self.devices.count() < TABLE_DEVICES {
            return Some(None);
        }
        unused(&theirs).or_else(|| unused(&foreign)).or_else(|| unused(&|_| true)).map(Some)
    }

    /// The next process on a device that can be counted now and could not before.
    pub(crate) fn next_countable(&mut self) -> Option<usize> {
        let ((process, _), chip, uid) = self.uncounted.next_due()?;
        let has_row = self.row_of_chip(chip).is_some() || self.room_for_device(uid).is_some();
        (has_row && self.may_count(uid)).then_some(process)
    }

    /// Counts a process on the devices where it was not, as far as there is room: its counters there were those of the
    /// recount, and the merge has come to `time`.
    pub(crate) fn count_again(&mut self, process: usize, time: u64) {
        let Some(recount) = self.recounts.remove(&process) else { return };
        for (device, (entry, counters)) in recount.devices.iter().enumerate() {
            self.count_pair((process, device), entry, *counters, time);
        }
        // It may have registered more since.
        self.uncounted.ask_again();
    }

    /// The same for one device, if the process is not counted on it.
    pub(crate) fn count_pair(&mut self, pair: Pair, entry: &DeviceEntry, counters: Counters, time: u64) {
        let Some((chip, uid)) = self.uncounted.remove(pair) else { return };
        let (process, device) = pair;
        // It is what it was registered as: a chip does not change.
        let usage = if entry.chip_id == chip { self.count(process, entry, uid) } else { None };
        let Some(usage) = usage else { return self.uncounted.add(pair, chip, uid) };
        let generation = self.mark_changed();
        let Some(owner) = self.processes.change(generation, process) else { return };
        let stats = owner.stats;
        if let Some(row) = owner.usages.get_mut(device) {
            *row = Some(usage);
        }
        self.fold_counters(usage, counters, time, self.unfollowed_since(stats.identity, stats.started));
    }

    /// A process that was not counted on a chip is gone from it.
    fn forget_uncounted(&mut self, pair: Pair) {
        let Some((chip, _)) = self.uncounted.remove(pair) else { return };
        let started = self.processes.get(pair.0).map_or(0, |process| process.stats.started);
        let life = Span { from: started, to: self.now };
        let Some(row) = self.row_of_chip(chip) else { return self.forgotten.note(chip, self.now) };
        self.doubt_holders(row, life.from);
        let generation = self.mark_changed();
        if let Some(device) = self.devices.change(generation, row) {
            device.doubt(life, &Doubt::ANYTHING_MORE);
            device.peaks.note_others(life);
        }
    }

    /// Whether somebody who could not be read may have something on any device. Who was read and found no room is on
    /// one that is known, and makes only that one incomplete.
    pub(crate) fn set_unread(&mut self, unread: bool) {
        if self.uncounted.len() == 0 {
            return self.set_incomplete(unread);
        }
        self.incomplete = unread;
        if unread {
            self.note_unread(Span { from: self.now, to: self.now });
        }
        for row in 0..self.devices.high_water() {
            let Some(device) = self.devices.get_mut(row) else { continue };
            let incomplete = unread || self.uncounted.is_on(device.entry.chip_id);
            if device.set_incomplete(incomplete) {
                let generation = self.mark_changed();
                self.devices.change(generation, row);
            }
        }
    }

    /// In that span, somebody who was not read may have had something on any device.
    pub(crate) fn note_unread(&mut self, span: Span) {
        self.unread = Some(self.unread.map_or(span, |unread| unread.union(span)));
    }

    /// Whether one more of a user's processes on devices can be counted.
    fn may_count(&self, uid: u32) -> bool {
        let counted = self.usages_of.get(&uid).map_or(0, |theirs| theirs.counted);
        let first = if self.may_list(uid) { 0 } else { MAX_USAGES };
        (uid == self.uid || counted < FOREIGN_COUNTED) && self.usages.free_from(first).is_some()
    }

    fn usage_row(&mut self, process: usize, device: usize, entry: &DeviceEntry, uid: u32) -> Option<usize> {
        if !self.may_count(uid) {
            return None;
        }
        let usage = Usage {
            process,
            device,
            uid,
            entry: *entry,
            conflict: false,
            counters: Counters::ZERO,
            retired: false,
        };
        let first = if self.may_list(uid) { 0 } else { MAX_USAGES };
        let generation = self.mark_changed();
        let row = self.usages.insert_from(first, generation, usage).ok()?;
        let theirs = self.usages_of.entry(uid).or_default();
        theirs.counted += 1;
        theirs.listed += usize::from(row < MAX_USAGES);
        Some(row)
    }

    /// Whether a user's processes may have one row more of the table's.
    fn may_list(&self, uid: u32) -> bool {
        uid == self.uid || self.usages_of.get(&uid).is_none_or(|theirs| theirs.listed < FOREIGN_USAGES)
    }

    /// Frees a usage row.
    fn remove_usage(&mut self, row: usize) {
        let generation = self.mark_changed();
        let Some(usage) = self.usages.remove(generation, row) else { return };
        if let Some(theirs) = self.usages_of.get_mut(&usage.uid) {
            theirs.counted -= 1;
            theirs.listed -= usize::from(row < MAX_USAGES);
        }
        self.promotable |= row < MAX_USAGES;
        self.uncounted.ask_again();
    }

    /// Processes on devices that are counted and have no row of the table's.
    pub(crate) fn unlisted(&self) -> usize {
        self.usages.count_from(MAX_USAGES)
    }

    /// Processes on devices that the table does not show, counted or not.
    pub(crate) fn overflow(&self) -> u64 {
        (self.uncounted.len() + self.unlisted()) as u64
    }

    /// Gives rows of the table that were freed to some who have none.
    pub(crate) fn promote_usages(&mut self) {
        for _ in 0..MAX_PROMOTED {
            let Some((row, free)) = self.promotion() else {
                self.promotable = false;
                return;
            };
            self.move_usage(row, free);
        }
    }

    /// A row beyond the table's, and the one of the table's that it may have.
    fn promotion(&self) -> Option<(usize, usize)> {
        let free = self.usages.free_from(0).filter(|free| *free < MAX_USAGES)?;
        let may_list = |usage: &Usage| !usage.retired && self.may_list(usage.uid);
        let (row, _) = self.usages.values_from(MAX_USAGES).find(|(_, usage)| may_list(usage))?;
        Some((row, free))
    }

    fn move_usage(&mut self, from: usize, to: usize) {
        let generation = self.mark_changed();
        let Some(usage) = self.usages.remove(generation, from) else { return };
        let (process, device) = (usage.process, usage.device);
        let uid = usage.uid;
        let Ok(row) = self.usages.insert_from(to, generation, usage) else { return };
        self.usages_of.entry(uid).or_default().listed += 1;
        let renumber = |number: &mut usize| *number = if *number == from { row } else { *number };
        if let Some(process) = self.processes.change(generation, process) {
            process.usages.iter_mut().flatten().for_each(renumber);
        }
        if let Some(device) = self.devices.change(generation, device) {
            device.usages.iter_mut().for_each(renumber);
        }
    }

    /// What a process says of a device is more than before.
    pub(crate) fn update_claim(&mut self, process: usize, device: usize, entry: &DeviceEntry) {
        let row = self.processes.get(process).and_then(|process| *process.usages.get(device)?);
        let Some(row) = row.filter(|row| self.usages.get(*row).is_some_and(|usage| usage.entry != *entry))
        else {
            return;
        };
        let generation = self.mark_changed();
        let Some(usage) = self.usages.change(generation, row) else { return };
        usage.entry = *entry;
        let device = usage.device;
        self.unsettled.insert(device);
    }

    /// A process said what it says of a device no longer.
    pub(crate) fn withdraw_claim(&mut self, device: usize) {
        self.unsettled.insert(device);
    }

    /// Settles anew what is taken for true of a device, after somebody said something or left.
    fn settle_claims(&mut self, row: usize) {
        let Some(device) = self.devices.get(row) else { return };
        let usages = device.usages.iter().filter_map(|row| Some((*row, self.usages.get(*row)?)));
        let mut usages: Vec<(usize, &Usage)> = usages.collect();
        usages.sort_by_key(|(_, usage)| usage.process);
        let mut claims = Claims::default();
        for process in usages.chunk_by(|(_, one), (_, two)| one.process == two.process) {
            claims.add(Standing::of(process[0].1.uid), process.iter().map(|(_, usage)| &usage.entry));
        }
        let settled = claims.settle(device.entry.chip_id);
        let disputed: Vec<(usize, bool)> =
            usages.iter().map(|(row, usage)| (*row, settled.is_disputed_by(&usage.entry))).collect();
        let conflict = disputed.iter().any(|(_, disputed)| *disputed);
        let charged = self.charged_for(device.uid, usages.iter().map(|(_, usage)| usage.uid));
        for (row, disputed) in disputed {
            if self.usages.get(row).is_some_and(|usage| usage.conflict != disputed) {
                let generation = self.mark_changed();
                self.usages.change(generation, row).expect("just found").conflict = disputed;
            }
        }
        if self.devices.get_mut(row).is_some_and(|device| device.identify(&settled, conflict)) {
            let generation = self.mark_changed();
            self.devices.change(generation, row);
        }
        if let Some(device) = self.devices.get_mut(row) {
            device.uid = charged;
        }
    }

    /// Which user's share of the rows a device is part of: our own if one of ours is on it, else that of who made the
    /// row, as long as one of theirs is.
    fn charged_for(&self, made_by: u32, mut users: impl Iterator<Item = u32> + Clone) -> u32 {
        let is_on_it = |uid: &u32| users.clone().any(|user| user == *uid);
        [self.uid, made_by].into_iter().find(is_on_it).or_else(|| users.next()).unwrap_or(made_by)
    }

    /// Since when a process that we found was not followed: from its start, or since an earlier aggregator ended that
    /// did.
    pub(crate) fn unfollowed_since(&self, identity: u64, started: u64) -> u64 {
        let known = self.window.gap.filter(|_| self.followed_before.contains_key(&identity));
        known.map_or(started, |(gap, _)| gap.max(started))
    }

    /// The row of a device.
    pub(crate) fn device_stats(&self, generation: u64, device: &Device) -> DeviceStats {
        device.stats(generation, || self.counters_on(device))
    }

    /// The row of a process.
    pub(crate) fn process_stats(&self, generation: u64, process: &Process) -> ProcessStats {
        let (events_per_1000s, devices) = (process.rate.per_1000s(), process.usages.len() as u64);
        ProcessStats { generation, events_per_1000s, devices, ..process.stats }
    }

    /// The row of a process on a device.
    pub(crate) fn usage_stats(&self, generation: u64, usage: &Usage) -> UsageStats {
        let mut counters = usage.counters;
        if let Some(process) = self.processes.get(usage.process) {
            counters.map_times(|ticks| self.time_of(process.clock, ticks));
        }
        UsageStats {
            generation,
            process: usage.process as u64,
            device: usage.device as u64,
            logical_id: usage.entry.logical().unwrap_or(u64::MAX),
            allocator: usage.entry.allocator,
            flags: if usage.conflict { usage_flags::CONFLICT } else { 0 },
            entry: usage.entry,
            counters,
        }
    }

    /// The counters of all processes on a device.
    pub(crate) fn counters_on<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = &'a Counters> {
        counters_of(&self.usages, &device.usages)
    }

    /// What a process holds, all devices together.
    pub(crate) fn holdings(&self, process: usize) -> Holdings {
        let mut held = Holdings::default();
        let rows = self.processes.get(process).map_or(&[][..], |process| &process.usages);
        for usage in rows.iter().flatten().filter_map(|row| self.usages.get(*row)) {
            held.add(&usage.counters);
        }
        held
    }

    /// Takes away a process's usage rows, each with the row of its device.
    pub(crate) fn take_usages(&mut self, process: usize) -> Vec<(usize, usize)> {
        let generation = self.mark_changed();
        self.recounts.remove(&process);
        let Some(owner) = self.processes.change(generation, process) else { return Vec::new() };
        let rows = std::mem::take(&mut owner.usages);
        for (device, _) in rows.iter().enumerate().filter(|(_, row)| row.is_none()) {
            self.forget_uncounted((process, device));
        }
        rows.into_iter().flatten().filter_map(|row| Some((row, self.usages.get(row)?.device))).collect()
    }

    /// Empties a usage row. It stays for one generation with nothing in it, so that a reader of a generation that is being
    /// written sees by its generation that something changed; a row that is not in use has none.
    pub(crate) fn empty(&mut self, usage: usize) {
        let generation = self.mark_changed();
        if let Some(usage) = self.usages.change(generation, usage) {
            (usage.counters, usage.retired) = (Counters::ZERO, true);
        }
        self.retired.push(usage);
    }

    /// Frees the rows that the last generation showed as empty.
    pub(crate) fn free_retired(&mut self) {
        for row in std::mem::take(&mut self.retired) {
            self.remove_usage(row);
        }
    }
}

/// The counters in these usage rows.
pub(crate) fn counters_of<'a>(
    usages: &'a Rows<Usage>,
    rows: &'a [usize],
) -> impl Iterator<Item = &'a Counters> {
    rows.iter().filter_map(|row| Some(&usages.get(*row)?.counters))
}

/// The same, with whose they are.
pub(crate) fn shares_of<'a>(
    usages: &'a Rows<Usage>,
    processes: &'a Rows<Process>,
    rows: &'a [usize],
) -> impl Iterator<Item = Share<'a>> {
    rows.iter().filter_map(|row| {
        let usage = usages.get(*row)?;
        let stats = &processes.get(usage.process)?.stats;
        Some(Share { identity: stats.identity, pid: stats.pid, counters: &usage.counters })
    })
}
