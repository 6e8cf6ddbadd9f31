//! The emitter: what one process knows, and the one place where its events are made.

use crate::config::Config;
use crate::error::{OpenError, RecordError};
use crate::index::{Entry, Index, Key, Vacancy};
use crate::names::Names;
use crate::programs::Programs;
use crate::registry::Registry;
use crate::request::{Alloc, NameId};
use crate::rows::Rows;
use crate::segment::Segment;
use shm_layout::control::{self, Anomaly};
use shm_layout::protocol::commit::DeviceCounters;
use shm_layout::{
    Class, Counters, DeviceEntry, Event, EventKind, MAX_BYTES, MAX_DEVICES, MarkerPhase, NO_DEVICE, NO_ROW,
    RowKind, UNKNOWN, Word, store_pod,
};
use std::io;

type Recorded<T = ()> = Result<T, RecordError>;

/// A device that this process registered.
pub(crate) struct DeviceState {
    pub(crate) counters: DeviceCounters,
    chip_id: u64,
    /// Number of the application program that was dispatched last.
    pub(crate) resident: Option<u32>,
}

/// Everything behind the lock.
pub struct State {
    pub(crate) segment: Segment,
    position: u64,
    last_time: u64,
    pub(crate) devices: Vec<DeviceState>,
    pub(crate) index: Index,
    pub(crate) rows: Rows,
    pub(crate) programs: Programs,
    names: Names,
    unlisted: u64,
}

impl State {
    /// Makes a segment, with the devices and names that the registry has already.
    pub(crate) fn open(config: &Config, registry: &Registry) -> Result<State, OpenError> {
        let segment = Segment::create(config)?;
        crate::exit::remember(segment.header().identity);
        let rows = Rows::new(&segment);
        let mut state = State {
            segment,
            position: 0,
            last_time: 0,
            devices: Vec::new(),
            index: Index::new(),
            rows,
            programs: Programs::default(),
            names: Names::new(),
            unlisted: 0,
        };
        state.inherit(registry).map_err(|error| OpenError::Create {
            step: "list the devices and names of the parent",
            cause: io::Error::other(error),
        })?;
        Ok(state)
    }

    /// Gives devices and names the numbers that handles made before a fork have. All of them or none:
    /// the number of one that found no room would go to the next that does, and reports on the one would
    /// be counted on the other.
    fn inherit(&mut self, registry: &Registry) -> Recorded {
        for entry in registry.devices() {
            self.add_device(entry)?;
        }
        for name in registry.names() {
            self.names.intern(&self.segment, name).ok_or(RecordError::NamesFull)?;
        }
        Ok(())
    }

    /// Counts a misuse and passes its error on.
    #[cold]
    pub(crate) fn misuse<T>(&self, anomaly: Anomaly, error: RecordError) -> Recorded<T> {
        self.segment.count(anomaly);
        Err(error)
    }

    pub(crate) fn register(&mut self, registry: &Registry, entry: &DeviceEntry) -> Recorded<u8> {
        if let Some(known) = self.devices.iter().position(|device| device.chip_id == entry.chip_id) {
            return Ok(known as u8);
        }
        let number = self.add_device(entry)?;
        registry.set_device(usize::from(number), *entry);
        Ok(number)
    }

    fn add_device(&mut self, entry: &DeviceEntry) -> Recorded<u8> {
        let number = self.devices.len();
        let (header, words) = (self.segment.header(), self.segment.words());
        let bytes = size_of_val(&words.counters[0]);
        let offset = header.counters.offset as usize + number * bytes;
        if number == MAX_DEVICES || self.segment.populate(offset, bytes).is_err() {
            return self.misuse(Anomaly::DeviceListFull, RecordError::DeviceListFull);
        }
        store_pod(&words.devices[number], entry);
        // Release: pairs with the acquire fence in device_count().
        words.control[control::DEVICE_COUNT].store_release(number as u64 + 1);
        self.devices.push(DeviceState {
            counters: DeviceCounters::new(words.ring.len()),
            chip_id: entry.chip_id,
            resident: None,
        });
        Ok(number as u8)
    }

    pub(crate) fn intern(&mut self, registry: &Registry, name: &str) -> Recorded<NameId> {
        match self.names.intern(&self.segment, name) {
            Some(0) => Ok(NameId::NONE),
            Some(number) => {
                registry.set_name(number, name);
                Ok(NameId(number))
            }
            None => self.misuse(Anomaly::NamesFull, RecordError::NamesFull),
        }
    }

    /// The counters of a device, exact as of the last call.
    pub(crate) fn counters(&self, device: u8) -> Recorded<Counters> {
        self.check(device)?;
        Ok(*self.devices[usize::from(device)].counters.counters())
    }

    #[inline]
    pub(crate) fn check(&self, device: u8) -> Recorded {
        if usize::from(device) < self.devices.len() {
            return Ok(());
        }
        self.misuse(Anomaly::UnknownDevice, RecordError::UnknownDevice { device })
    }

    /// Whether a class of a device can grow by that much.
    #[inline]
    pub(crate) fn check_size(&self, device: u8, class: Class, bytes: u64) -> Recorded {
        let live = self.devices[usize::from(device)].counters.counters().class(class).live_bytes;
        if bytes <= MAX_BYTES && live + bytes <= MAX_BYTES {
            return Ok(());
        }
        self.misuse(Anomaly::SizeOutOfRange, RecordError::SizeOutOfRange { bytes })
    }

