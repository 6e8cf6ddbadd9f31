//! What one client reports, as events of a segment that stands for it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use shm_layout::{CoreType, KernelType, MAX_DEVICES, Source};
use tt_shm_measure::message::{Kind, Message};
use tt_shm_os::Namespace;
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Device, DeviceInfo, ExclusiveTracker, Kernel, Loaded, OpenError,
    Record, RecordError, Tracker,
};

/// Live allocations of one client. What is beyond is not counted.
pub(super) const MAX_LIVE: usize = 1 << 18;
/// Largest size that the proof of concept accepts.
const MAX_SIZE: u64 = 100 << 30;
/// The program of all circular buffers: the protocol names none, so no dispatch makes them resident.
const NO_PROGRAM: u64 = u64::MAX;
/// Bytes of a process name in a segment.
const NAME_LEN: usize = 64;

/// What becomes of a report that is well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is an event, or was counted as a misuse.
    Recorded,
    /// Its size is none that an allocation can have, as the proof of concept sees it.
    Ignored,
    /// There is no room for it.
    NoRoom,
}

/// The segment of one client.
pub(super) struct Reports {
    tracker: ExclusiveTracker,
    devices: [Option<Device>; MAX_DEVICES],
    buffers: HashMap<(i32, u64), Buffer>,
    /// Live circular buffers and kernels.
    others: usize,
    guess_kernel_type: bool,
}

/// A live buffer. A repeated ALLOC of an id adds a reference, as it did in the proof of concept.
struct Buffer {
    references: u32,
    size: u64,
    buffer_type: u8,
}

impl Reports {
    /// Opens a segment for a client, which has a pid unless it is in another PID namespace.
    pub(super) fn open(
        namespace: &Namespace,
        pid: Option<u32>,
        guess_kernel_type: bool,
    ) -> Result<Reports, OpenError> {
        let tracker = Tracker::builder()
            .enabled(true)
            .namespace(namespace.as_str())
            .live_capacity(MAX_LIVE as u64)
            .backtrace(false)
            .source(Source::Bridge)
            .on_behalf_of(pid.unwrap_or(0))
            .process_name(name_of(pid))
            .open()?;
        // There is no other clone: it was just opened.
        let tracker =
            tracker.into_exclusive().unwrap_or_else(|_| unreachable!("a new tracker has no clones"));
        // Neither what a buffer occupies nor which programs are resident is told, and older clients leave program
        // memory out: what is recorded is a lower bound.
        let _ = tracker.partial();
        let (devices, buffers) = ([None; MAX_DEVICES], HashMap::new());
        Ok(Reports { tracker, devices, buffers, others: 0, guess_kernel_type })
    }

    /// Records a report, whose fields were checked.
    pub(super) fn record(&mut self, kind: Kind, message: &Message) -> Outcome {
        let is_new = matches!(kind, Kind::Alloc | Kind::CbAlloc | Kind::KernelLoad);
        if is_new && !(1..=MAX_SIZE).contains(&message.size) {
            return Outcome::Ignored;
        }
        let recorded = self.device(message.device).and_then(|device| match kind {
            Kind::Alloc => self.alloc(device, message),
            Kind::Free => self.free(device, message),
            Kind::CbAlloc => self.cb_alloc(device, message),
            Kind::CbFree => self.cb_free(device, message),
            Kind::KernelLoad => self.kernel_load(device, message),
            Kind::KernelUnload => self.kernel_unload(device, message),
            // Questions are not reports.
            _ => Ok(()),
        });
        match recorded {
            // Misuse is counted in the segment, for monitors to show.
            Ok(()) | Err(Refused::Misuse) => Outcome::Recorded,
            Err(Refused::NoRoom) => Outcome::NoRoom,
        }
    }

