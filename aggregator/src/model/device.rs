//! A device, all processes together: sums, peaks, history.

use shm_layout::table::{ClassStats, Composition, DeviceStats, Failure, Peak, device_flags};
use shm_layout::{Class, Counters, DeviceEntry, Event, UNKNOWN, known};

use crate::merge::order::Order;
use crate::model::entry;
use crate::model::figures::{Live, Memory, Resident, Share, Used, compose, held_alone};
use crate::model::history::History;
use crate::model::peaks::PeakTracker;
use crate::model::rates::Rate;

/// The peaks of a device's window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peaks {
    pub(crate) dram: PeakTracker,
    pub(crate) l1: PeakTracker,
    pub(crate) eth: PeakTracker,
    pub(crate) classes: [PeakTracker; Class::COUNT],
    pub(crate) cb_resident: PeakTracker,
    pub(crate) kernel_resident: PeakTracker,
}

/// What has to be noted of a device, all processes together, before something happens on it. One word, so that the
/// fold asks for all of it at once.
pub(crate) mod owes {
    /// What the DRAM peak was made of, before less is used: while it still rises, nobody asks.
    pub(crate) const DRAM: u8 = 1 << 0;
    /// The same of L1.
    pub(crate) const L1: u8 = 1 << 1;
    /// Who held what when an allocation failed, before anything happens.
    pub(crate) const FAILURE: u8 = 1 << 2;
}

const NOTHING: Composition = bytemuck::zeroed();

/// One device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) entry: DeviceEntry,
    pub(crate) conflict: bool,
    /// Who made this row; bounds what other users can fill the table with.
    pub(crate) uid: u32,
    pub(crate) used: Used,
    pub(crate) classes: [Live; Class::COUNT],
    pub(crate) resident: Resident,
    pub(crate) peaks: Peaks,
    /// What the peaks were made of.
    pub(crate) dram_makeup: Composition,
    pub(crate) l1_makeup: Composition,
    /// Bits of [`owes`].
    pub(crate) owes: u8,
    pub(crate) exact_since: u64,
    /// Start of the window of peaks, and whether what was folded so far reaches into it: a ring that is
    /// read from its beginning starts with events from before.
    since: u64,
    entered: bool,
    pub(crate) order: Order,
    /// That of changes of what is resident.
    pub(crate) resident_order: Order,
    pub(crate) history: History,
    pub(crate) events: u64,
    pub(crate) event_rate: Rate,
    pub(crate) dispatch_rate: Rate,
    pub(crate) failure: Failure,
    /// Process row and position of that failure.
    pub(crate) failed: (usize, u64),
    /// Whether that failure came after later events of other processes.
    pub(crate) failed_late: bool,
    /// Time of the latest failure that was folded.
    pub(crate) last_failed: u64,
    /// Time of the last event of processes that are gone, and whose rings with them.
    pub(crate) gone_until: u64,
    /// Usage rows of the processes that registered it.
    pub(crate) usages: Vec<usize>,
    pub(crate) history_changed: u64,
}

/// What an event or a new state of a process did to the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) old: Used,
    pub(crate) new: Used,
}

impl Exchange {
    pub(crate) fn is_change(&self) -> bool {
        self.old != self.new
    }
}

impl Device {
    /// A device that nothing is known of; `since` is the start of the window of peaks, 0 if it has none.
    pub(crate) fn new(entry: DeviceEntry, uid: u32, since: u64, now: u64) -> Device {
        Device {
            // Each process has a number of its own for it.
            entry: DeviceEntry { logical_id: 0, known: entry.known & !known::LOGICAL, ..entry },
            conflict: false,
            uid,
            used: Used::default(),
            classes: Default::default(),
            resident: Resident::default(),
            peaks: Peaks::default(),
            dram_makeup: NOTHING,
            l1_makeup: NOTHING,
            owes: 0,
            exact_since: now,
            since,
            entered: false,
            order: Order::default(),
            resident_order: Order::default(),
            history: History::default(),
            events: 0,
            event_rate: Rate::default(),
            dispatch_rate: Rate::default(),
            failure: bytemuck::Zeroable::zeroed(),
            failed: (0, 0),
            failed_late: false,
            last_failed: 0,
            gone_until: 0,
            usages: Vec::new(),
            history_changed: 0,
        }
    }

