//! Reads what the screen shows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tt_shm_os::Namespace;
use tt_shm_reader::TelemetryBucket;

use super::data::{Cores, Data, History, Live, More, Needs, NewEvents};
use super::trends::Sampler;
use crate::directory::Directory;
use crate::lists::{
    allocations, cores,
    events::{Tail, Watch},
    programs,
    suspects::steps::{StepEnd, Steps},
};
use crate::model::Reading;
use crate::model::{Device, Model, directory};
use crate::procinfo;
use crate::segments::Segments;
use crate::select::DeviceSelector;
use crate::source::Source;

/// The source of figures, and the rings that are followed.
pub(crate) struct Feed<'a> {
    namespace: Namespace,
    /// Devices to show; all if empty.
    devices: Vec<DeviceSelector>,
    source: &'a mut Source,
    processes: procinfo::Cache,
    pace: Pace,
    /// For live allocations while no view asks for them.
    beside: Pace,
    sampler: Sampler,
    steps: Steps,
    /// The last step of each process when the list was read.
    ends: Vec<StepEnd>,
    followed: Option<Followed>,
    followings: u64,
}

/// Shortest interval between reads of a list: a hundred thousand rows cannot be followed more often.
const LISTS_EVERY: Duration = Duration::from_secs(1);
/// Share of the time that reading lists may take, as a divisor.
const LISTS_SHARE: u32 = 100;
/// The same for leak detection in the background: often enough for leaks, which show over minutes.
const BESIDE_EVERY: Duration = Duration::from_secs(10);
const BESIDE_SHARE: u32 = 200;

/// When lists are due again.
#[derive(Debug)]
struct Pace {
    every: Duration,
    share: u32,
    needs: Needs,
    /// When the last read started, and how long it and what followed from it took.
    last: Option<(Instant, Duration)>,
    due: Option<Instant>,
}

impl Pace {
    /// Due immediately.
    fn new(every: Duration, share: u32) -> Pace {
        Pace { every, share, needs: Needs::default(), last: None, due: None }
    }

    /// Whether to read what is needed now.
    fn is_due(&self, needs: Needs, now: Instant) -> bool {
        needs != self.needs || self.due.is_none_or(|due| now >= due)
    }

    /// Records when a read started and ended.
    fn read(&mut self, needs: Needs, start: Instant, end: Instant) {
        self.needs = needs;
        self.last = Some((start, Duration::ZERO));
        self.add(end.duration_since(start));
    }

    /// Records how long it took to make use of the last read: sorting a list takes as long as reading it.
    fn add(&mut self, more: Duration) {
        let Some((start, took)) = &mut self.last else { return };
        *took += more;
        self.due = Some(*start + (*took * self.share).max(self.every));
    }
}

