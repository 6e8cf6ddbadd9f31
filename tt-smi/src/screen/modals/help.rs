//! The help: the same table of keys that the handler uses.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Outcome, draw_box};
use crate::screen::action::{Action, Motion, View};
use crate::screen::keys::{self, BINDINGS, Binding};
use crate::screen::theme::Theme;

/// Lines that a page moves by.
const PAGE: usize = 8;

/// The keys of a view, and the scroll position.
#[derive(Debug)]
pub(crate) struct Help {
    view: View,
    top: usize,
}

impl Help {
    pub(super) fn new(view: View) -> Help {
        Help { view, top: 0 }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Outcome {
        match keys::action(key, self.view) {
            Some(Action::Move(motion)) => self.go(motion),
            Some(Action::Help | Action::Quit) => return Outcome::Closed,
            _ if key.code == KeyCode::Enter => return Outcome::Closed,
            _ => {}
        }
        Outcome::Open
    }

    pub(super) fn go(&mut self, motion: Motion) {
        let last = bindings(self.view).count().saturating_sub(1);
        self.top = motion.target(self.top, last, PAGE).unwrap_or(self.top);
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let room = usize::from(area.height.saturating_sub(2));
        let all = bindings(self.view).count();
        let top = self.top.min(all.saturating_sub(room));
        let width = bindings(self.view).map(|binding| binding.shown().len()).max().unwrap_or(0);
        let line = |binding: &'static Binding| {
            let keys = Span::styled(format!("{:>width$}  ", binding.shown()), theme.heading());
            Line::from(vec![keys, Span::raw(binding.help)])
        };
        let lines = bindings(self.view).skip(top).take(room).map(line).collect();
        let more = if top + room < all { ", down for more" } else { "" };
        draw_box(frame, area, &format!(" keys: {}{more} ", self.view.name()), lines, theme);
    }
}

fn bindings(view: View) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |binding| binding.is_in(view))
}
