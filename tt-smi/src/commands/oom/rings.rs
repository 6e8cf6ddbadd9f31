//! Failures that are only in the rings: from before the aggregator started, or part of a flood that it only counted.

use std::collections::VecDeque;

use tt_shm_os::{Calibration, PidMap};
use tt_shm_reader::{Class, Counters, DeviceEntry, Event, EventKind, FAILURE_EVENTS, PastEvent, Segment};

use crate::directory::Directory;
use crate::model::{Before, Clock, Failure, HeldBy, Holders, Shortage, Who};

/// The failures in a process's ring, oldest first, at most the last `most`. The ring tells what this process held if it
/// still has all events, and never what others held.
pub(super) fn failures(segment: &Segment, directory: &Directory, clock: Clock, most: usize) -> Vec<Failure> {
    let mut replay = Replay::new(segment, directory, clock);
    let mut follow = segment.follow_from_start();
    let whole = follow.missed() == 0;
    let mut found = VecDeque::new();
    // Bounded: a process at full speed must not keep this loop going.
    for _ in 0..segment.words().ring.len() {
        let Some(event) = follow.next() else { break };
        if event.kind() == Some(EventKind::AllocFailed) {
            found.extend(replay.failure(&event, whole && follow.missed() == 0));
            if found.len() > most {
                found.pop_front();
            }
        }
        replay.take(&event);
    }
    found.into()
}

/// A process's state on each device, replayed event by event.
struct Replay<'a> {
    segment: &'a Segment,
    directory: &'a Directory,
    who: Who,
    clock: Clock,
    calibration: Calibration,
    devices: Vec<OnDevice>,
}

struct OnDevice {
    entry: DeviceEntry,
    /// `None` after an impossible event.
    counters: Option<Counters>,
    last: VecDeque<Before>,
}

impl<'a> Replay<'a> {
    fn new(segment: &'a Segment, directory: &'a Directory, clock: Clock) -> Replay<'a> {
        let on = |entry| OnDevice { entry, counters: Some(Counters::ZERO), last: VecDeque::new() };
        let alive = segment.is_alive().unwrap_or(false);
        // The pid of an ended process is known only if it was in this PID namespace.
        let own = PidMap::now().is_own(segment.header().pid_namespace);
        let pid = if alive { segment.pid_here() } else { Some(segment.pid()).filter(|_| own) };
        Replay {
            who: Who {
                pid: pid.map(u64::from),
                namespace_pid: u64::from(segment.pid()),
                name: segment.process_name().into(),
            },
            clock,
            calibration: segment.calibration(),
            devices: segment.devices().into_iter().map(on).collect(),
            segment,
            directory,
        }
    }

    fn take(&mut self, event: &Event) {
        let time = self.calibration.to_monotonic_ns(event.time);
        let Some(device) = self.devices.get_mut(usize::from(event.device)) else { return };
        if device.counters.as_mut().is_some_and(|counters| counters.apply(event).is_err()) {
            device.counters = None;
        }
        if device.last.len() == FAILURE_EVENTS {
            device.last.pop_front();
        }
        device.last.push_back(Before::new(
            &PastEvent {
                time,
                identity: self.segment.identity(),
                pid: u64::from(self.segment.pid()),
                kind: u64::from(event.kind),
                class: u64::from(event.class),
                id: event.id,
                size: event.size,
            },
            self.clock,
        ));
    }

    fn failure(&self, event: &Event, whole: bool) -> Option<Failure> {
        let device = self.devices.get(usize::from(event.device))?;
        let own = device.counters.filter(|_| whole).map(|counters| counters.used_by_class());
        let shortage = Shortage::from(event);
        Some(Failure {
            time: self.clock.moment(self.calibration.to_monotonic_ns(event.time)),
            device: self.directory.index_of(device.entry.chip_id),
            chip_id: device.entry.chip_id,
            who: self.who.clone(),
            uid: self.segment.uid(),
            class: event.class(),
            shortage,
            cause: shortage.cause(),
            holders: own.map(|classes| self.own_share(classes)),
            events: device.last.iter().cloned().collect(),
            events_complete: false,
            key: (self.segment.identity(), event.stamp),
        })
    }

    fn own_share(&self, classes: [u64; Class::COUNT]) -> Holders {
        let list = vec![HeldBy { who: self.who.clone(), classes }];
        Holders { classes, list, ..Holders::default() }
    }
}
