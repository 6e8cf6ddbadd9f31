//! The data that the screen shows, and which of them a view needs.

use std::sync::Arc;

use tt_shm_reader::{Bucket, TelemetryBucket};

use super::trends::Trends;
use crate::lists::{allocations, cores::DeviceCores, events::Seen, programs, suspects::steps::StepEnd};
use crate::model::Model;

/// What a view shows besides the figures of devices and processes. Reading lists takes time, so only the list that is
/// shown is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Needs {
    /// Nothing more.
    #[default]
    Figures,
    /// The history of all devices over the last minute, as often as it has something new.
    LastMinute,
    /// The history of all devices at a resolution (0 a minute, 1 an hour, 2 a day).
    History(usize),
    /// Telemetry of all devices.
    Telemetry,
    Allocations,
    Events,
    Programs,
    /// Live allocations, and the L1 of all cores.
    Map,
    /// The L1 of all cores.
    Cores,
}

/// All data of one refresh.
#[derive(Debug)]
pub struct Data {
    /// Devices, processes, problems.
    pub model: Model,
    /// What the view asked for.
    pub more: More,
    /// Live allocations, if they were just read: for the view, or periodically for leak detection.
    pub live: Option<Live>,
    /// What each process used of DRAM over the last minute, as far as it was seen, by identity.
    pub trends: Arc<Trends>,
}

/// Live allocations, and the last steps of their processes.
#[derive(Clone, Debug)]
pub struct Live {
    pub listing: Arc<allocations::Listing>,
    /// The last step that each process ended.
    pub ends: Vec<StepEnd>,
}

/// The data a view asked for; those of the previous view until the next refresh.
#[derive(Debug, Default)]
pub enum More {
    /// Nothing new: the view keeps what it has. Lists are read less often than figures.
    #[default]
    None,
    /// By device index. Shared, because a view keeps it until the next arrives.
    History(Arc<History>),
    /// Telemetry of the last minutes, by device index, oldest first.
    Telemetry(Vec<Vec<TelemetryBucket>>),
    /// Live allocations. Shared, because a view keeps them until the next list arrives.
    Allocations(Arc<allocations::Listing>),
    /// New events, and how many were lost.
    Events(NewEvents),
    /// Loaded programs.
    Programs(Arc<programs::Listing>),
    /// Live allocations, and the L1 of all cores.
    Map(Arc<allocations::Listing>, Arc<Cores>),
    /// The L1 of all cores.
    Cores(Arc<Cores>),
}

/// The L1 of the cores of all devices that processes report.
#[derive(Debug, Default)]
pub struct Cores {
    pub devices: Vec<DeviceCores>,
    /// What could not be read or is in doubt, in words.
    pub doubts: Vec<String>,
}

impl More {
    /// Whether it is a list that may be long.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self, More::Allocations(_) | More::Programs(_) | More::Map(..) | More::Cores(_))
    }
}

/// The history of all devices.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// 0 a minute, 1 an hour, 2 a day.
    pub resolution: usize,
    /// By device index, oldest first; a missing bucket is unknown.
    pub devices: Vec<Vec<Bucket>>,
    /// Telemetry over the same time, by device index, oldest first; nothing of a device that the driver does not have.
    pub telemetry: Vec<Vec<TelemetryBucket>>,
    /// A period that no aggregator saw.
    pub gap: Option<(u64, u64)>,
}

/// Events since the last read.
#[derive(Clone, Debug, Default)]
pub struct NewEvents {
    /// Number of this pass over the rings: a new pass begins again with what the rings still hold.
    pub pass: u64,
    /// Number of this read within the pass, from 1: a frozen screen shows the same one again.
    pub read: u64,
    /// By time.
    pub events: Vec<Seen>,
    /// Total number overwritten before they were read.
    pub missed: u64,
    /// Number that the rings no longer held when they were first read.
    pub older: u64,
}

impl Data {
    /// Data of processes that mark no steps.
    pub fn new(model: Model, more: More) -> Data {
        let live = match &more {
            More::Allocations(listing) | More::Map(listing, _) => {
                Some(Live { listing: listing.clone(), ends: Vec::new() })
            }
            _ => None,
        };
        Data { model, more, live, trends: Arc::default() }
    }
}
