//! Telemetry of the driver. It is not read yet, so all values are unknown; the quantities are listed.

mod quantities;
mod rows;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use self::quantities::{IDENTITY, LIVE, Telemetry};
use crate::model::Device;
use crate::output::units::plural;
use crate::screen::action::{Action, Motion};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::widgets::device::{draw_headline, draw_none};
use crate::screen::widgets::text::split_top;

/// From this width on, both groups are side by side.
const WIDE: u16 = 100;
/// Why there is nothing to see, wrapped for the least width.
const NOT_READ: [&str; 2] = [
    " Not supported yet: this version of tt-smi does not read",
    " telemetry from the driver, so all values are unknown (-).",
];

/// The scroll position.
#[derive(Debug, Default)]
pub(crate) struct TelemetryPage {
    top: usize,
}

/// Telemetry of a device.
fn read(_device: &Device) -> Telemetry {
    Telemetry::default()
}

/// Rows in one column or two, and the highest scroll position.
struct Plan {
    columns: Vec<(Vec<Line<'static>>, Rect)>,
    notes: Rect,
}

impl Plan {
    fn of(scene: &Scene<'_>, device: &Device) -> Plan {
        let (_, area) = split_top(scene.area, 1);
        let telemetry = read(device);
        let notes = if telemetry.is_empty() { NOT_READ.len() as u16 } else { 0 };
        let (notes, area) = split_top(area, notes);
        let lines = |quantities, width| rows::lines(quantities, &telemetry, width, scene.theme);
        if area.width >= WIDE {
            let [left, right] = area.layout(&Layout::horizontal([Constraint::Fill(1); 2]));
            let columns = vec![(lines(LIVE, left.width), left), (lines(IDENTITY, right.width), right)];
            return Plan { columns, notes };
        }
        let mut all = lines(LIVE, area.width);
        all.extend(lines(IDENTITY, area.width));
        Plan { columns: vec![(all, area)], notes }
    }

    fn last_top(&self) -> usize {
        let below = |(lines, area): &(Vec<Line<'_>>, Rect)| lines.len().saturating_sub(area.height.into());
        self.columns.iter().map(below).max().unwrap_or(0)
    }
}

impl Page for TelemetryPage {
    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let Some(device) = scene.device() else { return Reply::Ignored };
        let last = Plan::of(scene, device).last_top();
        let by =
            |lines: i64| (self.top.min(last) as i64).saturating_add(lines).clamp(0, last as i64) as usize;
        self.top = match action {
            Action::Move(Motion::Lines(lines)) => by(lines.into()),
            Action::Move(Motion::Pages(pages)) => by(i64::from(pages) * i64::from(scene.area.height)),
            Action::Move(Motion::First) => 0,
            Action::Move(Motion::Last) => last,
            _ => return Reply::Ignored,
        };
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let Some(device) = scene.device() else { return draw_none(frame, scene) };
        let plan = Plan::of(scene, device);
        let top = self.top.min(plan.last_top());
        let below = plan.last_top() - top;
        let note =
            if below > 0 { format!("▼ {}", plural(below as u64, "more line")) } else { String::new() };
        draw_headline(frame, scene, device, &note);
        let notes = NOT_READ.map(|text| Line::styled(text, scene.theme.warn()));
        frame.render_widget(Paragraph::new(notes.to_vec()), plan.notes);
        for (lines, area) in plan.columns {
            frame.render_widget(Paragraph::new(lines.into_iter().skip(top).collect::<Vec<_>>()), area);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_up() {
        let theme = crate::screen::theme::Theme::MONO;
        let lines =
            [LIVE, IDENTITY].map(|list| rows::lines(list, &Telemetry::default(), 80, &theme)).concat();
        let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.contains("ASIC temperature")));
        assert!(
            !texts.iter().any(|text| text.replace("M3", "").chars().any(|c| c.is_ascii_digit())),
            "{texts:?}"
        );
    }

    #[test]
    fn what_is_known_is_shown_with_its_unit_and_limit() {
        let theme = crate::screen::theme::Theme::MONO;
        let known =
            Telemetry { temperature: Some(38.5), temperature_limit: Some(75.0), ..Telemetry::default() };
        let lines = rows::lines(LIVE, &known, 80, &theme);
        let line = lines.iter().map(ToString::to_string).find(|line| line.contains("temperature")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["ASIC", "temperature", "38.5", "75", "°C", "-"]);
        assert!(!known.is_empty());
    }
}