    /// Gives an event its position and time.
    #[inline(always)]
    pub(crate) fn stamp(&mut self, event: &mut Event) {
        self.position += 1;
        // The counter is read without a barrier, so it may seem to step back by some nanoseconds when
        // the lock changes hands between cores; times in a ring never do.
        self.last_time = self.last_time.max(self.segment.ticks());
        event.stamp = self.position;
        event.time = self.last_time;
    }

    /// Stamps and commits an event of a device that exists.
    #[inline(always)]
    pub(crate) fn emit(&mut self, mut event: Event) {
        self.stamp(&mut event);
        let device = &mut self.devices[usize::from(event.device)].counters;
        self.segment.words().commit(&event, None, device);
    }

    pub(crate) fn alloc(&mut self, device: u8, alloc: &Alloc) -> Recorded {
        self.check(device)?;
        self.check_size(device, alloc.class, alloc.size)?;
        let key = Key { device, kind: RowKind::Buffer, id: alloc.id, program: 0 };
        let vacancy = match self.index.search(&key) {
            Err(vacancy) => vacancy,
            Ok(live) => return self.double_alloc(live, "buffer"),
        };
        let event = Event {
            class: alloc.class as u8,
            name: alloc.name.0,
            site: alloc.site.0,
            id: alloc.id,
            size: alloc.size,
            address: alloc.address,
            aux: alloc.bytes_per_bank,
            cores: alloc.cores,
            ..Event::new(EventKind::Alloc, device)
        };
        self.insert(RowKind::Buffer, 0, vacancy, event);
        Ok(())
    }

    /// Emits the event of something that begins to live, with a row for it.
    #[inline(always)]
    pub(crate) fn insert(&mut self, kind: RowKind, program: u64, vacancy: Vacancy, mut event: Event) {
        event.row = self.rows.take(&self.segment);
        if event.row == NO_ROW {
            self.segment.count(Anomaly::Unlisted);
            self.set_unlisted(self.unlisted + 1);
        }
        self.emit(event);
        self.index.fill(vacancy, Entry::new(kind, program, &event));
    }

    #[cold]
    pub(crate) fn double_alloc<T>(&self, live: &Entry, what: &'static str) -> Recorded<T> {
        let Entry { id, size: live_bytes, .. } = *live;
        let device = live.device();
        let error = RecordError::DoubleAlloc { what, device, id, live_bytes };
        self.misuse(Anomaly::DoubleAlloc, error)
    }

    /// Takes something out of the index whose end is to be reported.
    #[inline(always)]
    pub(crate) fn remove(&mut self, key: &Key, what: &'static str) -> Recorded<Entry> {
        self.check(key.device)?;
        match self.index.remove(key) {
            Some(entry) => Ok(entry),
            None => {
                let error = RecordError::UnmatchedFree { what, device: key.device, id: key.id };
                self.misuse(Anomaly::UnmatchedFree, error)
            }
        }
    }

    /// Emits the event of something that ends, and checks the size that the caller believed in.
    #[inline(always)]
    pub(crate) fn release(
        &mut self,
        kind: EventKind,
        entry: &Entry,
        flags: u8,
        given: Option<u64>,
        what: &'static str,
    ) -> Recorded {
        let Entry { id, program, size, class, .. } = *entry;
        let (device, row) = (entry.device(), entry.row());
        self.emit(Event {
            class,
            id,
            size,
            // What lies in banks was said when it was allocated.
            aux: if kind == EventKind::Free { UNKNOWN } else { program },
            row,
            flags: entry.flags | flags,
            ..Event::new(kind, device)
        });
        if row == NO_ROW {
            self.set_unlisted(self.unlisted - 1);
        }
        self.rows.put(row);
        match given {
            Some(given_bytes) if given_bytes != size => {
                let error = RecordError::SizeMismatch { what, device, id, live_bytes: size, given_bytes };
                self.misuse(Anomaly::SizeMismatch, error)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn free(&mut self, device: u8, id: u64, given: Option<u64>) -> Recorded {
        let key = Key { device, kind: RowKind::Buffer, id, program: 0 };
        let entry = self.remove(&key, "buffer")?;
        self.release(EventKind::Free, &entry, 0, given, "buffer")
    }

    #[cold]
    fn set_unlisted(&mut self, count: u64) {
        self.unlisted = count;
        Word::store(&self.segment.words().control[control::UNLISTED], count);
    }

    /// Emits an event that only tells something about a device.
    pub(crate) fn note(&mut self, event: Event) -> Recorded {
        self.check(event.device)?;
        self.emit(event);
        Ok(())
    }

    pub(crate) fn marker(&mut self, phase: MarkerPhase, id: u64, name: NameId) {
        let mut event =
            Event { class: phase as u8, id, name: name.0, ..Event::new(EventKind::Marker, NO_DEVICE) };
        self.stamp(&mut event);
        self.segment.words().commit_plain(&event);
    }
}

impl Drop for State {
    fn drop(&mut self) {
        crate::exit::forget(self.segment.header().identity);
    }
}
