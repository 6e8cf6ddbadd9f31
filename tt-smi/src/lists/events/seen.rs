//! An event as it was read, with what its numbers mean here. Half the size of [`Happened`]: the screen keeps many.

use tt_shm_reader::{Event, EventKind};

use super::line::Happened;
use crate::escape::Foreign;
use crate::model::{Moment, event_name};

/// An event of a process.
#[derive(Clone, Debug)]
pub struct Seen {
    pub event: Event,
    pub time: Moment,
    /// Live bytes of its class after it, as in [`Happened::total_bytes`].
    pub total: Option<u64>,
    pub name: Option<Foreign>,
    /// What its process calls itself.
    pub process: Foreign,
    /// Pid of its process in this namespace.
    pub pid: u32,
    /// Whether that is only claimed.
    pub claimed: bool,
    /// Index of the device.
    pub device: Option<u16>,
}

/// Most events of one call on a mesh: it is recorded on its devices one after the other.
const MOST_DEVICES: u64 = 64;

impl Seen {
    pub fn happened(&self) -> Happened {
        let device = self.device.map(usize::from);
        let happened = Happened::new(self.pid, device, self.time, self.total, self.name.clone(), &self.event);
        Happened { claimed: self.claimed, ..happened }
    }

    /// What happened: `KERNEL_LOAD` and so on.
    pub fn kind_name(&self) -> &'static str {
        event_name(self.event.kind())
    }

    /// Whether both are of one call on a mesh, on two of its devices, this one first.
    pub fn is_same_on_other_device(&self, later: &Seen) -> bool {
        let (one, other) = (&self.event, &later.event);
        let alike =
            |event: &Event| (event.kind, event.class, event.flags, event.name, event.site, event.cores);
        self.pid == later.pid
            && (self.device.is_some() && self.device != later.device)
            && other.stamp.wrapping_sub(one.stamp) < MOST_DEVICES
            && alike(one) == alike(other)
            && (one.id, one.size, one.aux, one.place) == (other.id, other.size, other.aux, other.place)
            && address(one) == address(other)
    }
}

/// The address field, without the row that it has beside the number of dispatches: each device has its own.
fn address(event: &Event) -> u64 {
    match event.kind() {
        Some(EventKind::KernelDispatch | EventKind::ProgramEnd) => event.times(),
        _ => event.address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(device: u8, stamp: u64, address: u64) -> Seen {
        let event = Event { stamp, address, id: 7, ..Event::new(EventKind::KernelDispatch, device) };
        Seen {
            event,
            time: Moment::default(),
            total: Some(stamp),
            name: None,
            process: "".into(),
            pid: 1,
            claimed: false,
            device: Some(device.into()),
        }
    }

    #[test]
    fn one_call_on_a_mesh_is_known_again() {
        // The rows of a program differ from device to device, how often it was dispatched does not.
        let first = seen(0, 10, 5 << 32 | 1);
        assert!(first.is_same_on_other_device(&seen(1, 11, 6 << 32 | 1)));
        assert!(!first.is_same_on_other_device(&seen(1, 11, 6 << 32 | 2)));
        assert!(!first.is_same_on_other_device(&seen(0, 11, 5 << 32 | 1)), "the same device");
        assert!(!first.is_same_on_other_device(&seen(1, 99, 6 << 32 | 1)), "a later call");
        assert!(!first.is_same_on_other_device(&Seen { pid: 2, ..seen(1, 11, 1) }));
    }
}
