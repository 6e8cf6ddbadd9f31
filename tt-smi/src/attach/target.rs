//! The process that something is to be loaded into: what is known of it, and why it may be refused.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use tt_shm_os::{Procfs, Status};

use super::image::{Image, Machine, Symbol};
use super::memory::{Mapping, Memory, mappings};

/// How a signal handler's frame returns: `mov $15, %rax; syscall`. Every C library for x86_64 has these bytes.
const RESTORER: &[u8] = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05";
/// Where in them the system call is.
const RESTORER_SYSCALL: u64 = 7;
/// Of an executable's text that is searched; a C library has about 1.5 MiB.
const MAX_TEXT: u64 = 64 << 20;
/// What the hooks need at least.
const ALLOCATE: &str = "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE";
/// Whose code is never called by malloc or the dynamic linker, by the beginning of its file's name.
const CALLED_BY_NOBODY: [&str; 3] = ["libtt_metal", "_ttnn", "libpython"];
/// How long to wait for another tt-smi, which needs milliseconds.
const LOCKING: Duration = Duration::from_secs(1);
const SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// A running process with a C library in which functions can be called.
#[derive(Debug)]
pub struct Target {
    pub pid: u32,
    pub memory: Memory,
    pub mappings: Vec<Mapping>,
    /// Code in which a thread holds no lock of malloc or the dynamic linker.
    pub safe_text: Vec<Range<u64>>,
    /// Whether malloc is not the C library's: others may sleep, or wait for a lock in other ways, while they hold one.
    pub has_own_malloc: bool,
    /// Where signal handlers return to.
    pub restorer: u64,
    /// Held while this process is worked on, so that two do not do so at once.
    _lock: OwnedFd,
}

impl Target {
    /// Looks at a process, and refuses one that cannot be worked on safely. Changes nothing.
    pub fn open(pid: u32) -> anyhow::Result<Target> {
        ensure!(pid != std::process::id(), "process {pid} is this tt-smi itself");
        ensure!(
            pid != 1,
            "process 1 is the first of this system or container, and everything in it ends with it: it is \
             left alone; start the job with `tt-smi run`"
        );
        check_state(pid)?;
        let memory = Memory::open(pid).map_err(|error| refused_by_kernel(pid, &error))?;
        check_machine(pid)?;
        let _lock = lock(pid)?;
        let mappings = mappings(pid).with_context(|| format!("cannot read what process {pid} has mapped"))?;
        let mut target = Target {
            pid,
            memory,
            mappings,
            safe_text: Vec::new(),
            has_own_malloc: false,
            restorer: 0,
            _lock,
        };
        target.restorer = target.find_restorer()?;
        target.has_own_malloc = target.defines_malloc();
        target.safe_text = target.find_safe_text();
        Ok(target)
    }

    /// The first mapping of a library, by the beginning of its name.
    pub fn library(&self, name: &str) -> Option<&Mapping> {
        self.mappings.iter().find(|one| one.offset == 0 && one.file_name().starts_with(name))
    }

    /// A function of a loaded library.
    pub fn function(&self, library: &Mapping, name: &str) -> Option<Symbol> {
        Image::load(&self.memory, library).ok()?.symbol(name)
    }

    /// A function of the C library. Before glibc 2.34 dlopen was in a library of its own.
    pub fn c_function(&self, name: &str) -> anyhow::Result<u64> {
        let libraries =
            ["libc.so.", "libc-", "libdl.so.", "libdl-"].iter().filter_map(|one| self.library(one));
        let mut found = libraries.filter_map(|library| self.function(library, name));
        let found = found.next().with_context(|| {
            format!("the C library of process {} has no {name}; start the job with `tt-smi run`", self.pid)
        })?;
        Ok(found.address)
    }

    /// Refuses a process without a tt-metal that can be hooked.
    pub fn check_metal(&self) -> anyhow::Result<()> {
        let pid = self.pid;
        let Some(library) = self.library("libtt_metal.so") else {
            bail!(
                "process {pid} has not loaded libtt_metal.so: it does not use tt-metal, or not yet, or tt-metal \
                 is linked into it; start the job with `tt-smi run`"
            );
        };
        let image = Image::load(&self.memory, library)
            .with_context(|| format!("cannot read the libtt_metal.so of process {pid}"))?;
        let allocate = image.symbol(ALLOCATE);
        ensure!(
            allocate.is_some_and(|symbol| image.has_slot(symbol)),
            "the libtt_metal.so of process {pid} does not call its allocator through the dynamic linker: it was \
             built in another way than the published ones (stripped, LTO, hidden symbols), or is another version; \
             nothing in it can be observed"
        );
        Ok(())
    }

