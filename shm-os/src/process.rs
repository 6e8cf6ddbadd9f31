//! Facts about processes from procfs, for headers and for display.
//!
//! None of them decides whether a process is alive; the lock does. All of them may be missing (a container
//! without /proc), so they are optional rather than errors.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::rand::{GetRandomFlags, getrandom};

use crate::procfs::Procfs;

/// A command line may have megabytes; nobody reads more than this.
const MAX_BYTES: u64 = 64 * 1024;

/// Identifies this boot of the kernel: ticks and start times of another boot mean nothing.
#[must_use]
pub fn boot_id() -> Option<[u8; 16]> {
    parse_uuid(&fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

/// Eight bytes from the kernel's random source.
pub fn random_u64() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // Up to 256 bytes come whole or not at all (getrandom(2)); the check costs nothing.
    let filled = getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    if filled != bytes.len() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("getrandom gave {filled} of {} bytes", bytes.len()),
        ));
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// The name of this process as a user would know it, with the script if it is a Python.
///
/// `python3 train.py` says more than `python3`, which most workloads would be called otherwise. Empty if
/// there is no procfs.
#[must_use]
pub fn process_name() -> String {
    name_in_procfs("self")
}

/// The name of another process, in the same words; `None` if there is no such process, or none to be seen from here.
#[must_use]
pub fn process_name_of(pid: u32) -> Option<String> {
    Some(name_in_procfs(pid)).filter(|name| !name.is_empty())
}

fn name_in_procfs(process: impl Display + Copy) -> String {
    let start_of = |file| Procfs::default().start_of(process, file, MAX_BYTES);
    let comm = start_of("comm");
    describe(String::from_utf8_lossy(&comm).trim_end_matches('\n'), &start_of("cmdline"))
}

