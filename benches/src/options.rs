//! Arguments and environment, the same for all benchmarks.

use std::path::PathBuf;
use tt_shm_measure::timing::Effort;

/// Set to `1` for a run of a few seconds.
pub const QUICK_ENV: &str = "BENCH_QUICK";
/// A folder that results are written to, one file per benchmark.
pub const JSON_ENV: &str = "BENCH_JSON";

/// A group of cases of a benchmark: its name, and what measures it.
pub type Group<B> = (&'static str, fn(&mut B));

/// What the user asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A few seconds instead of a careful run.
    pub quick: bool,
    /// Where to write results.
    pub json: Option<PathBuf>,
    /// Only groups of cases whose name contains one of these.
    pub filters: Vec<String>,
}

impl Options {
    /// From the arguments and the environment. Arguments of cargo's own harness are tolerated. Without
    /// `--bench`, which `cargo bench` passes and `cargo test` does not, the run is quick.
    pub fn from_env() -> Options {
        let mut options = Options::parse(std::env::args().skip(1));
        options.quick |= std::env::var_os(QUICK_ENV).is_some_and(|value| value == "1");
        options.json = options.json.or_else(|| std::env::var_os(JSON_ENV).map(PathBuf::from));
        options
    }

    fn parse(arguments: impl Iterator<Item = String>) -> Options {
        let mut options = Options { quick: true, ..Options::default() };
        let mut asked_quick = false;
        for argument in arguments {
            match argument.as_str() {
                "--bench" => options.quick = false,
                "--quick" => asked_quick = true,
                "--json" => options.json = Some(results_folder()),
                other => match other.strip_prefix("--json=") {
                    Some(folder) => options.json = Some(PathBuf::from(folder)),
                    // Some option of cargo's harness, such as --nocapture.
                    None if other.starts_with('-') => {}
                    None => options.filters.push(other.to_owned()),
                },
            }
        }
        options.quick |= asked_quick;
        options
    }

    /// Whether a group of cases is wanted.
    pub fn wants(&self, group: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| group.contains(filter.as_str()))
    }

    /// Runs the groups of cases that are wanted.
    pub fn run<B>(&self, groups: &[Group<B>], bench: &mut B) {
        for (name, group) in groups {
            if self.wants(name) {
                group(bench);
            }
        }
    }

    /// How much is done for a case that takes tens of nanoseconds per event.
    pub fn effort(&self) -> Effort {
        if self.quick {
            Effort { rounds: 20, events: 5_000, samples: 50_000 }
        } else {
            Effort { rounds: 300, events: 10_000, samples: 1_000_000 }
        }
    }

    /// One of two numbers: for a careful run, or for a quick one.
    pub fn pick<T>(&self, careful: T, quick: T) -> T {
        if self.quick { quick } else { careful }
    }
}

/// Where results are kept that the documentation is made from.
pub fn results_folder() -> PathBuf {
    documentation_folder().join("performance").join("results")
}

/// Results of a run on another machine, which the documentation has beside them.
pub fn other_results_folder() -> PathBuf {
    documentation_folder().join("performance").join("results-amd")
}

/// The repository's `docs`.
pub fn documentation_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Options {
        Options::parse(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn cargos_arguments_are_tolerated() {
        let options = parsed(&["--bench", "--nocapture", "shared"]);
        assert!(!options.quick);
        assert_eq!(options.filters, ["shared"]);
        assert!(options.wants("shared, 1000 live") && !options.wants("exclusive"));
    }

    #[test]
    fn a_test_run_is_quick_and_so_is_one_that_asks() {
        assert!(parsed(&[]).quick);
        assert!(parsed(&["--quick", "--bench"]).quick);
    }

    #[test]
    fn results_go_where_they_are_wanted() {
        assert_eq!(parsed(&["--json=/tmp/x"]).json, Some(PathBuf::from("/tmp/x")));
        assert_eq!(parsed(&["--json"]).json, Some(results_folder()));
        assert_eq!(parsed(&[]).json, None);
    }
}