    /// To be called before a change at `time`: the window begins with what is used at its start.
    #[inline]
    pub(crate) fn enter(&mut self, time: u64) {
        if !self.entered && time >= self.since {
            self.begin_window();
        }
    }

    #[cold]
    fn begin_window(&mut self) {
        self.entered = true;
        for class in 0..Class::COUNT {
            self.exchange_class(class, Live::default(), Live::default(), self.since);
        }
        self.exchange_used(Exchange { old: Used::default(), new: Used::default() }, self.since);
        self.exchange_resident(Resident::default(), Resident::default(), self.since);
    }

    /// Takes the old share of one class out and the new one in, and raises its peak.
    #[inline]
    pub(crate) fn exchange_class(&mut self, class: usize, old: Live, new: Live, time: u64) {
        let live = &mut self.classes[class];
        live.exchange(old, new);
        if self.entered {
            self.peaks.classes[class].raise(live.bytes, time, live.count);
        }
    }

    /// The same for what is used.
    #[inline]
    pub(crate) fn exchange_used(&mut self, change: Exchange, time: u64) {
        self.used.exchange(change.old, change.new);
        if !self.entered {
            return;
        }
        let Used { dram, l1, eth } = self.used;
        let count =
            |a: Class, b: Class| self.classes[a as usize].count.wrapping_add(self.classes[b as usize].count);
        if self.peaks.dram.is_below(dram) {
            self.peaks.dram.raise(dram, time, count(Class::Dram, Class::Trace));
            self.owes |= owes::DRAM;
        }
        if self.peaks.l1.is_below(l1) {
            self.peaks.l1.raise(l1, time, count(Class::L1, Class::L1Small));
            self.owes |= owes::L1;
        }
        self.peaks.eth.raise(eth, time, 0);
    }

    /// The same for what is resident.
    #[inline]
    pub(crate) fn exchange_resident(&mut self, old: Resident, new: Resident, time: u64) {
        self.resident.exchange(old, new);
        if self.entered {
            self.peaks.cb_resident.raise(self.resident.cb, time, 0);
            self.peaks.kernel_resident.raise(self.resident.kernels, time, 0);
        }
    }

    /// Whether something of [`owes`] has to be noted.
    #[inline]
    pub(crate) fn owes(&self, what: u8) -> bool {
        self.owes & what != 0
    }

    /// Takes the compositions that are due. The peak has lasted until now.
    pub(crate) fn take_makeup<'a, I: Iterator<Item = Share<'a>>>(&mut self, shares: impl Fn() -> I) {
        if self.owes(owes::DRAM) {
            self.dram_makeup = compose(Memory::Dram, shares());
        }
        if self.owes(owes::L1) {
            self.l1_makeup = compose(Memory::L1, shares());
        }
        self.owes &= !(owes::DRAM | owes::L1);
    }

    /// A peak that one process reached while nobody merged is at least that of the device.
    pub(crate) fn raise_to_own_peaks(&mut self, share: &Share<'_>, times: impl Fn(u64) -> Option<u64>) {
        let Share { identity, pid, counters } = *share;
        let alone = |bytes| held_alone(identity, pid, bytes);
        if let Some(time) = times(counters.dram_peak_time)
            && self.peaks.dram.raise(counters.dram_peak_bytes, time, counters.dram_peak_count)
        {
            self.dram_makeup = alone(counters.dram_peak_bytes);
            self.owes &= !owes::DRAM;
        }
        if let Some(time) = times(counters.l1_peak_time)
            && self.peaks.l1.raise(counters.l1_peak_bytes, time, counters.l1_peak_count)
        {
            self.l1_makeup = alone(counters.l1_peak_bytes);
            self.owes &= !owes::L1;
        }
        if let Some(time) = times(counters.eth_peak_time) {
            self.peaks.eth.raise(counters.eth_peak_bytes, time, 0);
        }
        for (peak, class) in self.peaks.classes.iter_mut().zip(&counters.classes) {
            if let Some(time) = times(class.peak_time) {
                peak.raise(class.peak_bytes, time, class.peak_count);
            }
        }
    }

