//! A device, all processes together.

use serde::Serialize;
use tt_shm_reader::{
    Class, Composition, DeviceEntry, DeviceStats, Memory as Place, Told, device_flags, known,
};

use super::as_json::{by_word, word_or_null};
use super::{Clock, DeviceRegion, Held, Memory, Moment, Shortage};
use crate::directory::DeviceId;
use crate::driver::{DriverDevice, Measure};
use crate::escape::Foreign;
#[cfg(test)]
use crate::schema;

/// The processes said how much memory there is.
pub(crate) const PRODUCER: &str = "producer";
/// The name of the board says how much memory there should be.
pub(crate) const NOMINAL: &str = "nominal";

/// A device. As JSON: which device it is; documents add what they tell of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Device {
    /// Its place in the list; what --device takes.
    pub index: usize,
    /// Its row in the table.
    #[serde(skip)]
    pub row: usize,
    /// Its names.
    #[serde(flatten)]
    pub id: DeviceId,
    /// Architecture; `None` if no process says.
    #[cfg_attr(test, schemars(schema_with = "schema::arch"))]
    pub arch: Option<&'static str>,
    /// Board; `None` if no process says.
    pub board: Option<Foreign>,
    /// Where the figures come from: the sources of the living processes on it, each once.
    #[serde(rename = "source")]
    #[cfg_attr(test, schemars(schema_with = "schema::sources"))]
    pub sources: Vec<&'static str>,
    /// Who says how much memory there is: the processes, or else a list of boards; `None` if nobody.
    #[cfg_attr(test, schemars(schema_with = "schema::capacity_source"))]
    pub capacity_source: Option<&'static str>,
    /// What all processes together hold on it.
    #[serde(skip)]
    pub held: Held,
    /// DRAM of each bank, if a process said how many there are.
    #[serde(skip)]
    pub dram_per_bank: Option<u64>,
    /// L1 of each Tensix core, if a process said so.
    #[serde(skip)]
    pub l1_per_core: Option<u64>,
    /// Of the resident kernels, the application's.
    #[serde(skip)]
    pub kernel_application_resident: u64,
    /// Processes that have something on it.
    #[serde(skip)]
    pub processes: u64,
    /// Events of the last second; `None` if nobody has counted for so long.
    #[serde(skip)]
    pub events_per_second: Option<f64>,
    /// Dispatches of the last second.
    #[serde(skip)]
    pub dispatches_per_second: Option<f64>,
    /// The last allocation failure.
    #[serde(skip)]
    pub failure: Option<LastFailure>,
    /// What the DRAM peak was made of.
    #[serde(skip)]
    pub dram_makeup: Makeup,
    /// What the L1 peak was made of.
    #[serde(skip)]
    pub l1_makeup: Makeup,
    /// More is used than there is: some process reports wrongly.
    #[serde(skip)]
    pub over_capacity: bool,
    /// Processes disagree about the device.
    #[serde(skip)]
    pub conflict: bool,
    /// Somebody who could not be read may have something on it.
    #[serde(skip)]
    pub incomplete: bool,
    /// A process holds it, as the driver says, and does not report what it uses.
    #[serde(skip)]
    pub unreported_holder: bool,
    /// What the driver tells of it; `None` if it has no such device, or there is no driver.
    #[serde(skip)]
    pub driver: Option<DriverDevice>,
    /// What tt-metal's region says of it; `None` if it has none.
    #[serde(skip)]
    pub region: Option<DeviceRegion>,
}

/// An allocation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastFailure {
    /// When; `None` if that was before the machine was suspended, when nobody knows what the wall clock showed.
    pub time: Moment,
    /// Whose.
    pub pid: u64,
    /// Memory class; `None` if a later version has it.
    #[serde(serialize_with = "word_or_null")]
    #[cfg_attr(test, schemars(schema_with = "schema::words_or_null::<Class>"))]
    pub class: Option<Class>,
    /// What was asked for, needed and free.
    #[serde(flatten)]
    pub shortage: Shortage,
}

/// What a peak was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Makeup {
    /// Whether classes and holders are all that it was made of.
    #[serde(rename = "composition_exact")]
    pub exact: bool,
    /// What it was made of, circular buffers as resident; empty if not known.
    #[serde(rename = "classes_bytes", serialize_with = "by_word")]
    #[cfg_attr(test, schemars(schema_with = "schema::some_classes_bytes"))]
    pub classes: Vec<(Class, u64)>,
    /// Largest first.
    pub holders: Vec<Holder>,
    /// What all others held.
    #[serde(rename = "others_bytes")]
    pub others: u64,
}

/// Who held it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Holder {
    /// A process.
    pub pid: u64,
    /// What it held.
    pub bytes: u64,
}

