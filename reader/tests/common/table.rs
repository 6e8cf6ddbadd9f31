//! A table as an aggregator would write it, one generation at a time.

use std::os::unix::fs::chown;
use std::path::Path;
use std::sync::atomic::Ordering;

use shm_layout::protocol::latch::LatchWriter;
use shm_layout::protocol::stamped;
use shm_layout::store_pod;
use shm_layout::table::{self, TableHeader, TableWords, control};
use std::sync::atomic::AtomicU64;
use tt_shm_os::{WriteMap, boot_id, path_of, table_file_name};
use tt_shm_reader::{
    Bucket, DeviceStats, Namespace, Notice, ProcessStats, Table, TableError, UsageStats, monotonic_ns,
};

use super::{Removed, euid, namespace, new_file};

pub struct Publisher {
    pub namespace: Namespace,
    pub header: TableHeader,
    map: WriteMap,
    pub file: Removed,
}

pub fn header() -> TableHeader {
    TableHeader { boot_id: boot_id().unwrap(), identity: 7, ..TableHeader::plan() }
}

impl Publisher {
    /// A fresh table of the test's own uid.
    pub fn new() -> Publisher {
        Publisher::with_header(&namespace(), euid(), header())
    }

    /// A table at the name of `uid`, whoever runs the test.
    pub fn with_header(namespace: &Namespace, uid: u32, header: TableHeader) -> Publisher {
        let path = path_of(&table_file_name(namespace, uid));
        let (file, removed) = new_file(&path, header.total_len, 0o644);
        let map = WriteMap::new(&file, header.total_len as usize).unwrap();
        // As an aggregator does before it publishes: what has no memory behind it is refused.
        map.populate(0, header.total_len as usize).unwrap();
        store_pod(map.words(), &header);
        let publisher = Publisher { namespace: namespace.clone(), header, map, file: removed };
        publisher.set(control::HEARTBEAT, monotonic_ns());
        publisher.set(control::INTERVAL, 1_000_000_000_000);
        publisher
    }

    /// Gives the file to another user, if the test may.
    pub fn give_to(self, uid: u32) -> Publisher {
        chown(self.path(), Some(uid), None).unwrap();
        self
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    pub fn open(&self) -> Table {
        self.try_open().unwrap()
    }

    pub fn try_open(&self) -> Result<Table, TableError> {
        Table::open_path(self.path(), euid())
    }

    pub fn words(&self) -> TableWords<'_, AtomicU64> {
        TableWords::carve(self.map.words(), &self.header)
    }

    pub fn set(&self, word: usize, value: u64) {
        self.words().control[word].store(value, Ordering::Release);
    }

    fn turn<T: bytemuck::Pod>(latch: &[AtomicU64], value: &T) {
        LatchWriter::resume(latch).turn(latch, |copy| store_pod(copy, value));
    }

    pub fn device(&self, index: usize, row: DeviceStats) {
        Self::turn(&self.words().devices[index], &row);
        self.grow(control::DEVICES, index);
    }

    pub fn process(&self, index: usize, row: ProcessStats) {
        Self::turn(&self.words().processes[index], &row);
        self.grow(control::PROCESSES, index);
    }

    pub fn usage(&self, index: usize, row: UsageStats) {
        Self::turn(&self.words().usages[index], &row);
        self.grow(control::USAGES, index);
    }

    /// Adds a notice, the `number`-th from 0.
    pub fn notice(&self, number: u64, row: Notice) {
        let rows = self.words().notices;
        Self::turn(&rows[number as usize % rows.len()], &row);
        self.set(control::NOTICES, number + 1);
    }

    pub fn bucket(&self, device: usize, resolution: usize, bucket: Bucket) {
        let history = &self.words().history[device];
        stamped::write(table::bucket(history, resolution, bucket.start).unwrap(), &bucket);
    }

    fn grow(&self, word: usize, index: usize) {
        let count = self.words().control[word].load(Ordering::Relaxed);
        self.set(word, count.max(index as u64 + 1));
    }
}
