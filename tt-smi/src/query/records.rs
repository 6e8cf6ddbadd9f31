//! What devices, processes, allocations, programs, events and allocation failures have in their fields.

use std::sync::LazyLock;

use tt_shm_reader::{Class, KernelType};

use super::test::ClassSet;
use super::{Field, Record, Value};
use crate::escape::Foreign;
use crate::lists::allocations::Item;
use crate::lists::events::Happened;
use crate::lists::programs::Entry;
use crate::model::{COLUMNS, Cell, Device, Failure, Process, Word};

/// The fields of live allocations.
pub const ALLOCATION_FIELDS: &[Field] = {
    use Field::*;
    &[Class, Size, Pid, Name, Device, Age, Address, Program, Id, Cores, Core, Site]
};

/// The fields of programs.
pub const PROGRAM_FIELDS: &[Field] = {
    use Field::*;
    &[Class, Size, Pid, Name, Device, Id, Program, Dispatches, Hits, Misses, Last]
};

/// The fields of events.
pub const EVENT_FIELDS: &[Field] = {
    use Field::*;
    &[Kind, Class, Size, Pid, Name, Device, Age, Address, Program, Id, Cores, Core]
};

/// The fields of processes.
pub static PROCESS_FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    use Field::*;
    let own = [
        Pid, Name, User, Command, Container, State, Device, Class, Size, Dram, L1, Peak, Rate, Dispatches,
        Hits, Misses, Age,
    ];
    own.into_iter().chain(Field::figures()).collect()
});

/// The fields of devices; sizes are what is used.
pub(crate) static DEVICE_FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    use Field::*;
    let own = [Device, Name, Class, Size, Dram, L1, Peak, Rate, Dispatches, Hits, Misses];
    own.into_iter().chain(Field::figures()).collect()
});

/// The fields of allocation failures.
pub(crate) const FAILURE_FIELDS: &[Field] = {
    use Field::*;
    &[Device, Class, Size, Pid, Name, Age]
};

fn foreign(text: Option<&Foreign>) -> Value<'_> {
    Value::text(text.map(Foreign::raw))
}

fn indices(devices: impl IntoIterator<Item = usize>) -> Value<'static> {
    Value::Numbers(devices.into_iter().map(|device| device as u64).collect())
}

impl Record for Item {
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Class => Value::Class(self.class),
            Field::Size => Value::Number(self.size),
            Field::Pid => Value::Number(self.pid.into()),
            Field::Name => foreign(self.name.as_ref()),
            Field::Device => Value::Number(self.device as u64),
            Field::Age => Value::Number(self.age_ns),
            Field::Address => Value::number(self.address),
            Field::Program => Value::number(self.program),
            Field::Id => Value::Number(self.id),
            Field::Cores => Value::number(self.cores),
            Field::Core => Value::text(self.core_type.map(Word::word)),
            Field::Site => foreign(self.site.as_ref()),
            _ => Value::Unknown,
        }
    }
}

impl Record for Entry {
    fn value(&self, field: Field) -> Value<'_> {
        let program = &self.program;
        match field {
            Field::Class => {
                Value::Classes(program.kernel_types.iter().copied().map(KernelType::class).collect())
            }
            Field::Size => Value::Number(program.kernel_bytes.saturating_add(program.cb_bytes)),
            Field::Pid => Value::Number(self.pid.into()),
            Field::Name => Value::text(program.name.as_deref()),
            Field::Device => indices(self.devices.iter().copied()),
            Field::Id | Field::Program => Value::Number(program.id),
            Field::Dispatches => Value::Number(program.dispatches),
            Field::Hits => Value::Number(program.cache_hits),
            Field::Misses => Value::Number(program.cache_misses),
            Field::Last => Value::number(self.last_dispatch_ns),
            _ => Value::Unknown,
        }
    }
}

