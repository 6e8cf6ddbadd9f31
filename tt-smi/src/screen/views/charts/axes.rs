//! The axes of the graph.

use ratatui::Frame;
use ratatui::text::Line;
use tt_shm_reader::Bucket;

use super::curves::{Scale, style};
use super::plan::Plan;
use super::window::Window;
use crate::output::units::{UNKNOWN, bytes_short};
use crate::screen::data::History;
use crate::screen::page::Scene;
use crate::screen::theme::Theme;
use crate::screen::widgets::graph::Curve;
use crate::screen::widgets::text::between;

/// From this height on, quarters are marked too.
const WITH_QUARTERS: u16 = 12;

/// The vertical axes: DRAM at the left, L1 at the right; bytes at the top, percentages below.
pub(super) fn draw_sides(frame: &mut Frame<'_>, plan: &Plan, scales: [Scale; 2], theme: &Theme) {
    let height = plan.graph.height;
    let quarters: &[u16] = match height {
        0 => return,
        1..5 => &[4],
        5..WITH_QUARTERS => &[0, 2, 4],
        _ => &[0, 1, 2, 3, 4],
    };
    for quarter in quarters {
        let from_bottom = (height - 1) * quarter / 4;
        let y = plan.graph.bottom() - 1 - from_bottom;
        for (curve, area) in [(Curve::First, plan.left), (Curve::Second, plan.right)] {
            let text = label(scales[curve as usize], u64::from(*quarter));
            let line = match curve {
                Curve::First => Line::from(format!("{text} ")).right_aligned(),
                Curve::Second => Line::from(format!(" {text}")),
            };
            let row = ratatui::layout::Rect { y, height: 1, ..area };
            frame.render_widget(line.style(style(curve, theme)), row);
        }
    }
}

fn label(scale: Scale, quarter: u64) -> String {
    match quarter {
        0 => "0".to_owned(),
        _ if scale.top == 0 => UNKNOWN.to_owned(),
        4 => bytes_short(scale.top),
        _ if scale.is_capacity => format!("{}%", quarter * 25),
        // A percentage of the highest value shown would mean nothing.
        _ => bytes_short(scale.top / 4 * quarter),
    }
}

/// The horizontal axis: a line with what is known of each time, and one with times.
pub(super) fn draw_time(
    frame: &mut Frame<'_>,
    plan: &Plan,
    scene: &Scene<'_>,
    history: &History,
    buckets: &[Bucket],
    window: &Window,
) {
    let width = usize::from(plan.graph.width);
    let cursor = window.cursor.and_then(|cursor| window.place_of(cursor, width));
    let sign = |place: usize| {
        let covered = window.covered(place, width);
        match window.merge(buckets, &covered) {
            _ if cursor == Some(place) => '▲',
            _ if history.gap.is_some_and(|gap| window.overlaps(&covered, gap)) => '×',
            None => '·',
            Some(both) if !both.exact => '~',
            Some(_) => '─',
        }
    };
    let axis: String = (0..width).map(sign).collect();
    let clock = scene.data.model.clock;
    let at =
        |bucket: i64| time(clock.rfc3339_signed(bucket.saturating_mul(window.length as i64)), window.length);
    let (start, end) = (at(window.first), at(window.all().end).min(now(scene, window)));
    let times = times(&start, &end, &axis, width);
    frame.render_widget(Line::styled(axis, scene.theme.dim()), plan.axis);
    frame.render_widget(Line::styled(times, scene.theme.dim()), plan.times);
}

/// Start, end, and between them a legend of the axis, if there is room.
fn times(start: &str, end: &str, axis: &str, width: usize) -> String {
    let meanings = [
        [" · unknown", " ~ not exact", " × no aggregator ran"],
        [" · unknown", " ~ not exact", " × unseen"],
        ["", " ~ not exact", " × unseen"],
        ["", " ~ not exact", ""],
        ["", "", ""],
    ];
    let there = |text: &&str| text.trim().chars().next().is_some_and(|sign| axis.contains(sign));
    let texts = meanings.map(|signs| signs.into_iter().filter(there).collect::<String>());
    let needed = |text: &&String| start.len() + text.chars().count() + end.len() + 5 <= width;
    let meaning = texts.iter().find(needed).map_or("", String::as_str);
    between(&format!("{start}{meaning}"), &format!("{end} UTC"), width as u16)
}

/// The end of the window; the last bucket ends in the future.
fn now(scene: &Scene<'_>, window: &Window) -> String {
    time(Some(scene.data.model.clock.timestamp()), window.length)
}

/// The time of an RFC 3339 text; for day-long windows also the date.
pub(super) fn time(rfc3339: Option<String>, bucket_length: u64) -> String {
    /// From this length on, a time without a date would be ambiguous.
    const LONG: u64 = 360_000_000_000;
    let range = if bucket_length >= LONG { 5..16 } else { 11..19 };
    let part = rfc3339.as_deref().and_then(|text| text.get(range));
    part.map_or_else(|| UNKNOWN.to_owned(), |text| text.replace('T', " "))
}
