//! The quantities of the driver: a table, so that a new one is a line in it.

/// Telemetry of a device; `None` for unknown values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Telemetry {
    /// MHz.
    pub ai_clock: Option<f64>,
    /// MHz.
    pub axi_clock: Option<f64>,
    /// MHz.
    pub arc_clock: Option<f64>,
    /// Degrees Celsius.
    pub temperature: Option<f64>,
    /// Its limit.
    pub temperature_limit: Option<f64>,
    /// Watts.
    pub power: Option<f64>,
    /// Its limit.
    pub power_limit: Option<f64>,
    /// Amperes.
    pub current: Option<f64>,
    /// Its limit.
    pub current_limit: Option<f64>,
    /// Volts.
    pub voltage: Option<f64>,
    /// Its limit.
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
    /// Version.
    pub arc_firmware: Option<String>,
    /// Version.
    pub ethernet_firmware: Option<String>,
    /// Version.
    pub m3_application: Option<String>,
    /// Version.
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
    pub(super) fn is_empty(&self) -> bool {
        *self == Telemetry::default()
    }
}

/// A quantity of the driver.
pub(super) struct Quantity {
    pub label: &'static str,
    pub unit: &'static str,
    pub value: fn(&Telemetry) -> Option<String>,
    pub limit: fn(&Telemetry) -> Option<String>,
    /// Whether it changes over time, so that it has a trend.
    pub changes: bool,
}

/// Quantities that change.
pub(super) const LIVE: &[Quantity] = &[
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
pub(super) const IDENTITY: &[Quantity] = &[
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
