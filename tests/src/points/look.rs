//! What readers and an aggregator see of a process that was ended somewhere.

use super::oracle::{State, World};
use super::step::FIRST_CHIP;
use crate::monitor::{as_truth, compare};
use crate::script::{DeviceTruth, Truth};
use crate::space::Space;
use shm_layout::{Class, RowKind};
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_reader::{DeviceStats, Namespace, Segment, Table, TableSnapshot, notice_kind};

/// The segment of a process, if it has one. A name that is there and cannot be opened is a failure.
pub fn segment_of(space: &Space, pid: u32) -> Result<Option<Segment>, String> {
    let mark = format!(".{pid}-");
    let path = space.segments().into_iter().find(|path| path.to_string_lossy().contains(&mark));
    path.map(|path| Segment::open(&path).map_err(|error| error.to_string())).transpose()
}

/// What a reader sees in a segment.
pub fn read(segment: Option<&Segment>) -> Result<State, String> {
    let Some(segment) = segment else { return Ok(State::Absent) };
    let snapshot = segment.counters().map_err(|error| error.to_string())?;
    let list = segment.live_list();
    if !list.exact || list.position != snapshot.position {
        return Err(format!("a list at {} beside counters at {}", list.position, snapshot.position));
    }
    let known = DeviceTruth::default();
    let devices = snapshot.counters.iter().map(|counters| as_truth(counters, &known)).collect();
    let allocations = segment.allocations().list;
    let mut live: Vec<_> =
        allocations.iter().map(|a| (a.row.device, a.row.class, a.row.id, a.row.size)).collect();
    let buffers = allocations.iter().filter(|a| a.row.kind() == Some(RowKind::Buffer));
    let labels =
        buffers.filter_map(|a| Some(((a.row.device, a.row.id), a.name.clone()?.to_string()))).collect();
    live.sort_unstable();
    let programs = segment.programs_of(&list.rows);
    let of_program = |program: &tt_shm_reader::Program| {
        let dispatched = program.devices.iter().filter(|on| on.last_dispatch.is_some());
        let id = program.id;
        dispatched.map(|on| ((on.device, id), (on.dispatches, on.cache_hits))).collect::<Vec<_>>()
    };
    Ok(State::Present(World {
        truth: Truth { devices, live },
        programs: programs.iter().flat_map(of_program).collect(),
        chips: segment.devices().iter().map(|entry| (entry.chip_id, entry.dram_bytes)).collect(),
        names: (1..).map_while(|number| segment.name(number)).collect(),
        labels,
        self_checks: segment.self_checks(),
        anomalies: segment.anomalies().iter().sum(),
        unlisted: list.unlisted,
    }))
}

/// An aggregator that begins to follow now. It removes what is dead, as the daemon does.
pub fn aggregator(namespace: &Namespace) -> Aggregator {
    let config = Config { watch: false, ..Config::new(namespace.clone()) };
    Aggregator::new(config).expect("an aggregator can start")
}

/// An aggregator says exactly this of a process that lives.
pub fn check_living(table: &TableSnapshot, pid: u32, state: &State) -> Result<(), String> {
    match state {
        State::Absent => compare(table, &[]),
        State::Present(world) => compare(table, &[(pid, world.truth.clone())]),
    }
}

/// An aggregator counts nothing of a process that is dead, and reports exactly what that held.
pub fn check_dead(table: &TableSnapshot, pid: u32, state: &State) -> Result<(), String> {
    compare(table, &[])?;
    let said = table.notices.iter().find(|n| n.kind == notice_kind::RECLAIMED && n.pid == u64::from(pid));
    let held = match state {
        State::Absent => Truth::default(),
        State::Present(world) => world.truth.clone(),
    };
    let held = |class: Class, what: fn(&DeviceTruth) -> &[u64; Class::COUNT]| -> u64 {
        held.devices.iter().map(|device| what(device)[class as usize]).sum()
    };
    match (said, state) {
        (None, State::Absent) => Ok(()),
        (Some(notice), State::Present(_)) => {
            let wrong = Class::ALL.into_iter().find(|class| {
                notice.bytes[*class as usize] != held(*class, |device| &device.bytes)
                    || notice.counts[*class as usize] != held(*class, |device| &device.counts)
            });
            wrong.map_or(Ok(()), |class| Err(format!("{} of the dead: {notice:?}", class.name())))
        }
        (said, _) => Err(format!("the notice of its end is {said:?}")),
    }
}

