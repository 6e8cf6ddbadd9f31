//! What each process used of DRAM over the last minute, as far as the screen was there to see it. The table has the history
//! of devices; that of each process would be many times as much.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::Model;

/// Samples that are kept, one each second.
pub(crate) const SAMPLES: usize = 60;
const EVERY: Duration = Duration::from_secs(1);

/// Samples of each process, by its identity, oldest first; `None` where nothing was known.
pub type Trends = HashMap<u64, Vec<Option<u64>>>;

/// Takes a sample each second.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    trends: Arc<Trends>,
    due: Option<Instant>,
}

impl Sampler {
    /// The samples, with a new one if it is time.
    pub(crate) fn sample(&mut self, model: &Model, now: Instant) -> Arc<Trends> {
        if self.due.is_some_and(|due| now < due) {
            return self.trends.clone();
        }
        // Seconds in which nothing was read are unknown.
        let late = self.due.map_or(0, |due| now.duration_since(due).as_secs() as usize).min(SAMPLES);
        self.due = Some(now + EVERY);
        let mut trends = Trends::new();
        for process in &model.processes {
            let mut samples = self.trends.get(&process.identity).cloned().unwrap_or_default();
            if !samples.is_empty() {
                samples.extend(std::iter::repeat_n(None, late));
            }
            samples.push(process.total(|held| held.dram.used).filter(|_| process.is_alive()));
            samples.drain(..samples.len().saturating_sub(SAMPLES));
            trends.insert(process.identity, samples);
        }
        self.trends = Arc::new(trends);
        self.trends.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::More;
    use crate::screen::views::fixture;

    #[test]
    fn a_sample_each_second_and_gaps_stay_unknown() {
        let (mut sampler, start) = (Sampler::default(), Instant::now());
        let after = |ms: u64| start + Duration::from_millis(ms);
        let model = fixture::data(2, 1, More::None).model;
        let identity = model.processes[0].identity;
        for ms in [0, 400, 999, 1000, 4500] {
            sampler.sample(&model, after(ms));
        }
        let trends = sampler.sample(&model, after(4600));
        assert_eq!(trends[&identity], [Some(2), Some(2), None, None, Some(2)]);
        for second in 0..90 {
            sampler.sample(&model, after(6000 + second * 1000));
        }
        assert_eq!(sampler.sample(&model, after(6000)).get(&identity).map(Vec::len), Some(SAMPLES));
        let none = sampler.sample(&fixture::data(1, 0, More::None).model, after(200_000));
        assert!(none.is_empty(), "whoever is gone is forgotten");
    }
}
