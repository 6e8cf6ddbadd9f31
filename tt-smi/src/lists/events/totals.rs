//! Running totals of one process, computed backwards from its exact counters.

use tt_shm_reader::{Class, Event, EventKind, Snapshot};

/// Live bytes per device and class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    devices: Vec<[u64; Class::COUNT]>,
}

impl Totals {
    /// The totals before the first of `events`, which reach without a gap to the position of the counters, or beyond:
    /// the counters less what the events changed.
    pub(super) fn before(events: &[Event], now: &Snapshot) -> Totals {
        let mut totals = Totals {
            devices: now
                .counters
                .iter()
                .map(|counters| counters.classes.map(|class| class.live_bytes))
                .collect(),
        };
        for event in events.iter().rev().filter(|event| event.stamp <= now.position) {
            totals.change(event, u64::wrapping_sub, u64::wrapping_add);
        }
        totals
    }

    /// Counts an event; returns the live bytes of its class after it, of all kernels for a kernel.
    pub(super) fn apply(&mut self, event: &Event) -> Option<u64> {
        self.change(event, u64::wrapping_add, u64::wrapping_sub);
        let classes = self.devices.get(usize::from(event.device))?;
        let class = event.class()?;
        let is_kernel = |class: &Class| class.kernel_type().is_some();
        Some(match is_kernel(&class) {
            false => classes[class as usize],
            true => Class::ALL
                .into_iter()
                .filter(is_kernel)
                .fold(0, |sum, class| sum.wrapping_add(classes[class as usize])),
        })
    }

    /// Wrapping: the events of a hostile segment may give any result, but must not cause a panic.
    fn change(&mut self, event: &Event, alloc: fn(u64, u64) -> u64, free: fn(u64, u64) -> u64) {
        let operation = match event.kind() {
            Some(EventKind::Alloc | EventKind::CbAlloc | EventKind::KernelLoad) => alloc,
            Some(EventKind::Free | EventKind::CbFree | EventKind::KernelUnload) => free,
            _ => return,
        };
        let device = usize::from(event.device);
        if device >= self.devices.len() {
            self.devices.resize(device + 1, [0; Class::COUNT]);
        }
        if let Some(class) = event.class() {
            let live = &mut self.devices[device][class as usize];
            *live = operation(*live, event.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::Counters;

    fn event(stamp: u64, kind: EventKind, class: Class, size: u64) -> Event {
        Event { stamp, class: class as u8, size, ..Event::new(kind, 0) }
    }

    #[test]
    fn backwards_from_now_and_forwards_again() {
        let events = [
            event(10, EventKind::Alloc, Class::Dram, 100),
            event(11, EventKind::KernelLoad, Class::KernelFabric, 7),
            event(12, EventKind::Free, Class::Dram, 30),
            event(13, EventKind::Alloc, Class::Dram, 1),
        ];
        let mut counters = Counters::ZERO;
        // At position 12: 50 were live before.
        counters.classes[Class::Dram as usize].live_bytes = 50 + 100 - 30;
        counters.classes[Class::KernelFabric as usize].live_bytes = 7;
        let now = Snapshot { position: 12, counters: vec![counters] };
        let mut totals = Totals::before(&events, &now);
        let shown: Vec<_> = events.iter().map(|event| totals.apply(event)).collect();
        assert_eq!(shown, [Some(150), Some(7), Some(120), Some(121)]);
    }

    #[test]
    fn kernels_of_all_types_are_one_total() {
        let mut totals = Totals::default();
        totals.apply(&event(1, EventKind::KernelLoad, Class::KernelFabric, 917_504));
        let total = totals.apply(&event(2, EventKind::KernelLoad, Class::KernelDispatch, 94_208));
        assert_eq!(total, Some(1_011_712));
    }
}
