//! The proof of concept's client, with its calls, on this process's tracker.
//!
//! As its server did, a repeated allocation of an id raises a reference count; devices are known by the host's numbers, and
//! are registered when they are first met; sizes are from 1 byte to 100 GiB. Kernel types are told, never guessed. Neither
//! what a buffer occupies nor which programs are resident is told: the process is marked as partial.
//!
//! The books lie behind a lock that a fork empties: a forked child has nothing live, as its segment says.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use once_cell::race::OnceBox;
use tt_shm_os::ForkMutex;
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, CoreType, Device, DeviceInfo, Kernel, KernelType, Record, RecordError,
    Tracker,
};

use crate::code::{
    Done, Failure, TT_SHM_ERR_FORKED_WITHOUT_SEGMENT, TT_SHM_ERR_OPEN_CREATE, TT_SHM_ERR_SIZE_OUT_OF_RANGE,
    call,
};
use crate::handle;
use crate::types::{buffer_type, no_such};

/// Largest size that the proof of concept's server accepts.
const MOST_BYTES: u64 = 100 << 30;
/// The program of all circular buffers: the calls name none, so that no dispatch makes them resident.
const NO_PROGRAM: u64 = u64::MAX;

/// The client of this process.
struct Client {
    tracker: Tracker,
    books: ForkMutex<Books>,
}

/// What the calls need to know of earlier ones.
#[derive(Default)]
struct Books {
    devices: HashMap<i32, Device>,
    buffers: HashMap<(i32, u64), Buffer>,
}

/// A live buffer.
struct Buffer {
    references: u32,
    bytes: u64,
    buffer_type: BufferType,
}

static CLIENT: OnceBox<Client> = OnceBox::new();

/// The client, opened at the first call; `None` if tracking is disabled. Also `None` in calls after the tracker was closed,
/// which then do nothing.
#[inline]
fn client() -> Done<Option<&'static Client>> {
    let client = match CLIENT.get() {
        Some(client) => client,
        None => open()?,
    };
    Ok(Some(client).filter(|client| client.tracker.is_enabled()))
}

#[cold]
fn open() -> Done<&'static Client> {
    // Through the handle, so that a tap learns of it.
    let number = crate::writer::of_process()?;
    let tracker = handle::trackers()
        .find(|opened| opened.has_number(number))
        .and_then(|opened| opened.shared().cloned());
    let tracker = tracker.unwrap_or_else(Tracker::disabled);
    tracker.partial()?;
    let failed = |error: std::io::Error| {
        Failure::new(
            TT_SHM_ERR_OPEN_CREATE,
            error.raw_os_error(),
            format_args!("no page that forks wipe: {error}"),
        )
    };
    let books = ForkMutex::new(Books::default()).map_err(failed)?;
    // Another thread may be faster: then that is the client, and this one is dropped without ending any report.
    Ok(CLIENT.get_or_init(|| Box::new(Client { tracker, books })))
}

/// Runs a call with the books of this process.
fn report(device: i32, bytes: Option<u64>, work: impl FnOnce(&Tracker, Device, &mut Books) -> Done) -> i32 {
    call(|| {
        let Some(Client { tracker, books }) = client()? else { return Ok(()) };
        if let Some(bytes) = bytes.filter(|bytes| !(1..=MOST_BYTES).contains(bytes)) {
            let text = format_args!("{bytes} bytes are ignored: sizes are from 1 to {MOST_BYTES}");
            return Err(Failure::new(TT_SHM_ERR_SIZE_OUT_OF_RANGE, None, text));
        }
        let done = books.with(
            || Some(Books::default()),
            |books| {
                let device = books.device(tracker, device)?;
                work(tracker, device, books)
            },
        );
        done.unwrap_or_else(|| Err(Failure::argument(TT_SHM_ERR_FORKED_WITHOUT_SEGMENT, "no books")))
    })
}

impl Books {
    /// A device by the host's number, which is all that the calls tell of it.
    fn device(&mut self, tracker: &Tracker, number: i32) -> Done<Device> {
        if let Some(device) = self.devices.get(&number) {
            return Ok(*device);
        }
        let logical =
            u32::try_from(number).map_err(|_| no_such("device with this number:", number as u64))?;
        let info = DeviceInfo { chip_id: logical.into(), logical_id: Some(logical), ..DeviceInfo::default() };
        let device = tracker.register_device(&info)?;
        self.devices.insert(number, device);
        Ok(device)
    }
}

