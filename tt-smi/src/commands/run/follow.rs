//! Follows the processes of the run, so that their combined peaks are exact.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::setpriority_process;
use tt_shm_aggregator::{Aggregator, Config, Only, StartError};
use tt_shm_os::Namespace;
use tt_shm_reader::TableSnapshot;

use super::watch::Found;

/// Result of merging the rings.
pub(super) struct Followed {
    pub(super) snapshot: TableSnapshot,
    /// Identities of all segments that were followed.
    pub(super) identities: HashSet<u64>,
}

/// An aggregation of the run alone. It starts before the command, so that it misses nothing.
pub(super) fn begin(namespace: &Namespace, found: Found) -> Result<Aggregator, StartError> {
    let only = Only::those(move |segment| found.is_to_follow(segment));
    // The watch removes the files that are this run's to remove.
    Aggregator::new(Config { reap: false, only, ..Config::new(namespace.clone()) })
}

/// Follows until the other end of `stop` is closed.
pub(super) fn run(mut aggregator: Aggregator, found: &Found, stop: &OwnedFd) -> Followed {
    // Of this thread alone: with few cores, the command goes first. Missed events turn a peak into a range, which is
    // reported as one.
    let _ = setpriority_process(None, 19);
    let mut identities = HashSet::new();
    loop {
        aggregator.poll();
        identities.extend(aggregator.followed());
        found.add_followed(aggregator.followed());
        if is_over(stop) {
            break;
        }
        aggregator.wait(aggregator.sleep_hint(), Some(stop.as_fd()));
    }
    // By then the last events are older than the merge window.
    aggregator.settle();
    identities.extend(aggregator.followed());
    Followed { snapshot: aggregator.snapshot(), identities }
}

fn is_over(stop: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(stop, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}
