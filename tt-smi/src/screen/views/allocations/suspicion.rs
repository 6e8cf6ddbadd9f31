//! Leak suspects as rows.

use crate::lists::groups::Key;
use crate::lists::suspects::{Place, Suspect};
use crate::output::units::{age, bytes, plural};
use crate::screen::widgets::list::{Column, List};

const COLUMNS: &[Column<Suspect>] = &[
    Column::number(
        "+BYTES",
        10,
        0,
        |suspect| format!("+{}", bytes(suspect.more_bytes)),
        |suspect| Some(suspect.more_bytes),
    ),
    Column::number("+COUNT", 7, 2, |suspect| format!("+{}", suspect.more), |suspect| Some(suspect.more)),
    Column::number("OVER", 9, 4, over, |suspect| Some(suspect.for_ns)),
    Column::number("LIVE", 7, 6, |suspect| suspect.count.to_string(), |suspect| Some(suspect.count)),
    Column::number("BYTES", 10, 7, |suspect| bytes(suspect.bytes), |suspect| Some(suspect.bytes)),
    Column::ids(
        "PID",
        7,
        3,
        |suspect| suspect.origin.pid.to_string(),
        |suspect| Some(suspect.origin.pid.into()),
    ),
    Column::words(
        "CLASS",
        12,
        5,
        |suspect| suspect.origin.class.name().to_owned(),
        |suspect| Some(suspect.origin.class.name()),
    ),
    Column::new("WHAT", 0, 1, what),
];

/// Largest growth first.
pub(super) fn list() -> List<Suspect> {
    List::new(COLUMNS, 0, |suspect| {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        suspect.origin.hash(&mut hasher);
        hasher.finish()
    })
}

/// A duration, or a number of steps.
fn over(suspect: &Suspect) -> String {
    suspect.steps.map_or_else(|| age(suspect.for_ns), |steps| plural(steps, "step"))
}

fn what(suspect: &Suspect) -> String {
    match &suspect.origin.place {
        Place::Site(site) => format!("at {site}"),
        Place::Like(Some(name), size) => format!("{name}, {}", Key::Size(*size)),
        Place::Like(None, size) => format!("no name, {}", Key::Size(*size)),
    }
}
