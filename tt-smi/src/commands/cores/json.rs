//! The L1 of cores as JSON.

use serde::Serialize;

use crate::lists::cores::DeviceCores;
use crate::model::Clock;
use crate::output::json::Envelope;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CoresJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// The devices that processes report, by index.
    devices: &'a [DeviceCores],
    /// What could not be read or is in doubt; with file, owner, reason and what to do. Many alike are one.
    errors: &'a [String],
}

impl<'a> CoresJson<'a> {
    pub(super) fn new(devices: &'a [DeviceCores], errors: &'a [String], namespace: &str) -> CoresJson<'a> {
        CoresJson { envelope: Envelope::new(Clock::now(), &crate::model::host(), namespace), devices, errors }
    }
}
