//! Other processes: this very program, started again to play another part.

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tt_shm_aggregator::{DaemonConfig, Log, run_daemon};
use tt_shm_measure::scene::Scene;
use tt_shm_measure::socket;
use tt_shm_os::Namespace;

/// Argument before which a program plays a part: the part and what it is about.
const PART: &str = "--play-part";
const AGGREGATOR: &str = "aggregator";
const SERVER: &str = "server";

/// To be called first in `main`: does not return in a process that was started to play a part.
pub fn play_part_if_asked() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(PART) {
        return;
    }
    let (part, about) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    // Also if the benchmark is killed.
    set_parent_process_death_signal(Some(Signal::KILL)).expect("a signal at the parent's death");
    match part.as_str() {
        AGGREGATOR => aggregate(&about),
        SERVER => socket::serve(Path::new(&about)).expect("a socket"),
        other => panic!("there is no part {other}"),
    }
    std::process::exit(0);
}

fn aggregate(namespace: &str) {
    let namespace = Namespace::new(namespace).expect("a valid name");
    let config =
        DaemonConfig { namespace, stats_interval: None, driver: None, regions: None, log: Log::silent() };
    run_daemon(config, &AtomicBool::new(false)).expect("nobody else aggregates here");
}

/// Another process, ended when dropped.
#[derive(Debug)]
pub struct Player(Child);

impl Player {
    /// An aggregator that follows a scene's segments, once its table is there.
    pub fn aggregator(scene: &Scene) -> Player {
        let player = Player::start(AGGREGATOR, scene.namespace.as_str());
        scene.wait_for_table("a table", |_| true);
        player
    }

    /// A server of the socket protocol. It listens as soon as a client can connect.
    pub fn server(socket: &Path) -> Player {
        Player::start(SERVER, &socket.to_string_lossy())
    }

    fn start(part: &str, about: &str) -> Player {
        let program = std::env::current_exe().expect("the name of this program");
        let child = Command::new(program).args([PART, part, about]).spawn().expect("another process");
        Player(child)
    }

    /// Stops it, as SIGSTOP does, and waits until it is.
    pub fn stop(&self) {
        kill_process(self.pid(), Signal::STOP).expect("our child");
        while self.stat().is_some_and(|stat| !stat.contains(") T ")) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// CPU time that it has used.
    pub fn cpu(&self) -> Duration {
        cpu_of(self.0.id())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().cast_signed()).expect("not zero")
    }

    fn stat(&self) -> Option<String> {
        std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).ok()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // Ended already: then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// CPU time that a process has used.
pub fn cpu_of(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("the process's schedstat");
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds on the CPU");
    Duration::from_nanos(ns)
}
