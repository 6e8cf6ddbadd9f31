//! Folding what is the same on several devices, such as those of a mesh, into one line.

use std::collections::BTreeMap;

use crate::model::ranges;
use crate::units::UNKNOWN;

/// What is the same on some devices.
pub(crate) struct Folded<T> {
    /// Their indices, in order; `None` for one that is not known.
    devices: Vec<Option<usize>>,
    pub(crate) value: T,
}

/// Folds equal values into one; by their first devices.
pub(crate) fn fold<T: Clone + Ord>(values: impl IntoIterator<Item = (Option<usize>, T)>) -> Vec<Folded<T>> {
    // A device may have the same twice: then there are several lists of devices.
    let mut lists: BTreeMap<T, Vec<Vec<Option<usize>>>> = BTreeMap::new();
    for (device, value) in values {
        let lists = lists.entry(value).or_default();
        match lists.iter_mut().find(|devices| !devices.contains(&device)) {
            Some(devices) => devices.push(device),
            None => lists.push(vec![device]),
        }
    }
    let folded = |(value, lists): (T, Vec<Vec<Option<usize>>>)| {
        lists.into_iter().map(move |mut devices| {
            devices.sort_unstable();
            Folded { devices, value: value.clone() }
        })
    };
    let mut all: Vec<Folded<T>> = lists.into_iter().flat_map(folded).collect();
    all.sort_by(|one, other| one.devices.cmp(&other.devices));
    all
}

impl<T> Folded<T> {
    /// `3`, `0-7 x8`, `0-2,5 x4`.
    pub(crate) fn devices(&self) -> String {
        let known: Vec<usize> = self.devices.iter().copied().flatten().collect();
        match known.len() == self.devices.len() {
            true => devices_text(known),
            false => devices_with_unknown(&known, self.devices.len()),
        }
    }

    /// How many devices it is the same on.
    pub(crate) fn count(&self) -> usize {
        self.devices.len()
    }
}

/// The devices that something is the same on, and how many if there are several: `3`, `0-7 x8`, `0-2,5 x4`.
pub(crate) fn devices_text(mut devices: Vec<usize>) -> String {
    devices.sort_unstable();
    match devices.len() {
        0 | 1 => ranges(devices),
        count => format!("{} x{count}", ranges(devices)),
    }
}

/// The same where some devices could not be told.
fn devices_with_unknown(known: &[usize], count: usize) -> String {
    let unknown = vec![UNKNOWN; count - known.len()].join(",");
    let text =
        if known.is_empty() { unknown } else { format!("{},{unknown}", ranges(known.iter().copied())) };
    if count == 1 { text } else { format!("{text} x{count}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(values: &[(usize, &str)]) -> Vec<(String, String)> {
        let all = fold(values.iter().map(|(device, value)| (Some(*device), *value)));
        all.iter().map(|folded| (folded.devices(), folded.value.to_owned())).collect()
    }

    #[test]
    fn what_is_the_same_is_told_once() {
        let line = |devices: &str, value: &str| (devices.to_owned(), value.to_owned());
        assert_eq!(folded(&[(0, "a")]), [line("0", "a")]);
        assert_eq!(folded(&[(0, "a"), (1, "a"), (2, "a")]), [line("0-2 x3", "a")]);
        let mixed = folded(&[(5, "a"), (0, "a"), (1, "a"), (2, "b"), (3, "a")]);
        assert_eq!(mixed, [line("0-1,3,5 x4", "a"), line("2", "b")]);
        assert_eq!(folded(&[(0, "a"), (0, "a")]).len(), 2, "a device is not the same as itself");
        assert_eq!(fold([(None, 1)])[0].devices(), "-");
        assert_eq!(fold([(None, 1), (Some(3), 1)])[0].devices(), "3,- x2");
    }
}
