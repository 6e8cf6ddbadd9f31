//! Where the data comes from: the library's source, and what that does not see.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tt_shm_aggregator::SourceConfig;
use tt_shm_os::{Namespace, path_of, table_file_name};
use tt_shm_reader::{Bucket, Table, TableError, TableSnapshot, TelemetryBucket};

use crate::model::{Clock, Origin, Reading};
use crate::segments::{Hidden, hidden};

/// A source that is read repeatedly, and what it does not see.
#[derive(Debug)]
pub struct Source {
    source: tt_shm_aggregator::Source,
    unseen: Unseen,
    /// Whether the source has looked around since that was found.
    is_stale: bool,
}

/// What the source does not see, as of the last check.
#[derive(Clone, Debug)]
struct Unseen {
    hidden: Vec<Hidden>,
    refused_table: Option<Arc<TableError>>,
}

impl Source {
    /// Opens the table if its aggregator runs, else starts an aggregation.
    pub fn open(namespace: &Namespace) -> anyhow::Result<Source> {
        let config = SourceConfig {
            driver: Some(crate::driver::roots()),
            regions: Some(crate::driver::region_roots()),
            ..SourceConfig::new(namespace.clone())
        };
        let source = tt_shm_aggregator::Source::with(config).context("cannot aggregate")?;
        let unseen = Unseen::look(&source)?;
        Ok(Source { source, unseen, is_stale: false })
    }

    /// Reads everything as it is now.
    pub fn read(&mut self) -> anyhow::Result<Reading> {
        self.is_stale |= self.source.recheck().context("cannot aggregate")?;
        if self.is_stale {
            self.unseen = Unseen::look(&self.source)?;
            self.is_stale = false;
        }
        let tt_shm_aggregator::Reading { snapshot, origin, rates_known } =
            self.source.read().context("cannot aggregate")?;
        let origin = match origin {
            tt_shm_aggregator::Origin::Table { pid, age_ns } => Origin::Table { pid, age_ns },
            tt_shm_aggregator::Origin::Embedded => Origin::Embedded,
        };
        let Unseen { hidden, refused_table } = self.unseen.clone();
        let clock = Clock::beside(&snapshot);
        Ok(Reading { snapshot, origin, clock, rates_known, hidden, refused_table })
    }

    /// A device's history by its row in the table and its chip (0 a minute, 1 an hour, 2 a day), oldest first.
    pub fn history(&self, row: usize, chip_id: u64, resolution: usize) -> Vec<Bucket> {
        self.source.history(row, chip_id, resolution)
    }

    /// Telemetry of a device by its row among the driver's (0 eight minutes, 1 an hour, 2 a day), oldest first.
    pub fn telemetry(&self, row: usize, resolution: usize) -> Vec<TelemetryBucket> {
        self.source.telemetry(row, resolution)
    }

    /// Keeps an embedded aggregation going, so that no ring goes round unseen.
    pub fn poll(&mut self) {
        self.source.poll();
    }

    /// How long may pass until the next [`Source::poll`].
    pub fn poll_interval(&self) -> Duration {
        self.source.poll_interval()
    }
}

impl Unseen {
    fn look(source: &tt_shm_aggregator::Source) -> anyhow::Result<Unseen> {
        let namespace = source.namespace();
        let hidden = if source.sees_all() { Vec::new() } else { hidden(namespace)? };
        Ok(Unseen { hidden, refused_table: refused_table(namespace).map(Arc::new) })
    }
}

/// Why a table that exists is not read: it is damaged, or has the wrong owner.
fn refused_table(namespace: &Namespace) -> Option<TableError> {
    let uid = rustix::process::geteuid().as_raw();
    let open = |uid| Table::open_path(&path_of(&table_file_name(namespace, uid)), uid);
    [0, uid].into_iter().filter_map(|uid| open(uid).err()).find(|error| !error.is_not_found())
}

/// The rows of a running aggregator, if there is one.
pub fn table_snapshot(namespace: &Namespace) -> Option<TableSnapshot> {
    Table::open_fresh(namespace).map(|table| table.snapshot())
}
