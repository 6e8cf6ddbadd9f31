//! Programs into which the tap cannot be loaded, as compilers make them: what `tt-smi run` and `tt-smi attach` say of them,
//! and that they run as they would without. Where a compiler is missing, a line says what was not tried.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use tt_shm_tests::Space;
use tt_shm_tests::executable::{copy_program, write_script};
use tt_shm_tests::space::Process;

use crate::common::SMI;

/// Waits for the end of its input, if it is told to; says who it is; ends with 7.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
    char byte;
    printf("user %d as %d\n", (int)getuid(), (int)geteuid());
    fflush(stdout);
    return count > 1 ? (int)read(0, &byte, 1) : 7;
}
"#;
const NOBODY: u32 = 65534;

/// A folder that everybody can read.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a source; `None` if that is not possible here, and then a line says what is not tried.
    fn build(&self, what: &str, compiler: &str, options: &[&str], source: &str) -> Option<PathBuf> {
        let (from, program) = (self.path("a.c"), self.path("a"));
        std::fs::write(&from, source).unwrap();
        let built = Command::new(compiler).args(options).arg("-o").arg(&program).arg(&from).output();
        if built.is_ok_and(|output| output.status.success()) {
            return Some(program);
        }
        not_tried(what, &format!("`{compiler} {}` compiles nothing here", options.join(" ")));
        None
    }
}

/// Not by a macro: the test harness would keep it to itself.
fn not_tried(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "not tried: {what}, since {why}");
}

fn run(space: &Space, program: &Path) -> Output {
    space.command(SMI).args(["run", "--"]).arg(program).output().unwrap()
}

#[track_caller]
fn says(output: &Output, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    parts.iter().for_each(|part| assert!(said.contains(part), "{part:?} is not in {said}"));
}

/// It ran as it would without tt-smi, and the reason comes after it.
#[track_caller]
fn ran_unobserved(output: &Output, parts: &[&str]) {
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(output.stdout.starts_with(b"user ") && output.stderr.starts_with(b"tt-smi: "), "{output:?}");
    says(output, &["0 processes reported memory", "not observed: pid "]);
    says(output, parts);
}

