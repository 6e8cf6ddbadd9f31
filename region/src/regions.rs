//! All regions of a machine, read again and again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use crate::absence::{Absence, Reading};
use crate::content::{Content, Process};
use crate::fault;
use crate::file::{self, RegionFile};
use crate::layout::Image;
use crate::liveness::{Claim, Processes};
use crate::roots::Roots;

/// Regions of one owner that are looked at, so that nobody crowds out others. The largest machine has 32 chips.
const MAX_PER_OWNER: usize = 64;
/// Regions that are looked at.
const MAX_REGIONS: usize = 256;
/// Names in the folder that are looked at.
const MAX_NAMES: usize = 65_536;
/// Counters that were not written for this long are compared with each other; see [`Regions`].
const REST: Duration = Duration::from_millis(100);

/// How often regions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between two readings.
    pub poll: Duration,
    /// Time between two searches for new regions. One lists the whole of /dev/shm, which has a file for every process that
    /// reports, and chips come only with a reset. Regions that vanish or are replaced are noticed by each reading.
    pub scan: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { poll: Duration::from_millis(100), scan: Duration::from_secs(1) }
    }
}

/// A region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Id of the chip, from the name of the file.
    pub chip_id: u64,
    /// The file.
    pub path: PathBuf,
    /// The user whose file it is.
    pub owner: Option<u32>,
    /// What stands in it.
    pub content: Reading<Content>,
}

/// The regions of this machine.
///
/// Files are kept open and read again by each poll, unless the path leads to another file meanwhile.
///
/// tt-metal writes its counters one after another and without an order, so a copy may be from between two stores. A copy
/// counts as that of one moment if two readings are equal ([`Content::is_steady`]), and counters are compared with each
/// other only if also nobody wrote for 100 ms: then a difference is a fault and no writer in the middle of its work.
#[derive(Debug)]
pub struct Regions {
    roots: Roots,
    pace: Pace,
    listed: Reading<()>,
    left_out: usize,
    is_cut: bool,
    /// In the same order as `regions`.
    tracked: Vec<Tracked>,
    regions: Vec<Region>,
    processes: Processes,
    polled: Option<Instant>,
    scanned: Option<Instant>,
}

/// What is kept of a region from one poll to the next.
#[derive(Debug, Default)]
struct Tracked {
    file: Option<RegionFile>,
    /// The bytes that were read last, if they were those of one moment.
    last: Option<Box<Image>>,
}

impl Regions {
    /// Reads this machine, or a tree that looks like one. Nothing is read before the first poll.
    #[must_use]
    pub fn new(roots: Roots) -> Regions {
        Regions::with(roots, Pace::default())
    }

    /// Reads at another pace.
    #[must_use]
    pub fn with(roots: Roots, pace: Pace) -> Regions {
        Regions {
            listed: Err(Absence::Missing { path: roots.shm.clone() }),
            processes: Processes::new(roots.procfs()),
            roots,
            pace,
            left_out: 0,
            is_cut: false,
            tracked: Vec::new(),
            regions: Vec::new(),
            polled: None,
            scanned: None,
        }
    }

    /// Reads what is due. Returns whether anything was.
    pub fn poll(&mut self, now: Instant) -> bool {
        let is_due = |last: Option<Instant>, every: Duration| {
            last.is_none_or(|last| now.saturating_duration_since(last) >= every)
        };
        if !is_due(self.polled, self.pace.poll) {
            return false;
        }
        self.polled = Some(now);
        if is_due(self.scanned, self.pace.scan) {
            self.scan();
            self.scanned = Some(now);
        }
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.processes.begin();
        for (tracked, region) in self.tracked.iter_mut().zip(&mut self.regions) {
            tracked.read(region, &mut self.processes, now, clock);
        }
        self.processes.end();
        self.forget_missing();
        true
    }

    /// By chip id, as of the last poll.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Whether the folder of shared memory could be listed.
    pub fn listed(&self) -> &Reading<()> {
        &self.listed
    }

