//! Everything known about processes and devices at one moment of merged time. No I/O and no clock of its own:
//! processes, events and counters go in, rows come out.

mod advance;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod failures;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod notice;
pub(crate) mod quota;
mod rates;
mod reconcile;
pub(crate) mod regions;
pub(crate) mod rows;
pub(crate) mod slice;
pub(crate) mod snapshot;
pub(crate) mod timeline;
pub(crate) mod uncounted;
pub(crate) mod window;

use std::collections::{BTreeMap, BTreeSet};

use shm_layout::table::{
    DeviceStats, MAX_PROCESSES, MAX_USAGES, ProcessStats, TABLE_DEVICES, UsageStats, usage_flags,
};
use shm_layout::{Counters, DeviceEntry, NO_DEVICE, Source};
use tt_shm_os::ClockKind;

use crate::model::device::Device;
use crate::model::driver::DriverDevices;
use crate::model::failures::Failures;
use crate::model::figures::Share;
use crate::model::notice::{Holdings, Notices};
use crate::model::quota::{DeviceRoom, Usage, Usages, room_for_device};
use crate::model::rates::Rate;
use crate::model::reconcile::reconcile;
use crate::model::regions::RegionRows;
use crate::model::rows::Rows;
use crate::model::slice::{Doubt, Span};
use crate::model::timeline::Timeline;
use crate::model::uncounted::{Forgotten, Pair, Recount, Uncounted};
use crate::model::window::Window;
use crate::segments::clock::Clock;

/// Longer than any poll takes. A time that is further ahead than this is not believed.
const MAX_POLL_NS: u64 = 1_000_000_000;
/// Usages that are moved into free rows of the table per poll.
const MAX_PROMOTED: usize = 256;

/// A process, as the table shows it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) stats: ProcessStats,
    pub(crate) rate: Rate,
    /// The clock of its events; `None` if its times cannot be converted here.
    pub(crate) clock: Option<ClockKind>,
    /// When its counters were last read in full; 0 if never.
    pub(crate) read_at: u64,
    /// The usage row of each of its devices, by the process's own device index; `None` if there was no room for one.
    pub(crate) usages: Vec<Option<usize>>,
}

/// Counts over all processes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) events: u64,
    pub(crate) missed: u64,
    pub(crate) late: u64,
    /// Processes whose file was gone before it could be opened.
    pub(crate) lost: u64,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) devices: Rows<Device>,
    pub(crate) processes: Rows<Process>,
    pub(crate) usages: Usages,
    pub(crate) notices: Notices,
    pub(crate) failures: Failures,
    /// What the kernel driver tells.
    pub(crate) driver: DriverDevices,
    /// What unmodified tt-metal publishes.
    pub(crate) regions: RegionRows,
    pub(crate) totals: Totals,
    pub(crate) window: Window,
    pub(crate) clock: Clock,
    /// When the aggregator started.
    pub(crate) started: u64,
    /// Since when the sums cover all processes, so that histories can be kept. `u64::MAX` until then.
    pub(crate) history_since: u64,
    /// When the current poll began.
    pub(crate) now: u64,
    /// Everything that processes had reported by this time is folded.
    pub(crate) as_of: u64,
    /// The time of the last [`Model::advance`].
    pub(crate) advanced_to: u64,
    /// Whether some process has been folded less far than the others.
    pub(crate) behind: bool,
    /// Whether a process that cannot be read may hold memory on any device.
    unread: bool,
    /// When in the window an unread process may have held memory. It may have been on any device, including one that
    /// is named only later.
    unread_span: Option<Span>,
    /// The processes that an earlier aggregator followed up to the gap, by identity, as it last saw them.
    pub(crate) followed_before: BTreeMap<u64, ProcessStats>,
    uid: u32,
    generation: u64,
    dirty: bool,
    /// Usage rows to free with the next generation.
    retired: Vec<usize>,
    /// Devices about which a claim was added, changed or withdrawn in this generation.
    unreconciled: BTreeSet<usize>,
    /// Devices on which counters were read in full in this generation.
    pub(crate) uncapped: BTreeSet<usize>,
    /// Whether table rows became free that have not been offered to the usages without one.
    promotable: bool,
    /// Usages for which there was no room.
    pub(crate) uncounted: Uncounted,
    /// Counters of processes with such usages, by process row, that wait for their turn in the merge.
    pub(crate) recounts: BTreeMap<usize, Recount>,
    /// Chips that were used by a process that was not counted, or that lost their row.
    forgotten: Forgotten,
    /// Processes whose own figures are not to be relied on, by row: nothing that they are part of is exact.
    distrusted: BTreeSet<usize>,
    /// Processes with something that is not folded yet, and is earlier than what others reported and was folded.
    passed: BTreeSet<usize>,
}

