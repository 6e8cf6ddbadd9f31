//! What is at the cursor.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::bank::Bank;
use super::strip::Strip;
use crate::lists::allocations::{Item, Listing};
use crate::lists::extents::Extent;
use crate::output::units::{age, bytes};
use crate::screen::theme::Theme;

/// The position of the cursor, and the largest allocation there.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    bank: &Bank,
    strip: &Strip,
    listing: &Listing,
    theme: &Theme,
) {
    let lines = match strip.cursor {
        None => {
            vec![Line::styled(" arrows: move the cursor, Tab: other memory, z Z: zoom", theme.dim())]
        }
        Some(cell) => {
            let (start, end) = strip.covered(cell);
            let [first, second] = texts(bank, (start, end), listing);
            vec![Line::styled(first, theme.heading()), Line::raw(second)]
        }
    };
    frame.render_widget(Paragraph::new(lines), area);
}

fn texts(bank: &Bank, (start, end): (u64, u64), listing: &Listing) -> [String; 2] {
    let within = |extent: &&Extent| extent.start < end && extent.end > start;
    let here = bank.extents.iter().filter(within);
    let share = |extent: &&Extent| extent.end.min(end) - extent.start.max(start);
    let count = here.clone().count();
    let place = format!(" {start:#x} to {end:#x} ({})", bytes(end - start));
    let Some(extent) = here.max_by_key(share) else { return [place, nothing(bank, start)] };
    let Some(item) = listing.items.get(extent.item) else { return [place, String::new()] };
    let more = if count > 1 { format!(", largest of {count} here") } else { String::new() };
    [format!("{place}{more}"), item_text(item, extent)]
}

fn nothing(bank: &Bank, start: u64) -> String {
    match bank.knows_gaps() {
        true if start >= bank.survey.lowest => " free".to_owned(),
        true => " below all allocations: firmware and kernels have no known addresses".to_owned(),
        false => " unknown: some allocations have no address".to_owned(),
    }
}

/// The name comes last: it may be long.
fn item_text(item: &Item, extent: &Extent) -> String {
    format!(
        " {}, {} at {:#x}, {} in total, pid {}, {} old: {}",
        item.class.name(),
        bytes(extent.end - extent.start),
        extent.start,
        bytes(item.size),
        item.pid,
        age(item.age_ns),
        item.label(),
    )
}
