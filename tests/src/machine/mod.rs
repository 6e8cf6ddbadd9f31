//! Made-up machines with Tenstorrent boards: trees of files as sysfs and procfs have them.
//!
//! Names, forms and links are those of tt-kmd; what each version and board publishes is in `board.rs`. There is no
//! `/dev`: nothing that reads such a tree has anything to open. No ordinary file gives ENODATA or ENODEV, so these
//! come from [`FaultyFiles`], which a monitor reads through.

mod board;
mod faults;
mod process;

pub use board::{Board, Kmd};
pub use faults::FaultyFiles;
pub use process::FakeProcess;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tt_shm_driver::Roots;

use board::Published;

/// A machine. Removed when dropped.
pub struct Machine {
    folder: tempfile::TempDir,
    root: PathBuf,
    kmd: Kmd,
    /// PCI functions that were ever attached.
    functions: u32,
    /// Sensors that were ever attached; the processor has the first.
    sensors: u32,
    chips: Vec<Chip>,
}

/// A device of the driver.
#[derive(Clone, Debug)]
struct Chip {
    number: u32,
    published: Published,
    /// Folder of its PCI function.
    pci: PathBuf,
    hwmon: u32,
}

impl Machine {
    /// A machine with these boards and this version of the driver.
    pub fn new(kmd: Kmd, boards: &[Board]) -> Machine {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = fs::canonicalize(folder.path()).expect("it exists");
        let mut machine = Machine { folder, root, kmd, functions: 0, sensors: 1, chips: Vec::new() };
        machine.write("sys/module/tenstorrent/version", kmd.version());
        machine.make_folder("sys/class/tenstorrent");
        machine.write("sys/devices/platform/coretemp.0/hwmon/hwmon0/name", "coretemp");
        machine.write("sys/devices/platform/coretemp.0/hwmon/hwmon0/temp1_input", "99000");
        machine.write("proc/stat", "cpu  1 2 3 4\nintr 5 6\nbtime 1700000000\nprocesses 9");
        for board in boards {
            machine.attach(*board);
        }
        machine
    }

    /// Its sysfs and procfs.
    pub fn roots(&self) -> Roots {
        Roots::below(&self.root)
    }

    /// The folder that has `sys` and `proc`.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Numbers of its devices.
    pub fn numbers(&self) -> Vec<u32> {
        self.chips.iter().map(|chip| chip.number).collect()
    }

    /// Attaches a board: each chip with a PCIe link gets the lowest free number.
    pub fn attach(&mut self, board: Board) {
        for published in board.chips(self.functions, self.kmd) {
            let number = (0..).find(|number| !self.numbers().contains(number)).expect("a free number");
            self.attach_at(number, published);
        }
    }

    /// Detaches a device.
    pub fn detach(&mut self, number: u32) -> Detached {
        let chip = self.chip(number).clone();
        self.chips.retain(|chip| chip.number != number);
        let (address, bus) = (chip.address(), self.root.join("sys/bus/pci/devices"));
        fs::remove_file(self.class_link(number)).expect("it was linked");
        fs::remove_file(bus.join(address)).expect("it was linked");
        fs::remove_file(self.hwmon_link(chip.hwmon)).expect("it was linked");
        fs::remove_dir_all(&chip.pci).expect("it was there");
        let _ = fs::remove_dir_all(self.root.join(format!("proc/driver/tenstorrent/{number}")));
        Detached(chip.published)
    }

    /// Attaches a device again, with another number and at another PCI address, as after a reset of the bus.
    pub fn attach_again(&mut self, device: Detached, number: u32) {
        self.attach_at(number, device.0);
    }

    /// Gives the sensors of a device another number, as when the driver is loaded again.
    pub fn renumber_sensors(&mut self, number: u32) {
        let chip = self.chip(number).clone();
        let (before, next) = (chip.hwmon_folder(), self.sensors);
        fs::remove_file(self.hwmon_link(chip.hwmon)).expect("it was linked");
        self.sensors += 1;
        let chip = self.chips.iter_mut().find(|chip| chip.number == number).expect("it is there");
        chip.hwmon = next;
        let after = chip.hwmon_folder();
        fs::rename(before, &after).expect("the sensors are there");
        self.link_to(&self.hwmon_link(next), &after);
    }

    /// Path of an attribute of a device: `tt_*` of the driver, `temp1_input` and so on of the sensors, any other of the
    /// PCI function.
    pub fn attribute(&self, number: u32, name: &str) -> PathBuf {
        let chip = self.chip(number);
        let is_sensor =
            ["temp1_", "in0_", "curr1_", "power1_", "fan1_"].iter().any(|stem| name.starts_with(stem));
        match name {
            name if name.starts_with("tt_") => chip.class_folder().join(name),
            name if is_sensor => chip.hwmon_folder().join(name),
            name => chip.pci.join(name),
        }
    }

    /// Changes an attribute, or adds it.
    pub fn set(&self, number: u32, name: &str, text: &str) {
        fs::write(self.attribute(number, name), format!("{text}\n")).expect("a tree that can be written");
    }

