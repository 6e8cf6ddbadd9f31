//! Telemetry of the driver. It is not read yet, so all values are unknown; the quantities are listed.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::escape::escape;
use crate::model::Device;
use crate::screen::action::Action;
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::theme::Theme;
use crate::screen::widgets::device::{draw_headline, draw_none};
use crate::screen::widgets::text::{or_unknown, split_top};
use crate::units::{UNKNOWN, plural};

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
struct TelemetryLayout {
    columns: Vec<(Vec<Line<'static>>, Rect)>,
    notes: Rect,
}

impl TelemetryLayout {
    fn of(scene: &Scene<'_>, device: &Device) -> TelemetryLayout {
        let (_, area) = split_top(scene.area, 1);
        let telemetry = read(device);
        let notes = if telemetry.is_empty() { NOT_READ.len() as u16 } else { 0 };
        let (notes, area) = split_top(area, notes);
        let lines = |quantities, width| quantity_lines(quantities, &telemetry, width, scene.theme);
        if area.width >= WIDE {
            let [left, right] = area.layout(&Layout::horizontal([Constraint::Fill(1); 2]));
            let columns = vec![(lines(LIVE, left.width), left), (lines(IDENTITY, right.width), right)];
            return TelemetryLayout { columns, notes };
        }
        let mut all = lines(LIVE, area.width);
        all.extend(lines(IDENTITY, area.width));
        TelemetryLayout { columns: vec![(all, area)], notes }
    }

    fn last_top(&self) -> usize {
        let below = |(lines, area): &(Vec<Line<'_>>, Rect)| lines.len().saturating_sub(area.height.into());
        self.columns.iter().map(below).max().unwrap_or(0)
    }
}

impl Page for TelemetryPage {
    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let Some(device) = scene.device() else { return Reply::Ignored };
        let last = TelemetryLayout::of(scene, device).last_top();
        let Action::Move(motion) = action else { return Reply::Ignored };
        match motion.target(self.top.min(last), last, scene.area.height.into()) {
            Some(top) => self.top = top,
            None => return Reply::Ignored,
        }
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let Some(device) = scene.device() else { return draw_none(frame, scene) };
        let layout = TelemetryLayout::of(scene, device);
        let top = self.top.min(layout.last_top());
        let below = layout.last_top() - top;
        let note =
            if below > 0 { format!("▼ {}", plural(below as u64, "more line")) } else { String::new() };
        draw_headline(frame, scene, device, &note);
        let notes = NOT_READ.map(|text| Line::styled(text, scene.theme.warn()));
        frame.render_widget(Paragraph::new(notes.to_vec()), layout.notes);
        for (lines, area) in layout.columns {
            frame.render_widget(Paragraph::new(lines.into_iter().skip(top).collect::<Vec<_>>()), area);
        }
    }
}

/// From this width on there is room for limits and trends.
const WITH_LIMITS: u16 = 44;

/// A heading, and a line for each quantity.
fn quantity_lines(list: &[Quantity], telemetry: &Telemetry, width: u16, theme: &Theme) -> Vec<Line<'static>> {
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
    let shown = |text: Option<String>| or_unknown(text, |text| escape(&text));
    if !quantity.changes {
        return [shown(value), String::new(), String::new(), String::new()];
    }
    // Nothing is read, so there is no trend either.
    [shown(value), shown((quantity.limit)(telemetry)), quantity.unit.to_owned(), UNKNOWN.to_owned()]
}

fn line(label: &str, [value, limit, unit, trend]: [String; 4], width: u16) -> String {
    match width {
        ..WITH_LIMITS => format!(" {label:<18} {value:>8} {unit}"),
        _ => format!(" {label:<18} {value:>12} {limit:>8} {unit:<5} {trend}"),
    }
}

