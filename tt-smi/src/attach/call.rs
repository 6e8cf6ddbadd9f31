//! Calls functions on a stopped thread of another process, and leaves the thread as it was.
//!
//! The usual way, a return address that faults so that the tracer notices, kills the process if the tracer ends in the
//! middle. Here the thread carries its way back with itself: a page of code in the process (`CODE`) saves its floating
//! point state, calls the function, and then loads every register again from the thread's own stack. So whatever happens
//! to tt-smi, SIGKILL included, the call is completed and the thread goes on where it was.
//!
//! The tracer stops the thread just before that, at the system call by which `CODE` unblocks signals, and loads the
//! registers itself: then the kernel begins an interrupted system call again exactly as it would have without us.
//! Signals are blocked meanwhile, and handled right after it.
//!
//! The page stays, 4 KiB of code and what was touched of 64 KiB of data, and the next attach uses it again. Only making
//! it, two system calls of some microseconds, has no way back without the tracer.

use std::io;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tt_shm_os::{Registers, Resume, Stop};

use super::memory::{Mapping, Memory};
use super::target::Target;
use super::thread::{Thread, is_outside, wait_until};

/// How long a call may take: loading a library takes milliseconds, unless another thread holds the linker's lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a system call of ours may take.
const MOMENT: Duration = Duration::from_secs(2);

const PAGE: u64 = 4096;
/// Behind the page of code: the words below, texts, and the floating point state, which has at most some 11 KiB.
const DATA: u64 = 64 << 10;
const FUNCTION: u64 = 0;
const FIRST: u64 = 8;
const SECOND: u64 = 16;
const RESULT: u64 = 24;
/// The address of the thread's errno, or 0, and its value.
const ERRNO: u64 = 32;
const ERRNO_VALUE: u64 = 40;
const SIGNALS: u64 = 48;
/// Not 0 while a thread runs a call; the thread itself sets and clears it.
const BUSY: u64 = 56;
/// The thread that was sent into the page last, unless its tracer has taken it back.
const SENT: u64 = 64;
const TEXTS: u64 = 256;

/// What the thread runs. It begins with %rbx at the data, and %rsp at what [`way_back`] wrote.
#[rustfmt::skip]
const CODE: &[u8] = &[
    0x48, 0xc7, 0x43, 0x38, 0x01, 0x00, 0x00, 0x00, // movq $1, 0x38(%rbx)
    0xfc,                                           // cld
    0x48, 0x89, 0xe5,                               // mov  %rsp, %rbp
    0x48, 0x83, 0xe4, 0xc0,                         // and  $-64, %rsp
    0x83, 0xc8, 0xff,                               // or   $-1, %eax
    0x99,                                           // cltd
    0x48, 0x0f, 0xae, 0xa3, 0x00, 0x10, 0x00, 0x00, // xsave64 0x1000(%rbx)
    // AGAIN
    0x48, 0x8b, 0x7b, 0x08,                         // mov  0x08(%rbx), %rdi
    0x48, 0x8b, 0x73, 0x10,                         // mov  0x10(%rbx), %rsi
    0x31, 0xc0,                                     // xor  %eax, %eax
    0xff, 0x13,                                     // call *(%rbx)
    0x48, 0x89, 0x43, 0x18,                         // mov  %rax, 0x18(%rbx)
    0x48, 0x8b, 0x4b, 0x20,                         // mov  0x20(%rbx), %rcx
    0xe3, 0x05,                                     // jrcxz +5
    0x8b, 0x43, 0x28,                               // mov  0x28(%rbx), %eax
    0x89, 0x01,                                     // mov  %eax, (%rcx)
    0x83, 0xc8, 0xff,                               // or   $-1, %eax
    0x99,                                           // cltd
    0x48, 0x0f, 0xae, 0xab, 0x00, 0x10, 0x00, 0x00, // xrstor64 0x1000(%rbx)
    0xb8, 0x0e, 0x00, 0x00, 0x00,                   // mov  $14, %eax  (rt_sigprocmask)
    0xbf, 0x02, 0x00, 0x00, 0x00,                   // mov  $2, %edi   (SIG_SETMASK)
    0x48, 0x8d, 0x73, 0x30,                         // lea  0x30(%rbx), %rsi
    0x31, 0xd2,                                     // xor  %edx, %edx
    0x41, 0xba, 0x08, 0x00, 0x00, 0x00,             // mov  $8, %r10d
    0x0f, 0x05,                                     // syscall
    // BACK: the tracer takes over here, if there is one.
    0x48, 0xc7, 0x43, 0x38, 0x00, 0x00, 0x00, 0x00, // movq $0, 0x38(%rbx)
    0x48, 0x89, 0xec,                               // mov  %rbp, %rsp
    0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, // pop  %r15, %r14, %r13, %r12
    0x5d, 0x5b,                                     // pop  %rbp, %rbx
    0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, // pop  %r11, %r10, %r9, %r8
    0x58, 0x59, 0x5a, 0x5e, 0x5f,                   // pop  %rax, %rcx, %rdx, %rsi, %rdi
    0x9d,                                           // popf
    0xc2, 0x80, 0x00,                               // ret  $128
];
const AGAIN: u64 = 28;
const BACK: u64 = 91;
/// What a function may use below %rsp without moving it.
const RED_ZONE: u64 = 128;

