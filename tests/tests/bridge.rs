//! `tt-smi bridge` and a client written in C against the bytes of the protocol (`bridge/client.c`).

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use rustix::process::Signal;
use serde_json::Value;
use tt_shm_tests::Space;
use tt_shm_tests::space::{Process, until};

use crate::common::{SMI, json};

const SIZES: [usize; 3] = [72, 112, 144];
/// Classes in the order of the client's sums.
const CLASSES: [&str; 9] = [
    "dram",
    "l1",
    "system_memory",
    "l1_small",
    "trace",
    "cb",
    "kernel_application",
    "kernel_fabric",
    "kernel_dispatch",
];
const DEVICES: usize = 4;

/// The client, built once by the system's compiler; `None` if there is none.
fn client_program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bridge-client");
        // Another run of the tests may have it open: it is replaced, not written.
        let new = program.with_extension(std::process::id().to_string());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bridge/client.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&new).arg(source);
        match compiler.output() {
            Ok(output) if output.status.success() => {
                std::fs::rename(new, &program).unwrap();
                Some(program)
            }
            Ok(output) => panic!("the client cannot be built: {}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => None,
        }
    });
    if built.is_none() {
        eprintln!("not run: no cc is installed to build the client of the bridge with");
    }
    built.as_deref()
}

/// A running bridge and the place of its socket.
struct Bridge {
    process: Process,
    folder: tempfile::TempDir,
    space: Space,
}

impl Bridge {
    fn start(options: &[&str]) -> Bridge {
        let (space, folder) = (Space::new(), tempfile::tempdir().unwrap());
        let mut command = space.command(SMI);
        command.args(["bridge", "--socket"]).arg(folder.path().join("s")).args(options);
        let file = |name| std::fs::File::create(folder.path().join(name)).unwrap();
        command.stdout(file("out")).stderr(file("log"));
        let bridge = Bridge { process: Process::spawn(command), folder, space };
        until("the bridge listens", || bridge.log().contains("listening on").then_some(()));
        bridge
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("out")).unwrap()
    }

    /// Waits for a line of the log that has this text.
    #[track_caller]
    fn await_log(&self, text: &str) {
        until(text, || self.log().contains(text).then_some(()));
    }

    fn client(&self, program: &Path, size: usize) -> Client {
        let mut command = Command::new(program);
        command.arg(self.socket()).arg(size.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::spawn(command);
        let (input, output) = (process.0.stdin.take(), process.0.stdout.take());
        Client { process, input: input.unwrap(), output: BufReader::new(output.unwrap()) }
    }

    /// The processes that another process of tt-smi sees.
    fn processes(&self) -> Vec<Value> {
        json(&self.space, &["snapshot"])["processes"].as_array().unwrap().clone()
    }

    /// The process that stands for a client.
    #[track_caller]
    fn process_of(&self, client: &Client) -> Value {
        let pid = client.process.0.id();
        until("the client's segment", || {
            self.processes().into_iter().find(|process| process["on_behalf_of"] == pid)
        })
    }

    #[track_caller]
    fn await_processes(&self, count: usize) {
        until(&format!("{count} segments"), || (self.space.segments().len() == count).then_some(()));
    }
}

/// A client that does what it is told.
struct Client {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    #[track_caller]
    fn tell(&mut self, command: &str) -> String {
        self.begin(command);
        self.finish()
    }

    fn begin(&mut self, command: &str) {
        writeln!(self.input, "{command}").unwrap();
    }

    #[track_caller]
    fn finish(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "the client ended: {line:?}");
        line
    }

    /// Asks something, and thereby waits until all that was sent before is dealt with.
    #[track_caller]
    fn ask(&mut self, kind: u8, device: i32) -> Vec<(String, Option<i64>)> {
        let line = self.tell(&format!("ask {kind} {device}"));
        let field = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.to_owned(), value.parse().ok())
        };
        line.split_whitespace().map(field).collect()
    }

    /// Closes its connection.
    fn disconnect(self) {
        let Client { mut process, input, .. } = self;
        drop(input);
        assert!(process.0.wait().unwrap().success());
    }
}

fn field(answer: &[(String, Option<i64>)], name: &str) -> Option<i64> {
    answer.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name} in {answer:?}")).1
}

/// Bytes and count by device and class, as a client says it.
fn sums_of(line: &str) -> Vec<[u64; 2]> {
    let numbers: Vec<u64> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
}

/// The same, as tt-smi says it.
fn sums_in(process: &Value) -> Vec<[u64; 2]> {
    let devices = process["devices"].as_array().unwrap();
    let mut sums = vec![[0; 2]; DEVICES * CLASSES.len()];
    for device in devices {
        let number = device["logical_id"].as_u64().unwrap() as usize;
        for (place, class) in CLASSES.iter().enumerate() {
            let counters = &device["classes"][class];
            let figure = |key: &str| counters[key].as_u64().unwrap_or(0);
            sums[number * CLASSES.len() + place] = [figure("live_bytes"), figure("live_count")];
        }
    }
    sums
}

