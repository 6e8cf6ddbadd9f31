//! One program: its kernels on all of its devices.

use std::collections::HashMap;

use ratatui::Frame;
use ratatui::layout::Position;
use ratatui::text::Line;
use tt_shm_reader::{Kernel, KernelType};

use super::rows::{ProgramRow, number};
use crate::escape::fit;
use crate::lists::fold::devices_text;
use crate::model::Word;
use crate::screen::action::Action;
use crate::screen::data::{Data, More, Needs};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::widgets::list::{Column, Hit, List, RowStyle};
use crate::screen::widgets::process;
use crate::screen::widgets::text::{draw_lines, hex, or_unknown, split_top};
use crate::units::{UNKNOWN, bytes, plural};

/// A kernel, on the devices where it is the same.
#[derive(Clone, Debug)]
struct Loaded {
    /// `None` is a device that is not listed.
    devices: Vec<Option<usize>>,
    kernel: Kernel,
}

const COLUMNS: &[Column<Loaded>] = &[
    Column::ids("DEV", 8, 3, device_text, |loaded| loaded.devices[0].map(|device| device as u64)),
    Column::words("TYPE", 11, 0, |loaded| label(loaded).unwrap_or(UNKNOWN).to_owned(), label),
    Column::words(
        "CORE",
        8,
        4,
        |loaded| loaded.kernel.core_type.word().to_owned(),
        |loaded| Some(loaded.kernel.core_type.word()),
    ),
    Column::number(
        "BINARY",
        10,
        2,
        |loaded| or_unknown(loaded.kernel.binary_bytes(), bytes),
        |loaded| loaded.kernel.binary_bytes(),
    ),
    Column::number("CORES", 5, 5, |loaded| or_unknown(cores(loaded), |n| n.to_string()), cores),
    Column::number(
        "ALL CORES",
        10,
        1,
        |loaded| bytes(loaded.kernel.bytes),
        |loaded| Some(loaded.kernel.bytes),
    ),
    Column::ids("HASH", 18, 6, |loaded| or_unknown(loaded.kernel.hash, hex), |loaded| loaded.kernel.hash),
    Column::ids("ID", 18, 8, |loaded| hex(loaded.kernel.id), |loaded| Some(loaded.kernel.id)),
    Column::new("LATE", 4, 7, |loaded| if loaded.kernel.late { "late" } else { "" }.to_owned()),
];

impl Loaded {
    /// Its key: a kernel has the same id on all devices.
    fn number(&self) -> u64 {
        self.kernel.id ^ (self.devices[0].unwrap_or(usize::MAX) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

fn label(loaded: &Loaded) -> Option<&str> {
    loaded.kernel.kernel_type.map(KernelType::label)
}

fn device_text(loaded: &Loaded) -> String {
    devices_text(loaded.devices.iter().copied().flatten().collect())
}

fn cores(loaded: &Loaded) -> Option<u64> {
    Some(u64::from(loaded.kernel.cores)).filter(|cores| *cores > 0)
}

#[derive(Debug)]
pub(crate) struct Kernels {
    row: ProgramRow,
    is_gone: bool,
    /// Whether a kernel that is the same on several devices is one line.
    is_folded: bool,
    loaded: Vec<Loaded>,
    list: List<Loaded>,
}

impl Kernels {
    pub(super) fn new(row: &ProgramRow) -> Kernels {
        let list = List::new(COLUMNS, 0, Loaded::number);
        let row = ProgramRow::whole(&row.listing, row.place);
        let mut kernels = Kernels { row, is_gone: false, is_folded: true, loaded: Vec::new(), list };
        kernels.take_row();
        kernels
    }

    fn take_row(&mut self) {
        let row = self.row.clone();
        let entry = row.entry();
        self.loaded = Vec::new();
        // By id: a kernel has the same one on all devices.
        let mut known: HashMap<u64, Vec<usize>> = HashMap::new();
        for (device, index) in entry.program.devices.iter().zip(&entry.indices) {
            for kernel in &device.kernels {
                let places = known.entry(kernel.id).or_default();
                let last = places.last().map(|place| &mut self.loaded[*place]);
                match last
                    .filter(|last| self.is_folded && last.kernel == *kernel && !last.devices.contains(index))
                {
                    Some(last) => last.devices.push(*index),
                    None => {
                        places.push(self.loaded.len());
                        self.loaded.push(Loaded { devices: vec![*index], kernel: kernel.clone() });
                    }
                }
            }
        }
        self.list.arrange(&self.loaded, |_| true);
    }

    fn head(&self) -> [String; 2] {
        let (entry, program) = (self.row.entry(), &self.row.entry().program);
        let gone = if self.is_gone { "  (no longer loaded)" } else { "" };
        let devices = devices_text(entry.devices.clone());
        let kernels: usize = self.loaded.iter().map(|loaded| loaded.devices.len()).sum();
        [
            format!(" program {:#x} of pid {}  {}{gone}", program.id, entry.pid, self.row.name()),
            format!(
                " on device {devices}, in all: {}, {}; {}, {} CB alloc",
                plural(kernels as u64, "kernel"),
                bytes(program.kernel_bytes),
                plural(program.cb_count, "circular buffer"),
                bytes(program.cb_bytes),
            ),
        ]
    }
}

impl Page for Kernels {
    fn needs(&self) -> Needs {
        Needs::Programs
    }

    /// The current state of the program; one that is gone stays as it was.
    fn refresh(&mut self, data: &Data) {
        let More::Programs(listing) = &data.more else { return };
        let wanted = number(self.row.entry());
        let found = listing.entries.iter().position(|entry| number(entry) == wanted);
        self.is_gone = found.is_none();
        if let Some(place) = found {
            self.row = ProgramRow::whole(listing, place);
            self.take_row();
        }
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let (_, area) = split_top(scene.area, 2);
        match action {
            Action::Move(motion) => self.list.go(motion, &self.loaded, area),
            Action::Reverse => {
                self.list.reverse();
                self.list.arrange(&self.loaded, |_| true);
            }
            Action::Fold => {
                self.is_folded = !self.is_folded;
                self.take_row();
            }
            Action::Open => {
                let holder = process::key_of(&scene.data.model, self.row.entry().identity);
                let gone = || Reply::Say("its process is not listed any more".to_owned());
                return holder.map_or_else(gone, Reply::Process);
            }
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let (_, area) = split_top(scene.area, 2);
        match self.list.click(at, &self.loaded, area) {
            Hit::Nothing => return Reply::Ignored,
            Hit::Heading => self.list.arrange(&self.loaded, |_| true),
            Hit::Row { .. } => {}
        }
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (head, area) = split_top(scene.area, 2);
        let width = usize::from(head.width);
        draw_lines(
            frame,
            head,
            self.head().map(|line| Line::styled(fit(&line, width), scene.theme.heading())),
        );
        self.list.draw(frame, area, &self.loaded, scene.theme, |_| RowStyle::default());
    }

    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        self.list.sorts()
    }

    fn sort_by(&mut self, choice: usize, _data: &Data) {
        self.list.sort_by(choice);
        self.list.arrange(&self.loaded, |_| true);
    }

    fn summary(&self) -> Option<String> {
        Some("Esc all programs, Enter its process".to_owned())
    }
}
