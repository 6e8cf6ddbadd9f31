//! What a loop of dispatches notices. A call by itself finds its memory in the caches; between real
//! dispatches the host uses them for something else.

use anyhow::Context;
use tt_shm_measure::host_work::HostWork;
use tt_shm_measure::launches::{Host, Launch};
use tt_shm_measure::timing::median;

use crate::bench::cases::{Stage, one_device};
use crate::bench::findings::Added;

/// Host work between two dispatches, in microseconds, and how a table calls it.
pub(crate) const WORK: [(u64, &str); 3] = [(2, "2 us"), (5, "5 us"), (20, "20 us")];
/// How long a round takes, about.
const ROUND_US: u64 = 400;

/// The loops, one for each amount of host work.
pub(crate) struct Loops {
    host: Host,
    program: u64,
    loops: [Loop; WORK.len()],
}

struct Loop {
    work_us: u64,
    work: HostWork,
    /// Nanoseconds per dispatch of neighbouring rounds: without tracking, cached, first launch.
    rounds: Vec<[f64; 3]>,
}

impl Loops {
    pub(crate) fn new(stage: &Stage) -> anyhow::Result<Loops> {
        let host = one_device(&stage.scene)?;
        host.check().context("wrong before anything was timed")?;
        let of =
            |(work_us, _)| Loop { work_us, work: HostWork::of(work_us as f64 * 1e3), rounds: Vec::new() };
        Ok(Loops { host, program: 1, loops: WORK.map(of) })
    }

    /// A round of each.
    pub(crate) fn pass(&mut self) {
        let Loops { host, program, loops } = self;
        for Loop { work_us, work, rounds } in loops {
            let dispatches = ROUND_US / *work_us;
            let mut round = |launch: Launch, host: &Host| launch.round(host, work, dispatches, program);
            rounds.push([
                round(Launch::Cached, &Host::Nothing),
                round(Launch::Cached, host),
                round(Launch::First, host),
            ]);
        }
    }

    /// The medians of the differences between neighbours.
    pub(crate) fn added(&self) -> Vec<Added> {
        let all = [(1, Launch::Cached), (2, Launch::First)].into_iter();
        all.flat_map(|(tracked, launch)| self.loops.iter().map(move |one| one.added(tracked, launch)))
            .collect()
    }
}

impl Loop {
    fn added(&self, tracked: usize, launch: Launch) -> Added {
        let alone = median(self.rounds.iter().map(|round| round[0]).collect());
        let more = median(self.rounds.iter().map(|round| round[tracked] - round[0]).collect());
        // Less than the noise is nothing, not a gain.
        let ns = more.max(0.0);
        Added { launch, work_us: self.work_us, ns, percent: ns / alone * 100.0 }
    }
}