    /// The tap, if it is loaded: since the start of the process, or by an earlier attach.
    pub fn tap(&self) -> Option<&Mapping> {
        self.library("libtt_shm_tap")
    }

    /// A system call instruction.
    pub fn syscall_instruction(&self) -> u64 {
        self.restorer + RESTORER_SYSCALL
    }

    /// What has been mapped since.
    pub fn refresh(&mut self) -> io::Result<()> {
        self.mappings = mappings(self.pid)?;
        Ok(())
    }

    fn find_restorer(&self) -> anyhow::Result<u64> {
        let pid = self.pid;
        let is_libc = |name: &str| name.starts_with("libc.so.6") || name.starts_with("libc-2.");
        if !self.mappings.iter().any(|one| is_libc(one.file_name())) {
            // Its dynamic linker is its C library, and may be a link to a `libc.so`.
            let is_musl =
                |one: &Mapping| one.file_name().starts_with("ld-musl") || one.file_name() == "libc.so";
            let musl = self.mappings.iter().any(is_musl);
            let what = if musl { "is linked with musl" } else { "is linked statically" };
            bail!(
                "process {pid} {what}, not with glibc's libc.so.6, which loads the tap: link the program dynamically, \
                 with glibc, and start it anew"
            );
        }
        let texts = self.mappings.iter().filter(|one| is_libc(one.file_name()) && one.is_executable());
        let mut found = texts.filter_map(|text| {
            let length = usize::try_from((text.end - text.start).min(MAX_TEXT)).ok()?;
            let bytes = self.memory.bytes(text.start, length).ok()?;
            let at = bytes.windows(RESTORER.len()).position(|window| window == RESTORER)?;
            Some(text.start + at as u64)
        });
        found.next().with_context(|| format!("the C library of process {pid} is not a known one"))
    }

    /// Whether the program or a library replaces malloc. The dynamic linker of old versions has one for its own start.
    fn defines_malloc(&self) -> bool {
        let first = self.mappings.iter().filter(|one| one.offset == 0 && one.name.starts_with('/'));
        let others = first.filter(|one| {
            let name = one.file_name();
            !["libc.so.", "libc-", "ld-linux", "ld-2."].iter().any(|own| name.starts_with(own))
        });
        let mut images = others.filter_map(|one| Image::load(&self.memory, one).ok());
        images.any(|image| image.symbol("malloc").is_some())
    }

    fn find_safe_text(&self) -> Vec<Range<u64>> {
        let program = std::fs::read_link(Procfs::default().path(self.pid, "exe")).unwrap_or_default();
        let is_program = |one: &Mapping| !self.has_own_malloc && program.to_str() == Some(&one.name);
        let is_safe = |one: &&Mapping| {
            let is_named = CALLED_BY_NOBODY.iter().any(|name| one.file_name().starts_with(name));
            one.is_executable() && (is_named || is_program(one))
        };
        self.mappings.iter().filter(is_safe).map(|one| one.start..one.end).collect()
    }
}

/// Refuses a process that has ended, is stopped or is somebody else's to stop.
fn check_state(pid: u32) -> anyhow::Result<()> {
    let procfs = Procfs::default();
    let (Some(stat), Some(status)) = (procfs.stat(pid), procfs.status(pid)) else {
        bail!(
            "there is no process {pid}, or none to be seen from here (`tt-smi ps` and `ps` list those that are)"
        );
    };
    if let Some(process) = status.field("Tgid").filter(|process| *process != pid.to_string()) {
        bail!("{pid} is a thread of process {process}: give that");
    }
    ensure!(!matches!(stat.state, 'Z' | 'X' | 'x'), "process {pid} has ended already: it is a zombie");
    ensure!(status.field("VmSize").is_some(), "process {pid} ({}) is a thread of the kernel", stat.comm);
    if let Some(tracer) = status.field("TracerPid").filter(|tracer| *tracer != "0") {
        // The kernel names the thread.
        let process = procfs.status(tracer).and_then(|status| status.field("Tgid").map(str::to_owned));
        let tracer = process.as_deref().unwrap_or(tracer);
        bail!(
            "process {pid} is traced by process {tracer} (a debugger, strace?): end that first, and try again"
        );
    }
    ensure!(
        stat.state != 'T',
        "process {pid} is stopped: continue it first (`kill -CONT {pid}`, or `fg` in its terminal)"
    );
    check_features(pid, &status)
}

