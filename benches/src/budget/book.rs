//! The recorded budgets: `benches/budgets.json`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// What all architectures may cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Book(BTreeMap<String, Page>);

/// What one architecture may cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Page {
    /// Instructions per operation, as they were counted and accepted.
    Recorded(Recorded),
    /// None yet, and why: without this line an unknown architecture fails.
    Unrecorded(String),
}

/// Budgets and what they were counted with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// What the counts depend on besides the code.
    #[serde(flatten)]
    pub tools: Tools,
    /// Instructions per operation, by case.
    pub instructions: BTreeMap<String, f64>,
}

/// What counts depend on besides the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    /// `rustc --version`.
    pub rustc: String,
    /// `valgrind --version`.
    pub valgrind: String,
    /// Which clock the writer chose.
    pub clock: String,
}

impl Tools {
    /// Those of this run. The clock is chosen under valgrind as it is here.
    pub fn now() -> Result<Tools, Box<dyn Error>> {
        // Cargo and rustup tell their children which compiler they use.
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let rustc = Command::new(rustc).arg("--version").output();
        let rustc = rustc.map_err(|error| format!("cannot ask rustc for its version: {error}"))?;
        Ok(Tools {
            rustc: String::from_utf8_lossy(&rustc.stdout).trim().to_owned(),
            valgrind: super::callgrind::version()?,
            clock: format!("{:?}", tt_shm_os::ClockKind::best()),
        })
    }

    /// What is not as it was: a reason for counts to differ that is not in the code.
    pub fn differences(&self, now: &Tools) -> Vec<String> {
        let pairs = [(&self.rustc, &now.rustc), (&self.valgrind, &now.valgrind), (&self.clock, &now.clock)];
        let differing = pairs.into_iter().filter(|(then, now)| then != now);
        differing.map(|(then, now)| format!("recorded with {then}, counted with {now}")).collect()
    }
}

impl Book {
    /// Where it is kept.
    pub fn path() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/budgets.json"))
    }

    /// The kept one.
    pub fn read() -> io::Result<Book> {
        Ok(serde_json::from_str(&std::fs::read_to_string(Book::path())?)?)
    }

    /// Keeps it.
    pub fn write(&self) -> io::Result<()> {
        std::fs::write(Book::path(), serde_json::to_string_pretty(self)? + "\n")
    }

    /// What is recorded for an architecture.
    pub fn page(&self, architecture: &str) -> Option<&Page> {
        self.0.get(architecture)
    }

    /// Records what was counted.
    pub fn accept(&mut self, architecture: &str, recorded: Recorded) {
        self.0.insert(architecture.to_owned(), Page::Recorded(recorded));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::cases::CASES;

    #[test]
    fn the_book_can_be_read_and_has_every_case() {
        let book = Book::read().unwrap();
        for page in book.0.values() {
            if let Page::Recorded(page) = page {
                let mut cases: Vec<&str> = CASES.iter().map(|case| case.name).collect();
                cases.sort_unstable();
                assert!(page.instructions.keys().eq(cases), "{:?}", page.instructions.keys());
            }
        }
        assert!(book.page("x86_64").is_some() && book.page("aarch64").is_some());
    }

    #[test]
    fn other_tools_are_told() {
        let tools = |rustc: &str| Tools {
            rustc: rustc.to_owned(),
            valgrind: "valgrind-3.19.0".to_owned(),
            clock: "Tsc".to_owned(),
        };
        assert!(tools("rustc 1.95.0").differences(&tools("rustc 1.95.0")).is_empty());
        let told = tools("rustc 1.95.0").differences(&tools("rustc 1.96.0"));
        assert_eq!(told, ["recorded with rustc 1.95.0, counted with rustc 1.96.0"]);
    }
}
