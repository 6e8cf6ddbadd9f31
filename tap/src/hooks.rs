//! The functions of tt-metal that are replaced. Each does what the real one does, and reports it.
//!
//! They are exported under the real names, so that LD_PRELOAD puts them in place, and listed, so that
//! [`crate::slots`] can. A free is reported before it is forwarded and an allocation after: in the other order another
//! thread's allocation of the same address could be seen first.

use std::ffi::{CStr, c_void};

use crate::books;
use crate::metal::{Allocator, Buffer, Symbol};

/// A function that is replaced: its name, and what stands in for it.
pub(crate) struct Hook {
    pub(crate) name: &'static CStr,
    pub(crate) replacement: *mut c_void,
}

// SAFETY: a name and the address of a function.
unsafe impl Sync for Hook {}

/// Defines replacements: functions with the real name, in which `forward` calls the real one with the same arguments.
macro_rules! hooks {
    ($list:ident: $($symbol:literal: fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? |$forward:ident| $body:block)*) => {
        $(
            #[doc = concat!("Stands in for `", $symbol, "`.")]
            ///
            /// # Safety
            ///
            /// To be called as the function that it stands in for.
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn $name($($argument: $type),*) $(-> $result)? {
                static REAL: Symbol = Symbol::new(match CStr::from_bytes_with_nul(concat!($symbol, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                });
                let real = REAL.get().unwrap_or_else(|| missing());
                // SAFETY: the function of that name, whose arguments the name says, and whose result is that of all
                // versions.
                let real = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>(real)
                };
                // SAFETY: the arguments of the caller.
                let $forward = || unsafe { real($($argument),*) };
                $body
            }
        )*

        pub(super) static $list: &[Hook] = &[$(Hook {
            name: match CStr::from_bytes_with_nul(concat!($symbol, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            },
            replacement: $name as *mut c_void,
        }),*];
    };
}

/// Everything that is replaced.
pub(crate) fn hooks() -> impl Iterator<Item = &'static Hook> {
    MEMORY.iter().chain(programs::PROGRAMS).chain(names::NAMES)
}

/// Somebody called a replaced function, and the real one is nowhere: there is no way to go on.
#[cold]
fn missing() -> ! {
    std::process::abort()
}

mod names;
mod programs;

hooks! {
    MEMORY:

    "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE":
    fn allocate_buffer(allocator: Allocator, buffer: Buffer) -> u64 |forward| {
        let allocation = books::allocation(allocator, buffer);
        // An exception passes through here, and drops `allocation`: then it failed.
        let address = forward();
        allocation.succeeded(address);
        address
    }

    "_ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE":
    fn deallocate_buffer(allocator: Allocator, buffer: Buffer) |forward| {
        let _call = books::free(allocator, buffer);
        forward()
    }

    "_ZN2tt8tt_metal13AllocatorImpl18deallocate_buffersEv":
    fn deallocate_buffers(allocator: Allocator) |forward| {
        let _call = books::free_all(allocator);
        forward()
    }

    "_ZN2tt8tt_metal13AllocatorImpl5clearEv":
    fn clear(allocator: Allocator) |forward| {
        let _call = books::free_all(allocator);
        forward()
    }

    "_ZN2tt8tt_metal13AllocatorImplC1ERKNS0_15AllocatorConfigE":
    fn construct_1(allocator: Allocator, config: *const c_void) |forward| {
        forward();
        books::born(allocator);
    }

    "_ZN2tt8tt_metal13AllocatorImplC2ERKNS0_15AllocatorConfigE":
    fn construct_2(allocator: Allocator, config: *const c_void) |forward| {
        forward();
        books::born(allocator);
    }

    "_ZN2tt8tt_metal13AllocatorImplD0Ev":
    fn destroy_0(allocator: Allocator) |forward| {
        books::dies(allocator);
        forward()
    }

    "_ZN2tt8tt_metal13AllocatorImplD1Ev":
    fn destroy_1(allocator: Allocator) |forward| {
        books::dies(allocator);
        forward()
    }

    "_ZN2tt8tt_metal13AllocatorImplD2Ev":
    fn destroy_2(allocator: Allocator) |forward| {
        books::dies(allocator);
        forward()
    }
}
