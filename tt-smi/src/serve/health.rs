//! Whether what is served is to be relied on.

use tt_shm_os::Namespace;
use tt_shm_reader::Table;

use crate::model::{Model, Origin};
use crate::units::{age, plural};

/// Figures of a running aggregator that are older do not describe the present.
const STALE_NS: u64 = 10_000_000_000;

/// What is wrong; empty if nothing is.
pub(super) type Health = Vec<String>;

/// What is wrong with what was read: a monitor that ended or hangs, figures that are old, processes that nobody reads.
pub(super) fn health(model: &Model, namespace: &Namespace) -> Health {
    let table = match model.origin {
        Origin::Table { .. } => None,
        Origin::Embedded => Table::open(namespace).ok().filter(|table| !table.freshness().is_fresh()),
    };
    let gone = table.map(|table| {
        let (pid, freshness) = (table.header().pid, table.freshness());
        let since = match freshness.age_ns {
            u64::MAX => "is from before the last boot".to_owned(),
            ns if freshness.closed => format!("ended {} ago", age(ns)),
            ns => format!("published nothing for {}", age(ns)),
        };
        format!("stale monitor: the aggregator {pid} {since}; start `tt-smi aggregate` again")
    });
    let old = model.age_ns.filter(|age_ns| *age_ns > STALE_NS);
    let old = old.map(|age_ns| format!("stale monitor: the figures are {} old", age(age_ns)));
    let hidden = (model.hidden > 0).then(|| {
        let files = plural(model.hidden, "process");
        format!(
            "{files} may not be read here: run `tt-smi aggregate` as root, whose table everybody may read"
        )
    });
    [gone, old, hidden].into_iter().flatten().collect()
}
