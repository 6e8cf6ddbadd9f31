//! What the driver tells of a device: what it measures, with limits and the last minutes, and what it is.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tt_shm_reader::{TELEMETRY_RESOLUTIONS, TelemetryBucket};

use crate::driver::{DriverDevice, FIRMWARE, MEASURES, Measure};
use crate::escape::fit;
use crate::model::Device;
use crate::screen::action::Action;
use crate::screen::data::{Data, More, Needs};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::theme::Theme;
use crate::screen::widgets::device::{draw_headline, draw_none};
use crate::screen::widgets::text::{or_unknown, split_top};
use crate::screen::widgets::trend::trend;
use crate::units::{UNKNOWN, plural};

/// From this width on, both groups are side by side.
const WIDE: u16 = 110;
/// From this width on there is room for limits.
const WITH_LIMITS: u16 = 44;
/// Columns before the trend.
const BEFORE_TREND: usize = 48;
/// The longest trend, in columns. Each is a bucket.
const LONGEST: usize = 60;

/// The scroll position, and the last minutes of each device.
#[derive(Debug, Default)]
pub(crate) struct TelemetryPage {
    top: usize,
    trends: Vec<Vec<TelemetryBucket>>,
}

/// Rows in one column or two.
struct TelemetryLayout {
    columns: Vec<(Vec<Line<'static>>, Rect)>,
}

impl TelemetryLayout {
    fn of(scene: &Scene<'_>, device: &Device, trend: &[TelemetryBucket]) -> TelemetryLayout {
        let (_, area) = split_top(scene.area, 1);
        let theme = scene.theme;
        let Some(driver) = &device.driver else {
            let lines = NOT_THERE.map(|text| Line::styled(text, theme.warn())).to_vec();
            return TelemetryLayout { columns: vec![(lines, area)] };
        };
        let measured = |width| measured_lines(driver, trend, width, theme);
        let about = |width| about_lines(device, driver, width, theme);
        if area.width >= WIDE {
            let [left, right] = area.layout(&Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]));
            return TelemetryLayout {
                columns: vec![(measured(left.width), left), (about(right.width), right)],
            };
        }
        let mut all = measured(area.width);
        all.extend(about(area.width));
        TelemetryLayout { columns: vec![(all, area)] }
    }

    fn last_top(&self) -> usize {
        let below = |(lines, area): &(Vec<Line<'_>>, Rect)| lines.len().saturating_sub(area.height.into());
        self.columns.iter().map(below).max().unwrap_or(0)
    }
}

/// Why there is nothing to see, wrapped for the least width.
const NOT_THERE: [&str; 3] = [
    " The driver has no such device: it is a chip without a",
    " PCIe link of its own, the driver is not loaded here, or a",
    " process made it up. `tt-smi doctor` tells about the driver.",
];

impl TelemetryPage {
    fn layout(&self, scene: &Scene<'_>, device: &Device) -> TelemetryLayout {
        TelemetryLayout::of(scene, device, self.trends.get(scene.device).map_or(&[], Vec::as_slice))
    }
}

impl Page for TelemetryPage {
    fn needs(&self) -> Needs {
        Needs::Telemetry
    }

    fn refresh(&mut self, data: &Data) {
        if let More::Telemetry(trends) = &data.more {
            self.trends.clone_from(trends);
        }
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let Some(device) = scene.device() else { return Reply::Ignored };
        let last = self.layout(scene, device).last_top();
        let Action::Move(motion) = action else { return Reply::Ignored };
        match motion.target(self.top.min(last), last, scene.area.height.into()) {
            Some(top) => self.top = top,
            None => return Reply::Ignored,
        }
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let Some(device) = scene.device() else { return draw_none(frame, scene) };
        let layout = self.layout(scene, device);
        let top = self.top.min(layout.last_top());
        let below = layout.last_top() - top;
        let note =
            if below > 0 { format!("▼ {}", plural(below as u64, "more line")) } else { String::new() };
        draw_headline(frame, scene, device, &note);
        for (lines, area) in layout.columns {
            frame.render_widget(Paragraph::new(lines.into_iter().skip(top).collect::<Vec<_>>()), area);
        }
    }
}

