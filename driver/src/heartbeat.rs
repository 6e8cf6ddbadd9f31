//! Whether the firmware's heartbeat moves.

use std::time::{Duration, Instant};

/// Time without a change after which a heartbeat stands still. The firmware counts several times a second.
const STILL: Duration = Duration::from_secs(2);

/// Compares readings of a heartbeat.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heartbeat {
    /// The last value, and since when it has not changed.
    last: Option<(u32, Instant)>,
    moves: Option<bool>,
}

impl Heartbeat {
    /// Takes a reading, or that there is none. Returns whether the heartbeat moves; `None` until that is known.
    pub(crate) fn add(&mut self, value: Option<u32>, now: Instant) -> Option<bool> {
        let Some(value) = value else {
            *self = Heartbeat::default();
            return None;
        };
        match self.last {
            Some((last, since)) if last == value => {
                if now.saturating_duration_since(since) >= STILL {
                    self.moves = Some(false);
                }
            }
            Some(_) => (self.last, self.moves) = (Some((value, now)), Some(true)),
            None => self.last = Some((value, now)),
        }
        self.moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_beat_and_its_lack_takes_time_to_tell() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::default();
        assert_eq!(heartbeat.add(Some(5), start), None);
        assert_eq!(heartbeat.add(Some(5), start + STILL / 2), None, "too soon to tell");
        assert_eq!(heartbeat.add(Some(6), start + STILL), Some(true));
        assert_eq!(heartbeat.add(Some(6), start + STILL * 3 / 2), Some(true));
        assert_eq!(heartbeat.add(Some(6), start + STILL * 2), Some(false));
        assert_eq!(heartbeat.add(Some(1), start + STILL * 3), Some(true), "a reset starts it anew");
        assert_eq!(heartbeat.add(None, start + STILL * 4), None);
        assert_eq!(heartbeat.add(Some(1), start + STILL * 5), None, "nothing to compare with");
    }
}