/// Signals that are not blocked during a call: those that the processor raises (SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV,
/// SIGSYS), and glibc's own for setuid, for which a thread that holds a lock of the dynamic linker may wait.
const NEVER_BLOCKED: [u32; 7] = [4, 5, 7, 8, 11, 31, 33];

const MMAP: u64 = 9;
const MPROTECT: u64 = 10;
const READ_WRITE: u64 = 3;
const READ_EXECUTE: u64 = 5;
const PRIVATE_ANONYMOUS: u64 = 0x22;

/// A thread on which functions are called.
#[derive(Debug)]
pub struct Caller<'t> {
    target: &'t Target,
    thread: Thread,
    /// Where the code is.
    page: u64,
    signals: u64,
    place: Place,
    /// Whether it has run since it was found.
    has_run: bool,
    texts: u64,
}

/// Where the thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Where it was found.
    Origin,
    /// In a call; it finds its way back by itself.
    Call,
    /// Behind a call, at its system call.
    AfterCall,
    /// Gone with its process, or let go.
    Gone,
}

impl<'t> Caller<'t> {
    /// Prepares a stopped thread for calls.
    pub fn new(target: &'t Target, thread: Thread) -> anyhow::Result<Caller<'t>> {
        let signals = thread.tracee.blocked_signals()?;
        let (place, has_run, texts) = (Place::Origin, false, TEXTS);
        let mut caller = Caller { target, thread, page: 0, signals, place, has_run, texts };
        caller.page = match find_page(&target.memory, &super::memory::mappings(target.pid)?) {
            Some(page) => page,
            None => caller
                .make_page()
                .context("no room for code could be made in it; the job goes on as it was")?,
        };
        let is_back = caller.earlier_call_is_back()?;
        ensure!(is_back, "an earlier attach of process {} has not come back yet: try again", target.pid);
        caller.write_way_back()?;
        caller.set_word(SIGNALS, signals)?;
        caller.set_word(ERRNO, 0)?;
        let errno = caller.call(target.c_function("__errno_location")?, [0; 2])?;
        let value: [u8; 4] = target.memory.array(errno)?;
        caller.set_word(ERRNO_VALUE, u64::from(u32::from_ne_bytes(value)))?;
        caller.set_word(ERRNO, errno)?;
        Ok(caller)
    }

    /// Puts a text where functions can read it.
    pub fn text(&mut self, text: &[u8]) -> anyhow::Result<u64> {
        let address = self.page + PAGE + self.texts;
        let end = self.texts + text.len() as u64 + 1;
        ensure!(end <= PAGE, "{} is too long a name", String::from_utf8_lossy(text));
        self.target.memory.write(address, text)?;
        self.target.memory.write(address + text.len() as u64, &[0])?;
        self.texts = end;
        Ok(address)
    }

    /// Calls a function, and waits for its result.
    pub fn call(&mut self, function: u64, [first, second]: [u64; 2]) -> anyhow::Result<u64> {
        let thread = self.thread.tid.into();
        for (at, word) in [(FUNCTION, function), (FIRST, first), (SECOND, second), (SENT, thread)] {
            self.set_word(at, word)?;
        }
        let mut registers = self.thread.registers;
        // The kernel is not to take it for the end of a system call.
        registers.orig_rax = u64::MAX;
        registers.rbx = self.page + PAGE;
        registers.rbp = self.thread.registers.rsp - way_back(&registers).len() as u64 - RED_ZONE;
        // Floating point state was saved by the first call.
        (registers.rip, registers.rsp) = match self.place {
            Place::Origin => (self.page, registers.rbp),
            Place::AfterCall => (self.page + AGAIN, registers.rbp & !63),
            Place::Call | Place::Gone => bail!("the thread is not there any more"),
        };
        self.thread.tracee.set_registers(&registers)?;
        self.place = Place::Call;
        let unblocked = NEVER_BLOCKED.iter().fold(0, |mask, signal| mask | 1_u64 << (signal - 1));
        self.thread.tracee.set_blocked_signals(self.signals | !unblocked)?;
        self.run_to(self.page + BACK)?;
        self.place = Place::AfterCall;
        self.word(RESULT).context("cannot read the result of a call")
    }

    /// Lets the thread go on where it was found.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.restore()
    }

