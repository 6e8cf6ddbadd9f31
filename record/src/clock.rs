//! Times of a record: ticks of its processes become nanoseconds, and nanoseconds wall-clock times.

use tt_shm_os::{Anchor, ClockKind};

use crate::entry::{ClockEntry, ProcessEntry};

/// The most anchors that are kept: one per second for weeks.
const MAX_ANCHORS: usize = 1 << 22;
/// Anchors closer together than this say little about a frequency.
const MIN_SPAN_NS: u64 = 1_000_000;

/// The anchors that a recorder took, and the lines between them.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// By clock, in order of ticks.
    anchors: [Vec<Anchor>; 3],
    /// How far the wall clock was ahead of CLOCK_MONOTONIC, from a time on.
    offsets: Vec<(u64, i128)>,
}

impl Clocks {
    /// Adds an anchor. One that goes back is ignored: a clock that steps has no line.
    pub(crate) fn add(&mut self, entry: &ClockEntry) {
        let anchors = &mut self.anchors[entry.kind.code() as usize - 1];
        let is_later = anchors.last().is_none_or(|last| {
            last.ticks < entry.anchor.ticks && last.monotonic_ns < entry.anchor.monotonic_ns
        });
        if is_later && anchors.len() < MAX_ANCHORS {
            anchors.push(entry.anchor);
        }
        self.add_offset(entry.anchor.monotonic_ns, entry.anchor.realtime_ns);
    }

    /// Adds a moment on the wall clock.
    pub(crate) fn add_offset(&mut self, monotonic_ns: u64, realtime_ns: u64) {
        let offset = i128::from(realtime_ns) - i128::from(monotonic_ns);
        let last = self.offsets.last();
        let is_news =
            last.is_none_or(|(since, last)| *since <= monotonic_ns && last.abs_diff(offset) > 1_000);
        if is_news && self.offsets.len() < MAX_ANCHORS {
            self.offsets.push((monotonic_ns, offset));
        }
    }

    /// The time of a tick of a process, in nanoseconds of CLOCK_MONOTONIC. Later ticks never get earlier times.
    pub fn to_monotonic_ns(&self, process: &ProcessEntry, ticks: u64) -> u64 {
        let Some(kind) = process.clock() else { return ticks };
        if kind == ClockKind::Monotonic {
            return ticks;
        }
        let anchors = &self.anchors[kind.code() as usize - 1];
        let next = anchors.partition_point(|anchor| anchor.ticks <= ticks);
        match (next.checked_sub(1).map(|place| &anchors[place]), anchors.get(next)) {
            (Some(before), Some(after)) => line(before, after, ticks),
            (Some(last), None) => line(&self.far_from(process, anchors, last), last, ticks),
            (None, Some(first)) => line(&before_first(process, anchors, first), first, ticks),
            (None, None) => ticks,
        }
    }

    /// The anchor that gives the best slope together with the last one.
    fn far_from(&self, process: &ProcessEntry, anchors: &[Anchor], last: &Anchor) -> Anchor {
        match anchors.first() {
            Some(first) if last.monotonic_ns - first.monotonic_ns >= MIN_SPAN_NS => *first,
            _ => before_first(process, &[], last),
        }
    }

    /// The wall-clock time of a moment, in nanoseconds since 1970: by how far the clocks were apart then.
    pub fn to_realtime_ns(&self, monotonic_ns: u64) -> u64 {
        let place = self.offsets.partition_point(|(since, _)| *since <= monotonic_ns).saturating_sub(1);
        let offset = self.offsets.get(place).map_or(0, |(_, offset)| *offset);
        (i128::from(monotonic_ns) + offset).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The moment of a wall-clock time, the inverse of [`Clocks::to_realtime_ns`].
    pub fn to_monotonic_of_wall(&self, realtime_ns: u64) -> u64 {
        let at = |(since, offset): &(u64, i128)| i128::from(*since) + offset;
        let place =
            self.offsets.partition_point(|entry| at(entry) <= i128::from(realtime_ns)).saturating_sub(1);
        let offset = self.offsets.get(place).map_or(0, |(_, offset)| *offset);
        (i128::from(realtime_ns) - offset).clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// An anchor from before the first one: that of the process's header if it means something, else a later one that gives
/// the slope.
fn before_first(process: &ProcessEntry, anchors: &[Anchor], first: &Anchor) -> Anchor {
    let header = &process.header;
    let own = Anchor {
        ticks: header.anchor_ticks,
        monotonic_ns: header.anchor_monotonic_ns,
        realtime_ns: header.anchor_realtime_ns,
        suspended_ns: 0,
    };
    let span = first.monotonic_ns.checked_sub(own.monotonic_ns);
    let is_useful =
        process.shares_clock && own.ticks < first.ticks && span.is_some_and(|span| span >= MIN_SPAN_NS);
    if is_useful { own } else { anchors.last().copied().unwrap_or(own) }
}

/// The time of a tick on the line through two anchors. Without a slope a tick is a nanosecond.
fn line(a: &Anchor, b: &Anchor, ticks: u64) -> u64 {
    let (early, late) = if a.ticks <= b.ticks { (a, b) } else { (b, a) };
    let (dt, dn) = (late.ticks - early.ticks, late.monotonic_ns.saturating_sub(early.monotonic_ns));
    let (dt, dn) = if dt == 0 || dn == 0 { (1, 1) } else { (dt, dn) };
    let nanos =
        |ticks: u64| u64::try_from(u128::from(ticks) * u128::from(dn) / u128::from(dt)).unwrap_or(u64::MAX);
    // Counted from the side that the tick is on, so that lines that meet at an anchor agree there.
    match ticks.checked_sub(late.ticks) {
        Some(after) => late.monotonic_ns.saturating_add(nanos(after)),
        None if ticks >= early.ticks => early.monotonic_ns.saturating_add(nanos(ticks - early.ticks)),
        None => early.monotonic_ns.saturating_sub(nanos(early.ticks - ticks)),
    }
}
