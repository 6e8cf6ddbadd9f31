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
