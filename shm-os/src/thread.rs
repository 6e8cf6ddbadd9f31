//! Which thread this is, and fences that only one of two threads pays for.

use rustix::thread::{MembarrierCommand, membarrier};
use std::arch::asm;
use std::sync::atomic::{Ordering, compiler_fence};

/// A number of the calling thread that no other living thread of the process has. A thread that is made after one has
/// ended may have its number.
///
/// It is the thread pointer, the address that the C library finds everything of a thread by. A thread-local variable
/// would need a call of `__tls_get_addr` for each use in a library that is loaded at run time, which the tap is; this is
/// one instruction anywhere.
#[inline(always)]
#[must_use]
pub fn this_thread() -> u64 {
    let pointer: u64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the ABI has the thread pointer itself at its target, fs:0. Nothing is changed.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register that programs may read. Nothing is changed. `readonly`, so that it is read again after a
    // call in which a fiber may have changed its thread.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    };
    pointer
}

/// The half of a fence that costs nothing: together with [`heavy_fence`] in another thread it is what two
/// `fence(SeqCst)` are. Of its own it only keeps the compiler from moving anything across.
#[inline(always)]
pub(crate) fn light_fence() {
    compiler_fence(Ordering::SeqCst);
}

/// The half of a fence that pays for both: every other running thread of the process executes a full fence before this
/// returns, and those that do not run execute one when they are switched. `false` if the kernel refuses.
pub(crate) fn heavy_fence() -> bool {
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Prepares for [`heavy_fence`]; returns whether the kernel allows it. The first time takes some milliseconds in a
/// process with several threads.
pub(crate) fn allow_heavy_fences() -> bool {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}
