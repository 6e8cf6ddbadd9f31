//! The emitter: the state of one process's reports, and the one place where its events are made.

use crate::config::Config;
use crate::error::{OpenError, RecordError};
use crate::live::{Key, Live, LiveRecord, Sought};
use crate::names::{Names, cut};
use crate::programs::Programs;
use crate::registry::Registry;
use crate::request::{Alloc, NameId};
use crate::rows::Rows;
use crate::segment::Segment;
use shm_layout::control::{self, Anomaly};
use shm_layout::protocol::commit::{Accounts, Refused};
use shm_layout::{
    Class, Counters, DeviceEntry, Event, EventKind, MAX_DEVICES, MarkerPhase, NO_DEVICE, NO_ROW, SLOT_WORDS,
    UNKNOWN, Word, flags,
};
use std::io;

type Recorded<T = ()> = Result<T, RecordError>;

/// A registered device.
struct Registered {
    entry: Box<DeviceEntry>,
    /// By class, the number of banks that a buffer of it occupies; 0 if that is not known.
    banks: [u64; Class::COUNT],
}

impl Registered {
    fn new(entry: DeviceEntry) -> Registered {
        // In hybrid mode a buffer may be in some banks only: what it occupies is what the host reports,
        // otherwise unknown.
        let hybrid = entry.is_hybrid() == Some(true);
        let banks = |class: Class| entry.pool(class).filter(|_| !hybrid).map_or(0, |pool| pool.banks);
        let banks = Class::ALL.map(banks);
        Registered { entry: Box::new(entry), banks }
    }
}

/// Everything behind the lock.
pub struct Emitter {
    pub(crate) segment: Segment,
    position: u64,
    /// The time of the current call.
    time: u64,
    /// The devices that this process registered.
    devices: Vec<Registered>,
    pub(crate) accounts: Accounts,
    live: Live,
    pub(crate) rows: Rows,
    pub(crate) programs: Programs,
    names: Names,
}

impl Emitter {
    /// Creates a segment with the devices and names that the registry already has.
    pub(crate) fn open(config: &Config, registry: &Registry) -> Result<Emitter, OpenError> {
        let segment = Segment::create(config)?;
        crate::exit::remember(segment.header().identity);
        let rows = Rows::new(&segment);
        let accounts = Accounts::new(segment.words().ring.len());
        let live = Live::new(segment.words().rows.len());
        let mut emitter = Emitter {
            segment,
            position: 0,
            time: 0,
            devices: Vec::new(),
            accounts,
            live,
            rows,
            programs: Programs::new(),
            names: Names::new(),
        };
        emitter.inherit(registry).map_err(|error| OpenError::Create {
            step: "list the devices and names of the parent",
            cause: io::Error::other(error),
        })?;
        Ok(emitter)
    }

    /// Gives devices and names the numbers that handles made before a fork have. All or none of them: the
    /// number of one for which there is no room would go to the next, and reports about the one would be
    /// counted on the other.
    fn inherit(&mut self, registry: &Registry) -> Recorded {
        for entry in registry.devices() {
            self.add_device(entry)?;
        }
        for name in registry.names() {
            self.names.intern(&self.segment, name).ok_or(RecordError::NamesFull)?;
        }
        Ok(())
    }

    /// Counts a misuse and returns its error.
    #[cold]
    pub(crate) fn misuse<T>(&self, anomaly: Anomaly, error: RecordError) -> Recorded<T> {
        self.segment.count(anomaly);
        Err(error)
    }

