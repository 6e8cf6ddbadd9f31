//! The first pass: each figure over time, its peaks, and from when to when it is not known.

use shm_layout::{Counters, Event, EventKind, NO_DEVICE};

use crate::chips::Chips;
use crate::figure::{self, CURVES, FIGURES, Figures, USED};
use crate::follow::{At, Change, Schedule, Visitor};
use crate::series::Series;

/// The most buckets of all curves together while a record is read: some 100 MB.
const MAX_CELLS: usize = 3 << 20;
/// The most buckets of one curve, and the least.
const BUCKETS: (usize, usize) = (1 << 15, 1 << 9);
/// The most intervals of a list: later ones extend the last one.
const MAX_INTERVALS: usize = 1024;
/// The most failed allocations that are kept. All are counted.
const MAX_FAILURES: usize = 1000;

/// The largest value of a figure: an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    /// What was certainly reached.
    pub(crate) low: u64,
    /// When: the time, and the number of the change.
    pub(crate) ns: u64,
    pub(crate) number: u64,
    /// What may have been reached, if nothing was unknown.
    pub(crate) high: u64,
}

/// Spans of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intervals {
    list: Vec<(u64, u64)>,
    since: Option<u64>,
}

impl Intervals {
    pub(crate) fn set(&mut self, ns: u64, is_in: bool) {
        match (self.since, is_in) {
            (None, true) => self.since = Some(ns),
            (Some(since), false) => {
                self.since = None;
                self.add(since, ns);
            }
            _ => {}
        }
    }

    fn add(&mut self, from: u64, to: u64) {
        let is_full = self.list.len() >= MAX_INTERVALS;
        match self.list.last_mut() {
            Some(last) if is_full || last.1 >= from => last.1 = last.1.max(to),
            _ => self.list.push((from, to)),
        }
    }

    pub(crate) fn finish(mut self, end: u64) -> Vec<(u64, u64)> {
        self.set(end, false);
        self.list
    }
}

/// A chip over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChipLine {
    /// What processes hold that are known and there.
    certain: Figures,
    /// What processes hold that may have ended.
    doubtful: Figures,
    unknown: usize,
    pub(crate) was_unknown: bool,
    pub(crate) peaks: [Peak; FIGURES],
    pub(crate) curves: [Series; CURVES],
    pub(crate) gaps: Intervals,
    pub(crate) doubts: Intervals,
    /// Allocations, frees, dispatches, failures.
    pub(crate) counts: [u64; 4],
}

impl ChipLine {
    /// What is held now, and whether that is exact.
    pub(crate) fn shown(&self) -> (Figures, bool) {
        let shown = std::array::from_fn(|figure| self.certain[figure] + self.doubtful[figure]);
        (shown, self.unknown == 0 && self.doubtful == [0; FIGURES])
    }

    #[inline]
    fn changed(&mut self, at: At, bucket: u32, has_begun: bool) {
        for figure in 0..FIGURES {
            let (low, high) = (self.certain[figure], self.certain[figure] + self.doubtful[figure]);
            if has_begun {
                self.raise(figure, at, low, high);
            }
            if figure < CURVES {
                self.curves[figure].set(bucket, high);
            }
        }
    }

    #[inline]
    fn raise(&mut self, figure: usize, at: At, low: u64, high: u64) {
        let peak = &mut self.peaks[figure];
        peak.high = peak.high.max(high);
        if low > peak.low {
            (peak.low, peak.ns, peak.number) = (low, at.ns, at.number);
        }
    }

    fn note_knowledge(&mut self, ns: u64, has_begun: bool) {
        self.was_unknown |= has_begun && self.unknown > 0;
        self.gaps.set(ns, self.unknown > 0);
        self.doubts.set(ns, self.doubtful != [0; FIGURES]);
    }
}

/// A process on a chip over time.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    pub(crate) process: usize,
    pub(crate) chip: usize,
    counters: Box<Counters>,
    figures: Figures,
    pub(crate) peaks: [Peak; 2],
    pub(crate) curves: [Series; 2],
    /// Allocations, frees, dispatches, failures.
    pub(crate) counts: [u64; 4],
    /// What it held when it ended, or at the end of the record.
    pub(crate) last: Figures,
}

/// A failed allocation, and what its device held then.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) at: At,
    pub(crate) process: usize,
    pub(crate) chip: usize,
    pub(crate) event: Event,
    pub(crate) held: Figures,
    pub(crate) is_exact: bool,
}

/// Whether what a process holds counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Absent,
    Unknown,
    Certain,
    Doubtful,
}

