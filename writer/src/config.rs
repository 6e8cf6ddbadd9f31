//! Settings: those of the builder, then the environment, then the defaults.

use crate::error::OpenError;
use crate::tracker::Tracker;
use shm_layout::{MAX_NAME_BYTES, MAX_ROWS, RING_SLOTS, Source};
use tt_shm_os::Namespace;

/// Tracking is on only if this is `1`, unless [`Builder::enabled`] overrides it.
pub const ENABLED_ENV: &str = "TT_ALLOC_TRACKING_ENABLED";
/// If `1`, allocations without a call site get the backtrace of the caller. Slow; for debugging.
pub const BACKTRACE_ENV: &str = "TT_ALLOC_TRACKING_BACKTRACE";
/// Set by `tt-smi run` for the processes that it counts: `<namespace>.<16 hex digits>`. Any other value, or a
/// namespace other than the tracker's, means none.
pub const RUN_ENV: &str = "TT_SHM_RUN";
/// The number of slots of the event ring, a power of two; default 16384 (1 MiB).
pub const RING_SLOTS_ENV: &str = "TT_SHM_RING_SLOTS";
/// The most rows of the live list; default 2097152 (64 bytes each, used only when needed).
pub const LIVE_CAPACITY_ENV: &str = "TT_SHM_LIVE_CAPACITY";

/// Slots of the event ring if neither code nor [`RING_SLOTS_ENV`] says otherwise.
pub const DEFAULT_RING_SLOTS: u64 = 1 << 14;
/// Most rows of the live list if neither code nor [`LIVE_CAPACITY_ENV`] says otherwise.
pub const DEFAULT_LIVE_CAPACITY: u64 = 1 << 21;
const DEFAULT_NAME_BYTES: u64 = 4 << 20;

/// The checked settings of an open tracker.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) namespace: Namespace,
    pub(crate) ring_slots: u64,
    pub(crate) live_capacity: u64,
    pub(crate) name_bytes: u64,
    pub(crate) backtrace: bool,
    /// 0 if none.
    pub(crate) run: u64,
    pub(crate) source: Source,
    /// 0 if this process reports for itself.
    pub(crate) on_behalf_of: u32,
    /// `None`: that of this process.
    pub(crate) process_name: Option<String>,
}

/// Settings of a tracker to be opened. What is not set comes from the environment.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    enabled: Option<bool>,
    namespace: Option<String>,
    ring_slots: Option<u64>,
    live_capacity: Option<u64>,
    name_bytes: Option<u64>,
    backtrace: Option<bool>,
    source: Source,
    on_behalf_of: u32,
    process_name: Option<String>,
}

impl Builder {
    /// Turns tracking on or off, regardless of [`ENABLED_ENV`].
    pub fn enabled(mut self, enabled: bool) -> Builder {
        self.enabled = Some(enabled);
        self
    }

    /// Sets the namespace, instead of `TT_SHM_NAMESPACE`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Builder {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the number of slots of the event ring, a power of two, instead of [`RING_SLOTS_ENV`]. A larger
    /// ring lets observers fall further behind before they miss events; totals are exact either way.
    pub fn ring_slots(mut self, slots: u64) -> Builder {
        self.ring_slots = Some(slots);
        self
    }

    /// Sets the most rows of the live list, instead of [`LIVE_CAPACITY_ENV`]. Beyond that, totals stay exact
    /// and the list is marked as incomplete.
    pub fn live_capacity(mut self, rows: u64) -> Builder {
        self.live_capacity = Some(rows);
        self
    }

    /// Sets the most bytes of interned names; default 4 MiB, used only when needed.
    pub fn name_bytes(mut self, bytes: u64) -> Builder {
        self.name_bytes = Some(bytes);
        self
    }

    /// Sets whether allocations without a call site get one, instead of [`BACKTRACE_ENV`].
    pub fn backtrace(mut self, backtrace: bool) -> Builder {
        self.backtrace = Some(backtrace);
        self
    }

    /// Sets the kind of writer: [`Source::Ring`] unless it is a library or another process.
    pub fn source(mut self, source: Source) -> Builder {
        self.source = source;
        self
    }

    /// Sets the process that this one reports for, by its pid in this PID namespace.
    pub fn on_behalf_of(mut self, pid: u32) -> Builder {
        self.on_behalf_of = pid;
        self
    }

