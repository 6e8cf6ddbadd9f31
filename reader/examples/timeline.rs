//! Puts what a process did with device memory beside the time line of its own profiler.
//!
//! ```sh
//! cargo run -p tt-shm-reader --example timeline
//! ```
//!
//! A host profiler measures spans with CLOCK_MONOTONIC (`std::time::Instant`); a segment has events in ticks of
//! its own clock. [`Segment::calibration`] converts these to CLOCK_MONOTONIC and to wall time, and both become one
//! line. The host profiler here is a dozen lines, in the place of the one that you have.

use std::error::Error;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tt_shm_reader::{Event, EventKind, Follower, MarkerPhase, Segment, monotonic_ns, realtime_ns};
use tt_shm_writer::{Alloc, BufferType, Device, DeviceInfo, Record, Tracker};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const MIB: u64 = 1 << 20;

/// A span of the host profiler, in its own clock.
struct HostSpan {
    name: &'static str,
    depth: usize,
    begin: Instant,
    end: Instant,
    /// The allocations made in it, for the check at the end.
    ids: Vec<u64>,
}

/// A host profiler: spans within spans, measured with [`Instant`].
#[derive(Default)]
struct HostProfiler {
    done: Vec<HostSpan>,
    depth: usize,
}

impl HostProfiler {
    /// Measures `work`, which returns the ids of what it allocated.
    fn span(&mut self, name: &'static str, work: impl FnOnce(&mut Self) -> Result<Vec<u64>>) -> Result<()> {
        let (depth, begin) = (self.depth, Instant::now());
        self.depth += 1;
        let ids = work(self)?;
        self.depth = depth;
        self.done.push(HostSpan { name, depth, begin, end: Instant::now(), ids });
        Ok(())
    }
}

/// Converts an [`Instant`] to nanoseconds of CLOCK_MONOTONIC, which it is made of but does not tell.
struct HostClock {
    instant: Instant,
    monotonic_ns: u64,
}

impl HostClock {
    fn now() -> HostClock {
        let (before, instant, after) = (monotonic_ns(), Instant::now(), monotonic_ns());
        HostClock { instant, monotonic_ns: before.midpoint(after) }
    }

    fn to_monotonic_ns(&self, instant: Instant) -> u64 {
        match instant.checked_duration_since(self.instant) {
            Some(later) => self.monotonic_ns + later.as_nanos() as u64,
            None => self.monotonic_ns - (self.instant - instant).as_nanos() as u64,
        }
    }
}

/// One entry of the merged line.
struct Entry {
    monotonic_ns: u64,
    /// Nanoseconds since 1970; `None` if the machine was suspended meanwhile.
    realtime_ns: Option<u64>,
    text: String,
}

pub(crate) fn main() -> Result<()> {
    let clock = HostClock::now();
    let namespace = format!("timeline-{}", std::process::id());
    let tracker = Tracker::builder().enabled(true).namespace(namespace).open()?;
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() })?;
    let segment = Arc::new(Segment::open(&tracker.segment_path().ok_or("tracking is off")?)?);
    let mut follower = Follower::new(Arc::clone(&segment));

    let mut profiler = HostProfiler::default();
    work(&mut profiler, &tracker, device)?;

    let events = read(&mut follower);
    let mut line = host_entries(&profiler, &clock);
    line.extend(device_entries(&segment, &events));
    line.sort_by_key(|entry| entry.monotonic_ns);
    print(&line);
    check(&profiler, &clock, &segment, &events);
    Ok(())
}

/// Two steps. Each pause stands for work of the host.
fn work(profiler: &mut HostProfiler, tracker: &Tracker, device: Device) -> Result<()> {
    let pause = || sleep(Duration::from_millis(2));
    for step in 1..=2 {
        let label = tracker.intern("step")?;
        tracker.marker(MarkerPhase::Begin, step, label)?;
        pause();
        profiler.span("step", |profiler| {
            let (weights, output) = (10 * step, 10 * step + 1);
            profiler.span("load", |_| {
                pause();
                let name = tracker.intern("weights")?;
                tracker.alloc(device, Alloc::new(BufferType::Dram, weights, 64 * MIB).name(name))?;
                pause();
                Ok(vec![weights])
            })?;
            profiler.span("matmul", |_| {
                pause();
                let name = tracker.intern("output")?;
                tracker.alloc(device, Alloc::new(BufferType::L1, output, MIB).name(name))?;
                pause();
                tracker.free(device, output)?;
                pause();
                Ok(vec![output])
            })?;
            Ok(vec![])
        })?;
        pause();
        tracker.marker(MarkerPhase::End, step, label)?;
    }
    Ok(())
}