/// The first pass over a record.
#[derive(Debug)]
pub(crate) struct TimeLine<'a> {
    chips: &'a Chips,
    schedule: &'a Schedule,
    pub(crate) buckets: usize,
    bucket_ns: u64,
    bucket: u32,
    bucket_end: u64,
    has_begun: bool,
    standings: Vec<Standing>,
    pub(crate) lines: Vec<ChipLine>,
    pub(crate) usages: Vec<Usage>,
    /// By process and device.
    places: Vec<Vec<Option<usize>>>,
    pub(crate) unknown: Vec<Intervals>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) failure_count: u64,
    /// The number of the last change before each process ended.
    pub(crate) ended: Vec<Option<u64>>,
}

impl<'a> TimeLine<'a> {
    pub(crate) fn new(chips: &'a Chips, schedule: &'a Schedule) -> TimeLine<'a> {
        let processes = schedule.processes.len();
        let usages: usize = (0..processes).map(|process| chips.of_process(process).len()).sum();
        let curves = chips.list.len() * CURVES + usages * 2;
        let fitting = MAX_CELLS / curves.max(1);
        let buckets = (1 << fitting.max(1).ilog2()).clamp(BUCKETS.1, BUCKETS.0);
        let (first, last) = schedule.span_ns;
        let bucket_ns = ((last - first) / buckets as u64 + 1).max(1);
        TimeLine {
            chips,
            schedule,
            buckets,
            bucket_ns,
            bucket: 0,
            bucket_end: first + bucket_ns,
            has_begun: false,
            standings: vec![Standing::Absent; processes],
            lines: vec![ChipLine::default(); chips.list.len()],
            usages: Vec::new(),
            places: vec![Vec::new(); processes],
            unknown: vec![Intervals::default(); processes],
            failures: Vec::new(),
            failure_count: 0,
            ended: vec![None; processes],
        }
    }

    /// The length of a bucket.
    pub(crate) fn bucket_ns(&self) -> u64 {
        self.bucket_ns
    }

    fn usage(&mut self, process: usize, device: u8) -> Option<usize> {
        let index = usize::from(device);
        if let Some(Some(usage)) = self.places[process].get(index) {
            return Some(*usage);
        }
        let chip = self.chips.place(process, device)?;
        if index >= self.places[process].len() {
            self.places[process].resize(index + 1, None);
        }
        self.places[process][index] = Some(self.usages.len());
        self.usages.push(Usage {
            process,
            chip,
            counters: Box::new(Counters::ZERO),
            figures: [0; FIGURES],
            peaks: Default::default(),
            curves: Default::default(),
            counts: [0; 4],
            last: [0; FIGURES],
        });
        Some(self.usages.len() - 1)
    }

    /// Gives a usage its figures, and its chip the difference.
    #[inline]
    fn put(&mut self, at: At, usage: usize, figures: Figures) {
        let standing = self.standings[self.usages[usage].process];
        let usage = &mut self.usages[usage];
        let line = &mut self.lines[usage.chip];
        let sums = if standing == Standing::Doubtful { &mut line.doubtful } else { &mut line.certain };
        for figure in 0..FIGURES {
            sums[figure] = sums[figure].wrapping_sub(usage.figures[figure]).wrapping_add(figures[figure]);
        }
        usage.figures = figures;
        for (place, figure) in USED.into_iter().enumerate() {
            usage.curves[place].set(self.bucket, figures[figure]);
            if self.has_begun && figures[figure] > usage.peaks[place].low {
                let (low, ns, number) = (figures[figure], at.ns, at.number);
                usage.peaks[place] = Peak { low, ns, number, high: low };
            }
        }
        line.changed(at, self.bucket, self.has_begun);
    }

    /// What the process holds is counted otherwise from now on.
    fn stand(&mut self, at: At, process: usize, standing: Standing) {
        let before = std::mem::replace(&mut self.standings[process], standing);
        let mine: Vec<usize> = self.places[process].iter().flatten().copied().collect();
        for usage in mine {
            let Usage { chip, figures, .. } = self.usages[usage];
            match (before, standing) {
                (Standing::Certain, Standing::Doubtful) => {
                    let line = &mut self.lines[chip];
                    for (figure, bytes) in figures.into_iter().enumerate() {
                        line.certain[figure] -= bytes;
                        line.doubtful[figure] += bytes;
                    }
                }
                (_, Standing::Absent | Standing::Unknown) => {
                    self.standings[process] = before;
                    self.usages[usage].last = figures;
                    self.put(at, usage, [0; FIGURES]);
                    self.standings[process] = standing;
                }
                _ => {}
            }
        }
        // What a process says is not all is a part of what it holds, for as long as it is there.
        let is_doubted = self.schedule.processes[process].is_doubted();
        let counts =
            |standing: Standing| standing == Standing::Unknown || is_doubted && standing != Standing::Absent;
        for chip in self.chips.of_process(process) {
            let line = &mut self.lines[chip];
            line.unknown -= usize::from(counts(before));
            line.unknown += usize::from(counts(standing));
            line.note_knowledge(at.ns, self.has_begun);
        }
        self.unknown[process].set(at.ns, standing == Standing::Unknown);
    }

    fn event(&mut self, at: At, process: usize, event: &Event) -> bool {
        if event.device == NO_DEVICE {
            return true;
        }
        let Some(place) = self.usage(process, event.device) else { return false };
        let usage = &mut self.usages[place];
        if usage.counters.apply(event).is_err() {
            return false;
        }
        let counted = match event.kind() {
            Some(EventKind::Alloc | EventKind::CbAlloc | EventKind::KernelLoad) => 0,
            Some(EventKind::Free | EventKind::CbFree | EventKind::KernelUnload) => 1,
            Some(EventKind::KernelDispatch) => 2,
            Some(EventKind::AllocFailed) => 3,
            _ => return true,
        };
        usage.counts[counted] += 1;
        let (chip, figures) = (usage.chip, figure::of(&usage.counters));
        if figures != usage.figures {
            self.put(at, place, figures);
        }
        self.lines[chip].counts[counted] += 1;
        if counted == 3 {
            self.fail(at, process, chip, event);
        }
        true
    }

    #[cold]
    fn fail(&mut self, at: At, process: usize, chip: usize, event: &Event) {
        self.failure_count += 1;
        if self.failures.len() < MAX_FAILURES {
            let (held, is_exact) = self.lines[chip].shown();
            self.failures.push(Failure { at, process, chip, event: *event, held, is_exact });
        }
    }

    fn known(&mut self, at: At, process: usize, counters: &[Counters]) {
        self.stand(at, process, Standing::Certain);
        for (device, counters) in counters.iter().enumerate() {
            let Some(usage) = u8::try_from(device).ok().and_then(|device| self.usage(process, device)) else {
                continue;
            };
            *self.usages[usage].counters = *counters;
            self.put(at, usage, figure::of(counters));
        }
    }

    /// Peaks are those from now on.
    fn begin(&mut self, at: At) {
        self.has_begun = true;
        for line in &mut self.lines {
            line.changed(at, self.bucket, true);
            line.note_knowledge(at.ns, true);
        }
        for usage in &mut self.usages {
            for (place, figure) in USED.into_iter().enumerate() {
                let low = usage.figures[figure];
                usage.peaks[place] = Peak { low, ns: at.ns, number: at.number, high: low };
            }
        }
    }

    fn incomplete(&mut self, at: At) {
        for line in &mut self.lines {
            line.unknown += 1;
            line.note_knowledge(at.ns, self.has_begun);
        }
    }

    /// Ends the pass: what is held now is what was held at the end.
    pub(crate) fn finish(&mut self) {
        for usage in &mut self.usages {
            if matches!(self.standings[usage.process], Standing::Certain | Standing::Doubtful) {
                usage.last = usage.figures;
            }
        }
    }
}

impl Visitor for TimeLine<'_> {
    fn visit(&mut self, at: At, process: usize, change: Change<'_>) -> bool {
        if at.ns >= self.bucket_end {
            let bucket = (at.ns - self.schedule.span_ns.0) / self.bucket_ns;
            self.bucket = bucket.min(self.buckets as u64 - 1) as u32;
            self.bucket_end = self.schedule.span_ns.0 + (bucket + 1) * self.bucket_ns;
        }
        match change {
            Change::Event(event) => return self.event(at, process, event),
            Change::Known(state) => self.known(at, process, &state.counters),
            Change::Unknown => self.stand(at, process, Standing::Unknown),
            Change::MayHaveEnded => {
                if self.standings[process] == Standing::Certain {
                    self.stand(at, process, Standing::Doubtful);
                }
            }
            Change::Ended => {
                self.ended[process] = Some(at.number - 1);
                self.stand(at, process, Standing::Absent);
            }
            Change::Begin => self.begin(at),
            Change::Incomplete => self.incomplete(at),
        }
        true
    }
}
