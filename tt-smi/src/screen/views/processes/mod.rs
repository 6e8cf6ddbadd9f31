//! To be filled.

use ratatui::Frame;

use crate::screen::page::{Page, Scene};

/// The view.
#[derive(Debug, Default)]
pub(crate) struct Processes {}

impl Page for Processes {
    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        frame.render_widget("to be filled", scene.area);
    }
}

impl Processes {
    /// Looks into one process.
    pub(crate) fn open(&mut self, _key: crate::screen::page::ProcessKey) {}
}
