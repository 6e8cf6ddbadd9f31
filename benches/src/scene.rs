//! A namespace of a run's own; what is in it goes when the run ends, however it ends.

use crate::sink::{Tracked, chip};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tt_shm_os::{Namespace, SHM_DIR};
use tt_shm_reader::{Table, TableSnapshot};
use tt_shm_writer::{Builder, Record, Tracker};

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
        let name = format!("bench-{}-{number}", std::process::id());
        Scene { namespace: Namespace::new(&name).expect("a valid name") }
    }

    /// Settings of a tracker in it.
    pub fn builder(&self) -> Builder {
        Tracker::builder().enabled(true).namespace(self.namespace.as_str())
    }

    /// A tracker in it, with one device.
    pub fn tracked(&self) -> Tracked<Tracker> {
        let tracker = self.builder().open().expect("a segment");
        let device = tracker.register_device(&chip(1)).expect("a device");
        Tracked { tracker, device }
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
        format!("tt-shm.v1.{}.", self.namespace)
    }
}

impl Default for Scene {
    fn default() -> Self {
        Scene::new()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let prefix = self.prefix();
        let Ok(entries) = std::fs::read_dir(SHM_DIR) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
