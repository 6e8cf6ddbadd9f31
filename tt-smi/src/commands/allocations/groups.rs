//! Groups and size histogram of allocations, as tables.

use std::io::{self, Write};

use crate::escape::fit;
use crate::lists::groups::{Group, Key};
use crate::output::columns::{Align, Columns};
use crate::output::paint::Paint;
use crate::output::units::{UNKNOWN, age, bytes, bytes_short, plural};

/// Length of the longest bar.
const BAR: u64 = 30;

/// Writes at most `shown` groups.
pub(super) fn write(out: &mut dyn Write, groups: &[Group], shown: usize, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let heads = [("GROUP", Left), ("COUNT", Right), ("BYTES", Right), ("LARGEST", Right), ("OLDEST", Right)];
    let mut columns = Columns::new(&heads);
    for group in groups.iter().take(shown) {
        columns.push(vec![
            name(&group.key),
            group.count.to_string(),
            bytes(group.bytes),
            bytes(group.largest),
            age(group.oldest_ns),
        ]);
    }
    columns.write(out, paint)?;
    match groups.len().saturating_sub(shown) {
        0 => Ok(()),
        more => {
            let text = format!("... and {}", plural(more as u64, "more group"));
            writeln!(out, "{}", paint.dim(&text))
        }
    }
}

/// Writes the size histogram.
pub(super) fn write_histogram(out: &mut dyn Write, sizes: &[Group], paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let mut columns = Columns::new(&[("SIZE", Left), ("COUNT", Right), ("BYTES", Right), ("", Left)]);
    let most = sizes.iter().map(|size| size.count).max().unwrap_or(1).max(1);
    for size in sizes {
        // A bin that is not empty gets at least one mark.
        let length = (size.count * BAR).div_ceil(most);
        let bar = "#".repeat(length as usize);
        columns.push(vec![name(&size.key), size.count.to_string(), bytes(size.bytes), bar]);
    }
    columns.write(out, paint)
}

fn name(key: &Key) -> String {
    match key {
        Key::Name(name) => name.as_ref().map_or_else(|| UNKNOWN.to_owned(), |name| fit(name, 48)),
        Key::Class(class) => class.name().to_owned(),
        Key::Pid(pid) => format!("pid {pid}"),
        Key::Size(0) => "no size of its own".to_owned(),
        Key::Size(from) => match from.checked_mul(2) {
            Some(to) => format!("{} to {}", bytes_short(*from), bytes_short(to)),
            None => format!("from {}", bytes_short(*from)),
        },
    }
}
