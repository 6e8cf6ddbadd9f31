//! Contents of a bank of DRAM, or of the L1 of a core.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use tt_shm_reader::Class;

use super::tint::{Groups, Tint};
use crate::escape::fit;
use crate::lists::allocations::{Item, Listing};
use crate::lists::cores::{DeviceCores, Ring};
use crate::lists::extents::{BankKind, Extent, Survey, overlaps};
use crate::model::{Device, Model};
use crate::screen::theme::Theme;
use crate::units::{UNKNOWN, bytes, bytes_or_unknown, plural};

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
    /// What the colours stand for.
    pub groups: Groups,
    /// Allocations of programs that are not resident: they take no room until their program is dispatched.
    pub not_resident: u64,
    /// The end of what is reserved below L1 buffers and programs, if known, and what is in it.
    pub reserved: Option<u64>,
    pub rings: Vec<Ring>,
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

    fn finish(&mut self, kind: BankKind, device: &Device, sources: &Sources<'_>) {
        let Sources { listing, model, tint, .. } = *sources;
        self.extents.sort_unstable_by_key(|extent| (extent.start, extent.end));
        self.size = match kind {
            BankKind::Dram => device.dram_per_bank,
            BankKind::L1 => device.l1_per_core,
        };
        let is_beyond = |extent: &&Extent| self.size.is_some_and(|size| extent.end > size);
        self.beyond = self.extents.iter().filter(is_beyond).count() as u64;
        self.survey = Survey::new(&self.extents, self.size);
        if let Some(reserved) = self.reserved {
            self.count_below(reserved);
        }
        self.groups = Groups::new(tint, &self.extents, listing, model);
        self.overlaps = overlaps(&self.extents);
        // Without a size, nothing is known beyond the last allocation.
        self.span = match self.size {
            Some(end) => (0, end.max(self.survey.end)),
            None => (self.survey.lowest, self.survey.end),
        };
        self.is_incomplete = !listing.is_exact();
    }

    /// Where it is known what the allocator begins with, the memory below the lowest allocation is free, too.
    fn count_below(&mut self, start: u64) {
        let survey = &mut self.survey;
        if self.extents.is_empty() || start >= survey.lowest {
            return;
        }
        let gap = (start, survey.lowest);
        survey.gaps += 1;
        survey.free += gap.1 - gap.0;
        survey.largest = survey.largest.filter(|largest| largest.1 - largest.0 > gap.1 - gap.0).or(Some(gap));
        survey.lowest = start;
    }
}

/// What banks are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'a> {
    pub(super) model: &'a Model,
    pub(super) listing: &'a Listing,
    /// Empty if not known: then all programs count as resident.
    pub(super) cores: &'a [DeviceCores],
    pub(super) tint: Tint,
}

/// Both memories of all devices.
pub(super) fn all(sources: &Sources<'_>) -> Vec<[Bank; 2]> {
    let Sources { model, listing, cores, .. } = *sources;
    let mut banks: Vec<[Bank; 2]> = model.devices.iter().map(|_| Default::default()).collect();
    let of = |device: &Device| cores.iter().find(|cores| cores.device == device.index);
    let cores: Vec<Option<&DeviceCores>> = model.devices.iter().map(of).collect();
    for (place, item) in listing.items.iter().enumerate() {
        let device = model.devices.iter().position(|device| device.index == item.device);
        let (Some(device), Some(kind)) = (device, BankKind::of(item)) else { continue };
        let bank = &mut banks[device][kind as usize];
        match cores[device].is_none_or(|cores| is_resident(item, cores)) {
            true => bank.add(place, item),
            false => bank.not_resident += 1,
        }
    }
    for ((banks, device), cores) in banks.iter_mut().zip(&model.devices).zip(cores) {
        let l1 = &mut banks[BankKind::L1 as usize];
        l1.reserved = cores.and_then(|cores| cores.l1_address);
        l1.rings = cores.map_or_else(Vec::new, |cores| cores.kernel_rings.clone());
        for kind in [BankKind::Dram, BankKind::L1] {
            banks[kind as usize].finish(kind, device, sources);
        }
    }
    banks
}

