//! The terminal in raw mode on its alternate screen, restored in all cases.

use std::io::{self, Stdout, stdout};
use std::sync::Once;

use crossterm::cursor::Show;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Frame;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Size;

/// The terminal; dropping it restores the previous state, also after a panic. Signals end the main loop, which drops it.
pub(crate) struct Terminal(ratatui::Terminal<CrosstermBackend<Stdout>>);

impl Terminal {
    /// Takes over the terminal.
    pub(crate) fn open() -> io::Result<Terminal> {
        restore_on_panic();
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableMouseCapture).inspect_err(|_| restore())?;
        let terminal = ratatui::Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| restore())?;
        Ok(Terminal(terminal))
    }

    pub(crate) fn size(&self) -> io::Result<Size> {
        self.0.size()
    }

    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(picture).map(drop)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    // If the terminal is gone, there is nothing to restore.
    let _ = execute!(stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// A panic message belongs on the normal screen.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}
