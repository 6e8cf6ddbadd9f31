//! One thread reads the source, when somebody asks and never more often than is useful; all others get what it read.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tt_shm_os::Namespace;

use super::health::{Health, health};
use crate::model::Model;
use crate::procinfo::Cache;
use crate::source::Source;

/// A reading that is younger is given to everybody who asks: many scrapers cost as much as one.
const FRESH: Duration = Duration::from_millis(200);
/// How long somebody waits for a reading.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the thread may take to notice that it is to end.
const NOTICE: Duration = Duration::from_millis(100);

/// What was read, and whether it is to be relied on.
#[derive(Debug)]
pub(super) struct View {
    pub(super) model: Model,
    pub(super) health: Health,
    read: Instant,
}

/// Where readings are asked for and given out.
#[derive(Debug)]
pub(super) struct Desk {
    namespace: Namespace,
    state: Mutex<State>,
    asked: Condvar,
    given: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_asked: bool,
    /// Readings tried so far.
    number: u64,
    last: Option<Result<Arc<View>, String>>,
}

impl Desk {
    pub(super) fn new(namespace: Namespace) -> Desk {
        Desk { namespace, state: Mutex::default(), asked: Condvar::new(), given: Condvar::new() }
    }

    // Every change is complete before the lock is given back.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is there now; why nothing is, otherwise.
    pub(super) fn view(&self) -> Result<Arc<View>, String> {
        let mut state = self.lock();
        if let Some(Ok(view)) = &state.last
            && view.read.elapsed() < FRESH
        {
            return Ok(Arc::clone(view));
        }
        state.is_asked = true;
        self.asked.notify_one();
        let number = state.number;
        let is_old = |state: &mut State| state.number == number;
        let waited =
            self.given.wait_timeout_while(state, PATIENCE, is_old).unwrap_or_else(PoisonError::into_inner);
        let late = || Err(format!("nothing could be read within {} seconds", PATIENCE.as_secs()));
        if waited.1.timed_out() { late() } else { waited.0.last.clone().unwrap_or_else(late) }
    }

    /// Reads for those who ask, and keeps the source going meanwhile.
    pub(super) fn work(&self, source: &mut Source, stop: &dyn Fn() -> bool) {
        let mut processes = Cache::default();
        while !stop() {
            let wait = source.poll_interval().min(NOTICE);
            let is_idle = |state: &mut State| !state.is_asked;
            let waited = self.asked.wait_timeout_while(self.lock(), wait, is_idle);
            let is_asked = std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0.is_asked);
            match is_asked {
                true => self.give(self.read(source, &mut processes)),
                false => source.poll(),
            }
        }
    }

    fn read(&self, source: &mut Source, processes: &mut Cache) -> Result<Arc<View>, String> {
        let reading = source.read().map_err(|error| format!("{error:#}"))?;
        let mut model = Model::new(&reading);
        model.look_up(processes);
        let health = health(&model, &self.namespace);
        Ok(Arc::new(View { model, health, read: Instant::now() }))
    }

    fn give(&self, view: Result<Arc<View>, String>) {
        let mut state = self.lock();
        state.number += 1;
        state.last = Some(view);
        self.given.notify_all();
    }
}
