//! An aggregator's table against the states of all writers.

use super::found::{label, range, value};
use super::replay::State;
use shm_layout::Class;
use tt_shm_reader::{TableSnapshot, notice_kind, process_state};

/// A writer as its segment was found.
pub struct Known<'a> {
    /// Its process.
    pub pid: u32,
    /// What tells its segment from others.
    pub identity: u64,
    /// The state that its segment is in.
    pub state: &'a State,
}

/// The first difference between a table and the living writers. Their rows and no other's must be there, and the
/// devices must be their sums.
pub fn compare(table: &TableSnapshot, writers: &[Known<'_>]) -> Result<(), String> {
    if !table.consistent {
        return Err("the rows are not of one batch".into());
    }
    let alive = || table.processes.iter().filter(|(_, process)| process.state == process_state::ALIVE);
    for writer in writers {
        let row = alive().find(|(_, process)| process.identity == writer.identity);
        let (row, _) = row.ok_or_else(|| format!("pid {}: not in the table", writer.pid))?;
        compare_process(table, *row, writer)?;
    }
    let strangers = alive().filter(|(_, p)| !writers.iter().any(|writer| writer.identity == p.identity));
    let strangers: Vec<u64> = strangers.map(|(_, process)| process.pid).collect();
    if !strangers.is_empty() {
        return Err(format!("shown as alive, but dead: {strangers:?}"));
    }
    compare_devices(table, writers)
}

fn compare_process(table: &TableSnapshot, row: usize, writer: &Known<'_>) -> Result<(), String> {
    for (device, expected) in writer.state.devices.iter().enumerate() {
        let mut usages = table.usages.iter().map(|(_, usage)| usage);
        let usage = usages.find(|usage| usage.process == row as u64 && usage.logical_id == device as u64);
        for figure in expected {
            let said = usage.map_or(0, |usage| value(&usage.counters, figure));
            if !(figure.low..=figure.high).contains(&said) {
                let (what, expected) = (label(device, figure.what, figure.class), range(figure));
                return Err(format!("pid {}: {what}: expected {expected}, found {said}", writer.pid));
            }
        }
    }
    Ok(())
}

fn compare_devices(table: &TableSnapshot, writers: &[Known<'_>]) -> Result<(), String> {
    for (_, device) in &table.devices {
        let number = device.entry.chip_id as usize - 1;
        let sum = |what: &str, class| -> u64 {
            let with_it = writers.iter().filter(|writer| writer.state.devices.len() > number);
            with_it.map(|writer| writer.state.figure(number, what, class)).sum()
        };
        let mut figures = vec![
            ("dram_used", None, device.dram_used_bytes),
            ("l1_used", None, device.l1_used_bytes),
            ("eth_used", None, device.eth_used_bytes),
        ];
        for class in Class::ALL {
            let stats = &device.classes[class as usize];
            figures.push(("live_bytes", Some(class), stats.live_bytes));
            figures.push(("live_count", Some(class), stats.live_count));
        }
        for (what, class, said) in figures {
            let expected = sum(what, class);
            if said != expected {
                return Err(format!(
                    "total of {}: expected {expected}, found {said}",
                    label(number, what, class)
                ));
            }
        }
    }
    Ok(())
}

/// Whether the table reports exactly what a killed writer held.
pub fn compare_reclaimed(table: &TableSnapshot, pid: u32, file: &str, held: &State) -> Result<(), String> {
    let reclaimed = table.notices.iter().filter(|notice| notice.kind == notice_kind::RECLAIMED);
    let notice = reclaimed.into_iter().find(|notice| tt_shm_reader::text::decode(&notice.file) == file);
    let notice = notice.ok_or_else(|| format!("pid {pid}: killed, and no notice says what it held"))?;
    for class in Class::ALL {
        let said = (notice.bytes[class as usize], notice.counts[class as usize]);
        let held = held.held(class);
        if said != held {
            let class = class.name();
            return Err(format!(
                "pid {pid}: reclaimed {class}: expected {held:?} (bytes, count), found {said:?}"
            ));
        }
    }
    Ok(())
}
