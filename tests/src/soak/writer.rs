//! The writer process of a soak: several threads that report, and note each call before and after it.

use super::mix::Mix;
use super::notes::Notes;
use anyhow::{Context, Result};
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tt_shm_writer::{Alloc, BufferType, CoreMemory, Device, DeviceInfo, Record, Tracker};

/// What a writer is told, in its only argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Its calls follow from this.
    pub seed: u64,
    /// Threads. There is one device more: the one that they share.
    pub threads: usize,
    /// Slots of its ring: a small one goes round faster than anybody reads.
    pub ring_slots: u64,
    /// Longest pause of a thread between two bursts, in microseconds.
    pub pause_us: u64,
    /// Calls in a burst, at most.
    pub burst: u64,
    /// Whether it reports a buffer that it does not note, to see that this is found.
    pub lies: bool,
    /// Where to note.
    pub notes: PathBuf,
}

/// Reports until standard input ends, then ends in an orderly way.
pub fn main(plan: &str) -> Result<()> {
    let plan: Plan = serde_json::from_str(plan).context("the plan is JSON")?;
    let notes = Notes::open(&plan.notes)?;
    let tracker = Tracker::builder().ring_slots(plan.ring_slots).open()?;
    let devices = register(&tracker, plan.threads + 1)?;
    let path = tracker.segment_path().context("tracking is enabled")?;
    if plan.lies {
        tracker.alloc(devices[0], Alloc::new(BufferType::Dram, u64::MAX, 1))?;
    }
    println!("{}", path.display());
    std::io::stdout().flush()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..plan.threads {
            let (plan, notes, tracker, stop) = (&plan, &notes, &tracker, &stop);
            let (shared, own) = (devices[0], devices[thread + 1]);
            scope.spawn(move || report(plan, thread, notes, tracker, (shared, own), stop));
        }
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    });
    Ok(())
}

/// The same chips in every writer, so that devices have several processes.
pub fn register(tracker: &Tracker, count: usize) -> Result<Vec<Device>> {
    let info = |number: usize| DeviceInfo {
        chip_id: 1 + number as u64,
        logical_id: Some(number as u32),
        dram_bytes: Some(12 << 30),
        l1: Some(CoreMemory { cores: 64, bytes_per_core: 1464 << 10 }),
        ..Default::default()
    };
    (0..count).map(|number| Ok(tracker.register_device(&info(number))?)).collect()
}

fn report(
    plan: &Plan,
    thread: usize,
    notes: &Notes,
    tracker: &Tracker,
    (shared, own): (Device, Device),
    stop: &AtomicBool,
) {
    let mut mix = Mix::new(plan.seed, thread);
    let mut pace = Rng::with_seed(plan.seed.wrapping_add(thread as u64));
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..=pace.u64(..plan.burst) {
            let call = mix.next_call();
            number += 1;
            notes.begin(thread, number);
            let result = call.report(tracker, shared, own);
            notes.end(thread, number, result.is_err());
            if let Err(error) = result {
                eprintln!("soak writer {}: {call:?} was refused: {error}", std::process::id());
            }
        }
        std::thread::sleep(Duration::from_micros(pace.u64(..plan.pause_us)));
    }
}
