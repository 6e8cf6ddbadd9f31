//! Compiles programs with the compilers of this machine, and runs them in a namespace of their own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of this package.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the libraries, which cargo does not build for a test by itself: built once, as the test is.
pub(crate) fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // target/debug/deps/suite-..., or release.
        let program = std::env::current_exe().unwrap();
        let folder = program.parent().unwrap().parent().unwrap().to_owned();
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(["build", "--quiet", "--locked", "--package", "tt-shm-capi"]).current_dir(package());
        command.arg("--target-dir").arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            command.arg("--release");
        }
        succeed(&mut command);
        folder
    })
}

/// Whether a program can be started; says once on stderr what is not run without it.
pub(crate) fn has(program: &str, what: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("NOT RUN: {what}: there is no {program}");
    }
    found
}

/// A language, as far as compiling it differs.
#[derive(Clone, Copy)]
pub(crate) enum Language {
    C,
    Cpp,
}

impl Language {
    /// The compilers that there may be.
    pub(crate) fn compilers(self) -> [&'static str; 2] {
        match self {
            Language::C => ["gcc", "clang"],
            Language::Cpp => ["g++", "clang++"],
        }
    }

    fn standard(self) -> &'static str {
        match self {
            Language::C => "-std=c11",
            Language::Cpp => "-std=c++17",
        }
    }
}

/// How a program is linked with the library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Static,
    Shared,
}

/// A temporary folder with the libraries under the names that hosts look for, and a namespace.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) namespace: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir().unwrap();
        let library = libraries().join("libtt_shm.so");
        for name in ["libtt_shm.so", "libtt_shm.so.1"] {
            std::os::unix::fs::symlink(&library, folder.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink(libraries().join("libtt_shm.a"), folder.path().join("libtt_shm.a"))
            .unwrap();
        Place { folder, namespace: format!("capi-{}-{count}", std::process::id()) }
    }

    /// Compiles a source, without a warning.
    pub(crate) fn compile(
        &self,
        compiler: &str,
        language: Language,
        source: &Path,
        link: Link,
        options: &[&str],
    ) -> PathBuf {
        let program = self.folder.path().join("program");
        let mut command = Command::new(compiler);
        command.args([language.standard(), "-D_GNU_SOURCE", "-g", "-O1", "-pthread"]);
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic"]).args(options);
        command.arg("-I").arg(package().join("include")).arg("-I").arg(package().join("tests/programs"));
        command.arg(source).arg("-o").arg(&program);
        let folder = self.folder.path();
        match link {
            Link::Shared => {
                command.arg(folder.join("libtt_shm.so")).arg(format!("-Wl,-rpath,{}", folder.display()));
            }
            Link::Static => {
                command.arg(folder.join("libtt_shm.a")).args(["-lm", "-ldl"]);
            }
        }
        succeed(&mut command);
        program
    }

    /// A command that runs in the namespace.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("TT_SHM_NAMESPACE", &self.namespace).env_remove("TT_ALLOC_TRACKING_ENABLED");
        // Anything that a sanitizer finds ends the program.
        command
            .env("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
            .env("ASAN_OPTIONS", "abort_on_error=1");
        command
    }

    /// The files of the namespace.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let begin = format!("tt-shm.v2.{}.", self.namespace);
        let entries = std::fs::read_dir("/dev/shm").unwrap().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&begin))
            .map(|e| e.path())
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for file in self.files() {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}

const SANITIZERS: &[&str] =
    &["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

/// Whether a compiler has the libraries of its sanitizers. gcc's come with it.
fn has_sanitizers(compiler: &str, what: &str) -> bool {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut command = Command::new(compiler);
    command.args(["-x", "c"]).args(SANITIZERS).arg(source).arg("-o").arg(place.path().join("empty"));
    let found = command.output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("NOT RUN: {what} with the sanitizers of {compiler}: it has none (libclang-rt-dev)");
    }
    found
}

/// Calls `run` with each compiler that there is, linked both ways, and with its sanitizers.
pub(crate) fn each_way(language: Language, name: &str, mut run: impl FnMut(&str, Link, &[&str])) {
    let mut ran = 0;
    for compiler in language.compilers() {
        if !has(compiler, name) {
            continue;
        }
        let mut ways = vec![(Link::Shared, &[] as &[&str])];
        // The archive is the same for every compiler.
        if ran == 0 {
            ways.push((Link::Static, &[]));
        }
        if has_sanitizers(compiler, name) {
            ways.push((Link::Shared, SANITIZERS));
        }
        for (link, options) in ways {
            run(compiler, link, options);
            ran += 1;
        }
    }
    assert!(ran > 0, "{name}: there is no compiler");
}

/// Compiles a program in every way, runs each in these environments, and expects that nothing is left of it.
pub(crate) fn run_with_all_compilers(language: Language, name: &str, environments: &[&[(&str, &str)]]) {
    let source = package().join("tests/programs").join(name);
    each_way(language, name, |compiler, link, options| {
        let place = Place::new();
        let program = place.compile(compiler, language, &source, link, options);
        for environment in environments {
            succeed(place.command(&program).envs(environment.iter().copied()));
        }
        assert_eq!(place.files(), Vec::<PathBuf>::new(), "{compiler} {options:?}: left behind");
    });
}
