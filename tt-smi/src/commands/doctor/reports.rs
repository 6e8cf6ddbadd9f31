//! Checks of the files of the namespace: segments and tables, and why some are refused.

use std::collections::BTreeMap;
use std::path::PathBuf;

use shm_layout::{MAJOR, MINOR};
use tt_shm_os::{boot_id, parse_segment_name, table_file_name};
use tt_shm_reader::{OpenError, Segment, Table};

use super::{Finding, Roots};
use crate::stale::{StaleFile, stale_files};
use crate::units::{age, plural};

/// Most files listed one by one, of those left behind and of those refused.
const MAX_TOLD: usize = 8;

/// Reports the namespace.
pub(super) fn namespace(roots: &Roots) -> Finding {
    let name = roots.namespace.as_str();
    match roots.namespace_given {
        true => Finding::pass("namespace", format!("{name}, set by --namespace or TT_SHM_NAMESPACE"))
            .hint("only processes with the same TT_SHM_NAMESPACE are seen"),
        false => Finding::pass("namespace", name),
    }
}

/// Checks every segment of the namespace.
pub(super) fn segments(roots: &Roots) -> Vec<Finding> {
    const CHECK: &str = "segments";
    let listed = stale_files(&roots.shm, Some(&roots.namespace)).and_then(|s| Ok((s, segment_files(roots)?)));
    let (stale, files) = match listed {
        Ok(listed) => listed,
        Err(error) => {
            return vec![Finding::fail(CHECK, format!("cannot list segments: {error}"), "mount /dev/shm")];
        }
    };
    let (mut live, mut hidden) = (0, 0);
    let (mut refused, mut versions): (Vec<OpenError>, BTreeMap<(u32, u32), u64>) = Default::default();
    for file in files.iter().filter(|file| !stale.iter().any(|stale| stale.path == **file)) {
        match Segment::open(file) {
            Ok(segment) => {
                *versions.entry((segment.header().major, segment.header().minor)).or_default() += 1;
                // If the kernel does not say, it counts as alive. One that has ended and is not stale has just ended.
                live += u64::from(segment.is_alive().unwrap_or(true));
            }
            Err(error) if error.is_not_found() => {}
            Err(error) if error.is_permission_denied() => hidden += 1,
            Err(error) => refused.push(error),
        }
    }
    let mut findings = vec![accepted(live)];
    findings.extend(left_behind(&stale));
    findings.extend(not_ours(hidden));
    findings.extend(refusals(&refused));
    findings.push(layouts(&versions));
    findings
}

pub(super) fn segment_files(roots: &Roots) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&roots.shm)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().and_then(parse_segment_name).is_some_and(|name| name.namespace == roots.namespace) {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn accepted(live: u64) -> Finding {
    let found = Finding::pass("segments", format!("{} reporting", plural(live, "process")));
    match live {
        0 => found.hint(
            "a process reports if it links the tt-shm-writer crate and runs with TT_ALLOC_TRACKING_ENABLED=1 (`tt-smi run` sets it)",
        ),
        _ => found,
    }
}

/// What `tt-smi clean` would remove.
fn left_behind(stale: &[StaleFile]) -> Option<Finding> {
    let name = |file: &StaleFile| file.pid().map_or_else(|| file.name.clone(), |pid| format!("pid {pid}"));
    let names: Vec<String> = stale.iter().take(MAX_TOLD).map(name).collect();
    let more = match stale.len().saturating_sub(MAX_TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let files = plural(stale.len() as u64, "file");
    let found = format!("{files} left behind by dead processes: {}{more}", names.join(", "));
    let advice = "`tt-smi clean` removes them; what other users left only root can remove";
    (!stale.is_empty()).then(|| Finding::warn("segments", found, advice))
}

fn not_ours(hidden: u64) -> Option<Finding> {
    let found = format!("{} of other users cannot be read", plural(hidden, "segment"));
    (hidden > 0).then(|| {
        Finding::warn(
            "segments",
            found,
            "their use is missing from all totals; let root run `tt-smi aggregate`",
        )
    })
}

fn refusals(refused: &[OpenError]) -> Vec<Finding> {
    let advice = "remove the file if it is nobody's; a version that differs needs a tt-smi of that version";
    let told = refused.iter().take(MAX_TOLD);
    let mut findings: Vec<Finding> =
        told.map(|error| Finding::warn("segments", format!("refused: {error}"), advice)).collect();
    let untold = refused.len().saturating_sub(MAX_TOLD);
    if untold > 0 {
        findings.push(Finding::warn("segments", format!("refused: {untold} more"), advice));
    }
    findings
}

fn layouts(versions: &BTreeMap<(u32, u32), u64>) -> Finding {
    let own = format!("this tt-smi has {MAJOR}.{MINOR}");
    let others = versions.iter().filter(|((_, minor), _)| *minor != MINOR);
    let others: Vec<String> = others
        .map(|((major, minor), count)| format!("{} {major}.{minor}", plural(*count, "process")))
        .collect();
    match others.is_empty() {
        true => Finding::pass("layout", own),
        // Minor versions only add fields.
        false => Finding::pass("layout", format!("{own}, {}: compatible", others.join(", "))),
    }
}

/// Checks the tables that this user would read.
pub(super) fn aggregator(roots: &Roots) -> Vec<Finding> {
    let mut owners = vec![0, roots.uid];
    owners.dedup();
    let found: Vec<Finding> = owners.into_iter().filter_map(|uid| table(roots, uid)).collect();
    if found.is_empty() {
        let none = Finding::pass("aggregator", "not running: every command aggregates by itself");
        return vec![none.hint("`tt-smi aggregate` records peaks, history and failures in the background")];
    }
    found
}

fn table(roots: &Roots, uid: u32) -> Option<Finding> {
    const CHECK: &str = "aggregator";
    let table = match Table::open_path(&roots.shm.join(table_file_name(&roots.namespace, uid)), uid) {
        Ok(table) => table,
        Err(error) if error.is_not_found() => return None,
        Err(error) => {
            let advice = "remove the file; it is ignored";
            return Some(Finding::fail(CHECK, format!("table refused: {error}"), advice));
        }
    };
    let (header, freshness) = (table.header(), table.freshness());
    let about = format!("pid {}, uid {uid}, layout {}.{}", header.pid, header.major, header.minor);
    if boot_id().is_some_and(|boot| boot != header.boot_id) {
        return Some(Finding::warn(
            CHECK,
            format!("{about}: the table is from before the last boot"),
            "start `tt-smi aggregate`",
        ));
    }
    Some(match freshness.is_fresh() {
        true => Finding::pass(CHECK, format!("running: {about}, updated {} ago", age(freshness.age_ns))),
        false => Finding::warn(
            CHECK,
            format!("ended or stopped: {about}, last updated {} ago", age(freshness.age_ns)),
            "start `tt-smi aggregate` again: it takes over peaks and history",
        ),
    })
}
