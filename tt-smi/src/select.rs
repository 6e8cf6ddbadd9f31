//! Resolves the devices and classes that a user typed.

use std::str::FromStr;

use shm_layout::claims::Standing;
use shm_layout::table::TABLE_DEVICES;
use tt_shm_reader::Class;

use crate::directory::{DeviceId, Directory};

/// A device as typed: index, PCI address or chip id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSelector {
    /// An index; a number too large for one is a chip id, as tt-metal writes it in file names.
    Number(u64),
    /// A chip id in hexadecimal, as sysfs has it.
    Chip(u64),
    /// A PCI address, with its domain.
    Pci(String),
}

impl FromStr for DeviceSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
        if let Some(address) = pci(text) {
            return Ok(DeviceSelector::Pci(address));
        }
        if let Some(chip) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).and_then(hex) {
            return Ok(DeviceSelector::Chip(chip));
        }
        // Sixteen digits, as in tt_asic_id; they may happen to be decimal.
        if text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return hex(text).map(DeviceSelector::Chip).ok_or_else(|| refuse(text));
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number).map(DeviceSelector::Number).ok_or_else(|| refuse(text))
    }
}

fn refuse(text: &str) -> String {
    format!("{text:?} is no device: give an index (0), a PCI address (0000:81:00.0) or a chip id (0x...)")
}

/// `81:00.0` and `0000:81:00.0` as the latter; `None` for anything else.
fn pci(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let full = if text.matches(':').count() == 1 { format!("0000:{text}") } else { text };
    let (rest, function) = full.split_once('.')?;
    let parts: Vec<&str> = rest.split(':').chain([function]).collect();
    let is_hex = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths = parts.iter().map(|part| part.len()).collect::<Vec<_>>();
    (parts.iter().all(is_hex) && matches!(lengths[..], [4..=8, 2, 2, 1])).then_some(full)
}

impl DeviceSelector {
    /// Indices of the devices it means. If several devices claim an address, the claim of the most trusted user counts,
    /// so that no user's device can pass for root's; several only if their users are equally trusted.
    pub fn meant(&self, directory: &Directory) -> Vec<usize> {
        let devices = directory.devices.iter().enumerate();
        match self {
            DeviceSelector::Number(number) if *number < TABLE_DEVICES as u64 => {
                devices.map(|(index, _)| index).filter(|index| *index as u64 == *number).collect()
            }
            DeviceSelector::Number(chip) | DeviceSelector::Chip(chip) => {
                directory.index_of(*chip).into_iter().collect()
            }
            DeviceSelector::Pci(address) => {
                let claims = devices.filter_map(|(index, device)| Some((index, claim(device, address)?)));
                let claims: Vec<(usize, Standing)> = claims.collect();
                let best = claims.iter().map(|(_, standing)| *standing).min();
                claims.into_iter().filter(|(_, of)| Some(*of) == best).map(|(index, _)| index).collect()
            }
        }
    }

    /// Whether it is the id of this chip, which may be gone.
    pub fn is_chip(&self, chip_id: u64) -> bool {
        match self {
            DeviceSelector::Number(chip) => *chip >= TABLE_DEVICES as u64 && *chip == chip_id,
            DeviceSelector::Chip(chip) => *chip == chip_id,
            DeviceSelector::Pci(_) => false,
        }
    }
}

impl std::fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceSelector::Number(number) => write!(f, "{number}"),
            DeviceSelector::Chip(chip) => write!(f, "{chip:#x}"),
            DeviceSelector::Pci(address) => f.write_str(address),
        }
    }
}

/// The most trusted user who claims that a device has this address.
fn claim(device: &DeviceId, address: &str) -> Option<Standing> {
    device.addresses.iter().find(|(_, claimed)| claimed == address).map(|(standing, _)| *standing)
}

/// A selector that may mean several devices is an error that says which.
pub(crate) fn refuse_ambiguous(selectors: &[DeviceSelector], directory: &Directory) -> anyhow::Result<()> {
    for selector in selectors {
        let meant = selector.meant(directory);
        if meant.len() > 1 {
            let name = |index: &usize| format!("{index} (chip {:#x})", directory.devices[*index].chip_id);
            let names: Vec<String> = meant.iter().map(name).collect();
            anyhow::bail!(
                "device {selector} may be any of {}, whose processes all claim that address: give an index or a chip id",
                names.join(", ")
            );
        }
    }
    Ok(())
}

