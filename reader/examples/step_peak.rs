//! Answers "what was the peak of this step, and what was in it?".
//!
//! ```sh
//! cargo run -p tt-shm-reader --example step_peak
//! ```
//!
//! Nothing is reset for that, and nothing is asked of the code that is measured: a [`Span`] begins with what is
//! live and takes in each event. Another thread polls it, so that a step may be as long as it likes.

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use tt_shm_reader::{MemorySpan, Segment, Span, SpanReport};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Device, DeviceInfo, Dispatch, Record, RecordError, Tracker,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const MIB: u64 = 1 << 20;

/// Runs `work` and measures it.
fn measure<E>(segment: &Arc<Segment>, work: impl FnOnce() -> std::result::Result<(), E>) -> Result<SpanReport>
where
    Box<dyn Error>: From<E>,
{
    let mut span = Span::begin(Arc::clone(segment))?;
    let (stop, stopped) = channel::<()>();
    let report = std::thread::scope(|scope| {
        let poller = scope.spawn(move || {
            // At least once per quarter of the ring: 4 million events a second, with a ring of 16384.
            while stopped.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
                span.poll();
            }
            span
        });
        let done = work();
        drop(stop);
        let span = poller.join().map_err(|_| "the thread that polls panicked")?;
        done?;
        Ok::<SpanReport, Box<dyn Error>>(span.end())
    })?;
    match &report.broken {
        Some(error) => Err(error.clone().into()),
        None => Ok(report),
    }
}

fn print(name: &str, report: &SpanReport) {
    let took = (report.end_ns - report.begin_ns) as f64 / 1e6;
    println!("{name}: {took:.2} ms, {} events, {} missed", report.events, report.missed);
    for device in &report.devices {
        for (memory, of) in [("DRAM", &device.dram), ("L1", &device.l1)] {
            let end = of.end_bytes.map_or_else(|| "-".to_owned(), mib);
            let [begin, peak] = [mib(of.begin_bytes), range(of)];
            println!("  device {} {memory:<4} {begin:>6} MiB, peak {peak}, then {end} MiB", device.device);
            for part in of.made_of.iter().flatten() {
                let name = part.name.as_deref().unwrap_or("-").escape_debug();
                let class = part.class.name();
                println!("    {:>10} MiB  {class:<5} x{:<3} {name}", mib(part.bytes), part.count);
            }
        }
    }
}

fn range(memory: &MemorySpan) -> String {
    let peak = memory.peak;
    match (peak.exact(), peak.high) {
        (Some(exact), _) => format!("{} MiB", mib(exact)),
        (None, Some(high)) => format!("{} to {} MiB", mib(peak.low), mib(high)),
        (None, None) => format!("at least {} MiB", mib(peak.low)),
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / MIB as f64)
}

pub(crate) fn main() -> Result<()> {
    let namespace = format!("step-peak-{}", std::process::id());
    let tracker = Tracker::builder().enabled(true).namespace(namespace).open()?;
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() })?;
    let segment = Arc::new(Segment::open(&tracker.segment_path().ok_or("tracking is off")?)?);

    let load = measure(&segment, || load(&tracker, device))?;
    print("load", &load);
    let forward = measure(&segment, || forward(&tracker, device))?;
    print("forward", &forward);
    let unload = measure(&segment, || unload(&tracker, device))?;
    print("unload", &unload);

    // Four weights, and the staging buffer of the last.
    check(&load.devices[0].dram, 4 * 64 + 48, &[("weights", 256), ("staging", 48)]);
    check(&forward.devices[0].dram, 256 + 16, &[("weights", 256), ("spill", 16)]);
    check(&forward.devices[0].l1, 3 + 2, &[("softmax", 3), ("output", 2)]);
    check(&unload.devices[0].dram, 256, &[("weights", 256)]);
    Ok(())
}

/// The peak is exact and made of these parts.
fn check(memory: &MemorySpan, mebibytes: u64, parts: &[(&str, u64)]) {
    assert_eq!(memory.peak.exact(), Some(mebibytes * MIB));
    let made_of = memory.made_of.iter().flatten();
    let made_of: Vec<_> =
        made_of.map(|part| (part.name.as_deref().unwrap_or("-"), part.bytes / MIB)).collect();
    assert_eq!(made_of, parts);
}

type Recorded = std::result::Result<(), RecordError>;

fn load(tracker: &Tracker, device: Device) -> Recorded {
    let (weights, staging) = (tracker.intern("weights")?, tracker.intern("staging")?);
    for layer in 0..4 {
        tracker.alloc(device, Alloc::new(BufferType::Dram, 1000, 48 * MIB).name(staging))?;
        tracker.alloc(device, Alloc::new(BufferType::Dram, layer, 64 * MIB).name(weights))?;
        tracker.free(device, 1000)?;
    }
    Ok(())
}

/// A program whose circular buffers are in L1 while it is resident.
fn forward(tracker: &Tracker, device: Device) -> Recorded {
    let (output, spill) = (tracker.intern("output")?, tracker.intern("spill")?);
    let softmax = tracker.intern("softmax")?;
    tracker.cb_alloc(device, CircularBuffer::new(7, 1, 48 * 1024, 64))?;
    for _ in 0..500 {
        tracker.dispatch(device, Dispatch::new(7).name(softmax))?;
        tracker.alloc(device, Alloc::new(BufferType::L1, 2000, 2 * MIB).name(output))?;
        tracker.alloc(device, Alloc::new(BufferType::Dram, 2001, 16 * MIB).name(spill))?;
        tracker.free(device, 2000)?;
        tracker.free(device, 2001)?;
    }
    tracker.program_end(device, 7)
}

fn unload(tracker: &Tracker, device: Device) -> Recorded {
    (0..4).try_for_each(|layer| tracker.free(device, layer))
}
