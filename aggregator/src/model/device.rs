//! A device with all of its processes together: sums, peaks, history.

use shm_layout::claims::Settled;
use shm_layout::table::{ClassStats, Composition, DeviceStats, Failure, Peak, device_flags};
use shm_layout::{Class, Counters, DeviceEntry, Event, EventKind, UNKNOWN, flags};

use crate::model::figures::{
    CB_RESIDENT, DRAM, ETH, FIGURES, KERNEL_RESIDENT, L1, Live, Memory, Resident, Share, Sums, Used, compose,
    counted_in, held_alone, own_peaks,
};
use crate::model::history::{History, Parts};
use crate::model::rates::Rate;
use crate::model::slice::{Doubt, Span};
use crate::model::timeline::Timeline;

/// What has to be recorded about all processes of a device before something happens on it. One word, so that
/// the fold tests for all of it at once.
pub(crate) mod owes {
    /// The composition of the DRAM peak, before less is used. While the peak still rises, it is not needed.
    pub(crate) const DRAM: u8 = 1 << 0;
    /// The composition of the L1 peak.
    pub(crate) const L1: u8 = 1 << 1;
    /// The holders at a failed allocation, before anything else happens.
    pub(crate) const FAILURE: u8 = 1 << 2;
}

/// The composition of a peak.
#[derive(Debug)]
pub(crate) struct Makeup {
    pub(crate) composition: Composition,
    /// The peak that it belongs to.
    pub(crate) bytes: u64,
    /// Whether it contains every holder.
    pub(crate) complete: bool,
}

impl Makeup {
    const NOTHING: Makeup = Makeup { composition: bytemuck::zeroed(), bytes: 0, complete: true };
}

/// One device.
#[derive(Debug)]
pub(crate) struct Device {
    /// What is taken as true of it.
    pub(crate) entry: DeviceEntry,
    pub(crate) conflict: bool,
    /// The user whose quota of device rows it counts against.
    pub(crate) uid: u32,
    /// The sums over all processes.
    pub(crate) sums: Sums,
    pub(crate) peaks: Timeline,
    pub(crate) dram_makeup: Makeup,
    pub(crate) l1_makeup: Makeup,
    /// Bits of [`owes`].
    pub(crate) owes: u8,
    /// Whether a process that could not be read may hold memory on it.
    pub(crate) incomplete: bool,
    lacking: bool,
    /// Whether a process holds it, as the driver says, that reports to nobody.
    pub(crate) unreported: bool,
    /// Whether a process is in its region of tt-metal that reports to nobody.
    pub(crate) is_in_region: bool,
    /// Its row among the driver's devices.
    pub(crate) driver: Option<usize>,
    /// Whether no process ever reported on it: it is there because the driver or tt-metal has it.
    pub(crate) is_unclaimed: bool,
    /// Whether a process is or was on it that does not report the kernels that the runtime launches by itself.
    pub(crate) system_kernels_unseen: bool,
    /// Whether something is to be published that holds only if every process on the device is alive.
    ask: bool,
    pub(crate) history: History,
    pub(crate) events: u64,
    pub(crate) event_rate: Rate,
    pub(crate) dispatch_rate: Rate,
    pub(crate) failure: Failure,
    /// The process row and position of that failure.
    pub(crate) failed: (usize, u64),
    /// Whether that failure was folded after later events of other processes.
    pub(crate) failed_late: bool,
    /// The time of the latest failure that was folded.
    pub(crate) last_failed: u64,
    /// The time of the last event of processes that are gone, and their rings with them.
    pub(crate) gone_until: u64,
    /// The usage rows of the processes that registered it.
    pub(crate) usages: Vec<usize>,
    pub(crate) history_changed: u64,
}