impl Model {
    pub(crate) fn new(clock: Clock, uid: u32, now: u64) -> Model {
        Model {
            devices: Rows::new(TABLE_DEVICES),
            processes: Rows::new(MAX_PROCESSES),
            usages: Usages::new(uid),
            notices: Notices::default(),
            failures: Failures::default(),
            driver: DriverDevices::default(),
            regions: RegionRows::default(),
            totals: Totals::default(),
            window: Window { since: now, ..Window::default() },
            clock,
            started: now,
            history_since: u64::MAX,
            now,
            as_of: 0,
            advanced_to: 0,
            behind: false,
            unread: false,
            unread_span: None,
            followed_before: BTreeMap::new(),
            uid,
            generation: 0,
            dirty: false,
            retired: Vec::new(),
            unreconciled: BTreeSet::new(),
            uncapped: BTreeSet::new(),
            promotable: false,
            uncounted: Uncounted::default(),
            recounts: BTreeMap::new(),
            forgotten: Forgotten::default(),
            distrusted: BTreeSet::new(),
            passed: BTreeSet::new(),
        }
    }

    /// Converts ticks of a process's clock to a time; 0 if it is not known. Ticks that a clock showed before it stepped
    /// back would convert to a time later than now.
    pub(crate) fn time_of(&self, clock: Option<ClockKind>, ticks: u64) -> u64 {
        let time = if ticks == 0 { 0 } else { self.clock.to_ns(clock, ticks) };
        if time > self.now.saturating_add(MAX_POLL_NS) { 0 } else { time }
    }

    /// The last complete generation.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Marks the model as changed; returns the generation that will publish the change.
    #[inline]
    pub(crate) fn mark_changed(&mut self) -> u64 {
        self.dirty = true;
        self.generation + 1
    }