/// A heading, and a line for each quantity.
fn measured_lines(
    driver: &DriverDevice,
    trend: &[TelemetryBucket],
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let columns = usize::from(width).saturating_sub(BEFORE_TREND + 1).min(LONGEST);
    let seconds = columns as u64 * TELEMETRY_RESOLUTIONS[0] / 1_000_000_000;
    let trend_head = if columns > 10 { format!("LAST {seconds} s") } else { String::new() };
    let heads = ["VALUE", "LIMIT", "UNIT", &trend_head].map(str::to_owned);
    let heading = Line::styled(line("MEASURED", heads, width), theme.heading());
    let of = |measure: &'static Measure| {
        let (value, limit) = (measure.value(&driver.stats), measure.limit(&driver.stats));
        let text = |value: Option<f64>| or_unknown(value, |value| measure.text(value));
        let shown = if measure.limit_key.is_some() { text(limit) } else { String::new() };
        let curve = if columns > 10 { curve(measure, trend, columns, theme) } else { String::new() };
        let style = match value {
            _ if measure.is_at_limit(&driver.stats) => theme.warn(),
            Some(_) => theme.heading(),
            None => theme.dim(),
        };
        let why = if value.is_none() { driver.absent.get(measure.key).copied() } else { None };
        let last = why.map_or(curve, str::to_owned);
        let text = line(measure.label, [text(value), shown, measure.unit.to_owned(), last], width);
        Line::from(Span::styled(fit(&text, usize::from(width)), style))
    };
    [heading].into_iter().chain(MEASURES.iter().map(of)).chain([heartbeat(driver, theme)]).collect()
}

/// Whether the firmware runs.
fn heartbeat(driver: &DriverDevice, theme: &Theme) -> Line<'static> {
    let (text, style): (&str, Style) = match driver.heartbeat_moves {
        Some(true) => ("moves", theme.heading()),
        Some(false) => ("stands still: the firmware hangs", theme.warn()),
        None => (UNKNOWN, theme.dim()),
    };
    Line::styled(format!(" {:<18} {text}", "firmware"), style)
}

/// The most of each bucket, between the least and the most of all that are shown; a blank where nothing was read.
fn curve(measure: &Measure, buckets: &[TelemetryBucket], columns: usize, theme: &Theme) -> String {
    let length = TELEMETRY_RESOLUTIONS[0];
    let Some(newest) = buckets.last().map(|bucket| bucket.start / length) else { return String::new() };
    let at = |number: u64| {
        let bucket = buckets.iter().rev().find(|bucket| bucket.start / length == number)?;
        bucket.trend(measure.told).map(|trend| trend.range().1)
    };
    let first = (newest + 1).saturating_sub(columns as u64);
    trend(&(first..=newest).map(at).collect::<Vec<_>>(), theme)
}

fn line(label: &str, [value, limit, unit, trend]: [String; 4], width: u16) -> String {
    match width {
        ..WITH_LIMITS => format!(" {label:<18} {value:>8} {unit}"),
        _ => format!(" {label:<18} {value:>12} {limit:>8} {unit:<5} {trend}"),
    }
}

