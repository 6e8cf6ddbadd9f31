//! What a device's memory is used for: the names with the most bytes.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use tt_shm_reader::{Class, Memory};

use crate::escape::{Foreign, fit};
use crate::lists::allocations::Listing;
use crate::model::Device;
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::bar::share;
use crate::screen::widgets::text::{draw_lines, split_top};
use crate::units::{bytes, percent};

/// Most names that are kept of a device.
const KEPT: usize = 16;
/// Width of the bar.
const BAR: usize = 16;

/// All allocations of a class with one name, but for numbers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: Option<Foreign>,
    class: Class,
    bytes: u64,
    count: u64,
}

/// Index of the device, class and name.
type Key<'a> = (usize, Class, Option<Cow<'a, str>>);

/// The largest of each device, by its index.
#[derive(Debug, Default)]
pub(super) struct Names {
    devices: HashMap<usize, Vec<Named>>,
}

impl Names {
    /// Adds up a list of what is live. Only what lies in DRAM or L1: a share of anything else would be of nothing.
    pub(super) fn take_in(&mut self, listing: &Listing) {
        let mut sums: HashMap<Key<'_>, (u64, u64)> = HashMap::new();
        let in_memory = |class: Class| matches!(class.memory(), Memory::Dram | Memory::L1);
        for item in listing.items.iter().filter(|item| in_memory(item.class)) {
            let (bytes, count) =
                sums.entry((item.device, item.class, item.name.as_ref().map(starred))).or_default();
            *bytes = bytes.saturating_add(item.size);
            *count += 1;
        }
        self.devices.clear();
        for ((device, class, name), (bytes, count)) in sums {
            let name = name.map(|name| Foreign::from(name.into_owned()));
            let named = Named { name, class, bytes, count };
            self.devices.entry(device).or_default().push(named);
        }
        for names in self.devices.values_mut() {
            names.sort_by_cached_key(|one| {
                let name = one.name.as_ref().map(|name| name.raw().to_owned());
                (Reverse(one.bytes), one.class as u8, name)
            });
            names.truncate(KEPT);
        }
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, device: &Device, theme: &Theme) {
        if area.height < 3 {
            return;
        }
        // A free line separates it.
        let (_, area) = split_top(area, 1);
        let (title, rest) = split_top(area, 1);
        let text = format!(" live on {}, largest names first", device.index);
        frame.render_widget(Line::styled(text, theme.heading()), title);
        match self.devices.get(&device.index) {
            Some(names) => {
                draw_lines(frame, rest, names.iter().map(|one| line(one, device, area.width, theme)))
            }
            None => {
                let text = " nothing, or not read yet";
                frame.render_widget(Line::styled(fit(text, area.width.into()), theme.dim()), rest);
            }
        }
    }
}

/// A name with `*` for each number that is a part of it: what all layers of a network have is one line.
fn starred(name: &Foreign) -> Cow<'_, str> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let raw = name.raw();
    match raw.split('.').any(is_number) {
        false => Cow::Borrowed(raw),
        true => {
            let parts = raw.split('.').map(|part| if is_number(part) { "*" } else { part });
            Cow::Owned(parts.collect::<Vec<_>>().join("."))
        }
    }
}

/// Class, bytes, their share of the memory, and the name.
fn line(one: &Named, device: &Device, width: u16, theme: &Theme) -> Line<'static> {
    let memory = match one.class.memory() {
        Memory::Dram => device.held.dram.used,
        _ => device.held.l1.used,
    };
    let room = usize::from(width).saturating_sub(9 + 11 + BAR + 5 + 10);
    let name = one.name.as_ref().map_or_else(|| "no name".to_owned(), |name| fit(name, room));
    let mut spans = vec![
        Span::styled(format!(" {:<8}", one.class.name()), theme.dim()),
        Span::raw(format!("{:>10} ", bytes(one.bytes))),
    ];
    spans.extend(share(Part::Of(one.class), one.bytes, memory, BAR, theme));
    spans.extend([
        Span::raw(format!(" {:>4}", percent(one.bytes, Some(memory)))),
        Span::styled(format!("{:>7} x ", one.count), theme.dim()),
        Span::raw(name),
    ]);
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::groups::tests::item;

    #[test]
    fn names_are_added_up_by_device_and_class() {
        let named = |device, class, name: &str, size| {
            let mut item = item(Some(name), size, 1);
            (item.device, item.class) = (device, class);
            item
        };
        let items = vec![
            named(0, Class::Dram, "weights", 10),
            named(0, Class::Dram, "weights", 20),
            named(0, Class::L1, "weights", 5),
            named(1, Class::Dram, "weights", 7),
            named(0, Class::SystemMemory, "weights", 99),
        ];
        let mut names = Names::default();
        names.take_in(&Listing { items, ..Listing::default() });
        let seen = |device: usize| -> Vec<(Class, u64, u64)> {
            names.devices[&device].iter().map(|one| (one.class, one.bytes, one.count)).collect()
        };
        assert_eq!(seen(0), [(Class::Dram, 30, 2), (Class::L1, 5, 1)]);
        assert_eq!(seen(1), [(Class::Dram, 7, 1)]);
    }

    #[test]
    fn layers_are_one_line() {
        let starred = |name: &str| starred(&Foreign::from(name)).into_owned();
        assert_eq!(starred("layers.31.feed_forward.w1"), "layers.*.feed_forward.w1");
        assert_eq!(starred("7"), "*");
        assert_eq!(starred("conv2.w1"), "conv2.w1", "a digit in a word is part of the word");
        assert_eq!(starred("a..b."), "a..b.");
    }
}
