//! Whether the tap can be loaded into a program at all: what the dynamic linker would not do for it, read from its file.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, fgetxattr, fstatvfs};
use rustix::process::{getgid, getuid};
use tt_shm_os::Procfs;

/// Of a script's first line, as in the kernel.
const MAX_LINE: usize = 256;
/// Scripts may be run by scripts, but not for ever.
const MAX_SCRIPTS: usize = 4;
/// Longest name of a dynamic linker that is read.
const MAX_NAME: usize = 256;

const HEADER_BYTES: usize = 64;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const PT_INTERP: u32 = 3;
const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

/// Why the tap is not loaded into a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Obstacle {
    program: PathBuf,
    reason: Reason,
}

#[derive(Debug, PartialEq, Eq)]
enum Reason {
    /// It is for this other processor.
    Processor(&'static str),
    Static,
    Musl,
    /// It gets the rights of this user.
    Setuid(u32),
    /// It gets those of a group, or capabilities.
    Rights,
}

impl Obstacle {
    /// What is in the way; `None` if nothing is, or if it cannot be told.
    pub(super) fn of(command: &OsStr) -> Option<Obstacle> {
        let (program, file) = program_of(command)?;
        let reason = Elf::open(&file)?.reason(&file)?;
        Some(Obstacle { program, reason })
    }

    /// Whether the program would not even start with the tap: musl's dynamic linker tries to load it, and fails.
    pub(super) fn prevents_start(&self) -> bool {
        self.reason == Reason::Musl
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, own) = (self.program.display(), machine_name(MACHINE));
        match self.reason {
            Reason::Processor(other) => write!(
                f,
                "{program} is for another processor ({other}), and the tap for {own}: use a build for {own}"
            ),
            Reason::Static => write!(
                f,
                "{program} is linked statically, so no library can be loaded into it: link it dynamically, with glibc"
            ),
            Reason::Musl => write!(
                f,
                "{program} is linked with musl, and the tap needs glibc, as tt-metal does: it was started without \
                 the tap; use a build for glibc"
            ),
            Reason::Setuid(owner) => {
                write!(
                    f,
                    "{program} is setuid, so the dynamic linker drops what its caller preloads: run tt-smi inside it, "
                )?;
                match owner {
                    0 => f.write_str("as root (`sudo tt-smi run -- COMMAND`)"),
                    owner => write!(f, "as user {owner} (`sudo -u '#{owner}' tt-smi run -- COMMAND`)"),
                }
            }
            Reason::Rights => write!(
                f,
                "{program} is setgid or has capabilities, so the dynamic linker drops what its caller preloads: run a \
                 copy without them, or tt-smi as root"
            ),
        }
    }
}

/// What is missing if a command that is there is said not to be: the program that runs it.
pub(super) fn missing_interpreter(command: &OsStr) -> Option<PathBuf> {
    let path = in_path(command)?;
    let file = File::open(&path).ok()?;
    let needed = match first_line(&file) {
        Some(line) => words(&line).next().map(PathBuf::from),
        None => Elf::open(&file)?.interpreter(&file).flatten(),
    };
    needed.filter(|needed| !needed.exists())
}

/// The program that a command is run by, which for a script is another one.
fn program_of(command: &OsStr) -> Option<(PathBuf, File)> {
    let mut path = in_path(command)?;
    for _ in 0..MAX_SCRIPTS {
        let file = File::open(&path).ok()?;
        match first_line(&file) {
            Some(line) => path = interpreter_of_script(&line)?,
            None => return Some((path, file)),
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
    let is_program = |path: &PathBuf| path.metadata().is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0);
    std::env::split_paths(&folders).map(|folder| folder.join(command)).find(is_program)
}

/// The first line of a script, after `#!`.
fn first_line(file: &File) -> Option<Vec<u8>> {
    let start = up_to(file, 0, MAX_LINE).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(line.to_vec())
}

fn words(line: &[u8]) -> impl Iterator<Item = &OsStr> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(OsStr::from_bytes)
}

/// The program that runs a script; `env` finds it in the path.
fn interpreter_of_script(line: &[u8]) -> Option<PathBuf> {
    let mut words = words(line);
    let first = Path::new(words.next()?);
    if first.file_name() == Some(OsStr::new("env")) {
        let is_setting = |word: &OsStr| word.as_bytes().starts_with(b"-") || word.as_bytes().contains(&b'=');
        return words.find(|word| !is_setting(word)).and_then(in_path);
    }
    Some(first.to_owned())
}

