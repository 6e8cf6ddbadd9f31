//! What a call of the C library costs more than the same call in Rust.
//!
//! The shared library is loaded as a C host's linker would, and called through pointers, as C calls it. Both take turns in
//! one process, so that the difference holds whatever else goes on; a C caller's own loop is in it on both sides.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use serde_json::json;
use tt_shm_benches::child::play_part_if_asked;
use tt_shm_benches::options::Options;
use tt_shm_benches::report::Report;
use tt_shm_measure::interleave::{Figure, Interleaved};
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::{Nothing, Sink, Tracked, WrongSum};
use tt_shm_measure::workload::{Order, Pairs, Untimed, Workload};
use tt_shm_writer::{Record, Tracker};

/// The most that a C call may cost more.
const LIMIT_NS: f64 = 5.0;
/// Live buffers: they fit into the caches, so that memory does not hide the difference.
const LIVE: usize = 1000;

/// `tt_shm_options`.
#[repr(C)]
struct Opening {
    size: u32,
    flags: u32,
    name_space: *const c_char,
    rest: [u64; 4],
}

/// `tt_shm_buffer`.
#[repr(C)]
struct Buffer {
    size: u32,
    buffer_type: u32,
    id: u64,
    known: u64,
    bytes: u64,
    rest: [u64; 5],
}

type Handle = *mut c_void;

/// The functions of the loaded library.
#[derive(Clone, Copy)]
struct Library {
    open: extern "C" fn(*const Opening, *mut Handle) -> i32,
    register: extern "C" fn(Handle, *const [u64; 34], *mut u8) -> i32,
    alloc: extern "C" fn(Handle, u8, u32, u64, u64) -> i32,
    alloc_on: extern "C" fn(Handle, *const u8, usize, *const Buffer) -> i32,
    free: extern "C" fn(Handle, u8, u64) -> i32,
    own: extern "C" fn(Handle, u8, *mut [u64; 204]) -> i32,
}

impl Library {
    /// The library that cargo has built beside this program.
    fn load() -> Option<Library> {
        let path = std::env::current_exe().ok()?.parent()?.join("libtt_shm.so");
        let library = load(&path)?;
        Some(Library {
            open: symbol(library, c"tt_shm_tracker_open")?,
            register: symbol(library, c"tt_shm_register_device")?,
            alloc: symbol(library, c"tt_shm_alloc")?,
            alloc_on: symbol(library, c"tt_shm_alloc_on")?,
            free: symbol(library, c"tt_shm_free")?,
            own: symbol(library, c"tt_shm_own_counters")?,
        })
    }

    fn tracker(self, namespace: &str) -> CTracker {
        let namespace = CString::new(namespace).expect("no zero in it");
        let opening = Opening { size: 48, flags: 1, name_space: namespace.as_ptr(), rest: [0; 4] };
        let (mut handle, mut device) = (ptr::null_mut(), 0);
        assert_eq!((self.open)(&opening, &mut handle), 0, "opens");
        let mut info = [0; 34];
        info[0] = 272;
        assert_eq!((self.register)(handle, &info, &mut device), 0, "registers");
        CTracker { library: self, handle, device, is_short: true }
    }
}

fn load(path: &Path) -> Option<*mut c_void> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: a path with its end; what the library does when it is loaded is harmless.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    (!library.is_null()).then_some(library)
}

/// A function of the library, as a pointer of type `F`.
fn symbol<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: an open library, and a name with its end.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the function of that name has these arguments: tt_shm.h says so. The library is never unloaded.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
}

/// A tracker as a C host uses it.
#[derive(Clone, Copy)]
struct CTracker {
    library: Library,
    handle: Handle,
    device: u8,
    /// By the call that takes numbers, not the one that takes a struct.
    is_short: bool,
}

impl CTracker {
    fn dram_bytes(&self) -> u64 {
        let mut counters = [0; 204];
        counters[0] = 1632;
        assert_eq!((self.library.own)(self.handle, self.device, &mut counters), 0);
        counters[3]
    }
}

impl Sink for CTracker {
    #[inline(always)]
    fn alloc(&mut self, id: u64, bytes: u64) {
        let code = if self.is_short {
            (self.library.alloc)(self.handle, self.device, 0, id, bytes)
        } else {
            let buffer = Buffer { size: 72, buffer_type: 0, id, known: 0, bytes, rest: [0; 5] };
            (self.library.alloc_on)(self.handle, &self.device, 1, &buffer)
        };
        assert_eq!(code, 0, "not live yet");
    }

    #[inline(always)]
    fn free(&mut self, id: u64, _: u64) {
        assert_eq!((self.library.free)(self.handle, self.device, id), 0, "live");
    }
}

/// The bytes that a sink counts are those that are live.
fn check<S: Sink>(pairs: &mut Pairs<S>, found: impl Fn(&S) -> u64) -> Result<(), WrongSum> {
    pairs.step(&mut Untimed);
    let expected = pairs.live_bytes();
    WrongSum::check("bytes live", found(&pairs.sink), expected)
}

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut report = Report::new("capi", &options);
    let Some(library) = Library::load() else {
        return report.skip("C calls", "libtt_shm.so is not beside this program");
    };
    let scene = Scene::new();
    let short = library.tracker(scene.namespace.as_str());
    let long = CTracker { is_short: false, ..library.tracker(scene.namespace.as_str()) };
    let pairs = |sink| Pairs::new(sink, LIVE, Order::Random, 0);
    let mut cases = Interleaved::default();
    let rust: Tracked<Tracker> = scene.tracked();
    cases.add(Figure::BestRound, Pairs::new(Nothing, LIVE, Order::Random, 0), |_| Ok(())).expect("nothing");
    cases
        .add(Figure::BestRound, Pairs::new(rust, LIVE, Order::Random, 0), |pairs| {
            check(pairs, |sink| sink.tracker.counters(sink.device).expect("enabled").dram_used())
        })
        .expect("exact");
    for tracker in [short, long] {
        cases
            .add(Figure::BestRound, pairs(tracker), |pairs| check(pairs, CTracker::dram_bytes))
            .expect("exact");
    }
    for _ in 0..options.pick(200, 20) {
        cases.pass();
    }
    let measured = cases.finish().expect("exact");
    let names = ["harness alone", "Rust", "C, by numbers", "C, by a struct"];
    let figures: Vec<f64> = measured.iter().map(|measured| measured.ns).collect();
    let mut base = None;
    for (name, measured) in names.into_iter().zip(measured) {
        let parameters = [("live", json!(LIVE))];
        match (&base, name) {
            (None, "Rust") => base = Some(report.add(name, &parameters, measured)),
            (Some(base), _) => _ = report.add_to(base, name, &parameters, measured),
            (None, _) => _ = report.add(name, &parameters, measured),
        }
    }
    for (name, ns) in names.iter().zip(&figures).skip(2) {
        let more = ns - figures[1];
        let verdict = if more <= LIMIT_NS { "within" } else { "MORE THAN" };
        println!("{name}: {more:+.1} ns an event beside Rust, {verdict} the limit of {LIMIT_NS} ns");
    }
    report.finish();
}
