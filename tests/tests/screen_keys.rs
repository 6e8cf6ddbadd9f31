//! Every key of the table, in every view that has it, and the mouse, in a real pseudo-terminal beside a running workload.
//!
//! A frozen screen changes only by keys. So each key is pressed on a frozen screen, and something must look different
//! after it: a key without an effect fails here, and a new key is tested without being named.

use std::collections::BTreeSet;

use tt_shm_tests::machine::{Board, Kmd};
use tt_shm_tests::terminal::{Terminal, program};
use tt_shm_tests::{Machine, Space};
use tt_smi::screen::{Action, BINDINGS, Binding, Motion, View};

use crate::common::SMI;

/// What a terminal sends for a key, by its name in the help.
fn sent(name: &str) -> &str {
    match name {
        "Esc" => "\x1b",
        "Enter" => "\r",
        "Tab" => "\t",
        "Space" => " ",
        "Ctrl-C" => "\x03",
        "Up" => "\x1b[A",
        "Down" => "\x1b[B",
        "Right" => "\x1b[C",
        "Left" => "\x1b[D",
        "Home" => "\x1b[H",
        "End" => "\x1b[F",
        "PgUp" => "\x1b[5~",
        "PgDn" => "\x1b[6~",
        "F1" => "\x1bOP",
        "F2" => "\x1bOQ",
        "F3" => "\x1bOR",
        "F4" => "\x1bOS",
        "F6" => "\x1b[17~",
        "F9" => "\x1b[20~",
        "F10" => "\x1b[21~",
        one if one.chars().count() == 1 => one,
        other => panic!("what does a terminal send for {other}?"),
    }
}

const ESCAPE: &str = "\x1b";

/// A screen on a running workload: three processes on four devices.
struct Session {
    terminal: Terminal,
    view: View,
    // Removed after the program has ended.
    _machine: Option<Machine>,
    _space: Space,
}

impl Session {
    /// The view, on a terminal of this size.
    fn start(view: View, columns: u16, rows: u16) -> Session {
        let space = Space::new();
        // The devices of a driver come first; only telemetry has something to show of those that nobody uses.
        let machine =
            (view == View::Telemetry).then(|| Machine::new(Kmd::V2_9, &[Board::N150, Board::P150a]));
        let arguments = ["demo", "--devices", "4", "--workers", "3", "--rate", "100"];
        let mut command = program(&space, SMI, &arguments);
        command.env("TT_SMI_ROOT", machine.as_ref().map_or("/nonexistent".as_ref(), Machine::path));
        let mut terminal = Terminal::start(command, columns, rows);
        terminal.await_text("3 processes");
        terminal.press(&view.digit().to_string());
        Session { terminal, view, _machine: machine, _space: space }
    }

    /// What only this view has, once its data were read.
    fn await_content(&mut self) {
        let mark = match self.view {
            View::Overview => "COMMAND",
            View::Detail => "Fabric",
            View::Charts => "now",
            View::Telemetry => "MEASURED",
            View::Processes => "STATE",
            View::Allocations => "ADDRESS",
            View::Events => "kernel_dispatch",
            View::Map => "fragmentation",
            View::Programs => "DISP/S",
            View::Cores => "kernel-config ring",
        };
        let view = self.view;
        self.terminal.await_screen(mark, |screen| screen.contains(mark));
        self.await_view(view);
    }

    /// Freezes the screen. While the processes start, all devices look alike and are one row, where no key could move:
    /// that row is opened.
    fn freeze(&mut self) {
        self.terminal.press("f");
        let screen = self.terminal.await_text("FROZEN");
        if self.view == View::Overview && screen.contains(" 0-3 x4 ") {
            self.terminal.press(sent("Enter"));
            self.terminal.await_screen("opened", |screen| !screen.contains(" 0-3 x4 "));
        }
    }

    /// Waits until all keys so far were handled: keys whose effect is known come last.
    fn sync(&mut self) {
        for (key, text) in [("-", "refresh every 1s"), ("+", "refresh every 500ms")] {
            self.terminal.press(key);
            self.terminal.await_text(text);
        }
    }

    /// Everything but the last line, where messages come and go; with its colours.
    fn picture(&self) -> Vec<String> {
        let screen = self.terminal.screen();
        let (rows, columns) = screen.size();
        screen.rows_formatted(0, columns.get()).take(usize::from(rows.get()) - 1).collect()
    }

    /// The view whose tab is highlighted.
    fn shown(&self) -> Option<View> {
        let screen = self.terminal.screen();
        let cells = (0..screen.size().1.get()).filter_map(|column| screen.cell(1, column));
        let tab: String = cells.filter(|cell| cell.inverse()).map(|cell| cell.contents()).collect();
        let digit: usize = tab.chars().find(char::is_ascii_digit)?.to_string().parse().ok()?;
        View::ALL.get(digit).copied()
    }

    #[track_caller]
    fn await_view(&self, view: View) {
        self.terminal.await_screen(view.name(), |_| self.shown() == Some(view));
    }

