//! The schema of kept results, the same for all benchmarks.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Version of the schema.
pub const SCHEMA: u32 = 1;

/// Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// One of 100 is slower.
    pub p99: f64,
    /// One of 1 000 is slower.
    pub p99_9: f64,
    /// One of 10 000 is slower.
    pub p99_99: f64,
    /// The slowest.
    pub max: f64,
}

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

/// The machine, without anything that tells which one it is.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split(['-', '\n']).next().unwrap_or_default().to_owned();
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
    let gib = memory.split(' ').next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1048576.0;
    let guest = field("/proc/cpuinfo", "flags").is_some_and(|flags| flags.contains("hypervisor"));
    let kind = if guest { "virtual machine" } else { "bare metal" };
    format!("{cpu}, {cores} cores ({kind}), {gib:.0} GiB, Linux {kernel}")
}

fn field(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The load average of the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
