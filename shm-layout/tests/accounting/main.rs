//! What events do to counters, compared with a model that adds everything up again, and with the figures that
//! the design promises.

mod figures;
mod oracle;
mod properties;
