//! Repeats what a writer noted, and says in which states its segment may be.

use super::ledger::Ledger;
use super::mix::{Call, Mix, Place, Step};
use super::notes::{Notes, Progress};
use shm_layout::Class;

/// A figure of a device, and what it may be: exactly one value unless threads made the order unknowable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its name.
    pub what: &'static str,
    /// Of which class, if of one.
    pub class: Option<Class>,
    /// Least.
    pub low: u64,
    /// Most.
    pub high: u64,
}

/// Everything that is known of a process in one state.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// By device.
    pub devices: Vec<Vec<Expected>>,
    /// Everything live: device, class, id, size; sorted.
    pub live: Vec<(u8, u8, u64, u64)>,
    /// Device, program, dispatches, cached ones; sorted.
    pub programs: Vec<(u8, u64, u64, u64)>,
}

/// A thread's calls up to the last that returned, and the one in flight.
struct ThreadReplay {
    mix: Mix,
    made: u64,
    shared: Ledger,
    own: Ledger,
    in_flight: Option<Call>,
}

/// All threads of a writer.
pub struct Replay {
    threads: Vec<ThreadReplay>,
}

impl ThreadReplay {
    fn new(seed: u64, thread: usize) -> ThreadReplay {
        let (shared, own) = (Ledger::default(), Ledger::default());
        ThreadReplay { mix: Mix::new(seed, thread), made: 0, shared, own, in_flight: None }
    }

    fn advance(&mut self, progress: Progress) {
        while self.made < progress.done {
            // A call that was in flight at the last look has been generated already.
            let call = self.in_flight.take().unwrap_or_else(|| self.mix.next_call());
            for (place, step) in call.steps() {
                self.apply(place, step);
            }
            self.made += 1;
        }
        if progress.begun > progress.done && self.in_flight.is_none() {
            self.in_flight = Some(self.mix.next_call());
        }
    }

    fn apply(&mut self, place: Place, step: Step) {
        match place {
            Place::Shared => self.shared.apply(step),
            Place::Own => self.own.apply(step),
        }
    }

    /// Steps of the call in flight.
    fn open_steps(&self) -> Vec<(Place, Step)> {
        self.in_flight.map_or(Vec::new(), Call::steps)
    }

    /// Its two ledgers after so many steps of the call in flight.
    fn after(&self, steps: usize) -> (Ledger, Ledger) {
        let (mut shared, mut own) = (self.shared.clone(), self.own.clone());
        for (place, step) in self.open_steps().into_iter().take(steps) {
            match place {
                Place::Shared => shared.apply(step),
                Place::Own => own.apply(step),
            }
        }
        (shared, own)
    }
}

impl Replay {
    /// Of a writer that has made no call yet.
    pub fn new(seed: u64, threads: usize) -> Replay {
        Replay { threads: (0..threads).map(|thread| ThreadReplay::new(seed, thread)).collect() }
    }

    /// Repeats what was noted since the last look; returns how many calls that were.
    pub fn advance(&mut self, notes: &Notes) -> u64 {
        let before = self.operations();
        for (number, thread) in self.threads.iter_mut().enumerate() {
            thread.advance(notes.progress(number));
        }
        self.operations() - before
    }

    /// Calls that returned.
    pub fn operations(&self) -> u64 {
        self.threads.iter().map(|thread| thread.made).sum()
    }

    /// The calls that were begun and not noted as done.
    pub fn in_flight(&self) -> Vec<(usize, Call)> {
        let calls = self.threads.iter().enumerate();
        calls.filter_map(|(number, thread)| Some((number, thread.in_flight?))).collect()
    }

    /// Every state that the process may have left: each call in flight is not begun or done, in any combination,
    /// and one of them, which had the lock, may be between two of its events. The first is that before all of
    /// them, the last that after all.
    pub fn candidates(&self) -> Vec<State> {
        let lengths: Vec<usize> = self.threads.iter().map(|thread| thread.open_steps().len()).collect();
        combinations(&lengths).iter().map(|steps| self.state(steps)).collect()
    }

    fn state(&self, steps: &[usize]) -> State {
        let ledgers = self.threads.iter().zip(steps).map(|(thread, steps)| thread.after(*steps));
        let (shared, own): (Vec<Ledger>, Vec<Ledger>) = ledgers.unzip();
        let mut state = State { devices: vec![together(&shared)], ..State::default() };
        for ledger in &shared {
            state.list(0, ledger);
        }
        for (thread, ledger) in own.iter().enumerate() {
            state.devices.push(exact(ledger));
            state.list(Place::Own.device(thread) as u8, ledger);
        }
        state.live.sort_unstable();
        state.programs.sort_unstable();
        state
    }
}

