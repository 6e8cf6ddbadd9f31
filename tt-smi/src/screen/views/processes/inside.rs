//! One process: identity, problems, figures per device, and its largest allocations.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;

use super::figures::{self, Row};
use super::row::held;
use crate::lists::allocations::{Item, Listing};
use crate::model::{Model, Process, ProcessState};
use crate::output::units::{UNKNOWN, age, count, plural};
use crate::screen::action::Action;
use crate::screen::data::{Data, More, Needs};
use crate::screen::page::{Page, ProcessKey, Reply, Scene};
use crate::screen::views::allocations::items;
use crate::screen::widgets::list::{Hit, List, Look};
use crate::screen::widgets::text::split_top;

/// The process, and what is known about it.
#[derive(Debug)]
pub(crate) struct Inside {
    pub key: ProcessKey,
    process: Option<Box<Process>>,
    held: Option<String>,
    figures: Vec<Row>,
    figure_list: List<Row>,
    listing: Option<Arc<Listing>>,
    item_list: List<Item>,
    is_in_items: bool,
}

struct Parts {
    head: Rect,
    figures: Rect,
    title: Rect,
    items: Rect,
}

impl Inside {
    pub(super) fn new(key: ProcessKey) -> Inside {
        let mut inside = Inside {
            key,
            process: None,
            held: None,
            figures: Vec::new(),
            figure_list: List::new(figures::COLUMNS, 0, Row::number),
            listing: None,
            item_list: items::list(),
            is_in_items: true,
        };
        inside.focus(true);
        inside
    }

    fn focus(&mut self, is_in_items: bool) {
        self.is_in_items = is_in_items;
        self.item_list.focus(is_in_items);
        self.figure_list.focus(!is_in_items);
    }

    /// A process that is gone from the table stays as last seen.
    fn take_process(&mut self, found: Option<&Process>, model: &Model) {
        if let Some(process) = found {
            self.figures = figures::of(process, model.clock);
            self.held = held(process, model);
            self.process = Some(Box::new(process.clone()));
        } else if let Some(process) = &mut self.process {
            process.state = ProcessState::Ended;
        }
    }

    fn arrange(&mut self) {
        self.figure_list.arrange(&self.figures, |_| true);
        let identity = self.key.identity;
        let items = self.listing.as_ref().map_or(&[][..], |listing| &listing.items);
        self.item_list.arrange(items, |item| item.identity == identity);
    }

    fn items(&self) -> &[Item] {
        self.listing.as_ref().map_or(&[], |listing| &listing.items)
    }

    fn parts(&self, area: Rect) -> Parts {
        let head = self.head_lines().len().min(usize::from(area.height / 3).max(1)) as u16;
        let (head, rest) = split_top(area, head);
        let wanted = (self.figures.len() as u16).saturating_add(1).min(rest.height / 2);
        let rows = [Constraint::Length(wanted), Constraint::Length(1), Constraint::Min(0)];
        let [figures, title, items] = rest.layout(&Layout::vertical(rows));
        Parts { head, figures, title, items }
    }

    fn head_lines(&self) -> Vec<(String, bool)> {
        let Some(process) = &self.process else {
            let pid = self.key.pid.unwrap_or(self.key.namespace_pid);
            return vec![(format!(" Process {pid} does not report in this namespace."), true)];
        };
        let rate = process.events_per_second.map_or_else(|| UNKNOWN.to_owned(), count);
        let (pid, name, owner) = (process.pid_text(), &process.name, process.owner());
        let state = process.state_text();
        let mut lines = vec![(
            format!(" pid {pid}  {name}  of {owner}  {state}  {rate} events/s  {} old", age(process.age_ns)),
            false,
        )];
        let mut say = |text: String, is_warning| lines.push((text, is_warning));
        if let Some(command) = process.command() {
            say(format!(" {command}"), false);
        }
        if let Some(container) = process.info.as_ref().and_then(|info| info.container.as_ref()) {
            say(format!(" in {container}"), false);
        }
        if let Some(source) = told_by(process) {
            say(format!(" {source}"), process.self_checks[1] > 0);
        }
        if let Some(held) = &self.held {
            say(format!(" {held} when it ended"), false);
        }
        if process.unlisted > 0 {
            say(
                format!(" {} not listed: totals are exact", plural(process.unlisted, "live allocation")),
                true,
            );
        }
        if !process.flags().is_empty() {
            say(format!(" {}", process.flags().join(", ")), true);
        }
        lines
    }
}