#[test]
fn a_hundred_thousand_messages_in_each_form() {
    let Some(program) = client_program() else { return };
    let bridge = Bridge::start(&[]);
    for (seed, size) in SIZES.into_iter().enumerate() {
        let mut client = bridge.client(program, size);
        let held = sums_of(&client.tell(&format!("many 100000 {seed}")));
        let answer = client.ask(3, 1);
        let process = bridge.process_of(&client);
        assert_eq!(sums_in(&process), held, "{size}");
        let of_device_1 = |class: usize| held[CLASSES.len() + class][0].cast_signed();
        assert_eq!((field(&answer, "type"), field(&answer, "device")), (Some(4), Some(1)));
        assert_eq!(field(&answer, "dram"), Some(of_device_1(0)));
        assert_eq!(field(&answer, "l1"), Some(of_device_1(1)));
        assert_eq!(field(&answer, "l1_small"), Some(of_device_1(3)));
        assert_eq!(field(&answer, "trace"), Some(of_device_1(4)));
        let full = (size == 144).then_some(());
        assert_eq!(field(&answer, "cb"), full.map(|()| of_device_1(5)));
        assert_eq!(field(&answer, "kernel"), full.map(|()| (6..9).map(of_device_1).sum()));
        let pid = client.process.0.id();
        assert_eq!((&process["source"], &process["partial"]), (&"bridge".into(), &true.into()));
        assert!(
            process["name"].as_str().unwrap().ends_with(&format!(" (pid {pid}, by bridge)")),
            "{process}"
        );
        assert_eq!(process["anomalies"], serde_json::json!({}));
        client.disconnect();
        bridge.await_log("disconnected after 100001 messages");
        bridge.await_processes(0);
        assert!(bridge.log().contains(&format!("reports, in messages of {size} bytes")), "{}", bridge.log());
    }
}

#[test]
fn questions_are_answered_from_shared_memory() {
    let Some(program) = client_program() else { return };
    let bridge = Bridge::start(&[]);
    // What a process that is no client says of the device is part of the answers.
    let tracker = crate::common::tracker(&bridge.space);
    register_wormhole(&tracker);
    for size in SIZES {
        let mut client = bridge.client(program, size);
        assert_eq!(field(&client.ask(3, 0), "dram"), Some(4096));
        assert_eq!(bridge.space.segments().len(), 1, "a client that only asks has no segment");
        let count = client.ask(6, -1);
        let device = client.ask(6, 0);
        assert_eq!(field(&device, "type"), Some(7));
        let absent = size == 72;
        let expected = |value: i64| (!absent).then_some(value);
        assert_eq!(field(&count, "devices"), expected(1));
        assert_eq!(field(&count, "available"), expected(1));
        assert_eq!(field(&device, "total_dram"), expected(12 << 30));
        assert_eq!(field(&device, "total_l1"), expected(64 * 1_499_136));
        assert_eq!((field(&device, "arch"), field(&device, "channels")), (expected(2), expected(12)));
        assert_eq!(
            (field(&device, "channel_bytes"), field(&device, "available")),
            (expected(1 << 30), expected(1))
        );
        assert_eq!(field(&device, "l1_per_core"), expected(1_499_136));
        // Unknown is 0 there.
        assert_eq!(field(&client.ask(6, 5), "available"), expected(0));
        client.disconnect();
    }
    let mut client = bridge.client(program, 144);
    client.tell("send 10 3 1000 1 7");
    client.tell("send 5 0 0 0 0");
    client.tell("send 12 0 0 0 0");
    client.ask(3, 0);
    let printed = bridge.printed();
    assert!(printed.contains("kernel_fabric") && printed.contains("dram"), "{printed}");
    assert!(printed.matches("kernel_fabric").count() > printed.matches("dram").count(), "{printed}");
}

fn register_wormhole(tracker: &tt_shm_writer::Tracker) {
    use tt_shm_writer::{Alloc, Arch, BufferType, CoreMemory, DeviceInfo, Record};
    let info = DeviceInfo {
        chip_id: 0,
        logical_id: Some(0),
        arch: Arch::Wormhole,
        dram_bytes: Some(12 << 30),
        dram_channels: Some(12),
        l1: Some(CoreMemory { cores: 64, bytes_per_core: 1_499_136 }),
        ..DeviceInfo::default()
    };
    let device = tracker.register_device(&info).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096)).unwrap();
}

