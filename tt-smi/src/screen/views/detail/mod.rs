//! To be filled.

use ratatui::Frame;

use crate::screen::page::{Page, Scene};

/// The view.
#[derive(Debug, Default)]
pub(crate) struct Detail {}

impl Page for Detail {
    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        frame.render_widget("to be filled", scene.area);
    }
}
