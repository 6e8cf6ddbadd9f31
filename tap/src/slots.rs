//! Puts the hooks in place in a process that runs already: libtt_metal.so calls its own functions through slots of the
//! dynamic linker, and those are rewritten.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::hooks::{Hook, hooks};
use crate::metal;
use crate::segment;
use crate::shield;

/// libtt_metal.so is not loaded.
const NOT_LOADED: c_int = -1;
/// What libtt_metal.so says of itself cannot be read.
const UNREADABLE: c_int = -2;

/// `struct link_map`, as far as it is public.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const libc::c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// `Elf64_Dyn`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: usize,
}

/// `Elf64_Rela`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// `Elf64_Sym`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ElfSymbol {
    name: u32,
    rest: [u32; 5],
}

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_JMPREL: i64 = 23;

/// Puts the hooks into a libtt_metal.so that is loaded. Returns how many are in place; fewer than 1: none, since it is not
/// loaded or cannot be read. May be called again, at any time and on any thread.
///
/// # Safety
///
/// Safe to call at any time; unsafe only as everything that C calls is.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tt_shm_tap_install() -> c_int {
    shield::attach(install).unwrap_or(UNREADABLE)
}

/// Ends the reports: the segment is gone, and the hooks, which stay in place, only forward. Returns 1, or 0 if nothing
/// was reported. [`tt_shm_tap_install`] begins anew.
///
/// # Safety
///
/// Safe to call at any time; unsafe only as everything that C calls is.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tt_shm_tap_detach() -> c_int {
    c_int::from(shield::detach(segment::close).unwrap_or(false))
}

fn install() -> c_int {
    shield::prepare();
    let Some(library) = metal::library() else { return NOT_LOADED };
    let mut map: *const LinkMap = ptr::null();
    // SAFETY: writes the address of the library's entry in the linker's list.
    if unsafe { libc::dlinfo(library, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) } != 0 {
        return UNREADABLE;
    }
    // SAFETY: the entry lives as long as the library, which is never unloaded while this handle is open.
    let Some(slots) = (unsafe { map.as_ref() }).and_then(Slots::of) else { return UNREADABLE };
    let placed = hooks().map(|hook| c_int::from(slots.patch(hook))).sum();
    for slots in others(map) {
        hooks().for_each(|hook| _ = slots.patch(hook));
    }
    placed
}

/// Whether a loaded libtt_metal.so calls a function through a slot, so that it can be replaced; `None` if that cannot be
/// read.
pub(crate) fn is_called_through(name: &CStr) -> Option<bool> {
    let mut map: *const LinkMap = ptr::null();
    // SAFETY: writes the address of the library's entry in the linker's list.
    if unsafe { libc::dlinfo(metal::library()?, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) } != 0 {
        return None;
    }
    // SAFETY: the entry lives as long as the library.
    let slots = unsafe { map.as_ref() }.and_then(Slots::of)?;
    Some(slots.find(name).is_some())
}

/// The slots of all other libraries, and of the program: ttnn calls tt-metal, too.
fn others(metal: *const LinkMap) -> Vec<Slots> {
    let mut first = metal;
    // SAFETY: entries of the linker's list, here and below. A library that is unloaded meanwhile would take its entry with
    // it; the linker's lock cannot be had, so this is called when the host loads nothing.
    while let Some(map) = unsafe { first.as_ref() }
        && !map.previous.is_null()
    {
        first = map.previous;
    }
    let mut all = Vec::new();
    // SAFETY: as above.
    while let Some(map) = unsafe { first.as_ref() } {
        if !std::ptr::eq(first, metal) {
            all.extend(Slots::of(map));
        }
        first = map.next;
    }
    all
}

/// The slots of a loaded library.
struct Slots {
    base: usize,
    relocations: *const Relocation,
    count: usize,
    symbols: *const ElfSymbol,
    names: *const libc::c_char,
}

impl Slots {
    fn of(map: &LinkMap) -> Option<Slots> {
        let entry = |wanted: i64| {
            let mut next = map.dynamic;
            loop {
                // SAFETY: the list ends with a tag of 0.
                let entry = unsafe { next.read() };
                match entry.tag {
                    0 => return None,
                    tag if tag == wanted => return Some(entry.value),
                    _ => next = next.wrapping_add(1),
                }
            }
        };
        Some(Slots {
            base: map.base,
            relocations: entry(DT_JMPREL)? as *const Relocation,
            count: entry(DT_PLTRELSZ)? / size_of::<Relocation>(),
            symbols: entry(DT_SYMTAB)? as *const ElfSymbol,
            names: entry(DT_STRTAB)? as *const libc::c_char,
        })
    }

    /// Lets the library's calls of a function go to the hook. Whether it calls it through a slot at all.
    fn patch(&self, hook: &Hook) -> bool {
        let Some(relocation) = self.find(hook.name) else { return false };
        let slot = (self.base + relocation.offset) as *mut c_void;
        if !make_writable(slot) {
            return false;
        }
        // SAFETY: a word of the library that the linker itself writes while threads run; both values are addresses of
        // functions with the same arguments.
        let slot = unsafe { AtomicPtr::from_ptr(slot.cast::<*mut c_void>()) };
        // Release: whoever jumps through the slot finds this library ready.
        slot.store(hook.replacement, Ordering::Release);
        true
    }

    fn find(&self, name: &CStr) -> Option<Relocation> {
        let mut relocations = (0..self.count).map(|index| {
            // SAFETY: one of the library's relocations.
            unsafe { self.relocations.wrapping_add(index).read() }
        });
        relocations.find(|relocation| self.name_of(*relocation) == name)
    }

    fn name_of(&self, relocation: Relocation) -> &CStr {
        let index = (relocation.info >> 32) as usize;
        // SAFETY: the symbol that the relocation names.
        let symbol = unsafe { self.symbols.wrapping_add(index).read() };
        // SAFETY: its name, which ends with a 0, in the library's table of names.
        unsafe { CStr::from_ptr(self.names.wrapping_add(symbol.name as usize)) }
    }
}

/// Slots are read-only in libraries that were linked with `-z now`.
fn make_writable(slot: *mut c_void) -> bool {
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = (slot as usize & !(page - 1)) as *mut c_void;
    // SAFETY: makes a page of a loaded library writable, which changes nothing in it.
    unsafe { libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}