    /// Registers a device, or adds to what is known of one that is registered. The first claim about a figure
    /// stays.
    pub(crate) fn register(&mut self, registry: &Registry, entry: &DeviceEntry) -> Recorded<u8> {
        let same = |known: &DeviceEntry| (known.chip_id, known.allocator) == (entry.chip_id, entry.allocator);
        let Some(number) = self.devices.iter().position(|device| same(&device.entry)) else {
            let number = self.add_device(entry)?;
            registry.set_device(usize::from(number), *entry);
            return Ok(number);
        };
        let before = *self.devices[number].entry;
        let mut merged = before;
        if !merged.learn(entry) {
            self.segment.count(Anomaly::DeviceConflict);
        }
        if merged.known != before.known {
            self.segment.words().write_device(number, &merged);
            self.devices[number] = Registered::new(merged);
            registry.set_device(number, merged);
        }
        Ok(number as u8)
    }

    fn add_device(&mut self, entry: &DeviceEntry) -> Recorded<u8> {
        let number = self.devices.len();
        let (header, words) = (self.segment.header(), self.segment.words());
        let bytes = size_of_val(&words.counters[0]);
        let offset = header.counters.offset as usize + number * bytes;
        if number == MAX_DEVICES {
            return self.misuse(Anomaly::DeviceListFull, RecordError::DeviceListFull);
        }
        if self.segment.populate(offset, bytes).is_err() {
            return self.misuse(Anomaly::NoRoom, RecordError::NoRoom);
        }
        shm_layout::point!(DevicePopulated);
        words.write_device(number, entry);
        // Release: pairs with the acquire fence in device_count().
        words.control[control::DEVICE_COUNT].store_release(number as u64 + 1);
        self.devices.push(Registered::new(*entry));
        self.accounts.add_device();
        Ok(number as u8)
    }

