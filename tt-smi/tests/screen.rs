//! Pictures of the live screen.

mod common;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Size;
use tt_shm_reader::TableSnapshot;
use tt_smi::screen::{Data, Message, Options, State, Theme, draw};

fn picture(snapshot: TableSnapshot, width: u16, height: u16) -> String {
    // Without colour, parts of bars are letters: a picture that can be read.
    let mut state = State::new("default", Options { theme: Theme::MONO, ..Options::default() });
    state.update(Message::Size(Size::new(width, height)));
    state.update(Message::Data(Box::new(Data::new(common::model(snapshot)))));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &state)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

#[test]
fn small() {
    common::assert_expected("screen-80x24.txt", &picture(common::snapshot(4), 80, 24));
}

#[test]
fn large() {
    common::assert_expected("screen-120x40.txt", &picture(common::snapshot(4), 120, 40));
}

#[test]
fn many_devices_get_a_line_each() {
    common::assert_expected("screen-32-devices.txt", &picture(common::snapshot(31), 100, 45));
}

#[test]
fn any_size_is_drawn() {
    for (width, height) in [(1, 1), (10, 3), (60, 15), (20, 50), (200, 5)] {
        for devices in [0, 1, 100] {
            picture(common::snapshot(devices), width, height);
        }
    }
}

#[test]
fn ctrl_c_quits_whatever_is_open() {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    let press = |state: &mut State, code, modifiers| {
        state.update(Message::Key(KeyEvent::new(code, modifiers)));
    };
    for keys in ["", "?", "4s", "5/"] {
        let mut state = State::new("test", Options::default());
        state.update(Message::Data(Box::new(Data::new(common::model(common::snapshot(1))))));
        keys.chars().for_each(|key| press(&mut state, KeyCode::Char(key), KeyModifiers::NONE));
        assert!(!state.is_over());
        press(&mut state, KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(state.is_over(), "after {keys:?}");
    }
}
