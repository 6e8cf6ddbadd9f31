//! What an event is about, beside its columns: short, for people.

use tt_shm_reader::EventKind;

use super::line::Happened;
use crate::model::{Place, Shortage, Word};
use crate::units::{UNKNOWN, bytes, bytes_or_unknown, plural};

impl Happened {
    /// The name of what was allocated or loaded, or what is special about other kinds; "-" if there is nothing to say.
    pub fn what(&self) -> String {
        let parts = match self.kind {
            Some(EventKind::AllocFailed) => vec![self.failure()],
            Some(EventKind::KernelDispatch) => self.dispatch(),
            Some(EventKind::Marker) => {
                vec![format!("{} step {}", self.phase.map_or(UNKNOWN, Word::word), self.id), self.named()]
            }
            Some(EventKind::Gauge) => {
                let (used, programs) = (bytes_or_unknown(self.used_bytes), self.programs.unwrap_or(0));
                vec![format!("kernel ring: {used} used by {}", plural(programs, "program"))]
            }
            Some(EventKind::Name) => vec![format!("{:#x} is {}", self.id, self.named())],
            Some(EventKind::ProgramEnd) => vec![format!("program {:#x}", self.id)],
            _ => vec![self.named(), self.special()],
        };
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { UNKNOWN.to_owned() } else { parts.join(" ") }
    }

    fn named(&self) -> String {
        self.name.as_ref().map_or_else(String::new, ToString::to_string)
    }

    /// What makes an allocation or a load special.
    fn special(&self) -> String {
        let program =
            self.program.filter(|_| matches!(self.kind, Some(EventKind::CbAlloc | EventKind::CbFree)));
        let words = [
            program.map(|program| format!("of program {program:#x}")),
            (self.late == Some(true)).then(|| "(loaded before tracking began)".to_owned()),
            (self.globally_allocated == Some(true)).then(|| "(inside an L1 buffer)".to_owned()),
            (self.dropped == Some(true)).then(|| "(device closed)".to_owned()),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn dispatch(&self) -> Vec<String> {
        let times = self
            .times
            .filter(|times| *times != 1)
            .map_or_else(String::new, |times| format!(" {times} times,"));
        let how = if self.cached == Some(true) { "cached" } else { "sent" };
        let resident = bytes_or_unknown(self.cb_resident_bytes);
        let name = self.name.as_ref().map_or_else(|| format!("program {:#x}", self.id), ToString::to_string);
        vec![format!("{name},{times} {how}, {resident} CB res")]
    }

    fn failure(&self) -> String {
        let shortage = Shortage {
            request_bytes: self.size_bytes.unwrap_or(0),
            free_bytes: self.free_bytes,
            largest_free_bytes: self.largest_free_bytes,
            needed_per_bank_bytes: self.needed_per_bank_bytes,
            banks: self.banks,
            per_bank: self.per_bank == Some(true),
            place: Place::of(self.class),
        };
        let cause = shortage.cause().map_or_else(String::new, |cause| format!("{}: ", cause.word()));
        let figure = |figure: Option<u64>| figure.map_or_else(|| UNKNOWN.to_owned(), bytes);
        let unit = if shortage.per_bank { " per bank" } else { "" };
        let (free, largest) = (figure(self.free_bytes), figure(self.largest_free_bytes));
        format!("{cause}{free} free{unit}, largest block {largest}")
    }
}