impl State {
    fn list(&mut self, device: u8, ledger: &Ledger) {
        self.live.extend(ledger.live().map(|(class, id, size)| (device, class, id, size)));
        self.programs.extend(ledger.programs().map(|(id, all, hits)| (device, id, all, hits)));
    }

    /// A figure of a device; the least it may be.
    pub fn figure(&self, device: usize, what: &str, class: Option<Class>) -> u64 {
        let mut figures = self.devices[device].iter();
        figures.find(|f| f.what == what && f.class == class).map_or(0, |figure| figure.low)
    }

    /// Live bytes and allocations of a class on all devices.
    pub fn held(&self, class: Class) -> (u64, u64) {
        let of = |what| (0..self.devices.len()).map(|d| self.figure(d, what, Some(class))).sum();
        (of("live_bytes"), of("live_count"))
    }
}

/// Ways to be at step 0..=n of each call with at most one strictly between.
fn combinations(lengths: &[usize]) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for length in lengths {
        all = all.iter().flat_map(|head| (0..=*length).map(|step| [&head[..], &[step]].concat())).collect();
    }
    let between = |(step, length): &(&usize, &usize)| **step > 0 && step < length;
    all.retain(|steps| steps.iter().zip(lengths).filter(between).count() <= 1);
    all
}

/// A device that one thread uses.
fn exact(ledger: &Ledger) -> Vec<Expected> {
    together(std::slice::from_ref(ledger))
}

/// A device on which several threads have something. Their peaks need not have been at one time: the peak is at
/// least what is there now, and at most their sum.
fn together(ledgers: &[Ledger]) -> Vec<Expected> {
    let now: Vec<_> = ledgers.iter().map(Ledger::now).collect();
    let mut figures = Vec::new();
    let mut put = |what, class, low, high| figures.push(Expected { what, class, low, high });
    macro_rules! sum {
        ($list:expr, |$one:ident| $figure:expr) => {
            $list.iter().map(|$one| $figure).sum::<u64>()
        };
    }
    let single = ledgers.len() == 1;
    for class in Class::ALL {
        let (code, of) = (class as usize, Some(class));
        let bytes = sum!(now, |n| n.bytes[code]);
        let count = sum!(now, |n| n.counts[code]);
        let requested = sum!(now, |n| n.requested[code]);
        let allocated = sum!(ledgers, |l| l.allocated()[code].0);
        let allocations = sum!(ledgers, |l| l.allocated()[code].1);
        let peak = sum!(ledgers, |l| l.peaks().classes[code]);
        put("live_bytes", of, bytes, bytes);
        put("live_count", of, count, count);
        put("requested_bytes", of, requested, requested);
        put("alloc_bytes", of, allocated, allocated);
        put("alloc_count", of, allocations, allocations);
        put("peak_bytes", of, if single { peak } else { bytes }, peak);
    }
    let used = [
        ("dram_used", "dram_peak", sum!(now, |n| n.dram_used), sum!(ledgers, |l| l.peaks().dram)),
        ("l1_used", "l1_peak", sum!(now, |n| n.l1_used), sum!(ledgers, |l| l.peaks().l1)),
        ("eth_used", "eth_peak", sum!(now, |n| n.eth_used), sum!(ledgers, |l| l.peaks().eth)),
    ];
    for (what, peak, bytes, most) in used {
        put(what, None, bytes, bytes);
        put(peak, None, if single { most } else { bytes }, most);
    }
    let (dispatches, cached) = (sum!(now, |n| n.dispatches), sum!(now, |n| n.cached));
    put("dispatches", None, dispatches, dispatches);
    put("cached_dispatches", None, cached, cached);
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_one_call_is_between_its_events() {
        assert_eq!(combinations(&[0, 0]), [[0, 0]]);
        assert_eq!(combinations(&[1, 0]), [[0, 0], [1, 0]]);
        assert_eq!(combinations(&[1, 1]).len(), 4);
        // Of nine, not the one where both are between.
        let two = combinations(&[2, 2]);
        assert_eq!((two.len(), two.contains(&vec![1, 1])), (8, false));
        assert_eq!((two[0].clone(), two[7].clone()), (vec![0, 0], vec![2, 2]));
    }

    #[test]
    fn repeating_in_parts_is_repeating_at_once() {
        let mut parts = ThreadReplay::new(7, 1);
        for done in [0, 1, 10, 500, 1999] {
            parts.advance(Progress { begun: done + 1, done, refused: 0 });
        }
        parts.advance(Progress { begun: 2000, done: 2000, refused: 0 });
        let mut whole = ThreadReplay::new(7, 1);
        whole.advance(Progress { begun: 2000, done: 2000, refused: 0 });
        assert_eq!(exact(&parts.own), exact(&whole.own));
        assert_eq!(parts.shared.live().collect::<Vec<_>>(), whole.shared.live().collect::<Vec<_>>());
    }
}
