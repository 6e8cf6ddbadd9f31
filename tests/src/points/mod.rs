//! Ends real processes at every test point, and compares what is left with an oracle.
//!
//! [`trap`] is the helper's side: it raises the signal at the visit that the environment names. [`step`] is
//! what a writing helper does, [`oracle`] what must be seen of it, [`look`] what readers and an aggregator do
//! see. [`place`] finds the point of a store. [`case`] runs a helper into its trap; [`coverage`] keeps account of the points.

pub mod case;
pub mod coverage;
pub mod look;
pub mod oracle;
pub mod place;
pub mod point;
pub mod step;
pub mod trap;
