//! How much is known, used and fragmented.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::bank::{Bank, Kind};
use crate::output::units::{UNKNOWN, bytes, bytes_or_unknown, plural};
use crate::screen::theme::Theme;

/// One line per memory, and one for the gaps of the memory shown.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, banks: &[Bank; 2], shown: Kind, theme: &Theme) {
    let memory = |kind: Kind| {
        let (mark, style) = if kind == shown { ('▶', theme.heading()) } else { (' ', theme.dim()) };
        Line::styled(format!("{mark}{:<14}  {}", kind.name(), known(&banks[kind as usize])), style)
    };
    let bank = &banks[shown as usize];
    let style = if bank.overlaps.is_empty() && bank.beyond == 0 && bank.knows_gaps() {
        theme.heading()
    } else {
        theme.warn()
    };
    let gaps = Line::styled(format!(" {}", gaps(bank)), style);
    frame.render_widget(Paragraph::new(vec![memory(Kind::Dram), memory(Kind::L1), gaps]), area);
}

fn known(bank: &Bank) -> String {
    if bank.count == 0 {
        return "no live allocations".to_owned();
    }
    let drawn = bank.extents.len() as u64;
    let claimed = if drawn > 0 { bytes(bank.survey.used) } else { UNKNOWN.to_owned() };
    let size = bytes_or_unknown(bank.size);
    format!("{claimed} of {size}, {drawn} of {} drawn", bank.count)
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
pub(super) fn note(bank: &Bank) -> &'static str {
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
