//! What is known of a bank of DRAM, or of the L1 of a core.

use tt_shm_reader::Class;

use crate::lists::allocations::{Item, Listing};
use crate::lists::extents::{self, Extent, Survey, overlaps};
use crate::model::{Device, Model};
use crate::screen::theme::Part;

/// Which memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A bank of DRAM.
    #[default]
    Dram,
    /// The L1 of a Tensix core.
    L1,
}

impl Kind {
    pub(super) fn other(self) -> Kind {
        match self {
            Kind::Dram => Kind::L1,
            Kind::L1 => Kind::Dram,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Dram => "DRAM, one bank",
            Kind::L1 => "L1, one core",
        }
    }

    /// Where an item lies.
    fn of(item: &Item) -> Option<Kind> {
        extents::Bank::of(item).map(|bank| match bank {
            extents::Bank::Dram => Kind::Dram,
            extents::Bank::L1 => Kind::L1,
        })
    }
}

/// The part of a bar that an item is.
pub(super) fn part(item: &Item) -> Part {
    match item.class {
        Class::Dram => Part::Dram,
        Class::Trace => Part::Trace,
        Class::L1 => Part::L1,
        Class::L1Small => Part::L1Small,
        Class::Cb => Part::Cb,
        _ => Part::Kernels,
    }
}

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Bank {
    /// By address.
    pub extents: Vec<Extent>,
    /// Stretches where claims overlap.
    pub overlaps: Vec<(u64, u64)>,
    pub survey: Survey,
    /// How large it is, if that is known.
    pub size: Option<u64>,
    /// Allocations that reach beyond that: then it is wrong, or they are.
    pub beyond: u64,
    /// What there is to draw: lowest and highest address.
    pub span: (u64, u64),
    /// Allocations that have bytes of their own.
    pub count: u64,
    /// Of these, without an address.
    pub without_address: u64,
    /// Of these, with an address, but how much of them is in a bank is not known.
    pub without_bytes: u64,
    /// There may be more than is listed.
    pub is_incomplete: bool,
}

impl Bank {
    /// Whether every allocation is where it is, so that the rest is free.
    pub(super) fn knows_gaps(&self) -> bool {
        self.without_address == 0 && self.without_bytes == 0 && !self.is_incomplete
    }

    fn add(&mut self, place: usize, item: &Item) {
        // A circular buffer inside an L1 buffer is in that one's extent.
        if item.globally_allocated || item.size == 0 {
            return;
        }
        self.count += 1;
        match (Extent::of(place, item), item.address) {
            (Some(extent), _) => self.extents.push(extent),
            (None, Some(_)) => self.without_bytes += 1,
            (None, None) => self.without_address += 1,
        }
    }

    fn finish(&mut self, kind: Kind, device: &Device, listing: &Listing) {
        self.extents.sort_unstable_by_key(|extent| (extent.start, extent.end));
        self.size = match kind {
            Kind::Dram => device.dram_per_bank,
            Kind::L1 => device.l1_per_core,
        };
        let is_beyond = |extent: &&Extent| self.size.is_some_and(|size| extent.end > size);
        self.beyond = self.extents.iter().filter(is_beyond).count() as u64;
        self.survey = Survey::new(&self.extents, self.size);
        self.overlaps = overlaps(&self.extents);
        // Without a size, what is behind the last allocation is not known to be there.
        self.span = match self.size {
            Some(end) => (0, end.max(self.survey.end)),
            None => (self.survey.lowest, self.survey.end),
        };
        self.is_incomplete = !listing.is_exact();
    }
}

/// Both memories of all devices.
pub(super) fn all(model: &Model, listing: &Listing) -> Vec<[Bank; 2]> {
    let mut banks: Vec<[Bank; 2]> = model.devices.iter().map(|_| Default::default()).collect();
    for (place, item) in listing.items.iter().enumerate() {
        let device = model.devices.iter().position(|device| device.index == item.device);
        if let (Some(device), Some(kind)) = (device, Kind::of(item)) {
            banks[device][kind as usize].add(place, item);
        }
    }
    for (banks, device) in banks.iter_mut().zip(&model.devices) {
        for kind in [Kind::Dram, Kind::L1] {
            banks[kind as usize].finish(kind, device, listing);
        }
    }
    banks
}
