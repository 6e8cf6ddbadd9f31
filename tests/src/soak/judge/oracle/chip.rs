//! What is known of a device up to the base: sums, the largest values since any moment, the last minute's values.

use super::Failed;
use crate::soak::judge::account::{Amounts, DRAM, L1, PEAKED};
use crate::soak::judge::maxima::Maxima;
use crate::soak::judge::sums::{Change, Sums, What};
use crate::soak::judge::timeline::Timeline;
use std::collections::{HashMap, VecDeque};

/// How long the values of a device are kept.
pub(super) const SERIES_NS: u64 = 70_000_000_000;

/// Value of DRAM and L1 used, least and most, from a moment on.
#[derive(Clone, Copy)]
pub struct Sample {
    /// Since when, in nanoseconds.
    pub ns: u64,
    /// The least.
    pub low: [u64; 2],
    /// The most.
    pub high: [u64; 2],
}

/// A device's truth up to the base.
pub(super) struct Chip {
    pub(super) sums: Sums,
    pub(super) low: Vec<Maxima>,
    pub(super) high: Vec<Maxima>,
    pub(super) series: VecDeque<Sample>,
}

impl Chip {
    pub(super) fn new() -> Chip {
        let maxima = || (0..PEAKED).map(|_| Maxima::default()).collect();
        Chip { sums: Sums::default(), low: maxima(), high: maxima(), series: VecDeque::new() }
    }

    /// Takes more changes into what it knows, in the order of their time.
    pub(super) fn advance<'a>(
        &mut self,
        changes: impl Iterator<Item = &'a Change>,
        timeline: &Timeline,
        failures: &mut HashMap<(u64, u64), Failed>,
    ) {
        let Chip { sums, low: lows, high: highs, series } = self;
        if series.is_empty() {
            series.push_back(Sample { ns: 0, low: [0; 2], high: [0; 2] });
        }
        let changes: Vec<&Change> = changes.collect();
        let mut number = 0;
        sums.walk(
            changes.iter().copied(),
            |_| true,
            |ticks, low, high, sums| {
                let holders = sums.holders();
                for quantity in 0..PEAKED {
                    let held = matches!(quantity, DRAM | L1).then_some(&holders);
                    lows[quantity].change(ticks, low[quantity], held);
                    highs[quantity].change(ticks, high[quantity], held);
                }
                let of = |amounts: &Amounts| [amounts[DRAM], amounts[L1]];
                let ns = timeline.to_ns(ticks);
                let ns = series.back().map_or(ns, |last| ns.max(last.ns));
                series.push_back(Sample { ns, low: of(low), high: of(high) });
                while let Some(change) = changes.get(number).filter(|change| change.ticks <= ticks) {
                    number += 1;
                    let What::Event(summary) = &change.what else { continue };
                    if let Some(failed) = failures.get_mut(&(change.identity, summary.position)) {
                        failed.holders = (low == high).then(|| holders.clone());
                    }
                }
            },
        );
        let newest = series.back().map_or(0, |sample| sample.ns);
        while series.len() > 2 && series[1].ns + SERIES_NS < newest {
            series.pop_front();
        }
    }
}
