//! Pieces that views are put together from.

pub(crate) mod bar;
pub(crate) mod device;
pub(crate) mod graph;
pub(crate) mod in_full;
pub(crate) mod list;
pub(crate) mod panel;
pub(crate) mod process;
pub(crate) mod stack;
pub(crate) mod text;
pub(crate) mod trend;
pub(crate) mod window;
