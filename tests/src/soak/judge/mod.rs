//! The judge of a soak: every claim that is published is compared with the truth.
//!
//! Each writer logs every call with the clock before and after it and the stamp of its events, which it reads back
//! from its own ring ([`log`], [`actor`]). The [`oracle`] merges these logs by stamp, with an accounting of its own
//! ([`account`]), into what was true at every moment. [`claims`] extracts what a table says, whatever its layout, and
//! [`verdict`] compares: what is called exact is equal, a range contains the truth, a time is right within 1 ms.

pub mod account;
pub mod actor;
pub mod claims;
pub mod log;
pub mod maxima;
pub mod oracle;
pub mod run;
pub mod shown;
pub mod sums;
pub mod timeline;
pub mod verdict;
