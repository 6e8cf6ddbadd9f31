//! Values as they are typed.

use std::time::Duration;

/// `500ms`, `10s`, `2m`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is not a time; try 10s or 500ms"))?;
    let millis = match unit {
        "ms" => Some(number),
        "s" | "" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        _ => return Err(format!("unknown unit {unit:?}; use ms, s or m")),
    };
    match millis {
        Some(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err(format!("{text:?} is out of range")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        for bad in ["", "0s", "s", "1h", "1.5s", "-1s", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