impl Record for Happened {
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Kind => Value::text(Some(self.event())),
            Field::Class => self.class.map_or(Value::Unknown, Value::Class),
            Field::Size => Value::number(self.size_bytes),
            Field::Pid => Value::Number(self.pid.into()),
            Field::Name => foreign(self.name.as_ref()),
            Field::Device => Value::number(self.device.map(|device| device as u64)),
            Field::Age => Value::Number(tt_shm_reader::monotonic_ns().saturating_sub(self.time.monotonic_ns)),
            Field::Address => Value::number(self.address),
            Field::Program => Value::number(self.program),
            Field::Id => Value::Number(self.id),
            Field::Cores => Value::number(self.cores),
            Field::Core => Value::text(self.core_type.map(Word::word)),
            _ => Value::Unknown,
        }
    }
}

impl Record for Process {
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Pid => Value::number(self.pid),
            Field::Name => foreign(Some(&self.name)),
            Field::User => foreign(self.user.as_ref()),
            Field::Command => foreign(self.command.as_ref()),
            Field::Container => {
                let container = self.container.as_ref();
                container.map_or(Value::Unknown, |container| Value::Text(container.to_string().into()))
            }
            Field::State => Value::text(Some(self.state_text())),
            Field::Device => indices(self.usages.iter().map(|usage| usage.device)),
            Field::Class => Value::Classes(classes(self)),
            Field::Size => Value::number(self.total(|held| held.dram.used.saturating_add(held.l1.used))),
            Field::Dram => Value::number(self.total(|held| held.dram.used)),
            Field::L1 => Value::number(self.total(|held| held.l1.used)),
            Field::Peak => Value::number(self.total(|held| held.dram.peak.range.low)),
            Field::Rate => Value::number(self.events_per_second.map(|rate| rate as u64)),
            Field::Dispatches => Value::number(self.total(|held| held.dispatches)),
            Field::Hits => Value::number(self.total(|held| held.cached_dispatches)),
            Field::Misses => {
                Value::number(self.total(|held| held.dispatches.saturating_sub(held.cached_dispatches)))
            }
            Field::Age => Value::Number(self.age_ns),
            Field::Figure(place) => Value::number(COLUMNS.get(place).and_then(|column| self.sum(column))),
            _ => Value::Unknown,
        }
    }
}

impl Record for Device {
    fn value(&self, field: Field) -> Value<'_> {
        let held = &self.held;
        match field {
            Field::Device => Value::Number(self.index as u64),
            Field::Name => Value::text(self.board.as_ref().map(Foreign::raw).or(self.arch)),
            Field::Class => {
                let is_used = |class: &Class| held.class(*class).count != Some(0);
                Value::Classes(Class::ALL.into_iter().filter(is_used).collect())
            }
            Field::Size => Value::Number(held.dram.used.saturating_add(held.l1.used)),
            Field::Dram => Value::Number(held.dram.used),
            Field::L1 => Value::Number(held.l1.used),
            Field::Peak => Value::Number(held.dram.peak.range.low),
            Field::Rate => Value::number(self.events_per_second.map(|rate| rate as u64)),
            Field::Dispatches => Value::Number(held.dispatches),
            Field::Hits => Value::Number(held.cached_dispatches),
            Field::Misses => Value::Number(held.dispatches.saturating_sub(held.cached_dispatches)),
            Field::Figure(place) => match COLUMNS.get(place).map(|column| column.of_device(self)) {
                Some(Cell::Number(number)) => Value::Number(number),
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }
}

impl Record for Failure {
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Device => Value::number(self.device.map(|device| device as u64)),
            Field::Class => self.class.map_or(Value::Unknown, Value::Class),
            Field::Size => Value::Number(self.shortage.request_bytes),
            Field::Pid => Value::number(self.who.pid),
            Field::Name => Value::text(Some(self.who.name.raw())),
            Field::Age => Value::Number(tt_shm_reader::monotonic_ns().saturating_sub(self.time.monotonic_ns)),
            _ => Value::Unknown,
        }
    }
}

/// The classes of which a process has something.
fn classes(process: &Process) -> ClassSet {
    let has = |class: &Class| process.usages.iter().any(|usage| usage.held.class(*class).count != Some(0));
    Class::ALL.into_iter().filter(has).collect()
}
