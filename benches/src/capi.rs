//! The C library as a C host has it: loaded as its linker would, and called through pointers.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use tt_shm_measure::sink::Sink;

/// `TT_SHM_OPEN_ENABLED`.
const ENABLED: u32 = 1 << 0;
/// `TT_SHM_OPEN_EXCLUSIVE`.
const EXCLUSIVE: u32 = 1 << 4;

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
#[derive(Clone, Copy, Debug)]
pub struct Library {
    open: extern "C" fn(*const Opening, *mut Handle) -> i32,
    register: extern "C" fn(Handle, *const [u64; 34], *mut u8) -> i32,
    alloc: extern "C" fn(Handle, u8, u32, u64, u64) -> i32,
    alloc_on: extern "C" fn(Handle, *const u8, usize, *const Buffer) -> i32,
    free: extern "C" fn(Handle, u8, u64) -> i32,
    own: extern "C" fn(Handle, u8, *mut [u64; 204]) -> i32,
}

impl Library {
    /// The library that cargo has built beside this program.
    pub fn load() -> Option<Library> {
        let program = std::env::current_exe().ok()?;
        let folder = program.parent()?;
        // What is built for another package lies among the dependencies. Beside the program may be an older one.
        let library =
            ["deps/libtt_shm.so", "libtt_shm.so"].iter().find_map(|path| load(&folder.join(path)))?;
        Some(Library {
            open: symbol(library, c"tt_shm_tracker_open")?,
            register: symbol(library, c"tt_shm_register_device")?,
            alloc: symbol(library, c"tt_shm_alloc")?,
            alloc_on: symbol(library, c"tt_shm_alloc_on")?,
            free: symbol(library, c"tt_shm_free")?,
            own: symbol(library, c"tt_shm_own_counters")?,
        })
    }

    /// A tracker whose calls take numbers.
    pub fn tracker(self, namespace: &str) -> CTracker {
        self.open(namespace, ENABLED)
    }

    /// The same for this thread only, without a lock.
    pub fn exclusive(self, namespace: &str) -> CTracker {
        self.open(namespace, ENABLED | EXCLUSIVE)
    }

    fn open(self, namespace: &str, flags: u32) -> CTracker {
        let namespace = CString::new(namespace).expect("no zero in it");
        let opening = Opening { size: 48, flags, name_space: namespace.as_ptr(), rest: [0; 4] };
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
#[derive(Clone, Copy, Debug)]
pub struct CTracker {
    library: Library,
    handle: Handle,
    device: u8,
    /// By the call that takes numbers, not the one that takes a struct.
    is_short: bool,
}

impl CTracker {
    /// The same by the call that takes a struct.
    pub fn by_struct(self) -> CTracker {
        CTracker { is_short: false, ..self }
    }

    /// Bytes of DRAM in use.
    pub fn dram_bytes(&self) -> u64 {
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
