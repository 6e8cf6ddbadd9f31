//! The forms of values in sysfs.

use std::fmt;

use crate::absence::{Absence, Reading};
use crate::version::Version;

/// How a value is written.
pub(crate) struct Format<T> {
    /// For messages: what should stand there.
    pub(crate) expected: &'static str,
    /// `None` if the text is malformed; an absence if it says that there is no value.
    pub(crate) parse: fn(&str) -> Option<Reading<T>>,
}

pub(crate) const NUMBER: Format<u32> =
    Format { expected: "a number of 32 bits", parse: |text| decimal(text)?.try_into().ok().map(Ok) };

/// Some sensors may be below zero.
pub(crate) const SENSOR: Format<i64> =
    Format { expected: "a whole number", parse: |text| signed(text).map(Ok) };

pub(crate) const FAN: Format<i64> = Format {
    expected: "a whole number",
    parse: |text| match signed(text)? {
        // What the firmware says where no fan is connected.
        4_294_967_295 => Some(Err(Absence::NotFitted)),
        speed => Some(Ok(speed)),
    },
};

/// A serial number or the id of a chip.
pub(crate) const ID: Format<u64> =
    Format { expected: "16 hexadecimal digits", parse: |text| hexadecimal(text, 16).map(Ok) };

/// Vendor and device numbers of PCI.
pub(crate) const PCI_ID: Format<u16> = Format {
    expected: "0x and 4 hexadecimal digits",
    parse: |text| hexadecimal(text.strip_prefix("0x")?, 4)?.try_into().ok().map(Ok),
};

/// The name of a board.
pub(crate) const CARD: Format<String> = Format {
    expected: "a name of at most 32 letters, digits and dashes",
    parse: |text| match text {
        "unknown" => Some(Err(Absence::Unknown)),
        name => is_name(name).then(|| Ok(name.to_owned())),
    },
};

pub(crate) const VERSION: Format<Version> =
    Format { expected: "a version", parse: |text| Version::parse(text).map(Ok) };

/// A node of memory; -1 where the machine has none.
pub(crate) const NODE: Format<u32> = Format {
    expected: "a node number",
    parse: |text| match signed(text)? {
        -1 => Some(Err(Absence::Unknown)),
        node => node.try_into().ok().map(Ok),
    },
};

/// `16.0 GT/s PCIe`, in millions of transfers per second.
pub(crate) const LINK_SPEED: Format<u32> = Format { expected: "a speed in GT/s", parse: link_speed };

/// Lanes of a PCIe link. The kernel prints 0, 63 or 255 where it does not know.
pub(crate) const LINK_WIDTH: Format<u32> = Format {
    expected: "a number of lanes",
    parse: |text| match decimal(text)? {
        0 | 63 | 255 => Some(Err(Absence::Unknown)),
        lanes @ 1..=32 => Some(Ok(lanes as u32)),
        _ => None,
    },
};

fn link_speed(text: &str) -> Option<Reading<u32>> {
    if text.starts_with("Unknown") {
        return Some(Err(Absence::Unknown));
    }
    let number = text.split(" GT/s").next().filter(|number| number.len() < text.len())?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let tenths = Some(tenths).filter(|tenths| tenths.len() == 1)?;
    let speed = decimal(whole)?.checked_mul(1000)?.checked_add(decimal(tenths)? * 100)?;
    speed.try_into().ok().map(Ok)
}

fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=32).contains(&text.len()) && text.bytes().all(is_part)
}

/// Digits only: `str::parse` would accept a plus sign.
fn decimal(text: &str) -> Option<u64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_decimal { text.parse().ok() } else { None }
}

fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(digits) => i64::try_from(decimal(digits)?).ok().map(|value| -value),
        None => decimal(text)?.try_into().ok(),
    }
}

fn hexadecimal(text: &str, most: usize) -> Option<u64> {
    let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if text.len() <= most && is_hexadecimal { u64::from_str_radix(text, 16).ok() } else { None }
}

/// The address of a PCI function: `0000:81:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// Domain, of 16 bits except behind some host bridges.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device, of 5 bits.
    pub device: u8,
    /// Function, of 3 bits.
    pub function: u8,
}