/// Followed rings, and what was lost of those that are gone.
struct Followed {
    number: u64,
    reads: u64,
    watch: Watch,
    missed: u64,
    older: u64,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(namespace: &Namespace, devices: &[DeviceSelector], source: &'a mut Source) -> Feed<'a> {
        let (namespace, devices) = (namespace.clone(), devices.to_vec());
        let pace = Pace::new(LISTS_EVERY, LISTS_SHARE);
        let mut beside = Pace::new(BESIDE_EVERY, BESIDE_SHARE);
        // Not before the first frame, but soon: the overview says what memory is used for.
        (beside.needs, beside.due) = (Needs::Allocations, Some(Instant::now() + LISTS_EVERY));
        let (processes, steps) = (procinfo::Cache::default(), Steps::default());
        Feed {
            namespace,
            devices,
            source,
            processes,
            pace,
            beside,
            sampler: Sampler::default(),
            steps,
            ends: Vec::new(),
            followed: None,
            followings: 0,
        }
    }

    /// Makes the next list due immediately: another view needs it.
    pub(crate) fn hurry(&mut self) {
        self.pace.due = None;
    }

    /// Records how long it took to take in what was gathered last.
    pub(crate) fn taken_in(&mut self, is_list: bool, took: Duration) {
        if is_list {
            self.pace.add(took);
        }
    }

    /// Reads the current state.
    pub(crate) fn gather(&mut self, needs: Needs) -> anyhow::Result<Data> {
        let reading = self.source.read()?;
        let mut model = Model::new(&reading);
        if !self.devices.is_empty() {
            let directory = directory(&reading.snapshot);
            let meant: Vec<usize> = self.devices.iter().flat_map(|named| named.meant(&directory)).collect();
            model.keep(|device| meant.contains(&device.index));
        }
        model.look_up(&mut self.processes);
        let more = match needs {
            Needs::Figures => More::None,
            Needs::LastMinute => self.last_minute(&model, &reading),
            Needs::History(resolution) => More::History(Arc::new(self.history(&model, &reading, resolution))),
            Needs::Telemetry => More::Telemetry(self.telemetry(&model, 0)),
            Needs::Events => More::Events(self.events(&model, &reading)?),
            Needs::Allocations | Needs::Programs | Needs::Map | Needs::Cores => {
                self.list(needs, &model, &reading)?
            }
        };
        if needs != Needs::Events {
            // A view that is opened again starts with what the rings still hold.
            self.followed = None;
        }
        let live = self.live(&more, &model, &reading)?;
        let trends = self.sampler.sample(&model, Instant::now());
        Ok(Data { model, more, live, trends })
    }

    /// Live allocations, if they were just read for the view or are due for leak detection.
    fn live(&mut self, more: &More, model: &Model, reading: &Reading) -> anyhow::Result<Option<Live>> {
        let start = Instant::now();
        let listing = match more {
            More::Allocations(listing) | More::Map(listing, _) => listing.clone(),
            _ if self.beside.is_due(Needs::Allocations, start) => Arc::new(self.allocations(model, reading)?),
            _ => return Ok(None),
        };
        self.beside.read(Needs::Allocations, start, Instant::now());
        Ok(Some(Live { listing, ends: std::mem::take(&mut self.ends) }))
    }

    /// A list, if it is due.
    fn list(&mut self, needs: Needs, model: &Model, reading: &Reading) -> anyhow::Result<More> {
        let start = Instant::now();
        if !self.pace.is_due(needs, start) {
            return Ok(More::None);
        }
        let more = match needs {
            Needs::Programs => More::Programs(Arc::new(self.programs(model, reading)?)),
            Needs::Cores => More::Cores(Arc::new(self.cores(model, reading)?)),
            Needs::Map => {
                let cores = Arc::new(self.cores(model, reading)?);
                More::Map(Arc::new(self.allocations(model, reading)?), cores)
            }
            _ => More::Allocations(Arc::new(self.allocations(model, reading)?)),
        };
        self.pace.read(needs, start, Instant::now());
        Ok(more)
    }

    /// The last minute, once a second: more often it would look the same.
    fn last_minute(&mut self, model: &Model, reading: &Reading) -> More {
        let start = Instant::now();
        if !self.pace.is_due(Needs::LastMinute, start) {
            return More::None;
        }
        let history = self.history(model, reading, 0);
        self.pace.read(Needs::LastMinute, start, Instant::now());
        More::History(Arc::new(history))
    }

    /// Keeps an embedded aggregation going.
    pub(crate) fn poll(&mut self) {
        self.source.poll();
    }

    /// Longest time until the next poll.
    pub(crate) fn poll_interval(&self) -> Duration {
        self.source.poll_interval()
    }

    fn history(&self, model: &Model, reading: &Reading, resolution: usize) -> History {
        let of = |device: &Device| self.source.history(device.row, device.id.chip_id, resolution);
        let devices = model.devices.iter().map(of).collect();
        let telemetry = self.telemetry(model, resolution);
        History { resolution, devices, telemetry, gap: reading.snapshot.gap }
    }

    fn telemetry(&self, model: &Model, resolution: usize) -> Vec<Vec<TelemetryBucket>> {
        let of = |device: &Device| {
            let driver = device.driver.as_ref();
            driver.map_or_else(Vec::new, |driver| self.source.telemetry(driver.row, resolution))
        };
        model.devices.iter().map(of).collect()
    }

    /// Also reads when the processes ended their last steps.
    fn allocations(&mut self, model: &Model, reading: &Reading) -> anyhow::Result<allocations::Listing> {
        let mut segments = Segments::open(&self.namespace)?;
        segments.compare(&reading.snapshot);
        let directory = segments.directory(Some(&reading.snapshot));
        let mut listing = allocations::Listing::default();
        self.ends.clear();
        for segment in &segments.live {
            self.steps.follow(segment);
            listing.add(segment, &directory, |item| self.wants(model, item.device));
            self.ends.extend(self.steps.end(segment));
        }
        self.steps.finish();
        listing.lack(&segments.unread);
        Ok(listing)
    }

    fn cores(&self, model: &Model, reading: &Reading) -> anyhow::Result<Cores> {
        let mut segments = Segments::open(&self.namespace)?;
        segments.compare(&reading.snapshot);
        let directory = segments.directory(Some(&reading.snapshot));
        let devices = self.wanted(model, &directory);
        let mut listing = cores::Listing::default();
        for segment in &segments.live {
            listing.add(segment, &directory, &devices);
        }
        listing.lack(&segments.unread);
        Ok(Cores { devices: listing.devices(), doubts: listing.doubts })
    }

    fn programs(&self, model: &Model, reading: &Reading) -> anyhow::Result<programs::Listing> {
        let mut segments = Segments::open(&self.namespace)?;
        segments.compare(&reading.snapshot);
        let directory = segments.directory(Some(&reading.snapshot));
        let devices = self.wanted(model, &directory);
        let mut listing = programs::Listing::default();
        for segment in &segments.live {
            listing.add(segment, &directory, &devices);
        }
        listing.lack(&segments.unread);
        listing.finish();
        Ok(listing)
    }

    /// Indices of the devices that are shown.
    fn wanted(&self, model: &Model, directory: &Directory) -> Vec<usize> {
        (0..directory.devices.len()).filter(|device| self.wants(model, *device)).collect()
    }

    /// Whether a device is shown.
    fn wants(&self, model: &Model, device: usize) -> bool {
        self.devices.is_empty() || model.devices.iter().any(|shown| shown.index == device)
    }

    fn events(&mut self, model: &Model, reading: &Reading) -> anyhow::Result<NewEvents> {
        let followed = match &mut self.followed {
            Some(followed) => followed,
            None => {
                self.followings += 1;
                self.followed.insert(Followed::begin(self.followings, &self.namespace, reading)?)
            }
        };
        let mut news = followed.news()?;
        news.events.retain(|event| event.device.is_none_or(|device| self.wants(model, device.into())));
        Ok(news)
    }
}

impl Followed {
    fn begin(number: u64, namespace: &Namespace, reading: &Reading) -> anyhow::Result<Followed> {
        let segments = Segments::open(namespace)?;
        let directory = segments.directory(Some(&reading.snapshot));
        let mut watch = Watch::new(namespace, &[], directory);
        watch.add(segments.live, Tail::from_start);
        Ok(Followed { number, reads: 0, watch, missed: 0, older: 0 })
    }

