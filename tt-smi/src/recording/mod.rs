//! Recording the processes of a namespace into files: what `tt-smi record` and the daemon's black box share.
//!
//! The calling thread follows the rings and gathers frames; a second one compresses and writes them; a third one asks
//! once a second what driver and regions tell.

mod discover;
mod file;
mod told;

pub(crate) use file::Parts;

use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tt_shm_os::{Namespace, monotonic_ns, realtime_ns};
use tt_shm_reader::Segment;
use tt_shm_record::{Begin, Counts, Recorder};

use discover::Discover;
use file::Output;
use told::Told;

/// The longest pause between two looks at the rings: one of the usual size is full after that at 3 million events per
/// second.
const IDLE: Duration = Duration::from_millis(5);
/// The pause while no process is followed. New ones end it.
const NOBODY: Duration = Duration::from_millis(50);
/// The part of a ring that may be new at the next look.
const FILL: f64 = 0.125;
/// How often processes that end together with the command are waited for.
const LAST_LOOKS: usize = 50;

/// What is recorded, and where to.
pub(crate) struct Recording {
    pub(crate) namespace: Namespace,
    pub(crate) parts: Parts,
    /// Why: the command line.
    pub(crate) command: Vec<String>,
}

/// How far a recording has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Status {
    pub(crate) counts: Counts,
    /// Bytes in all files.
    pub(crate) bytes: u64,
    /// The number of files.
    pub(crate) files: u64,
    pub(crate) elapsed: Duration,
}

impl Status {
    /// Bytes in the files per event.
    pub(crate) fn bytes_per_event(&self) -> Option<f64> {
        (self.counts.events > 0).then(|| self.bytes as f64 / self.counts.events as f64)
    }
}

/// How a recording ended.
pub(crate) struct Recorded {
    pub(crate) status: Status,
    /// Why it ended before it was told to.
    pub(crate) failure: Option<anyhow::Error>,
}

impl Recording {
    /// Opens the first file.
    pub(crate) fn open(self) -> anyhow::Result<Open> {
        let recording = tt_shm_os::random_u64().context("cannot get a random number")?;
        let begin = self.begin(recording);
        let discover = Discover::new(&self.namespace).context("cannot watch /dev/shm")?;
        let output = Output::open(self.parts)?;
        let told = Told::start(&self.namespace);
        Ok(Open { recorder: Recorder::new(&begin), begin, discover, output, told, begun: Instant::now() })
    }

    fn begin(&self, recording: u64) -> Begin {
        let boot_id = tt_shm_os::boot_id().unwrap_or_default();
        Begin {
            layout: format!("{}.{}", shm_layout::MAJOR, shm_layout::MINOR),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            host: file::host_name(),
            boot_id: boot_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            namespace: self.namespace.as_str().to_owned(),
            uid: rustix::process::geteuid().as_raw(),
            monotonic_ns: monotonic_ns(),
            realtime_ns: realtime_ns(),
            command: self.command.clone(),
            part: 0,
            recording,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
        }
    }
}

/// A recording under way.
pub(crate) struct Open {
    recorder: Recorder,
    begin: Begin,
    discover: Discover,
    output: Output,
    told: Told,
    begun: Instant,
}

impl Open {
    /// The file that is being written.
    pub(crate) fn path(&self) -> &std::path::Path {
        self.output.path()
    }

    /// Records until `is_over` says so, or until the file cannot be written. `progress` is called now and then.
    pub(crate) fn run(
        mut self,
        mut is_over: impl FnMut() -> bool,
        mut progress: impl FnMut(&Status),
        is_awaited: impl Fn(&Segment) -> bool,
    ) -> Recorded {
        let mut failure = None;
        let mut last = Instant::now();
        while failure.is_none() && !is_over() {
            let since = last.elapsed();
            last = Instant::now();
            let pause = self.round(since);
            failure = self.output.failure().or_else(|| self.continue_in_next_part().err());
            progress(&self.status());
            self.wait(pause.saturating_sub(last.elapsed()));
        }
        // Those that end together with the command get a moment to do so.
        for _ in 0..LAST_LOOKS {
            self.round(IDLE);
            if failure.is_some() || !self.recorder.followed().any(|segment| is_awaited(segment)) {
                break;
            }
            self.wait(Duration::from_millis(20));
        }
        self.discover.look(&mut self.recorder);
        self.recorder.finish();
        self.send();
        let failure = failure.or(self.output.finish());
        Recorded { status: self.status(), failure }
    }

    /// Takes in what is new, and returns how long to wait.
    fn round(&mut self, since: Duration) -> Duration {
        self.discover.look(&mut self.recorder);
        self.told.record(&mut self.recorder);
        let polled = self.recorder.poll();
        self.send();
        if self.recorder.followed().next().is_none() {
            return NOBODY;
        }
        if polled.fullest == 0.0 {
            return IDLE;
        }
        IDLE.min(since.max(Duration::from_micros(100)).mul_f64((FILL / polled.fullest).min(10.0)))
    }

    fn send(&mut self) {
        self.recorder.take().into_iter().for_each(|frame| self.output.send(frame));
    }

    fn continue_in_next_part(&mut self) -> anyhow::Result<()> {
        if self.output.is_full() {
            self.recorder.flush();
            self.send();
            self.output.next_part()?;
            self.begin.part += 1;
            (self.begin.monotonic_ns, self.begin.realtime_ns) = (monotonic_ns(), realtime_ns());
            self.recorder.begin_part(&self.begin);
            self.told.forget();
            self.send();
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let (bytes, files) = self.output.written();
        Status { counts: self.recorder.counts(), bytes, files, elapsed: self.begun.elapsed() }
    }

    fn wait(&self, pause: Duration) {
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
        let mut fds = [PollFd::from_borrowed_fd(self.discover.as_fd(), PollFlags::IN)];
        // Interrupted by a signal, or anything else: an extra look does no harm.
        let _ = poll(&mut fds, Some(&limit));
    }
}
