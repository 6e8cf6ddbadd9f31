//! Menus and questions in front of a view.

use super::{Effect, State};
use crate::screen::modals::{Chosen, Modal, Outcome};
use crate::screen::page::ProcessKey;

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
            self.message = Some("--readonly: no signals are sent".to_owned());
            return;
        }
        let target = self.target();
        match target.and_then(|process| self.chosen(process)) {
            Some(process) => self.modal = Some(Modal::signal(process)),
            None => self.message = Some("no process that can be reached from here is selected".to_owned()),
        }
    }

    fn chosen(&self, key: ProcessKey) -> Option<Chosen> {
        let pid = u32::try_from(key.pid?).ok()?;
        let processes = self.data.as_ref().map_or(&[][..], |data| &data.model.processes);
        let shown = processes.iter().find(|process| ProcessKey::from(*process) == key);
        let start_ticks = shown.and_then(|process| process.info.as_ref()).map(|info| info.start_ticks);
        Some(Chosen { pid, start_ticks })
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
