//! Pieces that views are put together from.

pub(crate) mod bar;
pub(crate) mod list;
pub(crate) mod text;
