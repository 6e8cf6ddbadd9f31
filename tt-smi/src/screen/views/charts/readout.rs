//! The values at the cursor, or of the whole window.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tt_shm_reader::Bucket;

use super::axis::time_label;
use super::both::curve_style;
use super::draw::ChartLayout;
use crate::model::{Device, Memory};
use crate::screen::page::Scene;
use crate::screen::widgets::graph::{Canvas, Curve, Dots};
use crate::screen::widgets::text::or_unknown;
use crate::screen::widgets::window::{Values, Window};
use crate::units::{UNKNOWN, age, bytes};

/// From this width on there is room for exact byte counts.
const WITH_BYTES: u16 = 100;
/// From this width on there is room for labels.
const WITH_WORDS: u16 = 68;
/// From this width on there is room for the capacity.
const WITH_CAPACITY: u16 = 76;

/// Values at the cursor, or of the whole window if there is none: one line per curve; at the right, the time.
pub(super) fn draw_readout(
    frame: &mut Frame<'_>,
    area: Rect,
    scene: &Scene<'_>,
    device: &Device,
    buckets: &[Bucket],
    window: &Window,
) {
    let places = usize::from(ChartLayout::of(scene).graph.width);
    let place = window.cursor.and_then(|cursor| window.place_of(cursor, places));
    let range = place.map_or(window.all(), |place| window.covered(place, places));
    let clock = scene.data.model.clock;
    let start = range.start.saturating_mul(window.length as i64);
    let when = match window.cursor {
        None => ["whole".to_owned(), "window".to_owned()],
        Some(_) => {
            let ago = clock.age_ns(u64::try_from(start).unwrap_or(0));
            [time_label(clock.rfc3339_signed(start), window.length), format!("{} ago", age(ago))]
        }
    };
    let both = window.merge(buckets, &range);
    let curves = [
        (Curve::First, "DRAM", both.map(|both| both.dram), &device.held.dram),
        (Curve::Second, "L1", both.map(|both| both.l1), &device.held.l1),
    ];
    let lines = curves.into_iter().zip(when).map(|((curve, name, values, memory), when)| {
        // The same mark as on the axis: not everything was followed at that time.
        let doubt = if both.is_some_and(|both| !both.exact) { "~" } else { "" };
        let text =
            format!(" {:<6}{}", format!("{name}{doubt}"), readout_text(values.as_ref(), memory, area.width));
        let sign = Canvas::key(Dots::of(scene.theme), curve);
        let gap = usize::from(area.width).saturating_sub(text.chars().count() + when.chars().count() + 3);
        Line::from(vec![
            Span::styled(format!(" {sign}"), curve_style(curve, scene.theme)),
            Span::raw(format!("{text}{}{when}", " ".repeat(gap))),
        ])
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn readout_text(values: Option<&Values>, memory: &Memory, width: u16) -> String {
    let figure = |name: &str, of: fn(&Values) -> u64| {
        let text = or_unknown(values, |values| bytes(of(values)));
        let exact = values.filter(|_| width >= WITH_BYTES).map(|values| format!(" ({} B)", of(values)));
        format!("{name} {text:>9}{}  ", exact.unwrap_or_default())
    };
    if width < WITH_WORDS {
        let text = |values: &Values| {
            format!("{} to {}, last {}", bytes(values.min), bytes(values.max), bytes(values.last))
        };
        return or_unknown(values, text);
    }
    let all = [figure("min", |of| of.min), figure("max", |of| of.max), figure("last", |of| of.last)].concat();
    match memory.total {
        _ if width < WITH_CAPACITY => all,
        Some(total) => format!("{all}of {}", bytes(total)),
        None => format!("{all}of {UNKNOWN}"),
    }
}