    /// Removes an attribute.
    pub fn remove(&self, number: u32, name: &str) {
        fs::remove_file(self.attribute(number, name)).expect("it is there");
    }

    /// Removes all sensors of a device, as firmware without telemetry has none.
    pub fn remove_sensors(&self, number: u32) {
        fs::remove_dir_all(self.chip(number).pci.join("hwmon")).expect("they are there");
    }

    /// What the driver lists as holders of a device: one pid per open descriptor.
    pub fn list_pids(&self, number: u32, pids: &[u32]) {
        let lines: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
        fs::write(self.root.join(format!("proc/driver/tenstorrent/{number}/pids")), lines)
            .expect("kmd has lists");
    }

    /// Adds a process, which holds these devices by a descriptor each.
    pub fn add_process(&self, process: &FakeProcess, holds: &[u32]) {
        process.write(&self.root.join("proc"), holds);
    }

    /// Writes a file of the tree, with a line break at its end.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("it is in the tree")).expect("a tree that can be written");
        fs::write(path, format!("{text}\n")).expect("a tree that can be written");
    }

    fn make_folder(&self, path: &str) {
        fs::create_dir_all(self.root.join(path)).expect("a tree that can be written");
    }

    #[track_caller]
    fn chip(&self, number: u32) -> &Chip {
        self.chips.iter().find(|chip| chip.number == number).expect("no such device")
    }

    fn class_link(&self, number: u32) -> PathBuf {
        self.root.join(format!("sys/class/tenstorrent/tenstorrent!{number}"))
    }

    fn hwmon_link(&self, number: u32) -> PathBuf {
        self.root.join(format!("sys/class/hwmon/hwmon{number}"))
    }

    fn attach_at(&mut self, number: u32, published: Published) {
        let (bus, slot) = (self.functions + 1, self.functions % 32);
        let bridge = format!("sys/devices/pci0000:00/0000:00:{slot:02x}.1");
        let pci = self.root.join(bridge).join(format!("0000:{bus:02x}:00.0"));
        let chip = Chip { number, published, pci, hwmon: self.sensors };
        self.functions += 1;
        self.sensors += 1;
        self.write_chip(&chip);
        self.link_chip(&chip);
        self.chips.push(chip);
        self.chips.sort_by_key(|chip| chip.number);
    }

    fn write_chip(&self, chip: &Chip) {
        let fill = |folder: &Path, files: &[(String, String)]| {
            fs::create_dir_all(folder).expect("a tree that can be written");
            for (name, text) in files {
                fs::write(folder.join(name), format!("{text}\n")).expect("a tree that can be written");
            }
        };
        fill(&chip.pci, &chip.published.pci);
        fill(&chip.hwmon_folder(), &chip.published.sensors);
        let class = chip.class_folder();
        fill(&class, &chip.published.class);
        let number = chip.number;
        let uevent = format!("MAJOR=510\nMINOR={number}\nDEVNAME=tenstorrent/{number}");
        fill(&class, &[("dev".to_owned(), format!("510:{number}")), ("uevent".to_owned(), uevent)]);
        fill(&class.join("pcie_perf_counters"), &chip.published.counters);
        if self.kmd.has_pids() {
            let list = self.root.join(format!("proc/driver/tenstorrent/{number}"));
            fs::create_dir_all(&list).expect("a tree that can be written");
            fs::write(list.join("pids"), "").expect("a tree that can be written");
        }
    }

    fn link_chip(&self, chip: &Chip) {
        let class = chip.class_folder();
        self.link_to(&self.class_link(chip.number), &class);
        self.link_to(&self.hwmon_link(chip.hwmon), &chip.hwmon_folder());
        self.link_to(&self.root.join("sys/bus/pci/devices").join(chip.address()), &chip.pci);
        symlink(format!("../../../{}", chip.address()), class.join("device")).expect("a new link");
    }

    /// A link as sysfs has them: relative, from `sys/a/b` to `../../devices/...`.
    fn link_to(&self, link: &Path, target: &Path) {
        let sys = self.root.join("sys");
        let depth = link.strip_prefix(&sys).expect("it is in sysfs").components().count() - 1;
        let target = target.strip_prefix(&sys).expect("it is in sysfs");
        fs::create_dir_all(link.parent().expect("it is in the tree")).expect("a tree that can be written");
        symlink(Path::new(&"../".repeat(depth)).join(target), link).expect("a new link");
    }
}

impl Chip {
    fn address(&self) -> &str {
        self.pci.file_name().and_then(|name| name.to_str()).expect("an address")
    }

    fn class_folder(&self) -> PathBuf {
        self.pci.join(format!("tenstorrent/tenstorrent!{}", self.number))
    }

    fn hwmon_folder(&self) -> PathBuf {
        self.pci.join(format!("hwmon/hwmon{}", self.hwmon))
    }
}

/// A device that was detached.
pub struct Detached(Published);
