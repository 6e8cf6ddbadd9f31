//! The processes of a run and their names: what they hold, what the peaks of their chips were made of, and what was dropped
//! when devices were closed.
//!
//! Observes the merge: each process's counters are folded here with the same code as everywhere, next to the names of its
//! live buffers. When what a chip's processes use together reaches a new maximum, its composition is kept (`chip.rs`).
//!
//! A composition is never silently wrong. It is exact if no event of its processes was missed, nothing came late, and its
//! sum is the peak that the aggregation found.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tt_shm_aggregator::Observe;
use tt_shm_reader::{
    Class, Counters, Effect, Event, EventKind, Held, Holdings, NO_DEVICE, Segment, Sum, UsedMemory, flags,
};

use super::chip::{Chip, Name, Parts, all_used};
use crate::escape::Foreign;

/// Most live buffers that are known by name, of all processes. Beyond this, the names of a process are forgotten.
const MAX_BUFFERS: usize = 1 << 20;
/// Most names, likewise. More are shown as none.
const MAX_NAMES: usize = 1 << 16;

/// What is needed of a process besides its events.
pub(super) trait Origin {
    /// The identity of its segment.
    fn identity(&self) -> u64;

    /// The chip of one of its devices.
    fn chip_id(&self, device: u8) -> Option<u64>;

    /// One of its names.
    fn name(&self, name: Name) -> Option<Foreign>;
}

impl Origin for Segment {
    fn identity(&self) -> u64 {
        Segment::identity(self)
    }

    fn chip_id(&self, device: u8) -> Option<u64> {
        self.words().device(usize::from(device)).map(|entry| entry.chip_id)
    }

    fn name(&self, name: Name) -> Option<Foreign> {
        Segment::name(self, name).map(Foreign::from)
    }
}

/// A part of a peak: what one process had of one class under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The identity of its process's segment.
    pub(super) identity: u64,
    pub(super) class: Class,
    pub(super) name: Option<Foreign>,
    pub(super) sum: Sum,
}

/// The composition of a peak.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Composition {
    /// Most bytes first.
    pub(super) parts: Vec<Part>,
    /// Whether everything is in it under its name, at a moment that there was.
    pub(super) is_complete: bool,
}

impl Composition {
    /// The bytes of all parts.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.sum.bytes))
    }
}

/// What a process left, besides its part in peaks.
#[derive(Default)]
pub(super) struct Left {
    /// What was freed because its device was closed: by device, class, name and call site.
    pub(super) dropped: BTreeMap<(u8, Class, Option<Foreign>, Option<Foreign>), Sum>,
    /// Allocations that failed, by device and class.
    pub(super) failed: BTreeMap<(u8, Class), u64>,
    /// Whether events were missed.
    pub(super) is_incomplete: bool,
}

/// One process on one device.
struct Account {
    /// The chip, by its place among those of the run.
    chip: usize,
    held: Holdings,
}

/// A process of the run.
#[derive(Default)]
struct Process {
    identity: u64,
    /// By device index; emptied when it ends.
    accounts: Vec<Option<Account>>,
    /// The names it used; `None` for one that could not be read.
    names: HashMap<Name, Option<Foreign>>,
    left: Left,
    /// Whether it ended, or is not believed any more.
    is_over: bool,
}

impl Process {
    /// The chips that it is on.
    fn chips(&self) -> BTreeSet<usize> {
        self.accounts.iter().flatten().map(|account| account.chip).collect()
    }
}

/// All processes and chips of a run.
#[derive(Default)]
pub(super) struct Composer {
    processes: Vec<Process>,
    by_identity: HashMap<u64, usize>,
    chips: Vec<Chip>,
    by_chip: HashMap<u64, usize>,
    /// The number of events so far.
    events: u64,
    /// Live buffers that are known.
    buffers: usize,
    /// Names that are kept.
    names: usize,
}

