//! What was found, before it is shown.

use tt_shm_measure::launches::Launch;
use tt_shm_measure::timing::Measured;

use crate::bench::notes::Circumstances;

/// Keys of cases that others are compared with.
pub(crate) const LIMIT: &str = "limit";
pub(crate) const EMIT_SHARED: &str = "emit_shared";
pub(crate) const SOCKET_SEND: &str = "socket_send";
pub(crate) const ROW_READ: &str = "row_read";
pub(crate) const SOCKET_QUERY: &str = "socket_query";
pub(crate) const DISABLED: &str = "disabled";
pub(crate) const LOOP_ALONE: &str = "loop_alone";

/// One thing that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// What its keys begin with in JSON.
    pub key: &'static str,
    /// What it is called in the table.
    pub name: &'static str,
    /// Whether it tells an event, so that a multiple of the limit means something.
    pub is_event: bool,
}

/// One case and what it came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finding {
    pub case: Case,
    /// Its figure and distribution.
    pub measured: Measured,
}

/// What tracking adds to a dispatch on one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    /// Of a program that is cached, or never was seen.
    pub launch: Launch,
    /// Host work between two dispatches, in microseconds.
    pub work_us: u64,
    /// What is added, in nanoseconds.
    pub ns: f64,
    /// The same as a share of a dispatch without tracking.
    pub percent: f64,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// The machine, and what may have disturbed.
    pub circumstances: Circumstances,
    /// How long it took.
    pub seconds: f64,
    /// The cases, in the order in which they are shown.
    pub findings: Vec<Finding>,
    /// What a dispatch loop notices.
    pub added: Vec<Added>,
}

impl Findings {
    /// The figure of a case. All are there: they come from one list.
    pub(crate) fn ns(&self, key: &str) -> f64 {
        self.findings.iter().find(|found| found.case.key == key).map_or(f64::NAN, |found| found.measured.ns)
    }

    /// How many times another case's figure.
    pub(crate) fn ratio(&self, key: &str, of: &str) -> f64 {
        self.ns(key) / self.ns(of)
    }

    /// What a call costs while tracking is off, without the loop around it. Noise may be larger than that.
    pub(crate) fn disabled_beyond_loop_ns(&self) -> f64 {
        (self.ns(DISABLED) - self.ns(LOOP_ALONE)).max(0.0)
    }
}
