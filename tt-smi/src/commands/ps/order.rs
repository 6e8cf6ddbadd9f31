//! The order in which processes are listed.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::cli::ProcessSort;
use crate::model::Process;
use crate::procinfo::Cache;

/// Most ancestors to look at; a longer chain is not a real family.
const MAX_GENERATIONS: usize = 64;

/// A process and its depth in the tree.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) process: &'a Process,
    depth: usize,
}

impl Line<'_> {
    /// Indentation of a child's name.
    pub(super) fn indent(&self) -> String {
        match self.depth {
            0 => String::new(),
            depth => format!("{}└ ", "  ".repeat(depth - 1)),
        }
    }
}

/// Sorts; ties go by pid, running processes first. Unknown values come last.
pub(super) fn sort(processes: &mut [&Process], by: ProcessSort) {
    match by {
        ProcessSort::Pid => {}
        ProcessSort::Name => processes.sort_by(|a, b| a.name.cmp(&b.name)),
        ProcessSort::User => processes.sort_by_key(|process| process.owner()),
        ProcessSort::Dram => most_first(processes, |process| process.total(|held| held.dram.used)),
        ProcessSort::L1 => most_first(processes, |process| process.total(|held| held.l1.used)),
        ProcessSort::Peak => most_first(processes, |process| process.total(|held| held.dram.peak.range.low)),
        ProcessSort::Rate => {
            most_first(processes, |process| process.events_per_second.map(|rate| (rate * 1000.0) as u64));
        }
        ProcessSort::Age => most_first(processes, |process| Some(process.age_ns)),
    }
}

fn most_first(processes: &mut [&Process], figure: impl Fn(&Process) -> Option<u64>) {
    processes.sort_by_key(|process| Reverse(figure(process)));
}

/// The flat list.
pub(super) fn flat<'a>(processes: &[&'a Process]) -> Vec<Line<'a>> {
    processes.iter().map(|process| Line { process, depth: 0 }).collect()
}

/// Each process below its nearest listed ancestor, siblings in their given order.
pub(super) fn tree<'a>(processes: &[&'a Process], system: &mut Cache) -> Vec<Line<'a>> {
    let parent = |pid: u32| system.get(pid).and_then(|info| info.parent);
    lines(processes, &parents(processes, parent))
}

/// Index of each one's nearest listed ancestor.
fn parents(processes: &[&Process], mut parent: impl FnMut(u32) -> Option<u32>) -> Vec<Option<usize>> {
    // A pid that is only claimed makes nobody a parent.
    let known = processes.iter().enumerate().filter(|(_, process)| !process.is_claimed());
    let places: HashMap<u64, usize> =
        known.filter_map(|(place, process)| Some((process.pid?, place))).collect();
    let mut nearest = |process: &Process| {
        let mut ancestor = process.info.as_ref()?.parent?;
        for _ in 0..MAX_GENERATIONS {
            if let Some(place) = places.get(&u64::from(ancestor)) {
                return Some(*place);
            }
            ancestor = parent(ancestor)?;
        }
        None
    };
    processes.iter().map(|process| nearest(process)).collect()
}

fn lines<'a>(processes: &[&'a Process], parents: &[Option<usize>]) -> Vec<Line<'a>> {
    let mut lines = Vec::with_capacity(processes.len());
    let children = |of: Option<usize>| (0..processes.len()).rev().filter(move |place| parents[*place] == of);
    let mut open: Vec<(usize, usize)> = children(None).map(|place| (place, 0)).collect();
    while let Some((place, depth)) = open.pop() {
        lines.push(Line { process: processes[place], depth });
        open.extend(children(Some(place)).map(|place| (place, depth + 1)));
    }
    // A pid reused meanwhile can make a cycle; its members are listed nevertheless.
    let shown = |process: &&&Process| !lines.iter().any(|line| std::ptr::eq(line.process, **process));
    let missing: Vec<Line<'a>> =
        processes.iter().filter(shown).map(|process| Line { process, depth: 0 }).collect();
    lines.extend(missing);
    lines
}