impl Composer {
    /// Takes in an event.
    pub(super) fn event(&mut self, origin: &impl Origin, time: u64, event: &Event) {
        if event.device == NO_DEVICE {
            return;
        }
        let process = self.process(origin);
        if self.processes[process].is_over {
            return;
        }
        let device = usize::from(event.device);
        let Some(chip) = self.open(origin, process, event.device) else {
            self.processes[process].left.is_incomplete = true;
            return;
        };
        self.events += 1;
        if let Some(memory) = UsedMemory::lowered_by(event) {
            self.keep(chip, memory);
        }
        self.learn_names(origin, process, [event.name, event.site]);
        let number = self.events;
        let Some(account) = self.processes[process].accounts[device].as_mut() else { return };
        let held = &mut account.held;
        let (before, known) = (all_used(held.counters()), held.known());
        let Ok(effect) = held.apply(event, number) else { return self.disown(process) };
        let after = all_used(held.counters());
        self.buffers = self.buffers + held.known() - known;
        if self.buffers > MAX_BUFFERS {
            self.buffers -= held.known();
            held.forget_names();
            self.processes[process].left.is_incomplete = true;
        }
        self.chips[chip].event([before, after], time, number);
        self.note(process, event, effect);
    }

    /// Takes in counters that were read in full: what is held now has no names.
    pub(super) fn counters(&mut self, origin: &impl Origin, time: u64, devices: &[Counters]) {
        let process = self.process(origin);
        self.processes[process].left.is_incomplete = true;
        for (device, counters) in (0..=u8::MAX).zip(devices) {
            let Some(chip) = self.open(origin, process, device) else { continue };
            self.events += 1;
            UsedMemory::ALL.into_iter().for_each(|memory| self.keep(chip, memory));
            let Some(account) = self.processes[process].accounts[usize::from(device)].as_mut() else {
                continue;
            };
            let before = std::mem::replace(&mut account.held, Holdings::new(*counters));
            self.buffers -= before.known();
            let used = [all_used(before.counters()), all_used(counters)];
            self.chips[chip].event(used, time, self.events);
        }
    }

    /// A process ended: it holds nothing from this time on.
    pub(super) fn ended(&mut self, origin: &impl Origin, time: u64) {
        let process = self.process(origin);
        self.leave(process, time);
    }

    /// What a process reports is impossible: nothing that it was part of is certain.
    pub(super) fn broke(&mut self, origin: &impl Origin) {
        let process = self.process(origin);
        self.disown(process);
    }

    fn disown(&mut self, process: usize) {
        self.processes[process].left.is_incomplete = true;
        for chip in self.processes[process].chips() {
            self.chips[chip].doubt();
        }
        self.leave(process, u64::MAX);
    }

    fn leave(&mut self, process: usize, time: u64) {
        for chip in self.processes[process].chips() {
            UsedMemory::ALL.into_iter().for_each(|memory| self.keep(chip, memory));
            self.chips[chip].accounts.retain(|(member, _)| *member != process);
        }
        for account in std::mem::take(&mut self.processes[process].accounts).into_iter().flatten() {
            self.buffers -= account.held.known();
            for memory in UsedMemory::ALL {
                let held = memory.used(account.held.counters());
                self.chips[account.chip].change(memory, (held, 0), time, self.events);
            }
        }
        self.processes[process].is_over = true;
        self.forget_names_of(process);
    }

    /// Forgets the names of a process that has ended, except those in peaks.
    fn forget_names_of(&mut self, process: usize) {
        let used: HashSet<Name> = self.chips.iter().flat_map(|chip| chip.names_of(process)).collect();
        let names = &mut self.processes[process].names;
        let before = names.len();
        names.retain(|name, _| used.contains(name));
        names.shrink_to_fit();
        self.names -= before - names.len();
    }

    /// The place of a process in the list.
    fn process(&mut self, origin: &impl Origin) -> usize {
        let next = self.processes.len();
        let place = *self.by_identity.entry(origin.identity()).or_insert(next);
        if place == next {
            self.processes.push(Process { identity: origin.identity(), ..Process::default() });
        }
        place
    }

