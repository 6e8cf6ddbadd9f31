//! The main loop: reads, draws, waits for input.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event;
use ratatui::layout::Size;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::feed::Feed;
use super::frame::draw;
use super::options::Options;
use super::signal::send;
use super::state::{Effect, Message, State};
use super::terminal::Terminal;
use crate::settings::Settings;
use crate::source::Source;

/// Shows the source until the user quits or `stop` says so.
pub fn run(
    source: &mut Source,
    settings: &Settings,
    options: Options,
    mut stop: impl FnMut() -> bool,
) -> anyhow::Result<()> {
    let mut feed = Feed::new(&settings.namespace, &options.devices, source);
    let mut state = State::new(settings.namespace.as_str(), options);
    state.update(Message::Data(Box::new(feed.gather(state.needs())?)));
    let mut terminal = Terminal::open()?;
    state.update(Message::Size(terminal.size()?));
    let mut read = Instant::now();
    while !state.is_over() && !stop() {
        terminal.draw(|frame| draw(frame, &state))?;
        let mut effect = None;
        while effect.is_none() && read.elapsed() < state.interval() && !state.is_over() && !stop() {
            feed.poll();
            let left = state.interval().saturating_sub(read.elapsed());
            match wait_for_input(left.min(feed.poll_interval()))? {
                Input::None => {}
                Input::Gone => return Ok(()),
                Input::Some => {
                    effect = take_input(&mut state)?;
                    break;
                }
            }
        }
        if let Some(Effect::Signal { to, signal }) = &effect {
            state.update(Message::Note(send(to, *signal)));
        }
        if effect == Some(Effect::Refresh) {
            feed.hurry();
        }
        if effect == Some(Effect::Refresh) || read.elapsed() >= state.interval() {
            read = Instant::now();
            // A frozen screen reads nothing: events taken from the rings would be lost without being counted.
            if !state.is_frozen() {
                let data = Box::new(feed.gather(state.needs())?);
                let (is_list, gathered) = (data.more.is_list(), Instant::now());
                state.update(Message::Data(data));
                feed.taken_in(is_list, gathered.elapsed());
            }
        }
    }
    Ok(())
}

/// The result of waiting for input.
enum Input {
    None,
    Some,
    /// The terminal is gone for good.
    Gone,
}

/// Handles all pending input: a mouse wheel sends dozens of events at once, and drawing after each would lag.
fn take_input(state: &mut State) -> io::Result<Option<Effect>> {
    while event::poll(Duration::ZERO)? {
        let message = match event::read()? {
            event::Event::Key(key) => Message::Key(key),
            event::Event::Mouse(mouse) => Message::Mouse(mouse),
            event::Event::Resize(width, height) => Message::Size(Size::new(width, height)),
            _ => continue,
        };
        if let Some(effect) = state.update(message) {
            return Ok(Some(effect));
        }
    }
    Ok(None)
}

/// Waits for a key or a new size. Polls here instead of in crossterm, which would read a terminal that hung up over and
/// over and never return.
fn wait_for_input(limit: Duration) -> io::Result<Input> {
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    match rustix::event::poll(&mut terminal, Some(&limit)) {
        // A new size is announced by a signal.
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    if terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Ok(Input::Gone);
    }
    let is_there = event::poll(Duration::ZERO)?;
    if !is_there && terminal[0].revents().contains(PollFlags::IN) {
        wake(&stdin)?;
    }
    Ok(if is_there { Input::Some } else { Input::None })
}

/// Makes crossterm read what is left. It asks to be told when input arrives, and reads 1024 bytes then: of more that came at
/// once, such as from a wheel while a long list was read, the rest would lie there until the next key. Its own settings make
/// a terminal say again that it can be read.
fn wake(terminal: &io::Stdin) -> io::Result<()> {
    let settings = tcgetattr(terminal)?;
    Ok(tcsetattr(terminal, OptionalActions::Now, &settings)?)
}
