//! What the driver measures: one table for all outputs.

use tt_shm_reader::{DriverStats, Told};

/// A quantity that the driver measures.
#[derive(Debug)]
pub struct Measure {
    /// Its name in JSON, CSV and metrics, with its unit.
    pub key: &'static str,
    /// The same for its limit.
    pub limit_key: Option<&'static str>,
    /// For people.
    pub label: &'static str,
    /// The unit, for people.
    pub unit: &'static str,
    /// Decimals, for people.
    pub decimals: usize,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// Where the table has it.
    pub told: Told,
    /// Where the table has its limit.
    limit: Option<Told>,
    /// What the table has for one unit of the key.
    per_unit: f64,
    /// What the key has for one unit for people.
    shown_per: f64,
}

impl Measure {
    /// The one that the table has there.
    pub fn of(told: Told) -> Option<&'static Measure> {
        MEASURES.iter().find(|measure| measure.told == told)
    }

    /// Its value; `None` if it is not known.
    pub fn value(&self, stats: &DriverStats) -> Option<f64> {
        stats.number(self.told).ok().map(|value| self.scaled(value))
    }

    /// Its limit; `None` if it has none, or that is not known.
    pub fn limit(&self, stats: &DriverStats) -> Option<f64> {
        stats.number(self.limit?).ok().map(|value| self.scaled(value))
    }

    /// Whether it has reached a limit that it should stay below. That of a PCIe link is what it could be at best.
    pub fn is_at_limit(&self, stats: &DriverStats) -> bool {
        let is_best = matches!(self.told, Told::LinkSpeed | Told::LinkWidth);
        let both = self.value(stats).zip(self.limit(stats));
        !is_best && both.is_some_and(|(value, limit)| value >= limit)
    }

    /// A value of the table in the unit of the key.
    pub fn scaled(&self, value: i64) -> f64 {
        value as f64 / self.per_unit
    }

    /// `38.5`.
    pub fn text(&self, value: f64) -> String {
        format!("{:.*}", self.decimals, value / self.shown_per)
    }

    /// Every key, with where the table has it.
    pub fn keys(&self) -> impl Iterator<Item = (&'static str, Told)> {
        [(self.key, self.told)].into_iter().chain(self.limit_key.zip(self.limit))
    }
}

/// A number without a unit or limit, to which the others are compared.
const PLAIN: Measure = Measure {
    key: "heartbeat",
    limit_key: None,
    label: "heartbeat",
    unit: "",
    decimals: 0,
    help: "A number that the firmware counts up.",
    told: Told::Heartbeat,
    limit: None,
    per_unit: 1.0,
    shown_per: 1.0,
};

/// A clock, which the table has in MHz.
const CLOCK: Measure = Measure { unit: "MHz", per_unit: 1e-6, shown_per: 1e6, ..PLAIN };

