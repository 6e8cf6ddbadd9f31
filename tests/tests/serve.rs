//! `tt-smi serve`, asked by clients over loopback, beside a real aggregator and real processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tt_shm_reader::Segment;
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Command, Space};

use crate::common::{FAIL, SMI, host, json};

const TOKEN: &str = "correct-horse-battery-staple";

/// A running server and its address.
struct Served {
    process: Process,
    address: String,
    folder: tempfile::TempDir,
}

impl Served {
    fn start(space: &Space, options: &[&str]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, TOKEN).unwrap();
        std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
        let log = folder.path().join("log");
        let mut command = space.command(SMI);
        command.args(["serve", "--listen", "127.0.0.1:0", "--token-file"]).arg(token).args(options);
        command.stderr(std::fs::File::create(&log).unwrap());
        let process = Process::spawn(command);
        let address = until("it listens", || {
            let text = std::fs::read_to_string(&log).unwrap();
            Some(text.split_once("http://")?.1.split_once('/')?.0.to_owned())
        });
        Served { process, address, folder }
    }

    fn connect(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (host, request) = (&self.address, format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.address));
        assert!(!host.is_empty());
        stream.write_all(format!("{request}Authorization: Bearer {TOKEN}\r\n\r\n").as_bytes()).unwrap();
        stream
    }

    /// Status and body.
    fn get(&self, path: &str) -> (u16, String) {
        let mut text = String::new();
        self.connect(path).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The value of the only series with this beginning.
    fn metric(&self, name: &str) -> Option<f64> {
        let (status, text) = self.get("/metrics");
        assert_eq!(status, 200, "{text}");
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.rsplit_once(' ')?.1.parse().ok()
    }
}

fn aggregate(space: &Space) -> Process {
    let mut command = space.command(SMI);
    command.arg("aggregate");
    Process::spawn(command)
}

#[test]
fn what_is_served_is_what_the_commands_say() {
    let space = Space::new();
    let _aggregator = aggregate(&space);
    let mut host = host(&space, [7]);
    let served = Served::start(&space, &["--label", "cluster=a"]);
    host.tell(Command::Work { seed: 3, calls: 200, threads: 1, pause_us: 0 });
    // What the process itself says: the aggregator may not have folded all of it yet.
    let segment = Segment::open(&space.segments()[0]).unwrap();
    let used = segment.counters().unwrap().counters[0].dram_used();
    assert!(used > 0);
    until("the aggregator has it", || {
        let snapshot = json(&space, &["snapshot"]);
        (snapshot["devices"][0]["dram_used_bytes"].as_u64() == Some(used)).then_some(())
    });
    until("the figures are served", || {
        served.metric("tt_dram_used_bytes{").filter(|value| *value == used as f64)
    });
    let (_, text) = served.get("/metrics");
    assert!(
        text.ends_with("# EOF\n") && text.contains("cluster=\"a\"") && !text.contains("pid=\""),
        "{text}"
    );
    let (status, body) = served.get("/api/v1/snapshot");
    let body: Value = serde_json::from_str(&body).unwrap();
    crate::schema::check("snapshot", &body);
    assert_eq!((status, &body["devices"][0]["dram_used_bytes"]), (200, &Value::from(used)));
    host.tell(FAIL);
    until("a failure has its time", || served.metric("tt_device_last_failure_time_seconds{"));
}

#[test]
fn a_monitor_that_is_gone_is_told() {
    let space = Space::new();
    let mut aggregator = aggregate(&space);
    let served = Served::start(&space, &[]);
    until("all is well", || (served.get("/healthz") == (200, "ok\n".to_owned())).then_some(()));
    aggregator.kill();
    let why = until("it is noticed", || Some(served.get("/healthz")).filter(|(status, _)| *status == 503)).1;
    assert!(
        why.contains("stale monitor: the aggregator") && why.contains("start `tt-smi aggregate`"),
        "{why}"
    );
    assert_eq!(served.metric("tt_smi_healthy{"), Some(0.0));
}

#[test]
fn events_are_streamed_as_the_command_prints_them() {
    let space = Space::new();
    let mut host = host(&space, [7]);
    let mut served = Served::start(&space, &[]);
    let mut lines = BufReader::new(served.connect("/api/v1/events")).lines().map(Result::unwrap);
    assert_eq!(lines.find(|line| line.starts_with("event:")).as_deref(), Some("event: following"));
    let following: Value =
        serde_json::from_str(lines.next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    crate::schema::check("stream", &following);
    assert_eq!(following["processes"], 1);
    until("the rings are followed", || {
        served.metric("tt_smi_serve_streams{").filter(|streams| *streams == 1.0)
    });
    host.tell(Command::Start { seed: 1, pause_us: 100 });
    for line in lines.by_ref().filter(|line| line.starts_with("data: ")).take(50) {
        let event: Value = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
        crate::schema::check("event", &event);
        assert_eq!(event["pid"], u64::from(host.pid()));
    }
    served.process.signal(Signal::TERM);
    assert!(served.process.0.wait().unwrap().success(), "it ends in order, also with a stream");
}

#[test]
fn doors_are_closed_by_default() {
    let space = Space::new();
    let refused = |options: &[&str]| {
        let output = space.command(SMI).arg("serve").args(options).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = refused(&["--listen", "0.0.0.0:0"]);
    assert!(code == Some(2) && text.contains("--token-file"), "{text}");
    let served = Served::start(&space, &[]);
    let open = served.folder.path().join("token");
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o644)).unwrap();
    let (code, text) = refused(&["--token-file", open.to_str().unwrap()]);
    assert!(code == Some(1) && text.contains("chmod 0600"), "{text}");
    let (code, text) = refused(&["--listen", &served.address]);
    assert!(code == Some(1) && text.contains("cannot listen") && text.contains(&served.address), "{text}");
    let (code, text) = refused(&["--label", "a=1", "--label", "a=2"]);
    assert!(code == Some(2) && text.contains("given twice"), "{text}");
}
