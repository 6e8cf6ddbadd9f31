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
    /// Whether to be told of new segments at once. Who looks only once does better without: the kernel takes
    /// its time, ten milliseconds and more, to end such a watch. See [`crate::Aggregator::watch`].
    pub watch: bool,
    /// Whether to remove the files of dead processes.
    pub reap: bool,
    /// Whether request files may open a new window of peaks.
    pub accept_resets: bool,
    /// Where log lines go.
    pub log: Log,
}

impl Config {
    /// Events wait 500 us; new segments are noticed at once; dead processes' files are removed; nothing is logged, and nobody else may reset.
    pub fn new(namespace: Namespace) -> Config {
        Config {
            namespace,
            merge_window: Duration::from_micros(500),
            watch: true,
            reap: true,
            accept_resets: false,
            log: Log::silent(),
        }
    }
}
