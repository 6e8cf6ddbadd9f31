//! Bytes, rates and times for people. JSON has exact numbers instead.

const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/// What stands for "not known". Never 0.
pub const UNKNOWN: &str = "-";

/// `0 B`, `512 B`, `324.0 KiB`, `12.0 GiB`.
pub fn bytes(bytes: u64) -> String {
    let (value, unit) = scaled(bytes);
    match unit {
        None => format!("{bytes} B"),
        Some(unit) => format!("{value:.1} {unit}"),
    }
}

/// The same without a decimal that is zero: `112 KiB`, `1.5 MiB`.
pub fn bytes_short(count: u64) -> String {
    bytes(count).replacen(".0 ", " ", 1)
}

/// The time of day of an RFC 3339 text: `14:13:10.123456`.
pub fn time_of_day(rfc3339: Option<&str>) -> &str {
    let time = rfc3339.and_then(|text| text.split('T').nth(1));
    time.map_or(UNKNOWN, |time| time.trim_end_matches('Z'))
}

/// Bytes, or "-" if unknown.
pub fn bytes_or_unknown(count: Option<u64>) -> String {
    count.map_or_else(|| UNKNOWN.to_owned(), bytes)
}

/// `4.1 / 12.0 GiB`: both in the unit of the larger, which is the total unless something is wrong.
pub fn share(used: u64, total: Option<u64>) -> String {
    let Some(total) = total else { return format!("{} / {UNKNOWN}", bytes(used)) };
    match scale(used.max(total)) {
        0 => format!("{used} / {total} B"),
        power => {
            let divisor = (1_u64 << (10 * power)) as f64;
            let (used, total) = (used as f64 / divisor, total as f64 / divisor);
            format!("{used:.1} / {total:.1} {}", UNITS[power - 1])
        }
    }
}

/// `34%`; "-" where the total is unknown or zero.
pub fn percent(used: u64, total: Option<u64>) -> String {
    match total {
        // Nearly all is not all.
        Some(total) if total > used => format!("{:.0}%", (used as f64 * 100.0 / total as f64).min(99.0)),
        Some(total) if total > 0 => format!("{:.0}%", used as f64 * 100.0 / total as f64),
        _ => UNKNOWN.to_owned(),
    }
}

/// Mebibytes with as many decimals as needed, at most six: `0.875`.
pub fn mib(bytes: u64) -> String {
    let text = format!("{:.6}", bytes as f64 / f64::from(1 << 20));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number with a letter for thousands: `999`, `1.2k`, `34k`, `5.6M`.
pub fn count(number: f64) -> String {
    const LETTERS: [&str; 4] = ["k", "M", "G", "T"];
    if number < 999.5 {
        return format!("{number:.0}");
    }
    let (mut value, mut letter) = (number, "");
    for next in LETTERS {
        if value < 999.5 {
            break;
        }
        (value, letter) = (value / 1000.0, next);
    }
    if value < 9.95 { format!("{value:.1}{letter}") } else { format!("{value:.0}{letter}") }
}

/// A length of time: `850us`, `12ms`, `3.4s`, `5m12s`, `2h05m`, `3d04h`.
pub fn age(nanos: u64) -> String {
    let (micros, seconds) = (nanos / 1000, nanos / 1_000_000_000);
    match seconds {
        0 if micros < 1000 => format!("{micros}us"),
        0 => format!("{}ms", micros / 1000),
        1..60 => format!("{:.1}s", (micros / 100_000) as f64 / 10.0),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// `1 kernel`, `2 kernels`.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = if noun.ends_with('s') || noun.ends_with("ch") { "es" } else { "s" };
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}{ending}") }
}

/// The power of 1024 that a figure is shown in.
fn scale(bytes: u64) -> usize {
    (bytes.max(1).ilog2() / 10).min(UNITS.len() as u32) as usize
}

fn scaled(bytes: u64) -> (f64, Option<&'static str>) {
    match scale(bytes) {
        0 => (bytes as f64, None),
        power => (bytes as f64 / (1_u64 << (10 * power)) as f64, Some(UNITS[power - 1])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_binary() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (331_776, "324.0 KiB"),
            (1_011_712, "988.0 KiB"),
            (12 << 30, "12.0 GiB"),
            (u64::MAX, "16384.0 PiB"),
        ];
        for (count, text) in cases {
            assert_eq!(bytes(count), text);
        }
        assert_eq!(bytes_short(112 << 10), "112 KiB");
        assert_eq!(bytes_short(3 << 19), "1.5 MiB");
    }

    #[test]
    fn unknown_is_not_zero() {
        assert_eq!(bytes_or_unknown(None), "-");
        assert_eq!(share(5, None), "5 B / -");
        assert_eq!(percent(5, None), "-");
        assert_eq!(percent(0, Some(0)), "-");
        assert_eq!(percent(0, Some(10)), "0%");
        assert_eq!(percent(999, Some(1000)), "99%");
        assert_eq!(percent(1000, Some(1000)), "100%");
    }

    #[test]
    fn a_share_has_one_unit() {
        assert_eq!(share(4_402_341_478, Some(12 << 30)), "4.1 / 12.0 GiB");
        assert_eq!(share(100, Some(200)), "100 / 200 B");
        assert_eq!(share(2048, Some(1024)), "2.0 / 1.0 KiB");
    }

    #[test]
    fn log_lines_have_mebibytes() {
        assert_eq!(mib(917_504), "0.875");
        assert_eq!(mib(0), "0");
        assert_eq!(mib(8 << 20), "8");
        assert_eq!(mib(94_208), "0.089844");
    }

    #[test]
    fn counts_and_ages_stay_short() {
        for (number, text) in
            [(0.0, "0"), (999.0, "999"), (1234.0, "1.2k"), (99_999.0, "100k"), (5.6e6, "5.6M")]
        {
            assert_eq!(count(number), text);
        }
        let second = 1_000_000_000;
        for (nanos, text) in
            [(850_000, "850us"), (12_000_000, "12ms"), (3_450_000_000, "3.4s"), (312 * second, "5m12s")]
        {
            assert_eq!(age(nanos), text);
        }
        assert_eq!(age(7500 * second), "2h05m");
        assert_eq!(age(100 * 3600 * second), "4d04h");
        assert_eq!(plural(1, "kernel"), "1 kernel");
        assert_eq!(plural(2, "kernel"), "2 kernels");
    }
}