    fn restore(&mut self) -> anyhow::Result<()> {
        if self.has_run {
            // It completes the system call that it is in, after a call the one that unblocks signals, and stops again
            // before it handles one or runs anything. Stopped like this, as it was found, the kernel looks for a system
            // call to begin again.
            self.thread.tracee.interrupt()?;
            self.resume(Resume::Continue)?;
            self.wait_for(Stop::Interrupted, MOMENT)?;
        }
        let is_after_call = self.place == Place::AfterCall;
        // Before the registers, with which it does not come by the code any more that does this. Until then it is in the
        // page, which tells as much.
        if is_after_call {
            self.set_word(BUSY, 0)?;
        }
        let tracee = &self.thread.tracee;
        tracee.set_blocked_signals(self.signals)?;
        tracee.set_registers(&self.thread.registers)?;
        self.thread.restart_if_interrupted(self.target)?;
        if is_after_call {
            self.set_word(SENT, 0)?;
        }
        self.place = Place::Gone;
        Ok(())
    }

    /// Whether no thread is in the page, or comes to it, that the caller before this one has sent there.
    ///
    /// That one may have been killed at any time: after it wrote who is sent, before it sent it, and so on. So a thread
    /// that does not say that it is in a call is asked where it is.
    fn earlier_call_is_back(&self) -> anyhow::Result<bool> {
        let sent = self.word(SENT)?;
        if self.word(BUSY)? != 0 {
            return Ok(false);
        }
        // A thread in the page, or in a signal handler, is not stopped for a call: this one is somewhere else.
        let Some(sent) = u32::try_from(sent).ok().filter(|sent| *sent != 0 && *sent != self.thread.tid)
        else {
            return Ok(true);
        };
        let is_outside = is_outside(self.target, sent, &(self.page..self.page + PAGE))?;
        // Between the first look and this one it may have begun.
        Ok(is_outside && self.word(BUSY)? == 0)
    }

    /// Lets the thread run until it is about to begin the system call before this address.
    fn run_to(&mut self, address: u64) -> anyhow::Result<()> {
        loop {
            self.resume(Resume::ToSyscall)?;
            self.wait_for(Stop::Syscall, PATIENCE)?;
            if self.thread.tracee.registers()?.rip == address {
                return Ok(());
            }
        }
    }

    fn resume(&mut self, how: Resume) -> io::Result<()> {
        self.has_run = true;
        self.thread.tracee.resume(how, 0)
    }

    fn wait_for(&mut self, expected: Stop, patience: Duration) -> anyhow::Result<()> {
        let pid = self.target.pid;
        loop {
            let tracee = &self.thread.tracee;
            let how = if expected == Stop::Syscall { Resume::ToSyscall } else { Resume::Continue };
            match wait_until(patience, || tracee.stopped())? {
                Some(stop) if stop == expected => return Ok(()),
                Some(Stop::Signal(signal)) => tracee.resume(how, signal)?,
                Some(Stop::Interrupted | Stop::Syscall) => tracee.resume(how, 0)?,
                Some(Stop::Group) => tracee.resume(Resume::Listen, 0)?,
                Some(Stop::Ended) => {
                    self.place = Place::Gone;
                    bail!("process {pid} has ended meanwhile");
                }
                None => bail!(
                    "process {pid} has not come back from the call within {} s: another of its threads may be \
                     loading a library; it goes on, and completes the call by itself; try again then",
                    patience.as_secs()
                ),
            }
        }
    }

    /// Writes what [`CODE`] loads the registers from, below what the interrupted function uses of the stack.
    fn write_way_back(&self) -> anyhow::Result<()> {
        let words = way_back(&self.thread.continuation());
        let at = self.thread.registers.rsp - RED_ZONE - words.len() as u64;
        self.target.memory.write(at, &words).context("cannot write to its stack; nothing was changed")
    }

