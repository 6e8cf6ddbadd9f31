//! Menus and confirmations in front of a view.

use super::{Effect, State};
use crate::model::Process;
use crate::screen::modals::{Chosen, Modal, Outcome};
use crate::screen::page::ProcessKey;

/// A process that may be sent a signal: /proc confirms its claims.
fn chosen(process: &Process) -> Option<Chosen> {
    let info = process.info.as_ref()?;
    Some(Chosen {
        pid: u32::try_from(process.pid?).ok()?,
        start_ticks: info.start_ticks,
        uid: process.uid,
        user: process.owner(),
        command: process.command().unwrap_or(&process.name).clone(),
    })
}

impl State {
    pub(super) fn open_filter(&mut self) {
        let page = self.pages.get(self.view);
        if !page.fields().is_empty() {
            self.modal = Some(Modal::filter(&page.query(), page.fields()));
        }
    }

    pub(super) fn open_sort_menu(&mut self) {
        let (names, now) = self.pages.get(self.view).sorts();
        if !names.is_empty() {
            self.modal = Some(Modal::sort(names, now));
        }
    }

    pub(super) fn open_signal_menu(&mut self) {
        if self.options.readonly {
            self.message = Some("signals are disabled (readonly)".to_owned());
            return;
        }
        let target = self.target().and_then(|key| self.process(key));
        match target.map(|process| (process, chosen(process))) {
            Some((_, Some(chosen))) => self.modal = Some(Modal::signal(chosen)),
            Some((process, None)) if process.is_claimed() => {
                let (pid, owner) = (process.pid_short(), process.owner());
                self.message = Some(format!(
                    "no signal sent: {pid} is only claimed by a segment of {owner}, and /proc does not confirm it"
                ));
            }
            _ => self.message = Some("no process selected that can be sent a signal".to_owned()),
        }
    }

    fn process(&self, key: ProcessKey) -> Option<&Process> {
        let processes = self.data.as_ref().map_or(&[][..], |data| &data.model.processes);
        processes.iter().find(|process| ProcessKey::from(*process) == key)
    }

    fn target(&self) -> Option<ProcessKey> {
        let data = self.data.as_ref()?;
        self.pages.get(self.view).target(&self.scene(data))
    }

    pub(super) fn after_modal(&mut self, outcome: Outcome) -> Option<Effect> {
        match outcome {
            Outcome::Open => return None,
            Outcome::Closed => {}
            Outcome::Filter(query) => {
                if let Some(data) = &self.data {
                    self.pages.get_mut(self.view).filter(query, data);
                }
            }
            Outcome::Sort(choice) => {
                if let Some(data) = &self.data {
                    self.pages.get_mut(self.view).sort_by(choice, data);
                }
            }
            Outcome::Signal { to, signal } => {
                self.modal = None;
                return Some(Effect::Signal { to, signal });
            }
        }
        self.modal = None;
        None
    }
}