    pub(crate) fn intern(&mut self, registry: &Registry, name: &[u8]) -> Recorded<NameId> {
        let name = cut(name);
        let number = self.names.intern(&self.segment, name);
        self.publish_degraded();
        match number {
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

    /// Reads the clock. Once per call: all events of a call have the same time.
    ///
    /// The read waits for earlier instructions to finish, and later ones do not begin before it ends. So what comes
    /// before it should be short, such as [`Emitter::seek`], which is done while the call before still is; a lookup that
    /// goes on to the index and the row would make the read wait. That comes right after it, so that the rest of the
    /// event overlaps with it.
    #[inline(always)]
    pub(crate) fn read_clock(&mut self) {
        // The counter is read without a barrier, so it may seem to step back by some nanoseconds when the
        // lock moves between cores; times in a ring never do.
        self.time = self.time.max(self.segment.ticks());
    }

    /// An event with the time of this call.
    #[inline(always)]
    pub(crate) fn event(&self, kind: EventKind, device: u8) -> Event {
        Event { time: self.time, ..Event::new(kind, device) }
    }

    /// Emits an event, or refuses it, in which case nothing has happened.
    #[inline(always)]
    pub(crate) fn emit(&mut self, mut event: Event) -> Recorded {
        self.count(&mut event)?;
        self.segment.words().publish(&event, None, &mut self.accounts);
        Ok(())
    }

    /// The first half of an emit: gives an event its position and counts it privately.
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
        // The position is free for the next event.
        self.position -= 1;
        match refused {
            Refused::UnknownDevice => {
                self.misuse(Anomaly::UnknownDevice, RecordError::UnknownDevice { device })
            }
            Refused::Implausible => self.too_large(bytes),
        }
    }

    /// The record of a live allocation.
    pub(crate) fn find(&self, key: &Key) -> Option<LiveRecord> {
        self.live.find(self.segment.words().rows, key)
    }

    /// Begins the search for a live allocation: all that can be known of its place before the index is looked at.
    #[inline(always)]
    pub(crate) fn seek(&self, key: Key) -> Sought {
        self.live.seek(key)
    }

    #[inline(always)]
    pub(crate) fn alloc(&mut self, device: u8, sought: Sought, alloc: &Alloc) -> Recorded {
        let (size, flags) = self.occupied(device, alloc);
        let event = self.event(EventKind::Alloc, device);
        let event = Event { class: alloc.class as u8, flags, id: alloc.id, size, aux: alloc.size, ..event };
        self.begin(sought, event, "buffer", |event| Event {
            name: alloc.names.low(),
            site: alloc.names.high(),
            address: alloc.address,
            cores: alloc.place.low(),
            place: alloc.place.high(),
            ..event
        })
    }

    /// The bytes that a buffer occupies, and the flag that tells whether that is only the requested size.
    #[inline(always)]
    fn occupied(&self, device: u8, alloc: &Alloc) -> (u64, u8) {
        if alloc.occupied != UNKNOWN {
            (alloc.occupied, 0)
        } else if alloc.bytes_per_bank == UNKNOWN {
            (alloc.size, flags::REQUESTED)
        } else {
            let device = self.devices.get(usize::from(device));
            match device.map_or(0, |device| device.banks[alloc.class as usize]) {
                0 => (alloc.size, flags::REQUESTED),
                banks => (alloc.bytes_per_bank.saturating_mul(banks), 0),
            }
        }
    }

    /// Returns the error that [`Emitter::alloc`] would return.
    pub(crate) fn check_alloc(&self, device: u8, alloc: &Alloc) -> Recorded {
        let (size, _) = self.occupied(device, alloc);
        self.check_new(Key::buffer(device, alloc.id), alloc.class, size, alloc.size, "buffer")
    }

    /// Returns an error if the key is taken or the class has no room.
    pub(crate) fn check_new(
        &self,
        key: Key,
        class: Class,
        size: u64,
        requested: u64,
        what: &'static str,
    ) -> Recorded {
        let has_room = self.counters(key.device())?.has_room(class, size, requested);
        if let Some(LiveRecord { device, id, size: live_bytes, .. }) = self.find(&key) {
            let error = RecordError::DoubleAlloc { what, device, id, live_bytes };
            return self.misuse(Anomaly::DoubleAlloc, error);
        }
        if has_room { Ok(()) } else { self.too_large(size.max(requested)) }
    }

    /// Returns the record of a live allocation, or the error if there is none.
    pub(crate) fn check_live(&self, key: Key, what: &'static str) -> Recorded<LiveRecord> {
        match self.find(&key) {
            Some(said) => Ok(said),
            None => self.not_live(key, what),
        }
    }

    #[cold]
    fn not_live<T>(&self, key: Key, what: &'static str) -> Recorded<T> {
        let (device, id) = (key.device(), key.id());
        self.counters(device)?;
        self.misuse(Anomaly::UnmatchedFree, RecordError::UnmatchedFree { what, device, id })
    }

    #[cold]
    pub(crate) fn too_large<T>(&self, bytes: u64) -> Recorded<T> {
        self.misuse(Anomaly::SizeOutOfRange, RecordError::SizeOutOfRange { bytes })
    }

    /// Emits the event of a new allocation, with a row for it. `rest` adds what is not counted. It is called
    /// last, so that no register has to hold that meanwhile.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        sought: Sought,
        mut event: Event,
        what: &'static str,
        rest: impl FnOnce(Event) -> Event,
    ) -> Recorded {
        let Some(row) = self.rows.take(&self.segment) else {
            return self.begin_unlisted(rest(event).to_words(), what);
        };
        if !self.live.insert_at_home(self.segment.words().rows, &sought, row) {
            self.insert_elsewhere(sought.key, row, what)?;
        }
        event.row = row;
        if let Err(error) = self.count(&mut event) {
            return self.undo(sought.key, row, error);
        }
        self.segment.words().publish(&rest(event), None, &mut self.accounts);
        Ok(())
    }

    /// Removes an allocation whose event was refused.
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
        // As words: an event whose address is taken would have to be in memory on the hot path too.
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

    fn double_alloc(&mut self, row: u32, live: LiveRecord, what: &'static str) -> Recorded {
        self.rows.put(row);
        let LiveRecord { device, id, size: live_bytes, .. } = live;
        let error = RecordError::DoubleAlloc { what, device, id, live_bytes };
        self.misuse(Anomaly::DoubleAlloc, error)
    }

