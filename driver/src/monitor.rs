//! Devices, read again and again.

use std::time::{Duration, Instant};

use crate::absence::{Absence, Reading};
use crate::attribute::{self, Attribute};
use crate::device::{Clock, Component, Device, Identity, Link, LinkState, Quantity};
use crate::files::{Files, KernelFiles};
use crate::format::{
    CARD, FAN, Format, ID, LINK_SPEED, LINK_WIDTH, NODE, NUMBER, PCI_ID, PciAddress, SENSOR, VERSION,
};
use crate::heartbeat::Heartbeat;
use crate::place::{self, Place};
use crate::roots::Roots;
use crate::version::Version;

/// How often the driver is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between two readings of clocks, sensors and the heartbeat.
    pub poll: Duration,
    /// Time between two searches for devices and attributes, which also read everything that rarely changes.
    pub scan: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { poll: Duration::from_secs(1), scan: Duration::from_secs(10) }
    }
}

/// The devices of this machine.
///
/// The files of what changes are kept open and read again by each poll. A scan finds devices that came, went or were
/// renumbered, and attributes that appeared; it happens now and then, and when a read says that a device is gone.
#[derive(Debug)]
pub struct Monitor<F: Files = KernelFiles> {
    roots: Roots,
    pace: Pace,
    files: F,
    version: Reading<Version>,
    /// Whether the class of devices could be listed.
    listed: Reading<()>,
    left_out: usize,
    /// In the same order as `devices`.
    tracked: Vec<Tracked<F::Handle>>,
    devices: Vec<Device>,
    polled: Option<Instant>,
    scanned: Option<Instant>,
    is_scan_due: bool,
}

/// The open files of a device.
#[derive(Debug)]
struct Tracked<H> {
    place: Place,
    clocks: [Attribute<H>; Clock::ALL.len()],
    heartbeat: Attribute<H>,
    thermal_trips: Attribute<H>,
    inputs: [Attribute<H>; Quantity::ALL.len()],
    beats: Heartbeat,
}

impl Monitor {
    /// Reads this machine, or a tree that looks like one. Nothing is read before the first poll.
    #[must_use]
    pub fn new(roots: Roots) -> Monitor {
        Monitor::with(roots, Pace::default(), KernelFiles)
    }
}

impl<F: Files> Monitor<F> {
    /// Reads through other files, at another pace.
    pub fn with(roots: Roots, pace: Pace, files: F) -> Monitor<F> {
        Monitor {
            roots,
            pace,
            files,
            version: Err(Absence::Missing),
            listed: Err(Absence::Missing),
            left_out: 0,
            tracked: Vec::new(),
            devices: Vec::new(),
            polled: None,
            scanned: None,
            is_scan_due: true,
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
        if self.is_scan_due || is_due(self.scanned, self.pace.scan) {
            self.scan();
            self.scanned = Some(now);
        }
        self.is_scan_due = false;
        for (tracked, device) in self.tracked.iter_mut().zip(&mut self.devices) {
            self.is_scan_due |= tracked.poll(&self.files, device, now);
        }
        self.polled = Some(now);
        true
    }

    /// By number, as of the last poll.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Version of the driver, as of the last scan.
    pub fn version(&self) -> &Reading<Version> {
        &self.version
    }

    /// Whether devices could be listed. [`Absence::Missing`] means that the driver is not loaded.
    pub fn listed(&self) -> &Reading<()> {
        &self.listed
    }

    /// Devices beyond the most that are looked at.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Where it reads.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    fn scan(&mut self) {
        self.version = attribute::read(&self.files, &self.roots.version(), &VERSION);
        let found = place::find(&self.roots.devices());
        self.listed = found.as_ref().map(|_| ()).map_err(Absence::clone);
        let (places, left_out) = found.unwrap_or_default();
        self.left_out = left_out;
        let mut before: Vec<_> = self.tracked.drain(..).zip(self.devices.drain(..)).collect();
        for place in places {
            // Handles of another folder at the same number are of no use.
            let same = before.iter().position(|(tracked, _)| tracked.place == place);
            let (mut tracked, mut device) = match same {
                Some(index) => before.swap_remove(index),
                None => (Tracked::new(&place), Device::unread(place.number)),
            };
            tracked.open(&self.files);
            describe(&mut device, &place, &self.files);
            self.tracked.push(tracked);
            self.devices.push(device);
        }
    }
}