/// `attach` refuses it while it runs, and leaves it as it was.
#[track_caller]
fn attach_is_refused(space: &Space, program: &Path, parts: &[&str]) {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let mut command = Command::new(program);
    command.arg("wait").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut process = Process::spawn(command);
    let output = space.command(SMI).args(["attach", "--yes", &process.0.id().to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    says(&output, parts);
    drop(process.0.stdin.take());
    assert!(process.0.wait().unwrap().success());
}

#[test]
fn static_programs() {
    let (space, folder) = (Space::new(), Folder::new());
    for option in ["-static", "-static-pie"] {
        let Some(program) = folder.build("a static program", "cc", &[option], PROGRAM) else { continue };
        let parts = ["is linked statically, so no library can be loaded into it: link it dynamically"];
        ran_unobserved(&run(&space, &program), &parts);
        attach_is_refused(&space, &program, &["is linked statically", "link the program dynamically"]);
    }
}

/// musl's dynamic linker loads what is preloaded like any other, and the program does not start if that fails.
#[test]
fn programs_of_another_c_library_run_without_the_tap() {
    let (space, folder) = (Space::new(), Folder::new());
    let Some(program) = folder.build("a program for musl", "musl-gcc", &[], PROGRAM) else { return };
    ran_unobserved(&run(&space, &program), &["is linked with musl", "use a build for glibc"]);
    attach_is_refused(&space, &program, &["is linked with musl", "link the program dynamically, with glibc"]);
    let script = folder.path("script");
    write_script(&script, &format!("#!{}\n", program.display()));
    let output = run(&space, &script);
    says(&output, &["not observed: pid ", "is linked with musl"]);
    assert!(output.stdout.starts_with(b"user "), "{output:?}");
}

#[test]
fn programs_for_another_processor() {
    let (space, folder) = (Space::new(), Folder::new());
    let (other, compiler) = match cfg!(target_arch = "x86_64") {
        true => ("aarch64", "aarch64-linux-gnu-gcc"),
        false => ("x86_64", "x86_64-linux-gnu-gcc"),
    };
    let source = "void _start(void) { __builtin_trap(); }";
    let what = "a program for another processor";
    let options = ["-nostdlib", "-ffreestanding"];
    let Some(program) = folder.build(what, compiler, &options, source) else { return };
    if Path::new(&format!("/proc/sys/fs/binfmt_misc/qemu-{other}")).exists() {
        return not_tried(what, "this machine runs them in an emulator");
    }
    let output = run(&space, &program);
    assert_eq!(output.status.code(), Some(126), "{output:?}");
    says(
        &output,
        &["tt-smi: cannot run ", &format!("is for another processor ({other})"), ": use a build for "],
    );
}

#[test]
fn programs_with_more_rights_than_their_user() {
    let (space, folder) = (Space::new(), Folder::new());
    let what = "a setuid program of another user";
    if !rustix::process::geteuid().is_root() {
        return not_tried(what, "that needs root");
    }
    let Some(program) = folder.build(what, "cc", &[], PROGRAM) else { return };
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let smi = folder.path("smi");
    copy_program(SMI, &smi);
    let as_nobody = |program: &Path| {
        let mut command = space.command(program.to_str().unwrap());
        command.uid(NOBODY).gid(NOBODY).env_remove("HOME").env("XDG_CACHE_HOME", folder.path("cache"));
        command
    };
    let cache = folder.path("cache");
    std::fs::create_dir(&cache).unwrap();
    std::os::unix::fs::chown(&cache, Some(NOBODY), Some(NOBODY)).unwrap();
    let output = as_nobody(&smi).args(["run", "--"]).arg(&program).output().unwrap();
    if !output.stdout.starts_with(b"user 65534 as 0\n") {
        return not_tried(what, "the file system of temporary files is mounted nosuid");
    }
    ran_unobserved(
        &output,
        &["is setuid, so the dynamic linker drops", "as root (`sudo tt-smi run -- COMMAND`)"],
    );
    // Its owner gets no rights by it, and the tap is loaded.
    let own = run(&space, &program);
    assert!(!String::from_utf8_lossy(&own.stderr).contains("not observed"), "{own:?}");
    let mut command = as_nobody(&program);
    let mut process = Process::spawn({
        command.arg("wait").stdin(Stdio::piped()).stdout(Stdio::null());
        command
    });
    let pid = process.0.id().to_string();
    let refused = as_nobody(&smi).args(["attach", "--yes", &pid]).output().unwrap();
    if cfg!(target_arch = "x86_64") {
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        says(&refused, &["may not be traced", "run tt-smi as root"]);
    }
    drop(process.0.stdin.take());
    assert!(process.0.wait().unwrap().success());
}

#[test]
fn what_was_preloaded_before_is_loaded_as_well() {
    let (space, folder) = (Space::new(), Folder::new());
    let source = "int added_by_nobody;";
    let what = "a second library in LD_PRELOAD";
    let Some(library) = folder.build(what, "cc", &["-shared", "-fPIC"], source) else { return };
    let mut command = space.command(SMI);
    command.args(["run", "--", "cat", "/proc/self/maps"]).env("LD_PRELOAD", &library);
    let output = command.output().unwrap();
    let maps = String::from_utf8_lossy(&output.stdout);
    for name in ["libtt_shm_tap", library.to_str().unwrap()] {
        assert!(maps.contains(name), "{name} is not in {maps}");
    }
}

/// The kernel says "No such file" of a file that is there.
#[test]
fn what_a_command_needs_to_be_run_is_named() {
    let (space, folder) = (Space::new(), Folder::new());
    let write = |name: &str, content: &str| {
        write_script(folder.path(name), content);
        run(&space, &folder.path(name))
    };
    let script = write("script", "#!/no/such/python -u\n");
    assert_eq!(script.status.code(), Some(127));
    says(&script, &["cannot run ", "needs /no/such/python, which is not: install that"]);
    let text = write("text", "no program\n");
    assert_eq!(text.status.code(), Some(126));
    says(&text, &["neither a program nor a script that begins with #!"]);
    let missing = run(&space, &folder.path("none"));
    assert_eq!(missing.status.code(), Some(127));
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("No such file or directory (os error 2)\n"), "{said}");
}
