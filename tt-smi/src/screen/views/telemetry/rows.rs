//! A quantity on one line: value, limit, unit, trend.

use ratatui::text::{Line, Span};

use super::quantities::{Quantity, Telemetry};
use crate::escape::escape;
use crate::output::units::UNKNOWN;
use crate::screen::theme::Theme;

/// From this width on there is room for limits and trends.
const WIDE: u16 = 44;

/// A heading, and a line for each quantity.
pub(super) fn lines(
    list: &[Quantity],
    telemetry: &Telemetry,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let changes = list.iter().any(|quantity| quantity.changes);
    let heads = if changes { ["VALUE", "LIMIT", "UNIT", "TREND"] } else { ["VALUE", "", "", ""] };
    let name = if changes { "LIVE" } else { "IDENTITY" };
    let heading = Line::styled(line(name, heads.map(str::to_owned), width), theme.heading());
    let row = |quantity: &Quantity| {
        let value = (quantity.value)(telemetry);
        let style = if value.is_some() { theme.heading() } else { theme.dim() };
        Line::from(Span::styled(line(quantity.label, cells(quantity, value, telemetry), width), style))
    };
    [heading].into_iter().chain(list.iter().map(row)).collect()
}

fn cells(quantity: &Quantity, value: Option<String>, telemetry: &Telemetry) -> [String; 4] {
    let shown = |text: Option<String>| text.map_or_else(|| UNKNOWN.to_owned(), |text| escape(&text));
    if !quantity.changes {
        return [shown(value), String::new(), String::new(), String::new()];
    }
    // Nothing is read, so there is no trend either.
    [shown(value), shown((quantity.limit)(telemetry)), quantity.unit.to_owned(), UNKNOWN.to_owned()]
}

fn line(label: &str, [value, limit, unit, trend]: [String; 4], width: u16) -> String {
    match width {
        ..WIDE => format!(" {label:<18} {value:>8} {unit}"),
        _ => format!(" {label:<18} {value:>12} {limit:>8} {unit:<5} {trend}"),
    }
}
