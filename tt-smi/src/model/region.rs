//! What unmodified tt-metal publishes about a device: figures of processes that do not report by themselves.

use serde::Serialize;
use tt_shm_reader::{RegionStats, region_flags, region_kind, region_state, text};
use tt_shm_region::INEXACTNESS;

use super::as_json::words;
use crate::escape::Foreign;
#[cfg(test)]
use crate::schema;
use crate::units::bytes;

/// The source of what regions tell.
pub(crate) const TT_METAL: &str = "tt-metal";

/// What tt-metal's region of a device says. Its figures are never exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceRegion {
    /// Version of its layout.
    pub version: u64,
    /// Sums of the processes that may be alive and do not report by themselves. Bytes that were requested.
    #[serde(flatten)]
    pub silent: RegionBytes,
    /// Why its figures are not exact.
    #[serde(serialize_with = "reasons")]
    #[cfg_attr(test, schemars(schema_with = "reasons_schema"))]
    pub incomplete_because: (),
    /// By slot.
    pub processes: Vec<RegionProcess>,
    /// What contradicts itself in it; `None` if nothing does.
    pub faults: Option<Foreign>,
}

/// Bytes that were requested, as tt-metal counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegionBytes {
    /// DRAM.
    pub dram_bytes: u64,
    /// L1.
    pub l1_bytes: u64,
    /// L1_SMALL.
    pub l1_small_bytes: u64,
    /// Trace.
    pub trace_bytes: u64,
    /// Circular buffers.
    pub cb_bytes: u64,
}

/// A process in a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegionProcess {
    /// Its pid here; `None` if not known.
    pub pid: Option<u64>,
    /// Its pid as it sees itself.
    pub namespace_pid: u64,
    /// Its name.
    pub name: Foreign,
    /// Whether it lives.
    pub state: RegionState,
    /// Whether it reports by itself, so that these bytes are not used.
    pub reports: bool,
    /// What it requested.
    #[serde(flatten)]
    pub bytes: RegionBytes,
    /// Why its state is not certain, or what became of it; `None` if it lives.
    pub note: Option<Foreign>,
}

/// Whether a process in a region lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionState {
    /// It lives.
    Alive,
    /// It has ended, and its bytes stayed behind.
    Ghost,
    /// That is not certain.
    Uncertain,
}

words!(RegionState { Alive => "alive", Ghost => "ghost", Uncertain => "uncertain" });

impl DeviceRegion {
    /// Resolves the rows of a device; `None` if it has no region.
    pub fn of<'a>(rows: impl Iterator<Item = &'a RegionStats>) -> Option<DeviceRegion> {
        let (mut found, mut region) = (false, DeviceRegion::default());
        for stats in rows {
            match stats.kind {
                region_kind::REGION => {
                    (found, region.version) = (true, stats.version);
                    region.faults = known_text(&stats.note);
                }
                region_kind::PROCESS => {
                    found = true;
                    if stats.is_silent() {
                        region.silent.add(&RegionBytes::of(stats));
                    }
                    region.processes.push(RegionProcess::new(stats));
                }
                _ => {}
            }
        }
        found.then_some(region)
    }

    /// Whether a process in it may be alive and does not report by itself.
    pub fn is_used(&self) -> bool {
        self.processes.iter().any(|process| process.is_silent())
    }
}

impl RegionProcess {
    fn new(stats: &RegionStats) -> RegionProcess {
        RegionProcess {
            pid: Some(stats.pid_here).filter(|pid| *pid != 0),
            namespace_pid: stats.pid,
            name: text::decode(&stats.name).into(),
            state: match stats.state {
                region_state::ALIVE => RegionState::Alive,
                region_state::GHOST => RegionState::Ghost,
                _ => RegionState::Uncertain,
            },
            reports: stats.flags & region_flags::REPORTS != 0,
            bytes: RegionBytes::of(stats),
            note: known_text(&stats.note),
        }
    }

    /// Whether it may be alive and does not report by itself.
    pub fn is_silent(&self) -> bool {
        self.state != RegionState::Ghost && !self.reports
    }
}

impl RegionBytes {
    fn of(stats: &RegionStats) -> RegionBytes {
        RegionBytes {
            dram_bytes: stats.dram_bytes,
            l1_bytes: stats.l1_bytes,
            l1_small_bytes: stats.l1_small_bytes,
            trace_bytes: stats.trace_bytes,
            cb_bytes: stats.cb_bytes,
        }
    }

    /// Adds what others requested.
    pub fn add(&mut self, other: &RegionBytes) {
        let RegionBytes { dram_bytes, l1_bytes, l1_small_bytes, trace_bytes, cb_bytes } = self;
        let fields = [
            (dram_bytes, other.dram_bytes),
            (l1_bytes, other.l1_bytes),
            (l1_small_bytes, other.l1_small_bytes),
            (trace_bytes, other.trace_bytes),
            (cb_bytes, other.cb_bytes),
        ];
        fields.into_iter().for_each(|(field, more)| *field = field.saturating_add(more));
    }

    /// `5.0 MiB of DRAM and 1.0 MiB of L1`, as tt-metal's memories are shown elsewhere.
    pub fn words(&self) -> String {
        let dram = self.dram_bytes.saturating_add(self.trace_bytes);
        let l1 = self.l1_bytes.saturating_add(self.l1_small_bytes).saturating_add(self.cb_bytes);
        format!("{} of DRAM and {} of L1", bytes(dram), bytes(l1))
    }
}

fn known_text(field: &[u8]) -> Option<Foreign> {
    Some(text::decode(field)).filter(|text| !text.is_empty()).map(Foreign::from)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn reasons<S: serde::Serializer>((): &(), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(INEXACTNESS.iter().map(|reason| reason.text))
}

#[cfg(test)]
fn reasons_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schema::named(
        schemars::json_schema!({ "type": "array", "items": { "type": "string" } }),
        "In a sentence each.",
    )
}
