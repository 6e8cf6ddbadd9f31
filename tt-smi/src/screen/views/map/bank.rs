//! Contents of a bank of DRAM, or of the L1 of a core.

use crate::lists::allocations::{Item, Listing};
use crate::lists::extents::{self, Extent, Survey, overlaps};
use crate::model::{Device, Model};
use crate::screen::theme::Part;

/// The memory shown.
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

    /// The extent of an allocation.
    fn of(item: &Item) -> Option<Kind> {
        extents::Bank::of(item).map(|bank| match bank {
            extents::Bank::Dram => Kind::Dram,
            extents::Bank::L1 => Kind::L1,
        })
    }
}

/// The part of a bar that an allocation is drawn as.
pub(super) fn part(item: &Item) -> Part {
    Part::Of(item.class)
}

/// The contents.
#[derive(Debug, Default)]
pub(super) struct Bank {
    /// By address.
    pub extents: Vec<Extent>,
    /// Ranges where allocations overlap.
    pub overlaps: Vec<(u64, u64)>,
    pub survey: Survey,
    /// Its size, if known.
    pub size: Option<u64>,
    /// Allocations that reach beyond its end: either these or the size is wrong.
    pub beyond: u64,
    /// Lowest and highest address to draw.
    pub span: (u64, u64),
    /// Number of allocations with bytes of their own.
    pub count: u64,
    /// Those without an address.
    pub without_address: u64,
    /// Those with an address whose bytes per bank are unknown.
    pub without_bytes: u64,
    /// Whether the list of allocations is incomplete.
    pub is_incomplete: bool,
}

impl Bank {
    /// Whether the place of every allocation is known, so that the rest is free.
    pub(super) fn knows_gaps(&self) -> bool {
        self.without_address == 0 && self.without_bytes == 0 && !self.is_incomplete
    }

    fn add(&mut self, place: usize, item: &Item) {
        // A circular buffer inside an L1 buffer lies in that buffer's extent.
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
        // Without a size, nothing is known beyond the last allocation.
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
