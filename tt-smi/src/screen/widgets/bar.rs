//! A bar of several parts, with a mark at the peak.

use ratatui::text::Span;

use crate::screen::theme::{Part, Theme};
use crate::units::UNKNOWN;

/// The parts of a bar `width` wide, in order, each as long as its share of `total`.
///
/// Ends are rounded, not lengths, so that the whole is as long as the sum says. A part smaller than half a cell takes
/// none, but a bar that is not empty never looks empty.
pub(crate) fn cells(parts: &[(Part, u64)], total: u64, width: usize) -> Vec<Part> {
    let mut cells = vec![Part::Free; width];
    let at = |bytes: u64| match total {
        0 => 0,
        _ => ((bytes as f64 / total as f64 * width as f64).round() as usize).min(width),
    };
    let (mut sum, mut start) = (0_u64, 0);
    for (part, bytes) in parts {
        sum = sum.saturating_add(*bytes);
        let end = at(sum);
        cells[start..end].fill(*part);
        start = end;
    }
    let largest = parts.iter().max_by_key(|(_, bytes)| *bytes);
    if let (Some((part, 1..)), Some(cell @ Part::Free)) = (largest, cells.first_mut()) {
        *cell = *part;
    }
    cells
}

/// A bar in brackets, `width` wide without them; a word in its place if the total is unknown.
pub(crate) fn bracketed(
    parts: &[(Part, u64)],
    peak: u64,
    total: Option<u64>,
    width: usize,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled("▕", theme.dim())];
    match total {
        Some(total) => spans.extend(self::spans(&cells(parts, total, width), peak, total, theme)),
        None => {
            const TEXT: &str = "capacity unknown";
            let text = if width >= TEXT.len() { TEXT } else { UNKNOWN };
            spans.push(Span::styled(format!("{text:^width$}"), theme.dim()));
        }
    }
    spans.push(Span::styled("▏", theme.dim()));
    spans
}

/// The share of one part in a total, as text.
pub(crate) fn share(part: Part, bytes: u64, total: u64, width: usize, theme: &Theme) -> Vec<Span<'static>> {
    spans(&cells(&[(part, bytes)], total, width), 0, total, theme)
}

/// The bar as text. The peak is marked in the cell where it ends.
pub(crate) fn spans(cells: &[Part], peak: u64, total: u64, theme: &Theme) -> Vec<Span<'static>> {
    let width = cells.len();
    let mark = match total {
        0 => None,
        _ => Some(((peak as f64 / total as f64 * width as f64).ceil() as usize).min(width)),
    };
    let mark = mark.filter(|_| peak > 0).map(|end| end.saturating_sub(1));
    // Only in free cells: a peak within the bar is not shown.
    match mark.filter(|mark| cells.get(*mark) == Some(&Part::Free)) {
        None => runs(cells, theme).collect(),
        Some(mark) => {
            let mark_span = Span::styled("│", theme.peak());
            runs(&cells[..mark], theme).chain([mark_span]).chain(runs(&cells[mark + 1..], theme)).collect()
        }
    }
}

/// A span for each run of equal cells.
fn runs(cells: &[Part], theme: &Theme) -> impl Iterator<Item = Span<'static>> {
    cells.chunk_by(|a, b| a == b).map(|run| {
        let (sign, style) = theme.part(run[0]);
        Span::styled(sign.to_string().repeat(run.len()), style)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::Class;

    fn letters(parts: &[(Part, u64)], total: u64, peak: u64) -> String {
        let theme = Theme::MONO;
        let spans = spans(&cells(parts, total, 10), peak, total, &theme);
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn parts_are_as_long_as_their_share() {
        let parts =
            [(Part::Of(Class::L1), 30), (Part::Of(Class::Cb), 20), (Part::Of(Class::KernelApplication), 10)];
        assert_eq!(letters(&parts, 100, 0), "LLLCCK····");
        assert_eq!(letters(&parts, 100, 85), "LLLCCK··│·");
        assert_eq!(letters(&parts, 100, 55), "LLLCCK····", "the peak is within the bar");
    }

    #[test]
    fn little_is_not_nothing_and_too_much_is_full() {
        assert_eq!(letters(&[(Part::Of(Class::Dram), 1)], 1000, 1), "D·········");
        assert_eq!(letters(&[(Part::Of(Class::Dram), 0)], 1000, 0), "··········");
        assert_eq!(
            letters(&[(Part::Of(Class::Dram), 900), (Part::Of(Class::Trace), 900)], 1000, 1800),
            "DDDDDDDDDT"
        );
        assert_eq!(letters(&[(Part::Of(Class::Dram), 5)], 0, 5), "D·········", "capacity unknown");
    }
}
