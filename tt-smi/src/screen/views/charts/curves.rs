//! Both curves on a canvas.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tt_shm_reader::{Bucket, Class};

use super::window::Window;
use crate::model::Memory;
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::graph::{Canvas, Curve, Dots};

/// The scale of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// Bytes at the top; 0 if nothing is known.
    pub top: u64,
    /// Whether the top is the capacity.
    pub is_capacity: bool,
}

impl Scale {
    /// Up to the capacity, or to the highest value shown if that is more or the capacity is unknown.
    pub(super) fn new(memory: &Memory, most: u64) -> Scale {
        match memory.total {
            Some(total) if total >= most && total > 0 => Scale { top: total, is_capacity: true },
            _ => Scale { top: most, is_capacity: false },
        }
    }

    fn share(self, bytes: u64) -> f64 {
        bytes as f64 / self.top.max(1) as f64
    }
}

/// The style of a curve.
pub(super) fn style(curve: Curve, theme: &Theme) -> Style {
    let part = match curve {
        Curve::First => Part::Of(Class::Dram),
        Curve::Second => Part::Of(Class::L1),
    };
    theme.part(part).1
}

/// Draws the range of each curve in each column.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    buckets: &[Bucket],
    window: &Window,
    scales: [Scale; 2],
    theme: &Theme,
) {
    let mut canvas = Canvas::new(Dots::of(theme), area.width.into(), area.height.into());
    let columns = canvas.columns();
    for column in 0..columns {
        let Some(both) = window.merge(buckets, &window.covered(column, columns)) else { continue };
        for (curve, stretch, scale) in
            [(Curve::First, both.dram, scales[0]), (Curve::Second, both.l1, scales[1])]
        {
            canvas.range(curve, column, scale.share(stretch.min), scale.share(stretch.max));
        }
    }
    let cursor = window.cursor.and_then(|cursor| window.place_of(cursor, area.width.into()));
    let buffer = frame.buffer_mut();
    for (x, y) in (0..area.width).flat_map(|x| (0..area.height).map(move |y| (x, y))) {
        let at_cursor = cursor == Some(usize::from(x));
        let sign = canvas.sign(x.into(), y.into()).map(|(sign, curve)| (sign, style(curve, theme)));
        let (sign, style) = match sign {
            Some((sign, style)) if at_cursor => (sign, style.patch(theme.selected())),
            Some(drawn) => drawn,
            None if at_cursor => ('│', theme.dim()),
            None => continue,
        };
        if let Some(cell) = buffer.cell_mut((area.x + x, area.y + y)) {
            cell.set_char(sign).set_style(style);
        }
    }
}
