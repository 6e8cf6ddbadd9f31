//! What opens in front of a view: help, menus, confirmations, the filter input.

mod filter;
mod help;
mod input;
mod search;
mod signal;

pub(crate) use signal::name as signal_name;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::action::{Motion, View};
use super::theme::Theme;
use super::widgets::text::{centered, split_bottom};
use crate::escape::Foreign;
use crate::query::{Field, Query};
use filter::Filter;
use help::Help;
use search::Search;
use signal::Question;

#[derive(Debug)]
pub(crate) enum Modal {
    Help(Help),
    Filter(Filter),
    Search(Search),
    /// The menu of columns to show.
    Columns(Menu),
    /// The menu of sort columns.
    Sort(Menu),
    /// The menu of signals.
    Signal(SignalTarget, Menu),
    /// The confirmation of a signal.
    Confirm(Question),
}

/// A process that a signal can be sent to: /proc confirms its pid, owner and start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalTarget {
    pub pid: u32,
    /// Start time in clock ticks since boot: the pid may be reused while the user thinks.
    pub start_ticks: u64,
    /// Owner of its segment.
    pub uid: u32,
    /// The owner's name, else the user id.
    pub user: String,
    /// Its command line, else the name it reports.
    pub command: Foreign,
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The modal stays open.
    Open,
    /// The modal closes, and nothing happens.
    Closed,
    Filter(Query),
    /// The filter as far as it is written; the modal stays open.
    Filtering(Query),
    /// Search a text, after the selected row if so; the modal stays open.
    Search(String, bool),
    /// Show or hide a column; the modal stays open.
    Column(usize),
    /// Sort by this column.
    Sort(usize),
    Signal {
        to: SignalTarget,
        signal: i32,
    },
}

impl Modal {
    /// The keys of a view.
    pub(crate) fn help(view: View) -> Modal {
        Modal::Help(Help::new(view))
    }

    /// A filter input.
    pub(crate) fn filter(query: &Query, fields: &'static [Field]) -> Modal {
        Modal::Filter(Filter::new(query, fields))
    }

    /// A search input.
    pub(crate) fn search() -> Modal {
        Modal::Search(Search::default())
    }

    /// A menu of columns, each shown or not.
    pub(crate) fn columns(columns: &[(&'static str, bool)], selected: usize) -> Modal {
        let sign = |shown: bool| if shown { 'x' } else { ' ' };
        let choices = columns.iter().map(|(name, shown)| format!("[{}] {name}", sign(*shown))).collect();
        Modal::Columns(Menu::new(" columns: Enter shows or hides, Esc closes ", choices, selected))
    }

    /// A menu of sort columns.
    pub(crate) fn sort(names: Vec<&'static str>, now: Option<usize>) -> Modal {
        let names = names.into_iter().map(str::to_owned).collect();
        Modal::Sort(Menu::new(" sort by ", names, now.unwrap_or(0)))
    }

    /// A menu of signals for a process.
    pub(crate) fn signal(to: SignalTarget) -> Modal {
        let menu = signal::menu(to.pid);
        Modal::Signal(to, menu)
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome {
        if key.code == KeyCode::Esc {
            return match self {
                Modal::Filter(filter) => Outcome::Filter(filter.before().clone()),
                _ => Outcome::Closed,
            };
        }
        match self {
            Modal::Help(help) => help.key(key),
            Modal::Filter(filter) => filter.key(key),
            Modal::Search(search) => search.key(key),
            Modal::Columns(menu) => {
                // As in other programs: both tick a box.
                let key = if key.code == KeyCode::Char(' ') { KeyCode::Enter.into() } else { key };
                menu.key(key).map_or(Outcome::Open, Outcome::Column)
            }
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

    /// Handles the mouse wheel.
    pub(crate) fn scroll(&mut self, lines: i32) {
        match self {
            Modal::Help(help) => help.go(Motion::Lines(lines)),
            Modal::Sort(menu) | Modal::Columns(menu) | Modal::Signal(_, menu) => menu.go(lines),
            Modal::Confirm(_) | Modal::Filter(_) | Modal::Search(_) => {}
        }
    }
}

/// Draws the open modal.
pub(crate) fn draw(modal: &Modal, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    match modal {
        Modal::Help(help) => help.draw(frame, area, theme),
        Modal::Filter(filter) => filter.draw(frame, area, theme),
        Modal::Search(search) => search.draw(frame, area, theme),
        Modal::Sort(menu) | Modal::Columns(menu) | Modal::Signal(_, menu) => menu.draw(frame, area, theme),
        Modal::Confirm(question) => question.draw(frame, area, theme),
    }
}

/// Draws a box with lines in the middle of an area.
fn draw_box(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, theme: &Theme) {
    let width = lines.iter().map(Line::width).chain([title.len()]).max().unwrap_or(0) as u16 + 4;
    draw_box_in(frame, centered(area, width, lines.len() as u16 + 2), title, lines, theme);
}

/// Draws a box with lines at the bottom of an area, so that the list stays visible above it.
fn draw_low_box(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, theme: &Theme) {
    let (_, area) = split_bottom(area, lines.len() as u16 + 2);
    draw_box_in(frame, area, title, lines, theme);
}

fn draw_box_in(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, theme: &Theme) {
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(title.to_owned()).title_style(theme.heading());
    let padded = ratatui::widgets::Padding::horizontal(1);
    frame.render_widget(Paragraph::new(lines).block(block.padding(padded)), area);
}

/// A menu: the choices, and the highlighted one.
#[derive(Debug)]
pub(crate) struct Menu {
    title: String,
    choices: Vec<String>,
    selected: usize,
}

impl Menu {
    fn new(title: impl Into<String>, choices: Vec<String>, selected: usize) -> Menu {
        Menu { title: title.into(), choices, selected }
    }

    /// Handles a key; returns the choice if one was made.
    fn key(&mut self, key: KeyEvent) -> Option<usize> {
        match key.code {
            KeyCode::Enter => return Some(self.selected),
            KeyCode::Up | KeyCode::Char('k') => self.go(-1),
            KeyCode::Down | KeyCode::Char('j') => self.go(1),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.go(i32::MAX),
            _ => {}
        }
        None
    }

    fn go(&mut self, lines: i32) {
        let last = self.choices.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(lines as isize).min(last);
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let room = usize::from(area.height.saturating_sub(2)).max(1);
        let top = (self.selected + 1).saturating_sub(room);
        let choices = self.choices.iter().enumerate().skip(top).take(room);
        let line = |(place, choice): (usize, &String)| match place == self.selected {
            true => Line::styled(choice.clone(), theme.selected()),
            false => Line::from(choice.clone()),
        };
        draw_box(frame, area, &self.title, choices.map(line).collect(), theme);
    }
}
