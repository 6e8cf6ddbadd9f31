//! Counting processes again on devices where there was no room for them.

use std::collections::BTreeMap;

use shm_layout::table::notice_kind;
use tt_shm_reader::Segment;

use crate::log::Log;
use crate::model::Model;
use crate::model::notice::About;
use crate::model::uncounted::Recount;
use crate::segments::follower::{Follower, counters_now};

/// Uncounted usages that are tried per poll.
const MAX_OFFERS: usize = 256;
/// Processes whose counters are read for that per poll.
const MAX_RECOUNTS: usize = 16;

const WHY: &str = "more devices than there is room for: some devices of this user are missing or incomplete";

/// Counts usages for which there was no room and is now. Everything up to `folded_through` is folded.
pub(crate) fn offer_room(model: &mut Model, followers: &[Follower], folded_through: u64) {
    for _ in 0..MAX_OFFERS {
        if model.uncounted.is_asked() || model.recounts.len() >= MAX_RECOUNTS {
            break;
        }
        let Some(process) = model.next_countable() else { continue };
        let follower = find(followers, process).filter(|_| !model.recounts.contains_key(&process));
        let Some(follower) = follower else { continue };
        match read_counters(&follower.segment) {
            Some(recount) => _ = model.recounts.insert(process, recount),
            // The process changed them meanwhile, or they are impossible, which is detected elsewhere.
            None => {
                model.uncounted.ask_again();
                break;
            }
        }
    }
    count_idle(model, followers, folded_through);
}

/// Counts the processes that have emitted nothing since their counters were read.
fn count_idle(model: &mut Model, followers: &[Follower], folded_through: u64) {
    let waiting: Vec<usize> = model.recounts.keys().copied().collect();
    for process in waiting {
        let Some(follower) = find(followers, process) else {
            model.recounts.remove(&process);
            continue;
        };
        // Its counters are still those that were read.
        if follower.position() >= model.recounts[&process].position && !follower.is_waiting() {
            model.count_again(process, folded_through);
        }
    }
}

fn find(followers: &[Follower], process: usize) -> Option<&Follower> {
    followers.iter().find(|follower| follower.process == process && !follower.broken)
}

/// The current counters of a process, if they can be read and are plausible.
fn read_counters(segment: &Segment) -> Option<Recount> {
    let (words, attached) = (segment.words(), counters_now(segment)?);
    let counters = attached.devices.iter().enumerate();
    let devices = counters.map_while(|(device, (counters, _))| Some((words.device(device)?, *counters)));
    Some(Recount { position: attached.cursor.position(), devices: devices.collect() })
}

/// The users about whom there is a notice that not all of their devices are counted, with the file it names.
#[derive(Debug, Default)]
pub(crate) struct UncountedNotices {
    files: BTreeMap<u32, String>,
}

impl UncountedNotices {
    /// Adds a notice for each user with an uncounted device, and withdraws those that no longer hold.
    pub(crate) fn update(&mut self, model: &mut Model, followers: &[Follower], log: &mut Log, now: u64) {
        if model.uncounted.users().eq(self.files.keys().copied()) {
            return;
        }
        let users: Vec<u32> = model.uncounted.users().collect();
        for uid in &users {
            if self.files.contains_key(uid) {
                continue;
            }
            let process = model.uncounted.process_of(*uid);
            let Some(follower) = followers.iter().find(|follower| Some(follower.process) == process) else {
                continue;
            };
            let file = follower.segment.file_name().to_owned();
            let about = About { pid: u64::from(follower.segment.pid()), uid: *uid, file: &file };
            let generation = model.mark_changed();
            model.notices.reason(generation, notice_kind::UNCOUNTED, about, now, WHY);
            log.line(format_args!("{file}: {WHY}"));
            self.files.insert(*uid, file);
        }
        self.files.retain(|uid, file| {
            let holds = users.contains(uid);
            if !holds {
                let generation = model.mark_changed();
                model.notices.withdraw(generation, file);
            }
            holds
        });
    }
}
