//! The clocks: a table's times as wall-clock times and ages.

use serde::{Serialize, Serializer};
use tt_shm_reader::{TableSnapshot, awake_since, monotonic_ns, realtime_ns};

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

    /// A time of CLOCK_MONOTONIC, with what the wall clock showed then.
    pub fn moment(self, time: u64) -> Moment {
        let realtime_ns = self.wall_ns(i64::try_from(time).unwrap_or(i64::MAX));
        Moment { monotonic_ns: time, realtime_ns }
    }

    /// In RFC 3339, also a time from before the machine was started.
    pub fn rfc3339_signed(self, time: i64) -> Option<String> {
        self.wall_ns(time).map(rfc3339)
    }

    /// This moment in RFC 3339.
    pub fn timestamp(self) -> String {
        rfc3339(self.realtime_ns)
    }
}

/// A time on both clocks. As JSON it is RFC 3339, UTC, to the microsecond, or null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME; `None` if that was before the machine was suspended: nobody knows for how long.
    pub realtime_ns: Option<u64>,
}

impl Moment {
    /// In RFC 3339, if the wall clock is known.
    pub fn rfc3339(self) -> Option<String> {
        self.realtime_ns.map(rfc3339)
    }

    /// Seconds since 1970, likewise.
    pub fn unix_seconds(self) -> Option<f64> {
        self.realtime_ns.map(|wall| wall as f64 / 1e9)
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        crate::schema::time(true)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.rfc3339().serialize(serializer)
    }
}

/// Nanoseconds since 1970 in RFC 3339, UTC, to the microsecond.
pub fn rfc3339(realtime_ns: u64) -> String {
    match jiff::Timestamp::from_microsecond((realtime_ns / 1000) as i64) {
        Ok(time) => format!("{time:.6}"),
        Err(_) => crate::units::UNKNOWN.to_owned(),
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
        assert_eq!(clock.moment(70 * SECOND).rfc3339().as_deref(), Some("2026-09-21T14:12:50.000000Z"));
        assert_eq!(clock.moment(60 * SECOND).unix_seconds(), Some(1_789_999_960.0));
        assert_eq!((clock.moment(59 * SECOND).rfc3339(), clock.rfc3339_signed(-1)), (None, None));
        let never = Clock { awake_since: 0, ..clock };
        assert!(never.moment(0).rfc3339().is_some());
        // What the chart's left end may be, before the machine was started: it was not suspended either.
        assert_eq!(never.rfc3339_signed(-(SECOND as i64)).as_deref(), Some("2026-09-21T14:11:39.000000Z"));
    }
}