impl Makeup {
    fn new(composition: &Composition, exact: bool) -> Makeup {
        let classes = Class::ALL.map(|class| (class, composition.classes[class as usize]));
        let holders = composition.holders.iter().filter(|holder| holder.identity != 0);
        Makeup {
            exact,
            classes: classes.into_iter().filter(|(_, bytes)| *bytes > 0).collect(),
            holders: holders.map(|holder| Holder { pid: holder.pid, bytes: holder.bytes }).collect(),
            others: composition.others,
        }
    }
}

impl Device {
    /// Resolves a row.
    pub fn new(
        index: usize,
        row: usize,
        id: &DeviceId,
        stats: &DeviceStats,
        clock: Clock,
        rates_known: bool,
    ) -> Device {
        let entry = &stats.entry;
        let rate = |per_1000s: u64| rates_known.then_some(per_1000s as f64 / 1000.0);
        let has = |flag: u64| stats.flags & flag != 0;
        let incomplete = has(device_flags::INCOMPLETE);
        let mut held = Held::by_all(stats, incomplete, clock);
        if has(device_flags::SYSTEM_KERNELS_UNSEEN) {
            held.doubt_system_kernels();
        }
        let has_capacity = held.dram.total.is_some() || held.l1.total.is_some();
        Device {
            index,
            row,
            id: id.clone(),
            arch: entry.architecture().name(),
            board: entry.board_name().map(Foreign::from),
            sources: Vec::new(),
            capacity_source: has_capacity.then_some(PRODUCER),
            held,
            dram_per_bank: dram_per_bank(entry),
            l1_per_core: Some(entry.l1_per_core).filter(|_| entry.known & known::L1 != 0),
            kernel_application_resident: stats.kernel_resident_bytes,
            processes: stats.processes,
            events_per_second: rate(stats.events_per_1000s),
            dispatches_per_second: rate(stats.dispatches_per_1000s),
            failure: last_failure(&stats.failure, clock),
            dram_makeup: Makeup::new(&stats.dram_composition, has(device_flags::DRAM_COMPOSITION_EXACT)),
            l1_makeup: Makeup::new(&stats.l1_composition, has(device_flags::L1_COMPOSITION_EXACT)),
            over_capacity: has(device_flags::OVER_CAPACITY),
            conflict: has(device_flags::CONFLICT),
            incomplete,
            unreported_holder: has(device_flags::UNREPORTED_HOLDER),
            driver: None,
            region: None,
        }
    }

    /// Adds what the driver tells of it. Where no process tells how much memory there is, its board's name does.
    pub fn add_driver(&mut self, driver: DriverDevice) {
        let held = &mut self.held;
        let is_unknown = held.dram.total.is_none() && held.l1.total.is_none() && held.eth_l1.total.is_none();
        if let Some(nominal) = driver.nominal.filter(|_| is_unknown && !self.conflict) {
            held.dram.total = Some(nominal.dram_bytes);
            held.l1.total = nominal.l1_bytes;
            held.eth_l1.total = Some(nominal.eth_l1_bytes).filter(|bytes| *bytes > 0);
            self.capacity_source = Some(NOMINAL);
        }
        self.driver = Some(driver);
    }

    /// What the driver measures, for people, without its unit.
    pub fn measured(&self, told: Told) -> Option<String> {
        let measure = Measure::of(told)?;
        measure.value(&self.driver.as_ref()?.stats).map(|value| measure.text(value))
    }

    /// What the peak of a memory was made of, where that is kept.
    pub fn makeup(&self, place: Place) -> Option<&Makeup> {
        match place {
            Place::Dram => Some(&self.dram_makeup),
            Place::L1 => Some(&self.l1_makeup),
            Place::Kernels | Place::Host => None,
        }
    }

    /// The board, else the architecture, for people.
    pub fn kind(&self) -> String {
        let arch = || self.arch.unwrap_or(crate::units::UNKNOWN).to_owned();
        self.board.as_ref().map_or_else(arch, Foreign::to_string)
    }

    /// What is wrong with it, in a word each.
    pub fn flags(&self) -> Vec<&'static str> {
        let flag = |set: bool, word| set.then_some(word);
        let over = |memory: &Memory| memory.total.is_some_and(|total| memory.used > total);
        let over_capacity = match (over(&self.held.dram), over(&self.held.l1)) {
            (true, true) => "DRAM and L1 over capacity",
            (true, false) => "DRAM over capacity",
            (false, true) => "L1 over capacity",
            (false, false) => "over capacity",
        };
        let flags = [
            flag(self.over_capacity, over_capacity),
            flag(self.conflict, "conflict"),
            flag(self.incomplete, "incomplete"),
            flag(self.unreported_holder, "held by a process that does not report"),
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

fn last_failure(failure: &tt_shm_reader::Failure, clock: Clock) -> Option<LastFailure> {
    (failure.time != 0).then(|| LastFailure {
        time: clock.moment(failure.time),
        pid: failure.pid,
        class: u8::try_from(failure.class).ok().and_then(Class::from_code),
        shortage: failure.into(),
    })
}
