//! The configuration of an aggregator.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tt_shm_driver::Roots;
use tt_shm_os::Namespace;
use tt_shm_reader::Segment;

use crate::log::Log;
use crate::observe::Observe;

/// The configuration of an aggregator.
#[derive(Debug)]
pub struct Config {
    /// The namespace whose segments to follow.
    pub namespace: Namespace,
    /// How long an event waits for earlier events of other processes. Figures lag by this much.
    pub merge_window: Duration,
    /// Whether to watch for new segments. A caller that polls only once does better without: the kernel takes
    /// ten milliseconds and more to tear down such a watch. See [`crate::Aggregator::watch`].
    pub watch: bool,
    /// Whether to remove the files of dead processes.
    pub reap: bool,
    /// Whether the figures are published in a table. While the table is fresh, processes that end leave their
    /// files behind for the aggregator. Otherwise a segment that comes and goes unseen leaves no trace, and
    /// peaks of that time are lower bounds.
    pub published: bool,
    /// Whether request files may open a new window of peaks.
    pub accept_resets: bool,
    /// Which segments of the namespace to follow.
    pub only: Only,
    /// Where to find what the kernel driver tells; it is not asked if `None`.
    pub driver: Option<Roots>,
    /// Where to find the regions of unmodified tt-metal; they are not read if `None`.
    pub regions: Option<tt_shm_region::Roots>,
    /// Where log lines go.
    pub log: Log,
    /// Sees what is folded, if there is one.
    pub observer: Option<Box<dyn Observe>>,
}

/// A filter of segments. Segments that do not pass it are ignored.
#[derive(Clone, Default)]
pub struct Only(Option<Judge>);

type Judge = Arc<dyn Fn(&Segment) -> bool + Send + Sync>;

impl Only {
    /// The segments for which `which` returns true. It is called once for each segment, when it is found.
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
    /// The default configuration: events wait 500 us, new segments are watched for, files of dead processes
    /// are removed, neither the driver nor regions of tt-metal are read, nothing is logged, and request files are ignored.
    pub fn new(namespace: Namespace) -> Config {
        Config {
            namespace,
            merge_window: Duration::from_micros(500),
            watch: true,
            reap: true,
            published: false,
            accept_resets: false,
            only: Only::default(),
            driver: None,
            regions: None,
            log: Log::silent(),
            observer: None,
        }
    }
}
