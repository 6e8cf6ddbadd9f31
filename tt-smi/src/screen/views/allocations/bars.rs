//! Size histogram of allocations, as bars.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use tt_shm_reader::Class;

use crate::escape::pad;
use crate::lists::groups::Group;
use crate::output::units::{bytes, count};
use crate::screen::theme::{Part, Theme};

/// A bin between two powers of two, and its contents.
const LABEL: usize = 19;
const FIGURE: usize = 9;

/// Draws bins with two bars each, for count and bytes; the largest bins if there is no room for all.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, bins: &[Group], theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let bar = usize::from(area.width).saturating_sub(LABEL + 2 * FIGURE + 4) / 2;
    let head = format!(
        " {} {} {}  {} {}",
        pad("SIZE", LABEL - 1, false),
        pad("COUNT", FIGURE, true),
        " ".repeat(bar),
        pad("BYTES", FIGURE - 1, true),
        " ".repeat(bar)
    );
    frame.render_widget(Line::styled(head, theme.heading()), Rect { height: 1, ..area });
    let room = usize::from(area.height - 1);
    let most = |of: fn(&Group) -> u64| bins.iter().map(of).max().unwrap_or(0);
    let (most_count, most_bytes) = (most(|bin| bin.count), most(|bin| bin.bytes));
    let shown = shown(bins, room);
    for (y, bin) in (area.y + 1..area.bottom()).zip(shown) {
        let mut spans = vec![Span::raw(format!(" {}", pad(&bin.key.to_string(), LABEL - 1, false)))];
        spans.push(Span::raw(format!(" {} ", pad(&count(bin.count as f64), FIGURE, true))));
        spans.push(filled(bin.count, most_count, bar, Part::Of(Class::L1), theme));
        spans.push(Span::raw(format!(" {} ", pad(&bytes(bin.bytes), FIGURE, true))));
        spans.push(filled(bin.bytes, most_bytes, bar, Part::Of(Class::Dram), theme));
        frame.render_widget(Line::from(spans), Rect { y, height: 1, ..area });
    }
}

/// As many bins as fit: empty ones are dropped first, then the smallest sizes.
fn shown(bins: &[Group], room: usize) -> Vec<&Group> {
    if bins.len() <= room {
        return bins.iter().collect();
    }
    let used: Vec<&Group> = bins.iter().filter(|bin| bin.count > 0).collect();
    used[used.len().saturating_sub(room)..].to_vec()
}

/// A bar in proportion to the longest one, in eighths of a column. A value above zero is always visible.
fn filled(value: u64, most: u64, width: usize, part: Part, theme: &Theme) -> Span<'static> {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = match most {
        0 => 0,
        _ => (value as f64 / most as f64 * (width * 8) as f64).round() as usize,
    };
    let eighths = if value > 0 { eighths.max(1) } else { 0 };
    let bar = format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
    let (_, style) = theme.part(part);
    Span::styled(pad(&bar, width, false), style)
}
