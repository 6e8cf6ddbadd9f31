//! A device, all processes together.

use tt_shm_reader::{Class, Composition, DeviceEntry, DeviceStats, Memory as Place, device_flags, known};

use super::{Held, Shortage};
use crate::directory::DeviceId;
use crate::escape::Foreign;

/// A device.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its place in the list; what `--device` takes.
    pub index: usize,
    /// Its row in the table.
    pub row: usize,
    /// Its names.
    pub id: DeviceId,
    /// Architecture.
    pub arch: Option<&'static str>,
    /// Board.
    pub board: Option<Foreign>,
    /// What all processes together hold on it.
    pub held: Held,
    /// DRAM of each bank, if a process said how many there are.
    pub dram_per_bank: Option<u64>,
    /// L1 of each Tensix core, if a process said so.
    pub l1_per_core: Option<u64>,
    /// Of the resident kernels, the application's.
    pub kernel_application_resident: u64,
    /// Processes that have something on it.
    pub processes: u64,
    /// Events of the last second; `None` if nobody has counted for so long.
    pub events_per_second: Option<f64>,
    /// Dispatches of the last second.
    pub dispatches_per_second: Option<f64>,
    /// The last allocation failure.
    pub failure: Option<LastFailure>,
    /// What the DRAM peak was made of.
    pub dram_makeup: Makeup,
    /// What the L1 peak was made of.
    pub l1_makeup: Makeup,
    /// More is used than there is: some process reports wrongly.
    pub over_capacity: bool,
    /// Processes disagree about the device.
    pub conflict: bool,
    /// Who writes the segments of the living processes on it, each once: `ring`, `tap`, `bridge`.
    pub sources: Vec<&'static str>,
    /// Somebody who could not be read may have something on it.
    pub incomplete: bool,
}

/// An allocation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// When, CLOCK_MONOTONIC.
    pub time: u64,
    /// Whose.
    pub pid: u64,
    /// Of what, unless foreign to this version.
    pub class: Option<Class>,
    /// What was asked for, needed and free.
    pub shortage: Shortage,
}

/// What a peak was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Makeup {
    /// Bytes by class; circular buffers as resident.
    pub classes: Vec<(Class, u64)>,
    /// Processes, largest first.
    pub holders: Vec<Holder>,
    /// Bytes of all others.
    pub others: u64,
    /// Whether this is all that the peak was made of.
    pub exact: bool,
}

/// A process's share of a peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its pid.
    pub pid: u64,
    /// Bytes it held.
    pub bytes: u64,
}

impl Makeup {
    fn new(composition: &Composition, exact: bool) -> Makeup {
        let classes = Class::ALL.map(|class| (class, composition.classes[class as usize]));
        let holders = composition.holders.iter().filter(|holder| holder.identity != 0);
        Makeup {
            classes: classes.into_iter().filter(|(_, bytes)| *bytes > 0).collect(),
            holders: holders.map(|holder| Holder { pid: holder.pid, bytes: holder.bytes }).collect(),
            others: composition.others,
            exact,
        }
    }
}

impl Device {
    /// Resolves a row.
    pub fn new(index: usize, row: usize, id: &DeviceId, stats: &DeviceStats, rates_known: bool) -> Device {
        let entry = &stats.entry;
        let rate = |per_1000s: u64| rates_known.then_some(per_1000s as f64 / 1000.0);
        let has = |flag: u64| stats.flags & flag != 0;
        let incomplete = has(device_flags::INCOMPLETE);
        Device {
            index,
            row,
            id: id.clone(),
            arch: entry.architecture().name(),
            board: entry.board_name().map(Foreign::from),
            held: Held::by_all(stats, incomplete),
            dram_per_bank: dram_per_bank(entry),
            l1_per_core: Some(entry.l1_per_core).filter(|_| entry.known & known::L1 != 0),
            kernel_application_resident: stats.kernel_resident_bytes,
            processes: stats.processes,
            events_per_second: rate(stats.events_per_1000s),
            dispatches_per_second: rate(stats.dispatches_per_1000s),
            failure: last_failure(&stats.failure),
            dram_makeup: Makeup::new(&stats.dram_composition, has(device_flags::DRAM_COMPOSITION_EXACT)),
            l1_makeup: Makeup::new(&stats.l1_composition, has(device_flags::L1_COMPOSITION_EXACT)),
            over_capacity: has(device_flags::OVER_CAPACITY),
            conflict: has(device_flags::CONFLICT),
            sources: Vec::new(),
            incomplete,
        }
    }

    /// What the peak of a memory was made of, where that is kept.
    pub fn makeup(&self, place: Place) -> Option<&Makeup> {
        match place {
            Place::Dram => Some(&self.dram_makeup),
            Place::L1 => Some(&self.l1_makeup),
            Place::Kernels | Place::Host => None,
        }
    }

    /// Who said how much memory there is.
    pub fn capacity_source(&self) -> Option<&'static str> {
        (self.held.dram.total.is_some() || self.held.l1.total.is_some()).then_some("producer")
    }

    /// The board, else the architecture, for people.
    pub fn kind(&self) -> String {
        let arch = || self.arch.unwrap_or(crate::units::UNKNOWN).to_owned();
        self.board.as_ref().map_or_else(arch, Foreign::to_string)
    }

    /// What is wrong with it, in a word each.
    pub fn flags(&self) -> Vec<&'static str> {
        let flag = |set: bool, word| set.then_some(word);
        let flags = [
            flag(self.over_capacity, "over capacity"),
            flag(self.conflict, "conflict"),
            flag(self.incomplete, "incomplete"),
        ];
        flags.into_iter().flatten().collect()
    }
}

/// A channel is a bank, as `num_dram_channels` of tt-metal counts them: those that have addresses of their own.
fn dram_per_bank(entry: &DeviceEntry) -> Option<u64> {
    let known = known::DRAM | known::DRAM_CHANNELS;
    let has = Some(entry).filter(|entry| entry.known & known == known)?;
    has.dram_bytes.checked_div(has.dram_channels).filter(|bytes| *bytes > 0)
}

fn last_failure(failure: &tt_shm_reader::Failure) -> Option<LastFailure> {
    (failure.time != 0).then(|| LastFailure {
        time: failure.time,
        pid: failure.pid,
        class: u8::try_from(failure.class).ok().and_then(Class::from_code),
        shortage: failure.into(),
    })
}
