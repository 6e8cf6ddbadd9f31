//! What the colours of the map stand for: classes, processes or names.

use std::collections::HashMap;
use std::fmt;

use ratatui::style::{Color, Style};

use crate::escape::{Foreign, escape, fit};
use crate::lists::allocations::{Item, Listing};
use crate::lists::extents::Extent;
use crate::model::Model;
use crate::screen::theme::{Palette, Part, Theme};
use crate::units::UNKNOWN;

/// Groups with a colour of their own; the rest share one.
const MOST: usize = 8;
/// Longest label of a group.
const LABEL: usize = 28;
/// Their colours on dark terminals, in the colours of Okabe and Ito, and on light terminals.
const COLORS: [[u8; MOST]; 3] = [
    [75, 214, 114, 176, 209, 80, 228, 147],
    [74, 214, 36, 227, 26, 166, 175, 252],
    [25, 130, 28, 90, 160, 30, 94, 54],
];

/// What the colours stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tint {
    #[default]
    Class,
    Process,
    Name,
}

impl Tint {
    pub(super) fn next(self) -> Tint {
        match self {
            Tint::Class => Tint::Process,
            Tint::Process => Tint::Name,
            Tint::Name => Tint::Class,
        }
    }
}

impl fmt::Display for Tint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tint::Class => "class",
            Tint::Process => "process",
            Tint::Name => "name",
        })
    }
}

/// The groups of a bank that have a colour, which are the largest, and the group of each extent.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) labels: Vec<String>,
    /// By extent; `labels.len()` and more for all others.
    of: Vec<usize>,
}

impl Groups {
    pub(super) fn new(tint: Tint, extents: &[Extent], listing: &Listing, model: &Model) -> Groups {
        if tint == Tint::Class {
            return Groups::default();
        }
        let mut keys = Keys { tint, patterns: HashMap::new() };
        let mut numbers: HashMap<Key, usize> = HashMap::new();
        let mut groups: Vec<(Key, u64)> = Vec::new();
        let mut of = Vec::with_capacity(extents.len());
        for extent in extents {
            let key = listing.items.get(extent.item).map_or(Key::Process(0, 0), |item| keys.of(item));
            let number = *numbers.entry(key.clone()).or_insert_with(|| {
                groups.push((key, 0));
                groups.len() - 1
            });
            groups[number].1 += extent.end - extent.start;
            of.push(number);
        }
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|number| std::cmp::Reverse(groups[*number].1));
        order.truncate(MOST);
        // Not by bytes: colours would change places with each refresh.
        order.sort_by(|a, b| groups[*a].0.cmp(&groups[*b].0));
        let mut ranks = vec![MOST; groups.len()];
        order.iter().enumerate().for_each(|(rank, number)| ranks[*number] = rank);
        of.iter_mut().for_each(|number| *number = ranks[*number]);
        let labels = order.iter().map(|number| groups[*number].0.label(model)).collect();
        Groups { labels, of }
    }

    /// Sign and style of an extent. Neighbours alternate, so that single buffers are told apart.
    pub(super) fn look(&self, place: usize, item: &Item, theme: &Theme) -> (char, Style) {
        let (sign, style) = match self.of.get(place) {
            None => theme.part(Part::Of(item.class)),
            Some(rank) => sample(*rank, theme),
        };
        (if place.is_multiple_of(2) { sign } else { paler(sign) }, style)
    }

    /// Whether some have no colour of their own.
    pub(super) fn has_others(&self) -> bool {
        self.of.iter().any(|rank| *rank >= self.labels.len())
    }
}

/// Sign and style of a group.
pub(super) fn sample(rank: usize, theme: &Theme) -> (char, Style) {
    let place = match theme.palette {
        Palette::Default => 0,
        Palette::Safe => 1,
        Palette::Light => 2,
        // Letters instead.
        Palette::Mono => return (if rank < MOST { (b'A' + rank as u8) as char } else { 'O' }, Style::new()),
    };
    match COLORS[place].get(rank) {
        Some(color) => ('█', Style::new().fg(Color::Indexed(*color))),
        None => ('█', theme.dim()),
    }
}

fn paler(sign: char) -> char {
    if sign == '█' { '▓' } else { sign.to_ascii_lowercase() }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    /// Pid, and identity of its segment.
    Process(u32, u64),
    Name(Option<Foreign>),
}

impl Key {
    fn label(&self, model: &Model) -> String {
        match self {
            Key::Process(pid, identity) => {
                let process = model.processes.iter().find(|process| process.identity == *identity);
                let name = process.map_or_else(|| UNKNOWN.to_owned(), |process| fit(&process.name, LABEL));
                format!("{name} ({pid})")
            }
            Key::Name(None) => "no name".to_owned(),
            Key::Name(Some(name)) => fit(&escape(name.raw()), LABEL),
        }
    }
}

/// Makes keys. Thousands of buffers share a few names.
struct Keys {
    tint: Tint,
    patterns: HashMap<Foreign, Foreign>,
}

impl Keys {
    fn of(&mut self, item: &Item) -> Key {
        match (self.tint, &item.name) {
            (Tint::Name, None) => Key::Name(None),
            (Tint::Name, Some(name)) => {
                if !self.patterns.contains_key(name) {
                    self.patterns.insert(name.clone(), pattern(name.raw()).into());
                }
                Key::Name(self.patterns.get(name).cloned())
            }
            _ => Key::Process(item.pid, item.identity),
        }
    }
}

/// `layers.*.wq` for `layers.12.wq`: a layer is not worth a colour.
fn pattern(name: &str) -> String {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = name.split('.').map(|part| if is_number(&part) { "*" } else { part }).collect();
    parts.join(".")
}