/// The header of a program.
struct Elf([u8; HEADER_BYTES]);

impl Elf {
    fn open(file: &File) -> Option<Elf> {
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0).ok()?;
        header.starts_with(b"\x7fELF").then_some(Elf(header))
    }

    fn short(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    fn reason(&self, file: &File) -> Option<Reason> {
        if let Some(other) = self.other_processor() {
            return Some(Reason::Processor(other));
        }
        let Some(linker) = self.interpreter(file)? else { return Some(Reason::Static) };
        if linker.as_os_str().as_bytes().windows(4).any(|part| part == b"musl") {
            return Some(Reason::Musl);
        }
        gained_rights(file, &file.metadata().ok()?)
    }

    /// The name of a processor that is not this one.
    fn other_processor(&self) -> Option<&'static str> {
        let (is_64_bit, is_little) = (self.0[4] == 2, self.0[5] == 1);
        if is_64_bit && is_little && self.short(18) == MACHINE {
            return None;
        }
        let big = u16::from_be_bytes([self.0[18], self.0[19]]);
        Some(match machine_name(if is_little { self.short(18) } else { big }) {
            "x86_64" if !is_64_bit => "x32",
            name => name,
        })
    }

    /// The dynamic linker that it names, or none; `None` if it cannot be told. Tools may have moved what says so to the
    /// end of the file.
    fn interpreter(&self, file: &File) -> Option<Option<PathBuf>> {
        if self.other_processor().is_some() || !matches!(self.short(16), ET_EXEC | ET_DYN) {
            return None;
        }
        let long =
            |bytes: &[u8], at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let (first, size) = (long(&self.0, 32)?, u64::from(self.short(54)));
        for number in 0..u64::from(self.short(56)) {
            let mut header = [0; 56];
            file.read_exact_at(&mut header, first.checked_add(number * size)?).ok()?;
            if header.starts_with(&PT_INTERP.to_le_bytes()) {
                let name = up_to(file, long(&header, 8)?, MAX_NAME).ok()?;
                let name = name.split(|byte| *byte == 0).next()?;
                return Some(Some(OsStr::from_bytes(name).into()));
            }
        }
        Some(None)
    }
}

fn machine_name(code: u16) -> &'static str {
    match code {
        3 => "32-bit x86",
        21 => "ppc64",
        22 => "s390x",
        40 => "32-bit ARM",
        62 => "x86_64",
        183 => "aarch64",
        243 => "RISC-V",
        _ => "of an unknown kind",
    }
}

/// Whether the program gets rights that its caller does not have: then the dynamic linker ignores the caller's wishes.
fn gained_rights(file: &File, stat: &Metadata) -> Option<Reason> {
    const SETUID: u32 = 0o4000;
    const SETGID_AND_RUN_BY_GROUP: u32 = 0o2010;
    let ignores_them = fstatvfs(file).is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::NOSUID))
        || Procfs::default().status("self").is_some_and(|status| status.field("NoNewPrivs") == Some("1"));
    if ignores_them {
        return None;
    }
    if stat.mode() & SETUID != 0 && stat.uid() != getuid().as_raw() {
        return Some(Reason::Setuid(stat.uid()));
    }
    let is_setgid = stat.mode() & SETGID_AND_RUN_BY_GROUP == SETGID_AND_RUN_BY_GROUP;
    let has_capabilities =
        || fgetxattr(file, "security.capability", &mut [0_u8; 64]).is_ok_and(|size| size > 0);
    let gains = (is_setgid && stat.gid() != getgid().as_raw()) || (!getuid().is_root() && has_capabilities());
    gains.then_some(Reason::Rights)
}

