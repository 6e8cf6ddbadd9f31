//! Whether the tap can be loaded into a program at all: what the dynamic linker would not do for it, read from its file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Far enough for the headers of a program, and for the first line of a script.
const HEAD: usize = 4096;
/// Scripts may be run by scripts, but not for ever.
const MAX_SCRIPTS: usize = 4;

const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const PT_INTERP: u32 = 3;
const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

/// Why the tap will not be loaded into this command; `None` if it will be, or if it cannot be told.
pub(super) fn why_not(command: &OsStr) -> Option<String> {
    let mut path = in_path(command)?;
    for _ in 0..MAX_SCRIPTS {
        let file = File::open(&path).ok()?;
        let mode = file.metadata().ok()?.mode();
        let mut head = Vec::with_capacity(HEAD);
        file.take(HEAD as u64).read_to_end(&mut head).ok()?;
        match head.strip_prefix(b"#!") {
            Some(line) => path = interpreter(line)?,
            None => {
                let why = why_not_program(&head, mode)?;
                return Some(format!("{} {why}", path.display()));
            }
        }
    }
    None
}

/// The file of a command, as a shell would find it.
fn in_path(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(command.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(command)).find(|path| path.is_file())
}

/// The program that runs a script; `env` finds it in the path.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words =
        line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(OsStr::from_bytes);
    let first = Path::new(words.next()?);
    if first.file_name() == Some(OsStr::new("env")) {
        return words.find(|word| !word.as_bytes().starts_with(b"-")).and_then(in_path);
    }
    Some(first.to_owned())
}

fn why_not_program(head: &[u8], mode: u32) -> Option<&'static str> {
    const SETUID_AND_SETGID: u32 = 0o6000;
    let short = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let is_64_bit = head.get(4) == Some(&2);
    if !is_64_bit || short(18)? != MACHINE {
        return Some("is a program for another processor, into which the tap cannot be loaded");
    }
    if !matches!(short(16)?, ET_EXEC | ET_DYN) {
        return None;
    }
    let (first, size, count) = (usize::try_from(long(32)?).ok()?, usize::from(short(54)?), short(56)?);
    let mut headers = (0..usize::from(count)).map(|number| first.checked_add(number * size));
    let linker = headers.find_map(|at| at.filter(|at| word(*at) == Some(PT_INTERP)));
    let Some(at) = linker else {
        return Some("is a static program, into which nothing can be loaded: link it dynamically");
    };
    let name = usize::try_from(long(at + 8)?).ok().and_then(|start| head.get(start..))?;
    let name = name.split(|byte| *byte == 0).next()?;
    if name.windows(4).any(|part| part == b"musl") {
        return Some("is linked with musl, and the tap with glibc, as tt-metal is: it is not loaded");
    }
    let sets_id = mode & SETUID_AND_SETGID != 0;
    sets_id
        .then_some("is setuid or setgid: the dynamic linker loads nothing into it that its caller asks for")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// The head of a program of this machine, changed.
    fn program(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut head = std::fs::read("/proc/self/exe").unwrap();
        head.truncate(HEAD);
        change(&mut head);
        head
    }

    #[test]
    fn a_program_of_this_machine_can_be_loaded_into() {
        assert_eq!(why_not_program(&program(|_| ()), 0o755), None);
        assert_eq!(why_not(OsStr::new("sh")), None);
        assert_eq!(why_not(OsStr::new("/proc/self/exe")), None);
    }

    #[test]
    fn what_cannot_be_loaded_into_is_told_with_the_reason() {
        let other = program(|head| head[18] = 8);
        assert!(why_not_program(&other, 0o755).unwrap().contains("another processor"));
        let other = program(|head| head[4] = 1);
        assert!(why_not_program(&other, 0o755).unwrap().contains("another processor"));
        // No program headers, so no dynamic linker.
        let fixed = program(|head| head[56..58].fill(0));
        assert!(why_not_program(&fixed, 0o755).unwrap().contains("static"));
        assert!(why_not_program(&program(|_| ()), 0o4755).unwrap().contains("setuid"));
        let musl = program(|head| {
            let at = head.windows(3).position(|part| part == b"ld-").unwrap();
            head[at..at + 8].copy_from_slice(b"ld-musl-");
        });
        assert!(why_not_program(&musl, 0o755).unwrap().contains("musl"));
        for cut in [0, 3, 17, 40, 60] {
            // Whatever it is, it is not said to be something else.
            why_not_program(&program(|head| head.truncate(cut)), 0o755);
        }
    }

    #[test]
    fn a_script_is_what_runs_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        };
        let fixed = script("static", &program(|head| head[56..58].fill(0)));
        let line = format!("#! {} -x\nrest", fixed.display());
        let runs = script("runs", line.as_bytes());
        let why = why_not(runs.as_os_str()).unwrap();
        assert!(why.contains("static is a static program"), "{why}");
        let env = script("env-script", b"#!/usr/bin/env -S sh\n");
        assert_eq!(why_not(env.as_os_str()), None);
        let endless =
            script("endless", format!("#!{}\n", folder.path().join("endless").display()).as_bytes());
        assert_eq!(why_not(endless.as_os_str()), None);
    }
}
