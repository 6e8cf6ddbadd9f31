//! What devices and allocation failures have in the fields of a query.

use std::sync::LazyLock;

use tt_shm_reader::Class;

use crate::escape::Foreign;
use crate::model::{COLUMNS, Cell, Device, Failure};
use crate::query::{Field, Record, Value};

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
            Field::Size => Value::Number(self.shortage.request),
            Field::Pid => Value::number(self.who.pid),
            Field::Name => Value::text(Some(self.who.name.raw())),
            Field::Age => Value::Number(tt_shm_reader::monotonic_ns().saturating_sub(self.time)),
            _ => Value::Unknown,
        }
    }
}
