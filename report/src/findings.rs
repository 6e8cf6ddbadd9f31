//! What is wrong, as sentences: the worst first.

use shm_layout::Class;

use crate::document::{Device, Document, Finding};
use crate::figure::{self, POOLED};
use crate::units::{bytes, plural};

/// The most sentences of one kind.
const MOST: usize = 6;
/// The number of rises without a fall from which on a group is suspected to leak.
const RISES: u64 = 5;

fn finding(level: &'static str, section: &'static str, text: String) -> Finding {
    Finding { level, text, ns: None, device: None, section }
}

/// Everything that is wrong in a record.
pub(crate) fn of(document: &Document) -> Vec<Finding> {
    let mut list = limited(failures(document));
    list.extend(limited(deaths(document)));
    list.extend(document.devices.iter().enumerate().flat_map(|(place, device)| capacity(place, device)));
    list.extend(limited(leaks(document)));
    list.extend(doubts(document));
    list
}

/// The first sentences of one kind, and how many more there would be.
fn limited(mut list: Vec<Finding>) -> Vec<Finding> {
    let rest = list.len().saturating_sub(MOST);
    if rest > 0 {
        let Finding { level, section, .. } = list[MOST];
        list.truncate(MOST);
        list.push(finding(level, section, format!("{rest} more of this kind.")));
    }
    list
}

fn process(document: &Document, place: usize) -> String {
    document
        .processes
        .get(place)
        .map_or("?".to_owned(), |process| format!("{} (pid {})", process.name, process.pid))
}

/// Failures that are alike: by device, process, class and reason.
type Alike<'a> = ((usize, usize, &'a str, &'a str), Vec<&'a crate::document::Failure>);

fn failures(document: &Document) -> Vec<Finding> {
    let mut groups: Vec<Alike<'_>> = Vec::new();
    for failure in &document.failures {
        let key = (failure.device, failure.process, failure.class, failure.why);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, list)) => list.push(failure),
            None => groups.push((key, vec![failure])),
        }
    }
    let sentence = |((device, of, class, why), list): &Alike<'_>| {
        let first = list[0];
        let size = first.size.map_or("-".to_owned(), bytes);
        let count = if list.len() > 1 { format!(", and {} more", list.len() - 1) } else { String::new() };
        let because = match *why {
            "unknown" => String::new(),
            why => format!(": {why}"),
        };
        let on = &document.devices[*device].label;
        let text = format!(
            "{class} allocation of {size} failed on device {on}, {}{because}{count}.",
            process(document, *of)
        );
        Finding { ns: Some(first.ns), device: Some(*device), ..finding("bad", "failures", text) }
    };
    groups.iter().map(sentence).collect()
}

/// Processes that died, and what they held.
fn deaths(document: &Document) -> Vec<Finding> {
    let died =
        document.processes.iter().enumerate().filter(|(_, one)| one.how == "died" || one.how == "lost");
    let sentence = |(place, one): (usize, &crate::document::Process)| {
        let held = |memory: usize| -> u64 {
            let usages = document.devices.iter().flat_map(|device| &device.usages);
            usages.filter(|usage| usage.process == place).map(|usage| usage.last[memory]).sum()
        };
        let what =
            if one.how == "died" { "died without closing its segment" } else { "could not be read any more" };
        let text = format!(
            "{} {what}; it held {} of DRAM and {} of L1 on each device that is shown.",
            process(document, place),
            bytes(held(0)),
            bytes(held(1))
        );
        Finding { ns: one.until, ..finding("bad", "processes", text) }
    };
    died.map(sentence).collect()
}

