//! Live allocations as rows.

use crate::lists::allocations::Item;
use crate::model::core_type_name;
use crate::output::units::{UNKNOWN, age, bytes};
use crate::screen::widgets::list::{Column, List};
use crate::segments::pid_text;

/// With little room: size, class and name.
const COLUMNS: &[Column<Item>] = &[
    Column::number("SIZE", 10, 0, |item| bytes(item.size), |item| Some(item.size)),
    Column::words("CLASS", 12, 2, |item| item.class.name().to_owned(), |item| Some(item.class.name())),
    Column::ids("DEV", 4, 3, |item| item.device.to_string(), |item| Some(item.device as u64)),
    Column::ids("PID", 7, 4, |item| pid_text(item.pid, item.claimed), |item| Some(item.pid.into())),
    Column::number("AGE", 6, 5, |item| age(item.age_ns), |item| Some(item.age_ns)),
    Column::ids("ADDRESS", 12, 6, |item| hex(item.address), |item| item.address),
    Column::number("CORES", 5, 7, |item| or_unknown(item.cores), |item| item.cores.map(u64::from)),
    Column::new("CORE", 8, 10, |item| item.core_type.map_or(UNKNOWN, core_type_name).to_owned()),
    Column::ids("PROGRAM", 10, 8, |item| hex(item.program), |item| item.program),
    Column::ids("ID", 18, 11, |item| format!("{:#x}", item.id), |item| Some(item.id)),
    Column::words("NAME", 0, 1, label, |item| item.name.as_ref().map(|name| name.raw())),
    Column::words("SITE", 30, 9, site, |item| item.site.as_ref().map(|site| site.raw())),
];

/// Largest first.
pub(crate) fn list() -> List<Item> {
    List::new(COLUMNS, 0, number)
}

fn label(item: &Item) -> String {
    let inside = if item.globally_allocated { " (inside an L1 buffer)" } else { "" };
    match &item.name {
        Some(name) => format!("{name}{inside}"),
        None => format!("{UNKNOWN}{inside}"),
    }
}

fn site(item: &Item) -> String {
    item.site.as_ref().map_or_else(|| UNKNOWN.to_owned(), |site| site.to_string())
}

fn hex(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| format!("{number:#x}"))
}

fn or_unknown(number: Option<u32>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}

/// A key that identifies an allocation. A hash of process, device and id: a collision could only make the selection jump.
fn number(item: &Item) -> u64 {
    let whose = item.identity << 16 | (item.device as u64) << 8 | item.class as u64;
    item.id ^ whose.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