/// All of them.
pub const MEASURES: &[Measure] = &[
    Measure {
        key: "temperature_celsius",
        limit_key: Some("temperature_limit_celsius"),
        label: "ASIC temperature",
        unit: "°C",
        decimals: 1,
        help: "Temperature of the chip.",
        told: Told::Temperature,
        limit: Some(Told::TemperatureLimit),
        per_unit: 1e3,
        shown_per: 1.0,
    },
    Measure {
        key: "power_watts",
        limit_key: Some("power_limit_watts"),
        label: "power",
        unit: "W",
        decimals: 1,
        help: "Power.",
        told: Told::Power,
        limit: Some(Told::PowerLimit),
        per_unit: 1e6,
        shown_per: 1.0,
    },
    Measure {
        key: "current_amperes",
        limit_key: Some("current_limit_amperes"),
        label: "current",
        unit: "A",
        decimals: 1,
        help: "Current.",
        told: Told::Current,
        limit: Some(Told::CurrentLimit),
        per_unit: 1e3,
        shown_per: 1.0,
    },
    Measure {
        key: "voltage_volts",
        limit_key: Some("voltage_limit_volts"),
        label: "core voltage",
        unit: "V",
        decimals: 3,
        help: "Voltage of the cores.",
        told: Told::Voltage,
        limit: Some(Told::VoltageLimit),
        per_unit: 1e3,
        shown_per: 1.0,
    },
    Measure {
        key: "aiclk_hertz",
        label: "AI clock",
        help: "Clock of the Tensix cores.",
        told: Told::Aiclk,
        ..CLOCK
    },
    Measure {
        key: "axiclk_hertz",
        label: "AXI clock",
        help: "Clock of the bus.",
        told: Told::Axiclk,
        ..CLOCK
    },
    Measure {
        key: "arcclk_hertz",
        label: "ARC clock",
        help: "Clock of the management processor.",
        told: Told::Arcclk,
        ..CLOCK
    },
    Measure {
        key: "fan_rpm",
        limit_key: Some("fan_limit_rpm"),
        label: "fan",
        unit: "rpm",
        help: "Speed of the fan.",
        told: Told::Fan,
        limit: Some(Told::FanLimit),
        ..PLAIN
    },
    Measure {
        key: "pcie_transfers_per_second",
        limit_key: Some("pcie_transfers_limit_per_second"),
        label: "PCIe speed",
        unit: "GT/s",
        decimals: 1,
        help: "Transfers per second of a lane of the PCIe link. A link that is not used may be slower than it could be.",
        told: Told::LinkSpeed,
        limit: Some(Told::LinkSpeedMax),
        per_unit: 1e-6,
        shown_per: 1e9,
    },
    Measure {
        key: "pcie_lanes",
        limit_key: Some("pcie_lanes_limit"),
        label: "PCIe lanes",
        help: "Lanes of the PCIe link.",
        told: Told::LinkWidth,
        limit: Some(Told::LinkWidthMax),
        ..PLAIN
    },
    PLAIN,
    Measure {
        key: "thermal_trips",
        label: "thermal trips",
        help: "How often the chip was switched off because it was too hot.",
        told: Told::ThermalTrips,
        ..PLAIN
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    #[test]
    fn values_are_in_the_units_of_their_keys() {
        let mut stats = DriverStats::zeroed();
        for (told, value) in
            [(Told::Temperature, 38_500), (Told::Power, 15_000_000), (Told::PowerLimit, 75_000_000)]
        {
            stats.numbers[told as usize] = value;
        }
        let measure = |key: &str| MEASURES.iter().find(|measure| measure.key == key).unwrap();
        let temperature = measure("temperature_celsius");
        assert_eq!(temperature.value(&stats).map(|value| temperature.text(value)).as_deref(), Some("38.5"));
        let power = measure("power_watts");
        assert_eq!((power.value(&stats), power.limit(&stats)), (Some(15.0), Some(75.0)));
        assert_eq!(measure("aiclk_hertz").limit(&stats), None);
        stats.absences.fill(1);
        assert!(MEASURES.iter().all(|one| one.value(&stats).is_none() && one.limit(&stats).is_none()));
    }

    #[test]
    fn a_link_at_its_best_is_no_danger() {
        let mut stats = DriverStats::zeroed();
        for told in [Told::LinkWidth, Told::LinkWidthMax, Told::Power, Told::PowerLimit] {
            stats.numbers[told as usize] = 16;
        }
        let at_limit = |told: Told| Measure::of(told).unwrap().is_at_limit(&stats);
        assert_eq!((at_limit(Told::LinkWidth), at_limit(Told::Power)), (false, true));
    }

    #[test]
    fn every_number_but_the_node_is_measured() {
        let told: Vec<Told> =
            MEASURES.iter().flat_map(|measure| measure.keys().map(|(_, told)| told)).collect();
        let numbers = &Told::ALL[..tt_shm_reader::DRIVER_NUMBERS];
        let missing: Vec<&Told> = numbers.iter().filter(|one| !told.contains(one)).collect();
        assert_eq!(missing, [&Told::NumaNode]);
    }
}
