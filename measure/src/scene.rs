//! A namespace of a run's own; what is in it goes when the run ends, however it ends.

use crate::sink::{Tracked, chip};
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tt_shm_aggregator::{Aggregator, Claim, Config, TablePublisher};
use tt_shm_os::{Namespace, SHM_DIR, random_u64};
use tt_shm_reader::{Table, TableSnapshot};
use tt_shm_writer::{Builder, DEFAULT_LIVE_CAPACITY, DEFAULT_RING_SLOTS, Record, Tracker};

/// How long another process may take to do what is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A namespace that nobody else uses. Drop it last.
#[derive(Debug)]
pub struct Scene {
    /// Its name.
    pub namespace: Namespace,
}

impl Scene {
    /// A new one.
    pub fn new() -> Scene {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Pids come again, and what a killed run left must not be taken for this one's.
        let random = random_u64().map_or(0, |random| random as u32);
        let name = format!("bench-{}-{number}-{random:08x}", std::process::id());
        Scene { namespace: Namespace::new(&name).expect("a valid name") }
    }

    /// Settings of a tracker in it: the defaults, whatever the user's environment says.
    pub fn builder(&self) -> Builder {
        let builder = Tracker::builder().enabled(true).namespace(self.namespace.as_str());
        builder.ring_slots(DEFAULT_RING_SLOTS).live_capacity(DEFAULT_LIVE_CAPACITY).backtrace(false)
    }

    /// A tracker in it, with one device.
    pub fn tracked(&self) -> Tracked<Tracker> {
        let tracker = self.builder().open().expect("a segment");
        let device = tracker.register_device(&chip(1)).expect("a device");
        Tracked { tracker, device }
    }

    /// A table of what the scene's segments hold now, published by this very process and never again: to
    /// read it, no other process need run.
    pub fn publish(&self) -> Result<Table, Box<dyn Error + Send + Sync>> {
        let claim = Claim::take(&self.namespace)?;
        let config = Config { reap: false, ..Config::new(self.namespace.clone()) };
        TablePublisher::create(claim, &Aggregator::new(config)?)?;
        Ok(Table::open(&self.namespace)?)
    }

    /// Waits until an aggregator's table is as it should be.
    pub fn wait_for_table(&self, what: &str, is_right: impl Fn(&TableSnapshot) -> bool) -> Table {
        let start = Instant::now();
        loop {
            let table = Table::open(&self.namespace).ok();
            match table.filter(|table| is_right(&table.snapshot())) {
                Some(table) => return table,
                None => assert!(start.elapsed() < PATIENCE, "waited in vain for {what}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A path in /dev/shm for something that is not ours, removed with the rest.
    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(SHM_DIR).join(format!("{}{name}", self.prefix()))
    }

    fn prefix(&self) -> String {
        format!("tt-shm.v2.{}.", self.namespace)
    }
}

impl Default for Scene {
    fn default() -> Self {
        Scene::new()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        remove_files(&self.prefix());
    }
}

/// Removes everything in /dev/shm whose name begins like this.
pub fn remove_files(prefix: &str) {
    let Ok(entries) = std::fs::read_dir(SHM_DIR) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