    /// A device by the client's number, which is all that the protocol tells of it.
    fn device(&mut self, number: i32) -> Recorded<Device> {
        let place = usize::try_from(number).ok().and_then(|place| self.devices.get_mut(place));
        let place = place.ok_or(Refused::Misuse)?;
        if let Some(device) = place {
            return Ok(*device);
        }
        let number = number.unsigned_abs();
        let info = DeviceInfo { chip_id: number.into(), logical_id: Some(number), ..DeviceInfo::default() };
        Ok(*place.insert(self.tracker.register_device(&info)?))
    }

    /// An error if there is no room for one more live allocation.
    fn room(&self) -> Recorded {
        if self.buffers.len() + self.others < MAX_LIVE { Ok(()) } else { Err(Refused::NoRoom) }
    }

    fn alloc(&mut self, device: Device, message: &Message) -> Recorded {
        let &Message { device: number, id, size, buffer_type, .. } = message;
        let memory = BufferType::from_code(buffer_type).ok_or(Refused::Misuse)?;
        let alloc = Alloc::new(memory, id, size);
        let room = self.room();
        match self.buffers.entry((number, id)) {
            Entry::Occupied(mut live) => {
                let live = live.get_mut();
                live.references = live.references.saturating_add(1);
                // The first size and type stay; a repetition that differs from them is counted as a misuse.
                match (live.size, live.buffer_type) == (size, buffer_type) {
                    true => Ok(()),
                    false => Ok(self.tracker.alloc(device, alloc)?),
                }
            }
            Entry::Vacant(free) => {
                room?;
                self.tracker.alloc(device, alloc)?;
                free.insert(Buffer { references: 1, size, buffer_type });
                Ok(())
            }
        }
    }

    fn free(&mut self, device: Device, message: &Message) -> Recorded {
        if let Entry::Occupied(mut live) = self.buffers.entry((message.device, message.id)) {
            if live.get().references > 1 {
                live.get_mut().references -= 1;
                return Ok(());
            }
            live.remove();
        }
        Ok(self.tracker.free(device, message.id)?)
    }

