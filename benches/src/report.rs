//! Shows results as they come and keeps them at the end.

use crate::options::Options;
use crate::outcome::{Case, Outcome};
use serde_json::Value;
use std::path::PathBuf;
use tt_shm_measure::timing::Measured;

/// A base that other cases are a multiple of.
#[derive(Clone, Debug)]
pub struct Base {
    name: String,
    ns: f64,
}

/// One benchmark's output.
#[derive(Debug)]
pub struct Report {
    outcome: Outcome,
    json: Option<PathBuf>,
}

impl Report {
    /// Prints the head of the table.
    pub fn new(bench: &str, options: &Options) -> Report {
        let outcome = Outcome::new(bench, options.quick);
        println!("\n{bench}: {}, load {:.1}", outcome.machine, outcome.load);
        println!(
            "{:<58} {:>12} {:>9} {:>9} {:>9} {:>9} {:>11}  multiple of",
            "what", "ns", "p50", "p99", "p99.9", "p99.99", "max"
        );
        // Results of a part would take the place of those of the whole.
        let json = options.json.clone().filter(|_| options.filters.is_empty());
        if options.json.is_some() && json.is_none() {
            println!("(only a part is run: no results are written)");
        }
        Report { outcome, json }
    }

    /// A case by itself.
    pub fn add(&mut self, name: &str, parameters: &[(&str, Value)], measured: Measured) -> Base {
        self.push(name, parameters, measured, None)
    }

    /// A case as a multiple of another one of this run.
    pub fn add_to(
        &mut self,
        base: &Base,
        name: &str,
        parameters: &[(&str, Value)],
        measured: Measured,
    ) -> Base {
        self.push(name, parameters, measured, Some(base))
    }

    /// Says why something was not measured.
    pub fn skip(&self, what: &str, why: &str) {
        println!("{what:<58} skipped: {why}");
    }

    /// Writes the results if that was asked for.
    pub fn finish(self) {
        if let Some(folder) = &self.json {
            self.outcome.write(folder).expect("the folder for results can be written");
        }
    }

    fn push(
        &mut self,
        name: &str,
        parameters: &[(&str, Value)],
        measured: Measured,
        base: Option<&Base>,
    ) -> Base {
        let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let case = Case {
            name: name.to_owned(),
            parameters,
            ns: measured.ns,
            percentiles: measured.percentiles,
            ratio: base.map(|base| measured.ns / base.ns),
            ratio_of: base.map(|base| base.name.clone()),
        };
        println!("{}", line(&case));
        self.outcome.results.push(case);
        Base { name: name.to_owned(), ns: measured.ns }
    }
}

fn line(case: &Case) -> String {
    let parameters = case.parameters.keys().filter_map(|key| Some(format!("{key} {}", case.text(key)?)));
    let what: Vec<String> = std::iter::once(case.name.clone()).chain(parameters).collect();
    let mut line = format!("{:<58} {:>12.1}", what.join(", "), case.ns);
    line += &match case.percentiles {
        Some(p) => {
            format!(" {:>9.0} {:>9.0} {:>9.0} {:>9.0} {:>11.0}", p.p50, p.p99, p.p99_9, p.p99_99, p.max)
        }
        None => " ".repeat(52),
    };
    if let (Some(ratio), Some(of)) = (case.ratio, &case.ratio_of) {
        line += &format!("  {ratio:.2} x {of}");
    }
    line.trim_end().to_owned()
}
