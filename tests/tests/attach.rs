//! What `tt-smi attach` refuses, and that calling functions in a busy process leaves it as it was. Programs that nothing can
//! be loaded into are in `unloadable.rs`. With a real tt-metal: `.ci/tt-metal`.
#![cfg(target_arch = "x86_64")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tt_shm_tests::Space;
use tt_shm_tests::executable::copy_program;
use tt_shm_tests::space::{Process, until};
use tt_smi::attach::call::Caller;
use tt_smi::attach::load_and_call;
use tt_smi::attach::target::Target;
use tt_smi::attach::thread::{stop_one, wait_until};

use crate::common::SMI;

const BUSY: &str = env!("CARGO_BIN_EXE_busy");
const INSTALL: &str = "tt_shm_tap_install";
/// libtt_metal.so is not loaded.
const NOT_LOADED: i32 = -1;
/// On a busy machine no thread may run for a while.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process with threads that do everything, and notice whatever goes wrong.
struct Busy(Process);

impl Busy {
    fn start() -> Busy {
        Busy::started(Command::new(BUSY))
    }

    fn started(mut command: Command) -> Busy {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::spawn(command);
        let mut line = String::new();
        BufReader::new(process.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "busy\n");
        Busy(process)
    }

    fn pid(&self) -> u32 {
        self.0.0.id()
    }

    /// Ends it, and nothing went wrong in it.
    #[track_caller]
    fn end(mut self) {
        drop(self.0.0.stdin.take());
        let status = self.0.0.wait().unwrap();
        let mut errors = String::new();
        self.0.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(status.success() && errors.is_empty(), "{status}: {errors}");
    }
}

/// The tap, as `tt-smi env` puts it in place.
fn tap(space: &Space) -> PathBuf {
    let output = space.command(SMI).arg("env").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix("export LD_PRELOAD='")).unwrap();
    PathBuf::from(line.trim_end_matches('\'').split(':').next().unwrap())
}

#[test]
fn calls_in_a_busy_process_leave_it_as_it_was() {
    let busy = Busy::start();
    for round in 0..200 {
        let target = Target::open(busy.pid()).unwrap();
        let getpid = target.c_function("getpid").unwrap();
        let malloc = target.c_function("malloc").unwrap();
        let free = target.c_function("free").unwrap();
        let mut caller = Caller::new(&target, stop_one(&target, PATIENCE).unwrap()).unwrap();
        assert_eq!(caller.call(getpid, [0; 2]).unwrap(), u64::from(busy.pid()), "round {round}");
        let memory = caller.call(malloc, [100_000, 0]).unwrap();
        target.memory.write(memory, b"ours").unwrap();
        caller.call(free, [memory, 0]).unwrap();
        caller.finish().unwrap();
    }
    assert_eq!(pages_of_code(busy.pid()), 1, "the page is made once");
    busy.end();
}

/// Anonymous memory with code in it.
fn pages_of_code(pid: u32) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.lines().filter(|line| line.contains(" r-xp 00000000 00:00 0 ") && !line.contains("[v")).count()
}

#[test]
fn the_tap_is_loaded_into_a_busy_process_and_called() {
    let space = Space::new();
    let tap = tap(&space);
    let busy = Busy::start();
    for _ in 0..20 {
        let mut target = Target::open(busy.pid()).unwrap();
        assert_eq!(load_and_call(&mut target, &tap, INSTALL).unwrap(), NOT_LOADED);
        assert!(target.tap().is_some());
    }
    busy.end();
}

#[test]
fn what_cannot_be_loaded_is_told_and_the_process_goes_on() {
    let space = Space::new();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let library = std::fs::read(tap(&space)).unwrap();
    // It needs a library that is nowhere.
    let needs = library.windows(9).position(|name| name == b"libc.so.6").unwrap();
    let mut broken = library.clone();
    broken[needs..needs + 9].copy_from_slice(b"libx.so.6");
    let busy = Busy::start();
    for (path, says) in [
        (folder.path().join("none.so"), "cannot open shared object file"),
        (write("text.so", b"no library at all"), "file too short"),
        (write("needs.so", &broken), "libx.so.6: cannot open shared object file"),
        (write(&"n".repeat(200), b""), "file too short"),
    ] {
        let mut target = Target::open(busy.pid()).unwrap();
        let error = load_and_call(&mut target, &path, INSTALL).unwrap_err().to_string();
        assert!(error.contains("refuses the library") && error.contains(says), "{path:?}: {error}");
    }
    let mut target = Target::open(busy.pid()).unwrap();
    let error = load_and_call(&mut target, &tap(&space), "no_such_function").unwrap_err().to_string();
    assert!(error.contains("has no no_such_function"), "{error}");
    let error = load_and_call(&mut target, Path::new(&"/x".repeat(3000)), INSTALL).unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
    busy.end();
}

