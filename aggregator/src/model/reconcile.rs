//! Reconciling what processes claim about one device.

use shm_layout::DeviceEntry;
use shm_layout::claims::{Claims, Settled, Standing};

use crate::model::quota::Usage;

/// What is taken as true of a device, and who contradicts it.
pub(crate) struct Reconciled {
    pub(crate) settled: Settled,
    /// For each usage row, whether its process claims something else.
    pub(crate) disputed: Vec<(usize, bool)>,
    /// The user whose quota of device rows the device counts against.
    pub(crate) charged: u32,
}

/// Reconciles the claims of the processes that use a chip with what the driver says of it. `made_by` is the user who is
/// charged for its row now, `own` the aggregator's own user.
pub(crate) fn reconcile(
    chip_id: u64,
    made_by: u32,
    own: u32,
    driver: Option<&DeviceEntry>,
    mut usages: Vec<(usize, &Usage)>,
) -> Reconciled {
    usages.sort_by_key(|(_, usage)| usage.process);
    let mut claims = Claims::default();
    claims.add(Standing::Driver, driver);
    for process in usages.chunk_by(|(_, one), (_, two)| one.process == two.process) {
        claims.add(Standing::of(process[0].1.uid), process.iter().map(|(_, usage)| &usage.entry));
    }
    let settled = claims.settle(chip_id);
    let disputed = usages.iter().map(|(row, usage)| (*row, settled.is_disputed_by(&usage.entry))).collect();
    let charged = charged_for(own, made_by, usages.iter().map(|(_, usage)| usage.uid));
    Reconciled { settled, disputed, charged }
}

/// The user whose quota a device counts against: our own if one of our processes uses it; otherwise the user who made
/// the row, as long as one of their processes uses it; otherwise any user who does.
fn charged_for(own: u32, made_by: u32, mut users: impl Iterator<Item = u32> + Clone) -> u32 {
    let uses_it = |uid: &u32| users.clone().any(|user| user == *uid);
    [own, made_by].into_iter().find(uses_it).or_else(|| users.next()).unwrap_or(made_by)
}
