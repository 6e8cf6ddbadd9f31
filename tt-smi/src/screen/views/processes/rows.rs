//! Processes as rows: figures are extracted once, for sorting and drawing. As a tree, rows are below their parents.

use std::collections::HashMap;

use tt_shm_reader::Class;

use crate::escape::Foreign;
use crate::model::{Model, Process, Reclaimed};
use crate::screen::page::ProcessKey;
use crate::screen::theme::Part;
use crate::screen::widgets::list::Column;
use crate::screen::widgets::text::or_unknown;
use crate::screen::widgets::trend::used_trend;
use crate::units::{UNKNOWN, age, bytes, bytes_or_unknown, count};

#[derive(Clone, Debug)]
pub(super) struct ProcessRow {
    pub key: ProcessKey,
    /// Whether its pid is only claimed: it is nobody's parent then.
    pub is_claimed: bool,
    pid: String,
    /// The pid of its parent, as seen here.
    pub parent: Option<u32>,
    /// Its depth in the tree.
    pub depth: usize,
    pub state: &'static str,
    pub is_flagged: bool,
    user: Foreign,
    /// The name it reports, then its command line; for an ended process also what it held.
    title: Foreign,
    container: Option<String>,
    devices: Vec<usize>,
    dram: Option<u64>,
    /// DRAM over the last minute.
    trend: String,
    l1: Option<u64>,
    classes: Option<[u64; Class::COUNT]>,
    kernels: Option<u64>,
    peak: Option<u64>,
    rate: Option<f64>,
    age_ns: u64,
}

impl ProcessRow {
    /// `trend` is the DRAM of the last minute, oldest first.
    pub(super) fn new(process: &Process, model: &Model, trend: &[Option<u64>]) -> ProcessRow {
        let command = process.command.as_ref();
        let command = command.map(|command| format!("{}: {}", process.name.raw(), command.raw()));
        let held = held(process, model).map(|held| format!("{} ({held})", process.name.raw()));
        ProcessRow {
            key: process.into(),
            is_claimed: process.is_claimed(),
            pid: process.pid_short(),
            parent: process.parent_pid,
            depth: 0,
            state: process.state_text(),
            is_flagged: process.is_alive() && !process.flags().is_empty(),
            user: process.user.clone().unwrap_or_else(|| process.uid.to_string().into()),
            title: held.or(command).map_or_else(|| process.name.clone(), Foreign::from),
            container: process.container.as_ref().map(|container| {
                let runtime = container.runtime.map_or_else(String::new, |runtime| format!("{runtime}:"));
                format!("{runtime}{}", container.short_id())
            }),
            devices: process.usages.iter().map(|usage| usage.device).collect(),
            dram: process.total(|held| held.dram.used),
            trend: used_trend(&columns_of(trend)),
            l1: process.total(|held| held.l1.used),
            classes: process
                .has_totals()
                .then(|| Class::ALL.map(|class| process.total(|held| held.class(class).used).unwrap_or(0))),
            kernels: process.total(|held| held.kernel_loaded.used),
            peak: process.total(|held| held.dram.peak.range.low),
            rate: process.events_per_second,
            age_ns: process.age_ns,
        }
    }

    #[cfg(test)]
    fn bare(key: ProcessKey, parent: Option<u32>) -> ProcessRow {
        ProcessRow {
            key,
            is_claimed: false,
            pid: "".into(),
            parent,
            depth: 0,
            state: "alive",
            is_flagged: false,
            user: "".into(),
            title: "".into(),
            container: None,
            devices: Vec::new(),
            dram: None,
            trend: String::new(),
            l1: None,
            classes: None,
            kernels: None,
            peak: None,
            rate: None,
            age_ns: 0,
        }
    }

    pub(super) fn number(&self) -> u64 {
        number(self.key)
    }

    fn class(&self, class: Class) -> Option<u64> {
        self.classes.map(|classes| classes[class as usize])
    }

    /// Indented by its depth in the tree.
    fn tree_text(&self) -> String {
        match self.depth {
            0 => self.title.to_string(),
            depth => format!("{}└ {}", "  ".repeat(depth - 1), self.title),
        }
    }
}

