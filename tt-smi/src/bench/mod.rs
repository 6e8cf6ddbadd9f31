//! The short form of the benchmarks, for a user's own machine. How to measure is in [`tt_shm_measure`]; here
//! is what, and how it is shown.

mod cases;
mod findings;
mod json;
mod loops;
mod notes;
mod table;

pub(crate) use findings::{Finding, Findings};
pub(crate) use json::FindingsJson;
pub(crate) use table::write;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tt_shm_measure::interleave::Interleaved;

use crate::bench::cases::Stage;
use crate::bench::loops::Loops;

/// Measures for so long, and a moment more. `go_on` is told which share of the time is over and says whether
/// to go on. Leaves nothing in /dev/shm, however it ends.
pub(crate) fn measure(length: Duration, mut go_on: impl FnMut(f64) -> bool) -> anyhow::Result<Findings> {
    // Taken first: what follows raises it.
    let circumstances = notes::Circumstances::now();
    let stage = Stage::new().context("cannot set the benchmark up in /dev/shm")?;
    let mut interleaved = Interleaved::default();
    let cases = cases::add_all(&stage, &mut interleaved)?;
    stage.check_room()?;
    let mut loops = Loops::new(&stage)?;
    let begun = Instant::now();
    loop {
        interleaved.pass();
        loops.pass();
        let share = begun.elapsed().as_secs_f64() / length.as_secs_f64();
        ensure!(go_on(share.min(1.0)), "interrupted: nothing was measured to the end");
        if share >= 1.0 {
            break;
        }
    }
    let measured = interleaved.finish().context("what was measured did not do what it should")?;
    let seconds = begun.elapsed().as_secs_f64();
    let findings = cases.into_iter().zip(measured).map(|(case, measured)| Finding { case, measured });
    Ok(Findings { circumstances, seconds, findings: findings.collect(), added: loops.added() })
}
