//! The figures that devices and processes have in common.

use tt_shm_reader::{Class, CoreType, TableSnapshot, awake_since, monotonic_ns, realtime_ns};

use super::{Interval, KERNEL_CLASSES, said};

/// One moment on both clocks: turns a table's times into wall-clock times and ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME.
    pub realtime_ns: u64,
    /// Since when the machine is known not to have been suspended, CLOCK_MONOTONIC.
    pub awake_since: u64,
}

impl Clock {
    /// This moment, by itself: if the machine was ever suspended, nobody knows when.
    pub fn now() -> Clock {
        Clock { awake_since: awake_since(), monotonic_ns: monotonic_ns(), realtime_ns: realtime_ns() }
    }

    /// This moment, beside an aggregator that knows since when the machine was not suspended.
    pub fn beside(snapshot: &TableSnapshot) -> Clock {
        let now = Clock::now();
        Clock { awake_since: now.awake_since.min(snapshot.awake_since), ..now }
    }

    /// How long ago a time of CLOCK_MONOTONIC was.
    pub fn age_ns(self, time: u64) -> u64 {
        self.monotonic_ns.saturating_sub(time)
    }

    /// What the wall clock showed at a time of CLOCK_MONOTONIC, which may be before the machine was started.
    fn wall_ns(self, time: i64) -> Option<u64> {
        let asleep = self.awake_since > 0 && time < i64::try_from(self.awake_since).unwrap_or(i64::MAX);
        let start = i128::from(self.realtime_ns) - i128::from(self.monotonic_ns);
        u64::try_from(start + i128::from(time)).ok().filter(|_| !asleep)
    }

    /// A time of CLOCK_MONOTONIC in RFC 3339; `None` if it was before the machine was suspended: nobody knows for how
    /// long.
    pub fn rfc3339(self, time: u64) -> Option<String> {
        self.rfc3339_signed(i64::try_from(time).unwrap_or(i64::MAX))
    }

    /// The same, also of a time from before the machine was started.
    pub fn rfc3339_signed(self, time: i64) -> Option<String> {
        self.wall_ns(time).map(rfc3339)
    }

    /// Seconds since 1970 of a time of CLOCK_MONOTONIC, likewise.
    pub fn unix_seconds(self, time: u64) -> Option<f64> {
        self.wall_ns(i64::try_from(time).unwrap_or(i64::MAX)).map(|wall| wall as f64 / 1e9)
    }

    /// This moment in RFC 3339.
    pub fn timestamp(self) -> String {
        rfc3339(self.realtime_ns)
    }
}

/// Nanoseconds since 1970 in RFC 3339, UTC, to the microsecond.
pub fn rfc3339(realtime_ns: u64) -> String {
    match jiff::Timestamp::from_microsecond((realtime_ns / 1000) as i64) {
        Ok(time) => format!("{time:.6}"),
        Err(_) => crate::output::units::UNKNOWN.to_owned(),
    }
}

/// A largest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Largest value that is certain, and the most that it can have been.
    pub range: Interval,
    /// When `range.low` was reached first, CLOCK_MONOTONIC; `None` if nobody knows, or nothing was ever used.
    pub time: Option<u64>,
    /// Buffers at that time, where buffers are counted.
    pub count: Option<u64>,
}

impl Peak {
    /// Without a count: kernels on ethernet cores are not buffers.
    pub fn uncounted(self) -> Peak {
        Peak { count: None, ..self }
    }

    /// Whether it is exact.
    pub fn is_exact(&self) -> bool {
        self.range.is_exact()
    }
}

impl From<&tt_shm_reader::Peak> for Peak {
    fn from(peak: &tt_shm_reader::Peak) -> Peak {
        let time = Some(peak.time).filter(|time| *time != 0 && peak.low != 0);
        let range = Interval { low: peak.low, high: said(peak.high.max(peak.low)) };
        Peak { range, time, count: time.map(|_| peak.count) }
    }
}

