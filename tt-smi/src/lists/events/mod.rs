//! Events, in the order in which they happened.

mod line;
mod seen;
mod tail;
mod text;
mod totals;
mod watch;
mod what;

pub use line::Happened;
pub use seen::Seen;
pub use tail::Tail;
pub use watch::Watch;
