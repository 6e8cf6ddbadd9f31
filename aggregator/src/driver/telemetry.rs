//! Telemetry of a device over time. Unlike memory, it is only known at the moments at which it was read: a bucket in which
//! nothing was read is missing.

use bytemuck::Zeroable;
use shm_layout::table::{DriverStats, HISTORY_BUCKETS, TELEMETRY_RESOLUTIONS, TelemetryBucket, Told, Trend};

/// The telemetry of one device.
#[derive(Clone, Debug)]
pub(crate) struct Telemetry {
    rings: Box<[[TelemetryBucket; HISTORY_BUCKETS]; TELEMETRY_RESOLUTIONS.len()]>,
}

impl Default for Telemetry {
    fn default() -> Telemetry {
        Telemetry { rings: Box::new(Zeroable::zeroed()) }
    }
}

impl Telemetry {
    /// Adds what was read.
    pub(crate) fn add(&mut self, stats: &DriverStats) {
        let mut read = TelemetryBucket::zeroed();
        for (place, told) in Told::TRENDS.into_iter().enumerate() {
            if let Ok(value) = stats.number(told) {
                read.known |= 1 << place;
                read.trends[place] = Trend::of(value);
            }
        }
        for (ring, length) in self.rings.iter_mut().zip(TELEMETRY_RESOLUTIONS) {
            let start = stats.time - stats.time % length;
            let bucket = &mut ring[index(start, length)];
            *bucket =
                if bucket.start == start { bucket.joined(&read) } else { TelemetryBucket { start, ..read } };
        }
    }

    /// The buckets of a resolution from `since` on, oldest first.
    pub(crate) fn since(&self, resolution: usize, since: u64) -> Vec<TelemetryBucket> {
        let Some((ring, length)) = self.rings.get(resolution).zip(TELEMETRY_RESOLUTIONS.get(resolution))
        else {
            return Vec::new();
        };
        let newest = ring.iter().map(|bucket| bucket.start).max().unwrap_or(0);
        let oldest = newest.saturating_sub(length * (HISTORY_BUCKETS as u64 - 1)).max(since);
        let wanted = |bucket: &&TelemetryBucket| bucket.start != 0 && bucket.start >= oldest;
        let mut buckets: Vec<TelemetryBucket> = ring.iter().filter(wanted).copied().collect();
        buckets.sort_unstable_by_key(|bucket| bucket.start);
        buckets
    }

    /// Adopts a bucket of an earlier aggregator if it is plausible and not in the future.
    pub(crate) fn adopt(&mut self, resolution: usize, bucket: &TelemetryBucket, now: u64) {
        let Some((ring, length)) = self.rings.get_mut(resolution).zip(TELEMETRY_RESOLUTIONS.get(resolution))
        else {
            return;
        };
        let is_in_time = bucket.start != 0 && bucket.start <= now && bucket.start.is_multiple_of(*length);
        if is_in_time && bucket.is_plausible() {
            ring[index(bucket.start, *length)] = *bucket;
        }
    }
}

fn index(start: u64, length: u64) -> usize {
    (start / length) as usize % HISTORY_BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm_layout::table::Absent;

    const T0: u64 = TELEMETRY_RESOLUTIONS[2] * 10;

    fn read(time: u64, temperature: i64, power: Option<i64>) -> DriverStats {
        let mut stats = DriverStats { time, ..DriverStats::zeroed() };
        stats.absences.fill(Absent::Missing as u8);
        stats.absences[Told::Temperature as usize] = 0;
        stats.numbers[Told::Temperature as usize] = temperature as u64;
        if let Some(power) = power {
            stats.absences[Told::Power as usize] = 0;
            stats.numbers[Told::Power as usize] = power as u64;
        }
        stats
    }

    #[test]
    fn each_resolution_has_least_most_and_last() {
        let mut telemetry = Telemetry::default();
        let finest = TELEMETRY_RESOLUTIONS[0];
        for (step, celsius) in [(0, 40), (1, -3), (2, 41)] {
            telemetry.add(&read(T0 + step, celsius, (step == 1).then_some(9)));
        }
        telemetry.add(&read(T0 + 5 * finest, 50, None));
        let [first, last] = telemetry.since(0, 0)[..] else {
            panic!("two buckets; the time between is unknown")
        };
        assert_eq!((first.start, last.start), (T0, T0 + 5 * finest));
        assert_eq!(first.trend(Told::Temperature).unwrap().range(), (-3, 41, 41));
        assert_eq!(first.trend(Told::Power).unwrap().range(), (9, 9, 9));
        assert_eq!((first.trend(Told::Fan), last.trend(Told::Power)), (None, None));
        let [hour] = telemetry.since(1, 0)[..] else { panic!("one bucket") };
        assert_eq!(hour.trend(Told::Temperature).unwrap().range(), (-3, 50, 50));
        assert_eq!(telemetry.since(0, T0 + 1).len(), 1);
        assert!(telemetry.since(9, 0).is_empty());
    }

    #[test]
    fn only_sensible_buckets_are_adopted() {
        let mut telemetry = Telemetry::default();
        let good = TelemetryBucket { start: T0, known: 1, trends: [Trend::of(5); 6] };
        let odd = Trend { min: 3, max: 2, last: 2 };
        telemetry.adopt(
            0,
            &TelemetryBucket { start: T0 + TELEMETRY_RESOLUTIONS[0], trends: [odd; 6], ..good },
            T0 * 2,
        );
        telemetry.adopt(0, &TelemetryBucket { start: T0 + 1, ..good }, T0 * 2);
        telemetry.adopt(0, &TelemetryBucket { start: T0 * 3, ..good }, T0 * 2);
        telemetry.adopt(0, &good, T0 * 2);
        telemetry.adopt(7, &good, T0 * 2);
        assert_eq!(telemetry.since(0, 0), [good]);
    }
}
