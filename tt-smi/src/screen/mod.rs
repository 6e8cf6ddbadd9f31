//! The live screen, with state, update and view kept apart. State knows no terminal; drawing changes no state.
//!
//! `action` lists what a user can do and `keys` which key does it; `state` changes, `frame` and the views draw; `feed`
//! reads what the current view needs; `run` puts them together.

mod action;
mod ascii;
mod data;
mod feed;
mod frame;
mod keys;
mod modals;
mod options;
mod page;
mod run;
mod signal;
mod state;
mod terminal;
mod theme;
mod trends;
mod views;
mod widgets;

pub use action::{Action, Motion, View};
pub use data::{Cores, Data, History, Live, More, Needs, NewEvents};
pub use frame::draw;
pub use keys::{BINDINGS, Binding, Key};
pub use modals::SignalTarget;
pub use options::Options;
pub use run::run;
pub use state::{Effect, Message, State};
pub use theme::{Palette, Part, Signs, Theme};
pub use trends::Trends;
#[cfg(test)]
pub(crate) use views::fixture;
