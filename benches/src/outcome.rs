//! The schema of kept results, the same for all benchmarks.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tt_shm_measure::machine::{load, machine};
use tt_shm_measure::timing::Percentiles;

/// Version of the schema.
pub const SCHEMA: u32 = 1;

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What was measured; cases that differ only in parameters have the same name.
    pub name: String,
    /// In which circumstances.
    pub parameters: BTreeMap<String, Value>,
    /// Nanoseconds per event, call or whatever the name says.
    pub ns: f64,
    /// Of single events.
    pub percentiles: Option<Percentiles>,
    /// How many times another case's `ns`, in the same run.
    pub ratio: Option<f64>,
    /// Which one.
    pub ratio_of: Option<String>,
}

impl Case {
    /// A parameter as a number.
    pub fn number(&self, parameter: &str) -> Option<f64> {
        self.parameters.get(parameter)?.as_f64()
    }

    /// A parameter as text, whatever it is.
    pub fn text(&self, parameter: &str) -> Option<String> {
        Some(match self.parameters.get(parameter)? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// Whether the name is this and every parameter given has this value.
    pub fn is(&self, name: &str, parameters: &[(&str, &str)]) -> bool {
        self.name == name && parameters.iter().all(|(key, value)| self.text(key).as_deref() == Some(value))
    }

    /// Whether it is the same case of another run.
    pub fn is_same(&self, other: &Case) -> bool {
        self.name == other.name && self.parameters == other.parameters
    }
}

/// One benchmark's results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the benchmark.
    pub bench: String,
    /// Whether it was a quick run.
    pub quick: bool,
    /// Processor, cores, kernel, memory.
    pub machine: String,
    /// Runnable threads before it began, from the load average: a quiet machine has less than one.
    pub load: f64,
    /// The cases in order.
    pub results: Vec<Case>,
}

impl Outcome {
    /// Nothing yet.
    pub fn new(bench: &str, quick: bool) -> Outcome {
        let results = Vec::new();
        Outcome { schema: SCHEMA, bench: bench.to_owned(), quick, machine: machine(), load: load(), results }
    }

    /// Writes `<bench>.json` into a folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(folder.join(format!("{}.json", self.bench)), text + "\n")
    }

    /// Reads `<bench>.json` of a folder.
    pub fn read(folder: &Path, bench: &str) -> io::Result<Outcome> {
        let text = std::fs::read_to_string(folder.join(format!("{bench}.json")))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The first case with this name and these parameters.
    pub fn find(&self, name: &str, parameters: &[(&str, &str)]) -> Option<&Case> {
        self.results.iter().find(|case| case.is(name, parameters))
    }
}
