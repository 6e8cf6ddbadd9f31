//! The fields that records have.

use std::fmt;

use crate::model::{COLUMNS, Unit};

/// Something that a record may know of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Memory class.
    Class,
    /// Bytes.
    Size,
    /// Process, as it is called here.
    Pid,
    /// What the process calls it.
    Name,
    /// Index of the device, or of one of them.
    Device,
    /// How long it exists; of an event, how long ago it was.
    Age,
    /// Where it lies.
    Address,
    /// Program that it belongs to.
    Program,
    /// Number that the process gave it.
    Id,
    /// Number of cores.
    Cores,
    /// Kind of cores.
    Core,
    /// Where in the code it was made.
    Site,
    /// Owner.
    User,
    /// Command line.
    Command,
    /// Kind of event.
    Kind,
    /// Whether a process runs.
    State,
    /// Container of a process.
    Container,
    /// Dispatches.
    Dispatches,
    /// Dispatches with a cached binary.
    Hits,
    /// Dispatches without.
    Misses,
    /// How long ago it was dispatched last.
    Last,
    /// DRAM used.
    Dram,
    /// L1 used.
    L1,
    /// The most DRAM that was used.
    Peak,
    /// Events per second.
    Rate,
    /// A figure: the place of its column in [`COLUMNS`].
    Figure(usize),
}

/// How the values of a field are written and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// Bytes, with a unit.
    Size,
    /// Nanoseconds, with a unit.
    Time,
    /// Any other number.
    Count,
    /// A memory class.
    Class,
    /// One of a few words, in upper or lower case.
    Word(&'static [&'static str]),
    /// Any text; `=` minds upper and lower case.
    Text,
}

const CORES: &[&str] = &["tensix", "ethernet"];
const STATES: &[&str] = &["alive", "stopped", "zombie", "ended"];
/// Labels of events, as JSON has them.
const KINDS: &[&str] = &[
    "alloc",
    "free",
    "cb_alloc",
    "cb_free",
    "kernel_load",
    "kernel_unload",
    "kernel_dispatch",
    "alloc_failed",
    "marker",
    "peak_reset",
    "device_open",
    "device_close",
    "gauge",
    "program_end",
    "name",
];

impl Field {
    /// Every field but the figures.
    pub const ALL: [Field; 25] = {
        use Field::*;
        [
            Class, Size, Pid, Name, Device, Age, Address, Program, Id, Cores, Core, Site, User, Command,
            Kind, State, Container, Dispatches, Hits, Misses, Last, Dram, L1, Peak, Rate,
        ]
    };

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Field::Class => "class",
            Field::Size => "size",
            Field::Pid => "pid",
            Field::Name => "name",
            Field::Device => "device",
            Field::Age => "age",
            Field::Address => "address",
            Field::Program => "program",
            Field::Id => "id",
            Field::Cores => "cores",
            Field::Core => "core",
            Field::Site => "site",
            Field::User => "user",
            Field::Command => "command",
            Field::Kind => "kind",
            Field::State => "state",
            Field::Container => "container",
            Field::Dispatches => "dispatches",
            Field::Hits => "hits",
            Field::Misses => "misses",
            Field::Last => "last",
            Field::Dram => "dram",
            Field::L1 => "l1",
            Field::Peak => "peak",
            Field::Rate => "rate",
            Field::Figure(place) => {
                let sum = COLUMNS.get(place).and_then(|column| column.sum.as_deref()).unwrap_or_default();
                sum.trim_end_matches("_bytes")
            }
        }
    }

    /// The field with this name, in upper or lower case.
    pub fn from_name(name: &str) -> Option<Field> {
        let fields = Field::ALL.into_iter().chain(Field::figures());
        fields.into_iter().find(|field| field.name().eq_ignore_ascii_case(name))
    }

    /// The figures of devices and processes that are not among [`Field::ALL`] by the same name.
    pub fn figures() -> impl Iterator<Item = Field> {
        let summed = COLUMNS.iter().enumerate().filter(|(_, column)| column.sum.is_some());
        let figures = summed.map(|(place, _)| Field::Figure(place));
        figures.filter(|field| Field::ALL.iter().all(|other| other.name() != field.name()))
    }

    pub(super) fn nature(self) -> Nature {
        use Field::*;
        match self {
            Class => Nature::Class,
            Size | Dram | L1 | Peak => Nature::Size,
            Age | Last => Nature::Time,
            Pid | Device | Address | Program | Id | Cores | Dispatches | Hits | Misses | Rate => {
                Nature::Count
            }
            Figure(place) => match COLUMNS.get(place).map(|column| column.unit) {
                Some(Unit::Bytes) => Nature::Size,
                _ => Nature::Count,
            },
            Core => Nature::Word(CORES),
            State => Nature::Word(STATES),
            Kind => Nature::Word(KINDS),
            Name | Site | User | Command | Container => Nature::Text,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `class, size, pid`.
pub(super) fn list(fields: &[Field]) -> String {
    let is_figure = |field: &&Field| matches!(field, Field::Figure(_));
    let names = fields.iter().filter(|field| !is_figure(field)).map(|field| field.name());
    // There are too many of them to list.
    let figures = fields
        .iter()
        .any(|field| is_figure(&field))
        .then_some("and the sums of `ps --json`, such as cb_resident");
    names.chain(figures).collect::<Vec<_>>().join(", ")
}

/// What to do about a field that there is not among these.
pub(super) fn help(name: &str, fields: &[Field]) -> String {
    match fields.iter().find(|field| is_near(&name.to_ascii_lowercase(), field.name())) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the fields are {}", list(fields)),
    }
}

/// Whether one is the other's beginning, or one character makes the difference.
fn is_near(typed: &str, name: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (typed.chars().collect(), name.chars().collect());
    let same_start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[same_start..], &b[same_start..]);
    let same_end = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let differ = rest_a.len().max(rest_b.len()) - same_end;
    let is_start = same_start >= 3 && (rest_a.is_empty() || rest_b.is_empty());
    a.len() > 2 && (differ <= 1 || is_start)
}
