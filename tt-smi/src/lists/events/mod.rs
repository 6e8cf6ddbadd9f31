//! Events, in the order in which they happened.

mod line;
mod tail;
mod text;
mod totals;
mod watch;

pub use line::Happened;
pub use tail::Tail;
pub use watch::Watch;