#[test]
fn a_client_that_stalls_or_sends_nonsense_affects_nobody_else() {
    let Some(program) = client_program() else { return };
    for size in SIZES {
        let bridge = Bridge::start(&[]);
        let mut good = bridge.client(program, size);
        good.tell("send 1 0 4096 0 1");
        // Half a message, then nothing.
        let mut stalled = bridge.client(program, size);
        stalled.tell("part 40");
        let mut nonsense = bridge.client(program, size);
        nonsense.tell("bytes 77 72");
        bridge.await_log("disconnected because it sent a message of type 77 after 0 messages");
        // It disconnects in the middle of its second message.
        let mut cut = bridge.client(program, size);
        cut.tell("send 1 0 100 0 1");
        cut.tell("part 30");
        until("both reports", || (field(&good.ask(3, 0), "dram") == Some(4096 + 100)).then_some(()));
        cut.disconnect();
        bridge.await_log("disconnected, with 30 bytes of an incomplete message after 1 message");
        // A buffer type that does not exist, once the form of its messages is known.
        let mut wrong = bridge.client(program, size);
        wrong.tell("send 1 0 100 0 1");
        bridge.process_of(&wrong);
        wrong.tell("send 1 0 100 9 2");
        bridge.await_log("disconnected because it sent buffer type 9 after 1 message");
        bridge.await_processes(1);
        assert_eq!(field(&good.ask(3, 0), "dram"), Some(4096));
        assert_eq!(bridge.process_of(&good)["devices"][0]["dram_used_bytes"], 4096);
        stalled.disconnect();
        bridge.await_log("disconnected, with 40 bytes of an incomplete message after 0 messages");
    }
}

#[test]
fn sixty_four_clients_report_at_once() {
    let Some(program) = client_program() else { return };
    let bridge = Bridge::start(&[]);
    let mut clients: Vec<Client> =
        (0..64).map(|number| bridge.client(program, SIZES[number % SIZES.len()])).collect();
    for (seed, client) in clients.iter_mut().enumerate() {
        client.begin(&format!("many 2000 {seed}"));
    }
    let held: Vec<_> = clients.iter_mut().map(|client| sums_of(&client.finish())).collect();
    clients.iter_mut().for_each(|client| drop(client.ask(6, 0)));
    let processes = bridge.processes();
    assert_eq!(processes.len(), 64);
    for (client, held) in clients.iter().zip(&held) {
        let pid = client.process.0.id();
        let process = processes.iter().find(|process| process["on_behalf_of"] == pid).unwrap();
        assert_eq!(&sums_in(process), held);
    }
    // One ends in order, one is killed.
    clients.pop().unwrap().disconnect();
    clients[0].process.kill();
    bridge.await_processes(62);
    drop(clients);
    bridge.await_processes(0);
}

#[test]
fn a_killed_client_is_gone_even_if_a_child_has_its_connection() {
    let Some(program) = client_program() else { return };
    let bridge = Bridge::start(&[]);
    let mut client = bridge.client(program, 112);
    client.tell("send 1 2 4096 0 1");
    // It has no connection any more once the bridge closes it, and ends.
    client.tell("child");
    bridge.process_of(&client);
    client.process.kill();
    bridge.await_log("its process has ended after 1 message");
    bridge.await_processes(0);
}

#[test]
fn the_bridge_ends_in_order_and_replaces_only_a_stale_socket() {
    let Some(program) = client_program() else { return };
    for signal in [Signal::TERM, Signal::INT] {
        let mut bridge = Bridge::start(&[]);
        let mode = bridge.socket().symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut client = bridge.client(program, 144);
        client.tell("send 1 0 4096 0 1");
        client.ask(3, 0);
        let second =
            bridge.space.command(SMI).args(["bridge", "--socket"]).arg(bridge.socket()).output().unwrap();
        let message = String::from_utf8_lossy(&second.stderr);
        assert!(!second.status.success() && message.contains("a server listens on"), "{message}");
        bridge.process.signal(signal);
        assert!(bridge.process.0.wait().unwrap().success());
        assert!(!bridge.socket().exists());
        assert_eq!(bridge.space.files(), Vec::<PathBuf>::new());
        assert!(bridge.log().contains("the bridge ends after 2 messages"), "{}", bridge.log());
    }
    let bridge = Bridge::start(&[]);
    // As a killed server leaves it.
    let stale = bridge.folder.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    let mut command = bridge.space.command(SMI);
    command.args(["bridge", "--socket"]).arg(&stale).stderr(Stdio::piped());
    let mut second = Process::spawn(command);
    let mut line = [0; 30];
    second.0.stderr.take().unwrap().read_exact(&mut line).unwrap();
    assert!(line.starts_with(b"tt-smi bridge: listening on"));
}

#[test]
fn options_set_the_length_and_guess_kernels() {
    let Some(program) = client_program() else { return };
    let bridge = Bridge::start(&["--message-size", "112", "--guess-kernel-type"]);
    let mut client = bridge.client(program, 112);
    client.tell("send 10 0 57344 0 1");
    client.tell("send 10 0 47104 0 2");
    client.ask(3, 0);
    let process = bridge.process_of(&client);
    let device = &process["devices"][0];
    assert_eq!(
        (&device["kernel_fabric_bytes"], &device["kernel_dispatch_bytes"]),
        (&57344.into(), &47104.into())
    );
    // Its messages do not have the length that was set.
    let mut other = bridge.client(program, 144);
    other.tell("send 1 0 4096 0 1");
    other.tell("send 1 0 4096 0 2");
    bridge.await_log("disconnected because it sent a message of type 0");
}