    /// Ends the generation, if anything changed in it; returns whether anything did.
    pub(crate) fn end_generation(&mut self) -> bool {
        // Both look at every process on the device, so they run once per generation.
        for device in std::mem::take(&mut self.unreconciled) {
            self.reconcile_claims(device);
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

    /// Adds a usage row for a process on one of its devices, if there is room.
    fn count(&mut self, process: usize, entry: &DeviceEntry, uid: u32) -> Option<usize> {
        let device = self.device_row(entry, uid)?;
        if !self.usages.may_count(uid) {
            return None;
        }
        let generation = self.mark_changed();
        let usage = Usage {
            process,
            device,
            uid,
            entry: *entry,
            conflict: false,
            counters: Counters::ZERO,
            retired: false,
        };
        let usage = self.usages.insert(generation, usage)?;
        let source = self.processes.get(process).and_then(|owner| Source::from_code(owner.stats.source));
        let device_row = self.devices.change(generation, device)?;
        device_row.usages.push(usage);
        device_row.is_unclaimed = false;
        device_row.system_kernels_unseen |= !source.unwrap_or_default().sees_system_kernels();
        self.unreconciled.insert(device);
        Some(usage)
    }

    fn row_of_chip(&self, chip: u64) -> Option<usize> {
        self.devices.values().find(|(_, device)| device.entry.chip_id == chip).map(|(row, _)| row)
    }

    /// The row of a device that goes by another id than the one that a process gives it: the driver tells that it is
    /// the same. If nobody has reported on it yet, it goes by the id of the process from now on, provided that the driver
    /// knows that id, too, or none at all: nobody can rename a device by claiming its address.
    fn row_by_driver(&mut self, entry: &DeviceEntry) -> Option<usize> {
        let stats = self.driver.described_by(entry)?;
        let is_its_id = stats.chip_ids().next().is_none() || stats.chip_ids().any(|id| id == entry.chip_id);
        let row = usize::try_from(stats.device).ok()?;
        let generation = self.mark_changed();
        let device = self.devices.change(generation, row)?;
        if device.is_unclaimed && is_its_id {
            device.entry.chip_id = entry.chip_id;
        }
        Some(row)
    }

    /// Removes a device that nobody reports on.
    pub(crate) fn forget_device(&mut self, row: usize) {
        let generation = self.mark_changed();
        if let Some(gone) = self.devices.remove(generation, row) {
            self.forgotten.note(gone.entry.chip_id, self.now);
        }
    }

    /// The row of a device, which is added if it has none; `None` if there is no room for it.
    pub(crate) fn device_row(&mut self, entry: &DeviceEntry, uid: u32) -> Option<usize> {
        let chip = entry.chip_id;
        if let Some(row) = self.row_of_chip(chip).or_else(|| self.row_by_driver(entry)) {
            return Some(row);
        }
        let room = room_for_device(&self.devices, self.uid, uid)?;
        let generation = self.mark_changed();
        if let DeviceRoom::InPlaceOf(unused) = room
            && let Some(gone) = self.devices.remove(generation, unused)
        {
            self.forgotten.note(gone.entry.chip_id, self.now);
        }
        let mut device = Device::new(chip, uid, Timeline::new(self.window.begin(), self.started));
        device.set_incomplete(self.unread);
        if let Some(span) = self.unread_span {
            device.peaks.doubt(span, &Doubt::ANYTHING_MORE);
            device.peaks.note_others(span);
        }
        if self.now >= self.history_since {
            // Since histories began, no followed process held anything on it. What was before is not known.
            device.observe(self.now);
            device.history.flush();
            device.history.doubt(Span { from: 0, to: self.history_since });
        }
        let unknown_until = if self.uncounted.is_on(chip) { self.now } else { self.forgotten.take(chip) };
        if unknown_until > 0 {
            let life = Span { from: 0, to: unknown_until };
            device.doubt(life, &Doubt::ANYTHING_MORE);
            device.peaks.note_others(life);
        }
        // Processes that were not counted on this chip had no row to be counted in.
        self.uncounted.ask_again();
        self.devices.insert(generation, device).ok()
    }

    /// The next process with an uncounted usage that can be counted now.
    pub(crate) fn next_countable(&mut self) -> Option<usize> {
        let ((process, _), chip, uid) = self.uncounted.next_due()?;
        let has_row =
            self.row_of_chip(chip).is_some() || room_for_device(&self.devices, self.uid, uid).is_some();
        (has_row && self.usages.may_count(uid)).then_some(process)
    }

    /// Counts a process on the devices where it was not counted, as far as there is room. Its counters are those of the
    /// recount, and the merge has come to `time`.
    pub(crate) fn count_again(&mut self, process: usize, time: u64) {
        let Some(recount) = self.recounts.remove(&process) else { return };
        for (device, (entry, counters)) in recount.devices.iter().enumerate() {
            self.count_pair((process, device), entry, *counters, time);
        }
        // The process may have registered more devices since.
        self.uncounted.ask_again();
    }

    /// Counts a process on one device, if it is not counted there yet.
    pub(crate) fn count_pair(&mut self, pair: Pair, entry: &DeviceEntry, counters: Counters, time: u64) {
        let Some((chip, uid)) = self.uncounted.remove(pair) else { return };
        let (process, device) = pair;
        // A device keeps the chip that it was registered with.
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

    /// Removes an uncounted usage whose process has left the chip.
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

    /// Sets whether a process that cannot be read may hold memory on any device. A process that was read and not
    /// counted is on a known chip, and makes only that device incomplete.
    pub(crate) fn set_unread(&mut self, unread: bool) {
        self.unread = unread;
        if unread {
            self.note_unread(Span { from: self.now, to: self.now });
        }
        for row in 0..self.devices.high_water() {
            let (distrusted, lacking) =
                (self.has_one_of(&self.distrusted, row), self.has_one_of(&self.passed, row));
            let Some(device) = self.devices.get_mut(row) else { continue };
            let incomplete = unread || distrusted || self.uncounted.is_on(device.entry.chip_id);
            let lacking = lacking || device.is_silently_held();
            if device.set_incomplete(incomplete) | device.set_lacking(lacking) {
                let generation = self.mark_changed();
                self.devices.change(generation, row);
            }
        }
    }

    /// Takes the word of a process for doubtful from now on: its figures are not those of its allocator, or it holds more
    /// than it can tell. Nothing that it was part of is exact, however long ago.
    pub(crate) fn distrust(&mut self, process: usize) {
        if !self.distrusted.insert(process) {
            return;
        }
        let Some(owner) = self.processes.get(process) else { return };
        let (started, usages) = (owner.stats.started, owner.usages.clone());
        for row in usages.into_iter().flatten() {
            let Some(device) = self.usages.get(row).map(|usage| usage.device) else { continue };
            let (generation, now) = (self.mark_changed(), self.now);
            if let Some(device) = self.devices.change(generation, device) {
                device.disbelieve(started, now);
            }
        }
    }

    /// Takes the word of a process again: it has found out what it holds. What was doubted until now stays so.
    pub(crate) fn trust(&mut self, process: usize) {
        self.distrusted.remove(&process);
    }

    /// Notes in the history of its devices that a process ended a step.
    pub(crate) fn note_step(&mut self, process: usize) {
        let usages = self.processes.get(process).map(|owner| owner.usages.clone());
        for row in usages.into_iter().flatten().flatten() {
            let device = self.usages.get(row).and_then(|usage| self.devices.get_mut(usage.device));
            if let Some(device) = device {
                device.history.note_step();
            }
        }
    }

    /// Sets which processes the merge has passed: their devices are incomplete until what they reported is folded.
    pub(crate) fn set_passed(&mut self, passed: BTreeSet<usize>) {
        self.passed = passed;
    }

    /// Whether one of these processes is on a device.
    fn has_one_of(&self, processes: &BTreeSet<usize>, device: usize) -> bool {
        if processes.is_empty() {
            return false;
        }
        let rows = self.devices.get(device).map_or(&[][..], |device| &device.usages);
        rows.iter().filter_map(|row| self.usages.get(*row)).any(|usage| processes.contains(&usage.process))
    }

    /// Notes that in this span an unread process may have held memory on any device.
    pub(crate) fn note_unread(&mut self, span: Span) {
        self.unread_span = Some(self.unread_span.map_or(span, |unread| unread.union(span)));
    }

    /// Usages that the table does not show, counted or not.
    pub(crate) fn overflow(&self) -> u64 {
        (self.uncounted.len() + self.usages.unlisted()) as u64
    }

    /// Moves usages without a row in the table into rows that became free.
    fn promote_usages(&mut self) {
        for _ in 0..MAX_PROMOTED {
            let Some((from, to)) = self.usages.promote(self.generation + 1) else {
                self.promotable = false;
                return;
            };
            self.renumber_usage(from, to);
        }
    }

    fn renumber_usage(&mut self, from: usize, to: usize) {
        let generation = self.mark_changed();
        let Some(Usage { process, device, .. }) = self.usages.get(to) else { return };
        let renumber = |number: &mut usize| *number = if *number == from { to } else { *number };
        if let Some(process) = self.processes.change(generation, *process) {
            process.usages.iter_mut().flatten().for_each(renumber);
        }
        if let Some(device) = self.devices.change(generation, *device) {
            device.usages.iter_mut().for_each(renumber);
        }
    }

    /// Updates what a process claims about a device.
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
        self.unreconciled.insert(device);
    }

    /// Withdraws a claim about a device whose process has ended.
    pub(crate) fn withdraw_claim(&mut self, device: usize) {
        self.unreconciled.insert(device);
    }

    /// Decides again what is taken as true of a device, after a claim about it changed.
    fn reconcile_claims(&mut self, row: usize) {
        let Some(device) = self.devices.get(row) else { return };
        let usages = device.usages.iter().filter_map(|row| Some((*row, self.usages.get(*row)?)));
        let driver =
            device.driver.and_then(|row| self.driver.rows.get(row)).map(|device| &device.stats.entry);
        let found = reconcile(device.entry.chip_id, device.uid, self.uid, driver, usages.collect());
        let conflict = found.disputed.iter().any(|(_, disputed)| *disputed);
        for (row, disputed) in found.disputed {
            if self.usages.get(row).is_some_and(|usage| usage.conflict != disputed) {
                let generation = self.mark_changed();
                self.usages.change(generation, row).expect("just found").conflict = disputed;
            }
        }
        if self.devices.get_mut(row).is_some_and(|device| device.identify(&found.settled, conflict)) {
            let generation = self.mark_changed();
            self.devices.change(generation, row);
        }
        if let Some(device) = self.devices.get_mut(row) {
            device.uid = found.charged;
        }
    }

    /// Since when a process that was found has not been followed: since its start, or since an earlier aggregator that
    /// followed it ended.
    pub(crate) fn unfollowed_since(&self, identity: u64, started: u64) -> u64 {
        let known = self.window.gap.filter(|_| self.followed_before.contains_key(&identity));
        known.map_or(started, |(gap, _)| gap.max(started))
    }

    /// The usage row of a process on a device, by the process's own device index.
    pub(crate) fn usage_of(&self, process: usize, device: u8) -> Option<usize> {
        let owner = self.processes.get(process).filter(|_| device != NO_DEVICE)?;
        owner.usages.get(usize::from(device)).copied().flatten()
    }

    /// The table row of a device.
    pub(crate) fn device_stats(&self, generation: u64, device: &Device) -> DeviceStats {
        device.stats(generation, || counters_of(&self.usages, &device.usages))
    }

    /// The table row of a process.
    pub(crate) fn process_stats(&self, generation: u64, process: &Process) -> ProcessStats {
        let (events_per_1000s, devices) = (process.rate.per_1000s(), process.usages.len() as u64);
        ProcessStats { generation, events_per_1000s, devices, ..process.stats }
    }

    /// The table row of a usage.
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

    /// What a process holds on all devices together.
    pub(crate) fn holdings(&self, process: usize) -> Holdings {
        let mut held = Holdings::default();
        let rows = self.processes.get(process).map_or(&[][..], |process| &process.usages);
        for usage in rows.iter().flatten().filter_map(|row| self.usages.get(*row)) {
            held.add(&usage.counters);
        }
        held
    }

    /// Takes a process's usage rows, each with the row of its device.
    pub(crate) fn take_usages(&mut self, process: usize) -> Vec<(usize, usize)> {
        let generation = self.mark_changed();
        self.recounts.remove(&process);
        self.distrusted.remove(&process);
        let Some(owner) = self.processes.change(generation, process) else { return Vec::new() };
        let rows = std::mem::take(&mut owner.usages);
        for (device, _) in rows.iter().enumerate().filter(|(_, row)| row.is_none()) {
            self.forget_uncounted((process, device));
        }
        rows.into_iter().flatten().filter_map(|row| Some((row, self.usages.get(row)?.device))).collect()
    }

    /// Empties a usage row. The row stays, empty, for one generation, so that a reader of a generation that is still
    /// being written can tell from the row's generation that it changed. A row that is not in use has no generation.
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
            let generation = self.mark_changed();
            if self.usages.remove(generation, row) {
                self.promotable |= row < MAX_USAGES;
                self.uncounted.ask_again();
            }
        }
    }
}

/// The counters in these usage rows.
pub(crate) fn counters_of<'a>(usages: &'a Usages, rows: &'a [usize]) -> impl Iterator<Item = &'a Counters> {
    rows.iter().filter_map(|row| Some(&usages.get(*row)?.counters))
}

/// The shares of the processes in these usage rows.
pub(crate) fn shares_of<'a>(
    usages: &'a Usages,
    processes: &'a Rows<Process>,
    rows: &'a [usize],
) -> impl Iterator<Item = Share<'a>> {
    rows.iter().filter_map(|row| {
        let usage = usages.get(*row)?;
        let stats = &processes.get(usage.process)?.stats;
        Some(Share { identity: stats.identity, pid: stats.pid, counters: &usage.counters })
    })
}