/// Refuses a process whose kernel would not let a call return.
fn check_features(pid: u32, status: &Status) -> anyhow::Result<()> {
    let has = |field: &str, what: &str| status.field(field).is_some_and(|text| text.contains(what));
    ensure!(
        !has("x86_Thread_features", "shstk"),
        "process {pid} has a shadow stack, on which no call can be put from outside; start the job with `tt-smi run`"
    );
    ensure!(
        status.field("Seccomp") != Some("1"),
        "process {pid} may only read and write (strict seccomp): nothing can be loaded into it"
    );
    Ok(())
}

fn check_machine(pid: u32) -> anyhow::Result<()> {
    let mut header = [0; 64];
    let mut program = File::open(Procfs::default().path(pid, "exe"))
        .with_context(|| format!("cannot read the program of process {pid}"))?;
    let length = program.read(&mut header)?;
    ensure!(
        Machine::of(&header[..length]) == Machine::X86_64,
        "process {pid} runs a program for another processor (32 bits?): tt-metal is for x86_64, and so is the tap"
    );
    Ok(())
}

/// Why the kernel does not allow it, and what to do.
fn refused_by_kernel(pid: u32, error: &io::Error) -> anyhow::Error {
    if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) {
        return anyhow::anyhow!("process {pid} has ended");
    }
    let owner = tt_shm_os::owners_of(pid).map(|[real, _]| real);
    let other = owner.filter(|owner| *owner != rustix::process::geteuid().as_raw());
    let scope = std::fs::read_to_string(SCOPE).ok();
    let why = why_refused(other, scope.as_deref().map(str::trim));
    anyhow::anyhow!("process {pid} may not be traced ({error}): {why}")
}

/// By whether it belongs to another user, and by what [`SCOPE`] says.
fn why_refused(other: Option<u32>, scope: Option<&str>) -> String {
    match (other, scope) {
        (Some(owner), _) => {
            let name = crate::users::name_of(owner).map(|name| format!(" ({name})")).unwrap_or_default();
            format!("it belongs to user {owner}{name}: run tt-smi as that user or as root")
        }
        (_, Some("3")) => format!(
            "{SCOPE} is 3: nothing may be traced until the next boot; start the job with `tt-smi run`"
        ),
        (_, Some(scope @ ("1" | "2"))) => format!(
            "{SCOPE} is {scope}: only {} may do that; run tt-smi as root (sudo), or let root write 0 there",
            if scope == "1" { "parents and root" } else { "root" }
        ),
        _ => {
            "it has more rights than you (setuid, capabilities, a container?): run tt-smi as root".to_owned()
        }
    }
}

/// Whoever works on a process has its directory in procfs locked: the kernel unlocks it however that ends.
fn lock(pid: u32) -> anyhow::Result<OwnedFd> {
    let path = Procfs::default().path(pid, "");
    let directory = open(&path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .with_context(|| format!("cannot open {}", path.display()))?;
    let start = Instant::now();
    loop {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if start.elapsed() < LOCKING => std::thread::sleep(LOCKING / 100),
            Err(Errno::WOULDBLOCK) => bail!("another tt-smi is attaching to process {pid}: try again"),
            // Without locks there, two at once is for the user to avoid.
            Ok(()) | Err(_) => return Ok(directory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not every kernel has the setting, and changing it would change it for everybody.
    #[test]
    fn each_setting_of_ptrace_scope_has_its_advice() {
        let says = |scope, part: &str| {
            let said = why_refused(None, scope);
            assert!(said.contains(part), "{said}");
        };
        says(Some("1"), "is 1: only parents and root may do that; run tt-smi as root (sudo)");
        says(Some("2"), "is 2: only root may do that; run tt-smi as root (sudo)");
        says(Some("3"), "is 3: nothing may be traced until the next boot; start the job with `tt-smi run`");
        for without_effect in [None, Some("0")] {
            says(without_effect, "more rights than you");
        }
        let of_root = why_refused(Some(0), Some("1"));
        assert!(
            of_root.contains("belongs to user 0 (root): run tt-smi as that user or as root"),
            "{of_root}"
        );
    }
}
