//! A program that measures the memory of each step of its own work, peak included.
//!
//! ```sh
//! cargo run -p tt-shm-reader --example profiler
//! ```
//!
//! It reports what it allocates through the writer, as a host of a real accelerator would, and reads its own
//! segment back. A profiler in another process does the same with a path from `segment_paths`; only the
//! reset of peaks is the process's own to do.

use std::error::Error;

use tt_shm_reader::{ClassCounters, Counters, Segment};
use tt_shm_writer::{Alloc, BufferType, Class, Device, DeviceInfo, MarkerPhase, Record, Tracker};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const MIB: u64 = 1 << 20;

/// What a step did to the memory of a device.
struct Report {
    name: &'static str,
    before: Counters,
    after: Counters,
    events: usize,
}

struct Profiler<'a> {
    tracker: &'a Tracker,
    segment: &'a Segment,
    device: Device,
    steps: u64,
}

impl Profiler<'_> {
    /// Runs a step and measures it. Peaks are those within the step, to the byte, however short they were.
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<Report> {
        self.steps += 1;
        let label = self.tracker.intern(name)?;
        self.tracker.reset_peaks(self.device)?;
        let before = self.counters()?;
        let mut events = self.segment.follow();
        // For everybody else who follows: tt-smi shows these in its events.
        self.tracker.marker(MarkerPhase::Begin, self.steps, label)?;
        work()?;
        self.tracker.marker(MarkerPhase::End, self.steps, label)?;
        let count = events.by_ref().count() + events.missed() as usize;
        Ok(Report { name, before, after: self.counters()?, events: count.saturating_sub(2) })
    }

    fn counters(&self) -> Result<Counters> {
        let snapshot = self.segment.counters()?;
        snapshot.counters.first().copied().ok_or_else(|| "no device is registered".into())
    }
}

impl Report {
    fn print(&self) {
        let allocated = |class: fn(&Counters) -> &ClassCounters| {
            class(&self.after).alloc_bytes.wrapping_sub(class(&self.before).alloc_bytes)
        };
        println!(
            "{:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
            self.name,
            mib(self.before.dram_used()),
            mib(self.after.dram_used()),
            mib(self.after.dram_peak_bytes),
            mib(allocated(|counters| counters.class(Class::Dram))),
            mib(self.after.l1_used()),
            mib(self.after.l1_peak_bytes),
            self.events,
        );
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / MIB as f64)
}

pub(crate) fn main() -> Result<()> {
    let namespace = format!("profiler-{}", std::process::id());
    let tracker = Tracker::builder().enabled(true).namespace(namespace).open()?;
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() })?;
    let path = tracker.segment_path().ok_or("tracking is off")?;
    let segment = Segment::open(&path)?;
    let mut profiler = Profiler { tracker: &tracker, segment: &segment, device, steps: 0 };

    println!("{:<10} {:^29} {:>9} {:^19}", "", "DRAM, MiB", "", "L1, MiB");
    println!(
        "{:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
        "step", "before", "after", "peak", "allocated", "after", "peak", "events"
    );
    profiler.step("load", || load(&tracker, device))?.print();
    profiler.step("warm up", || forward(&tracker, device, 1))?.print();
    profiler.step("run", || forward(&tracker, device, 100))?.print();
    profiler.step("unload", || unload(&tracker, device))?.print();

    let left = segment.allocations();
    println!("\nstill live at event {}{}:", left.position, if left.exact { "" } else { " (not exact)" });
    for allocation in &left.list {
        let class = allocation.row.class().map_or("-", |class| class.name());
        let name = allocation.name.as_deref().unwrap_or("-").escape_debug().to_string();
        println!("  {class} {:#x} {} MiB {name}", allocation.row.id, mib(allocation.row.size));
    }
    Ok(())
}

/// Weights of four layers, and a staging buffer that nobody would see without peaks.
fn load(tracker: &Tracker, device: Device) -> Result<()> {
    for layer in 0..4 {
        let name = tracker.intern(format!("weights.{layer}"))?;
        let _staging = tracker.alloc_guard(device, Alloc::new(BufferType::Dram, 1000, 48 * MIB))?;
        tracker.alloc(device, Alloc::new(BufferType::Dram, layer, 64 * MIB).name(name))?;
    }
    Ok(())
}

fn forward(tracker: &Tracker, device: Device, rounds: u64) -> Result<()> {
    for _ in 0..rounds {
        let _input = tracker.alloc_guard(device, Alloc::new(BufferType::L1, 2000, MIB / 2))?;
        let _output = tracker.alloc_guard(device, Alloc::new(BufferType::L1, 2001, MIB / 4))?;
        let _spill = tracker.alloc_guard(device, Alloc::new(BufferType::Dram, 2002, 16 * MIB))?;
    }
    Ok(())
}

/// Frees three of the four: the last one is the leak that the list below shows.
fn unload(tracker: &Tracker, device: Device) -> Result<()> {
    for layer in 0..3 {
        tracker.free(device, layer)?;
    }
    Ok(())
}
