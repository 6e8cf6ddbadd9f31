//! Reading a checkpoint of a live process: counters and live list at one position of its ring.

use shm_layout::control::{CLOSED_AT, STATE, UNLISTED};
use shm_layout::protocol::live::LiveList;
use shm_layout::protocol::observe::Slot;
use shm_layout::{Counters, NO_DEVICE, Row, Word};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{ReadError, Segment, Snapshot};

use crate::entry::StateEntry;

/// The number of attempts to read the live list of a process that overwrites its ring meanwhile.
const ATTEMPTS: usize = 4;

/// Reads what a process holds: exact counters, and the rows of the same position. If the process is too fast for its
/// list to be read, there are no rows and [`StateEntry::exact`] is false.
pub fn read_checkpoint(segment: &Segment) -> Result<(StateEntry, Vec<Row>), ReadError> {
    for _ in 0..ATTEMPTS {
        let snapshot = segment.counters()?;
        let list = segment.live_list();
        if let Some(cause) = segment.loss() {
            return Err(ReadError::Lost { file: segment.file_name().to_owned(), cause });
        }
        if list.exact
            && let Some(counters) = join(segment, snapshot, &list)?
        {
            let state = state(segment, list.position, counters, true);
            return Ok((StateEntry { unlisted: list.unlisted, ..state }, list.rows));
        }
        // With few cores, the process may be waiting for this one.
        std::thread::yield_now();
    }
    let Snapshot { position, counters } = segment.counters()?;
    Ok((state(segment, position, counters, false), Vec::new()))
}

fn state(segment: &Segment, position: u64, counters: Vec<Counters>, exact: bool) -> StateEntry {
    let words = segment.words();
    let control = |word: usize| words.control.get(word).map_or(0, Word::load);
    StateEntry {
        position,
        time_ns: monotonic_ns(),
        exact,
        flags: control(STATE),
        unlisted: control(UNLISTED),
        closed_at: control(CLOSED_AT),
        self_checks: segment.self_checks(),
        anomalies: segment.anomalies(),
        row_count: 0,
        counters,
    }
}

/// Brings counters to the position of a list that was read after them; `None` if the events between them are not there
/// any more.
fn join(segment: &Segment, snapshot: Snapshot, list: &LiveList) -> Result<Option<Vec<Counters>>, ReadError> {
    let Snapshot { position, mut counters } = snapshot;
    let words = segment.words();
    let Some(behind) = list.position.checked_sub(position) else { return Ok(None) };
    if behind > words.ring.len() as u64 {
        return Ok(None);
    }
    for position in position + 1..=list.position {
        let Slot::Ready(event) = words.read_slot(position) else { return Ok(None) };
        if event.device == NO_DEVICE {
            continue;
        }
        let device = usize::from(event.device);
        if device >= counters.len() {
            let listed = segment.words().device_count();
            if device >= listed {
                return Err(ReadError::UnlistedDevice { file: segment.file_name().to_owned(), listed });
            }
            counters.resize(device + 1, Counters::ZERO);
        }
        let file = || segment.file_name().to_owned();
        counters[device]
            .apply(&event)
            .map_err(|cause| ReadError::ImplausibleEvent { file: file(), cause })?;
    }
    Ok(Some(counters))
}
