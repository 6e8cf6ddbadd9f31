//! Sending a signal: the menu, and the confirmation.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use rustix::process::Signal;

use super::{Menu, Outcome, SignalTarget, draw_box};
use crate::escape::fit;
use crate::screen::theme::Theme;

/// The signals on offer.
const SIGNALS: [(Signal, &str, &str); 7] = [
    (Signal::TERM, "TERM", "ask to terminate"),
    (Signal::INT, "INT", "interrupt, like Ctrl-C"),
    (Signal::HUP, "HUP", "hang up"),
    (Signal::KILL, "KILL", "kill immediately"),
    (Signal::STOP, "STOP", "stop"),
    (Signal::CONT, "CONT", "continue"),
    (Signal::USR1, "USR1", "user-defined"),
];

/// The menu of signals.
pub(super) fn menu(pid: u32) -> Menu {
    let choices = SIGNALS.map(|(signal, name, what)| format!("{:>2} {name:<5} {what}", signal.as_raw()));
    Menu::new(format!(" signal to {pid} "), choices.to_vec(), 0)
}

#[derive(Debug)]
pub(crate) struct Question {
    to: SignalTarget,
    choice: usize,
}

impl Question {
    pub(super) fn new(to: SignalTarget, choice: usize) -> Question {
        Question { to, choice }
    }

    /// Only `y` sends it.
    pub(super) fn key(&self, key: KeyEvent) -> Outcome {
        match (key.code, SIGNALS.get(self.choice)) {
            (KeyCode::Char('y' | 'Y'), Some((signal, ..))) => {
                Outcome::Signal { to: self.to.clone(), signal: signal.as_raw() }
            }
            _ => Outcome::Closed,
        }
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let name = SIGNALS.get(self.choice).map_or("", |(_, name, _)| name);
        let SignalTarget { pid, user, command, .. } = &self.to;
        let ask = format!("Send SIG{name} to process {pid} of {user}?");
        // Without the frame and its padding.
        let command = fit(command, usize::from(area.width.saturating_sub(4)));
        let lines = vec![
            Line::styled(ask, theme.warn()),
            Line::from(command),
            Line::from("y sends it, any other key cancels"),
        ];
        draw_box(frame, area, " signal ", lines, theme);
    }
}

/// The name of a signal.
pub(crate) fn name(signal: i32) -> &'static str {
    SIGNALS.iter().find(|(known, ..)| known.as_raw() == signal).map_or("signal", |(_, name, _)| name)
}