/// `AllocationClient::is_enabled`: 1 if `TT_ALLOC_TRACKING_ENABLED` is `1` and this process has a tracker.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_client_is_enabled() -> i32 {
    let mut is_enabled = 0;
    call(|| {
        is_enabled = i32::from(client()?.is_some());
        Ok(())
    });
    is_enabled
}

/// `AllocationClient::report_allocation`. A repetition adds a reference; the first size and type stay, and a repetition that
/// differs from them counts as a misuse.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_client_allocation(device_id: i32, bytes: u64, buffer: u8, id: u64) -> i32 {
    report(device_id, Some(bytes), |tracker, device, books| {
        let buffer_type = buffer_type(buffer.into())?;
        let alloc = Alloc::new(buffer_type, id, bytes);
        match books.buffers.entry((device_id, id)) {
            Entry::Occupied(mut live) => {
                let live = live.get_mut();
                live.references = live.references.saturating_add(1);
                // Refused, and thereby counted.
                if (live.bytes, live.buffer_type) != (bytes, buffer_type) {
                    tracker.alloc(device, alloc)?;
                }
            }
            Entry::Vacant(free) => {
                tracker.alloc(device, alloc)?;
                free.insert(Buffer { references: 1, bytes, buffer_type });
            }
        }
        Ok(())
    })
}

/// `AllocationClient::report_deallocation`: takes a reference back, and the last one frees.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_client_deallocation(device_id: i32, id: u64) -> i32 {
    report(device_id, None, |tracker, device, books| {
        if let Entry::Occupied(mut live) = books.buffers.entry((device_id, id)) {
            if live.get().references > 1 {
                live.get_mut().references -= 1;
                return Ok(());
            }
            live.remove();
        }
        Ok(tracker.free(device, id)?)
    })
}

/// `AllocationClient::report_cb_allocation`. A repetition replaces the size, and counts as a misuse.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_client_cb_allocation(device_id: i32, bytes: u64, id: u64) -> i32 {
    report(device_id, Some(bytes), |tracker, device, _| {
        let cb = CircularBuffer::new(NO_PROGRAM, id, bytes, 1);
        match tracker.cb_alloc(device, cb) {
            Err(RecordError::DoubleAlloc { live_bytes, .. }) if live_bytes != bytes => {
                tracker.cb_free(device, NO_PROGRAM, id, None)?;
                Ok(tracker.cb_alloc(device, cb)?)
            }
            result => Ok(result?),
        }
    })
}

/// `AllocationClient::report_cb_deallocation`. The size is checked unless it is 0.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_client_cb_deallocation(device_id: i32, bytes: u64, id: u64) -> i32 {
    report(device_id, None, |tracker, device, _| {
        Ok(tracker.cb_free(device, NO_PROGRAM, id, Some(bytes).filter(|bytes| *bytes != 0))?)
    })
}

/// `AllocationClient::report_kernel_load`: the bytes on all cores. A repetition is a cached dispatch. Fabric kernels are on
/// ethernet cores, all others on Tensix cores.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_client_kernel_load(device_id: i32, bytes: u64, id: u64, kernel_type: u8) -> i32 {
    report(device_id, Some(bytes), |tracker, device, _| {
        let (kernel_type, core_type) = match kernel_type {
            1 => (KernelType::Fabric, CoreType::Ethernet),
            2 => (KernelType::Dispatch, CoreType::Tensix),
            _ => (KernelType::Application, CoreType::Tensix),
        };
        tracker.kernel_load(device, Kernel::new(id, kernel_type, core_type, bytes, 1))?;
        Ok(())
    })
}

/// `AllocationClient::report_kernel_unload`. The size is checked unless it is 0.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_client_kernel_unload(device_id: i32, bytes: u64, id: u64) -> i32 {
    report(device_id, None, |tracker, device, _| {
        Ok(tracker.kernel_unload(device, id, Some(bytes).filter(|bytes| *bytes != 0))?)
    })
}