    fn word(&self, at: u64) -> io::Result<u64> {
        self.target.memory.word(self.page + PAGE + at)
    }

    fn set_word(&self, at: u64, word: u64) -> io::Result<()> {
        self.target.memory.set_word(self.page + PAGE + at, word)
    }

    fn make_page(&mut self) -> anyhow::Result<u64> {
        let flags = [0, PAGE + DATA, READ_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0];
        let page = self.syscall(MMAP, flags)?;
        self.target.memory.write(page, CODE)?;
        self.syscall(MPROTECT, [page, PAGE, READ_EXECUTE, 0, 0, 0])?;
        Ok(page)
    }

    /// Lets the thread make a system call. Signals stay blocked.
    fn syscall(&mut self, number: u64, [rdi, rsi, rdx, r10, r8, r9]: [u64; 6]) -> anyhow::Result<u64> {
        let instruction = self.target.syscall_instruction();
        let [rax, orig_rax] = [number, u64::MAX];
        let own = self.thread.registers;
        let registers = Registers { rax, orig_rax, rip: instruction, rdi, rsi, rdx, r10, r8, r9, ..own };
        self.thread.tracee.set_blocked_signals(u64::MAX)?;
        self.thread.tracee.set_registers(&registers)?;
        // It stops as the call begins, and as it ends.
        for _ in 0..2 {
            self.resume(Resume::ToSyscall)?;
            self.wait_for(Stop::Syscall, MOMENT)?;
        }
        let result = self.thread.tracee.registers()?.rax;
        match result.cast_signed() {
            error @ -4095..0 => Err(io::Error::from_raw_os_error(-error as i32).into()),
            _ => Ok(result),
        }
    }
}

impl Drop for Caller<'_> {
    /// After a failure. A thread in a call that takes too long is not waited for: it finds its way back.
    fn drop(&mut self) {
        match self.place {
            Place::Gone => {}
            Place::Origin | Place::AfterCall => {
                let _ = self.restore();
            }
            Place::Call => {
                let tracee = &self.thread.tracee;
                let _ = tracee.interrupt().and_then(|()| wait_until(MOMENT, || tracee.stopped()));
            }
        }
    }
}

/// The registers in the order in which [`CODE`] loads them.
fn way_back(registers: &Registers) -> Vec<u8> {
    let Registers { r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, .. } = *registers;
    let Registers { rax, rcx, rdx, rsi, rdi, eflags, rip, .. } = *registers;
    let words = [r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, eflags, rip];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The page of an earlier attach.
fn find_page(memory: &Memory, mappings: &[Mapping]) -> Option<u64> {
    let is_ours = |pair: &&[Mapping]| {
        let [code, data] = pair else { return false };
        let size = (code.end - code.start, data.end.saturating_sub(code.end) >= DATA);
        let has_access = (code.access.as_str(), data.access.as_str()) == ("r-xp", "rw-p");
        has_access
            && size == (PAGE, true)
            && data.start == code.end
            && memory.bytes(code.start, CODE.len()).is_ok_and(|bytes| bytes == CODE)
    };
    mappings.windows(2).find(is_ours).map(|pair| pair[0].start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_are_where_the_code_says() {
        let at = |mark: u64| &CODE[mark as usize..];
        assert!(at(AGAIN).starts_with(&[0x48, 0x8b, 0x7b, FIRST as u8]));
        assert!(CODE[..BACK as usize].ends_with(&[0x0f, 0x05]));
        assert!(CODE.starts_with(&[0x48, 0xc7, 0x43, BUSY as u8, 1]));
        assert!(at(BACK).starts_with(&[0x48, 0xc7, 0x43, BUSY as u8, 0]));
        assert!(CODE.ends_with(&[0xc2, RED_ZONE as u8, 0]));
        let skipped = CODE.windows(2).position(|pair| pair == [0xe3, 0x05]).unwrap() + 2 + 5;
        assert!(CODE[skipped..].starts_with(&[0x83, 0xc8, 0xff]));
    }

    #[test]
    fn the_way_back_ends_where_the_thread_was() {
        let registers = Registers { r15: 1, rdi: 2, eflags: 3, rip: 4, ..Registers::default() };
        let words: Vec<u64> =
            way_back(&registers).chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        assert_eq!((words.len(), words[0], &words[14..]), (17, 1, &[2, 3, 4][..]));
    }
}
