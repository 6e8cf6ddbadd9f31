//! What a process holds on a device, by name: its counters, and what its live buffers are called.

use std::collections::{BTreeMap, HashMap};

use shm_layout::{Class, Counters, Event, EventKind, Implausible, LANES, Row, RowKind, flags};

/// Bytes and number of some allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Their bytes.
    pub bytes: u64,
    /// Their number.
    pub count: u64,
}

impl Sum {
    /// Adds others.
    pub fn add(&mut self, other: Sum) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.count = self.count.saturating_add(other.count);
    }

    /// Takes others away.
    pub fn subtract(&mut self, other: Sum) {
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.count = self.count.saturating_sub(other.count);
    }
}

/// A live buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its class.
    pub class: Class,
    /// The bytes that it occupies.
    pub size: u64,
    /// The number of its name; 0 for none.
    pub name: u16,
    /// The number of its call site; 0 for none.
    pub site: u16,
    /// The number of the event that allocated it: see [`Holdings::apply`].
    pub since: u64,
}

impl Held {
    /// Its part of a sum.
    pub fn sum(&self) -> Sum {
        Sum { bytes: self.size, count: 1 }
    }
}

/// What an event did to the buffers, apart from what it did to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that matters for names.
    None,
    /// A buffer was freed.
    Freed(Held),
    /// A buffer, as it was before, got the name with this number.
    Named(Held, u16),
}

/// What one process holds on one device, event by event.
///
/// What it lacks are the names of what was allocated before: give it the counters and live rows of one
/// position, or let it begin where nothing is live.
#[derive(Clone, Debug)]
pub struct Holdings {
    counters: Counters,
    /// By id.
    live: HashMap<u64, Held>,
    /// What is live of each class under each name. What has no name is the rest.
    named: BTreeMap<(Class, u16), Sum>,
    /// The name of the program that was dispatched last in each lane.
    programs: [u16; LANES],
}

impl Default for Holdings {
    fn default() -> Holdings {
        Holdings::new(Counters::ZERO)
    }
}

impl Holdings {
    /// These counters; what is live has no name.
    pub fn new(counters: Counters) -> Holdings {
        Holdings { counters, live: HashMap::new(), named: BTreeMap::new(), programs: [0; LANES] }
    }

    /// Takes the names of what is live from the rows of the position that the counters are of. Rows of other
    /// devices are ignored.
    pub fn learn(&mut self, device: u8, rows: &[Row]) {
        self.forget_names();
        for row in rows.iter().filter(|row| row.device == device) {
            match (row.kind(), row.class()) {
                (Some(RowKind::Buffer), Some(class)) => {
                    let Row { id, size, name, site, stamp, .. } = *row;
                    self.insert(id, Held { class, size, name, site, since: stamp });
                }
                (Some(RowKind::Program), _) => {
                    if let Some(lane) = self.counters.lane_of(row.id) {
                        self.programs[lane] = row.name;
                    }
                }
                _ => {}
            }
        }
    }

    /// Forgets all names: what is live has none from now on.
    pub fn forget_names(&mut self) {
        *self = Holdings::new(self.counters);
    }

    /// The counters, as of the last event.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of buffers that are known by their ids.
    pub fn known(&self) -> usize {
        self.live.len()
    }

    /// Applies an event. `number` is the caller's number for it; buffers keep that of their allocation. On an
    /// error nothing has changed.
    pub fn apply(&mut self, event: &Event, number: u64) -> Result<Effect, Implausible> {
        self.counters.apply(event)?;
        let Some(class) = event.class() else { return Ok(Effect::None) };
        let effect = match event.kind() {
            Some(EventKind::Alloc) => {
                let Event { id, size, name, site, .. } = *event;
                self.insert(id, Held { class, size, name, site, since: number });
                Effect::None
            }
            // What was allocated before a gap is not known by its id: it is among what has no name.
            Some(EventKind::Free) => self.live.remove(&event.id).map_or(Effect::None, |held| {
                self.discount(&held);
                Effect::Freed(held)
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

    fn insert(&mut self, id: u64, held: Held) {
        if let Some(before) = self.live.insert(id, held) {
            // Only a broken process allocates what is live.
            self.discount(&before);
        }
        if held.name != 0 {
            self.named.entry((held.class, held.name)).or_default().add(held.sum());
        }
    }

    fn rename(&mut self, event: &Event) -> Effect {
        let Some(before) = self.live.remove(&event.id) else { return Effect::None };
        self.discount(&before);
        self.insert(event.id, Held { name: event.name, site: event.site, ..before });
        Effect::Named(before, event.name)
    }

    fn discount(&mut self, held: &Held) {
        let key = (held.class, held.name);
        if let Some(sum) = self.named.get_mut(&key) {
            sum.subtract(held.sum());
            if sum.count == 0 {
                self.named.remove(&key);
            }
        }
    }

    /// What is used by class and name, of the classes for which `is_part` is true. Circular buffers count while
    /// their program is resident, under its name: each such program is one.
    pub fn parts(&self, is_part: fn(Class) -> bool) -> Vec<(Class, u16, Sum)> {
        let mut parts: Vec<(Class, u16, Sum)> = Vec::new();
        for class in Class::ALL.into_iter().filter(|class| is_part(*class) && !class.is_program_memory()) {
            let counters = self.counters.class(class);
            let mut rest = Sum { bytes: counters.live_bytes, count: counters.live_count };
            for ((_, name), sum) in self.named.range((class, 0)..=(class, u16::MAX)) {
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
