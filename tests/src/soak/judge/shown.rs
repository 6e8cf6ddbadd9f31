//! What `tt-smi peak --json` and `snapshot --json` say: the claims as users get them.

use super::account::{
    CACHED, CB_RESIDENT, COUNTS, DISPATCHES, DRAM, ETH, FAILED, KERNEL_RESIDENT, L1, REQUESTED,
};
use super::claims::{Claim, What};
use anyhow::{Context, Result};
use serde_json::Value;
use shm_layout::Class;

/// The number of a device, by its chip.
fn number_of(device: &Value) -> Option<usize> {
    let chip = device["chip_id"].as_str()?.strip_prefix("0x")?;
    usize::from_str_radix(chip, 16).ok()?.checked_sub(1)
}

/// The claims of `peak --json`, and since when they are if that is said. `to_monotonic` converts wall-clock times.
pub fn of_peak(text: &[u8], to_monotonic: impl Fn(u64) -> u64) -> Result<(Vec<Claim>, Option<u64>)> {
    let json: Value = serde_json::from_slice(text).context("peak --json is JSON")?;
    let time = |time: &Value| time.as_str().and_then(realtime_ns).map(&to_monotonic);
    let mut claims = Vec::new();
    for device in json["devices"].as_array().context("peak --json has devices")? {
        let number = number_of(device).context("a device has a chip id")?;
        let fixed = [
            (DRAM, "dram"),
            (L1, "l1"),
            (ETH, "eth_l1"),
            (CB_RESIDENT, "cb_resident"),
            (KERNEL_RESIDENT, "kernel_resident"),
        ];
        let fixed = fixed.map(|(quantity, key)| (quantity, &device[key]));
        let classes = Class::ALL.map(|class| (class as usize, &device["classes"][class.name()]));
        for (quantity, peak) in fixed.into_iter().chain(classes) {
            claims.push(Claim {
                device: number,
                what: What::Peak(quantity),
                low: peak["low_bytes"].as_u64().context("a peak has low_bytes")?,
                high: peak["high_bytes"].as_u64(),
                time: time(&peak["time"]),
                count: None,
            });
        }
    }
    Ok((claims, time(&json["peaks_since"])))
}

/// The claims of `snapshot --json` about what is used now.
pub fn of_snapshot(text: &[u8]) -> Result<Vec<Claim>> {
    let json: Value = serde_json::from_slice(text).context("snapshot --json is JSON")?;
    let mut claims = Vec::new();
    for device in json["devices"].as_array().context("snapshot --json has devices")? {
        let number = number_of(device).context("a device has a chip id")?;
        let fixed = [
            (DRAM, "dram_used_bytes"),
            (L1, "l1_used_bytes"),
            (ETH, "eth_l1_used_bytes"),
            (CB_RESIDENT, "cb_resident_bytes"),
            (DISPATCHES, "dispatches"),
            (CACHED, "cached_dispatches"),
            (FAILED, "failed_allocs"),
        ];
        let fixed = fixed.map(|(quantity, key)| (quantity, &device[key]));
        let classes = Class::ALL.into_iter().flat_map(|class| {
            let json = &device["classes"][class.name()];
            let keys = [(0, "live_bytes"), (COUNTS, "live_count"), (REQUESTED, "requested_bytes")];
            keys.map(|(first, key)| (first + class as usize, &json[key]))
        });
        let exact = device["dram_used_exact"].as_bool().context("a device says whether it is exact")?;
        for (quantity, value) in fixed.into_iter().chain(classes) {
            let low = value.as_u64().context("a figure is a number")?;
            let what = What::Now(quantity);
            let high = exact.then_some(low);
            claims.push(Claim { device: number, what, low, high, time: None, count: None });
        }
    }
    Ok(claims)
}

/// Nanoseconds since 1970 of `2026-11-16T17:40:12.123456Z`.
fn realtime_ns(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let fraction = text.get(20..)?.trim_end_matches('Z');
    let nanos = format!("{fraction:0<9}").get(..9)?.parse::<u64>().ok()?;
    // Days since 1970 in the Gregorian calendar, counting years from March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_microsecond() {
        assert_eq!(realtime_ns("1970-01-01T00:00:00.000001Z"), Some(1_000));
        assert_eq!(realtime_ns("2026-11-16T17:40:12.123456Z"), Some(1_794_850_812_123_456_000));
        assert_eq!(realtime_ns("-"), None);
    }
}