/// The process can be called again, sooner or later.
#[track_caller]
fn call_again(busy: &Busy, tap: &Path) {
    let start = Instant::now();
    loop {
        match load_and_call(&mut Target::open(busy.pid()).unwrap(), tap, INSTALL) {
            Ok(result) => return assert_eq!(result, NOT_LOADED),
            Err(error) => assert!(start.elapsed() < PATIENCE, "after {PATIENCE:?} still: {error:#}"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Before each change that it makes to the process, which is after the one before it.
#[test]
fn a_caller_that_is_killed_at_any_step_leaves_the_process_callable() {
    const PWRITE: u64 = 18;
    const PTRACE: u64 = 101;
    const SETREGS: u64 = 13;
    const SETSIGMASK: u64 = 0x420b;
    const BEGINS: i64 = -38;
    /// The changes that a call makes, and some of the next one.
    const STEPS: u64 = 40;
    let changes = |registers: &tt_shm_os::Registers| {
        let begins = registers.rax.cast_signed() == BEGINS;
        match registers.orig_rax {
            PWRITE => begins,
            PTRACE => begins && [SETREGS, SETSIGMASK].contains(&registers.rdi),
            _ => false,
        }
    };
    let space = Space::new();
    let tap = tap(&space);
    let busy = Busy::start();
    load_and_call(&mut Target::open(busy.pid()).unwrap(), &tap, INSTALL).unwrap();
    for step in 0..STEPS {
        let mut command = Command::new(BUSY);
        command.arg("call").arg(busy.pid().to_string()).arg(&tap).stderr(Stdio::piped());
        let mut caller = Process::spawn(command);
        let tracee = tt_shm_os::Tracee::seize(caller.0.id()).unwrap();
        tracee.interrupt().unwrap();
        let mut left = step;
        loop {
            match wait_until(PATIENCE, || tracee.stopped()).unwrap().expect("the caller stops") {
                tt_shm_os::Stop::Syscall if changes(&tracee.registers().unwrap()) => {
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                }
                tt_shm_os::Stop::Ended => panic!("the caller has ended"),
                _ => {}
            }
            tracee.resume(tt_shm_os::Resume::ToSyscall, 0).unwrap();
        }
        caller.kill();
        drop(tracee);
        call_again(&busy, &tap);
    }
    busy.end();
}

/// In the middle of everything it does.
#[test]
fn a_caller_that_is_killed_leaves_the_process_running() {
    let space = Space::new();
    let tap = tap(&space);
    let busy = Busy::start();
    // Making the page is the one thing that has to be completed.
    load_and_call(&mut Target::open(busy.pid()).unwrap(), &tap, INSTALL).unwrap();
    for round in 0..60_u64 {
        let mut command = Command::new(BUSY);
        command.arg("call").arg(busy.pid().to_string()).arg(&tap).stderr(Stdio::piped());
        let mut caller = Process::spawn(command);
        std::thread::sleep(Duration::from_micros(3000 + round * 977 % 20_000));
        caller.kill();
        let mut errors = String::new();
        caller.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        // What the one before it left in the middle may not be back yet.
        assert!(errors.is_empty() || errors.contains("has not come back yet"), "{errors}");
    }
    call_again(&busy, &tap);
    busy.end();
}

/// Signals that arrive meanwhile are handled, each of them, and the process can be stopped and continued.
#[test]
fn signals_are_not_lost() {
    let script = "n=0; trap 'n=$((n+1))' USR1; echo busy; while [ $n -lt 50 ]; do sleep 0.01; done; echo $n";
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::piped());
    let mut process = Process::spawn(command);
    let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "busy");
    let pid = process.0.id();
    let counted = std::thread::spawn(move || lines.next().unwrap().unwrap());
    let mut calls = 0;
    until("all signals are counted", || {
        if counted.is_finished() {
            return Some(());
        }
        process.signal(Signal::USR1);
        if let Ok(target) = Target::open(pid)
            && let Ok(thread) = stop_one(&target, Duration::from_millis(50))
        {
            process.signal(Signal::USR1);
            let mut caller = Caller::new(&target, thread).unwrap();
            assert_eq!(caller.call(target.c_function("getpid").unwrap(), [0; 2]).unwrap(), u64::from(pid));
            caller.finish().unwrap();
            calls += 1;
        }
        None
    });
    assert!(calls > 5, "{calls} calls only");
    assert_eq!(counted.join().unwrap(), "50");
    assert!(process.0.wait().unwrap().success());
}

/// A shell that opens a pipe nobody writes to waits in a call that the dynamic linker makes, too.
#[test]
fn a_thread_that_may_hold_a_lock_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = Command::new("sh");
    command.args(["-c", "read line < \"$0\"; exit 7"]).arg(&fifo);
    let mut process = Process::spawn(command);
    let pid = process.0.id();
    until("it waits", || {
        std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?.starts_with("257 ").then_some(())
    });
    let target = Target::open(pid).unwrap();
    let error = stop_one(&target, Duration::from_millis(200)).unwrap_err().to_string();
    assert!(error.contains("no thread") && error.contains("nothing was changed; try again"), "{error}");
    std::fs::write(&fifo, "go on\n").unwrap();
    assert_eq!(process.0.wait().unwrap().code(), Some(7));
}

#[track_caller]
fn refused(output: &Output, code: i32, says: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty() && said.starts_with("tt-smi: "), "{output:?}");
    says.iter().for_each(|part| assert!(said.contains(part), "{part:?} is not in {said}"));
}

