//! What a process holds on a device, by name: its counters, and what its live buffers are called.

use std::collections::{BTreeMap, HashMap};

use tt_shm_reader::{Class, Counters, Event, EventKind, Implausible, LANES, flags};

/// The number of a name in its process; 0 for none.
pub(super) type Name = u16;

/// Bytes and number of some allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) count: u64,
}

impl Sum {
    pub(super) fn add(&mut self, other: Sum) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.count = self.count.saturating_add(other.count);
    }

    pub(super) fn subtract(&mut self, other: Sum) {
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.count = self.count.saturating_sub(other.count);
    }
}

/// A live buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) class: Class,
    pub(super) size: u64,
    pub(super) name: Name,
    /// Where it was allocated.
    pub(super) site: Name,
    /// The number of the event that allocated it, among all events.
    pub(super) since: u64,
}

impl Buffer {
    pub(super) fn sum(&self) -> Sum {
        Sum { bytes: self.size, count: 1 }
    }
}

/// What an event did, apart from what it did to the counters.
pub(super) enum Effect {
    None,
    /// A buffer was freed.
    Freed(Buffer),
    /// A buffer, as it was before, got this name.
    Named(Buffer, Name),
}

/// One process on one device.
pub(super) struct Account {
    /// The chip, by its place among those of the run.
    pub(super) chip: usize,
    pub(super) counters: Counters,
    live: HashMap<u64, Buffer>,
    /// What is live of each class under each name. What has no name is the rest.
    named: BTreeMap<(Class, Name), Sum>,
    /// The name of the program that was dispatched last in each lane.
    programs: [Name; LANES],
}

impl Account {
    pub(super) fn new(chip: usize) -> Account {
        Account {
            chip,
            counters: Counters::ZERO,
            live: HashMap::new(),
            named: BTreeMap::new(),
            programs: [0; LANES],
        }
    }

    /// The number of buffers that are kept by their ids.
    pub(super) fn known(&self) -> usize {
        self.live.len()
    }

    /// Applies an event, which has this number among all events.
    pub(super) fn apply(&mut self, event: &Event, number: u64) -> Result<Effect, Implausible> {
        self.counters.apply(event)?;
        let Some(class) = event.class() else { return Ok(Effect::None) };
        let effect = match event.kind() {
            Some(EventKind::Alloc) => {
                let Event { id, size, name, site, .. } = *event;
                let buffer = Buffer { class, size, name, site, since: number };
                self.live.insert(id, buffer);
                self.count(&buffer);
                Effect::None
            }
            // What was allocated before a gap is not known by its id: it is among what has no name.
            Some(EventKind::Free) => self.live.remove(&event.id).map_or(Effect::None, |buffer| {
                self.discount(&buffer);
                Effect::Freed(buffer)
            }),
            Some(EventKind::Name) if !class.is_program_memory() => self.rename(event),
            Some(EventKind::KernelDispatch) if event.has(flags::RESIDENT) => {
                self.programs[usize::from(event.lane()) % LANES] = event.name;
                Effect::None
            }
            _ => Effect::None,
        };
        Ok(effect)
    }

    fn rename(&mut self, event: &Event) -> Effect {
        let Some(buffer) = self.live.get_mut(&event.id) else { return Effect::None };
        let before = *buffer;
        (buffer.name, buffer.site) = (event.name, event.site);
        let after = *buffer;
        self.discount(&before);
        self.count(&after);
        Effect::Named(before, after.name)
    }

    fn count(&mut self, buffer: &Buffer) {
        if buffer.name != 0 {
            self.named.entry((buffer.class, buffer.name)).or_default().add(buffer.sum());
        }
    }

    fn discount(&mut self, buffer: &Buffer) {
        let key = (buffer.class, buffer.name);
        if let Some(sum) = self.named.get_mut(&key) {
            sum.subtract(buffer.sum());
            if sum.count == 0 {
                self.named.remove(&key);
            }
        }
    }

    /// Forgets all names: what is live has none from now on.
    pub(super) fn forget_names(&mut self) {
        self.live = HashMap::new();
        self.named.clear();
        self.programs = [0; LANES];
    }

    /// What it uses of DRAM or of L1, by class and name.
    pub(super) fn parts(&self, is_part: fn(Class) -> bool) -> Vec<(Class, Name, Sum)> {
        let mut parts: Vec<(Class, Name, Sum)> = Vec::new();
        for class in Class::ALL.into_iter().filter(|class| is_part(*class) && !class.is_program_memory()) {
            let counters = self.counters.class(class);
            let mut rest = Sum { bytes: counters.live_bytes, count: counters.live_count };
            for ((_, name), sum) in self.named.range((class, 0)..=(class, Name::MAX)) {
                rest.subtract(*sum);
                parts.push((class, *name, *sum));
            }
            parts.push((class, 0, rest));
        }
        if is_part(Class::Cb) {
            let lanes = self.counters.lanes.iter().zip(self.programs);
            parts.extend(lanes.map(|(lane, name)| (Class::Cb, name, Sum { bytes: lane.cb_bytes, count: 1 })));
        }
        parts.retain(|(_, _, sum)| sum.bytes > 0);
        parts
    }
}
