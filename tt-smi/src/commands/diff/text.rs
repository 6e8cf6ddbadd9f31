//! A comparison as tables.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::Side;
use super::held::{Change, Changes};
use crate::escape::escape;
use crate::lists::fold::{Folded, fold};
use crate::model::{class_info, rfc3339};
use crate::output::columns::{Align, Columns};
use crate::output::paint::Paint;
use crate::units::{UNKNOWN, bytes};

const HEADS: [(&str, Align); 8] = [
    ("DEV", Align::Left),
    ("CLASS", Align::Left),
    ("NAME", Align::Left),
    ("A", Align::Right),
    ("B", Align::Right),
    ("DIFFERENCE", Align::Right),
    ("COUNT", Align::Right),
    ("IN ALL", Align::Right),
];

pub(super) fn write(
    out: &mut dyn Write,
    paint: Paint,
    sides: [&Side; 2],
    changes: &Changes,
    top: usize,
) -> io::Result<()> {
    for (letter, side) in ["A", "B"].into_iter().zip(sides) {
        let inexact = if side.exact { "" } else { "; not exact: events or rows of that time are missing" };
        let (file, host) = (escape(&side.file), escape(&side.host));
        writeln!(out, "{letter}  {file} on {host} at {}{inexact}", rfc3339(side.time_ns))?;
    }
    if changes.sums.is_empty() && changes.names.is_empty() {
        return writeln!(out, "\nNo difference.");
    }
    let numbers = numbers(changes);
    if numbers.is_none() {
        for (place, (_, chip)) in changes.devices.iter().enumerate() {
            writeln!(out, "device {place} is chip 0x{chip:016x}")?;
        }
    }
    writeln!(out)?;
    let folded = |list| folded(list, numbers.as_deref());
    let sums = folded(&changes.sums);
    table(sums.iter()).write(out, paint)?;
    let mut names = folded(&changes.names);
    names.sort_by_key(|one| Reverse(one.value.bytes().unsigned_abs() * one.count() as u128));
    if names.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    table(names.iter().take(top)).write(out, paint)?;
    match names.len().saturating_sub(top) {
        0 => Ok(()),
        more => writeln!(out, "{more} more; --top {} shows all", names.len()),
    }
}

/// The numbers of the devices as processes have them, if these tell them apart; otherwise they are counted.
fn numbers(changes: &Changes) -> Option<Vec<usize>> {
    let logical = changes.devices.iter().map(|(logical, _)| usize::try_from((*logical)?).ok());
    let logical: Vec<usize> = logical.collect::<Option<_>>()?;
    // Devices are sorted by them.
    logical.windows(2).all(|pair| pair[0] < pair[1]).then_some(logical)
}

fn folded(changes: &[(usize, Change)], numbers: Option<&[usize]>) -> Vec<Folded<Change>> {
    let number = |place: usize| numbers.map_or(place, |numbers| numbers[place]);
    fold(changes.iter().map(|(device, change)| (Some(number(*device)), change.clone())))
}

fn table<'a>(changes: impl Iterator<Item = &'a Folded<Change>>) -> Columns {
    let mut columns = Columns::new(&HEADS);
    for folded in changes {
        let change = &folded.value;
        let name = match change.name.as_deref() {
            None => "(all)".to_owned(),
            Some("") => UNKNOWN.to_owned(),
            Some(name) => escape(name),
        };
        columns.push(vec![
            folded.devices(),
            class_info(change.class).label.to_owned(),
            name,
            bytes(change.before.bytes),
            bytes(change.after.bytes),
            signed(change.bytes()),
            format!("{:+}", change.count()),
            signed(change.bytes() * folded.count() as i128),
        ]);
    }
    columns
}

fn signed(difference: i128) -> String {
    let sign = if difference < 0 { "-" } else { "+" };
    format!("{sign}{}", bytes(u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX)))
}
