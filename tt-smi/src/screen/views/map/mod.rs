//! The memory map: a bank of DRAM, or the L1 of a core.

mod bank;
mod strip;
mod tint;

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;

use crate::lists::allocations::Listing;
use crate::lists::extents::BankKind;
use crate::screen::action::{Action, Motion};
use crate::screen::data::{Cores, Data, More, Needs};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::widgets::device::{draw_headline, draw_none};
use crate::screen::widgets::process;
use crate::screen::widgets::text::split_top;
use bank::{Bank, Sources};
use strip::Strip;
use tint::Tint;

/// Most times that the range can be halved.
const MOST_ZOOM: u32 = 24;

/// Memory, zoom and cursor.
#[derive(Debug, Default)]
pub(crate) struct Map {
    /// The latest list.
    listing: Option<Arc<Listing>>,
    /// By device index; computed when data arrive, as sorting takes time.
    banks: Vec<[Bank; 2]>,
    /// The L1 of the cores, if it was read.
    cores: Option<Arc<Cores>>,
    /// What the colours stand for.
    tint: Tint,
    kind: BankKind,
    zoom: u32,
    /// The address of the cursor.
    cursor: Option<u64>,
}

impl Map {
    fn bank(&self, scene: &Scene<'_>) -> Option<&Bank> {
        self.banks.get(scene.device).map(|banks| &banks[self.kind as usize])
    }

    fn strip(&self, scene: &Scene<'_>) -> Option<Strip> {
        let area = MapLayout::of(scene.area).strip;
        let cells = u64::from(area.width) * u64::from(area.height);
        Some(Strip::new(self.bank(scene)?.span, self.zoom, self.cursor, cells))
    }

    /// Moves the cursor by cells.
    fn step(&mut self, cells: i64, scene: &Scene<'_>) {
        let Some(strip) = self.strip(scene) else { return };
        let (first, last) = strip.whole;
        let by = cells.saturating_mul(i64::try_from(strip.bytes).unwrap_or(i64::MAX));
        // Without a cursor, the first step only shows it.
        let to = self.cursor.map_or(strip.first, |cursor| cursor.saturating_add_signed(by));
        self.cursor = Some(to.clamp(first, last.saturating_sub(1).max(first)));
    }

    fn go(&mut self, motion: Motion, scene: &Scene<'_>) {
        let area = MapLayout::of(scene.area).strip;
        let (width, all) = (i64::from(area.width), i64::from(area.width) * i64::from(area.height));
        match motion {
            Motion::Lines(lines) => self.step(i64::from(lines) * width, scene),
            Motion::Pages(pages) => self.step(i64::from(pages) * all, scene),
            Motion::Aside(cells) => self.step(cells.into(), scene),
            Motion::First => self.cursor = self.strip(scene).map(|strip| strip.whole.0),
            Motion::Last => self.cursor = self.strip(scene).map(|strip| strip.whole.1.saturating_sub(1)),
        }
    }

    /// The process of what is at the cursor.
    fn open(&self, scene: &Scene<'_>) -> Reply {
        let (Some(strip), Some(bank), Some(listing)) = (self.strip(scene), self.bank(scene), &self.listing)
        else {
            return Reply::Ignored;
        };
        let Some(cell) = strip.cursor else {
            return Reply::Say(
                "the arrows move a cursor; Enter opens the process of what is there".to_owned(),
            );
        };
        let extent = strip::largest_in(bank, strip.covered(cell)).0;
        let item = extent.and_then(|extent| listing.items.get(extent.item));
        match item.and_then(|item| process::key_of(&scene.data.model, item.identity)) {
            Some(key) => Reply::Process(key),
            None => Reply::Say("no process is known to hold anything here".to_owned()),
        }
    }

    /// Shows the L1 of a core.
    pub(crate) fn show_l1(&mut self) {
        if self.kind != BankKind::L1 {
            (self.kind, self.cursor, self.zoom) = (BankKind::L1, None, 0);
        }
    }

