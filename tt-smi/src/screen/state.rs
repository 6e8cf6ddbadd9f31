//! What the screen shows, and how that changes.

use crate::model::Model;

/// The state.
#[derive(Debug)]
pub struct State {
    /// The namespace that is looked at.
    pub namespace: String,
    /// The latest figures.
    pub model: Option<Box<Model>>,
    /// New figures are ignored.
    pub frozen: bool,
    /// It is time to end.
    pub quit: bool,
}

/// What can happen.
#[derive(Debug)]
pub enum Message {
    /// New figures.
    Figures(Box<Model>),
    /// Stop or go on.
    Freeze,
    /// The terminal has another size.
    Redraw,
    /// End.
    Quit,
}

impl State {
    /// Nothing known yet.
    pub fn new(namespace: &str) -> State {
        State { namespace: namespace.to_owned(), model: None, frozen: false, quit: false }
    }

    /// Takes in what happened.
    pub fn update(&mut self, message: Message) {
        match message {
            Message::Figures(model) if !self.frozen || self.model.is_none() => self.model = Some(model),
            Message::Figures(_) | Message::Redraw => {}
            Message::Freeze => self.frozen = !self.frozen,
            Message::Quit => self.quit = true,
        }
    }
}
