//! Metrics with one name, and how they are written.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::io::{self, Write};

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only goes up.
    Counter,
    /// Always 1; its labels are what it tells.
    Info,
}

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// Prometheus 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl TextFormat {
    /// What a client that accepts these types gets: OpenMetrics, unless it names others only.
    pub fn accepted(accept: &str) -> TextFormat {
        match accept.trim().is_empty()
            || accept.contains("application/openmetrics-text")
            || accept.trim() == "*/*"
        {
            true => TextFormat::OpenMetrics,
            false => TextFormat::Prometheus,
        }
    }

    /// Its name in HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            TextFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Names and values that tell a series from others. Values are text for people: escaped for terminals.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels(Vec<(&'static str, String)>);

impl Labels {
    pub(crate) fn with(mut self, name: &'static str, value: impl Display) -> Labels {
        self.0.push((name, value.to_string()));
        self
    }

    /// What is not known has no label.
    pub(crate) fn with_known(self, name: &'static str, value: Option<impl Display>) -> Labels {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Without some of them.
    pub(super) fn without(mut self, dropped: &[String]) -> Labels {
        self.0.retain(|(name, _)| !dropped.iter().any(|dropped| dropped == name));
        self
    }
}

/// What a series is called, and what it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
}

/// A series and its value.
pub(crate) type Sample = (About, Labels, f64);

struct Family {
    about: About,
    series: BTreeMap<Labels, f64>,
}

/// All metrics, in the order in which they were first named.
#[derive(Default)]
pub(crate) struct Families {
    families: Vec<Family>,
    places: HashMap<&'static str, usize>,
    /// How many series there are.
    pub(crate) series: usize,
}

impl Families {
    /// Adds a series. Two with the same labels are summed: a series that is there twice would make everything
    /// unreadable.
    pub(crate) fn add(&mut self, (about, labels, value): Sample) {
        let families = &mut self.families;
        let place = *self.places.entry(about.name).or_insert_with(|| {
            families.push(Family { about, series: BTreeMap::new() });
            families.len() - 1
        });
        let before = families[place].series.len();
        *families[place].series.entry(labels).or_default() += value;
        self.series += families[place].series.len() - before;
    }

    /// Writes all, with the same labels before those of each series.
    pub(crate) fn write(&self, out: &mut dyn Write, format: TextFormat, constant: &str) -> io::Result<()> {
        for Family { about, series } in &self.families {
            about.write(out, format)?;
            for (labels, value) in series {
                writeln!(out, "{}{} {value}", about.name, labels.text(constant))?;
            }
        }
        match format {
            TextFormat::Prometheus => Ok(()),
            TextFormat::OpenMetrics => writeln!(out, "# EOF"),
        }
    }
}

impl About {
    fn write(&self, out: &mut dyn Write, format: TextFormat) -> io::Result<()> {
        let (word, suffix) = match self.kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
            Kind::Info => ("info", "_info"),
        };
        if format == TextFormat::Prometheus {
            writeln!(out, "# HELP {} {}", self.name, self.help)?;
            let word = if self.kind == Kind::Info { "gauge" } else { word };
            return writeln!(out, "# TYPE {} {word}", self.name);
        }
        // There the family has the name without what its kind adds.
        let family = self.name.strip_suffix(suffix).unwrap_or(self.name);
        writeln!(out, "# HELP {family} {}", escaped(self.help))?;
        writeln!(out, "# TYPE {family} {word}")?;
        let unit = ["bytes", "seconds", "celsius", "watts", "amperes", "volts", "hertz"];
        match unit.iter().find(|unit| family.ends_with(&format!("_{unit}"))) {
            Some(unit) => writeln!(out, "# UNIT {family} {unit}"),
            None => Ok(()),
        }
    }
}

impl Labels {
    /// `{device="0",board="n300"}`, or nothing.
    fn text(&self, constant: &str) -> String {
        let own = self.0.iter().map(|(name, value)| label(name, value));
        let all: Vec<String> =
            Some(constant.to_owned()).filter(|text| !text.is_empty()).into_iter().chain(own).collect();
        if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
    }
}

/// `board="n300"`.
pub(crate) fn label(name: &str, value: &str) -> String {
    format!("{name}=\"{}\"", escaped(value))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
