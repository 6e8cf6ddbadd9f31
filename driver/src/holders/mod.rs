//! The processes that hold devices.

mod descriptors;
mod facts;
mod pids;

pub use facts::Facts;

use std::collections::BTreeMap;

use tt_shm_os::Procfs;

use crate::absence::Absence;
use crate::roots::Roots;
use crate::version::Version;
use descriptors::Descriptors;

/// Who holds which device, and what could not be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// In the order of the devices that were asked for.
    pub devices: Vec<DeviceHolders>,
    /// Processes whose descriptors this user may not list. Where [`Listing::Descriptors`] is used, one of them may
    /// hold a device.
    pub denied: u32,
    /// Whether procfs is mounted so that it hides processes of other users.
    pub is_hiding: bool,
    /// Whether there were more processes or descriptors than are looked at.
    pub is_cut: bool,
}

/// Who holds a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceHolders {
    /// Number of the device.
    pub number: u32,
    /// Where this is from.
    pub listing: Listing,
    /// Each process once, by pid.
    pub processes: Vec<Holder>,
    /// Descriptors of processes that have no pid here: they are in another PID namespace.
    pub invisible: u32,
    /// Lines of the driver's list that are no pids.
    pub malformed: u32,
}

/// Where a list of holders is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The driver's own list: everyone, whoever asks.
    Driver,
    /// The descriptors of all processes that this user may look at, because of the reason why there is no list.
    Descriptors(Absence),
}

/// A process that holds a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its pid, as the list has it.
    pub pid: u32,
    /// Open descriptors of the device.
    pub handles: u32,
    /// Whether the process with this pid really holds it.
    pub confidence: Confidence,
    /// What procfs tells of the process; `None` if it is hidden or has ended, and unless it is believed to be the
    /// holder.
    pub facts: Option<Facts>,
}

/// How sure it is that a pid is that of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// The process has a descriptor of the device.
    Confirmed,
    /// The driver lists it, in the PID namespace of this process (since 2.7).
    Listed,
    /// The driver lists the pid that the process had in its own namespace (2.5, 2.6, or of unknown version), and the
    /// process that has it here does not hold the device, does not exist, or may not be looked at.
    Unconfirmed,
}

impl Holders {
    /// Reads who holds these devices. `driver` is the version of the driver.
    #[must_use]
    pub fn read(roots: &Roots, driver: Option<&Version>, devices: &[u32]) -> Holders {
        Holders::look(roots, driver, devices, true)
    }

    /// Reads who holds these devices, by pid alone, which is much cheaper.
    #[must_use]
    pub fn without_facts(roots: &Roots, driver: Option<&Version>, devices: &[u32]) -> Holders {
        Holders::look(roots, driver, devices, false)
    }

    fn look(roots: &Roots, driver: Option<&Version>, devices: &[u32], with_facts: bool) -> Holders {
        let procfs = roots.procfs();
        let lists: Vec<_> = devices.iter().map(|number| pids::read(&roots.pids(*number))).collect();
        let mut holders = Holders { is_hiding: with_facts && procfs.is_hiding(), ..Holders::default() };
        let is_missing = lists.iter().any(Result::is_err);
        let all = if is_missing { Descriptors::of_all(&roots.proc) } else { Descriptors::default() };
        (holders.denied, holders.is_cut) = (all.denied, all.is_cut);
        let boot = if with_facts { procfs.boot_time() } else { None };
        let mut facts = FactsOf { boot, procfs, known: BTreeMap::new(), with_facts };
        let is_translated = driver.is_some_and(|version| version.is_at_least(2, 7));
        for (number, list) in devices.iter().zip(lists) {
            let found = match list {
                Ok(list) => {
                    holders.is_cut |= list.is_cut;
                    from_list(roots, *number, &list, is_translated, &mut facts)
                }
                Err(absence) => from_descriptors(*number, absence, &all, &mut facts),
            };
            holders.devices.push(found);
        }
        holders
    }

    /// What is missing, how often, and what to do.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let holders = || self.devices.iter().flat_map(|device| &device.processes);
        let unseen = holders().filter(|holder| holder.facts.is_none() && holder.is_believed()).count();
        let unconfirmed = holders().filter(|holder| !holder.is_believed()).count();
        let invisible: u32 = self.devices.iter().map(|device| device.invisible).sum();
        let malformed: u32 = self.devices.iter().map(|device| device.malformed).sum();
        let gap = |count: u64, what: &str| (count > 0).then(|| format!("{what}: {count}"));
        let gaps = [
            gap(
                self.denied.into(),
                "processes whose descriptors may not be read (they may hold devices: run as root)",
            ),
            gap(
                u64::from(self.is_hiding),
                "mounts of procfs that hide other users' processes, by hidepid (run as root)",
            ),
            gap(unseen as u64, "holders that procfs does not show (they are hidden or have ended)"),
            gap(invisible.into(), "descriptors of processes outside of this PID namespace (run on the host)"),
            gap(
                unconfirmed as u64,
                "pids of the driver's list that cannot be confirmed (update tt-kmd to 2.7 or later)",
            ),
            gap(malformed.into(), "lines of the driver's list that are not pids"),
            gap(u64::from(self.is_cut), "lists of processes or descriptors that are longer than is read"),
        ];
        gaps.into_iter().flatten().collect()
    }
}

impl Holder {
    /// Whether the process with this pid is taken for the holder.
    #[must_use]
    pub fn is_believed(&self) -> bool {
        self.confidence != Confidence::Unconfirmed
    }
}

fn from_list(
    roots: &Roots,
    number: u32,
    list: &pids::Pids,
    is_translated: bool,
    facts: &mut FactsOf,
) -> DeviceHolders {
    let holder = |(pid, handles): (&u32, &u32)| {
        let confidence = match is_translated {
            true => Confidence::Listed,
            false if descriptors::holds(&roots.proc, *pid, number) => Confidence::Confirmed,
            false => Confidence::Unconfirmed,
        };
        let facts = if confidence == Confidence::Unconfirmed { None } else { facts.get(*pid) };
        Holder { pid: *pid, handles: *handles, confidence, facts }
    };
    DeviceHolders {
        number,
        listing: Listing::Driver,
        processes: list.handles.iter().map(holder).collect(),
        invisible: list.invisible,
        malformed: list.malformed,
    }
}

fn from_descriptors(number: u32, absence: Absence, all: &Descriptors, facts: &mut FactsOf) -> DeviceHolders {
    let of_device = all.handles.range((number, 0)..=(number, u32::MAX));
    let processes = of_device.map(|((_, pid), handles)| Holder {
        pid: *pid,
        handles: *handles,
        confidence: Confidence::Confirmed,
        facts: facts.get(*pid),
    });
    let processes = processes.collect();
    DeviceHolders { number, listing: Listing::Descriptors(absence), processes, invisible: 0, malformed: 0 }
}

/// Facts of processes, each read once: a process may hold all devices.
struct FactsOf {
    procfs: Procfs,
    boot: Option<u64>,
    known: BTreeMap<u32, Option<Facts>>,
    with_facts: bool,
}

impl FactsOf {
    fn get(&mut self, pid: u32) -> Option<Facts> {
        if !self.with_facts {
            return None;
        }
        self.known.entry(pid).or_insert_with(|| Facts::read(&self.procfs, pid, self.boot)).clone()
    }
}
