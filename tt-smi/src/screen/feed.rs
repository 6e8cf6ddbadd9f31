//! Reads what the screen shows.

use std::time::Duration;

use tt_shm_os::Namespace;

use super::data::{Data, History, More, Needs, News};
use crate::lists::{
    allocations,
    events::{Tail, Watch},
    programs,
};
use crate::model::Model;
use crate::segments::Segments;
use crate::source::{Reading, Source};

/// The source of figures, and the rings that are followed.
pub(crate) struct Feed<'a> {
    namespace: Namespace,
    source: &'a mut Source,
    watch: Option<Followed>,
}

/// Rings, and what was lost of those that are gone.
struct Followed {
    watch: Watch,
    missed: u64,
    older: u64,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(namespace: &Namespace, source: &'a mut Source) -> Feed<'a> {
        Feed { namespace: namespace.clone(), source, watch: None }
    }

    /// Everything as it is now.
    pub(crate) fn gather(&mut self, needs: Needs) -> anyhow::Result<Data> {
        let reading = self.source.read()?;
        let model = Model::new(&reading);
        let more = match needs {
            Needs::Figures => More::None,
            Needs::History(resolution) => More::History(self.history(&model, &reading, resolution)),
            Needs::Allocations => More::Allocations(self.allocations(&reading)?),
            Needs::Events => More::Events(self.events(&reading)?),
            Needs::Programs => More::Programs(self.programs(&reading)?),
        };
        if needs != Needs::Events {
            // Who comes back begins with what the rings still hold.
            self.watch = None;
        }
        Ok(Data { model, more })
    }

    /// Keeps an embedded aggregation going.
    pub(crate) fn poll(&mut self) {
        self.source.poll();
    }

    /// How long may pass until the next poll.
    pub(crate) fn poll_interval(&self) -> Duration {
        self.source.poll_interval()
    }

    fn history(&self, model: &Model, reading: &Reading, resolution: usize) -> History {
        let of = |row: usize| self.source.history(row, resolution);
        let devices = model.devices.iter().map(|device| of(device.row)).collect();
        History { resolution, devices, gap: reading.snapshot.gap }
    }

    fn allocations(&self, reading: &Reading) -> anyhow::Result<allocations::Listing> {
        let segments = Segments::open(&self.namespace)?;
        let directory = segments.directory(Some(&reading.snapshot));
        let mut listing = allocations::Listing::default();
        for segment in &segments.live {
            listing.add(segment, &directory, |_| true);
        }
        Ok(listing)
    }

    fn programs(&self, reading: &Reading) -> anyhow::Result<programs::Listing> {
        let segments = Segments::open(&self.namespace)?;
        let directory = segments.directory(Some(&reading.snapshot));
        let devices: Vec<usize> = (0..directory.devices.len()).collect();
        let mut listing = programs::Listing::default();
        for segment in &segments.live {
            listing.add(segment, &directory, &devices);
        }
        listing.finish();
        Ok(listing)
    }

    fn events(&mut self, reading: &Reading) -> anyhow::Result<News> {
        let followed = match &mut self.watch {
            Some(followed) => followed,
            None => self.watch.insert(Followed::begin(&self.namespace, reading)?),
        };
        followed.news()
    }
}

impl Followed {
    fn begin(namespace: &Namespace, reading: &Reading) -> anyhow::Result<Followed> {
        let segments = Segments::open(namespace)?;
        let directory = segments.directory(Some(&reading.snapshot));
        let mut watch = Watch::new(namespace, &[], directory);
        watch.add(segments.live, Tail::from_start);
        Ok(Followed { watch, missed: 0, older: 0 })
    }

    fn news(&mut self) -> anyhow::Result<News> {
        self.watch.rescan()?;
        let ended = self.watch.ended();
        let events = self.watch.read();
        for tail in self.watch.retire(&ended) {
            self.missed += tail.missed;
            self.older += tail.older;
        }
        let sum = |of: fn(&Tail) -> u64| self.watch.tails.iter().map(of).sum::<u64>();
        Ok(News {
            events,
            missed: self.missed + sum(|tail| tail.missed),
            older: self.older + sum(|tail| tail.older),
        })
    }
}