    /// Sets the name that monitors show, at most 64 bytes, instead of that of this process.
    pub fn process_name(mut self, name: impl Into<String>) -> Builder {
        self.process_name = Some(name.into());
        self
    }

    /// Opens the tracker: with a segment in /dev/shm if tracking is enabled, otherwise one whose calls do
    /// nothing.
    pub fn open(self) -> Result<Tracker, OpenError> {
        if self.enabled.unwrap_or_else(|| is_set(ENABLED_ENV)) {
            Tracker::start(self.config()?)
        } else {
            Ok(Tracker::disabled())
        }
    }

    /// An error if [`Builder::open`] would refuse the settings, whether or not tracking is enabled. Opens nothing.
    pub fn check(&self) -> Result<(), OpenError> {
        self.clone().config().map(drop)
    }

    fn config(self) -> Result<Config, OpenError> {
        let namespace = match self.namespace {
            Some(name) => Namespace::new(&name)?,
            None => Namespace::from_env()?,
        };
        let ring_slots = number(self.ring_slots, RING_SLOTS_ENV, DEFAULT_RING_SLOTS)?;
        if !ring_slots.is_power_of_two() || !RING_SLOTS.contains(&ring_slots) {
            let expected =
                format!("must be a power of two from {} to {}", RING_SLOTS.start(), RING_SLOTS.end());
            return Err(out_of_range(RING_SLOTS_ENV, ring_slots, expected));
        }
        let live_capacity = number(self.live_capacity, LIVE_CAPACITY_ENV, DEFAULT_LIVE_CAPACITY)?;
        if !(1..=MAX_ROWS).contains(&live_capacity) {
            let expected = format!("must be from 1 to {MAX_ROWS}");
            return Err(out_of_range(LIVE_CAPACITY_ENV, live_capacity, expected));
        }
        let name_bytes = self.name_bytes.unwrap_or(DEFAULT_NAME_BYTES);
        if !(8..=MAX_NAME_BYTES).contains(&name_bytes) {
            return Err(out_of_range(
                "name_bytes",
                name_bytes,
                format!("must be from 8 to {MAX_NAME_BYTES}"),
            ));
        }
        let backtrace = self.backtrace.unwrap_or_else(|| is_set(BACKTRACE_ENV));
        let run = std::env::var(RUN_ENV).ok().and_then(|text| run_in(&text, &namespace)).unwrap_or(0);
        let (source, on_behalf_of, process_name) = (self.source, self.on_behalf_of, self.process_name);
        Ok(Config {
            namespace,
            ring_slots,
            live_capacity,
            name_bytes,
            backtrace,
            run,
            source,
            on_behalf_of,
            process_name,
        })
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// Parses the run from the environment. Whatever the text is, the host gets its tracker: at worst the run
/// does not count it.
fn run_in(text: &str, namespace: &Namespace) -> Option<u64> {
    let (name, id) = text.rsplit_once('.')?;
    let digits = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (name == namespace.as_str() && digits).then(|| u64::from_str_radix(id, 16).ok())?
}

fn number(given: Option<u64>, variable: &'static str, default: u64) -> Result<u64, OpenError> {
    if let Some(given) = given {
        return Ok(given);
    }
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => text.parse().map_err(|_| OpenError::Setting {
            name: variable,
            value: text,
            expected: "must be a whole number".into(),
        }),
        _ => Ok(default),
    }
}

fn out_of_range(name: &'static str, value: u64, expected: String) -> OpenError {
    OpenError::Setting { name, value: value.to_string(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_taken_only_as_it_is_written() {
        let namespace = Namespace::new("ci-1").unwrap();
        let run = |text: &str| run_in(text, &namespace);
        assert_eq!(run("ci-1.00000000000000ff"), Some(255));
        assert_eq!(run("ci-1.ffffffffffffffff"), Some(u64::MAX));
        for text in [
            "",
            ".",
            "00000000000000ff",
            "ci-1.ff",
            "ci-1.+0000000000000ff",
            "ci-1.00000000000000fg",
            "ci-1.00000000000000ff ",
            "ci-1.000000000000000ff",
            "default.00000000000000ff",
            "ci-1.\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
        ] {
            assert_eq!(run(text), None, "{text:?}");
        }
    }
}
