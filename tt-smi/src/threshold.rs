//! `--fail-above 'dram>90%'`: reports by exit code that a device is fuller than allowed.

use std::fmt;
use std::str::FromStr;

use crate::exit::Exit;
use crate::model::{Device, FIGURES, Figure, Memory, Model};
use crate::query::{share_millionths, size_bytes};
use crate::units::bytes;

/// The exit code if a device is above.
const ABOVE: u8 = 3;

/// The limit of a memory.
#[derive(Clone, Debug)]
pub struct Threshold {
    text: String,
    figure: &'static Figure,
    /// `>=` instead of `>`.
    is_reached_above: bool,
    limit: Limit,
}

/// What it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Bytes(u64),
    /// Of the capacity, in millionths.
    Share(u64),
}

/// The result for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Below,
    /// It is above; the message.
    Above(String),
    /// It cannot be known; the reason.
    Unknown(String),
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let help = "give a memory and how much of it may be used, such as 'dram>90%' or 'l1>=100MiB'";
        let (name, rest) = text.split_once('>').ok_or_else(|| help.to_owned())?;
        let (is_reached_above, value) = rest.strip_prefix('=').map_or((false, rest), |value| (true, value));
        let (name, value) = (name.trim(), value.trim());
        let found = FIGURES.iter().find(|figure| figure.stem.eq_ignore_ascii_case(name));
        let figure = found.ok_or_else(|| {
            let names: Vec<&str> = FIGURES.iter().map(|figure| figure.stem).collect();
            format!("no memory {name:?}; there are {}", names.join(", "))
        })?;
        let is_not = |expected: String| format!("{value:?} is not {expected}");
        let limit = match value.strip_suffix('%') {
            Some(percent) => Limit::Share(share_millionths(percent).map_err(is_not)?),
            None => {
                let or_share = |expected| is_not(format!("{expected}, nor a share such as 90%"));
                Limit::Bytes(size_bytes(value).map_err(or_share)?)
            }
        };
        let text = text.trim().to_owned();
        Ok(Threshold { text, figure, is_reached_above, limit })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Threshold {
    fn judge(&self, device: &Device) -> Verdict {
        let (index, name) = (device.index, self.figure.stem);
        let memory = self.figure.of(&device.held);
        let Some((memory, is_above)) = memory.and_then(|memory| Some((memory, self.is_above(memory)?)))
        else {
            return Verdict::Unknown(format!(
                "device {index}: no capacity is known for {name}, so '{self}' cannot be checked; give a \
                 size, such as '{name}>1GiB'"
            ));
        };
        match is_above {
            true => {
                Verdict::Above(format!("device {index}: {name} {} is above '{self}'", memory.used_share()))
            }
            false if memory.used_range().is_exact() => Verdict::Below,
            false => Verdict::Unknown(format!(
                "device {index}: at least {} of {name} is used, but some processes could not be read, so '{self}' \
                 cannot be checked",
                bytes(memory.used)
            )),
        }
    }

    /// Whether the lower bound of its use is above; `None` if the capacity is unknown.
    fn is_above(&self, memory: &Memory) -> Option<bool> {
        // Exact, without rounding: both sides times a million.
        let (used, limit) = match self.limit {
            Limit::Bytes(limit) => (u128::from(memory.used), u128::from(limit)),
            Limit::Share(millionths) => {
                let total = memory.total.filter(|total| *total > 0)?;
                (u128::from(memory.used) * 1_000_000, u128::from(total) * u128::from(millionths))
            }
        };
        Some(if self.is_reached_above { used >= limit } else { used > limit })
    }
}

/// Exit code 3 if a device is above one of the thresholds, reported on stderr; an error if that cannot be known.
/// Without devices, none is above.
pub(crate) fn ensure_below(thresholds: &[Threshold], model: &Model) -> anyhow::Result<()> {
    let verdicts = model.devices.iter().flat_map(|device| thresholds.iter().map(|one| one.judge(device)));
    let (mut is_above, mut unknown) = (false, Vec::new());
    for verdict in verdicts {
        match verdict {
            Verdict::Below => {}
            Verdict::Above(text) => {
                is_above = true;
                eprintln!("tt-smi: {text}");
            }
            Verdict::Unknown(text) => unknown.push(text),
        }
    }
    if is_above {
        return Err(Exit(ABOVE).into());
    }
    anyhow::ensure!(unknown.is_empty(), "{}", unknown.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_above(text: &str, used: u64, total: Option<u64>) -> Option<bool> {
        let memory = Memory { used, total, ..Memory::default() };
        text.parse::<Threshold>().unwrap().is_above(&memory)
    }

    #[test]
    fn shares_and_sizes_are_compared_exactly() {
        for (text, used, total, expected) in [
            ("dram>90%", 900, Some(1000), Some(false)),
            ("dram>=90%", 900, Some(1000), Some(true)),
            ("dram > 90 %", 901, Some(1000), Some(true)),
            ("L1>92.5%", 925, Some(1000), Some(false)),
            ("eth_l1>92.5%", 926, Some(1000), Some(true)),
            ("dram>0%", 1, Some(u64::MAX), Some(true)),
            ("dram>100%", u64::MAX, Some(u64::MAX), Some(false)),
            ("l1>1KiB", 1024, None, Some(false)),
            ("l1>=1KiB", 1024, None, Some(true)),
            ("dram>90%", 900, None, None),
            ("dram>90%", 0, Some(0), None),
        ] {
            assert_eq!(is_above(text, used, total), expected, "{text} of {used}");
        }
    }

    #[test]
    fn nonsense_says_what_to_write() {
        for (text, says) in [
            ("", "such as 'dram>90%'"),
            ("dram<90%", "such as 'dram>90%'"),
            ("sram>1KiB", "no memory \"sram\"; there are dram, "),
            ("dram>", "is not a size"),
            ("dram>lots", "is not a size, such as 4096, 64KiB or 1.5GiB, nor a share such as 90%"),
            ("dram>101%", "a share from 0% to 100%"),
            ("dram>-1%", "a share from 0% to 100%"),
        ] {
            let error = text.parse::<Threshold>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
