//! A small, fast, repeatable source of numbers (splitmix64). Not for secrets.

/// The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Starts with a seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` up to, not including, `high`.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % high.saturating_sub(low).max(1)
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.range(0, times) == 0
    }
}

/// A hash of a text (FNV-1a), never 0.
pub(crate) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.next(), random.range(10, 20), random.next()]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!((10..20).contains(&numbers(7)[1]));
        assert_ne!(hash("a"), hash("b"));
    }
}