/// What the rows of a table may be of.
pub struct Moments<'a> {
    /// The process that is followed, and what tells its segment from others.
    pub pid: u32,
    /// See `pid`.
    pub identity: u64,
    /// Its state; `None` where it is not there.
    pub states: &'a [Option<&'a Truth>],
    /// The positions of its ring at those states.
    pub positions: [u64; 2],
    /// What it went through, which history may have.
    pub passed: &'a [Truth],
}

/// Every row of a table is whole and of one of these moments; if the table says that its rows belong
/// together, all are of the same one.
pub fn check_table(table: &Table, moments: &Moments<'_>) -> Result<(), String> {
    let Moments { pid, identity, states, positions, passed } = *moments;
    let snapshot = table.snapshot();
    if snapshot.consistent {
        let expected = |truth: &Option<&Truth>| truth.map(|truth| (pid, truth.clone()));
        let found = states.iter().map(|truth| compare(&snapshot, expected(truth).as_slice()));
        let wrong: Vec<String> = found.filter_map(Result::err).collect();
        if wrong.len() == states.len() {
            return Err(wrong.join("; or "));
        }
    }
    check_usages(&snapshot, states)?;
    for (row, process) in &snapshot.processes {
        let whole = process.pid == u64::from(pid) && process.identity == identity;
        if !whole || !positions.contains(&process.position) {
            return Err(format!("process row {row} is of no moment: {process:?}"));
        }
    }
    check_devices(&snapshot, states)?;
    check_order(&snapshot, moments)?;
    check_history(table, &snapshot, passed)
}

/// A process's row comes last: where it is of the second moment, everything is.
fn check_order(snapshot: &TableSnapshot, moments: &Moments<'_>) -> Result<(), String> {
    let Moments { states, positions: [before, after], .. } = *moments;
    let [Some(_), Some(second)] = *states else { return Ok(()) };
    let is_there = snapshot.processes.iter().any(|(_, process)| process.position == after);
    if before == after || !is_there {
        return Ok(());
    }
    let ahead = |why: String| format!("a process is ahead: {why}");
    check_usages(snapshot, &[Some(second)]).map_err(ahead)?;
    check_devices(snapshot, &[Some(second)]).map_err(ahead)
}

fn check_usages(snapshot: &TableSnapshot, moments: &[Option<&Truth>]) -> Result<(), String> {
    for (row, usage) in &snapshot.usages {
        let nothing = DeviceTruth::default();
        let (said, number) = (as_truth(&usage.counters, &nothing), usage.logical_id as usize);
        let at = |moment: &Option<&Truth>| match moment {
            Some(truth) => truth.devices.get(number) == Some(&said),
            None => said == nothing,
        };
        if !moments.iter().any(at) {
            return Err(format!("usage row {row} is of no moment: {said:?}"));
        }
    }
    Ok(())
}

fn check_devices(snapshot: &TableSnapshot, moments: &[Option<&Truth>]) -> Result<(), String> {
    for (row, device) in &snapshot.devices {
        let number = number_of(device);
        let at = |moment: &Option<&'_ Truth>| moment.and_then(|truth| truth.devices.get(number).cloned());
        let said = |truth: &DeviceTruth| {
            device.classes.map(|class| class.live_bytes) == truth.bytes
                && (device.dram_used_bytes, device.l1_used_bytes) == (truth.dram_used, truth.l1_used)
        };
        if !moments.iter().any(|moment| said(&at(moment).unwrap_or_default())) {
            return Err(format!("device row {row} is of no moment: {device:?}"));
        }
    }
    Ok(())
}

fn check_history(table: &Table, snapshot: &TableSnapshot, passed: &[Truth]) -> Result<(), String> {
    for (row, device) in &snapshot.devices {
        let number = number_of(device);
        let mut used: Vec<u64> =
            passed.iter().filter_map(|t| Some(t.devices.get(number)?.dram_used)).collect();
        used.push(0);
        for bucket in (0..3).flat_map(|resolution| table.history(*row, resolution)) {
            let known = [bucket.dram_min, bucket.dram_last, bucket.dram_max].iter().all(|b| used.contains(b));
            if !known || bucket.dram_min > bucket.dram_last || bucket.dram_last > bucket.dram_max {
                return Err(format!("history of device row {row} is of no moment: {bucket:?}"));
            }
        }
    }
    Ok(())
}

/// The number that the process has for a device: chips are registered in the order of their ids.
fn number_of(device: &DeviceStats) -> usize {
    device.entry.chip_id.wrapping_sub(FIRST_CHIP) as usize
}