/// Telemetry of a device; `None` for unknown values.
#[derive(Clone, Debug, Default, PartialEq)]
struct Telemetry {
    /// MHz.
    pub ai_clock: Option<f64>,
    /// MHz.
    pub axi_clock: Option<f64>,
    /// MHz.
    pub arc_clock: Option<f64>,
    /// Degrees Celsius.
    pub temperature: Option<f64>,
    pub temperature_limit: Option<f64>,
    /// Watts.
    pub power: Option<f64>,
    pub power_limit: Option<f64>,
    /// Amperes.
    pub current: Option<f64>,
    pub current_limit: Option<f64>,
    /// Volts.
    pub voltage: Option<f64>,
    pub voltage_limit: Option<f64>,
    /// Revolutions per minute; `None` also if there is no fan.
    pub fan: Option<f64>,
    /// Increases while the firmware is running.
    pub heartbeat: Option<f64>,
    /// Number of thermal shutdowns.
    pub thermal_trips: Option<f64>,
    /// Such as n300.
    pub card_type: Option<String>,
    /// Of the board.
    pub serial: Option<String>,
    /// Of the chip.
    pub asic_id: Option<String>,
    /// Version of the firmware bundle.
    pub bundle: Option<String>,
    pub arc_firmware: Option<String>,
    pub ethernet_firmware: Option<String>,
    pub m3_application: Option<String>,
    pub m3_boot_loader: Option<String>,
    /// Version of the tool that wrote the flash.
    pub flash_tool: Option<String>,
    /// Speed and width.
    pub pcie_link: Option<String>,
    /// Version of the kernel module.
    pub driver: Option<String>,
}

impl Telemetry {
    /// Whether nothing is known at all.
    fn is_empty(&self) -> bool {
        *self == Telemetry::default()
    }
}

/// A quantity of the driver: a table has them all, so that a new one is a line in it.
struct Quantity {
    pub label: &'static str,
    pub unit: &'static str,
    pub value: fn(&Telemetry) -> Option<String>,
    pub limit: fn(&Telemetry) -> Option<String>,
    /// Whether it changes over time, so that it has a trend.
    pub changes: bool,
}

/// Quantities that change.
const LIVE: &[Quantity] = &[
    live("ASIC temperature", "°C", |of| number(of.temperature), |of| number(of.temperature_limit)),
    live("power", "W", |of| number(of.power), |of| number(of.power_limit)),
    live("current", "A", |of| number(of.current), |of| number(of.current_limit)),
    live("core voltage", "V", |of| number(of.voltage), |of| number(of.voltage_limit)),
    live("AI clock", "MHz", |of| number(of.ai_clock), no_limit),
    live("AXI clock", "MHz", |of| number(of.axi_clock), no_limit),
    live("ARC clock", "MHz", |of| number(of.arc_clock), no_limit),
    live("fan", "rpm", |of| number(of.fan), no_limit),
    live("heartbeat", "", |of| number(of.heartbeat), no_limit),
    live("thermal trips", "", |of| number(of.thermal_trips), no_limit),
];

/// Quantities that do not change: names and versions.
const IDENTITY: &[Quantity] = &[
    fixed("card type", |of| of.card_type.clone()),
    fixed("serial number", |of| of.serial.clone()),
    fixed("ASIC id", |of| of.asic_id.clone()),
    fixed("firmware bundle", |of| of.bundle.clone()),
    fixed("ARC firmware", |of| of.arc_firmware.clone()),
    fixed("ethernet firmware", |of| of.ethernet_firmware.clone()),
    fixed("M3 application", |of| of.m3_application.clone()),
    fixed("M3 boot loader", |of| of.m3_boot_loader.clone()),
    fixed("flash tool", |of| of.flash_tool.clone()),
    fixed("PCIe link", |of| of.pcie_link.clone()),
    fixed("driver", |of| of.driver.clone()),
];

const fn live(
    label: &'static str,
    unit: &'static str,
    value: fn(&Telemetry) -> Option<String>,
    limit: fn(&Telemetry) -> Option<String>,
) -> Quantity {
    Quantity { label, unit, value, limit, changes: true }
}

const fn fixed(label: &'static str, value: fn(&Telemetry) -> Option<String>) -> Quantity {
    Quantity { label, unit: "", value, limit: no_limit, changes: false }
}

fn no_limit(_: &Telemetry) -> Option<String> {
    None
}

/// `38.5`, `720`.
fn number(value: Option<f64>) -> Option<String> {
    let text = format!("{:.2}", value?);
    Some(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_up() {
        let theme = crate::screen::theme::Theme::MONO;
        let lines =
            [LIVE, IDENTITY].map(|list| quantity_lines(list, &Telemetry::default(), 80, &theme)).concat();
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
        let lines = quantity_lines(LIVE, &known, 80, &theme);
        let line = lines.iter().map(ToString::to_string).find(|line| line.contains("temperature")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["ASIC", "temperature", "38.5", "75", "°C", "-"]);
        assert!(!known.is_empty());
    }
}