    /// Regions beyond the most that are looked at.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// What could not be seen, and what to do.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps: Vec<String> = self.processes.gaps().into_iter().map(str::to_owned).collect();
        if self.left_out > 0 {
            gaps.push(format!(
                "regions beyond the most that are looked at (remove those of old jobs): {}",
                self.left_out
            ));
        }
        if self.is_cut {
            let folder = self.roots.shm.display();
            gaps.push(format!("{folder} has more files than are looked at: remove those of old jobs"));
        }
        gaps
    }

    /// Where it reads.
    #[must_use]
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    fn scan(&mut self) {
        let entries = fs::read_dir(&self.roots.shm).map_err(|error| {
            Absence::of(Errno::from_io_error(&error).unwrap_or(Errno::IO), &self.roots.shm, 0)
        });
        self.listed = entries.as_ref().map(|_| ()).map_err(Absence::clone);
        let mut names = entries.into_iter().flatten().flatten();
        let chips = names.by_ref().take(MAX_NAMES).filter_map(|entry| chip_of(entry.file_name().to_str()?));
        let mut chips: Vec<u64> = chips.collect();
        self.is_cut = names.next().is_some();
        chips.sort_unstable();
        let mut before: BTreeMap<u64, (Tracked, Region)> = self
            .tracked
            .drain(..)
            .zip(self.regions.drain(..))
            .map(|(tracked, region)| (region.chip_id, (tracked, region)))
            .collect();
        let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
        self.left_out = 0;
        for chip in chips {
            let path = self.roots.shm.join(format!("{PREFIX}{chip}{SUFFIX}"));
            let Ok(facts) = file::look(&path) else { continue };
            let of_owner = owners.entry(facts.owner).or_default();
            if *of_owner >= MAX_PER_OWNER || self.regions.len() >= MAX_REGIONS {
                self.left_out += 1;
                continue;
            }
            *of_owner += 1;
            let (tracked, region) = before.remove(&chip).unwrap_or_else(|| unread(chip, &path));
            self.tracked.push(tracked);
            self.regions.push(region);
        }
    }

    fn forget_missing(&mut self) {
        let is_there = |region: &Region| !matches!(region.content, Err(Absence::Missing { .. }));
        let mut kept = self.regions.iter().map(is_there);
        self.tracked.retain(|_| kept.next().unwrap_or(false));
        self.regions.retain(is_there);
    }
}

fn unread(chip_id: u64, path: &Path) -> (Tracked, Region) {
    let content = Err(Absence::Missing { path: path.to_owned() });
    (Tracked::default(), Region { chip_id, path: path.to_owned(), owner: None, content })
}

impl Tracked {
    fn read(&mut self, region: &mut Region, processes: &mut Processes, now: Instant, clock: Duration) {
        let content = self.content(region, processes, now, clock);
        if content.is_err() {
            self.last = None;
        }
        region.content = content;
    }

    fn content(
        &mut self,
        region: &mut Region,
        processes: &mut Processes,
        now: Instant,
        clock: Duration,
    ) -> Reading<Content> {
        let facts = file::look(&region.path)?;
        region.owner = Some(facts.owner);
        let file = match self.file.take().filter(|file| file.is(&facts)) {
            Some(file) => file,
            None => {
                self.last = None;
                RegionFile::open(&region.path, &facts)?
            }
        };
        let (id, copied) = (file.id(), file.read(&region.path, &facts));
        self.file = Some(file);
        let copied = copied?;
        let mut content = Content::parse(&copied.image);
        content.is_steady = copied.is_steady;
        let is_at_rest = copied.is_steady && self.is_at_rest(&content, &copied.image, clock);
        content.faults = fault::find(&content, &copied.image, region.chip_id, facts.mode, is_at_rest);
        for process in &mut content.processes {
            let &mut Process { slot, pid, updated_ns, .. } = process;
            let claim = Claim { file: id, slot, pid, updated_ns };
            process.liveness = processes.judge(claim, now);
        }
        self.last = copied.is_steady.then_some(copied.image);
        Ok(content)
    }

    /// Whether nobody has written for a while. By a clock that was set back since, the last update lies ahead: then it
    /// counts that nothing changed between two polls.
    fn is_at_rest(&self, content: &Content, image: &Image, clock: Duration) -> bool {
        let updated = Duration::from_nanos(content.updated_ns);
        match clock.checked_sub(updated) {
            Some(age) => age >= REST,
            None => self.last.as_deref() == Some(image),
        }
    }
}

const PREFIX: &str = "tt_device_";
const SUFFIX: &str = "_memory";

/// The chip id of `tt_device_72059269368820857_memory`. Other spellings of the number are none of tt-metal's names.
fn chip_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let chip: u64 = digits.parse().ok()?;
    (chip.to_string() == digits).then_some(chip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_regions() {
        assert_eq!(chip_of("tt_device_0_memory"), Some(0));
        assert_eq!(chip_of("tt_device_18446744073709551615_memory"), Some(u64::MAX));
        for other in [
            "tt_device__memory",
            "tt_device_01_memory",
            "tt_device_+1_memory",
            "tt_device_1_memory.old",
            "tt_device_",
        ] {
            assert_eq!(chip_of(other), None, "{other}");
        }
    }
}
