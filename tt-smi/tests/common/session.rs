//! A user at a screen: what they press, and what they see.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Size;
use tt_smi::model::Model;
use tt_smi::screen::{Data, Effect, Message, More, Options, State, Theme, View, draw};

/// Sizes for what is laid out differently at each of them.
pub(crate) const SIZES: [(u16, u16); 3] = [(60, 15), USUAL_SIZE, (200, 50)];
/// The size for everything else.
pub(crate) const USUAL_SIZE: (u16, u16) = (80, 24);

/// A user who looks at a view.
pub(crate) struct Session {
    pub state: State,
    pub size: (u16, u16),
}

impl Session {
    /// At a terminal of this size, without colours: a picture that can be read.
    pub(crate) fn new(view: View, size: (u16, u16)) -> Session {
        Session::themed(view, size, Theme::MONO)
    }

    /// The same, with other colours and signs.
    pub(crate) fn themed(view: View, size: (u16, u16), theme: Theme) -> Session {
        let options = Options { view, theme, ..Options::default() };
        let mut state = State::new("default", options);
        state.update(Message::Size(Size::new(size.0, size.1)));
        Session { state, size }
    }

    /// New figures come.
    pub(crate) fn sees(mut self, model: Model, more: More) -> Session {
        self.take(model, more);
        self
    }

    /// New figures come.
    pub(crate) fn take(&mut self, model: Model, more: More) {
        self.state.update(Message::Data(Box::new(Data::new(model, more))));
    }

    /// Letters are pressed; `\n` is Enter, `\t` Tab, `\x1b` Esc, `^` up, `_` down, `←` left, `→` right.
    pub(crate) fn types(mut self, keys: &str) -> Session {
        self.press(keys);
        self
    }

    /// The same; what the last key asked the world for.
    pub(crate) fn press(&mut self, keys: &str) -> Option<Effect> {
        let mut effect = None;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\x1b' => KeyCode::Esc,
                '^' => KeyCode::Up,
                '_' => KeyCode::Down,
                '←' => KeyCode::Left,
                '→' => KeyCode::Right,
                letter => KeyCode::Char(letter),
            };
            effect = self.state.update(Message::Key(KeyEvent::from(code)));
        }
        effect
    }

    /// What is seen.
    pub(crate) fn picture(&self) -> String {
        let (width, height) = self.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &self.state)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| {
            // The second half of a wide sign is a cell of its own that shows nothing.
            let mut line = String::new();
            let mut x = 0;
            while x < width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += (tt_smi::escape::columns(symbol) as u16).max(1);
            }
            line.trim_end().to_owned() + "\n"
        };
        (0..height).map(line).collect()
    }

    /// The line with this text in it.
    #[track_caller]
    pub(crate) fn line(&self, with: &str) -> String {
        let picture = self.picture();
        let found = picture.lines().find(|line| line.contains(with));
        found.unwrap_or_else(|| panic!("no line with {with:?} in\n{picture}")).to_owned()
    }
}