/// The selected indices; all if there is no selector. A selector that means no device, or several, is an error.
pub(crate) fn select(selectors: &[DeviceSelector], directory: &Directory) -> anyhow::Result<Vec<usize>> {
    if selectors.is_empty() {
        return Ok((0..directory.devices.len()).collect());
    }
    refuse_ambiguous(selectors, directory)?;
    let mut selected = Vec::new();
    for selector in selectors {
        let meant = selector.meant(directory);
        anyhow::ensure!(!meant.is_empty(), "no device {selector}: {}", known(directory.devices.len()));
        selected.extend(meant);
    }
    selected.sort_unstable();
    selected.dedup();
    Ok(selected)
}

/// The devices that exist, for an error message.
fn known(devices: usize) -> String {
    match devices {
        0 => "no process reports any here (run `tt-smi doctor` for advice)".to_owned(),
        1 => "the only one is 0 (see `tt-smi list`)".to_owned(),
        more => format!("they are 0 to {} (see `tt-smi list`)", more - 1),
    }
}

/// A class as typed; `kernel` means all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassFilter {
    /// A single class.
    One(Class),
    /// Application, fabric and dispatch kernels.
    Kernels,
}

impl FromStr for ClassFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.to_ascii_lowercase();
        if name == "kernel" {
            return Ok(ClassFilter::Kernels);
        }
        Class::from_name(&name).map(ClassFilter::One).ok_or_else(|| {
            let names: Vec<&str> = Class::ALL.into_iter().map(Class::name).collect();
            format!("no class {text:?}; there are {}, and kernel for all kernels", names.join(", "))
        })
    }
}

impl ClassFilter {
    /// Whether it means this class.
    pub fn matches(self, class: Class) -> bool {
        match self {
            ClassFilter::One(one) => one == class,
            ClassFilter::Kernels => class.kernel_type().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> Directory {
        let devices = [(0x1279_2014_37fe_0afe, "0000:81:00.0"), (154_095_680_228_416, "0000:82:00.0")];
        claimed(&devices.map(|(chip_id, pci)| (chip_id, Standing::Other, pci)))
    }

    fn claimed(devices: &[(u64, Standing, &str)]) -> Directory {
        let device = |(chip_id, standing, pci): &(u64, Standing, &str)| DeviceId {
            chip_id: *chip_id,
            addresses: vec![(*standing, (*pci).to_owned())],
            ..DeviceId::default()
        };
        Directory { devices: devices.iter().map(device).collect(), ..Directory::default() }
    }

    #[test]
    fn an_address_means_the_device_of_whoever_counts_most() {
        use Standing::{Other, Own, Root};
        const PCI: &str = "0000:81:00.0";
        let selector: DeviceSelector = PCI.parse().unwrap();
        let select = |devices: &[_]| select(std::slice::from_ref(&selector), &claimed(devices));
        assert_eq!(select(&[(1, Other, PCI), (2, Root, PCI), (3, Own, PCI)]).unwrap(), [1]);
        assert_eq!(select(&[(1, Other, PCI), (2, Other, "0000:82:00.0"), (3, Own, PCI)]).unwrap(), [2]);
        let error =
            select(&[(1, Other, PCI), (2, Own, "0000:82:00.0"), (3, Other, PCI)]).unwrap_err().to_string();
        assert!(error.contains("0000:81:00.0 may be any of 0 (chip 0x1), 2 (chip 0x3)"), "{error}");
    }

    #[test]
    fn devices_by_index_pci_address_or_chip() {
        let cases = [
            ("0", 0),
            ("1", 1),
            ("81:00.0", 0),
            ("0000:82:00.0", 1),
            ("0x1279201437fe0afe", 0),
            ("1279201437FE0AFE", 0),
            ("154095680228416", 1),
        ];
        for (text, index) in cases {
            let selector: DeviceSelector = text.parse().unwrap();
            assert_eq!(select(&[selector], &directory()).unwrap(), [index], "{text}");
        }
        assert_eq!(select(&[], &directory()).unwrap(), [0, 1]);
    }

    #[test]
    fn nonsense_and_absent_devices_are_refused() {
        for text in ["", "-1", "+1", "abc", "0000:81:00", "0x", "0xzz", ":.", "81:00.00"] {
            assert!(text.parse::<DeviceSelector>().is_err(), "{text:?}");
        }
        let absent: DeviceSelector = "7".parse().unwrap();
        assert!(select(&[absent], &directory()).unwrap_err().to_string().contains("no device 7"));
    }

    #[test]
    fn kernel_means_all_three() {
        let kernels: ClassFilter = "kernel".parse().unwrap();
        assert_eq!(Class::ALL.into_iter().filter(|class| kernels.matches(*class)).count(), 3);
        assert_eq!("DRAM".parse(), Ok(ClassFilter::One(Class::Dram)));
        assert!("ram".parse::<ClassFilter>().unwrap_err().contains("l1_small"));
    }
}
