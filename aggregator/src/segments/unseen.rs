//! Processes that an earlier aggregator followed and whose files were unlinked (by systemd's RemoveIPC).
//!
//! Root opens such a file through the process's own mapping. Where that is not permitted, the process is
//! shown as unreadable, and counted as such, until it is known to have ended.

use shm_layout::table::{ProcessStats, notice_kind, process_flags, process_state};
use tt_shm_os::{
    ClockKind, Namespace, PidMap, nameless_mappings, path_of, segment_file_name, start_time_of, suspended_ns,
};
use tt_shm_reader::Segment;

use crate::aggregator::Aggregator;
use crate::model::notice::About;
use crate::segments::attach::Fate;
use crate::segments::reap;

/// The unit of process start times: a hundredth of a second, rounded down.
const START_UNIT_NS: u64 = 10_000_000;
/// The inode of the initial PID namespace, from which every process is visible.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
const WHY: &str = "alive, or may be, but its file was removed (systemd's RemoveIPC?): what it uses is unknown until it restarts";

/// A process that cannot be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseen {
    row: usize,
    stats: ProcessStats,
}

/// What is known about a process that has no file.
enum Whereabouts {
    Found(Box<Segment>),
    /// It is alive, or may be.
    Unseen,
    Ended,
}

/// Whether the segment file of a process exists.
pub(crate) fn has_file(namespace: &Namespace, stats: &ProcessStats) -> bool {
    reap::inode_at(&path_of(&name_of(namespace, stats))).is_some()
}

fn name_of(namespace: &Namespace, stats: &ProcessStats) -> String {
    segment_file_name(namespace, stats.pid as u32, stats.identity)
}

/// Finds the processes that were alive when the earlier table was written and have no file now.
pub(crate) fn find_nameless(aggregator: &mut Aggregator, missing: Vec<ProcessStats>, now: u64) {
    for stats in missing {
        // In the private /dev/shm of a container.
        if aggregator.followed().any(|identity| identity == stats.identity) {
            continue;
        }
        match whereabouts(aggregator, &stats) {
            Whereabouts::Found(segment) => follow_nameless(aggregator, *segment, now),
            Whereabouts::Unseen => note_unseen(aggregator, stats, now),
            Whereabouts::Ended => {}
        }
    }
}

/// Forgets the processes that are known to have ended, and follows those that can be read by now.
pub(crate) fn check_unseen(aggregator: &mut Aggregator, now: u64) {
    for unseen in std::mem::take(&mut aggregator.unseen) {
        let found = whereabouts(aggregator, &unseen.stats);
        if matches!(found, Whereabouts::Unseen) {
            aggregator.unseen.push(unseen);
            continue;
        }
        let generation = aggregator.model.mark_changed();
        aggregator.model.notices.withdraw(generation, &name_of(&aggregator.config.namespace, &unseen.stats));
        if let Whereabouts::Found(segment) = found {
            aggregator.model.processes.remove(generation, unseen.row);
            follow_nameless(aggregator, *segment, now);
        } else if let Some(process) = aggregator.model.processes.change(generation, unseen.row) {
            (process.stats.state, process.stats.ended) = (process_state::ENDED, now);
            process.stats.flags &= !(process_flags::UNSEEN | process_flags::UNLINKED);
        }
    }
}

fn follow_nameless(aggregator: &mut Aggregator, segment: Segment, now: u64) {
    let inode = segment.inode();
    if aggregator.admit(segment, now).0 != Fate::Followed {
        return;
    }
    let generation = aggregator.model.mark_changed();
    let follower = aggregator.followers.iter().find(|follower| follower.segment.inode() == inode);
    if let Some(process) =
        follower.and_then(|follower| aggregator.model.processes.change(generation, follower.process))
    {
        process.stats.flags |= process_flags::UNLINKED;
    }
}

fn note_unseen(aggregator: &mut Aggregator, stats: ProcessStats, now: u64) {
    let flags = stats.flags | process_flags::UNLINKED | process_flags::UNSEEN;
    let stats = ProcessStats { flags, ..stats };
    let file = name_of(&aggregator.config.namespace, &stats);
    let (pid, uid) = (stats.pid, stats.uid as u32);
    aggregator.config.log.line(format_args!("unseen pid {pid} uid {uid} ({file}): {WHY}"));
    let generation = aggregator.model.mark_changed();
    aggregator.model.notices.reason(
        generation,
        notice_kind::UNSEEN,
        About { pid, uid, file: &file },
        now,
        WHY,
    );
    // Without a row it is not shown, but still counted.
    let row = aggregator.model.add_process(stats, Some(ClockKind::Monotonic)).unwrap_or(usize::MAX);
    aggregator.unseen.push(Unseen { row, stats });
}

fn whereabouts(aggregator: &Aggregator, stats: &ProcessStats) -> Whereabouts {
    let pids = PidMap::now();
    let Some(pid) = pids.pid_here(stats.pid_namespace, stats.pid as u32) else {
        let sees_all = aggregator.uid == 0 && pids.is_own(FIRST_PID_NAMESPACE);
        return if sees_all { Whereabouts::Ended } else { Whereabouts::Unseen };
    };
    let Some(start) = start_time_of(pid) else {
        // procfs may be mounted with hidepid.
        let told = aggregator.uid == 0 || u64::from(aggregator.uid) == stats.uid;
        return if told { Whereabouts::Ended } else { Whereabouts::Unseen };
    };
    if is_later(start, stats.started) {
        return Whereabouts::Ended;
    }
    find_mapping(aggregator, pid, stats)
}

/// Looks for the segment among the mappings of a process.
fn find_mapping(aggregator: &Aggregator, pid: u32, stats: &ProcessStats) -> Whereabouts {
    let Ok(mappings) = nameless_mappings(pid) else { return Whereabouts::Unseen };
    let name = name_of(&aggregator.config.namespace, stats);
    let mut all_known = true;
    for mapping in mappings {
        match Segment::open_mapped(&mapping, &name) {
            Ok(segment) if u64::from(segment.uid()) == stats.uid => {
                return Whereabouts::Found(Box::new(segment));
            }
            Err(error) if error.is_permission_denied() => all_known = false,
            // Another file, or one of another owner.
            _ => {}
        }
    }
    if all_known { Whereabouts::Ended } else { Whereabouts::Unseen }
}

/// Whether a process started after a moment, so that it is another one with the same pid. Its start is given
/// in the time since boot including suspensions; less all of them, it is not later than the real start.
fn is_later(start: u64, moment: u64) -> bool {
    start.saturating_mul(START_UNIT_NS).saturating_sub(suspended_ns()) > moment
}
