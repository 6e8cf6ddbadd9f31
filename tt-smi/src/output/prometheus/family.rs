//! Metrics with one name, and how they are written.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};

/// Whether a metric goes up and down, or only up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gauge,
    Counter,
}

/// Names and values that tell a series from others. Values are text for people: escaped for terminals.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels(Vec<(&'static str, String)>);

impl Labels {
    pub(super) fn with(mut self, name: &'static str, value: impl Display) -> Labels {
        self.0.push((name, value.to_string()));
        self
    }

    /// What is not known has no label.
    pub(super) fn with_known(self, name: &'static str, value: Option<impl Display>) -> Labels {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    series: BTreeMap<Labels, f64>,
}

/// All metrics, in the order in which they were first named.
#[derive(Default)]
pub(super) struct Families(Vec<Family>);

impl Families {
    /// Adds a series. Two with the same labels, such as processes that only their own containers tell apart, are
    /// summed: a series that is there twice would make everything unreadable.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        kind: Kind,
        help: &'static str,
        labels: Labels,
        value: f64,
    ) {
        let place = self.0.iter().position(|family| family.name == name).unwrap_or_else(|| {
            self.0.push(Family { name, kind, help, series: BTreeMap::new() });
            self.0.len() - 1
        });
        *self.0[place].series.entry(labels).or_default() += value;
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for Family { name, kind, help, series } in &self.0 {
            let kind = match kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
            };
            writeln!(out, "# HELP {name} {help}")?;
            writeln!(out, "# TYPE {name} {kind}")?;
            for (labels, value) in series {
                writeln!(out, "{name}{} {value}", labels.text())?;
            }
        }
        Ok(())
    }
}

impl Labels {
    /// `{device="0",board="n300"}`, or nothing.
    fn text(&self) -> String {
        let label = |(name, value): &(&str, String)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        };
        match self.0.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", self.0.iter().map(label).collect::<Vec<_>>().join(",")),
        }
    }
}
