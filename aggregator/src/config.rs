//! What an aggregator is told.

use std::time::Duration;

use tt_shm_os::Namespace;

use crate::log::Log;

/// How to aggregate.
#[derive(Debug)]
pub struct Config {
    /// Whose segments to follow.
    pub namespace: Namespace,
    /// How long an event waits for earlier ones of other processes. Figures are that much behind.
    pub merge_window: Duration,
    /// Whether to remove the files of dead processes.
    pub reap: bool,
    /// Whether request files may open a new window of peaks.
    pub accept_resets: bool,
    /// Where log lines go.
    pub log: Log,
}

impl Config {
    /// Events wait 500 us; dead processes' files are removed; nothing is logged, and nobody else may reset.
    pub fn new(namespace: Namespace) -> Config {
        Config {
            namespace,
            merge_window: Duration::from_micros(500),
            reap: true,
            accept_resets: false,
            log: Log::silent(),
        }
    }
}