    /// Shows the view again, after a key that may have left it.
    fn return_from(&mut self, action: Action) {
        let opens_modal = matches!(
            action,
            Action::Help
                | Action::Filter
                | Action::Search
                | Action::Columns
                | Action::SortMenu
                | Action::Signal
        );
        if opens_modal {
            self.terminal.press(ESCAPE);
            self.terminal.await_screen("closed", |screen| !screen.contains('┌'));
        }
        // What was opened in a list is closed, so that others find the list.
        if matches!(action, Action::Open | Action::Alarm) && self.shown() != Some(View::Overview) {
            self.sync();
            let before = self.picture();
            self.terminal.press(ESCAPE);
            self.terminal.await_screen("closed", |_| self.picture() != before);
        }
        self.terminal.press(&self.view.digit().to_string());
        self.await_view(self.view);
    }

    /// Presses a key on the frozen screen and waits for what it does.
    #[track_caller]
    fn press(&mut self, binding: &Binding, name: &str) {
        for key in before(binding, self.view) {
            self.terminal.press(sent(key));
        }
        match binding.action {
            Action::Back => drop(self.terminal.await_text("keys: ")),
            _ => self.sync(),
        }
        let before = self.picture();
        self.terminal.press(sent(name));
        let what = format!("{name} in {}: {}", self.view.name(), binding.help);
        let view = self.view;
        self.terminal.await_screen(&what, |screen| match binding.action {
            Action::Show(view) => self.shown() == Some(view),
            Action::Back => self.picture() != before && !screen.contains("keys: "),
            Action::Help => screen.contains(&format!("keys: {}", view.name())),
            Action::Filter => screen.contains("┌ filter"),
            Action::Search => screen.contains("┌ search"),
            Action::Columns => screen.contains("[x]"),
            Action::SortMenu => screen.contains("┌ sort by"),
            Action::Signal => screen.contains("ask to terminate"),
            Action::Freeze => !screen.contains("FROZEN"),
            Action::Faster => screen.contains("refresh every 250ms"),
            Action::Slower => screen.contains("refresh every 1s"),
            Action::Theme | Action::Signs => screen.contains("theme ") && screen.contains("drawn with "),
            _ => self.picture() != before || says_something(screen),
        });
        self.after(binding);
    }

    /// Makes the screen what the next key expects.
    fn after(&mut self, binding: &Binding) {
        match binding.action {
            Action::Freeze => self.freeze(),
            Action::Faster => self.terminal.press("-"),
            Action::Slower => self.terminal.press("+"),
            Action::Span => self.terminal.press("mm"),
            Action::Move(Motion::Aside(_)) => (0..4).for_each(|_| self.terminal.press(sent("Left"))),
            // Through all of them, back to the first.
            Action::Theme => self.terminal.press("ccc"),
            Action::Signs => self.terminal.press("aa"),
            action => self.return_from(action),
        }
    }
}

/// Whether the last line has a message other than that of [`Session::sync`], and not the hints.
fn says_something(screen: &str) -> bool {
    let last = screen.lines().last().unwrap_or_default();
    !(last.is_empty() || last.contains("q quit") || last.contains("refresh every"))
}

/// Keys that make room for the effect of another.
fn before(binding: &Binding, view: View) -> &'static [&'static str] {
    let in_columns = !matches!(view, View::Charts | View::Map | View::Cores);
    match binding.action {
        Action::Back => &["?"],
        Action::Show(shown) if shown == view && view == View::Overview => &["1"],
        Action::Show(shown) if shown == view => &["0"],
        Action::Move(Motion::Lines(1) | Motion::Pages(1) | Motion::Last) => &["g"],
        Action::Move(Motion::Lines(_) | Motion::Pages(_) | Motion::First) => &["G"],
        Action::Move(Motion::Aside(-1)) if in_columns => &["Right"],
        Action::Move(Motion::Aside(1)) if in_columns => &["Left", "Left", "Left", "Left"],
        Action::Move(Motion::Aside(1)) => &["g"],
        Action::Move(Motion::Aside(_)) => &["G"],
        Action::ZoomOut => &["z"],
        _ => &[],
    }
}

/// All keys of a view but those that end the program.
fn keys(view: View) -> impl Iterator<Item = (&'static Binding, String)> {
    let bindings =
        BINDINGS.iter().filter(move |binding| binding.is_in(view) && binding.action != Action::Quit);
    bindings.flat_map(|binding| binding.keys.iter().map(move |key| (binding, key.name())))
}

/// Presses every key of a view, then ends the program with each key that does so.
#[track_caller]
fn every_key_has_its_effect(view: View) {
    let mut session = Session::start(view, 80, 24);
    session.await_content();
    session.freeze();
    for (binding, name) in keys(view) {
        session.press(binding, &name);
    }
    let quit = BINDINGS.iter().find(|binding| binding.action == Action::Quit).unwrap();
    session.terminal.press(sent(&quit.keys[view.digit() % quit.keys.len()].name()));
    assert!(session.terminal.await_end().success());
}

#[test]
fn keys_of_the_overview() {
    every_key_has_its_effect(View::Overview);
}

#[test]
fn keys_of_the_detail() {
    every_key_has_its_effect(View::Detail);
}

