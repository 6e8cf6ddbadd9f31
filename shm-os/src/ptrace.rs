//! One thread of another process, stopped and changed by `ptrace`.
//!
//! Nothing here touches the memory of this process, so whatever a caller does to a tracee is sound here. That it leaves
//! the tracee as it was is the caller's business; a tracee is let go when its tracer ends, however that ends.

use std::io;
use std::ptr;

use rustix::process::{Pid, WaitOptions, waitpid};

/// The general registers of x86_64, as `PTRACE_GETREGS` has them (`struct user_regs_struct`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the processor's manual")]
pub struct Registers {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    /// The number of the system call that the thread is in; negative if it is in none.
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub eflags: u64,
    pub rsp: u64,
    pub ss: u64,
    pub fs_base: u64,
    pub gs_base: u64,
    pub ds: u64,
    pub es: u64,
    pub fs: u64,
    pub gs: u64,
}

const _: () = assert!(size_of::<Registers>() == size_of::<libc::user_regs_struct>());

/// Why a tracee does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// [`Tracee::interrupt`] stopped it.
    Interrupted,
    /// Its whole process was stopped, as by SIGSTOP. [`Resume::Listen`] leaves it so until SIGCONT.
    Group,
    /// It begins or ends a system call.
    Syscall,
    /// It is about to get this signal, which the next [`Tracee::resume`] passes on or drops.
    Signal(i32),
    /// It has ended.
    Ended,
}

/// How a stopped tracee goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Until something happens.
    Continue,
    /// Until it begins or ends a system call.
    ToSyscall,
    /// It stays stopped with its process, and goes on with it.
    Listen,
}

/// A thread that the calling thread traces. Other threads of its process are left alone.
#[derive(Debug)]
pub struct Tracee {
    tid: Pid,
}

impl Tracee {
    /// Begins to trace a thread, which goes on running.
    pub fn seize(tid: u32) -> io::Result<Tracee> {
        let number = i32::try_from(tid).ok().and_then(Pid::from_raw);
        let tid = number.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        request(libc::PTRACE_SEIZE, tid, libc::PTRACE_O_TRACESYSGOOD as usize)?;
        Ok(Tracee { tid })
    }

    /// Lets it stop as soon as it can, which [`Tracee::stopped`] tells.
    pub fn interrupt(&self) -> io::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.tid, 0)
    }

    /// Whether it has stopped, and why. Does not wait.
    pub fn stopped(&self) -> io::Result<Option<Stop>> {
        let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(libc::__WALL as u32);
        let Some((_, status)) = waitpid(Some(self.tid), options)? else { return Ok(None) };
        let (status, event) = (status.as_raw(), status.as_raw() >> 16);
        if !libc::WIFSTOPPED(status) {
            return Ok(Some(Stop::Ended));
        }
        Ok(Some(match libc::WSTOPSIG(status) {
            libc::SIGTRAP if event == libc::PTRACE_EVENT_STOP => Stop::Interrupted,
            _ if event == libc::PTRACE_EVENT_STOP => Stop::Group,
            signal if signal == libc::SIGTRAP | 0x80 => Stop::Syscall,
            signal => Stop::Signal(signal),
        }))
    }

    /// Lets it go on, with a signal unless that is 0.
    pub fn resume(&self, how: Resume, signal: i32) -> io::Result<()> {
        let kind = match how {
            Resume::Continue => libc::PTRACE_CONT,
            Resume::ToSyscall => libc::PTRACE_SYSCALL,
            Resume::Listen => libc::PTRACE_LISTEN,
        };
        request(kind, self.tid, signal as usize)
    }

    /// Its registers, while it is stopped.
    pub fn registers(&self) -> io::Result<Registers> {
        let mut registers = Registers::default();
        let to = (&raw mut registers).cast::<libc::c_void>();
        // SAFETY: writes a `user_regs_struct`, which `Registers` is.
        done(unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.tid.as_raw_nonzero().get(), 0_usize, to) })?;
        Ok(registers)
    }

    /// Sets its registers, while it is stopped.
    pub fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        let from = ptr::from_ref(registers).cast::<libc::c_void>();
        // SAFETY: reads a `user_regs_struct`, which `Registers` is.
        done(unsafe { libc::ptrace(libc::PTRACE_SETREGS, self.tid.as_raw_nonzero().get(), 0_usize, from) })
    }

    /// The signals that it blocks, while it is stopped: bit 0 is signal 1.
    pub fn blocked_signals(&self) -> io::Result<u64> {
        let mut mask = 0_u64;
        let (tid, to) = (self.tid.as_raw_nonzero().get(), (&raw mut mask).cast::<libc::c_void>());
        // SAFETY: writes as many bytes as the mask has.
        done(unsafe { libc::ptrace(libc::PTRACE_GETSIGMASK, tid, size_of::<u64>(), to) })?;
        Ok(mask)
    }

    /// Sets the signals that it blocks, while it is stopped.
    pub fn set_blocked_signals(&self, mask: u64) -> io::Result<()> {
        let (tid, from) = (self.tid.as_raw_nonzero().get(), (&raw const mask).cast::<libc::c_void>());
        // SAFETY: reads as many bytes as the mask has.
        done(unsafe { libc::ptrace(libc::PTRACE_SETSIGMASK, tid, size_of::<u64>(), from) })
    }
}

impl Drop for Tracee {
    /// Ends the tracing. If it is stopped, it goes on; if it runs, it is traced until this thread ends.
    fn drop(&mut self) {
        let _ = request(libc::PTRACE_DETACH, self.tid, 0);
    }
}

/// A request of which the last argument is a number.
fn request(kind: libc::c_uint, tid: Pid, data: usize) -> io::Result<()> {
    // SAFETY: with these kinds, which are those above that call this, the kernel reads and writes no memory of ours.
    done(unsafe { libc::ptrace(kind, tid.as_raw_nonzero().get(), 0_usize, data) })
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