fn attach(space: &Space, pid: u32) -> Output {
    space.command(SMI).args(["attach", "--yes", &pid.to_string()]).output().unwrap()
}

#[test]
fn processes_that_cannot_be_attached_to_are_refused_with_the_reason() {
    let space = Space::new();
    refused(&attach(&space, 1), 1, &["process 1 is the first", "tt-smi run"]);
    refused(&attach(&space, 0x7fff_fff0), 1, &["there is no process 2147483632"]);
    let usage = space.command(SMI).args(["attach", "--yes", "0"]).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    let itself = space.command("sh").args(["-c", "exec \"$0\" attach --yes $$", SMI]).output().unwrap();
    refused(&itself, 1, &["is this tt-smi itself"]);
    let mut ended = Process::spawn(Command::new("true"));
    let zombie = ended.0.id();
    until("it ends", || tt_shm_os::Procfs::default().stat(zombie).filter(|stat| stat.state == 'Z'));
    refused(&attach(&space, zombie), 1, &["has ended already"]);
    ended.kill();

    let busy = Busy::start();
    refused(&attach(&space, busy.pid()), 1, &["has not loaded libtt_metal.so", "tt-smi run"]);
    let detach = space.command(SMI).args(["detach", "--yes", &busy.pid().to_string()]).output().unwrap();
    refused(&detach, 1, &["has no tap"]);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", busy.pid())).unwrap().flatten();
    let tids = tasks.map(|task| task.file_name().to_str().unwrap().parse::<u32>().unwrap());
    let thread = tids.max().unwrap();
    refused(&attach(&space, thread), 1, &["is a thread of process", &busy.pid().to_string()]);
    let held = Target::open(busy.pid()).unwrap();
    refused(&attach(&space, busy.pid()), 1, &["another tt-smi is attaching"]);
    drop(held);
    busy.end();
}

#[test]
fn who_is_stopped_or_traced_is_left_alone() {
    let space = Space::new();
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped());
    let mut process = Process::spawn(command);
    let pid = process.0.id();
    let state = || tt_shm_os::Procfs::default().stat(pid).unwrap().state;
    process.signal(Signal::STOP);
    until("it is stopped", || (state() == 'T').then_some(()));
    refused(&attach(&space, pid), 1, &["is stopped: continue it first", "kill -CONT"]);
    process.signal(Signal::CONT);
    until("it goes on", || (state() != 'T').then_some(()));
    let tracee = tt_shm_os::Tracee::seize(pid).unwrap();
    refused(&attach(&space, pid), 1, &["is traced by process", &std::process::id().to_string()]);
    tracee.interrupt().unwrap();
    until("it is stopped", || tracee.stopped().unwrap());
    drop(tracee);
    drop(process.0.stdin.take());
    assert!(process.0.wait().unwrap().success());
}

#[test]
fn kernel_threads_and_other_users_are_refused() {
    let space = Space::new();
    let is_root = rustix::process::geteuid().is_root();
    let procfs = tt_shm_os::Procfs::default();
    let is_kernel = |pid: &u32| procfs.status(pid).is_some_and(|status| status.field("VmSize").is_none());
    let is_child = |pid: &u32| procfs.stat(pid).is_some_and(|stat| stat.parent == 2 && stat.state != 'Z');
    if let Some(pid) = (3..300).find(|pid| is_kernel(pid) && is_child(pid)) {
        refused(&attach(&space, pid), 1, &["is a thread of the kernel"]);
    }
    if !is_root {
        eprintln!("skipped, needs root: another user");
        return;
    }
    let busy = Busy::start();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("smi");
    copy_program(SMI, &program);
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = space.command(program.to_str().unwrap());
    command.uid(65534).gid(65534).args(["attach", "--yes", &busy.pid().to_string()]);
    refused(&command.output().unwrap(), 1, &["may not be traced", "belongs to user 0 (root)"]);
    busy.end();
}

/// Under the name of libtt_metal.so: a library that has other functions.
#[test]
fn a_tt_metal_without_slots_is_refused_and_nobody_is_asked_in_vain() {
    let space = Space::new();
    let folder = tempfile::tempdir().unwrap();
    let metal = folder.path().join("libtt_metal.so");
    std::fs::copy(tap(&space), &metal).unwrap();
    let mut command = Command::new(BUSY);
    command.env("LD_PRELOAD", &metal);
    let busy = Busy::started(command);
    let says = ["does not call its allocator through the dynamic linker", "LTO"];
    refused(&attach(&space, busy.pid()), 1, &says);
    busy.end();
    // With the tap, of which a tt-smi does not know yet whether it has to do anything: it asks before.
    let mut command = Command::new(BUSY);
    command.env("LD_PRELOAD", tap(&space));
    let busy = Busy::started(command);
    let mut detach = space.command(SMI);
    detach.args(["detach", &busy.pid().to_string()]);
    refused(&detach.output().unwrap(), 2, &["stdin is not a terminal", "--yes"]);
    busy.end();
}