#[test]
fn keys_of_the_charts() {
    every_key_has_its_effect(View::Charts);
}

#[test]
fn keys_of_telemetry() {
    every_key_has_its_effect(View::Telemetry);
}

#[test]
fn keys_of_the_processes() {
    every_key_has_its_effect(View::Processes);
}

#[test]
fn keys_of_the_allocations() {
    every_key_has_its_effect(View::Allocations);
}

#[test]
fn keys_of_the_events() {
    every_key_has_its_effect(View::Events);
}

#[test]
fn keys_of_the_map() {
    every_key_has_its_effect(View::Map);
}

#[test]
fn keys_of_the_programs() {
    every_key_has_its_effect(View::Programs);
}

#[test]
fn keys_of_the_cores() {
    every_key_has_its_effect(View::Cores);
}

/// On a live screen, and on the smallest one: nothing but a screen that goes on is expected. Much more is typed than one
/// read takes, and all of it is handled.
#[test]
fn keys_in_any_order_do_no_harm() {
    let mut session = Session::start(View::Overview, 60, 15);
    let all: BTreeSet<String> = View::ALL.into_iter().flat_map(keys).map(|(_, name)| name).collect();
    // An Esc and a letter in one breath would be Alt and the letter; F9 could end a process.
    let harmless = |name: &String| !["Esc", "F9"].contains(&&**name);
    let mut all: Vec<String> = all.into_iter().filter(harmless).collect();
    let mut random = fastrand::Rng::with_seed(1);
    for view in View::ALL {
        session.terminal.press(&view.digit().to_string());
        random.shuffle(&mut all);
        all.iter().for_each(|name| session.terminal.press(sent(name)));
        // Whatever is open is closed by a click beside it.
        session.terminal.press("\x1b[<0;1;15M\x1b[<0;1;15m");
        session.terminal.press("0");
        session.await_view(View::Overview);
    }
    session.terminal.press("\x03");
    assert!(session.terminal.await_end().success());
}

/// A click at a column and row, from 1 on, as a terminal sends it.
fn click(column: usize, row: usize) -> String {
    format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m")
}

/// The wheel, by what a terminal sends: 64 up, 65 down, with 4 more if Shift is held.
fn wheel(code: u8) -> String {
    format!("\x1b[<{code};10;12M")
}

#[test]
fn the_mouse_selects_opens_sorts_and_scrolls() {
    let mut session = Session::start(View::Processes, 80, 24);
    session.await_content();
    session.freeze();
    let place = |session: &Session, text: &str| {
        let screen = session.terminal.text();
        let found = screen.lines().enumerate().find_map(|(row, line)| Some((row + 1, line.find(text)?)));
        let (row, start) = found.unwrap_or_else(|| panic!("no {text}:\n{screen}"));
        let line = screen.lines().nth(row - 1).unwrap_or_default();
        (line[..start].chars().count() + 1, row)
    };
    // A heading sorts, and again the other way round.
    let (column, row) = place(&session, "PID");
    session.terminal.press(&click(column, row));
    session.terminal.await_text("PID▲");
    session.terminal.press(&click(column, row));
    session.terminal.await_text("PID▼");
    // The sign at the end of the headings leads to further columns, and so does the wheel with Shift.
    session.terminal.press(&click(80, row));
    session.terminal.await_text("KERNELS");
    session.terminal.press(&wheel(64 + 4));
    session.terminal.await_text("STATE");
    session.terminal.press(&wheel(65 + 4));
    session.terminal.await_text("KERNELS");
    session.terminal.press(&click(1, row));
    session.terminal.await_text("STATE");
    // A row is selected by a click and opened by another; a click on a tab leaves it.
    let (_, row) = place(&session, "resnet50");
    session.terminal.press("g");
    session.sync();
    session.terminal.press(&click(20, row));
    session.terminal.await_screen("selected", |_| selected(&session).contains("resnet50"));
    session.terminal.press(&click(20, row));
    session.terminal.await_text("Esc all processes");
    let (column, row) = place(&session, "6 events");
    session.terminal.press(&click(column, row));
    session.await_view(View::Events);
    // The wheel scrolls what is in front; a click beside it closes it.
    session.terminal.press("?");
    session.terminal.await_text("q Ctrl-C F10");
    session.terminal.press(&wheel(65));
    session.terminal.await_screen("scrolled", |screen| !screen.contains("q Ctrl-C F10"));
    session.terminal.press(&wheel(64));
    session.terminal.await_text("q Ctrl-C F10");
    session.terminal.press(&click(2, 12));
    session.terminal.await_screen("closed", |screen| !screen.contains('┌'));
    session.terminal.press("q");
    assert!(session.terminal.await_end().success());
}

/// The row of a list that is highlighted.
fn selected(session: &Session) -> String {
    let screen = session.terminal.screen();
    let (rows, columns) = screen.size();
    let is_selected = |row: &u16| screen.cell(*row, 1).is_some_and(|cell| cell.inverse());
    let row = (3..rows.get()).find(is_selected).unwrap_or(0);
    (0..columns.get()).filter_map(|column| screen.cell(row, column)).map(|cell| cell.contents()).collect()
}
