//! What driver and regions tell, asked once a second on a thread of its own: reading sysfs may take milliseconds.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::setpriority_process;
use tt_shm_os::{Namespace, monotonic_ns};
use tt_shm_reader::{DriverStats, RegionStats, TableSnapshot};
use tt_shm_record::{Entry, FrameTime, Recorder};

use crate::model::Origin;
use crate::source::Source;

const INTERVAL: Duration = Duration::from_secs(1);
/// The most rows of one entry.
const ROWS: usize = 128;

/// What was told last, and the thread that asks.
pub(super) struct Told {
    readings: Receiver<(TableSnapshot, bool)>,
    /// Closing it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    driver: Vec<(u64, DriverStats)>,
    regions: Vec<(u64, RegionStats)>,
    has_table: bool,
}

impl Told {
    pub(super) fn start(namespace: &Namespace) -> Told {
        let (send, readings) = channel();
        let (stop, stopped) = channel();
        let namespace = namespace.clone();
        let thread = std::thread::spawn(move || ask(&namespace, &send, &stopped));
        Told {
            readings,
            stop: Some(stop),
            thread: Some(thread),
            driver: Vec::new(),
            regions: Vec::new(),
            has_table: false,
        }
    }

    /// Forgets what was told: a new file has to say it again.
    pub(super) fn forget(&mut self) {
        (self.driver, self.regions, self.has_table) = (Vec::new(), Vec::new(), false);
    }

    /// Records what is new.
    pub(super) fn record(&mut self, recorder: &mut Recorder) {
        while let Ok((snapshot, is_table)) = self.readings.try_recv() {
            let time_ns = monotonic_ns();
            if is_table && !self.has_table {
                recorder.table(&snapshot);
                self.has_table = true;
            }
            let driver: Vec<(u64, DriverStats)> = snapshot.driver.into_iter().map(numbered).collect();
            // Generation and time change without anything being new.
            let same = |row: &(u64, DriverStats)| (row.0, DriverStats { generation: 0, time: 0, ..row.1 });
            if !driver.iter().map(same).eq(self.driver.iter().map(same)) {
                for rows in driver.chunks(ROWS) {
                    recorder.entry(&Entry::Driver { time_ns, rows: rows.to_vec() }, FrameTime::at(time_ns));
                }
                self.driver = driver;
            }
            let regions: Vec<(u64, RegionStats)> = snapshot.regions.into_iter().map(numbered).collect();
            let same = |row: &(u64, RegionStats)| (row.0, RegionStats { generation: 0, ..row.1 });
            if !regions.iter().map(same).eq(self.regions.iter().map(same)) {
                for rows in regions.chunks(ROWS) {
                    recorder.entry(&Entry::Regions { time_ns, rows: rows.to_vec() }, FrameTime::at(time_ns));
                }
                self.regions = regions;
            }
        }
    }
}

fn numbered<T>((number, row): (usize, T)) -> (u64, T) {
    (number as u64, row)
}

impl Drop for Told {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads a table, or aggregates where there is none, until the other end is closed.
fn ask(namespace: &Namespace, send: &Sender<(TableSnapshot, bool)>, stopped: &Receiver<()>) {
    // Of this thread alone: the rings go first.
    let _ = setpriority_process(None, 19);
    let Ok(mut source) = Source::open(namespace) else { return };
    loop {
        if let Ok(reading) = source.read() {
            let is_table = matches!(reading.origin, Origin::Table { .. });
            if send.send((reading.snapshot, is_table)).is_err() {
                return;
            }
        }
        if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