impl PciAddress {
    /// As the kernel writes it.
    #[must_use]
    pub fn parse(text: &str) -> Option<PciAddress> {
        let mut parts = text.split(':');
        let (domain, bus, last) = (parts.next()?, parts.next()?, parts.next()?);
        let (device, function) = last.split_once('.')?;
        let is_complete = parts.next().is_none() && domain.len() >= 4 && (bus.len(), device.len()) == (2, 2);
        let address = PciAddress {
            domain: hexadecimal(domain, 8)?.try_into().ok()?,
            bus: hexadecimal(bus, 2)?.try_into().ok()?,
            device: hexadecimal(device, 2)?.try_into().ok()?,
            function: hexadecimal(function, 1)?.try_into().ok()?,
        };
        (is_complete && address.device < 32 && address.function < 8).then_some(address)
    }

    /// As one number: domain, bus, device and function, of 32, 8, 5 and 3 bits.
    #[must_use]
    pub fn packed(&self) -> u64 {
        u64::from(self.domain) << 16
            | u64::from(self.bus) << 8
            | u64::from(self.device) << 3
            | u64::from(self.function)
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!((NUMBER.parse)("4294967295"), Some(Ok(u32::MAX)));
        assert_eq!((SENSOR.parse)("-5000"), Some(Ok(-5000)));
        assert_eq!((FAN.parse)("4294967295"), Some(Err(Absence::NotFitted)));
        assert_eq!((FAN.parse)("1200"), Some(Ok(1200)));
        assert_eq!((ID.parse)("FCF9BCF9E3C8B89E"), Some(Ok(0xFCF9_BCF9_E3C8_B89E)));
        assert_eq!((PCI_ID.parse)("0x401e"), Some(Ok(0x401e)));
        assert_eq!((NODE.parse)("-1"), Some(Err(Absence::Unknown)));
        for bad in
            ["", "+1", "1 2", "4294967296", "0x5", "\u{663}", "--1", "-", "1e3", "99999999999999999999"]
        {
            assert_eq!((NUMBER.parse)(bad), None, "{bad:?}");
        }
        assert_eq!((SENSOR.parse)("9223372036854775808"), None);
        assert_eq!((ID.parse)("10000000000000000"), None);
        assert_eq!((PCI_ID.parse)("0x401ef"), None);
    }

    #[test]
    fn links() {
        assert_eq!((LINK_SPEED.parse)("16.0 GT/s PCIe"), Some(Ok(16_000)));
        assert_eq!((LINK_SPEED.parse)("2.5 GT/s"), Some(Ok(2500)));
        assert_eq!((LINK_SPEED.parse)("8 GT/s PCIe"), Some(Ok(8000)));
        assert_eq!((LINK_SPEED.parse)("Unknown"), Some(Err(Absence::Unknown)));
        assert_eq!((LINK_WIDTH.parse)("16"), Some(Ok(16)));
        assert_eq!((LINK_WIDTH.parse)("255"), Some(Err(Absence::Unknown)));
        for bad in ["", "16.0", "x GT/s", "1.25 GT/s", "99999999999999999999 GT/s", "18446744073709551 GT/s"]
        {
            assert_eq!((LINK_SPEED.parse)(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn addresses_and_names() {
        for text in ["0000:81:00.0", "10000:01:1f.7"] {
            assert_eq!(PciAddress::parse(text).unwrap().to_string(), text);
        }
        for bad in
            ["", "81:00.0", "0000:81:00", "0000:81:20.0", "0000:81:00.8", "0000:81:00.0:1", "+000:81:00.0"]
        {
            assert_eq!(PciAddress::parse(bad), None, "{bad:?}");
        }
        assert_eq!((CARD.parse)("unknown"), Some(Err(Absence::Unknown)));
        assert_eq!((CARD.parse)("galaxy-blackhole"), Some(Ok("galaxy-blackhole".to_owned())));
        for bad in ["", "a b", "n150\x1b[2J", "n\u{e4}"] {
            assert_eq!((CARD.parse)(bad), None, "{bad:?}");
        }
    }
}