    /// Makes sure that a process has an account on its device; returns the place of the chip.
    fn open(&mut self, origin: &impl Origin, process: usize, device: u8) -> Option<usize> {
        let device_place = usize::from(device);
        let accounts = &mut self.processes[process].accounts;
        if let Some(Some(account)) = accounts.get(device_place) {
            return Some(account.chip);
        }
        let next = self.chips.len();
        let chip = *self.by_chip.entry(origin.chip_id(device)?).or_insert(next);
        if chip == next {
            self.chips.push(Chip::default());
        }
        self.chips[chip].accounts.push((process, device_place));
        accounts.resize_with(accounts.len().max(device_place + 1), || None);
        accounts[device_place] = Some(Account { chip, held: Holdings::default() });
        Some(chip)
    }

    /// Reads names that are new: once the process has ended, nobody can.
    fn learn_names(&mut self, origin: &impl Origin, process: usize, names: [Name; 2]) {
        let known = &mut self.processes[process].names;
        for name in names.into_iter().filter(|name| *name != 0) {
            if known.contains_key(&name) {
                continue;
            }
            if self.names >= MAX_NAMES {
                self.processes[process].left.is_incomplete = true;
                return;
            }
            known.insert(name, origin.name(name));
            self.names += 1;
        }
    }

    /// Copies the composition of a peak that is about to change.
    fn keep(&mut self, chip: usize, memory: UsedMemory) {
        if self.chips[chip].is_to_copy(memory) {
            let parts = self.compose(chip, memory);
            self.chips[chip].copy(memory, parts);
        }
    }

    /// What is held of a chip now.
    fn compose(&self, chip: usize, memory: UsedMemory) -> Parts {
        let mut parts = Parts { is_complete: true, ..Parts::default() };
        for (place, device) in &self.chips[chip].accounts {
            let process = &self.processes[*place];
            let Some(Some(account)) = process.accounts.get(*device) else { continue };
            for (class, name, sum) in account.held.parts(memory.is_part()) {
                parts.is_complete &= !process.left.is_incomplete;
                parts.sums.entry((*place, class, name)).or_default().add(sum);
            }
        }
        parts
    }

    /// Notes what an event did besides changing what is used.
    fn note(&mut self, process: usize, event: &Event, effect: Effect) {
        let Some(class) = event.class() else { return };
        match (event.kind(), effect) {
            (_, Effect::Named(before, name)) => self.rename(process, event.device, &before, name),
            (Some(EventKind::AllocFailed), _) => {
                *self.processes[process].left.failed.entry((event.device, class)).or_default() += 1;
            }
            (Some(EventKind::Free), effect) if event.has(flags::DROPPED) => {
                let (name, site) = match effect {
                    Effect::Freed(buffer) => (buffer.name, buffer.site),
                    _ => (0, 0),
                };
                let Process { names, left, .. } = &mut self.processes[process];
                let [name, site] = [name, site].map(|name| names.get(&name).cloned().flatten());
                let dropped = left.dropped.entry((event.device, class, name, site)).or_default();
                dropped.add(Sum { bytes: event.size, count: 1 });
            }
            _ => {}
        }
    }

    /// Renames a buffer in the peaks that it is part of.
    fn rename(&mut self, process: usize, device: u8, buffer: &Held, name: Name) {
        if let Some(Some(account)) = self.processes[process].accounts.get(usize::from(device)) {
            self.chips[account.chip].rename(process, buffer, name);
        }
    }

