//! The emitter: what one process knows, and the one place where its events are made.

use crate::config::Config;
use crate::error::{OpenError, RecordError};
use crate::live::{Key, Live, Said};
use crate::names::Names;
use crate::programs::Programs;
use crate::registry::Registry;
use crate::request::{Alloc, NameId};
use crate::rows::Rows;
use crate::segment::Segment;
use shm_layout::control::{self, Anomaly};
use shm_layout::protocol::commit::{Accounts, Refused};
use shm_layout::{
    Counters, DeviceEntry, Event, EventKind, MAX_DEVICES, MarkerPhase, NO_DEVICE, NO_ROW, SLOT_WORDS,
    UNKNOWN, Word, store_pod,
};
use std::io;

type Recorded<T = ()> = Result<T, RecordError>;

/// Everything behind the lock.
pub struct State {
    pub(crate) segment: Segment,
    position: u64,
    /// Of the call.
    time: u64,
    /// Chip ids of the devices that this process registered.
    chips: Vec<u64>,
    pub(crate) accounts: Accounts,
    live: Live,
    pub(crate) rows: Rows,
    pub(crate) programs: Programs,
    names: Names,
}

impl State {
    /// Makes a segment, with the devices and names that the registry has already.
    pub(crate) fn open(config: &Config, registry: &Registry) -> Result<State, OpenError> {
        let segment = Segment::create(config)?;
        crate::exit::remember(segment.header().identity);
        let rows = Rows::new(&segment);
        let accounts = Accounts::new(segment.words().ring.len());
        let live = Live::new(segment.words().rows.len());
        let mut state = State {
            segment,
            position: 0,
            time: 0,
            chips: Vec::new(),
            accounts,
            live,
            rows,
            programs: Programs::new(),
            names: Names::new(),
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
        if let Some(known) = self.chips.iter().position(|chip| *chip == entry.chip_id) {
            return Ok(known as u8);
        }
        let number = self.add_device(entry)?;
        registry.set_device(usize::from(number), *entry);
        Ok(number)
    }

    fn add_device(&mut self, entry: &DeviceEntry) -> Recorded<u8> {
        let number = self.chips.len();
        let (header, words) = (self.segment.header(), self.segment.words());
        let bytes = size_of_val(&words.counters[0]);
        let offset = header.counters.offset as usize + number * bytes;
        if number == MAX_DEVICES || self.segment.populate(offset, bytes).is_err() {
            return self.misuse(Anomaly::DeviceListFull, RecordError::DeviceListFull);
        }
        shm_layout::point!(DevicePopulated);
        shm_layout::stores_of!(DeviceEntry);
        store_pod(&words.devices[number], entry);
        shm_layout::stores_of!(DeviceCount);
        // Release: pairs with the acquire fence in device_count().
        words.control[control::DEVICE_COUNT].store_release(number as u64 + 1);
        self.chips.push(entry.chip_id);
        self.accounts.add_device();
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
    #[inline(always)]
    pub(crate) fn counters(&self, device: u8) -> Recorded<&Counters> {
        match self.accounts.counters(device) {
            Some(counters) => Ok(counters),
            None => self.misuse(Anomaly::UnknownDevice, RecordError::UnknownDevice { device }),
        }
    }

    /// Reads the clock: once in a call, whose events all have happened at that time. First thing, too: the
    /// reading waits for what was begun before, so that a look into the index would be added to it instead of
    /// going on beside it.
    #[inline(always)]
    pub(crate) fn read_clock(&mut self) {
        // The counter is read without a barrier, so it may seem to step back by some nanoseconds when
        // the lock changes hands between cores; times in a ring never do.
        self.time = self.time.max(self.segment.ticks());
    }

    /// An event of this call.
    #[inline(always)]
    pub(crate) fn event(&self, kind: EventKind, device: u8) -> Event {
        Event { time: self.time, ..Event::new(kind, device) }
    }

    /// Emits an event, or refuses it: then nothing has happened.
    #[inline(always)]
    pub(crate) fn emit(&mut self, mut event: Event) -> Recorded {
        self.count(&mut event)?;
        self.segment.words().publish(&event, None, &mut self.accounts);
        Ok(())
    }

    /// The first half of an emit: gives an event its position and counts it in, privately.
    #[inline(always)]
    pub(crate) fn count(&mut self, event: &mut Event) -> Recorded {
        self.position += 1;
        event.stamp = self.position;
        match self.accounts.count(event) {
            Ok(()) => Ok(()),
            Err(refused) => self.refuse(event.device, event.size, refused),
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, device: u8, bytes: u64, refused: Refused) -> Recorded {
        // The position is another's.
        self.position -= 1;
        match refused {
            Refused::UnknownDevice => {
                self.misuse(Anomaly::UnknownDevice, RecordError::UnknownDevice { device })
            }
            Refused::Implausible => {
                self.misuse(Anomaly::SizeOutOfRange, RecordError::SizeOutOfRange { bytes })
            }
        }
    }

    /// What was said of something live.
    pub(crate) fn find(&self, key: &Key) -> Option<Said> {
        self.live.find(self.segment.words().rows, key)
    }

    #[inline(always)]
    pub(crate) fn alloc(&mut self, device: u8, alloc: &Alloc) -> Recorded {
        let event = self.event(EventKind::Alloc, device);
        let event = Event { class: alloc.class as u8, id: alloc.id, size: alloc.size, ..event };
        self.begin(Key::buffer(device, alloc.id), event, "buffer", |event| Event {
            name: alloc.name.0,
            site: alloc.site.0,
            address: alloc.address,
            aux: alloc.bytes_per_bank,
            cores: alloc.cores,
            ..event
        })
    }

    /// Emits the event of something that begins to live, with a row for it. `rest` adds what is not counted:
    /// it is asked for last, so that no register has to keep it meanwhile.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        key: Key,
        mut event: Event,
        what: &'static str,
        rest: impl FnOnce(Event) -> Event,
    ) -> Recorded {
        let Some(row) = self.rows.take(&self.segment) else {
            return self.begin_unlisted(rest(event).to_words(), what);
        };
        if !self.live.insert_at_home(self.segment.words().rows, &key, row) {
            self.insert_elsewhere(key, row, what)?;
        }
        event.row = row;
        if let Err(error) = self.count(&mut event) {
            return self.undo(key, row, error);
        }
        self.segment.words().publish(&rest(event), None, &mut self.accounts);
        Ok(())
    }

    /// Forgets something whose event was refused.
    #[cold]
    #[inline(never)]
    fn undo(&mut self, key: Key, row: u32, error: RecordError) -> Recorded {
        self.live.forget(self.segment.words().rows, &key, row);
        self.rows.put(row);
        Err(error)
    }

    #[cold]
    #[inline(never)]
    fn insert_elsewhere(&mut self, key: Key, row: u32, what: &'static str) -> Recorded {
        let inserted = self.live.insert(self.segment.words().rows, &key, row);
        inserted.or_else(|live| self.double_alloc(row, live, what))
    }

    #[cold]
    #[inline(never)]
    fn begin_unlisted(&mut self, event: [u64; SLOT_WORDS], what: &'static str) -> Recorded {
        // As words: an event whose address is taken would have to be in memory on the usual way, too.
        let event: Event = bytemuck::must_cast(event);
        let (key, item) = match self.live.insert_unlisted(self.segment.words().rows, &event) {
            Ok(inserted) => inserted,
            Err(live) => return self.double_alloc(NO_ROW, live, what),
        };
        if let Err(error) = self.emit(event) {
            self.live.forget(self.segment.words().rows, &key, item);
            return Err(error);
        }
        self.segment.count(Anomaly::Unlisted);
        self.publish_unlisted();
        Ok(())
    }

    fn double_alloc(&mut self, row: u32, live: Said, what: &'static str) -> Recorded {
        self.rows.put(row);
        let Said { device, id, size: live_bytes, .. } = live;
        let error = RecordError::DoubleAlloc { what, device, id, live_bytes };
        self.misuse(Anomaly::DoubleAlloc, error)
    }

    /// Takes out something whose end is to be reported.
    pub(crate) fn take(&mut self, device: u8, key: Key, id: u64, what: &'static str) -> Recorded<Said> {
        if let Some(said) = self.live.take(self.segment.words().rows, &key) {
            return Ok(said);
        }
        self.counters(device)?;
        self.misuse(Anomaly::UnmatchedFree, RecordError::UnmatchedFree { what, device, id })
    }

    /// Emits the event of something that ends, and checks the size that the caller believed in.
    #[inline(always)]
    pub(crate) fn release(
        &mut self,
        event: Event,
        said: &Said,
        flags: u8,
        given: Option<u64>,
        what: &'static str,
    ) -> Recorded {
        let Said { device, class, row, id, size, program, .. } = *said;
        self.emit(Event {
            class,
            id,
            size,
            // What lies in banks was said when it was allocated.
            aux: if event.kind == EventKind::Free as u8 { UNKNOWN } else { program },
            row,
            flags: said.flags | flags,
            ..event
        })?;
        if row == NO_ROW {
            self.publish_unlisted();
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

    #[inline(always)]
    pub(crate) fn free(&mut self, device: u8, id: u64, given: Option<u64>) -> Recorded {
        let event = self.event(EventKind::Free, device);
        match self.live.take_at_home(self.segment.words().rows, &Key::buffer(device, id)) {
            Some(said) => self.release(event, &said, 0, given, "buffer"),
            None => self.free_elsewhere(device, id, given),
        }
    }

    #[cold]
    #[inline(never)]
    fn free_elsewhere(&mut self, device: u8, id: u64, given: Option<u64>) -> Recorded {
        let said = self.take(device, Key::buffer(device, id), id, "buffer")?;
        let event = self.event(EventKind::Free, device);
        self.release(event, &said, 0, given, "buffer")
    }

    #[cold]
    fn publish_unlisted(&self) {
        shm_layout::stores_of!(UnlistedCount);
        let count = self.live.unlisted() as u64;
        Word::store(&self.segment.words().control[control::UNLISTED], count);
    }

    /// Emits an event that only tells something about a device.
    pub(crate) fn note(&mut self, kind: EventKind, device: u8, tell: impl FnOnce(&mut Event)) -> Recorded {
        let mut event = self.event(kind, device);
        tell(&mut event);
        self.emit(event)
    }

    pub(crate) fn marker(&mut self, phase: MarkerPhase, id: u64, name: NameId) -> Recorded {
        let event = self.event(EventKind::Marker, NO_DEVICE);
        self.emit(Event { class: phase as u8, id, name: name.0, ..event })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        crate::exit::forget(self.segment.header().identity);
    }
}
