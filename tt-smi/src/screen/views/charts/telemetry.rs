//! Curves of what the driver measures, on the time axis of the memory.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use tt_shm_reader::{TelemetryBucket, Told};

use super::draw::ChartLayout;
use crate::driver::Measure;
use crate::model::Device;
use crate::screen::theme::Theme;
use crate::screen::widgets::text::or_unknown;
use crate::screen::widgets::trend::trend;
use crate::screen::widgets::window::Window;

/// What of the telemetry is drawn below the graph.
pub(super) const CURVES: [Told; 2] = [Told::Temperature, Told::Power];
/// From this height on there is room for it.
pub(super) const WITH_TELEMETRY: u16 = 14;

/// Draws a line for each of [`CURVES`]: the value at the cursor or now at the left, the most of each time, and the limit
/// at the right.
pub(super) fn draw_telemetry(
    frame: &mut Frame<'_>,
    layout: &ChartLayout,
    device: &Device,
    buckets: &[TelemetryBucket],
    window: &Window,
    theme: &Theme,
) {
    let Some(driver) = &device.driver else { return };
    let width = usize::from(layout.graph.width);
    let cursor = window.cursor.and_then(|cursor| window.place_of(cursor, width));
    for (y, told) in (layout.telemetry.y..layout.telemetry.bottom()).zip(CURVES) {
        let Some(measure) = Measure::of(told) else { continue };
        let most = |place: usize| window.most_measured(buckets, &window.covered(place, width), told);
        let values: Vec<Option<i64>> = (0..width).map(most).collect();
        let shown = match cursor {
            Some(place) => values[place].map(|value| measure.scaled(value)),
            None => measure.value(&driver.stats),
        };
        let unit = measure.unit;
        let text = |value: Option<f64>| or_unknown(value, |value| format!("{} {unit}", measure.text(value)));
        let row = |area: Rect| Rect { y, height: 1, ..area };
        let limit = measure.limit(&driver.stats).map(|limit| format!(" /{}", text(Some(limit))));
        frame.render_widget(Line::from(format!("{} ", text(shown))).right_aligned(), row(layout.left));
        frame.render_widget(Line::styled(trend(&values, theme), theme.dim()), row(layout.graph));
        frame.render_widget(Line::styled(limit.unwrap_or_default(), theme.dim()), row(layout.right));
    }
}
