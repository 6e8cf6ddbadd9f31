//! How each memory class is called and shown. A class without an entry does not compile.

use ratatui::style::Color;
use tt_shm_reader::Class;

/// How a class is called and shown.
#[derive(Clone, Copy, Debug)]
pub struct ClassInfo {
    /// The class.
    pub class: Class,
    /// Name in tables and views.
    pub label: &'static str,
    /// Heading in tables of processes; `None` leaves it to JSON, CSV and the detailed views.
    pub heading: Option<&'static str>,
    /// Name in the legend of a bar. Classes that share it look the same.
    pub legend: &'static str,
    /// Key of the bytes that are live, without the unit.
    pub key: &'static str,
    /// What the keys of its other figures begin with.
    pub stem: &'static str,
    /// One sentence on what it is.
    pub help: &'static str,
    /// Stands for it where there are no colors.
    pub letter: char,
    /// Its color on dark terminals, in the colors of Okabe and Ito, and on light terminals.
    pub colors: [Color; 3],
}

const KERNELS: (&str, char, [Color; 3]) =
    ("kernels", 'K', [Color::Yellow, Color::Indexed(220), Color::Indexed(136)]);

/// Every class, in the order in which classes are listed.
pub const CLASSES: &[ClassInfo] = &[
    ClassInfo {
        class: Class::Dram,
        label: "DRAM buffers",
        heading: None,
        legend: "dram",
        key: "dram_buffer",
        stem: "dram_buffer",
        help: "Buffers in DRAM; part of the DRAM used.",
        letter: 'D',
        colors: [Color::Blue, Color::Indexed(75), Color::Indexed(25)],
    },
    ClassInfo {
        class: Class::Trace,
        label: "TRACE",
        heading: Some("TRACE"),
        legend: "trace",
        key: "trace_used",
        stem: "trace",
        help: "Trace buffers; part of the DRAM used.",
        letter: 'T',
        colors: [Color::LightGreen, Color::Indexed(214), Color::Indexed(64)],
    },
    ClassInfo {
        class: Class::L1,
        label: "L1 buffers",
        heading: None,
        legend: "l1",
        key: "l1_buffer",
        stem: "l1_buffer",
        help: "Buffers in the L1 of Tensix cores; part of the L1 used.",
        letter: 'L',
        colors: [Color::Cyan, Color::Indexed(32), Color::Indexed(30)],
    },
    ClassInfo {
        class: Class::L1Small,
        label: "L1_SMALL",
        heading: Some("L1_SMALL"),
        legend: "l1_small",
        key: "l1_small_used",
        stem: "l1_small",
        help: "Buffers in the small-buffer region of L1; part of the L1 used.",
        letter: 'S',
        colors: [Color::White, Color::Indexed(250), Color::Indexed(244)],
    },
    ClassInfo {
        class: Class::Cb,
        label: "CBs allocated",
        heading: Some("CB ALLOC"),
        legend: "cb",
        key: "cb_allocated",
        stem: "cb_allocated",
        help: "All circular buffers that are allocated, resident or not.",
        letter: 'C',
        colors: [Color::Magenta, Color::Indexed(175), Color::Indexed(90)],
    },
    ClassInfo {
        class: Class::KernelFabric,
        label: "Fabric",
        heading: None,
        legend: KERNELS.0,
        key: "kernel_fabric",
        stem: "kernel_fabric",
        help: "Loaded fabric kernels.",
        letter: KERNELS.1,
        colors: KERNELS.2,
    },
    ClassInfo {
        class: Class::KernelDispatch,
        label: "Dispatch",
        heading: None,
        legend: KERNELS.0,
        key: "kernel_dispatch",
        stem: "kernel_dispatch",
        help: "Loaded dispatch kernels.",
        letter: KERNELS.1,
        colors: KERNELS.2,
    },
    ClassInfo {
        class: Class::KernelApplication,
        label: "Application",
        heading: None,
        legend: KERNELS.0,
        key: "kernel_application",
        stem: "kernel_application",
        help: "Loaded application kernels, resident or not.",
        letter: KERNELS.1,
        colors: KERNELS.2,
    },
    ClassInfo {
        class: Class::SystemMemory,
        label: "host memory",
        heading: None,
        legend: "host",
        key: "system_memory",
        stem: "system_memory",
        help: "Host memory; no part of any device's memory.",
        letter: 'H',
        colors: [Color::Green, Color::Indexed(36), Color::Indexed(28)],
    },
];

/// The place of each class in [`CLASSES`]; fails to compile if one is missing there.
const PLACES: [usize; Class::COUNT] = {
    let mut places = [usize::MAX; Class::COUNT];
    let mut place = 0;
    while place < CLASSES.len() {
        places[CLASSES[place].class as usize] = place;
        place += 1;
    }
    let mut code = 0;
    while code < places.len() {
        assert!(places[code] != usize::MAX, "a class has no entry in CLASSES");
        code += 1;
    }
    places
};

/// How a class is called and shown.
pub fn class_info(class: Class) -> &'static ClassInfo {
    &CLASSES[PLACES[class as usize]]
}
