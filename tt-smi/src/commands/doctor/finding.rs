//! What a check found, and what to do about it.

/// How bad it is; the worst of all is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Pass,
    /// Something is missing or limited, and the rest works.
    Warn,
    /// It cannot work like this.
    Fail,
}

impl Level {
    /// The word for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Pass => "pass",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }
}

/// What a check found. Texts may hold foreign names: escape them before showing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) found: String,
    pub(super) advice: Option<String>,
}

impl Finding {
    /// All is well.
    pub(super) fn pass(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, level: Level::Pass, found: found.into(), advice: None }
    }

    /// Something is limited.
    pub(super) fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { check, level: Level::Warn, found: found.into(), advice: Some(advice.into()) }
    }

    /// Something cannot work.
    pub(super) fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { level: Level::Fail, ..Finding::warn(check, found, advice) }
    }

    /// The same with a hint that is no warning.
    pub(super) fn hint(self, advice: impl Into<String>) -> Finding {
        Finding { advice: Some(advice.into()), ..self }
    }
}
