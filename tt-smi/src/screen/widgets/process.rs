//! How rows show the state of the process that they belong to.

use ratatui::style::Modifier;

use super::list::RowStyle;
use crate::model::{Model, Process, ProcessState};
use crate::screen::page::ProcessKey;
use crate::screen::theme::Theme;

/// Sign and colour of a process that does not simply run: `x` ended, `=` stopped, `~` its figures may lack something.
/// Not `!`, which is for the row itself: a leak suspect, a failure.
pub(crate) fn state_style(process: &Process, theme: &Theme) -> Option<RowStyle> {
    match process.state {
        ProcessState::Ended | ProcessState::Zombie => Some(RowStyle { style: theme.dim(), mark: Some('x') }),
        ProcessState::Stopped => Some(RowStyle { style: theme.warn(), mark: Some('=') }),
        ProcessState::Alive if !process.flags().is_empty() => {
            // Not bold: there may be many such rows.
            Some(RowStyle { style: theme.warn().remove_modifier(Modifier::BOLD), mark: Some('~') })
        }
        ProcessState::Alive => None,
    }
}

/// `4242 llama-3.1-8b`, and what there is to say of its state.
pub(crate) fn described(process: &Process) -> String {
    let state = match process.state_text() {
        "alive" => String::new(),
        state => format!(", {state}"),
    };
    let flags: String = process.flags().iter().map(|flag| format!(", {flag}")).collect();
    format!("{} {}{state}{flags}", process.pid_text(), process.name)
}

/// The process with this segment.
pub(crate) fn by_identity(model: &Model, identity: u64) -> Option<&Process> {
    model.processes.iter().find(|process| process.identity == identity)
}

/// What opens a process.
pub(crate) fn key_of(model: &Model, identity: u64) -> Option<ProcessKey> {
    by_identity(model, identity).map(ProcessKey::from)
}