/// A kind of memory: what is used of how much, and the most that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes used: what is occupied.
    pub used: u64,
    /// Bytes that were asked for by what uses it.
    pub requested: u64,
    /// Bytes that can be allocated, if a process said so.
    pub total: Option<u64>,
    /// Bytes that the device has and the allocator does not give, if both are known.
    pub reserved: Option<u64>,
    /// The most that was used.
    pub peak: Peak,
    /// Somebody who could not be read may use more.
    pub incomplete: bool,
}

impl Memory {
    /// What is known of the bytes used now.
    pub fn used_range(&self) -> Interval {
        live_range(self.used, self.incomplete)
    }
}

/// What is known of a figure of now, of a device of which somebody could not be read or of which everybody was.
pub fn live_range(bytes: u64, incomplete: bool) -> Interval {
    if incomplete { Interval::at_least(bytes) } else { Interval::exact(bytes) }
}

/// A class: what is live, and the most that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassFigure {
    /// Bytes occupied.
    pub bytes: u64,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Of the bytes occupied, those of which only what was asked for is known.
    pub requested_basis: u64,
    /// Allocations live.
    pub count: u64,
    /// The most bytes that were occupied.
    pub peak: Peak,
}

impl ClassFigure {
    /// What is occupied beyond what was asked for.
    pub fn padding(&self) -> u64 {
        self.bytes.saturating_sub(self.requested)
    }

    /// What the bytes are: `occupied`, what was `requested` where nobody told more, or `mixed`.
    pub fn basis(&self) -> &'static str {
        basis(self.requested_basis, self.bytes)
    }
}

/// What so many bytes are, of which so many are known by what was asked for only.
pub fn basis(requested_basis: u64, bytes: u64) -> &'static str {
    match requested_basis {
        0 => "occupied",
        all if all >= bytes => "requested",
        _ => "mixed",
    }
}

/// Bytes asked for by what uses a memory: its buffers, and circular buffers that are resident.
pub fn requested(classes: &[ClassFigure; Class::COUNT], of: tt_shm_reader::Memory, cb_resident: u64) -> u64 {
    let bytes = |class: Class| match class {
        Class::Cb => cb_resident,
        class => classes[class as usize].requested,
    };
    let classes = Class::ALL.into_iter().filter(|class| class.memory() == of);
    classes.map(bytes).fold(0, u64::saturating_add)
}

/// All loaded kernels, whatever their type and cores: bytes and number.
pub fn kernel_loaded(classes: &[ClassFigure; Class::COUNT]) -> (u64, u64) {
    let add = |(bytes, count): (u64, u64), class: Class| {
        let figure = &classes[class as usize];
        (bytes.saturating_add(figure.bytes), count.saturating_add(figure.count))
    };
    KERNEL_CLASSES.into_iter().fold((0, 0), add)
}

/// The word for a kind of core.
pub fn core_type_name(core_type: CoreType) -> &'static str {
    match core_type {
        CoreType::Tensix => "tensix",
        CoreType::Ethernet => "ethernet",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn before_a_suspension_the_wall_clock_is_not_known() {
        let clock = Clock {
            monotonic_ns: 100 * SECOND,
            realtime_ns: 1_790_000_000 * SECOND,
            awake_since: 60 * SECOND,
        };
        assert_eq!(clock.rfc3339(70 * SECOND).as_deref(), Some("2026-09-21T14:12:50.000000Z"));
        assert_eq!(clock.unix_seconds(60 * SECOND), Some(1_789_999_960.0));
        assert_eq!((clock.rfc3339(59 * SECOND), clock.rfc3339_signed(-1)), (None, None));
        let never = Clock { awake_since: 0, ..clock };
        assert!(never.rfc3339(0).is_some());
        // What the chart's left end may be, before the machine was started: it was not suspended either.
        assert_eq!(never.rfc3339_signed(-(SECOND as i64)).as_deref(), Some("2026-09-21T14:11:39.000000Z"));
    }
}
