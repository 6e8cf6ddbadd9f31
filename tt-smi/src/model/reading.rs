//! What a model is made from: all rows at one moment, and where they come from.

use std::sync::Arc;

use tt_shm_reader::{TableError, TableSnapshot};

use super::Clock;
use crate::segments::Hidden;
use crate::units;

/// Where figures come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A running aggregator.
    Table {
        pid: u64,
        /// How old its figures are.
        age_ns: u64,
    },
    /// This process.
    Embedded,
}

impl Origin {
    /// A description for people.
    pub fn describe(&self) -> String {
        match self {
            Origin::Table { pid, age_ns } => {
                format!("aggregator {pid}, {} old", units::age(*age_ns))
            }
            Origin::Embedded => "no aggregator, read directly".to_owned(),
        }
    }

    /// The running aggregator's pid.
    pub fn aggregator(&self) -> Option<u64> {
        match self {
            Origin::Table { pid, .. } => Some(*pid),
            Origin::Embedded => None,
        }
    }

    /// How old the figures of a table are.
    pub fn age_ms(&self) -> u64 {
        match self {
            Origin::Table { age_ns, .. } => age_ns / 1_000_000,
            Origin::Embedded => 0,
        }
    }
}

/// All rows at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    pub snapshot: TableSnapshot,
    /// Where it comes from.
    pub origin: Origin,
    /// When it was read.
    pub clock: Clock,
    /// Whether rates are known, which takes a second of aggregation.
    pub rates_known: bool,
    /// Segments that the backend could not read.
    pub hidden: Vec<Hidden>,
    /// Why a table that exists is not read.
    pub refused_table: Option<Arc<TableError>>,
}

/// Age of the figures, which include everything reported before that; `None` before the first ones.
pub fn figures_age_ns(snapshot: &TableSnapshot, now: Clock) -> Option<u64> {
    Some(snapshot.as_of).filter(|as_of| *as_of != 0).map(|as_of| now.age_ns(as_of))
}