/// Whether it takes room now: program memory does only while its program is resident.
fn is_resident(item: &Item, cores: &DeviceCores) -> bool {
    item.class != Class::Cb
        || cores.resident.binary_search(&(item.identity, item.entry, item.program)).is_ok()
}

/// How much is known, used and fragmented: one line per memory, and one for the gaps of the memory shown.
pub(super) fn draw_summary(
    frame: &mut Frame<'_>,
    area: Rect,
    banks: &[Bank; 2],
    shown: BankKind,
    theme: &Theme,
) {
    let width = usize::from(area.width);
    let memory = |kind: BankKind| {
        let (mark, style) = if kind == shown { ('▶', theme.heading()) } else { (' ', theme.dim()) };
        let text = format!("{mark}{:<14}  {}", bank_name(kind), known(&banks[kind as usize]));
        Line::styled(fit(&text, width), style)
    };
    let bank = &banks[shown as usize];
    let style = if bank.overlaps.is_empty() && bank.beyond == 0 && bank.knows_gaps() {
        theme.heading()
    } else {
        theme.warn()
    };
    let gaps = Line::styled(fit(&format!(" {}", gaps(bank)), width), style);
    frame.render_widget(Paragraph::new(vec![memory(BankKind::Dram), memory(BankKind::L1), gaps]), area);
}

fn bank_name(kind: BankKind) -> &'static str {
    match kind {
        BankKind::Dram => "DRAM, one bank",
        BankKind::L1 => "L1, one core",
    }
}

fn known(bank: &Bank) -> String {
    if bank.count == 0 {
        return "no live allocations".to_owned();
    }
    let drawn = bank.extents.len() as u64;
    let claimed = if drawn > 0 { bytes(bank.survey.used) } else { UNKNOWN.to_owned() };
    let size = bytes_or_unknown(bank.size);
    let waiting = match bank.not_resident {
        0 => String::new(),
        count => format!(", {count} of programs that are not resident"),
    };
    format!("{claimed} of {size}, {drawn} of {} drawn{waiting}", bank.count)
}

fn gaps(bank: &Bank) -> String {
    let overlaps = match bank.survey.overlaps {
        0 => String::new(),
        count => {
            // Allocations without an address may overlap too.
            let (overlaps, twice) = (plural(count, "overlap"), bytes(bank.survey.overlapping));
            if bank.knows_gaps() {
                format!("{overlaps}: {twice} allocated twice; ")
            } else {
                format!("at least {overlaps}: {twice}; ")
            }
        }
    };
    let survey = &bank.survey;
    let text = match (survey.largest, survey.fragmentation()) {
        _ if bank.count == 0 => String::new(),
        _ if !bank.knows_gaps() => format!("gaps unknown: {}", reasons(bank).join(", ")),
        (Some((start, end)), Some(broken)) => format!(
            "fragmentation {:.0}%: {}, {}, largest {}",
            broken * 100.0,
            plural(survey.gaps, "gap"),
            bytes(survey.free),
            bytes(end - start),
        ),
        _ => format!("no gaps between {:#x} and {:#x}", survey.lowest, survey.end),
    };
    overlaps + &beyond(bank) + &text
}

/// Allocations beyond the end are drawn nevertheless.
fn beyond(bank: &Bank) -> String {
    match (bank.beyond, bank.size) {
        (1.., Some(size)) => format!("{} beyond the end at {}; ", bank.beyond, bytes(size)),
        _ => String::new(),
    }
}

/// How far the strip reaches if the size is unknown.
pub(super) fn size_note(bank: &Bank) -> &'static str {
    match bank.size {
        None if !bank.extents.is_empty() => "size unknown: drawn up to the last allocation",
        _ => "",
    }
}

fn reasons(bank: &Bank) -> Vec<String> {
    let reasons = [
        (bank.without_address > 0, format!("{} without an address", bank.without_address)),
        (bank.without_bytes > 0, format!("{} without bytes per bank", bank.without_bytes)),
        (bank.is_incomplete, "the list is incomplete".to_owned()),
    ];
    reasons.into_iter().filter(|(there, _)| *there).map(|(_, text)| text).collect()
}
