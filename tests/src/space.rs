//! A test's own place: a namespace in /dev/shm and the processes in it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tt_shm_reader::Namespace;

/// How long a test waits for something that should happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// A namespace that nobody else uses; removed with everything in it when dropped.
pub struct Space {
    namespace: Namespace,
}

impl Space {
    /// A new namespace.
    #[expect(clippy::new_without_default, reason = "every one is another")]
    pub fn new() -> Space {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Space { namespace: Namespace::new(&name).expect("a valid name") }
    }

    /// Its name.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// A command that runs in this namespace, with tracking enabled.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("TT_SHM_NAMESPACE", self.namespace.as_str()).env("TT_ALLOC_TRACKING_ENABLED", "1");
        command.env_remove("TT_SHM_RING_SLOTS").env_remove("TT_SHM_LIVE_CAPACITY").env("NO_COLOR", "1");
        command.env_remove("TT_ALLOC_TRACKING_BACKTRACE");
        // Not the settings of whoever runs the tests.
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        // What `run` puts into programs is put here.
        command.env("XDG_CACHE_HOME", concat!(env!("CARGO_MANIFEST_DIR"), "/../target/cache"));
        // Not the devices of the machine that runs the tests.
        command.env("TT_SMI_ROOT", "/nonexistent");
        command.stdin(Stdio::null());
        command
    }

    /// Files of this namespace in /dev/shm.
    pub fn files(&self) -> Vec<PathBuf> {
        let prefix = format!("tt-shm.v2.{}.", self.namespace);
        let files = std::fs::read_dir(tt_shm_os::SHM_DIR).into_iter().flatten().flatten();
        let mut ours: Vec<_> = files
            .filter(|file| file.file_name().to_string_lossy().starts_with(&prefix))
            .map(|file| file.path())
            .collect();
        ours.sort();
        ours
    }

    /// A path that goes with this namespace and reads as nothing of the monitor's.
    pub fn folder_name(&self, what: &str) -> PathBuf {
        tt_shm_os::path_of(&format!("tt-shm.v2.{}.{what}", self.namespace))
    }

    /// Segments of this namespace.
    pub fn segments(&self) -> Vec<PathBuf> {
        tt_shm_reader::segment_paths(&self.namespace).expect("/dev/shm can be listed")
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        for file in self.files() {
            if std::fs::remove_file(&file).is_err() {
                let _ = std::fs::remove_dir(file);
            }
        }
    }
}

/// A process that ends with the test.
pub struct Process(pub Child);

impl Process {
    /// Starts it.
    pub fn spawn(mut command: Command) -> Process {
        let child = loop {
            match command.spawn() {
                // A program that a test has just copied: a child that another test forks meanwhile has it open for
                // writing until it becomes another program.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                result => break result,
            }
        };
        Process(child.unwrap_or_else(|error| panic!("cannot start {:?}: {error}", command.get_program())))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).expect("our own child can be signalled");
    }

    /// Ends it by SIGKILL and waits for that.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until `what` gives something; fails the test if that takes too long.
#[track_caller]
pub fn until<T>(expected: &str, mut what: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain for: {expected}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