/// Who writes its segment and how far that was checked, unless the process does so itself.
fn told_by(process: &Process) -> Option<String> {
    let [made, different] = process.self_checks;
    let source = (process.source != "ring").then(|| format!("reported by {}", process.source));
    let behalf = process.on_behalf_of.map(|pid| format!("on behalf of pid {pid}"));
    let checks = (made > 0).then(|| format!("{}, {different} mismatched", plural(made, "self-check")));
    let parts: Vec<String> = [source, behalf, checks].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

impl Page for Inside {
    fn needs(&self) -> Needs {
        Needs::Allocations
    }

    fn refresh(&mut self, data: &Data) {
        let key = self.key;
        let found = data.model.processes.iter().find(|process| ProcessKey::from(*process) == key);
        self.take_process(found, &data.model);
        if let More::Allocations(listing) = &data.more {
            self.listing = Some(listing.clone());
        }
        self.arrange();
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        let parts = self.parts(scene.area);
        match action {
            Action::NextPane => self.focus(!self.is_in_items),
            Action::Move(motion) if self.is_in_items => {
                let listing = self.listing.clone();
                let items = listing.as_ref().map_or(&[][..], |listing| &listing.items);
                self.item_list.go(motion, items, parts.items);
            }
            Action::Move(motion) => self.figure_list.go(motion, &self.figures, parts.figures),
            Action::Reverse => {
                if self.is_in_items {
                    self.item_list.reverse()
                } else {
                    self.figure_list.reverse()
                }
                self.arrange();
            }
            // It is already open.
            Action::Open => {}
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let parts = self.parts(scene.area);
        let listing = self.listing.clone();
        let items = listing.as_ref().map_or(&[][..], |listing| &listing.items);
        let hits = [
            self.figure_list.click(at, &self.figures, parts.figures),
            self.item_list.click(at, items, parts.items),
        ];
        if hits.contains(&Hit::Heading) {
            self.arrange();
        }
        match hits.iter().position(|hit| *hit != Hit::Nothing) {
            Some(place) => self.focus(place == 1),
            None => return Reply::Ignored,
        }
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (parts, theme) = (self.parts(scene.area), scene.theme);
        for (y, (text, is_warning)) in (parts.head.y..parts.head.bottom()).zip(self.head_lines()) {
            let style = if is_warning { theme.warn() } else { theme.heading() };
            frame.render_widget(Line::styled(text, style), Rect { y, height: 1, ..parts.head });
        }
        self.figure_list.draw(frame, parts.figures, &self.figures, theme, |figure| {
            Look::from(if figure.is_whole { theme.heading() } else { Default::default() })
        });
        let title = match (&self.listing, self.item_list.len()) {
            (None, _) => scene.unread("live allocations"),
            (Some(_), number) => format!(" {}, Tab switches", plural(number as u64, "live allocation")),
        };
        frame.render_widget(Line::styled(title, theme.dim()), parts.title);
        self.item_list.draw(frame, parts.items, self.items(), theme, |_| Look::default());
    }

    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        if self.is_in_items { self.item_list.sorts() } else { self.figure_list.sorts() }
    }

    fn sort_by(&mut self, choice: usize, _data: &Data) {
        if self.is_in_items {
            self.item_list.sort_by(choice)
        } else {
            self.figure_list.sort_by(choice)
        }
        self.arrange();
    }

    fn target(&self, _scene: &Scene<'_>) -> Option<ProcessKey> {
        self.process.as_ref().filter(|process| process.state == ProcessState::Alive).map(|_| self.key)
    }

    fn summary(&self) -> Option<String> {
        Some("Esc all processes".to_owned())
    }
}
