//! Reporting over a socket: a blocking send under a mutex, and a server that keeps the statistics.

use crate::message::{Kind, MESSAGE_LEN, Message, place};
use crate::sink::Sink;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the server knows.
#[derive(Debug, Default)]
struct Statistics {
    /// Size and number of references, by device and id.
    buffers: HashMap<(i32, u64), (u64, u32)>,
    kernels: HashMap<(i32, u64), (u64, u32)>,
    allocated: HashMap<i32, [u64; 6]>,
}

impl Statistics {
    fn add(&mut self, message: &Message, place: usize) {
        let list = if place == place::KERNEL { &mut self.kernels } else { &mut self.buffers };
        let entry = list.entry((message.device, message.id)).or_insert((message.size, 0));
        entry.1 += 1;
        if entry.1 == 1 {
            self.allocated.entry(message.device).or_default()[place] += message.size;
        }
    }

    fn remove(&mut self, message: &Message, place: usize) {
        let list = if place == place::KERNEL { &mut self.kernels } else { &mut self.buffers };
        if let Some((size, _)) = list.remove(&(message.device, message.id)) {
            self.allocated.entry(message.device).or_default()[place] -= size;
        }
    }

    fn answer(&self, question: &Message) -> Message {
        let allocated = self.allocated.get(&question.device).copied().unwrap_or_default();
        let mut answer = *question;
        (answer.kind, answer.allocated) = (Kind::Response as u8, allocated);
        answer
    }

    /// What is to be sent back, if anything.
    fn take(&mut self, message: &Message) -> Option<Message> {
        match Kind::from_code(message.kind)? {
            Kind::Alloc => self.add(message, place::DRAM),
            Kind::Free => self.remove(message, place::DRAM),
            Kind::KernelLoad => self.add(message, place::KERNEL),
            Kind::KernelUnload => self.remove(message, place::KERNEL),
            Kind::Query => return Some(self.answer(message)),
            // No benchmark sends any other.
            _ => {}
        }
        None
    }
}

/// Listens for ever, with a thread for each client.
pub fn serve(path: &Path) -> io::Result<()> {
    let statistics = Arc::new(Mutex::new(Statistics::default()));
    for client in UnixListener::bind(path)?.incoming() {
        let (client, statistics) = (client?, statistics.clone());
        std::thread::spawn(move || serve_one(client, &statistics));
    }
    Ok(())
}

fn serve_one(mut client: UnixStream, statistics: &Mutex<Statistics>) {
    let mut bytes = [0; MESSAGE_LEN];
    // Until the client goes.
    while client.read_exact(&mut bytes).is_ok() {
        let answer = statistics.lock().expect("no thread panics").take(&bytemuck::must_cast(bytes));
        if answer.is_some_and(|answer| client.write_all(bytemuck::bytes_of(&answer)).is_err()) {
            return;
        }
    }
}

/// The process's end of the socket, shared by its threads.
#[derive(Debug)]
pub struct SocketClient {
    stream: Mutex<UnixStream>,
    pid: i32,
}

impl SocketClient {
    /// Connects to a server that may have to be waited for.
    pub fn connect(path: &Path) -> SocketClient {
        let start = Instant::now();
        let stream = loop {
            match UnixStream::connect(path) {
                Ok(stream) => break Mutex::new(stream),
                Err(error) => assert!(start.elapsed() < Duration::from_secs(10), "no server: {error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        SocketClient { stream, pid: std::process::id().cast_signed() }
    }

    /// A client of a server that is a thread of this process. It has no name, so nothing is left behind, and
    /// it ends when the client goes.
    pub fn with_server_thread() -> io::Result<SocketClient> {
        let (ours, theirs) = UnixStream::pair()?;
        std::thread::Builder::new()
            .name("socket server".into())
            .spawn(move || serve_one(theirs, &Mutex::new(Statistics::default())))?;
        Ok(SocketClient { stream: Mutex::new(ours), pid: std::process::id().cast_signed() })
    }

    /// Tells the server something; waits for room in the socket, not for the server.
    #[inline]
    pub fn send(&self, kind: Kind, device: i32, id: u64, size: u64) {
        let message = Message::new(kind, self.pid, device, id, size);
        let mut stream = self.stream.lock().expect("no thread panics");
        stream.write_all(bytemuck::bytes_of(&message)).expect("the server lives");
    }

    /// Bytes in use on a device, as the server says.
    pub fn query(&self, device: i32) -> [u64; 6] {
        let message = Message::new(Kind::Query, self.pid, device, 0, 0);
        let mut stream = self.stream.lock().expect("no thread panics");
        stream.write_all(bytemuck::bytes_of(&message)).expect("the server lives");
        let mut bytes = [0; MESSAGE_LEN];
        stream.read_exact(&mut bytes).expect("the server answers");
        bytemuck::must_cast::<_, Message>(bytes).allocated
    }
}

impl Sink for &SocketClient {
    #[inline]
    fn alloc(&mut self, id: u64, size: u64) {
        self.send(Kind::Alloc, 0, id, size);
    }

    #[inline]
    fn free(&mut self, id: u64, _: u64) {
        // The message of a free has no size: the server looks it up.
        self.send(Kind::Free, 0, id, 0);
    }

    fn settle(&mut self) {
        // Answered when all that was sent before is dealt with.
        self.query(0);
    }
}
