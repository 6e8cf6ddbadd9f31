//! The figures of an allocation that failed, for scripts.

use serde::Serialize;

use crate::model::Shortage;

/// What was asked for, needed and free.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ShortageJson {
    request_bytes: u64,
    free_bytes: Option<u64>,
    largest_free_bytes: Option<u64>,
    needed_per_bank_bytes: Option<u64>,
    banks: Option<u64>,
    /// Whether what was free is of one bank.
    per_bank: bool,
}

impl From<Shortage> for ShortageJson {
    fn from(shortage: Shortage) -> ShortageJson {
        let Shortage { request, free, largest_free, needed_per_bank, banks, per_bank } = shortage;
        ShortageJson {
            request_bytes: request,
            free_bytes: free,
            largest_free_bytes: largest_free,
            needed_per_bank_bytes: needed_per_bank,
            banks,
            per_bank,
        }
    }
}
