//! The state of the screen, and how it changes. Knows no terminal.

use std::time::Duration;

use crossterm::event::{KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect, Size};

use super::action::{Action, Motion, View};
use super::data::{Data, Needs};
use super::frame::Areas;
use super::keys;
use super::modals::{Modal, Outcome, SignalTarget};
use super::options::Options;
use super::page::{Page, ProcessKey, Reply, Scene};
use super::theme::Theme;
use super::views::Pages;
use crate::model::Process;

/// Refresh intervals, shortest first.
const INTERVALS_MS: [u64; 8] = [50, 100, 250, 500, 1000, 2000, 5000, 10_000];

#[derive(Debug)]
pub struct State {
    pub(crate) namespace: String,
    /// The options at the start.
    pub(crate) options: Options,
    pub(crate) view: View,
    pub(crate) pages: Pages,
    pub(crate) data: Option<Box<Data>>,
    /// The chip shown by single-device views.
    pub(crate) chip: Option<u64>,
    /// A modal in front of the view.
    pub(crate) modal: Option<Modal>,
    /// A message, shown until the next key.
    pub(crate) message: Option<String>,
    pub(crate) theme: Theme,
    /// Whether updates are frozen.
    pub(crate) frozen: bool,
    pub(crate) interval: Duration,
    pub(crate) quit: bool,
    size: Size,
}

/// An input of the state machine.
#[derive(Debug)]
pub enum Message {
    Data(Box<Data>),
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// The terminal has this size.
    Size(Size),
    /// The result of an effect.
    Note(String),
}

/// What the state asks the main loop to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Read what the view needs, now.
    Refresh,
    Signal {
        to: SignalTarget,
        signal: i32,
    },
}

impl State {
    /// The initial state, without data.
    pub fn new(namespace: &str, options: Options) -> State {
        State {
            namespace: namespace.to_owned(),
            view: options.view,
            theme: options.theme,
            interval: options.interval,
            options,
            pages: Pages::default(),
            data: None,
            chip: None,
            modal: None,
            message: None,
            frozen: false,
            quit: false,
            size: Size::new(80, 24),
        }
    }

    pub fn is_over(&self) -> bool {
        self.quit
    }

    /// Whether updates are frozen.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// What the current view needs.
    pub fn needs(&self) -> Needs {
        self.pages.get(self.view).needs()
    }

    /// Handles an input.
    pub fn update(&mut self, message: Message) -> Option<Effect> {
        let needed = self.needs();
        let effect = match message {
            Message::Data(data) => {
                self.take_in(data);
                return None;
            }
            Message::Key(key) => self.key(key),
            Message::Mouse(mouse) => self.mouse(mouse),
            Message::Size(size) => {
                self.size = size;
                None
            }
            Message::Note(text) => {
                self.message = Some(text);
                None
            }
        };
        // Data for a view that has just been opened have not been read yet.
        effect.or_else(|| (self.needs() != needed).then_some(Effect::Refresh))
    }

    fn take_in(&mut self, data: Box<Data>) {
        if self.frozen && self.data.is_some() {
            return;
        }
        self.pages.allocations.watch(&data);
        self.pages.overview.watch(&data, self.pages.allocations.suspects());
        self.pages.get_mut(self.view).refresh(&data);
        self.data = Some(data);
    }

    fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        self.message = None;
        // Ctrl-C works in every menu.
        if keys::is_interrupt(key) {
            return self.act(Action::Quit);
        }
        if let Some(modal) = &mut self.modal {
            let outcome = modal.key(key);
            return self.after_modal(outcome);
        }
        keys::action(key, self.view).and_then(|action| self.act(action))
    }

    /// Handles an action.
    pub(crate) fn act(&mut self, action: Action) -> Option<Effect> {
        match action {
            Action::Quit => self.quit = true,
            Action::Help => self.modal = Some(Modal::help(self.view)),
            Action::Show(view) => return self.show(view),
            Action::Freeze => self.frozen = !self.frozen,
            Action::Faster => self.change_interval(-1),
            Action::Slower => self.change_interval(1),
            Action::Theme => self.change_theme(self.theme.next_palette()),
            Action::Signs => self.change_theme(self.theme.next_signs()),
            Action::NextDevice => self.change_device(1),
            Action::PreviousDevice => self.change_device(-1),
            Action::Filter => self.open_filter(),
            Action::SortMenu => self.open_sort_menu(),
            Action::Search => self.open_search(),
            Action::Columns => self.open_columns(0),
            Action::Signal => self.open_signal_menu(),
            _ => {
                let reply = self.with_page(|page, scene| page.act(action, scene));
                return self.after_page(reply, action);
            }
        }
        None
    }

    fn mouse(&mut self, mouse: MouseEvent) -> Option<Effect> {
        let at = Position::new(mouse.column, mouse.row);
        let is_shifted = mouse.modifiers.contains(KeyModifiers::SHIFT);
        match mouse.kind {
            // With Shift, the wheel scrolls sideways; some terminals report that themselves.
            MouseEventKind::ScrollDown if is_shifted => self.wheel_aside(1),
            MouseEventKind::ScrollUp if is_shifted => self.wheel_aside(-1),
            MouseEventKind::ScrollRight => self.wheel_aside(1),
            MouseEventKind::ScrollLeft => self.wheel_aside(-1),
            MouseEventKind::ScrollDown => self.wheel(3),
            MouseEventKind::ScrollUp => self.wheel(-3),
            MouseEventKind::Down(MouseButton::Left) => self.click(at),
            _ => None,
        }
    }

    fn wheel(&mut self, lines: i32) -> Option<Effect> {
        match &mut self.modal {
            Some(modal) => {
                modal.scroll(lines);
                None
            }
            None => self.act(Action::Move(Motion::Lines(lines))),
        }
    }

    fn wheel_aside(&mut self, steps: i32) -> Option<Effect> {
        match self.modal {
            Some(_) => None,
            None => self.act(Action::Move(Motion::Aside(steps))),
        }
    }

    fn click(&mut self, at: Position) -> Option<Effect> {
        self.message = None;
        if self.modal.is_some() {
            // A click outside of a menu closes it.
            self.modal = None;
            return None;
        }
        let areas = self.areas();
        let has_telemetry = self.data.as_ref().is_some_and(|data| data.model.has_telemetry());
        if let Some(view) = areas.tab_at(at, self.view, has_telemetry) {
            return self.show(view);
        }
        if !areas.body.contains(at) {
            return None;
        }
        let reply = self.with_page(|page, scene| page.click(at, scene));
        self.after_page(reply, Action::Open)
    }

    fn show(&mut self, view: View) -> Option<Effect> {
        if view == self.view {
            return None;
        }
        self.view = view;
        // A frozen screen shows one moment: another view shows only what had been read by then.
        if let Some(data) = &self.data {
            self.pages.get_mut(view).refresh(data);
        }
        Some(Effect::Refresh)
    }

    fn change_interval(&mut self, step: isize) {
        let now = self.interval.as_millis() as u64;
        let place = INTERVALS_MS.iter().position(|ms| *ms >= now).unwrap_or(INTERVALS_MS.len() - 1);
        let place = place.saturating_add_signed(step).min(INTERVALS_MS.len() - 1);
        self.interval = Duration::from_millis(INTERVALS_MS[place]);
        self.message = Some(format!("refresh every {}", interval_text(self.interval)));
    }

    /// Says what it is: not every view has something that looks different.
    fn change_theme(&mut self, theme: Theme) {
        self.message = Some(theme.describe());
        self.theme = theme;
    }

    fn change_device(&mut self, step: isize) {
        let count = self.data.as_ref().map_or(0, |data| data.model.devices.len());
        if count > 0 {
            let place = (self.device() as isize + step).rem_euclid(count as isize) as usize;
            self.chip = self.chip_at(place);
        }
    }

    fn chip_at(&self, index: usize) -> Option<u64> {
        self.data.as_ref()?.model.devices.get(index).map(|device| device.id.chip_id)
    }

    /// Index of the device shown by single-device views.
    pub(crate) fn device(&self) -> usize {
        let devices = self.data.as_ref().map_or(&[][..], |data| &data.model.devices);
        devices.iter().position(|device| Some(device.id.chip_id) == self.chip).unwrap_or(0)
    }

    fn after_page(&mut self, reply: Reply, action: Action) -> Option<Effect> {
        match reply {
            Reply::Done => None,
            Reply::Ignored if action == Action::Back => self.show(View::Overview),
            Reply::Ignored | Reply::OpenRow => None,
            Reply::Device(index, view) => {
                self.chip = self.chip_at(index);
                self.show(view)
            }
            Reply::Choose(index) => {
                self.chip = self.chip_at(index);
                None
            }
            Reply::Suspects => {
                self.pages.allocations.show_suspects();
                self.show(View::Allocations)
            }
            Reply::MapOfL1 => {
                self.pages.map.show_l1();
                self.show(View::Map)
            }
            Reply::Process(key) => {
                self.pages.processes.open(key);
                self.show(View::Processes)
            }
            Reply::Say(text) => {
                self.message = Some(text);
                None
            }
        }
    }

    fn open_filter(&mut self) {
        let page = self.pages.get(self.view);
        if !page.fields().is_empty() {
            self.modal = Some(Modal::filter(&page.query(), page.fields()));
        }
    }

    fn open_search(&mut self) {
        // Lists have columns; what has none has no rows to search.
        if !self.pages.get(self.view).columns().is_empty() {
            self.modal = Some(Modal::search());
        }
    }

    fn open_columns(&mut self, selected: usize) {
        let columns = self.pages.get(self.view).columns();
        if !columns.is_empty() {
            self.modal = Some(Modal::columns(&columns, selected));
        }
    }

    fn open_sort_menu(&mut self) {
        let (names, now) = self.pages.get(self.view).sorts();
        if !names.is_empty() {
            self.modal = Some(Modal::sort(names, now));
        }
    }

    fn open_signal_menu(&mut self) {
        if self.options.readonly {
            self.message = Some("signals are disabled (readonly)".to_owned());
            return;
        }
        let target = self.target().and_then(|key| self.process(key));
        match target.map(|process| (process, signal_target(process))) {
            Some((_, Some(target))) => self.modal = Some(Modal::signal(target)),
            Some((Process { pid: Some(pid), on_behalf_of: Some(client), .. }, None)) => {
                self.message = Some(format!(
                    "no signal sent: {pid} is the bridge, which would end for all its clients; the client is {client}"
                ));
            }
            Some((process, None)) if process.is_claimed() => {
                let (pid, owner) = (process.pid_short(), process.owner());
                self.message = Some(format!(
                    "no signal sent: {pid} is only claimed by a segment of {owner}, and /proc does not confirm it"
                ));
            }
            _ => self.message = Some("no process selected that can be sent a signal".to_owned()),
        }
    }

    fn process(&self, key: ProcessKey) -> Option<&Process> {
        let processes = self.data.as_ref().map_or(&[][..], |data| &data.model.processes);
        processes.iter().find(|process| ProcessKey::from(*process) == key)
    }

    fn target(&self) -> Option<ProcessKey> {
        let data = self.data.as_ref()?;
        self.pages.get(self.view).target(&self.scene(data))
    }

    fn after_modal(&mut self, outcome: Outcome) -> Option<Effect> {
        match outcome {
            Outcome::Open => return None,
            Outcome::Closed => {}
            Outcome::Filtering(query) => {
                if let Some(data) = &self.data {
                    self.pages.get_mut(self.view).filter(query, data);
                }
                return None;
            }
            Outcome::Search(text, after) => {
                let found = self.pages.get_mut(self.view).search(&text, after);
                if let Some(Modal::Search(search)) = &mut self.modal {
                    search.in_vain = found == Some(false);
                }
                return None;
            }
            Outcome::Column(place) => {
                self.pages.get_mut(self.view).toggle_column(place);
                self.open_columns(place);
                return None;
            }
            Outcome::Filter(query) => {
                if let Some(data) = &self.data {
                    self.pages.get_mut(self.view).filter(query, data);
                }
            }
            Outcome::Sort(choice) => {
                if let Some(data) = &self.data {
                    self.pages.get_mut(self.view).sort_by(choice, data);
                }
            }
            Outcome::Signal { to, signal } => {
                self.modal = None;
                return Some(Effect::Signal { to, signal });
            }
        }
        self.modal = None;
        None
    }

    fn with_page(&mut self, ask: impl FnOnce(&mut dyn Page, &Scene<'_>) -> Reply) -> Reply {
        let (device, area) = (self.device(), self.areas().body);
        let Some(data) = &self.data else { return Reply::Ignored };
        let scene = Scene { data, device, area, theme: &self.theme, frozen: self.frozen };
        ask(self.pages.get_mut(self.view), &scene)
    }

    /// The scene of the current view.
    pub(crate) fn scene<'a>(&'a self, data: &'a Data) -> Scene<'a> {
        let area = self.areas().body;
        Scene { data, device: self.device(), area, theme: &self.theme, frozen: self.frozen }
    }

    /// The layout of the screen.
    pub(crate) fn areas(&self) -> Areas {
        Areas::of(Rect::from((Position::ORIGIN, self.size)))
    }
}

/// `250ms`, `2s`.
pub(crate) fn interval_text(interval: Duration) -> String {
    match interval.as_millis() {
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// A process that may be sent a signal: /proc confirms its claims, and its memory is its own.
fn signal_target(process: &Process) -> Option<SignalTarget> {
    let is_meant = process.claimed == Some(false) && process.on_behalf_of.is_none();
    Some(SignalTarget {
        pid: u32::try_from(process.pid?).ok().filter(|_| is_meant)?,
        start_ticks: process.start_ticks,
        uid: process.uid,
        user: process.owner(),
        command: process.command.as_ref().unwrap_or(&process.name).clone(),
    })
}