    /// Something was not followed: no peak was above the sum of the processes' own.
    pub(crate) fn widen<'a, I: Iterator<Item = &'a Counters>>(&mut self, all: impl Fn() -> I) {
        let sum = |own: fn(&Counters) -> u64| all().fold(0, |sum: u64, one| sum.saturating_add(own(one)));
        self.peaks.dram.widen(sum(|own| own.dram_peak_bytes));
        self.peaks.l1.widen(sum(|own| own.l1_peak_bytes));
        self.peaks.eth.widen(sum(|own| own.eth_peak_bytes));
        for (class, peak) in self.peaks.classes.iter_mut().enumerate() {
            peak.widen(all().fold(0, |sum: u64, own| sum.saturating_add(own.classes[class].peak_bytes)));
        }
        self.widen_residents();
    }

    /// The same of what is resident, which is loaded or allocated, too.
    fn widen_residents(&mut self) {
        let loaded = |class: Class| self.peaks.classes[class as usize].to_peak().high;
        let [cb, application, fabric, dispatch] =
            [Class::Cb, Class::KernelApplication, Class::KernelFabric, Class::KernelDispatch].map(loaded);
        self.peaks.cb_resident.widen(cb);
        self.peaks.kernel_resident.widen(application.saturating_add(fabric).saturating_add(dispatch));
    }

    /// The same where the processes' own peaks do not reach back as far.
    #[cold]
    pub(crate) fn widen_without_bound(&mut self) {
        let Peaks { dram, l1, eth, classes, cb_resident, kernel_resident } = &mut self.peaks;
        for peak in [dram, l1, eth, cb_resident, kernel_resident].into_iter().chain(classes) {
            peak.widen(UNKNOWN);
        }
    }

    /// A late event took bytes away: peaks seen since its time were seen too high.
    pub(crate) fn lower(&mut self, change: Exchange, class: Option<(usize, u64)>, since: u64) {
        let Exchange { old, new } = change;
        let less = |old: u64, new: u64| old.saturating_sub(new);
        self.peaks.dram.lower(less(old.dram, new.dram), since, self.used.dram);
        self.peaks.l1.lower(less(old.l1, new.l1), since, self.used.l1);
        self.peaks.eth.lower(less(old.eth, new.eth), since, self.used.eth);
        if let Some((class, bytes)) = class {
            self.peaks.classes[class].lower(bytes, since, self.classes[class].bytes);
        }
    }

    /// What a process held was gone at some time since then: peaks seen meanwhile may have been seen too high.
    pub(crate) fn lower_by(&mut self, held: &Counters, since: u64) {
        self.lower(Exchange { old: Used::of(held), new: Used::default() }, None, since);
        for (class, (peak, live)) in self.peaks.classes.iter_mut().zip(&self.classes).enumerate() {
            peak.lower(held.classes[class].live_bytes, since, live.bytes);
        }
        let Resident { cb, kernels } = Resident::of(held);
        self.peaks.cb_resident.lower(cb, since, self.resident.cb);
        self.peaks.kernel_resident.lower(kernels, since, self.resident.kernels);
    }

    /// A late event changed what is resident: peaks of that seen since its time are in doubt.
    pub(crate) fn doubt_residents(&mut self, since: u64) {
        self.peaks.cb_resident.doubt(since, self.resident.cb);
        self.peaks.kernel_resident.doubt(since, self.resident.kernels);
        self.widen_residents();
    }

    /// Begins a new window: the peaks are what is used then.
    pub(crate) fn open_window(&mut self, since: u64) {
        (self.peaks, self.since, self.entered) = (Peaks::default(), since, false);
        self.enter(since);
        (self.dram_makeup, self.l1_makeup) = (NOTHING, NOTHING);
        self.owes |= owes::DRAM | owes::L1;
        self.exact_since = since;
    }