/// The PID namespace of this process: equal numbers mean that pids can be compared.
#[must_use]
pub fn pid_namespace() -> Option<u64> {
    Some(fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

/// The time namespace of this process: equal numbers mean that CLOCK_MONOTONIC and CLOCK_BOOTTIME can be
/// compared. `None` where the kernel has none; then all processes have the same clocks.
#[must_use]
pub fn time_namespace() -> Option<u64> {
    Some(fs::metadata("/proc/self/ns/time").ok()?.ino())
}

/// When a process was started, in clock ticks since boot: distinguishes a reused pid from the old one.
#[must_use]
pub fn start_time_of(pid: u32) -> Option<u64> {
    Procfs::default().stat(pid).map(|stat| stat.start_ticks)
}

/// When this process was started. Not looked up by pid: /proc may be that of another PID namespace, where the
/// pid belongs to another process.
#[must_use]
pub fn own_start_time() -> Option<u64> {
    Procfs::default().stat("self").map(|stat| stat.start_ticks)
}

/// Whether a process of this machine is the one that a file of `owner` describes.
///
/// A pid in a file is only a claim. It is believed if the process was started at that time and if the owner
/// of the file could signal it without help: its real or saved user id is the owner's. The effective one does
/// not count, since a service may take on that of any user for a moment.
#[must_use]
pub fn is_process_of(pid: u32, start_time: u64, owner: u32) -> bool {
    // Checked before and after: the pid may be reused meanwhile.
    let started = || start_time_of(pid) == Some(start_time);
    start_time != 0 && started() && owners_of(pid).is_some_and(|owners| owners.contains(&owner)) && started()
}

/// The real and the saved user id of a process.
#[must_use]
pub fn owners_of(pid: u32) -> Option<[u32; 2]> {
    Procfs::default().status(pid)?.owners()
}

/// Sixteen bytes in hexadecimal, with or without dashes.
#[must_use]
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.trim_end().bytes().filter(|&b| b != b'-').collect();
    // from_str_radix would accept a leading sign.
    if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let value = u128::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?;
    Some(value.to_be_bytes())
}

/// See [`process_name`].
#[must_use]
pub fn describe(comm: &str, cmdline: &[u8]) -> String {
    if !comm.starts_with("python") {
        return comm.to_owned();
    }
    match python_program(cmdline) {
        Some(program) => format!("{comm} {program}"),
        None => comm.to_owned(),
    }
}

/// The script of a Python: its base name, or the module after `-m`.
fn python_program(cmdline: &[u8]) -> Option<String> {
    let mut arguments = cmdline.split(|&byte| byte == 0).skip(1).map(String::from_utf8_lossy);
    while let Some(argument) = arguments.next() {
        match argument.as_ref() {
            "-m" => return arguments.next().map(|module| module.into_owned()),
            // These take a value, which is not the script.
            "-W" | "-X" | "--check-hash-based-pycs" => drop(arguments.next()),
            // Code on the command line, or on standard input: there is no script.
            "" | "-c" | "-" => return None,
            option if option.starts_with('-') => {}
            script => return script.rsplit('/').next().map(str::to_owned),
        }
    }
    None
}

/// Runs `callback` when the process exits normally (`exit`, or a return from `main`).
///
/// A forked child inherits the registration: the callback has to check whose process it is in.
pub fn at_exit(callback: extern "C" fn()) {
    // It fails only if there is no memory for the registration. Then a file is not removed at exit, which the
    // next tracker or the aggregator makes up for.
    // SAFETY: atexit only stores the pointer of a function that lives as long as its code is loaded.
    let _ = unsafe { libc::atexit(callback) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        let pid = std::process::id();
        assert_eq!(boot_id(), boot_id());
        assert!(boot_id().is_some_and(|id| id != [0; 16]));
        assert!(pid_namespace().is_some_and(|inode| inode != 0));
        assert!(start_time_of(pid).is_some_and(|ticks| ticks > 0));
        assert_eq!(start_time_of(pid), own_start_time());
        assert_eq!(start_time_of(u32::MAX), None);
        assert!(!process_name().is_empty());
        assert_eq!(process_name_of(pid), Some(process_name()));
        assert_eq!(process_name_of(u32::MAX), None);
        assert_ne!(random_u64().unwrap(), random_u64().unwrap());
    }

    #[test]
    fn uuids() {
        let bytes = parse_uuid("00010203-0405-0607-0809-0a0b0c0d0eff\n").unwrap();
        assert_eq!(bytes[..3], [0, 1, 2]);
        assert_eq!(bytes[15], 0xff);
        for bad in ["", "0001", "zz010203-0405-0607-0809-0a0b0c0d0eff"] {
            assert_eq!(parse_uuid(bad), None, "{bad:?}");
        }
        assert_eq!(parse_uuid("+0010203-0405-0607-0809-0a0b0c0d0eff"), None);
    }

    #[test]
    fn a_claim_holds_only_with_owner_and_start() {
        let pid = std::process::id();
        let (start, uid) = (start_time_of(pid).unwrap(), rustix::process::getuid().as_raw());
        assert!(is_process_of(pid, start, uid));
        assert!(!is_process_of(pid, start + 1, uid) && !is_process_of(pid, 0, uid));
        assert!(!is_process_of(pid, start, uid + 1) && !is_process_of(u32::MAX, start, uid));
    }

    #[test]
    fn pythons_say_what_they_run() {
        for (comm, cmdline, name) in [
            ("trainer", "trainer\0x.py\0", "trainer"),
            ("python3", "python3\0/a/b/train.py\0--lr\0", "python3 train.py"),
            ("python3.11", "/usr/bin/python3.11\0t.py\0", "python3.11 t.py"),
            ("python3", "python3\0-u\0-X\0dev\0t.py\0", "python3 t.py"),
            ("python3", "python3\0-m\0vllm.serve\0x\0", "python3 vllm.serve"),
            ("python3", "python3\0-c\0print(1)\0", "python3"),
            ("python3", "python3\0", "python3"),
            ("python3", "python3\0-W\0", "python3"),
            ("python", "", "python"),
        ] {
            assert_eq!(describe(comm, cmdline.as_bytes()), name, "{cmdline:?}");
        }
    }
}
