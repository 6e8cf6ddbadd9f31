//! A real aggregator process, and its table compared with what the hosts know.

use crate::script::{DeviceTruth, Truth};
use crate::space::{Process, Space, until};
use rustix::process::Signal;
use shm_layout::Class;
use std::process::{ExitStatus, Stdio};
use tt_shm_reader::{Counters, Table, TableSnapshot, process_state};

/// `tt-smi aggregate`.
pub struct Monitor {
    process: Process,
}

impl Monitor {
    /// Starts it and waits for a fresh table. `program` is the path of the helper binary `smi`.
    pub fn start(program: &str, space: &Space) -> Monitor {
        Monitor::start_by(space.command(program), space)
    }

    /// Likewise, by a command of the test's own.
    pub fn start_by(mut command: std::process::Command, space: &Space) -> Monitor {
        command.arg("aggregate").stderr(Stdio::null());
        let process = Process::spawn(command);
        let pid = u64::from(process.0.id());
        until("a fresh table of the new aggregator", || {
            let table = Table::open(space.namespace()).ok()?;
            (table.header().pid == pid && table.freshness().is_fresh()).then_some(())
        });
        Monitor { process }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Ends it by SIGTERM and waits.
    pub fn terminate(mut self) -> ExitStatus {
        self.process.signal(Signal::TERM);
        self.process.0.wait().expect("our own child can be waited for")
    }
}

/// The table as it is now.
pub fn snapshot(space: &Space) -> Option<TableSnapshot> {
    Table::open(space.namespace()).ok().map(|table| table.snapshot())
}

/// Waits until the table says exactly what these processes believe, and nothing of any other.
#[track_caller]
pub fn await_exact(space: &Space, expected: &[(u32, Truth)]) -> TableSnapshot {
    let mut last = String::new();
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("a table that equals the truth", || {
            let table = snapshot(space)?;
            match compare(&table, expected) {
                Ok(()) => Some(table),
                Err(difference) => {
                    last = difference;
                    None
                }
            }
        })
    }));
    found.unwrap_or_else(|_| panic!("the table never became exact; the last difference: {last}"))
}

/// The first difference between a table and what the processes believe.
pub fn compare(table: &TableSnapshot, expected: &[(u32, Truth)]) -> Result<(), String> {
    if !table.consistent {
        return Err("the rows are not of one batch".into());
    }
    let alive: Vec<_> = table.processes.iter().filter(|(_, p)| p.state == process_state::ALIVE).collect();
    if alive.len() != expected.len() {
        return Err(format!("{} processes, not {}", alive.len(), expected.len()));
    }
    for (pid, truth) in expected {
        let process = alive.iter().find(|(_, process)| process.pid == u64::from(*pid));
        let (row, _) = process.ok_or(format!("process {pid} is missing"))?;
        for (number, truth) in truth.devices.iter().enumerate() {
            let mut usages = table.usages.iter().map(|(_, usage)| usage);
            let usage = usages.find(|u| u.process == *row as u64 && u.logical_id == number as u64);
            let said = usage.map(|usage| as_truth(&usage.counters, truth)).unwrap_or_default();
            if said != *truth {
                return Err(format!("process {pid}, device {number}: {said:?}, not {truth:?}"));
            }
        }
    }
    compare_devices(table, expected)
}

/// Device rows are the sums over the processes.
fn compare_devices(table: &TableSnapshot, expected: &[(u32, Truth)]) -> Result<(), String> {
    let all = || expected.iter().flat_map(|(_, truth)| &truth.devices);
    let said = |what: fn(&tt_shm_reader::DeviceStats) -> u64| -> u64 {
        table.devices.iter().map(|(_, device)| what(device)).sum()
    };
    let dram: u64 = all().map(|device| device.dram_used).sum();
    if said(|device| device.dram_used_bytes) != dram {
        return Err(format!("{} B of DRAM in all, not {dram}", said(|device| device.dram_used_bytes)));
    }
    for class in Class::ALL {
        let bytes: u64 = all().map(|device| device.bytes[class as usize]).sum();
        let found: u64 = table.devices.iter().map(|(_, d)| d.classes[class as usize].live_bytes).sum();
        if found != bytes {
            return Err(format!("{found} B of {} in all, not {bytes}", class.name()));
        }
    }
    Ok(())
}

/// What counters say, in the words of a truth. What the truth does not know is taken from it.
pub fn as_truth(counters: &Counters, truth: &DeviceTruth) -> DeviceTruth {
    let single = !truth.order_unknown;
    DeviceTruth {
        bytes: counters.classes.map(|class| class.live_bytes),
        requested: counters.classes.map(|class| class.requested_bytes),
        counts: counters.classes.map(|class| class.live_count),
        dram_used: counters.dram_used(),
        l1_used: if single { counters.l1_used() } else { truth.l1_used },
        eth_used: if single { counters.eth_used() } else { truth.eth_used },
        dram_peak: if single { counters.dram_peak_bytes } else { truth.dram_peak },
        l1_peak: if single { counters.l1_peak_bytes } else { truth.l1_peak },
        dispatches: counters.dispatches,
        cached: counters.cached_dispatches,
        order_unknown: truth.order_unknown,
    }
}
