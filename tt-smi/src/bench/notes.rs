//! What the user should know of the machine while reading the figures.

use tt_shm_measure::machine::{load, machine};

/// The machine before anything was measured.
#[derive(Clone, Debug)]
pub(crate) struct Circumstances {
    /// Processor, cores, memory, kernel.
    pub machine: String,
    /// The load average of the last minute.
    pub load: f64,
    /// Cores that this process may use.
    pub cores: usize,
}

impl Circumstances {
    pub(crate) fn now() -> Circumstances {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Circumstances { machine: machine(), load: load(), cores }
    }

    /// What may have disturbed.
    pub(crate) fn notes(&self) -> Vec<String> {
        let one_core = "only one core: the socket's server has to take turns with its client, so both socket \
                        figures hold switches between them";
        let busy = format!(
            "load average {:.1} on {} before it began: what else runs is in the slowest events; multiples are \
             taken side by side and hold",
            self.load,
            crate::units::plural(self.cores as u64, "core")
        );
        let debug = "this is a debug build: its figures say nothing; use cargo run --release";
        let notes = [
            (self.cores == 1).then(|| one_core.to_owned()),
            (self.load > self.cores as f64 / 2.0).then_some(busy),
            cfg!(debug_assertions).then(|| debug.to_owned()),
        ];
        notes.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_and_a_busy_machine_are_told() {
        let notes = |cores, load| Circumstances { machine: String::new(), load, cores }.notes().join("\n");
        assert!(notes(1, 0.0).contains("only one core") && !notes(1, 0.0).contains("load"));
        assert!(notes(4, 3.0).contains("load average 3.0 on 4 cores"));
        assert!(!notes(4, 1.0).contains("load"));
    }
}
