//! What events do to counters: against a model that adds everything up anew, and against the figures
//! that the design promises.

mod figures;
mod oracle;
mod properties;