/// Everything that has happened.
fn read(follower: &mut Follower) -> Vec<Event> {
    let (mut all, mut buffer) = (Vec::new(), [Event::NONE; 64]);
    while let read @ 1.. = follower.read(&mut buffer) {
        all.extend_from_slice(&buffer[..read]);
    }
    assert_eq!(follower.missed(), 0, "a ring holds thousands of events");
    all
}

fn host_entries(profiler: &HostProfiler, clock: &HostClock) -> Vec<Entry> {
    let wall_offset = i128::from(realtime_ns()) - i128::from(monotonic_ns());
    let entry = |span: &HostSpan, what: &str, instant: Instant| {
        let monotonic_ns = clock.to_monotonic_ns(instant);
        let realtime_ns = u64::try_from(i128::from(monotonic_ns) + wall_offset).ok();
        let text = format!("host    {:indent$}{what} {}", "", span.name, indent = 2 * span.depth);
        Entry { monotonic_ns, realtime_ns, text }
    };
    let both = |span| [entry(span, "begin", span.begin), entry(span, "end", span.end)];
    profiler.done.iter().flat_map(both).collect()
}

fn device_entries(segment: &Segment, events: &[Event]) -> Vec<Entry> {
    // Taken once, for all of them, and now: the later, the more precise.
    let clock = segment.calibration();
    let entry = |event: &Event| {
        let name = segment.name(event.name).unwrap_or_default();
        let what = match event.kind() {
            Some(EventKind::Marker) => {
                let phase = match MarkerPhase::from_code(event.class) {
                    Some(MarkerPhase::Begin) => "begin",
                    Some(MarkerPhase::End) => "end",
                    Some(MarkerPhase::Instant) | None => "moment",
                };
                format!("MARKER {phase} of {} {}", name.escape_debug(), event.id)
            }
            Some(kind) => {
                let class = event.class().map_or("-", |class| class.name());
                format!(
                    "{} {class} {} {} MiB {}",
                    kind.label(),
                    event.id,
                    event.size / MIB,
                    name.escape_debug()
                )
            }
            None => format!("kind {}", event.kind),
        };
        Entry {
            monotonic_ns: clock.to_monotonic_ns(event.time),
            realtime_ns: clock.to_realtime_ns(event.time),
            text: format!("device  {what}"),
        }
    };
    events.iter().map(entry).collect()
}

fn print(line: &[Entry]) {
    println!("{:>15}  {:>18}  {:>10}", "wall, UTC", "monotonic, s", "after, us");
    let first = line.first().map_or(0, |entry| entry.monotonic_ns);
    for Entry { monotonic_ns, realtime_ns, text } in line {
        let wall = realtime_ns.map_or_else(|| "-".to_owned(), time_of_day);
        let (seconds, after) = (*monotonic_ns as f64 / 1e9, (monotonic_ns - first) as f64 / 1e3);
        println!("{wall:>15}  {seconds:>18.6}  {after:>10.1}  {text}");
    }
}

fn time_of_day(realtime_ns: u64) -> String {
    let us = realtime_ns / 1000 % 86_400_000_000;
    let (s, us) = (us / 1_000_000, us % 1_000_000);
    format!("{:02}:{:02}:{:02}.{us:06}", s / 3600, s / 60 % 60, s % 60)
}

/// Each event lies in the span that made it, and each step between its markers.
fn check(profiler: &HostProfiler, clock: &HostClock, segment: &Segment, events: &[Event]) {
    let ticks = segment.calibration();
    let mut inside = 0;
    for span in &profiler.done {
        let [begin, end] = [span.begin, span.end].map(|instant| clock.to_monotonic_ns(instant));
        for event in events.iter().filter(|event| event.kind() != Some(EventKind::Marker)) {
            let time = ticks.to_monotonic_ns(event.time);
            if span.ids.contains(&event.id) {
                assert!(
                    (begin..=end).contains(&time),
                    "{} of {} at {time}, not in {begin} to {end}",
                    event.id,
                    span.name
                );
                inside += 1;
            }
        }
    }
    let is_marker = |event: &&Event| event.kind() == Some(EventKind::Marker);
    let markers: Vec<u64> =
        events.iter().filter(is_marker).map(|event| ticks.to_monotonic_ns(event.time)).collect();
    let steps = profiler.done.iter().filter(|span| span.name == "step");
    for (span, markers) in steps.zip(markers.chunks(2)) {
        let [begin, end] = [span.begin, span.end].map(|instant| clock.to_monotonic_ns(instant));
        assert!(markers[0] <= begin && end <= markers[1], "{begin} to {end} is not in {markers:?}");
    }
    assert_eq!((inside, markers.len()), (6, 4), "two allocations and a free in each of two steps");
}