    /// A repetition replaces the size, and is counted as a misuse: the proof of concept counted it twice.
    fn cb_alloc(&mut self, device: Device, message: &Message) -> Recorded {
        self.room()?;
        let cb = CircularBuffer::new(NO_PROGRAM, message.id, message.size, 1);
        match self.tracker.cb_alloc(device, cb) {
            Ok(()) => {
                self.others += 1;
                Ok(())
            }
            Err(RecordError::DoubleAlloc { live_bytes, .. }) if live_bytes != message.size => {
                self.tracker.cb_free(device, NO_PROGRAM, message.id, None)?;
                Ok(self.tracker.cb_alloc(device, cb)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn cb_free(&mut self, device: Device, message: &Message) -> Recorded {
        let freed = self.tracker.cb_free(device, NO_PROGRAM, message.id, given(message.size));
        self.release(freed)
    }

    /// A repetition is a cached dispatch: the proof of concept reported each.
    fn kernel_load(&mut self, device: Device, message: &Message) -> Recorded {
        self.room()?;
        let kernel_type = self.kernel_type(message);
        // The size is that on all cores; how many these are is not told.
        let kernel = Kernel::new(message.id, kernel_type, cores_of(kernel_type), message.size, 1);
        self.others += usize::from(self.tracker.kernel_load(device, kernel)? == Loaded::New);
        Ok(())
    }

    fn kernel_unload(&mut self, device: Device, message: &Message) -> Recorded {
        let unloaded = self.tracker.kernel_unload(device, message.id, given(message.size));
        self.release(unloaded)
    }

    /// Counts the end of a circular buffer or kernel. If the size was wrong, it has ended as well.
    fn release(&mut self, result: Result<(), RecordError>) -> Recorded {
        if matches!(result, Ok(()) | Err(RecordError::SizeMismatch { .. })) {
            self.others = self.others.saturating_sub(1);
        }
        Ok(result?)
    }

    fn kernel_type(&self, message: &Message) -> KernelType {
        match (message.buffer_type, message.size) {
            (1, _) => KernelType::Fabric,
            (2, _) => KernelType::Dispatch,
            // The sizes that such kernels had when the rule was written.
            (_, 57_344) if self.guess_kernel_type => KernelType::Fabric,
            (_, 47_104) if self.guess_kernel_type => KernelType::Dispatch,
            _ => KernelType::Application,
        }
    }
}

type Recorded<T = ()> = Result<T, Refused>;

/// Why a report is no event.
enum Refused {
    /// It does not fit what was reported before; counted in the segment.
    Misuse,
    /// The client has too much, or /dev/shm too little.
    NoRoom,
}

impl From<RecordError> for Refused {
    fn from(error: RecordError) -> Refused {
        match error {
            RecordError::NoRoom | RecordError::DeviceListFull => Refused::NoRoom,
            _ => Refused::Misuse,
        }
    }
}

/// A size to compare, if the client gave one.
fn given(size: u64) -> Option<u64> {
    Some(size).filter(|size| *size != 0)
}

/// Fabric kernels run on ethernet cores.
fn cores_of(kernel_type: KernelType) -> CoreType {
    match kernel_type {
        KernelType::Fabric => CoreType::Ethernet,
        _ => CoreType::Tensix,
    }
}

/// `train (pid 4711, by bridge)`: the segment's own pid is that of the bridge.
fn name_of(pid: Option<u32>) -> String {
    let (name, end) = match pid {
        Some(pid) => (tt_shm_os::process_name_of(pid), format!(" (pid {pid}, by bridge)")),
        None => (None, " (by bridge)".to_owned()),
    };
    let name = name.unwrap_or_else(|| "unknown".to_owned());
    let start = name.floor_char_boundary(NAME_LEN - end.len());
    format!("{}{end}", &name[..start])
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm_layout::Class;
    use shm_layout::control::Anomaly;
    use tt_shm_measure::scene::Scene;
    use tt_shm_reader::Segment;

    /// The segment of a client, and what a reader finds in it.
    struct Reported {
        reports: Reports,
        segment: Segment,
        // Dropped last: it removes what is left.
        _scene: Scene,
    }

    impl Reported {
        fn new(guess_kernel_type: bool) -> Reported {
            let scene = Scene::new();
            let pid = Some(std::process::id());
            let reports = Reports::open(&scene.namespace, pid, guess_kernel_type).unwrap();
            let segment = Segment::open(&reports.tracker.segment_path().unwrap()).unwrap();
            Reported { reports, segment, _scene: scene }
        }

        fn take(&mut self, kind: Kind, id: u64, size: u64) {
            self.take_typed(kind, id, size, 0);
        }

        fn take_typed(&mut self, kind: Kind, id: u64, size: u64, buffer_type: u8) {
            let mut message = Message::new(kind, 1, 3, id, size);
            message.buffer_type = buffer_type;
            assert_eq!(self.reports.record(kind, &message), Outcome::Recorded);
        }

        /// Live bytes and count of a class on the only device.
        fn live(&self, class: Class) -> (u64, u64) {
            let counters = self.segment.counters().unwrap().counters[0].classes[class as usize];
            (counters.live_bytes, counters.live_count)
        }

        fn anomalies(&self, anomaly: Anomaly) -> u64 {
            self.segment.anomalies()[anomaly as usize]
        }
    }

    #[test]
    fn a_repeated_alloc_needs_as_many_frees() {
        let mut reported = Reported::new(false);
        reported.take(Kind::Alloc, 1, 4096);
        reported.take(Kind::Alloc, 1, 4096);
        assert_eq!(reported.live(Class::Dram), (4096, 1));
        reported.take(Kind::Free, 1, 0);
        assert_eq!(reported.live(Class::Dram), (4096, 1));
        reported.take(Kind::Free, 1, 0);
        assert_eq!(reported.live(Class::Dram), (0, 0));
        assert_eq!(reported.segment.anomalies().iter().sum::<u64>(), 0);
        reported.take(Kind::Free, 1, 0);
        assert_eq!(reported.anomalies(Anomaly::UnmatchedFree), 1);
        // Another size and type under the same id: the first stays.
        reported.take_typed(Kind::Alloc, 2, 4096, 4);
        reported.take_typed(Kind::Alloc, 2, 8192, 1);
        assert_eq!((reported.live(Class::Trace), reported.live(Class::L1)), ((4096, 1), (0, 0)));
        assert_eq!(reported.anomalies(Anomaly::DoubleAlloc), 1);
    }

    #[test]
    fn a_repeated_circular_buffer_replaces_the_size() {
        let mut reported = Reported::new(false);
        reported.take(Kind::CbAlloc, 0x1000, 100);
        reported.take(Kind::CbAlloc, 0x1000, 300);
        assert_eq!((reported.live(Class::Cb), reported.anomalies(Anomaly::DoubleAlloc)), ((300, 1), 1));
        reported.take(Kind::CbAlloc, 0x1000, 300);
        assert_eq!((reported.live(Class::Cb), reported.anomalies(Anomaly::DoubleAlloc)), ((300, 1), 2));
        reported.take(Kind::CbFree, 0x1000, 300);
        assert_eq!((reported.live(Class::Cb), reported.reports.others), ((0, 0), 0));
    }

    #[test]
    fn kernels_have_the_type_that_was_told_or_asked_to_be_guessed() {
        let classes = [Class::KernelApplication, Class::KernelFabric, Class::KernelDispatch];
        for (guess, counts) in [(false, [3, 1, 1]), (true, [1, 2, 2])] {
            let mut reported = Reported::new(guess);
            let kernels = [(0, 57_344), (0, 47_104), (0, 917_504), (1, 47_104), (2, 57_344)];
            for (id, (kernel_type, size)) in kernels.into_iter().enumerate() {
                reported.take_typed(Kind::KernelLoad, id as u64, size, kernel_type);
            }
            assert_eq!(classes.map(|class| reported.live(class).1), counts);
            // Loaded again: a cached dispatch.
            reported.take_typed(Kind::KernelLoad, 2, 917_504, 0);
            assert_eq!(classes.map(|class| reported.live(class).1), counts);
            assert_eq!(reported.segment.counters().unwrap().counters[0].cached_dispatches, 1);
            (0..5).for_each(|id| reported.take(Kind::KernelUnload, id, 0));
            assert_eq!(classes.map(|class| reported.live(class)), [(0, 0); 3]);
        }
    }

    #[test]
    fn sizes_that_no_allocation_has_are_ignored() {
        let mut reported = Reported::new(false);
        for size in [0, MAX_SIZE + 1, u64::MAX] {
            let message = Message::new(Kind::Alloc, 1, 0, 1, size);
            assert_eq!(reported.reports.record(Kind::Alloc, &message), Outcome::Ignored);
        }
        assert!(reported.segment.devices().is_empty());
    }

    #[test]
    fn a_client_has_bounded_room() {
        let mut reported = Reported::new(false);
        (0..MAX_LIVE as u64).for_each(|id| reported.take(Kind::Alloc, id, 64));
        let message = Message::new(Kind::Alloc, 1, 3, u64::MAX, 64);
        assert_eq!(reported.reports.record(Kind::Alloc, &message), Outcome::NoRoom);
        assert_eq!(reported.live(Class::Dram), (64 * MAX_LIVE as u64, MAX_LIVE as u64));
        assert_eq!(reported.segment.unlisted(), 0);
        reported.take(Kind::Free, 1, 0);
        reported.take(Kind::Alloc, u64::MAX, 64);
    }

    #[test]
    fn a_segment_is_named_after_its_client() {
        let reported = Reported::new(false);
        let (name, pid) = (reported.segment.process_name(), std::process::id());
        assert!(name.ends_with(&format!(" (pid {pid}, by bridge)")), "{name}");
        assert_eq!(reported.segment.source(), Some(Source::Bridge));
        assert!(reported.segment.is_partial(), "the protocol does not tell everything");
        assert_eq!(reported.segment.header().on_behalf_of, u64::from(pid));
        assert_eq!(name_of(None), "unknown (by bridge)");
    }
}