impl<H> Tracked<H> {
    fn new(place: &Place) -> Tracked<H> {
        let class = Some(place.class.path.as_path());
        Tracked {
            place: place.clone(),
            clocks: Clock::ALL.map(|clock| Attribute::new(class, clock.attribute())),
            heartbeat: Attribute::new(class, "tt_heartbeat"),
            thermal_trips: Attribute::new(class, "tt_therm_trip_count"),
            inputs: Quantity::ALL
                .map(|quantity| Attribute::new(place.hwmon_path(), &format!("{}_input", quantity.stem()))),
            beats: Heartbeat::default(),
        }
    }

    fn open<F: Files<Handle = H>>(&mut self, files: &F) {
        let single = [&mut self.heartbeat, &mut self.thermal_trips];
        let all = self.clocks.iter_mut().chain(&mut self.inputs).chain(single);
        all.for_each(|attribute| attribute.open(files));
    }

    /// Reads what changes. Returns whether the device is gone.
    fn poll<F: Files<Handle = H>>(&mut self, files: &F, device: &mut Device, now: Instant) -> bool {
        let mut is_gone = false;
        for (clock, file) in device.clocks.iter_mut().zip(&mut self.clocks) {
            *clock = noting(&mut is_gone, file.read(files, &NUMBER));
        }
        for (quantity, file) in Quantity::ALL.into_iter().zip(&mut self.inputs) {
            let format = if quantity == Quantity::Fan { &FAN } else { &SENSOR };
            device.sensors[quantity as usize].input = noting(&mut is_gone, file.read(files, format));
        }
        let health = &mut device.health;
        health.heartbeat = noting(&mut is_gone, self.heartbeat.read(files, &NUMBER));
        health.heartbeat_moves = self.beats.add(health.heartbeat.as_ref().ok().copied(), now);
        health.thermal_trips = noting(&mut is_gone, self.thermal_trips.read(files, &NUMBER));
        is_gone
    }
}

/// Passes a reading on, and notes if it says that the device is gone.
fn noting<T>(is_gone: &mut bool, reading: Reading<T>) -> Reading<T> {
    *is_gone |= matches!(reading, Err(Absence::Gone));
    reading
}

/// Reads what rarely changes: who the device is, its firmware, limits and link. All of it at each scan: a reset may
/// bring other firmware, and attributes may appear late.
fn describe<F: Files>(device: &mut Device, place: &Place, files: &F) {
    let (class, pci) = (Some(place.class.path.as_path()), place.pci.as_ref().map(|pci| pci.path.as_path()));
    device.identity = Identity {
        pci: pci_address(place),
        vendor: read_in(files, pci, "vendor", &PCI_ID),
        device: read_in(files, pci, "device", &PCI_ID),
        card: read_in(files, class, "tt_card_type", &CARD),
        serial: read_in(files, class, "tt_serial", &ID),
        asic_id: read_in(files, class, "tt_asic_id", &ID),
        numa_node: read_in(files, pci, "numa_node", &NODE),
    };
    device.firmware = Component::ALL.map(|part| read_in(files, class, part.attribute(), &VERSION));
    for quantity in Quantity::ALL {
        let name = format!("{}_max", quantity.stem());
        device.sensors[quantity as usize].max = read_in(files, place.hwmon_path(), &name, &SENSOR);
    }
    let link = |which: &str| LinkState {
        speed: read_in(files, pci, &format!("{which}_link_speed"), &LINK_SPEED),
        width: read_in(files, pci, &format!("{which}_link_width"), &LINK_WIDTH),
    };
    device.link = Link { current: link("current"), max: link("max") };
}

fn read_in<F: Files, T>(
    files: &F,
    folder: Option<&std::path::Path>,
    name: &str,
    format: &Format<T>,
) -> Reading<T> {
    attribute::read(files, &folder.ok_or(Absence::Missing)?.join(name), format)
}

fn pci_address(place: &Place) -> Reading<PciAddress> {
    let folder = place.pci.as_ref().ok_or(Absence::Missing)?;
    let name = folder.name().unwrap_or_default();
    PciAddress::parse(name)
        .ok_or_else(|| Absence::malformed(&folder.path, name.as_bytes(), "an address of PCI"))
}
