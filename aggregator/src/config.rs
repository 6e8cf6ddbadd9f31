//! What an aggregator is told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tt_shm_os::Namespace;
use tt_shm_reader::Segment;

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
    /// Whether what is known is published in a table: while it is fresh, processes that end leave their files to it.
    /// Otherwise names that come and go unseen leave no trace, and peaks of that time are "at least".
    pub published: bool,
    /// Whether request files may open a new window of peaks.
    pub accept_resets: bool,
    /// Whose segments of the namespace to follow.
    pub only: Only,
    /// Where log lines go.
    pub log: Log,
}

/// Which segments are followed; the others are as if they were not there.
#[derive(Clone, Default)]
pub struct Only(Option<Judge>);

type Judge = Arc<dyn Fn(&Segment) -> bool + Send + Sync>;

impl Only {
    /// Those of which this says so. Each is asked about once, when it is found.
    pub fn those(which: impl Fn(&Segment) -> bool + Send + Sync + 'static) -> Only {
        Only(Some(Arc::new(which)))
    }

    pub(crate) fn wants(&self, segment: &Segment) -> bool {
        self.0.as_ref().is_none_or(|which| which(segment))
    }
}

impl fmt::Debug for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Only(some)" } else { "Only(all)" })
    }
}

impl Config {
    /// Events wait 500 us; new segments are noticed at once; dead processes' files are removed; nothing is logged, and nobody else may reset.
    pub fn new(namespace: Namespace) -> Config {
        Config {
            namespace,
            merge_window: Duration::from_micros(500),
            watch: true,
            reap: true,
            published: false,
            accept_resets: false,
            only: Only::default(),
            log: Log::silent(),
        }
    }
}
