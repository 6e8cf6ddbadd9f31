//! The reader process of a soak: looks at everything all the time, and complains if what it reads contradicts
//! itself. What it reads may change at any moment, so it knows no truth.

use anyhow::{Result, ensure};
use shm_layout::Class;
use std::time::Duration;
use tt_shm_reader::{Namespace, Segment, Table, TableSnapshot, segment_paths};

/// Reads until it is killed.
pub fn main() -> Result<()> {
    tt_shm_os::guard_truncation()?;
    let namespace = Namespace::from_env()?;
    loop {
        for path in segment_paths(&namespace)? {
            // Gone meanwhile, most often.
            if let Ok(segment) = Segment::open(&path) {
                check_segment(&segment)?;
            }
        }
        if let Ok(table) = Table::open(&namespace) {
            check_table(&table.snapshot())?;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where the counters and the list are of one position, they are of one state.
fn check_segment(segment: &Segment) -> Result<()> {
    let (Ok(counted), list) = (segment.counters(), segment.allocations()) else { return Ok(()) };
    if !list.exact || list.unlisted > 0 || list.position != counted.position {
        return Ok(());
    }
    let mut sums = vec![[(0, 0); Class::COUNT]; counted.counters.len()];
    for row in list.list.iter().map(|allocation| &allocation.row) {
        let (bytes, count) = &mut sums[usize::from(row.device)][usize::from(row.class)];
        *bytes += row.size;
        *count += 1;
    }
    for (device, (counters, sums)) in counted.counters.iter().zip(sums).enumerate() {
        for (class, (counted, sum)) in Class::ALL.into_iter().zip(counters.classes.iter().zip(sums)) {
            let counted = (counted.live_bytes, counted.live_count);
            let (pid, class) = (segment.pid(), class.name());
            ensure!(counted == sum, "pid {pid} device {device} {class}: counted {counted:?}, listed {sum:?}");
        }
    }
    Ok(())
}

/// Rows of one batch add up.
fn check_table(table: &TableSnapshot) -> Result<()> {
    if !table.consistent {
        return Ok(());
    }
    for (row, device) in &table.devices {
        let usages = || table.usages.iter().filter(|(_, usage)| usage.device == *row as u64);
        for class in Class::ALL {
            let sum: u64 = usages().map(|(_, usage)| usage.counters.classes[class as usize].live_bytes).sum();
            let said = device.classes[class as usize].live_bytes;
            ensure!(sum == said, "device row {row} {}: {said} bytes, {sum} by processes", class.name());
        }
    }
    Ok(())
}
