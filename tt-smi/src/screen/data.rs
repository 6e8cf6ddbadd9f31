//! What there is to show, and what a view needs of it.

use std::sync::Arc;

use tt_shm_reader::Bucket;

use crate::lists::{allocations, events::Happened, programs, suspects::steps::StepEnd};
use crate::model::Model;

/// What a view shows beside the figures of devices and processes. Lists cost time to read: only what is
/// looked at is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Needs {
    /// Nothing more.
    #[default]
    Figures,
    /// The history of all devices at a resolution (0 a minute, 1 an hour, 2 a day).
    History(usize),
    /// Live allocations.
    Allocations,
    /// Events.
    Events,
    /// Programs.
    Programs,
}

/// Everything there is to show at one moment.
#[derive(Debug)]
pub struct Data {
    /// Devices, processes, problems.
    pub model: Model,
    /// What the view asked for.
    pub more: More,
    /// What is live, if it was just read: for the view, or now and then beside it.
    pub live: Option<Live>,
}

/// What is live, and how far its processes are.
#[derive(Clone, Debug)]
pub struct Live {
    /// One by one.
    pub listing: Arc<allocations::Listing>,
    /// The last steps that they ended.
    pub ends: Vec<StepEnd>,
}

/// What a view asked for; another view's until the next refresh.
#[derive(Debug, Default)]
pub enum More {
    /// Nothing new: what the view got before still holds. Lists are read less often than figures.
    #[default]
    None,
    /// By index of the device.
    History(History),
    /// What is live. Shared, because a view keeps it until the next one comes.
    Allocations(Arc<allocations::Listing>),
    /// What is new, and what was lost.
    Events(News),
    /// What is loaded.
    Programs(Arc<programs::Listing>),
}

/// The history of all devices.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// 0 a minute, 1 an hour, 2 a day.
    pub resolution: usize,
    /// By index of the device, oldest first; a bucket that is missing is unknown.
    pub devices: Vec<Vec<Bucket>>,
    /// A time that no aggregator saw.
    pub gap: Option<(u64, u64)>,
}

/// Events since the last look.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// Which following of the rings this is of: another one begins again with what rings still hold.
    pub following: u64,
    /// Which look of this following it is, from 1: a frozen screen shows the same one again.
    pub look: u64,
    /// By time.
    pub events: Vec<Happened>,
    /// Overwritten before they were read, in all.
    pub missed: u64,
    /// Those that rings held no more when they were looked at first.
    pub older: u64,
}

impl Data {
    /// Figures, and what a view asked for, of processes that mark no steps.
    pub fn new(model: Model, more: More) -> Data {
        let live = match &more {
            More::Allocations(listing) => Some(Live { listing: listing.clone(), ends: Vec::new() }),
            _ => None,
        };
        Data { model, more, live }
    }
}
