//! A program in a real pseudo-terminal: what it draws, what is typed, how it leaves the terminal.

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use vt100::Parser;

use crate::space::{Space, until};

/// A terminal with a program in it, which ends with the test.
pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    parser: Arc<Mutex<Parser>>,
    reader: Option<JoinHandle<()>>,
    before: String,
}

/// A program and its arguments, in a test's namespace, on a terminal with colours.
pub fn program(space: &Space, path: &str, arguments: &[&str]) -> CommandBuilder {
    let mut command = CommandBuilder::new(path);
    command.args(arguments);
    command.env("TT_SHM_NAMESPACE", space.namespace().as_str());
    command.env("TERM", "xterm-256color");
    for variable in ["NO_COLOR", "TT_SHM_RING_SLOTS", "TT_SHM_LIVE_CAPACITY", "XDG_CONFIG_HOME", "HOME"] {
        command.env_remove(variable);
    }
    command
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn not_zero(size: u16) -> NonZero<u16> {
    NonZero::new(size).expect("a terminal has rows and columns")
}

impl Terminal {
    /// Starts a program in a terminal of this size.
    pub fn start(command: CommandBuilder, columns: u16, rows: u16) -> Terminal {
        let pair = native_pty_system().openpty(size(columns, rows)).expect("a pseudo-terminal");
        let before = settings(&*pair.master);
        let child = pair.slave.spawn_command(command).expect("the program starts");
        // While this end is open here, the other never reads its end.
        drop(pair.slave);
        let parser = Arc::new(Mutex::new(Parser::new(not_zero(rows), not_zero(columns), 0)));
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let seen = Arc::clone(&parser);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The error at the end is how a pseudo-terminal says that nobody writes any more.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                seen.lock().expect("no panic").process(&bytes[..count]);
            }
        });
        let keyboard = pair.master.take_writer().expect("a writer");
        Terminal { master: pair.master, keyboard, child, parser, reader: Some(reader), before }
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Changes the size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.lock().expect("no panic").screen_mut().set_size(not_zero(rows), not_zero(columns));
        self.master.resize(size(columns, rows)).expect("the size changes");
    }

    /// What is on the screen.
    pub fn text(&self) -> String {
        self.parser.lock().expect("no panic").screen().contents()
    }

    /// The screen itself, with its colours.
    pub fn screen(&self) -> vt100::Screen {
        self.parser.lock().expect("no panic").screen().clone()
    }

    /// Waits until the screen is as expected.
    #[track_caller]
    pub fn await_screen(&self, expected: &str, is_so: impl Fn(&str) -> bool) -> String {
        let wait = || until(expected, || Some(self.text()).filter(|text| is_so(text)));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait))
            .unwrap_or_else(|_| panic!("waited in vain for {expected:?}; the screen is:\n{}", self.text()))
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub fn await_text(&self, text: &str) -> String {
        self.await_screen(text, |screen| screen.contains(text))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("it was started")
    }

    /// Waits for the program's end. The terminal must be as it was before.
    #[track_caller]
    pub fn await_end(mut self) -> ExitStatus {
        let status = until("the end of the program", || self.child.try_wait().expect("our own child"));
        let after = settings(&*self.master);
        self.reader.take().expect("it runs until the end").join().expect("no panic");
        assert_eq!(after, self.before, "the terminal's settings are not as before");
        let screen = self.screen();
        assert!(!screen.alternate_screen(), "still on the alternate screen");
        assert!(!screen.hide_cursor(), "the cursor is still hidden");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "the mouse is still caught");
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Raw mode, echo and the like.
fn settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("a terminal has settings"))
}