    /// What the peak of a chip was made of; `None` if nothing was seen there.
    pub(super) fn composition(&self, chip_id: u64, memory: UsedMemory) -> Option<Composition> {
        let chip = *self.by_chip.get(&chip_id)?;
        let Parts { sums, is_complete } = self.chips[chip].peak(memory, || self.compose(chip, memory))?;
        let part = |((place, class, name), sum): ((usize, Class, Name), Sum)| {
            let process = &self.processes[place];
            let name = process.names.get(&name).cloned().flatten();
            Part { identity: process.identity, class, name, sum }
        };
        let mut parts: Vec<Part> = sums.into_iter().filter(|(_, sum)| sum.bytes > 0).map(part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.sum.bytes));
        Some(Composition { parts, is_complete })
    }

    /// What a process left; `None` if no event of it was seen.
    pub(super) fn left(&self, identity: u64) -> Option<&Left> {
        self.by_identity.get(&identity).map(|place| &self.processes[*place].left)
    }
}

/// The observer that an aggregator gets; what it has found is taken out at the end.
#[derive(Clone, Default)]
pub(super) struct Observer(Arc<Mutex<Composer>>);

impl Observer {
    /// What was found.
    pub(super) fn take(&self) -> Composer {
        self.with(std::mem::take)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Composer) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl Observe for Observer {
    fn events(&mut self, segment: &Segment, events: &mut dyn Iterator<Item = (u64, &Event)>) {
        self.with(|composer| events.for_each(|(time, event)| composer.event(segment, time, event)));
    }

    fn counters(&mut self, segment: &Segment, time: u64, devices: &[Counters]) {
        self.with(|composer| composer.counters(segment, time, devices));
    }

    fn ended(&mut self, segment: &Segment, time: u64) {
        self.with(|composer| composer.ended(segment, time));
    }

    fn broke(&mut self, segment: &Segment) {
        self.with(|composer| composer.broke(segment));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process whose device N is chip N.
    struct Fake(u64);

    impl Origin for Fake {
        fn identity(&self) -> u64 {
            self.0
        }

        fn chip_id(&self, device: u8) -> Option<u64> {
            Some(u64::from(device))
        }

        fn name(&self, name: Name) -> Option<Foreign> {
            Some(["", "add", "matmul", "softmax"][usize::from(name)].into())
        }
    }

    const ADD: Name = 1;
    const MATMUL: Name = 2;
    const SOFTMAX: Name = 3;

    fn event(kind: EventKind, device: u8, class: Class, id: u64, size: u64) -> Event {
        Event { class: class as u8, id, size, aux: size, ..Event::new(kind, device) }
    }

    /// A run that is fed events one after the other.
    #[derive(Default)]
    struct Run {
        composer: Composer,
        time: u64,
    }

    impl Run {
        fn tell(&mut self, process: &Fake, event: Event) {
            self.time += 1;
            self.composer.event(process, self.time, &event);
        }

        fn alloc(&mut self, process: &Fake, device: u8, id: u64, size: u64) {
            self.tell(process, event(EventKind::Alloc, device, Class::Dram, id, size));
        }

        fn free(&mut self, process: &Fake, device: u8, id: u64, size: u64) {
            self.tell(process, event(EventKind::Free, device, Class::Dram, id, size));
        }

        fn name(&mut self, process: &Fake, device: u8, id: u64, size: u64, name: Name) {
            self.tell(process, Event { name, ..event(EventKind::Name, device, Class::Dram, id, size) });
        }

        /// Identity, name, bytes and count of the parts, and whether they are complete.
        fn peak(&self, chip: u64, memory: UsedMemory) -> (Vec<(u64, String, u64, u64)>, bool) {
            let Some(found) = self.composer.composition(chip, memory) else { return (Vec::new(), true) };
            let part = |part: Part| {
                let name = part.name.map_or_else(|| "-".to_owned(), |name| name.to_string());
                (part.identity, name, part.sum.bytes, part.sum.count)
            };
            (found.parts.into_iter().map(part).collect(), found.is_complete)
        }
    }

    fn part(identity: u64, name: &str, bytes: u64, count: u64) -> (u64, String, u64, u64) {
        (identity, name.to_owned(), bytes, count)
    }

    #[test]
    fn a_name_that_comes_after_the_peak_is_in_it() {
        let (mut run, one) = (Run::default(), Fake(1));
        run.alloc(&one, 0, 1, 10);
        run.name(&one, 0, 1, 10, ADD);
        run.alloc(&one, 0, 2, 20);
        run.alloc(&one, 0, 3, 30);
        assert_eq!(run.peak(0, UsedMemory::Dram), (vec![part(1, "-", 50, 2), part(1, "add", 10, 1)], true));
        // The peak is over: from now on there is a copy of it.
        run.free(&one, 0, 1, 10);
        run.name(&one, 0, 2, 20, MATMUL);
        run.name(&one, 0, 3, 30, ADD);
        let renamed = vec![part(1, "add", 40, 2), part(1, "matmul", 20, 1)];
        assert_eq!(run.peak(0, UsedMemory::Dram), (renamed.clone(), true));
        // This one was not part of it.
        run.alloc(&one, 0, 4, 5);
        run.name(&one, 0, 4, 5, SOFTMAX);
        assert_eq!(run.peak(0, UsedMemory::Dram), (renamed, true));
        // A new peak, by one that gets the id of an earlier one.
        run.alloc(&one, 0, 1, 100);
        run.name(&one, 0, 1, 100, SOFTMAX);
        let parts = vec![part(1, "softmax", 105, 2), part(1, "add", 30, 1), part(1, "matmul", 20, 1)];
        assert_eq!(run.peak(0, UsedMemory::Dram), (parts, true));
    }

    #[test]
    fn processes_on_a_chip_add_up_until_they_end() {
        let (mut run, one, two, three) = (Run::default(), Fake(1), Fake(2), Fake(3));
        run.alloc(&one, 0, 1, 10);
        run.alloc(&two, 0, 1, 20);
        run.name(&two, 0, 1, 20, ADD);
        let time = run.time + 1;
        run.composer.ended(&two, time);
        run.alloc(&three, 0, 1, 15);
        let both = vec![part(2, "add", 20, 1), part(1, "-", 10, 1)];
        assert_eq!(run.peak(0, UsedMemory::Dram), (both, true), "10 + 15 is less");
        run.alloc(&three, 0, 2, 10);
        assert_eq!(run.peak(0, UsedMemory::Dram), (vec![part(3, "-", 25, 2), part(1, "-", 10, 1)], true));
        assert_eq!(run.composer.processes[1].names.len(), 1, "still needed when it ended");
    }

    #[test]
    fn the_devices_of_a_mesh_are_told_apart() {
        let (mut run, one) = (Run::default(), Fake(1));
        for device in 0..4 {
            run.alloc(&one, device, 7, 10);
            run.name(&one, device, 7, 10, MATMUL);
        }
        run.alloc(&one, 2, 8, 1);
        for chip in [0, 1, 3] {
            assert_eq!(run.peak(chip, UsedMemory::Dram), (vec![part(1, "matmul", 10, 1)], true));
        }
        assert_eq!(run.peak(2, UsedMemory::Dram).0, [part(1, "matmul", 10, 1), part(1, "-", 1, 1)]);
        assert_eq!(run.peak(0, UsedMemory::L1), (vec![], true));
    }

    #[test]
    fn l1_is_buffers_and_the_circular_buffers_of_resident_programs() {
        let (mut run, one) = (Run::default(), Fake(1));
        run.tell(&one, event(EventKind::Alloc, 0, Class::L1, 1, 10));
        let dispatch = |program: u64, size: u64, name: Name| Event {
            name,
            flags: flags::RESIDENT,
            address: 1,
            aux: 0,
            ..event(EventKind::KernelDispatch, 0, Class::KernelApplication, program, size)
        };
        run.tell(&one, dispatch(5, 70, SOFTMAX));
        run.tell(&one, dispatch(6, 40, ADD));
        assert_eq!(run.peak(0, UsedMemory::L1).0, [part(1, "softmax", 70, 1), part(1, "-", 10, 1)]);
        run.tell(&one, event(EventKind::Alloc, 0, Class::L1, 2, 31));
        assert_eq!(run.peak(0, UsedMemory::L1).0, [part(1, "-", 41, 2), part(1, "add", 40, 1)]);
    }

    #[test]
    fn what_was_missed_has_no_name_and_is_not_called_complete() {
        let (mut run, one) = (Run::default(), Fake(1));
        run.alloc(&one, 0, 1, 10);
        run.name(&one, 0, 1, 10, ADD);
        let mut counters = Counters::ZERO;
        counters.apply(&event(EventKind::Alloc, 0, Class::Dram, 2, 50)).unwrap();
        run.time += 1;
        run.composer.counters(&one, run.time, &[counters]);
        assert_eq!(run.peak(0, UsedMemory::Dram), (vec![part(1, "-", 50, 1)], false));
        // What was allocated in the gap is freed, and named: neither is known.
        run.name(&one, 0, 2, 50, ADD);
        run.alloc(&one, 0, 3, 7);
        run.name(&one, 0, 3, 7, MATMUL);
        assert_eq!(
            run.peak(0, UsedMemory::Dram),
            (vec![part(1, "-", 50, 1), part(1, "matmul", 7, 1)], false)
        );
        run.free(&one, 0, 2, 50);
        assert_eq!(run.composer.chips[0].used(UsedMemory::Dram), 7);
        assert!(run.composer.left(1).unwrap().is_incomplete);
    }

    #[test]
    fn a_peak_before_which_something_comes_late_is_doubtful() {
        let (mut run, one, two) = (Run::default(), Fake(1), Fake(2));
        run.alloc(&one, 0, 1, 10);
        run.composer.event(&two, 100, &event(EventKind::Alloc, 0, Class::Dram, 1, 20));
        assert!(run.peak(0, UsedMemory::Dram).1);
        // It was freed before the other one allocated: they never held 30 together.
        run.composer.event(&one, 50, &event(EventKind::Free, 0, Class::Dram, 1, 10));
        assert!(!run.peak(0, UsedMemory::Dram).1);
        run.time = 200;
        run.alloc(&one, 0, 2, 100);
        assert_eq!(run.peak(0, UsedMemory::Dram), (vec![part(1, "-", 100, 1), part(2, "-", 20, 1)], true));
    }

    #[test]
    fn an_impossible_process_is_part_of_nothing() {
        let (mut run, one, two) = (Run::default(), Fake(1), Fake(2));
        run.alloc(&one, 0, 1, 10);
        run.alloc(&two, 0, 1, 5);
        run.free(&one, 0, 1, 99);
        run.alloc(&one, 0, 2, 1000);
        assert_eq!(run.composer.chips[0].used(UsedMemory::Dram), 5);
        assert!(!run.peak(0, UsedMemory::Dram).1);
        assert_eq!(run.composer.buffers, 1);
    }

    #[test]
    fn what_a_device_drops_and_what_fails_is_counted() {
        let (mut run, one) = (Run::default(), Fake(1));
        for id in 0..3 {
            run.alloc(&one, 1, id, 10);
        }
        run.name(&one, 1, 0, 10, ADD);
        run.free(&one, 1, 2, 10);
        for id in 0..2 {
            let free = event(EventKind::Free, 1, Class::Dram, id, 10);
            run.tell(&one, Event { flags: flags::DROPPED, ..free });
        }
        (0..2).for_each(|_| run.tell(&one, event(EventKind::AllocFailed, 1, Class::L1, 0, 10)));
        let time = run.time;
        run.composer.ended(&one, time);
        let left = run.composer.left(1).unwrap();
        let one_of = |name: Option<Foreign>| ((1, Class::Dram, name, None), Sum { bytes: 10, count: 1 });
        assert_eq!(left.dropped, BTreeMap::from([one_of(None), one_of(Some("add".into()))]));
        assert_eq!(left.failed, BTreeMap::from([((1, Class::L1), 2)]));
        assert!(!left.is_incomplete);
    }
}