    fn survey(&mut self, data: &Data) {
        let Some(listing) = &self.listing else { return };
        let cores = self.cores.as_ref().map_or(&[][..], |cores| &cores.devices);
        self.banks = bank::all(&Sources { model: &data.model, listing, cores, tint: self.tint });
    }

    fn note(&self, scene: &Scene<'_>) -> String {
        let size = self.bank(scene).map_or("", bank::size_note);
        let zoom = if self.zoom > 0 { format!("zoom {}x", 1 << self.zoom) } else { String::new() };
        let tint = if self.tint == Tint::Class { String::new() } else { format!("by {}", self.tint) };
        [size, &zoom, &tint].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

impl Page for Map {
    fn needs(&self) -> Needs {
        Needs::Map
    }

    fn refresh(&mut self, data: &Data) {
        match &data.more {
            More::Map(listing, cores) => {
                (self.listing, self.cores) = (Some(Arc::clone(listing)), Some(Arc::clone(cores)))
            }
            More::Allocations(listing) => (self.listing, self.cores) = (Some(Arc::clone(listing)), None),
            _ => return,
        }
        self.survey(data);
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::NextPane => (self.kind, self.cursor, self.zoom) = (self.kind.other(), None, 0),
            Action::Group => {
                self.tint = self.tint.next();
                self.survey(scene.data);
            }
            Action::ZoomIn => self.zoom = (self.zoom + 1).min(MOST_ZOOM),
            Action::ZoomOut => self.zoom = self.zoom.saturating_sub(1),
            Action::Move(motion) => self.go(motion, scene),
            Action::Open => return self.open(scene),
            Action::Back if self.cursor.take().is_some() => {}
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let area = MapLayout::of(scene.area).strip;
        let Some(strip) = self.strip(scene).filter(|_| area.contains(at)) else { return Reply::Ignored };
        let cell = u64::from(at.y - area.y) * u64::from(area.width) + u64::from(at.x - area.x);
        self.cursor = Some(strip.covered(cell).0);
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let Some(device) = scene.device() else { return draw_none(frame, scene) };
        draw_headline(frame, scene, device, &self.note(scene));
        let banks = self.banks.get(scene.device);
        let (Some(banks), Some(strip), Some(listing)) = (banks, self.strip(scene), &self.listing) else {
            let (_, rest) = split_top(scene.area, 1);
            return frame
                .render_widget(Line::styled(scene.unread("live allocations"), scene.theme.dim()), rest);
        };
        let (layout, bank) = (MapLayout::of(scene.area), &banks[self.kind as usize]);
        bank::draw_summary(frame, layout.facts, banks, self.kind, scene.theme);
        strip::draw_strip(frame, &layout, bank, &strip, listing, scene.theme);
        strip::draw_readout(frame, layout.readout, bank, &strip, listing, scene.theme);
    }
}

/// Least width with addresses at the side.
const WITH_ADDRESSES: u16 = 50;
/// ` 0x12345678 `.
const SIDE: u16 = 13;

/// Where the parts are.
struct MapLayout {
    /// Summary of both memories, and gaps of one.
    facts: Rect,
    addresses: Rect,
    strip: Rect,
    legend: Rect,
    /// What is at the cursor.
    readout: Rect,
}

impl MapLayout {
    fn of(area: Rect) -> MapLayout {
        let lines = |least: u16, lines: u16| Constraint::Length(if area.height >= least { lines } else { 0 });
        let rows = [lines(2, 1), lines(5, 3), Constraint::Min(1), lines(8, 1), lines(7, 2)];
        let [_, facts, middle, legend, readout] = area.layout(&Layout::vertical(rows));
        let side = Constraint::Length(if area.width >= WITH_ADDRESSES { SIDE } else { 0 });
        let [addresses, strip, _] =
            middle.layout(&Layout::horizontal([side, Constraint::Fill(1), Constraint::Length(1)]));
        MapLayout { facts, addresses, strip, legend, readout }
    }
}

#[cfg(test)]
mod tests;