    /// Removes an allocation whose end is to be reported.
    pub(crate) fn take(&mut self, key: Key, what: &'static str) -> Recorded<LiveRecord> {
        match self.live.take(self.segment.words().rows, &key) {
            Some(said) => Ok(said),
            None => self.not_live(key, what),
        }
    }

    /// Emits the event of an allocation that ends, and checks the size that the caller gave. `lanes` has the
    /// bits of the lanes in which it was resident.
    #[inline(always)]
    pub(crate) fn release(
        &mut self,
        event: Event,
        said: &LiveRecord,
        lanes: u16,
        given: Option<u64>,
        what: &'static str,
    ) -> Recorded {
        let LiveRecord { device, row, id, .. } = *said;
        let flags = said.flags | if lanes == 0 { 0 } else { flags::RESIDENT };
        let event = Event { flags, place: lanes, ..said.describe(event) };
        self.emit(event)?;
        if row == NO_ROW {
            self.publish_unlisted();
        }
        self.rows.put(row);
        match given {
            Some(given_bytes) if given_bytes != event.requested() => {
                let live_bytes = event.requested();
                let error = RecordError::SizeMismatch { what, device, id, live_bytes, given_bytes };
                self.misuse(Anomaly::SizeMismatch, error)
            }
            _ => Ok(()),
        }
    }

    #[inline(always)]
    pub(crate) fn free(&mut self, device: u8, sought: Sought, given: Option<u64>) -> Recorded {
        let event = self.event(EventKind::Free, device);
        match self.live.take_at_home(self.segment.words().rows, &sought) {
            Some(said) => self.release(event, &said, 0, given, "buffer"),
            None => self.free_elsewhere(device, sought.key.id(), given),
        }
    }

    #[cold]
    #[inline(never)]
    fn free_elsewhere(&mut self, device: u8, id: u64, given: Option<u64>) -> Recorded {
        let said = self.take(Key::buffer(device, id), "buffer")?;
        let event = self.event(EventKind::Free, device);
        self.release(event, &said, 0, given, "buffer")
    }

    /// Frees a buffer that its device drops as it is closed.
    pub(crate) fn free_dropped(&mut self, device: u8, id: u64) -> Recorded {
        let mut said = self.take(Key::buffer(device, id), "buffer")?;
        said.flags |= flags::DROPPED;
        let event = self.event(EventKind::Free, device);
        self.release(event, &said, 0, None, "buffer")
    }

    /// Gives a live allocation a name, and a site if there is one.
    pub(crate) fn name(&mut self, key: Key, name: NameId, site: NameId, what: &'static str) -> Recorded {
        let said = self.check_live(key, what)?;
        self.rename(&said, name, site)
    }

    /// The same for one that was found.
    pub(crate) fn rename(&mut self, said: &LiveRecord, name: NameId, site: NameId) -> Recorded {
        let [_, old_site] = said.names();
        let site = if site == NameId::NONE { old_site } else { site.0 };
        let event = self.event(EventKind::Name, said.device);
        self.emit(Event { name: name.0, site, ..said.describe(event) })
    }

    #[cold]
    fn publish_unlisted(&self) {
        let count = self.live.unlisted() as u64;
        Word::store(&self.segment.words().control[control::UNLISTED], count);
        self.publish_degraded();
    }

    /// Publishes whether something is missing from the lists for lack of room.
    #[cold]
    pub(crate) fn publish_degraded(&self) {
        let complete = self.live.unlisted() == 0 && self.programs.without_rows() == 0 && self.names.fit();
        self.segment.set_state(control::state::DEGRADED, !complete);
    }

    /// Emits an event that only describes a device.
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

/// Converts a number of cores to the event's field for it.
#[inline(always)]
pub(crate) fn short(cores: u32) -> u16 {
    u16::try_from(cores).unwrap_or(u16::MAX)
}

impl Drop for Emitter {
    fn drop(&mut self) {
        crate::exit::forget(self.segment.header().identity);
    }
}