    #[cold]
    pub(crate) fn note_failure(&mut self, event: &Event, process: usize, pid: u64, time: u64) {
        self.failure = failure_of(event, pid, time);
        self.failed = (process, event.stamp);
        self.failed_late = self.order.is_behind(process, time);
        self.last_failed = self.last_failed.max(time);
        self.owes |= owes::FAILURE;
    }

    /// Learns what another process says of the same chip; says whether anything changed.
    pub(crate) fn reconcile(&mut self, other: &DeviceEntry) -> bool {
        let before = (self.entry, self.conflict);
        self.conflict |= entry::reconcile(&mut self.entry, other);
        (self.entry, self.conflict) != before
    }

    fn is_over_capacity(&self) -> bool {
        let over = |used: u64, total: Option<u64>| total.is_some_and(|total| used > total);
        over(self.used.dram, self.entry.dram_total())
            || over(self.used.l1, self.entry.l1_total())
            || over(self.used.eth, self.entry.eth_l1_total())
    }

    /// The device's row, given the counters of the processes on it.
    pub(crate) fn stats<'a, I>(&self, generation: u64, all: impl Fn() -> I) -> DeviceStats
    where
        I: Iterator<Item = &'a Counters>,
    {
        let sum = |part: fn(&Counters) -> u64| all().fold(0, |sum: u64, one| sum.saturating_add(part(one)));
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let mut classes = [bytemuck::Zeroable::zeroed(); Class::COUNT];
        for (class, stats) in classes.iter_mut().enumerate() {
            *stats = class_stats(&self.classes[class], self.peaks.classes[class].to_peak());
        }
        DeviceStats {
            generation,
            flags: flag(self.is_over_capacity(), device_flags::OVER_CAPACITY)
                | flag(self.conflict, device_flags::CONFLICT),
            entry: self.entry,
            processes: all().filter(|counters| has_something(counters)).count() as u64,
            dram_used_bytes: self.used.dram,
            l1_used_bytes: self.used.l1,
            eth_used_bytes: self.used.eth,
            cb_resident_bytes: sum(|own| own.cb_resident_bytes),
            kernel_resident_bytes: sum(|own| own.kernel_resident_bytes),
            system_kernel_bytes: sum(|own| own.system_kernel_bytes),
            system_kernel_eth_bytes: sum(|own| own.system_kernel_eth_bytes),
            dispatches: sum(|own| own.dispatches),
            cached_dispatches: sum(|own| own.cached_dispatches),
            failed_allocs: sum(|own| own.failed_allocs),
            events: self.events,
            events_per_1000s: self.event_rate.per_1000s(),
            dispatches_per_1000s: self.dispatch_rate.per_1000s(),
            kernel_ring_total_bytes: sum(|own| own.kernel_ring_total_bytes),
            kernel_ring_used_bytes: sum(|own| own.kernel_ring_used_bytes),
            kernel_ring_programs: sum(|own| own.kernel_ring_programs),
            exact_since: self.exact_since,
            dram_peak: self.peaks.dram.to_peak(),
            l1_peak: self.peaks.l1.to_peak(),
            eth_peak: self.peaks.eth.to_peak(),
            failure: self.failure,
            classes,
            dram_composition: self.dram_makeup,
            l1_composition: self.l1_makeup,
            cb_resident_peak: self.peaks.cb_resident.to_peak(),
            kernel_resident_peak: self.peaks.kernel_resident.to_peak(),
        }
    }
}

/// What an event says of a failure.
pub(crate) fn failure_of(event: &Event, pid: u64, time: u64) -> Failure {
    Failure {
        time,
        pid,
        class: u64::from(event.class),
        request_bytes: event.size,
        free_bytes: event.address,
        largest_free_bytes: event.aux,
    }
}

fn class_stats(live: &Live, peak: Peak) -> ClassStats {
    ClassStats {
        live_bytes: live.bytes,
        live_count: live.count,
        alloc_bytes: live.alloc_bytes,
        alloc_count: live.alloc_count,
        peak,
    }
}

fn has_something(counters: &Counters) -> bool {
    counters.open != 0
        || Used::of(counters) != Used::default()
        || counters.classes.iter().any(|class| class.live_count > 0)
}
