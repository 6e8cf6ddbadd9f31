//! The live screen: state, update and view apart. State knows no terminal, drawing changes no state.

mod bar;
mod devices;
mod processes;
mod state;
mod terminal;
mod theme;
mod view;

pub use state::{Message, State};
pub use theme::Theme;
pub use view::draw;

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::model::Model;
use crate::settings::Settings;
use crate::source::Source;
use terminal::Terminal;

/// Between two looks at the figures.
const REFRESH: Duration = Duration::from_millis(250);

/// Shows the source until the user quits or `stop` says so.
pub fn run(source: &mut Source, settings: &Settings, mut stop: impl FnMut() -> bool) -> anyhow::Result<()> {
    let theme = Theme::new(settings.paint.colored);
    let mut state = State::new(settings.namespace.as_str());
    state.update(Message::Figures(Box::new(Model::new(&source.read()?))));
    let mut terminal = Terminal::open()?;
    let mut next = Instant::now() + REFRESH;
    while !state.quit && !stop() {
        terminal.draw(|frame| draw(frame, &state, &theme))?;
        while Instant::now() < next && !state.quit && !stop() {
            source.poll();
            let left = next.saturating_duration_since(Instant::now());
            match wait_for_input(left.min(source.poll_interval()))? {
                Input::None => {}
                Input::Gone => return Ok(()),
                Input::Some => {
                    let Some(message) = message(&event::read()?) else { continue };
                    state.update(message);
                    break;
                }
            }
        }
        if Instant::now() >= next {
            next = Instant::now() + REFRESH;
            state.update(Message::Figures(Box::new(Model::new(&source.read()?))));
        }
    }
    Ok(())
}

/// What became of waiting for the user.
enum Input {
    None,
    Some,
    /// The terminal is gone: nobody looks, and nobody will.
    Gone,
}

/// Waits for a key or a new size. The waiting is done here and not by crossterm, which would read a terminal
/// that hung up over and over and never return.
fn wait_for_input(limit: Duration) -> std::io::Result<Input> {
    let stdin = std::io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    match rustix::event::poll(&mut terminal, Some(&limit)) {
        // A new size comes as a signal.
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    if terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Ok(Input::Gone);
    }
    Ok(if event::poll(Duration::ZERO)? { Input::Some } else { Input::None })
}

/// What a key means. Esc goes back where there is something to go back from; it never quits.
fn message(event: &Event) -> Option<Message> {
    match event {
        Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) => match code {
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(Message::Quit),
            KeyCode::Char('q') => Some(Message::Quit),
            KeyCode::Char('f') => Some(Message::Freeze),
            _ => None,
        },
        Event::Resize(..) => Some(Message::Redraw),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> Option<Message> {
        message(&Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn escape_never_quits() {
        assert!(press(KeyCode::Esc, KeyModifiers::NONE).is_none());
        assert!(matches!(press(KeyCode::Char('q'), KeyModifiers::NONE), Some(Message::Quit)));
        assert!(matches!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Message::Quit)));
        assert!(press(KeyCode::Char('c'), KeyModifiers::NONE).is_none());
    }
}
