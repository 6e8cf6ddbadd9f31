//! What opens in front of a view: help, menus, questions, a line to write in.

mod filter;
mod help;
mod menu;
mod signal;
pub(crate) use signal::name as signal_name;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::action::View;
use super::theme::Theme;
use super::widgets::text::centered;
use crate::escape::Foreign;
use crate::query::{Field, Query};
use filter::Filter;
use help::Help;
use menu::Menu;
use signal::Question;

/// What is open.
#[derive(Debug)]
pub(crate) enum Modal {
    /// The keys.
    Help(Help),
    /// What is wanted.
    Filter(Filter),
    /// What to sort by.
    Sort(Menu),
    /// Which signal to send.
    Signal(Chosen, Menu),
    /// Whether to send it.
    Confirm(Question),
}

/// A process that was chosen: one whose pid, owner and start the system confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks since boot: while the user thinks, the pid may become another's.
    pub start_ticks: u64,
    /// Owner of its segment.
    pub uid: u32,
    /// The owner's name, else the number.
    pub user: String,
    /// Its command line, else what it calls itself.
    pub command: Foreign,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It stays open.
    Open,
    /// It closes, and nothing happens.
    Closed,
    /// Show only this.
    Filter(Query),
    /// Sort by this.
    Sort(usize),
    /// Send this.
    Signal {
        /// To this process.
        to: Chosen,
        /// By number.
        signal: i32,
    },
}

impl Modal {
    /// The keys of a view.
    pub(crate) fn help(view: View) -> Modal {
        Modal::Help(Help::new(view))
    }

    /// A line to write a filter in.
    pub(crate) fn filter(query: &Query, fields: &'static [Field]) -> Modal {
        Modal::Filter(Filter::new(query, fields))
    }

    /// A menu of what to sort by.
    pub(crate) fn sort(names: Vec<&'static str>, now: Option<usize>) -> Modal {
        let names = names.into_iter().map(str::to_owned).collect();
        Modal::Sort(Menu::new(" sort by ", names, now.unwrap_or(0)))
    }

    /// A menu of signals for a process.
    pub(crate) fn signal(to: Chosen) -> Modal {
        let menu = signal::menu(to.pid);
        Modal::Signal(to, menu)
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome {
        if key.code == KeyCode::Esc {
            return Outcome::Closed;
        }
        match self {
            Modal::Help(help) => help.key(key),
            Modal::Filter(filter) => filter.key(key).map_or(Outcome::Open, Outcome::Filter),
            Modal::Sort(menu) => menu.key(key).map_or(Outcome::Open, Outcome::Sort),
            Modal::Signal(to, menu) => {
                if let Some(choice) = menu.key(key) {
                    *self = Modal::Confirm(Question::new(to.clone(), choice));
                }
                Outcome::Open
            }
            Modal::Confirm(question) => question.key(key),
        }
    }

    /// Takes the wheel.
    pub(crate) fn scroll(&mut self, lines: i32) {
        match self {
            Modal::Help(help) => help.scroll(lines),
            Modal::Sort(menu) | Modal::Signal(_, menu) => menu.go(lines),
            Modal::Confirm(_) | Modal::Filter(_) => {}
        }
    }
}

/// Draws what is open.
pub(crate) fn draw(modal: &Modal, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    match modal {
        Modal::Help(help) => help.draw(frame, area, theme),
        Modal::Filter(filter) => filter.draw(frame, area, theme),
        Modal::Sort(menu) | Modal::Signal(_, menu) => menu.draw(frame, area, theme),
        Modal::Confirm(question) => question.draw(frame, area, theme),
    }
}

/// A box in the middle with lines in it.
fn draw_box(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, theme: &Theme) {
    let width = lines.iter().map(Line::width).chain([title.len()]).max().unwrap_or(0) as u16 + 4;
    let area = centered(area, width, lines.len() as u16 + 2);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(title.to_owned()).title_style(theme.heading());
    let padded = ratatui::widgets::Padding::horizontal(1);
    frame.render_widget(Paragraph::new(lines).block(block.padding(padded)), area);
}
