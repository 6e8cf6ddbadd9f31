//! Reads the regions, at most ten times a second.

use std::time::Instant;

use tt_shm_region::{Regions, Roots};

use super::told::region_rows;
use crate::driver::reporters;
use crate::model::Model;

#[derive(Debug)]
pub(crate) struct RegionWatch {
    regions: Regions,
}

impl RegionWatch {
    pub(crate) fn new(roots: Roots) -> RegionWatch {
        RegionWatch { regions: Regions::new(roots) }
    }

    /// Reads what is due into the model.
    pub(crate) fn poll(&mut self, model: &mut Model) {
        if !self.regions.poll(Instant::now()) || self.regions.regions().is_empty() && model.regions.is_empty()
        {
            return;
        }
        let reporters = reporters(model);
        let rows = self.regions.regions().iter().flat_map(|region| region_rows(region, &reporters));
        model.see_regions(rows.collect(), self.regions.left_out() as u64);
    }
}
