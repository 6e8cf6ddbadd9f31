//! Made-up regions, as tt-metal publishes them, and folders that have them.
//!
//! Places of bytes are written down here once more: what is tested reads them by its own.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tt_shm_region::Roots;

use crate::machine::FakeProcess;

/// Bytes of a region.
pub const REGION_LEN: usize = 8576;
/// When made-up machines were started, in seconds since 1970; their clocks have 100 ticks a second.
pub const BOOT: u64 = 1_700_000_000;

/// Bytes of a process or a chip: dram, l1, l1_small, trace, cb.
pub type Five = [u64; 5];

/// The bytes of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionImage(pub Vec<u8>);

impl RegionImage {
    /// A region that nobody has counted anything in.
    pub fn new(version: u32, chip: u64) -> RegionImage {
        let image = RegionImage(vec![0; REGION_LEN]);
        let mut image = image.u32(0, version).u64(8, seconds_ago(60)).u32(16, 1).u64(32, chip);
        for slot in 0..16 {
            image = image.u32(88 + 48 * slot, u32::MAX);
        }
        let image = image.chip(0, 0, [0; 5]);
        if version >= 4 { image.state(0x5245_4459) } else { image }
    }

    /// A region in which everything agrees: these processes, in the first slots.
    pub fn honest(version: u32, chip: u64, processes: &[(i32, Five)]) -> RegionImage {
        let mut image = RegionImage::new(version, chip).u32(4, processes.len() as u32);
        image = image.u32(16, processes.len() as u32);
        let mut sum = [0; 5];
        for (slot, (pid, bytes)) in processes.iter().enumerate() {
            image = image.process(slot, *pid, *bytes, "python");
            sum = std::array::from_fn(|kind| sum[kind] + bytes[kind]);
        }
        image.totals(sum).chip(0, 0, sum)
    }

    /// The totals.
    #[must_use]
    pub fn totals(self, bytes: Five) -> RegionImage {
        self.five(48, bytes)
    }

    /// A chip's slot.
    #[must_use]
    pub fn chip(self, slot: usize, chip: u32, bytes: Five) -> RegionImage {
        let place = 88 + 48 * slot;
        self.u32(place, chip).five(place + 8, bytes)
    }

    /// A process's slot, written a minute ago.
    #[must_use]
    pub fn process(self, slot: usize, pid: i32, bytes: Five, name: &str) -> RegionImage {
        let place = 856 + 120 * slot;
        let mut image = self.u32(place, pid as u32).five(place + 8, bytes).u64(place + 48, seconds_ago(60));
        image.0[place + 56..place + 120].fill(0);
        image.bytes(place + 56, name.as_bytes())
    }

    /// When a slot was written last.
    #[must_use]
    pub fn written(self, slot: usize, ns: u64) -> RegionImage {
        self.u64(856 + 120 * slot + 48, ns)
    }

    /// When anybody wrote last.
    #[must_use]
    pub fn updated(self, ns: u64) -> RegionImage {
        self.u64(8, ns)
    }

    /// The state of its initialisation.
    #[must_use]
    pub fn state(self, state: u32) -> RegionImage {
        self.u32(8536, state)
    }

    /// Any bytes at any place.
    #[must_use]
    pub fn bytes(mut self, place: usize, bytes: &[u8]) -> RegionImage {
        self.0[place..place + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// A number.
    #[must_use]
    pub fn u32(self, place: usize, value: u32) -> RegionImage {
        self.bytes(place, &value.to_le_bytes())
    }

    /// A number.
    #[must_use]
    pub fn u64(self, place: usize, value: u64) -> RegionImage {
        self.bytes(place, &value.to_le_bytes())
    }

    fn five(self, place: usize, values: Five) -> RegionImage {
        values.iter().enumerate().fold(self, |image, (index, value)| image.u64(place + 8 * index, *value))
    }
}

/// A time by the system clock, in nanoseconds since 1970.
pub fn seconds_ago(seconds: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from((now - Duration::from_secs(seconds)).as_nanos()).expect("this century")
}

/// A folder with regions and processes. Removed when dropped.
pub struct RegionTree(tempfile::TempDir);

impl Default for RegionTree {
    fn default() -> RegionTree {
        let tree = RegionTree(tempfile::tempdir().expect("a temporary folder"));
        for folder in ["dev/shm", "proc/self"] {
            fs::create_dir_all(tree.0.path().join(folder)).expect("a new folder");
        }
        tree.write("proc/stat", &format!("cpu  1 2 3 4\nbtime {BOOT}\n"));
        tree
    }
}

impl RegionTree {
    /// What reads the tree.
    pub fn roots(&self) -> Roots {
        Roots::below(self.0.path())
    }

    /// The folder that has `dev` and `proc`.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The region of a chip.
    pub fn region(&self, chip: u64) -> PathBuf {
        self.0.path().join(format!("dev/shm/tt_device_{chip}_memory"))
    }

    /// Writes a region as tt-metal does, into the file that is there.
    pub fn publish(&self, chip: u64, image: &RegionImage) {
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.region(chip));
        let file = file.expect("a tree that can be written");
        file.set_len(image.0.len() as u64).expect("room");
        file.write_all_at(&image.0, 0).expect("room");
    }

    /// Adds a process, or changes it.
    pub fn add_process(&self, process: &FakeProcess) {
        self.end_process(process.pid);
        process.write(&self.0.path().join("proc"), &[]);
    }

    /// Ends a process.
    pub fn end_process(&self, pid: u32) {
        let _ = fs::remove_dir_all(self.0.path().join(format!("proc/{pid}")));
    }

    /// Writes a file of the tree.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("it is in the tree")).expect("a tree that can be written");
        fs::write(path, text).expect("a tree that can be written");
    }
}
