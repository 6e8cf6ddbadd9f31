//! What happened, and what is known of each time; and the times.

use ratatui::Frame;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tt_shm_reader::Bucket;

use super::draw::ChartLayout;
use crate::model::{Device, Failure};
use crate::screen::data::History;
use crate::screen::page::Scene;
use crate::screen::theme::Theme;
use crate::screen::widgets::text::{between, or_unknown};
use crate::screen::widgets::window::Window;

/// Something that happened at a time, worst first, with its sign and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Failed,
    Ended,
    Reset,
    Step,
}

impl Mark {
    const ALL: [Mark; 4] = [Mark::Failed, Mark::Ended, Mark::Reset, Mark::Step];

    fn sign(self) -> char {
        match self {
            Mark::Failed => '!',
            Mark::Ended => '†',
            Mark::Reset => '↺',
            Mark::Step => '╵',
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Mark::Failed => "allocation failed",
            Mark::Ended => "a process ended",
            Mark::Reset => "peaks reset",
            Mark::Step => "step",
        }
    }

    fn style(self, theme: &Theme) -> Style {
        match self {
            Mark::Failed => theme.alarm(),
            Mark::Ended | Mark::Reset => theme.warn(),
            Mark::Step => theme.dim(),
        }
    }
}

/// The worst that happened in each column.
fn marks(
    scene: &Scene<'_>,
    device: &Device,
    buckets: &[Bucket],
    window: &Window,
    width: usize,
) -> Vec<Option<Mark>> {
    let model = &scene.data.model;
    let now = model.clock.monotonic_ns;
    let of_device = |failure: &&Failure| failure.device == Some(device.index);
    let failed =
        model.failures.iter().filter(of_device).map(|failure| (Mark::Failed, failure.time.monotonic_ns));
    let ended = model.reclaimed.iter().map(|gone| (Mark::Ended, now.saturating_sub(gone.age_ns)));
    let reset = model.window_since.iter().map(|since| (Mark::Reset, since.monotonic_ns));
    let known: Vec<(Mark, u64)> = failed.chain(ended).chain(reset).collect();
    let at = |place: usize| {
        let covered = window.covered(place, width);
        let happened = known.iter().filter(|(_, time)| covered.contains(&((*time / window.length) as i64)));
        let step = window.merge(buckets, &covered).filter(|both| both.steps > 0).map(|_| Mark::Step);
        happened.map(|(mark, _)| *mark).chain(step).min()
    };
    (0..width).map(at).collect()
}

/// Marks what happened, each at its time.
pub(super) fn draw_marks(
    frame: &mut Frame<'_>,
    layout: &ChartLayout,
    scene: &Scene<'_>,
    device: &Device,
    buckets: &[Bucket],
    window: &Window,
) {
    let marks = marks(scene, device, buckets, window, layout.marks.width.into());
    let span = |mark: Option<Mark>| match mark {
        Some(mark) => Span::styled(mark.sign().to_string(), mark.style(scene.theme)),
        None => Span::raw(" "),
    };
    frame.render_widget(Line::from_iter(marks.into_iter().map(span)), layout.marks);
}

/// The horizontal axis: a line with what is known of each time, and one with times.
pub(super) fn draw_time_axis(
    frame: &mut Frame<'_>,
    layout: &ChartLayout,
    scene: &Scene<'_>,
    device: &Device,
    history: &History,
    buckets: &[Bucket],
    window: &Window,
) {
    let width = usize::from(layout.graph.width);
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
    let at = |bucket: i64| {
        time_label(clock.rfc3339_signed(bucket.saturating_mul(window.length as i64)), window.length)
    };
    let (start, end) = (at(window.first), at(window.all().end).min(window_end(scene, window)));
    let marked = marks(scene, device, buckets, window, layout.marks.width.into());
    let times = time_axis_text(&start, &end, &meanings(&marked, &axis), width);
    frame.render_widget(Line::styled(axis, scene.theme.dim()), layout.axis);
    frame.render_widget(Line::styled(times, scene.theme.dim()), layout.times);
}

/// What the signs mean that are there, most important first.
fn meanings(marked: &[Option<Mark>], axis: &str) -> Vec<String> {
    let marks = Mark::ALL.into_iter().filter(|mark| marked.contains(&Some(*mark)));
    let marks = marks.map(|mark| format!("{} {}", mark.sign(), mark.meaning()));
    let known = [('~', "not exact"), ('×', "no aggregator ran"), ('·', "unknown")];
    let known = known.into_iter().filter(|(sign, _)| axis.contains(*sign));
    marks.chain(known.map(|(sign, meaning)| format!("{sign} {meaning}"))).collect()
}

/// Start, end, and between them what the signs mean, as far as there is room.
fn time_axis_text(start: &str, end: &str, meanings: &[String], width: usize) -> String {
    let end = format!("{end} UTC");
    let mut text = start.to_owned();
    for meaning in meanings {
        if text.chars().count() + meaning.chars().count() + end.chars().count() + 4 <= width {
            text += &format!("  {meaning}");
        }
    }
    between(&text, &end, width as u16)
}

/// The end of the window; the last bucket ends in the future.
fn window_end(scene: &Scene<'_>, window: &Window) -> String {
    time_label(Some(scene.data.model.clock.timestamp()), window.length)
}

/// The time of an RFC 3339 text; for day-long windows also the date.
pub(super) fn time_label(rfc3339: Option<String>, bucket_length: u64) -> String {
    /// From this length on, a time without a date would be ambiguous.
    const LONG: u64 = 360_000_000_000;
    let range = if bucket_length >= LONG { 5..16 } else { 11..19 };
    let part = rfc3339.as_deref().and_then(|text| text.get(range));
    or_unknown(part, |text| text.replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_important_meanings_are_kept_and_nothing_collides() {
        let all: Vec<Option<Mark>> = Mark::ALL.map(Some).to_vec();
        let said = meanings(&all, "──~×·");
        assert_eq!(said.len(), 7);
        for width in 0..120 {
            let text = time_axis_text("10:00:00", "10:01:00", &said, width);
            assert!(width < 22 || text.chars().count() == width, "{width}: {text:?}");
            assert!(width < 22 || text.ends_with(" 10:01:00 UTC"), "{width}: {text:?}");
        }
        assert!(time_axis_text("10:00:00", "10:01:00", &said, 50).contains("! allocation failed"));
    }
}