/// Bytes of a file from a place on, fewer at its end.
fn up_to(file: &File, place: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let read = file.read_at(&mut bytes, place)?;
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Folder {
            Folder(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, content: &[u8], mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        }

        /// A program of this machine, changed.
        fn program(&self, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
            let mut content = vec![0; 64 << 10];
            let read = File::open("/proc/self/exe").unwrap().read_at(&mut content, 0).unwrap();
            content.truncate(read);
            change(&mut content);
            self.write("program", &content, 0o755)
        }

        fn said(&self, change: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
            Obstacle::of(self.program(change).as_os_str()).map(|obstacle| obstacle.to_string())
        }
    }

    fn is_static(head: &mut [u8]) {
        // No program headers, so no dynamic linker.
        head[56..58].fill(0);
    }

    #[test]
    fn a_program_of_this_machine_can_be_loaded_into() {
        assert_eq!(Folder::new().said(|_| ()), None);
        assert_eq!(Obstacle::of(OsStr::new("sh")), None);
        assert_eq!(Obstacle::of(OsStr::new("/proc/self/exe")), None);
        assert_eq!(Obstacle::of(OsStr::new("/no/such/file")), None);
    }

    #[test]
    fn what_cannot_be_loaded_into_is_told_with_the_reason() {
        let folder = Folder::new();
        let says = |part: &str, change: &dyn Fn(&mut Vec<u8>)| {
            let said = folder.said(change).unwrap();
            assert!(said.contains(part), "{said}");
        };
        says("another processor (of an unknown kind)", &|head| head[18] = 8);
        says("another processor (RISC-V)", &|head| head[18] = 243);
        says("another processor", &|head| head[4] = 1);
        says("another processor (s390x)", &|head| {
            head[5] = 2;
            head[18..20].copy_from_slice(&22_u16.to_be_bytes());
        });
        says("linked statically", &|head| is_static(head));
        says("musl", &|head| {
            let at = head.windows(3).position(|part| part == b"ld-").unwrap();
            head[at..at + 8].copy_from_slice(b"ld-musl-");
        });
        for cut in [0, 3, 17, 40, 60, 64, 100] {
            // What cannot be read is not said to be anything.
            assert_eq!(folder.said(|head| head.truncate(cut)), None);
        }
    }

    /// As tools leave it that change the dynamic linker of a program.
    #[test]
    fn headers_may_be_far_away() {
        let moved = |head: &mut Vec<u8>| {
            let (first, count) = (u64::from_le_bytes(head[32..40].try_into().unwrap()), head[56]);
            let first = usize::try_from(first).unwrap();
            let headers = head[first..first + 56 * usize::from(count)].to_vec();
            head.resize(1 << 20, 0);
            let end = head.len() as u64;
            head[32..40].copy_from_slice(&end.to_le_bytes());
            head.extend(headers);
        };
        assert_eq!(Folder::new().said(moved), None);
    }

    #[test]
    fn rights_count_only_if_the_caller_lacks_them() {
        let folder = Folder::new();
        let (path, own) = (folder.program(|_| ()), getuid().as_raw());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o4755)).unwrap();
        let reason = || {
            let file = File::open(&path).unwrap();
            gained_rights(&file, &file.metadata().unwrap())
        };
        assert_eq!(reason(), None, "its owner runs it");
        let can_change = own == 0 && std::os::unix::fs::chown(&path, Some(own + 1), None).is_ok();
        let nosuid = fstatvfs(File::open(&path).unwrap()).unwrap().f_flag.contains(StatVfsMountFlags::NOSUID);
        if can_change && !nosuid {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o4755)).unwrap();
            assert_eq!(reason(), Some(Reason::Setuid(own + 1)));
        }
    }

    #[test]
    fn a_script_is_what_runs_it() {
        let folder = Folder::new();
        let fixed = folder.program(|head| is_static(head));
        let runs = folder.write("runs", format!("#! {} -x\nrest", fixed.display()).as_bytes(), 0o755);
        let said = Obstacle::of(runs.as_os_str()).unwrap().to_string();
        assert!(said.contains("program is linked statically"), "{said}");
        let env = folder.write("env-script", b"#!/usr/bin/env -S A=b sh\n", 0o755);
        assert_eq!(Obstacle::of(env.as_os_str()), None);
        let itself = folder.0.path().join("endless");
        folder.write("endless", format!("#!{}\n", itself.display()).as_bytes(), 0o755);
        assert_eq!(Obstacle::of(itself.as_os_str()), None);
    }

    #[test]
    fn what_runs_a_command_may_be_missing() {
        let folder = Folder::new();
        let script = folder.write("script", b"#!/no/such/program -x\n", 0o755);
        assert_eq!(missing_interpreter(script.as_os_str()), Some("/no/such/program".into()));
        let program = folder.program(|head| {
            let at = head.windows(3).position(|part| part == b"ld-").unwrap();
            head[at..at + 3].copy_from_slice(b"no-");
        });
        assert!(missing_interpreter(program.as_os_str()).unwrap().to_string_lossy().contains("no-"));
        assert_eq!(missing_interpreter(OsStr::new("sh")), None);
        assert_eq!(missing_interpreter(OsStr::new("/no/such/file")), None);
    }
}
