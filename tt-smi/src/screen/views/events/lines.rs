//! Which events have a line: those that the filter wants, folded over the devices of a mesh.

use super::log::LogEntry;

/// The lines so far, as far as new events may be part of them.
#[derive(Debug)]
pub(super) struct Lines {
    /// Whether what happened alike on the devices of a mesh is one line.
    pub is_folded: bool,
    /// Of each process, the entry of its last line. Not simply the last entry: what several processes do at once is
    /// mixed by time.
    last: Vec<(u32, usize)>,
}

impl Lines {
    pub(super) fn new(is_folded: bool) -> Lines {
        Lines { is_folded, last: Vec::new() }
    }

    /// Looks at the entries from `from` on; returns those that begin a line.
    pub(super) fn add(
        &mut self,
        entries: &mut [LogEntry],
        from: usize,
        wanted: impl Fn(&LogEntry) -> bool,
    ) -> Vec<u32> {
        let mut lines = Vec::new();
        for place in from..entries.len() {
            let (before, rest) = entries.split_at_mut(place);
            let entry = &mut rest[0];
            entry.devices =
                entry.seen.device.and_then(|device| 1_u64.checked_shl(device.into())).unwrap_or(0);
            if !wanted(entry) {
                continue;
            }
            if !(self.is_folded && self.fold(before, entry)) {
                self.begin(entry.seen.pid, place);
                lines.push(place as u32);
            }
        }
        lines
    }

    /// Makes an entry a part of the last line of its process, if it is the same on one more device.
    fn fold(&self, before: &mut [LogEntry], entry: &LogEntry) -> bool {
        let last = self.last.iter().find(|(pid, _)| *pid == entry.seen.pid);
        let Some(head) = last.and_then(|(_, place)| before.get_mut(*place)) else { return false };
        let is_more = entry.devices != 0 && head.devices != 0 && head.devices & entry.devices == 0;
        let is_same = is_more && head.seen.is_same_on_other_device(&entry.seen);
        head.devices |= if is_same { entry.devices } else { 0 };
        is_same
    }

    fn begin(&mut self, pid: u32, place: usize) {
        match self.last.iter_mut().find(|(known, _)| *known == pid) {
            Some((_, last)) => *last = place,
            None => self.last.push((pid, place)),
        }
    }

    /// The first `count` entries are gone.
    pub(super) fn forget_first(&mut self, count: usize) {
        self.last.retain_mut(|(_, place)| {
            let is_there = *place >= count;
            *place = place.saturating_sub(count);
            is_there
        });
    }

    /// Begins anew: with another filter, or another way to fold.
    pub(super) fn clear(&mut self) {
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::events::Seen;
    use crate::screen::views::events::log::seen;
    use tt_shm_reader::{Event, EventKind};

    fn entry(number: u64, pid: u32, device: u16, id: u64) -> LogEntry {
        let seen = seen(EventKind::Alloc, id);
        let event = Event { stamp: number, ..seen.event };
        LogEntry { number, devices: 0, seen: Seen { pid, device: Some(device), event, ..seen } }
    }

    #[test]
    fn a_call_on_a_mesh_is_one_line_also_while_others_work() {
        let mut entries: Vec<LogEntry> =
            (0..4).flat_map(|n| [entry(n, 1, n as u16, 7), entry(n, 2, n as u16, 9)]).collect();
        let mut lines = Lines::new(true);
        assert_eq!(lines.add(&mut entries, 0, |_| true), [0, 1]);
        assert_eq!((entries[0].devices, entries[1].devices), (0b1111, 0b1111));
        entries.push(entry(4, 1, 0, 8));
        entries.push(entry(5, 1, 1, 8));
        assert_eq!(lines.add(&mut entries, 8, |_| true), [8], "the next call");
        lines.clear();
        assert_eq!(lines.add(&mut entries, 0, |entry| entry.seen.device != Some(1)), [0, 1, 8]);
        assert_eq!((entries[0].devices, entries[8].devices), (0b1101, 1), "only what is wanted");
        lines.forget_first(9);
        entries.drain(..9);
        assert_eq!(lines.add(&mut entries, 0, |_| true), [0]);
        lines.is_folded = false;
        lines.clear();
        let mut entries: Vec<LogEntry> = (0..4).map(|n| entry(n, 1, n as u16, 7)).collect();
        assert_eq!(lines.add(&mut entries, 0, |_| true), [0, 1, 2, 3]);
    }
}