/// Identifies a process: pids here and those of containers are kept apart, and so are segments that claim the same pid.
pub(super) fn number(key: ProcessKey) -> u64 {
    let pid = key.pid.map_or(0, |pid| pid + 1);
    (pid << 32 | (key.namespace_pid & u64::from(u32::MAX))) ^ key.identity.rotate_left(32)
}

/// What a process held when it ended: `held 2.0 GiB dram`.
pub(super) fn held(process: &Process, model: &Model) -> Option<String> {
    let is_same = |gone: &&Reclaimed| gone.pid == process.namespace_pid && gone.uid == u64::from(process.uid);
    let gone = model.reclaimed.iter().find(is_same).filter(|_| !process.is_alive())?;
    Some(held_text(gone))
}

/// `held 2.0 GiB dram, 3.0 KiB cb`.
pub(crate) fn held_text(gone: &Reclaimed) -> String {
    let one = |(class, size): &(Class, u64)| format!("{} {}", bytes(*size), class.name());
    match &gone.bytes[..] {
        [] => "held nothing".to_owned(),
        held => format!("held {}", held.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

/// Width of the curve of the last minute.
const TREND: usize = 10;

/// A value for each column of the curve, the last of its time. What is not known yet is at the left: now is at the right.
fn columns_of(samples: &[Option<u64>]) -> Vec<Option<u64>> {
    let each = crate::screen::trends::SAMPLES / TREND;
    let missing = crate::screen::trends::SAMPLES.saturating_sub(samples.len());
    let all: Vec<Option<u64>> = std::iter::repeat_n(None, missing).chain(samples.iter().copied()).collect();
    all.chunks(each).map(|chunk| chunk.iter().rev().flatten().next().copied()).collect()
}

fn milli(rate: Option<f64>) -> Option<u64> {
    rate.map(|rate| (rate * 1000.0) as u64)
}

/// Sorted by DRAM initially.
pub(super) const SORTED_BY: usize = 5;

/// With little room: pid, command, DRAM and state.
pub(super) const COLUMNS: &[Column<ProcessRow>] = &[
    Column::ids("PID", 7, 0, |row| row.pid.clone(), |row| row.key.pid),
    Column::ids(
        "NSPID",
        7,
        13,
        |row: &ProcessRow| row.key.namespace_pid.to_string(),
        |row| Some(row.key.namespace_pid),
    )
    .unless(|row| row.key.pid == Some(row.key.namespace_pid)),
    Column::words("USER", 8, 6, |row| row.user.to_string(), |row| Some(row.user.raw())),
    Column::words("STATE", 7, 4, |row| row.state.to_owned(), |row| Some(row.state)),
    Column::ids(
        "DEV",
        4,
        5,
        |row| crate::model::ranges(row.devices.iter().copied()),
        |row| row.devices.first().map(|device| *device as u64),
    ),
    Column::number("DRAM", 9, 2, |row| bytes_or_unknown(row.dram), |row| row.dram),
    Column::new("1 MIN", TREND as u16, 7, |row: &ProcessRow| row.trend.clone())
        .colored(|_| Part::Of(Class::Dram)),
    Column::number("L1", 9, 3, |row| bytes_or_unknown(row.l1), |row| row.l1),
    Column::number("PEAK", 9, 8, |row| bytes_or_unknown(row.peak), |row| row.peak),
    Column::number(
        "TRACE",
        9,
        14,
        |row| bytes_or_unknown(row.class(Class::Trace)),
        |row| row.class(Class::Trace),
    ),
    Column::number(
        "CB ALLOC",
        9,
        11,
        |row| bytes_or_unknown(row.class(Class::Cb)),
        |row| row.class(Class::Cb),
    ),
    Column::number("KERNELS", 9, 10, |row| bytes_or_unknown(row.kernels), |row| row.kernels),
    Column::number(
        "L1_SMALL",
        9,
        15,
        |row| bytes_or_unknown(row.class(Class::L1Small)),
        |row| row.class(Class::L1Small),
    ),
    Column::number(
        "SYSMEM",
        9,
        17,
        |row: &ProcessRow| bytes_or_unknown(row.class(Class::SystemMemory)),
        |row| row.class(Class::SystemMemory),
    )
    .unless(|row| row.class(Class::SystemMemory) == Some(0)),
    Column::number("EV/S", 5, 7, |row| or_unknown(row.rate, count), |row| milli(row.rate)),
    Column::number("AGE", 6, 9, |row| age(row.age_ns), |row| Some(row.age_ns)),
    Column::words(
        "CONTAINER",
        19,
        16,
        |row: &ProcessRow| row.container.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        |row| row.container.as_deref(),
    )
    .unless(|row| row.container.is_none()),
    Column::words("COMMAND", 0, 1, ProcessRow::tree_text, |row| Some(row.title.raw())),
];

/// Moves rows below their parents if these are listed, and otherwise keeps the order; sets their depth.
pub(super) fn tree(places: &[u32], rows: &[ProcessRow]) -> Vec<(u32, usize)> {
    // A pid that is only claimed makes nobody a parent.
    let pid_of = |place: u32| Some(&rows[place as usize]).filter(|row| !row.is_claimed)?.key.pid;
    let by_pid: HashMap<u64, u32> =
        places.iter().filter_map(|place| Some((pid_of(*place)?, *place))).collect();
    let mut children: HashMap<Option<u32>, Vec<u32>> = HashMap::new();
    for place in places {
        let parent = rows[*place as usize].parent.and_then(|pid| by_pid.get(&u64::from(pid)).copied());
        children.entry(parent.filter(|parent| parent != place)).or_default().push(*place);
    }
    let mut arranged = Vec::with_capacity(places.len());
    // The next row to place is at the end.
    let mut waiting: Vec<(u32, usize)> = Vec::new();
    let queue = |of: Option<u32>, depth, children: &mut HashMap<_, Vec<u32>>, waiting: &mut Vec<_>| {
        let own = children.remove(&of).unwrap_or_default();
        waiting.extend(own.into_iter().rev().map(|place| (place, depth)));
    };
    queue(None, 0, &mut children, &mut waiting);
    while let Some((place, depth)) = waiting.pop() {
        arranged.push((place, depth));
        queue(Some(place), depth + 1, &mut children, &mut waiting);
    }
    // Parents are read one by one: a pid reused meanwhile may make a cycle.
    let mut lost: Vec<u32> = children.into_values().flatten().collect();
    lost.sort_unstable();
    arranged.extend(lost.into_iter().map(|place| (place, 0)));
    arranged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::More;
    use crate::screen::views::fixture;

    #[test]
    fn a_process_that_is_listed_in_part_has_no_figures_of_classes() {
        let mut data = fixture::data(1, 1, More::None);
        assert!(ProcessRow::new(&data.model.processes[0], &data.model, &[]).class(Class::Trace).is_some());
        data.model.processes[0].health.listed_in_part = true;
        let row = ProcessRow::new(&data.model.processes[0], &data.model, &[]);
        assert_eq!((row.dram, row.class(Class::Trace), row.kernels), (None, None, None));
    }

    fn rows(parents: &[(u64, Option<u32>)]) -> Vec<ProcessRow> {
        let key = |pid| ProcessKey { identity: pid, pid: Some(pid), namespace_pid: pid };
        let row = |(pid, parent): &(u64, Option<u32>)| ProcessRow::bare(key(*pid), *parent);
        parents.iter().map(row).collect()
    }

    #[test]
    fn children_follow_their_parents() {
        let rows = rows(&[(10, Some(1)), (30, Some(20)), (20, Some(10)), (21, Some(10)), (5, None)]);
        assert_eq!(tree(&[4, 3, 2, 1, 0], &rows), [(4, 0), (0, 0), (3, 1), (2, 1), (1, 2)]);
    }

    #[test]
    fn a_parent_that_is_not_shown_is_none() {
        let rows = rows(&[(10, Some(1)), (20, Some(10))]);
        assert_eq!(tree(&[1], &rows), [(1, 0)]);
    }

    #[test]
    fn nobody_is_lost_where_parents_go_round() {
        let rows = rows(&[(10, Some(20)), (20, Some(10)), (30, Some(30))]);
        assert_eq!(tree(&[0, 1, 2], &rows), [(2, 0), (0, 0), (1, 0)]);
    }
}
