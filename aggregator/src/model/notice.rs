//! Notices for the operator: refusals, broken segments, what dead processes left behind.

use shm_layout::table::{MAX_NOTICES, Notice, notice_kind};
use shm_layout::{Class, Counters, text};

/// The latest notices, as the table shows them.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    latest: Vec<Notice>,
    count: u64,
}

/// The process and file that a notice is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) pid: u64,
    pub(crate) uid: u32,
    pub(crate) file: &'a str,
}

/// What a process held on all devices together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) bytes: [u64; Class::COUNT],
    pub(crate) counts: [u64; Class::COUNT],
}

impl Holdings {
    pub(crate) fn add(&mut self, counters: &Counters) {
        for (class, counters) in counters.classes.iter().enumerate() {
            self.bytes[class] = self.bytes[class].saturating_add(counters.live_bytes);
            self.counts[class] = self.counts[class].saturating_add(counters.live_count);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Holdings::default()
    }

    /// `dram 4096 B in 1, kernel_fabric 917504 B in 16`, or `nothing`.
    pub(crate) fn describe(&self) -> String {
        let held = |class: &Class| self.counts[*class as usize] > 0 || self.bytes[*class as usize] > 0;
        let parts: Vec<String> = Class::ALL
            .into_iter()
            .filter(held)
            .map(|class| {
                let (bytes, count) = (self.bytes[class as usize], self.counts[class as usize]);
                format!("{} {bytes} B in {count}", class.name())
            })
            .collect();
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }
}

impl Notices {
    /// Adds a notice that a file was refused or a segment is broken.
    pub(crate) fn reason(&mut self, generation: u64, kind: u64, about: About<'_>, time: u64, why: &str) {
        debug_assert!(kind != notice_kind::RECLAIMED);
        self.push(Notice { text: text::encode(why), ..blank(generation, kind, about, time) });
    }

    /// Adds a notice of what a process held when it ended.
    pub(crate) fn reclaimed(&mut self, generation: u64, about: About<'_>, time: u64, held: &Holdings) {
        let Holdings { bytes, counts } = *held;
        self.push(Notice { bytes, counts, ..blank(generation, notice_kind::RECLAIMED, about, time) });
    }

    /// Withdraws the notices that a file was refused, could not be read or could not be counted.
    pub(crate) fn withdraw(&mut self, generation: u64, file: &str) {
        let withdrawable = |notice: &&mut Notice| {
            matches!(notice.kind, notice_kind::REFUSED | notice_kind::UNSEEN | notice_kind::UNCOUNTED)
        };
        for notice in self.latest.iter_mut().filter(withdrawable) {
            if text::decode(&notice.file) == file {
                (notice.kind, notice.generation) = (notice_kind::WITHDRAWN, generation);
            }
        }
    }

    fn push(&mut self, notice: Notice) {
        let index = (self.count % MAX_NOTICES as u64) as usize;
        match self.latest.get_mut(index) {
            Some(oldest) => *oldest = notice,
            None => self.latest.push(notice),
        }
        self.count += 1;
    }

    /// The number of notices ever added.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Row numbers and notices, in no particular order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, &Notice)> {
        self.latest.iter().enumerate()
    }

    /// The notices, newest first.
    pub(crate) fn newest_first(&self) -> Vec<Notice> {
        let newest = (self.count % MAX_NOTICES as u64) as usize;
        let (later, earlier) = self.latest.split_at(newest.min(self.latest.len()));
        later.iter().rev().chain(earlier.iter().rev()).copied().collect()
    }
}

fn blank(generation: u64, kind: u64, about: About<'_>, time: u64) -> Notice {
    Notice {
        generation,
        kind,
        time,
        pid: about.pid,
        uid: u64::from(about.uid),
        file: text::encode(about.file),
        ..bytemuck::Zeroable::zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_come_first() {
        let mut notices = Notices::default();
        let about = About { pid: 1, uid: 0, file: "f" };
        for time in 1..=100 {
            notices.reason(1, notice_kind::REFUSED, about, time, "why");
        }
        let times: Vec<u64> = notices.newest_first().iter().map(|notice| notice.time).collect();
        assert_eq!(times, (37..=100).rev().collect::<Vec<u64>>());
        assert_eq!(notices.count(), 100);
    }

    #[test]
    fn holdings_are_said_per_class() {
        let mut counters = Counters::ZERO;
        counters.classes[Class::KernelFabric as usize].live_bytes = 917_504;
        counters.classes[Class::KernelFabric as usize].live_count = 16;
        let mut held = Holdings::default();
        assert_eq!(held.describe(), "nothing");
        held.add(&counters);
        assert_eq!(held.describe(), "kernel_fabric 917504 B in 16");
    }
}
