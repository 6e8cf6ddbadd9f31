//! A finding of a check, and the advice that goes with it.

/// Severity; the highest one is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Pass,
    /// Something is missing or limited; the rest works.
    Warn,
    /// Something cannot work.
    Fail,
}

impl Level {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Pass => "pass",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }
}

/// The result of a check. Texts may contain foreign names: escape them before printing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) found: String,
    pub(super) advice: Option<String>,
}

impl Finding {
    /// No problem.
    pub(super) fn pass(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, level: Level::Pass, found: found.into(), advice: None }
    }

    /// A limitation.
    pub(super) fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { check, level: Level::Warn, found: found.into(), advice: Some(advice.into()) }
    }

    /// An error.
    pub(super) fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { level: Level::Fail, ..Finding::warn(check, found, advice) }
    }

    /// Adds a hint without making it a warning.
    pub(super) fn hint(self, advice: impl Into<String>) -> Finding {
        Finding { advice: Some(advice.into()), ..self }
    }
}