    fn news(&mut self) -> anyhow::Result<NewEvents> {
        self.watch.rescan()?;
        let ended = self.watch.ended();
        let events = self.watch.read();
        for tail in self.watch.retire(&ended) {
            self.missed += tail.missed;
            self.older += tail.older;
        }
        let sum = |of: fn(&Tail) -> u64| self.watch.tails.iter().map(of).sum::<u64>();
        self.reads += 1;
        Ok(NewEvents {
            pass: self.number,
            read: self.reads,
            events,
            missed: self.missed + sum(|tail| tail.missed),
            older: self.older + sum(|tail| tail.older),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_once_a_second_and_seldom_if_that_takes_long() {
        let start = Instant::now();
        let after = |ms: u64| start + Duration::from_millis(ms);
        let mut pace = Pace::new(LISTS_EVERY, LISTS_SHARE);
        assert!(pace.is_due(Needs::Allocations, start));
        pace.read(Needs::Allocations, start, after(2));
        assert!(!pace.is_due(Needs::Allocations, after(999)));
        assert!(pace.is_due(Needs::Allocations, after(1000)));
        assert!(pace.is_due(Needs::Programs, after(10)), "another list is not there yet");
        pace.read(Needs::Programs, start, after(50));
        assert!(!pace.is_due(Needs::Programs, after(4999)), "one part in a hundred");
        assert!(pace.is_due(Needs::Programs, after(5000)));
        pace.add(Duration::from_millis(10));
        assert!(!pace.is_due(Needs::Programs, after(5999)), "sorting it counts, too");
        assert!(pace.is_due(Needs::Programs, after(6000)));
    }
}