/// A heading, and a line for each thing that does not change.
fn about_lines(device: &Device, driver: &DriverDevice, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let known = |text: Option<String>| text;
    let firmware = FIRMWARE.map(|(key, label, _, _)| {
        let version = driver.firmware.get(key).and_then(Option::as_ref);
        (label, key, known(version.map(ToString::to_string)))
    });
    let holders = driver.holder_count.map(|count| match driver.unreported_holder_count {
        Some(0) | None => count.to_string(),
        Some(silent) => format!("{count}, {silent} without a report (tt-smi run)"),
    });
    let first = [
        ("device", "number", Some(format!("/dev/tenstorrent/{}", driver.number))),
        ("board", "board", device.board.as_ref().map(ToString::to_string)),
        ("serial number", "serial", driver.serial.clone()),
        ("ASIC id", "asic_id", driver.asic_id.clone()),
    ];
    let last = [
        ("memory node", "numa_node", driver.numa_node.map(|node| node.to_string())),
        ("driver", "driver_version", driver.driver_version.as_ref().map(ToString::to_string)),
        ("holders", "holder_count", holders),
        ("read", "age_ms", Some(format!("{} ms ago", driver.age_ms))),
    ];
    let row = |(label, key, value): (&str, &str, Option<String>)| {
        let style = if value.is_some() { theme.heading() } else { theme.dim() };
        let why = driver.absent.get(key).map_or_else(String::new, |why| format!(" {why}"));
        let value = value.unwrap_or_else(|| format!("{UNKNOWN}{why}"));
        Line::styled(fit(&format!(" {label:<18} {value}"), usize::from(width)), style)
    };
    let note = driver
        .note
        .as_ref()
        .map(|note| Line::styled(fit(&format!(" {note}"), usize::from(width)), theme.warn()));
    let heading = Line::styled(format!(" {:<18}", "IDENTITY"), theme.heading());
    [heading].into_iter().chain(first.into_iter().chain(firmware).chain(last).map(row)).chain(note).collect()
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use tt_shm_reader::{Absent, DriverStats, Told, Trend};

    use super::*;
    use crate::model::Clock;

    fn driver(known: &[(Told, i64)]) -> DriverDevice {
        let mut stats = DriverStats::zeroed();
        stats.absences.fill(Absent::Missing as u8);
        for (told, value) in known {
            stats.absences[*told as usize] = 0;
            stats.numbers[*told as usize] = *value as u64;
        }
        DriverDevice::new(0, &stats, Clock::now())
    }

    fn texts(driver: &DriverDevice, trend: &[TelemetryBucket], width: u16) -> Vec<String> {
        measured_lines(driver, trend, width, &Theme::MONO).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_is_made_up() {
        let texts = texts(&driver(&[]), &[], 100);
        assert!(texts.iter().any(|text| text.contains("ASIC temperature") && text.contains("not published")));
        let digits = |text: &&String| text.replace("LAST", "").chars().any(|c| c.is_ascii_digit());
        assert!(texts.iter().skip(1).all(|text| !digits(&text)), "{texts:?}");
    }

    #[test]
    fn what_is_known_is_shown_with_its_unit_limit_and_last_minutes() {
        let known = driver(&[(Told::Temperature, 38_500), (Told::TemperatureLimit, 75_000)]);
        let length = TELEMETRY_RESOLUTIONS[0];
        let bucket = |number: u64, value: i64| TelemetryBucket {
            start: number * length,
            known: 1,
            trends: [Trend::of(value); tt_shm_reader::TRENDS],
        };
        let trend = [bucket(5, 30_000), bucket(6, 40_000), bucket(8, 35_000)];
        let texts = texts(&known, &trend, 100);
        let line = texts.iter().find(|line| line.contains("temperature")).unwrap();
        assert!(line.contains("38.5") && line.contains("75.0 °C"), "{line}");
        assert!(
            line.trim_end().ends_with("▁█ ▅") || line.trim_end().ends_with("_^ -"),
            "{line}: nothing was read in the third"
        );
        assert!(texts.iter().any(|line| line.contains("AI clock") && line.contains("not published")));
    }

    #[test]
    fn a_heartbeat_that_stands_still_is_told() {
        let mut known = driver(&[(Told::Heartbeat, 7)]);
        known.heartbeat_moves = Some(false);
        assert!(texts(&known, &[], 80).iter().any(|line| line.contains("stands still")));
    }
}
