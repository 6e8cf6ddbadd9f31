//! The pane at the side: the selected device over time, who holds it, and what happened lately.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use tt_shm_reader::{Bucket, Class, HISTORY_RESOLUTIONS};

use super::alarms::Alarm;
use super::fold::Group;
use crate::escape::{fit, pad};
use crate::model::{Device, Process, Usage};
use crate::screen::page::Scene;
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::bar::share;
use crate::screen::widgets::panel::{Graphed, Panel};
use crate::screen::widgets::text::{draw_lines, split_top};
use crate::screen::widgets::window::Window;
use crate::units::{bytes, percent};

/// Most holders in the list.
const HOLDERS: usize = 8;
/// Width of the bar of a holder.
const BAR: usize = 12;

/// What is shown.
pub(super) struct Side<'a> {
    pub group: &'a Group,
    pub device: &'a Device,
    pub buckets: &'a [Bucket],
    pub alarms: &'a [Alarm],
}

/// The last minute, with now at the right.
pub(super) fn last_minute(scene: &Scene<'_>) -> Window {
    Window::new(HISTORY_RESOLUTIONS[0], 0, scene.data.model.clock.monotonic_ns, None)
}

impl Side<'_> {
    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        let border = Rect { width: 1, ..area };
        draw_lines(frame, border, (0..area.height).map(|_| Line::styled("│", theme.dim())));
        let area = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
        let holders = self.holders(scene);
        let lines = (holders.len().min(HOLDERS) + 2) as u16;
        let alarms = (self.alarms.len().clamp(1, 9) + 1) as u16;
        let rows = [
            Constraint::Length(1),
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Length(1),
            Constraint::Length(lines.min(area.height / 4)),
            Constraint::Length(alarms.min(area.height / 4)),
        ];
        let [title, dram, l1, times, held, notices] = area.layout(&Layout::vertical(rows));
        let name = format!(
            " {}  {}, over the last minute",
            self.group.name(&scene.data.model.devices),
            self.device.kind()
        );
        frame.render_widget(Line::styled(name, theme.heading()), title);
        let window = last_minute(scene);
        for (graphed, area) in [(Graphed::Dram, dram), (Graphed::L1, l1)] {
            let memory = graphed.of(self.device);
            Panel { graphed, memory, buckets: self.buckets, window: &window }.draw(frame, area, theme);
        }
        let times_text = crate::screen::widgets::text::between("          -60 s", "now        ", times.width);
        frame.render_widget(Line::styled(times_text, theme.dim()), times);
        self.draw_holders(frame, held, &holders, theme);
        self.draw_notices(frame, notices, theme);
    }

    /// The processes on the device, largest first.
    fn holders<'a>(&self, scene: &Scene<'a>) -> Vec<(&'a Process, &'a Usage)> {
        let on = |process: &'a Process| {
            let usage = process.usages.iter().find(|usage| usage.device == self.device.index)?;
            Some((process, usage))
        };
        let mut holders: Vec<_> = scene.data.model.processes.iter().filter_map(on).collect();
        holders.sort_by_key(|(_, usage)| std::cmp::Reverse((usage.held.dram.used, usage.held.l1.used)));
        holders
    }

    fn draw_holders(&self, frame: &mut Frame<'_>, area: Rect, holders: &[(&Process, &Usage)], theme: &Theme) {
        let (title, rest) = split_top(area, 1);
        let more = holders.len().saturating_sub(usize::from(rest.height));
        let more = if more > 0 { format!("  {more} more") } else { String::new() };
        frame.render_widget(Line::styled(format!(" holders, by DRAM{more}"), theme.heading()), title);
        let names = usize::from(area.width).saturating_sub(8 + 11 + 6 + BAR + 3 + 11);
        let line = |(process, usage): &(&Process, &Usage)| {
            let (dram, l1) = (usage.held.dram.used, usage.held.l1.used);
            let all = self.device.held.dram.used;
            let mut spans = vec![
                Span::raw(format!(
                    "{:>8} {}",
                    process.pid_short(),
                    pad(&fit(&process.name, names), names, false)
                )),
                Span::raw(format!("{:>10} ", bytes(dram))),
            ];
            spans.extend(share(Part::Of(Class::Dram), dram, all, BAR, theme));
            spans.push(Span::raw(format!(" {:>4}", percent(dram, Some(all)))));
            spans.push(Span::styled(format!("  L1 {:>8}", bytes(l1)), theme.dim()));
            Line::from(spans)
        };
        let none = holders.is_empty().then(|| Line::styled(" nobody reports memory here", theme.dim()));
        draw_lines(frame, rest, holders.iter().map(line).chain(none));
    }

    fn draw_notices(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let (title, rest) = split_top(area, 1);
        frame.render_widget(Line::styled(" latest", theme.heading()), title);
        let width = usize::from(area.width);
        let lines = self.alarms.iter().map(|alarm| alarm.line(width, theme));
        let none = self.alarms.is_empty().then(|| Line::styled(" nothing wrong", theme.good()));
        draw_lines(frame, rest, lines.chain(none));
    }
}
