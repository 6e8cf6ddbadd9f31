//! Numbers with units, and how they are written shortest.

use std::ops::RangeInclusive;

use super::field::Nature;

const SIZES: [(&str, u64); 13] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1000),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1000),
];
const TIMES: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];
const COUNTS: [(&str, u64); 3] = [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1000)];

/// The units of a nature, what a number without one is in, and examples.
fn units(nature: Nature) -> (&'static [(&'static str, u64)], u64, &'static str) {
    match nature {
        Nature::Size => (&SIZES, 1, "a size, such as 4096, 64KiB or 1.5GiB"),
        Nature::Time => (&TIMES, 1_000_000_000, "a time, such as 500ms, 10s or 2h"),
        _ => (&COUNTS, 1, "a number, such as 42, 0x2a or 10k"),
    }
}

/// `5`, or `0-3` if it may be a range.
pub(super) fn range(text: &str, nature: Nature, may_be_range: bool) -> Result<RangeInclusive<u64>, String> {
    match text.split_once('-').filter(|_| may_be_range) {
        Some((low, high)) => {
            let (low, high) = (number(low, nature)?, number(high, nature)?);
            if low > high {
                return Err("a range that goes from a smaller to a larger number".to_owned());
            }
            Ok(low..=high)
        }
        None => number(text, nature).map(|number| number..=number),
    }
}

/// A time in nanoseconds, such as `500ms`, `1.5s` or `1d`; a bare number is seconds. The one place that reads durations.
pub(crate) fn time_ns(text: &str) -> Result<u64, String> {
    number(text, Nature::Time)
}

/// A size in bytes, such as `4096`, `64KiB` or `1.5GiB`.
pub(crate) fn size_bytes(text: &str) -> Result<u64, String> {
    number(text, Nature::Size)
}

/// A percentage without its sign, such as `92.5`, in millionths of the whole.
pub(crate) fn share_millionths(percent: &str) -> Result<u64, String> {
    let share = scaled(percent.trim_end(), 10_000).filter(|share| *share <= 1_000_000);
    share.ok_or_else(|| "a share from 0% to 100%".to_owned())
}

/// Whether a word is nothing but a unit of this nature.
pub(super) fn is_unit(word: &str, nature: Nature) -> bool {
    let (units, ..) = units(nature);
    matches!(nature, Nature::Size | Nature::Time)
        && units.iter().any(|(name, _)| name.eq_ignore_ascii_case(word))
}

/// A number in the field's smallest unit; else what it should have been.
fn number(text: &str, nature: Nature) -> Result<u64, String> {
    let (units, plain, example) = units(nature);
    let expected = || example.to_owned();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let sign = digits.starts_with(['+', '-']);
        return u64::from_str_radix(digits, 16).ok().filter(|_| !sign).ok_or_else(expected);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let unit = match unit {
        "" => plain,
        unit => units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(expected)?.1,
    };
    scaled(digits, unit).ok_or_else(expected)
}

/// Decimal digits times a unit, without rounding through a float: `1.5` GiB is exactly that.
fn scaled(digits: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let whole: u64 = whole.parse().ok()?;
    // More digits than these are less than a nanosecond of a day.
    let fraction = fraction.get(..15.min(fraction.len()))?;
    let parts: u64 = fraction.parse().ok()?;
    let part = u128::from(parts) * u128::from(unit) / 10_u128.pow(fraction.len() as u32);
    whole.checked_mul(unit)?.checked_add(u64::try_from(part).ok()?)
}

/// A range so that it is read as what it is, in the largest unit that leaves no rest.
pub(super) fn canonical(range: &RangeInclusive<u64>, nature: Nature) -> String {
    let (low, high) = (short(*range.start(), nature), short(*range.end(), nature));
    if low == high { low } else { format!("{low}-{high}") }
}

fn short(number: u64, nature: Nature) -> String {
    let (units, plain, _) = units(nature);
    // Sizes are thought of in powers of 1024; those of 1000 stand behind the plain byte.
    let units = units.iter().take_while(|(_, unit)| nature != Nature::Size || *unit > 1);
    let fits = |unit: &&(&str, u64)| nature != Nature::Count && number != 0 && number.is_multiple_of(unit.1);
    match units.clone().find(fits) {
        Some((name, unit)) => format!("{}{name}", number / unit),
        None if plain == 1 || number == 0 => number.to_string(),
        None => format!("{number}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_what_they_say() {
        let cases = [
            ("4096", Nature::Size, 4096),
            ("1KiB", Nature::Size, 1024),
            ("1kb", Nature::Size, 1000),
            ("10k", Nature::Size, 10_000),
            ("2GB", Nature::Size, 2_000_000_000),
            ("1.5GiB", Nature::Size, 3 << 29),
            ("0x10", Nature::Count, 16),
            ("10k", Nature::Count, 10_000),
            ("5", Nature::Time, 5_000_000_000),
            ("500ms", Nature::Time, 500_000_000),
            ("2h", Nature::Time, 7_200_000_000_000),
        ];
        for (text, nature, expected) in cases {
            assert_eq!(range(text, nature, true), Ok(expected..=expected), "{text}");
        }
        assert_eq!(range("1KiB-2KiB", Nature::Size, true), Ok(1024..=2048));
    }

    #[test]
    fn nonsense_is_refused() {
        let texts = [
            "", "-", "-1", "1-", "+1", "0x", "0x+1", "1.", ".5", "1..2", "1 KiB", "1XB", "9-1", "1.5.5", "ä",
        ];
        for text in texts.into_iter().chain(["99999999999999999999", "18446744073709551615TiB"]) {
            assert!(range(text, Nature::Size, true).is_err(), "{text}");
        }
        assert!(range("1-2", Nature::Count, false).is_err());
    }
}
