//! Pictures of the live screen.

mod common;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tt_shm_reader::TableSnapshot;
use tt_smi::screen::{Message, State, Theme, draw};

fn picture(snapshot: TableSnapshot, width: u16, height: u16) -> String {
    let mut state = State::new("default");
    state.update(Message::Figures(Box::new(common::model(snapshot))));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    // Without colour, parts of bars are letters: a picture that can be read.
    terminal.draw(|frame| draw(frame, &state, &Theme::new(false))).unwrap();
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
fn frozen_figures_stay() {
    let mut state = State::new("default");
    let figures = |devices| Message::Figures(Box::new(common::model(common::snapshot(devices))));
    state.update(figures(1));
    state.update(Message::Freeze);
    state.update(figures(3));
    assert_eq!(state.model.as_ref().unwrap().devices.len(), 2);
    state.update(Message::Freeze);
    state.update(figures(3));
    assert_eq!(state.model.as_ref().unwrap().devices.len(), 4);
    state.update(Message::Quit);
    assert!(state.quit);
}