impl Device {
    /// A device about which nothing is known, with these peaks.
    pub(crate) fn new(chip_id: u64, uid: u32, peaks: Timeline) -> Device {
        Device {
            entry: DeviceEntry { chip_id, ..bytemuck::Zeroable::zeroed() },
            conflict: false,
            uid,
            sums: Sums::ZERO,
            peaks,
            dram_makeup: Makeup::NOTHING,
            l1_makeup: Makeup::NOTHING,
            owes: 0,
            incomplete: false,
            lacking: false,
            unreported: false,
            is_in_region: false,
            driver: None,
            is_unclaimed: false,
            system_kernels_unseen: false,
            ask: false,
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

    /// Replaces the share of one class. This and the next two are for changes in order.
    #[inline]
    pub(crate) fn exchange_class(&mut self, class: usize, old: Live, new: Live) {
        let bytes = self.sums.exchange_bytes(class, old.bytes, new.bytes);
        let more = new.count.wrapping_sub(old.count);
        let count = self.sums.counts[class].wrapping_add(more);
        self.sums.counts[class] = count;
        if let Some(figure) = counted_in(class) {
            self.sums.counts[figure] = self.sums.counts[figure].wrapping_add(more);
        }
        self.peaks.raise(class, bytes, count);
    }

    /// Replaces the share of what is used.
    #[inline]
    pub(crate) fn exchange_used(&mut self, old: Used, new: Used) {
        let dram = self.sums.exchange_bytes(DRAM, old.dram, new.dram);
        let l1 = self.sums.exchange_bytes(L1, old.l1, new.l1);
        let eth = self.sums.exchange_bytes(ETH, old.eth, new.eth);
        if self.peaks.raise(DRAM, dram, self.sums.counts[DRAM]) {
            self.owes |= owes::DRAM;
        }
        if self.peaks.raise(L1, l1, self.sums.counts[L1]) {
            self.owes |= owes::L1;
        }
        self.peaks.raise(ETH, eth, 0);
    }

    /// Replaces the share of what is resident.
    #[inline]
    pub(crate) fn exchange_resident(&mut self, old: Resident, new: Resident) {
        let cb = self.sums.exchange_bytes(CB_RESIDENT, old.cb, new.cb);
        let kernels = self.sums.exchange_bytes(KERNEL_RESIDENT, old.kernels, new.kernels);
        self.peaks.raise(CB_RESIDENT, cb, 0);
        self.peaks.raise(KERNEL_RESIDENT, kernels, 0);
    }

    /// Replaces a process's share at `time`, in order or not. Debts must be settled before.
    pub(crate) fn change(&mut self, time: u64, old: &Sums, new: &Sums) {
        self.peaks.cross_boundary(time, &self.sums);
        self.sums.exchange(old, new);
        // From then on, buckets saw what was before: also the open one, if it began without this change.
        if self.peaks.is_late(time) || time < self.history.open_since() {
            self.history.doubt(Span { from: time, to: u64::MAX });
        }
        if self.peaks.is_in_order(time) {
            self.peaks.advance(time);
        } else {
            self.peaks.shift(time, old, new, &self.sums);
        }
        self.peaks.raise_all(&self.sums);
        self.reconsider_makeups();
    }

    /// Replaces a process's share that was read at `time`: when it changed is not known.
    pub(crate) fn find(&mut self, time: u64, old: &Sums, new: &Sums) {
        self.peaks.cross_boundary(time, &self.sums);
        self.sums.exchange(old, new);
        self.peaks.advance_to(time);
        self.peaks.find(&self.sums);
        self.reconsider_makeups();
    }

    /// Doubts a span: the sums need not have been those that were merged.
    pub(crate) fn doubt(&mut self, span: Span, doubt: &Doubt) {
        self.peaks.doubt(span, doubt);
        if self.history.is_due(span.to) {
            // Complete the buckets up to there first, so that they are doubted too.
            self.observe(span.to);
        }
        self.history.doubt(span);
        self.reconsider_makeups();
    }

    /// Doubts everything that was merged of a process that was found at `attached`. Its events may carry any
    /// time.
    pub(crate) fn disbelieve(&mut self, attached: u64, now: u64) {
        self.peaks.doubt(Span { from: 0, to: now }, &Doubt::ANYTHING);
        self.doubt(Span { from: attached, to: now }, &Doubt::ANYTHING_MORE);
    }

    /// Raises the peaks to what a process is certain to have reached by itself. `times` are the times of its
    /// own peaks, if they are in the window.
    pub(crate) fn attest_own_peaks(&mut self, share: &Share<'_>, times: &[Option<u64>; FIGURES]) {
        let Share { identity, pid, counters } = *share;
        let peaks = own_peaks(counters);
        for (figure, own) in peaks.iter().enumerate() {
            if let Some(time) = times[figure] {
                // A peak at the time of a reset is what was held then; when that was first reached is not
                // known.
                let reached = own.ticks != counters.peak_reset_time;
                self.peaks.attest(figure, own.bytes, time, own.count, reached);
            }
        }
        let makeups = [(DRAM, &mut self.dram_makeup, owes::DRAM), (L1, &mut self.l1_makeup, owes::L1)];
        for (figure, makeup, owed) in makeups {
            let own = peaks[figure];
            if own.bytes > makeup.bytes && times[figure].is_some() {
                let composition = held_alone(identity, pid, own.bytes);
                *makeup = Makeup { composition, bytes: own.bytes, complete: false };
                self.owes &= !owed;
            }
        }
    }

    /// Re-evaluates the compositions after the peaks changed other than by an event in order. The composition
    /// of a peak that equals what is used now can be taken; that of any other peak is not known.
    fn reconsider_makeups(&mut self) {
        let makeups = [(DRAM, &mut self.dram_makeup, owes::DRAM), (L1, &mut self.l1_makeup, owes::L1)];
        for (figure, makeup, owed) in makeups {
            let low = self.peaks.peak(figure).low;
            if low == makeup.bytes {
                continue;
            }
            makeup.complete = false;
            self.owes |= if low == self.sums.bytes[figure] { owed } else { 0 };
        }
    }

    /// Whether any of these bits of [`owes`] is set.
    #[inline]
    pub(crate) fn owes(&self, what: u8) -> bool {
        self.owes & what != 0
    }

    /// Takes the compositions that are due. The peak has lasted until now.
    pub(crate) fn take_makeup<'a, I: Iterator<Item = Share<'a>>>(&mut self, shares: impl Fn() -> I) {
        let makeups = [
            (owes::DRAM, Memory::Dram, DRAM, &mut self.dram_makeup),
            (owes::L1, Memory::L1, L1, &mut self.l1_makeup),
        ];
        for (owed, memory, figure, makeup) in makeups {
            if self.owes & owed != 0 {
                let (composition, bytes) = (compose(memory, shares()), self.sums.bytes[figure]);
                *makeup = Makeup { composition, bytes, complete: !self.incomplete };
            }
        }
        self.owes &= !(owes::DRAM | owes::L1);
    }

    /// Opens a new window, in which the peaks begin with what is used now.
    pub(crate) fn open_window(&mut self, since: u64) {
        self.peaks.restart(since, &self.sums);
        (self.dram_makeup, self.l1_makeup) = (Makeup::NOTHING, Makeup::NOTHING);
        self.owes |= owes::DRAM | owes::L1;
    }

    /// Advances to a time up to which everything is merged and nothing changed since the last change.
    pub(crate) fn advance(&mut self, time: u64) {
        self.peaks.close_due_slice(time, &self.sums);
    }

    /// Whether something is to be published that holds only if every process on the device is alive: a new
    /// peak, a completed bucket of the history, the holders at a failure. `folded_through` is how far events
    /// are folded.
    pub(crate) fn take_ask(&mut self, folded_through: u64) -> bool {
        let rolls = self.history.take_rolled() | self.history.is_due(folded_through);
        self.peaks.take_rose() | rolls | std::mem::take(&mut self.ask)
    }

    /// Sets whether a process that could not be read may hold memory on it; returns whether that changed.
    pub(crate) fn set_incomplete(&mut self, incomplete: bool) -> bool {
        self.incomplete = incomplete;
        self.history.set_doubtful(incomplete || self.is_silently_held());
        self.peaks.set_unbounded(incomplete)
    }

    /// Whether a process uses it that reports to nobody.
    pub(crate) fn is_silently_held(&self) -> bool {
        self.unreported || self.is_in_region
    }

    /// Sets whether the merge has passed a process on it, whose share is then missing or old until it is folded; returns
    /// whether that changed. Nothing is doubted for good: what happened meanwhile is doubted when the share is folded.
    pub(crate) fn set_lacking(&mut self, lacking: bool) -> bool {
        std::mem::replace(&mut self.lacking, lacking) != lacking
    }

    /// Notes in the history what is used from `time` on; returns whether a bucket was completed.
    #[inline]
    pub(crate) fn observe(&mut self, time: u64) -> bool {
        let rolled = self.observe_sums(time);
        self.observe_parts();
        rolled
    }

    #[inline]
    fn observe_sums(&mut self, time: u64) -> bool {
        self.history.observe(time, self.sums.bytes[DRAM], self.sums.bytes[L1])
    }

    #[inline]
    fn observe_parts(&mut self) {
        let bytes = &self.sums.bytes;
        let (trace, l1_small) = (bytes[Class::Trace as usize], bytes[Class::L1Small as usize]);
        self.history.set_parts(Parts { trace, l1_small, cb: bytes[CB_RESIDENT] });
    }

    /// Notes what is used in a history that began at `since`, or has not begun yet (`u64::MAX`). What
    /// happened before that and is folded only now has been so ever since.
    #[inline]
    pub(crate) fn observe_from(&mut self, since: u64, time: u64) {
        if time >= since {
            self.observe(time);
        } else if since != u64::MAX {
            self.observe(since);
        }
    }

    /// The same after an event; `has_parts` if it may have changed what the sums are made of.
    #[inline]
    pub(crate) fn observe_event(&mut self, since: u64, time: u64, has_parts: bool) {
        if time >= since {
            self.observe_sums(time);
        } else if since != u64::MAX {
            self.observe_sums(since);
        }
        if has_parts {
            self.observe_parts();
        }
    }

    /// Removes the usage of a process that left.
    pub(crate) fn leave(&mut self, usage: usize, last_event: u64) {
        self.usages.retain(|row| *row != usage);
        self.peaks.note_others(Span { from: 0, to: u64::MAX });
        self.gone_until = self.gone_until.max(last_event);
    }

    /// Notes what an event tells besides what it changes.
    #[inline]
    pub(crate) fn note(&mut self, event: &Event, process: usize, pid: u64, time: u64, recent: bool) {
        match event.kind() {
            Some(EventKind::KernelDispatch) => self.dispatch_rate.add(if recent { event.times() } else { 0 }),
            Some(EventKind::AllocFailed) => self.note_failure(event, process, pid, time),
            _ => {}
        }
    }

    #[cold]
    fn note_failure(&mut self, event: &Event, process: usize, pid: u64, time: u64) {
        self.failure = failure_of(event, pid, time);
        self.failed = (process, event.stamp);
        self.failed_late = self.peaks.is_late(time);
        self.last_failed = self.last_failed.max(time);
        self.owes |= owes::FAILURE;
        self.ask = true;
    }

    /// Takes over what was settled; returns whether anything changed. `conflict` tells whether a process
    /// claims otherwise.
    pub(crate) fn identify(&mut self, settled: &Settled, conflict: bool) -> bool {
        let before = (self.entry, self.conflict);
        (self.entry, self.conflict) = (settled.entry, conflict);
        (self.entry, self.conflict) != before
    }

    /// Whether more is in a pool than it has, or, where the pool is not known, in a memory than the chip has:
    /// some process reports wrongly. Only buffers count: they may overlap the memory of a program that has
    /// run, and kernels are never a share of the capacity.
    fn is_over_capacity(&self) -> bool {
        let live = |wanted: &dyn Fn(Class) -> bool| {
            let classes = Class::ALL.into_iter().filter(|class| class.pool().is_some() && wanted(*class));
            classes.map(|class| self.sums.bytes[class as usize]).fold(0, u64::saturating_add)
        };
        let mut pools = Class::ALL.into_iter().filter_map(|class| Some((class, self.entry.pool(class)?)));
        let over = |main: Class, total: Option<u64>| {
            // What is beside a known pool has a pool of its own, reported or not.
            let total = total.filter(|_| self.entry.pool(main).is_none());
            total.is_some_and(|total| live(&|class| class.memory() == main.memory()) > total)
        };
        // Classes may share a pool.
        pools.any(|(of, pool)| live(&|class| class.pool() == of.pool()) > pool.total())
            || over(Class::Dram, self.entry.dram_total())
            || over(Class::L1, self.entry.l1_total())
    }

    fn flags(&self) -> u64 {
        let is_exact = |makeup: &Makeup, figure: usize| {
            let peak = self.peak(figure);
            makeup.complete && peak.low == peak.high && peak.low == makeup.bytes
        };
        let flags = [
            (self.is_over_capacity(), device_flags::OVER_CAPACITY),
            (self.conflict, device_flags::CONFLICT),
            (self.incomplete || self.lacking, device_flags::INCOMPLETE),
            (self.is_silently_held(), device_flags::UNREPORTED_HOLDER),
            (self.system_kernels_unseen, device_flags::SYSTEM_KERNELS_UNSEEN),
            (is_exact(&self.dram_makeup, DRAM), device_flags::DRAM_COMPOSITION_EXACT),
            (is_exact(&self.l1_makeup, L1), device_flags::L1_COMPOSITION_EXACT),
        ];
        flags.into_iter().filter(|(set, _)| *set).fold(0, |flags, (_, bit)| flags | bit)
    }

    /// A peak, as far as everything is folded.
    fn peak(&self, figure: usize) -> Peak {
        let peak = self.peaks.peak(figure);
        if self.lacking { Peak { high: UNKNOWN, ..peak } } else { peak }
    }

    /// The device's table row, given the counters of the processes on it.
    pub(crate) fn stats<'a, I>(&self, generation: u64, all: impl Fn() -> I) -> DeviceStats
    where
        I: Iterator<Item = &'a Counters>,
    {
        let sum = |part: fn(&Counters) -> u64| all().fold(0, |sum: u64, one| sum.saturating_add(part(one)));
        DeviceStats {
            generation,
            flags: self.flags(),
            entry: self.entry,
            processes: all().filter(|counters| has_something(counters)).count() as u64,
            dram_used_bytes: self.sums.bytes[DRAM],
            l1_used_bytes: self.sums.bytes[L1],
            eth_used_bytes: self.sums.bytes[ETH],
            cb_resident_bytes: sum(|own| own.cb_resident_bytes),
            kernel_resident_bytes: sum(|own| own.kernel_resident_bytes),
            kernel_resident_eth_bytes: sum(|own| own.kernel_resident_eth_bytes),
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
            dram_peak: self.peak(DRAM),
            l1_peak: self.peak(L1),
            eth_peak: self.peak(ETH),
            failure: self.failure,
            classes: std::array::from_fn(|class| self.class_stats(class, &all)),
            dram_composition: self.dram_makeup.composition,
            l1_composition: self.l1_makeup.composition,
            cb_resident_peak: self.peak(CB_RESIDENT),
            kernel_resident_peak: self.peak(KERNEL_RESIDENT),
        }
    }

    fn class_stats<'a, I>(&self, class: usize, all: &impl Fn() -> I) -> ClassStats
    where
        I: Iterator<Item = &'a Counters>,
    {
        let sum = |part: &dyn Fn(&Counters) -> u64| all().map(part).fold(0, u64::saturating_add);
        ClassStats {
            live_bytes: self.sums.bytes[class],
            live_count: self.sums.counts[class],
            alloc_bytes: sum(&|own| own.classes[class].alloc_bytes),
            alloc_count: sum(&|own| own.classes[class].alloc_count),
            peak: self.peak(class),
            requested_bytes: sum(&|own| own.classes[class].requested_bytes),
            requested_basis_bytes: sum(&|own| own.requested_basis_bytes[class]),
        }
    }
}

/// The failure that an event describes.
pub(crate) fn failure_of(event: &Event, pid: u64, time: u64) -> Failure {
    Failure {
        time,
        pid,
        class: u64::from(event.class),
        request_bytes: event.size,
        free_bytes: event.address,
        largest_free_bytes: event.largest_free_bytes(),
        needed_per_bank_bytes: event.id,
        banks: u64::from(event.cores),
        per_bank: u64::from(event.has(flags::PER_BANK)),
    }
}

fn has_something(counters: &Counters) -> bool {
    counters.open != 0
        || Used::of(counters) != Used::default()
        || counters.classes.iter().any(|class| class.live_count > 0)
}