/// Pools that were more than full, judged on buffers alone, and memory that was nearly full.
fn capacity(place: usize, device: &Device) -> Vec<Finding> {
    let (mut list, label) = (Vec::new(), &device.label);
    let at =
        |ns: u64, level, text| Finding { ns: Some(ns), device: Some(place), ..finding(level, "peaks", text) };
    for ((figure, _), pool) in POOLED.into_iter().zip(device.pools) {
        let (peak, _, ns) = device.peaks[figure];
        if let Some(pool) = pool.filter(|pool| peak > *pool) {
            let (name, peak, pool) = (figure::TITLES[figure].1, bytes(peak), bytes(pool));
            let text = format!("Over capacity: {name} of device {label} held {peak}; the pool has {pool}.");
            list.push(at(ns, "bad", text));
        }
    }
    for (memory, total) in device.totals.into_iter().enumerate() {
        let (peak, _, ns) = device.peaks[memory];
        let Some(total) = total.filter(|total| *total > 0 && peak as f64 >= 0.9 * *total as f64) else {
            continue;
        };
        let (name, share) = (figure::TITLES[memory].1, 100.0 * peak as f64 / total as f64);
        let text =
            format!("{name} of device {label} was {share:.0} % full: {} of {}.", bytes(peak), bytes(total));
        list.push(at(ns, "warn", text));
    }
    list
}

fn leaks(document: &Document) -> Vec<Finding> {
    let rising = document.left.iter().filter(|row| row[9] == 0 && row[10] >= RISES);
    let sentence = |row: &[u64; 11]| {
        let [device, of, class, name, held, _, count, new, ..] = *row;
        let text = format!(
            "{} of {}: {} ({}) live at the end, {new} of them new, and never fewer than before: a leak, or a cache that fills.",
            quoted(document, name),
            process(document, of as usize),
            plural(count, "allocation", "allocations"),
            bytes(held),
        );
        let class = Class::from_code(class as u8).map_or("", Class::name);
        Finding { device: Some(device as usize), ..finding("warn", "left", format!("{class} {text}")) }
    };
    rising.map(sentence).collect()
}

fn quoted(document: &Document, name: u64) -> String {
    match document.texts.get(name as u32) {
        "" => "without a name".to_owned(),
        name => format!("“{name}”"),
    }
}

/// Why figures are not exact.
fn doubts(document: &Document) -> Vec<Finding> {
    let mut list = Vec::new();
    if document.lost > 0 {
        let (events, gaps) =
            (plural(document.lost, "event is", "events are"), plural(document.gap_count, "gap", "gaps"));
        list.push(finding(
            "warn",
            "exactness",
            format!("{events} missing, in {gaps}: figures there are lower bounds."),
        ));
    }
    if !document.is_finished {
        let text =
            "The recorder did not end in order: what is after the last complete moment is a lower bound.";
        list.push(Finding {
            ns: Some(document.complete_ns),
            ..finding("warn", "exactness", text.to_owned())
        });
    }
    if document.refused > 0 {
        let text = format!(
            "{} cannot have happened: that process is not followed after it.",
            plural(document.refused, "event", "events")
        );
        list.push(finding("warn", "exactness", text));
    }
    let mut doubted = Vec::new();
    for one in document.processes.iter().filter(|one| one.is_partial || one.differences > 0) {
        let why = match one.is_partial {
            true => "holds memory that it cannot report".to_owned(),
            false => format!("differed from its allocator {}", plural(one.differences, "time", "times")),
        };
        doubted.push(finding(
            "warn",
            "exactness",
            format!("{} (pid {}) {why}: its figures are lower bounds.", one.name, one.pid),
        ));
    }
    list.extend(limited(doubted));
    list
}

#[cfg(test)]
mod tests {
    use super::{MOST, finding, limited};

    #[test]
    fn what_is_not_told_is_counted() {
        let many =
            |count: usize| (0..count).map(|_| finding("bad", "failures", "failed".to_owned())).collect();
        assert_eq!(limited(many(MOST)).len(), MOST);
        let list = limited(many(MOST + 3));
        assert_eq!((list.len(), list[MOST].text.as_str()), (MOST + 1, "3 more of this kind."));
    }
}
