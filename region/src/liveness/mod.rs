//! Whether the processes of a region live.
//!
//! A slot has a pid and no start time, the pid is what the process calls itself in its own container, and anybody may
//! have made the file. So a pid alone proves nothing. What does is the mapping: tt-metal keeps a region mapped for as long
//! as it uses a slot there, and `/proc/PID/maps` has the device and the inode of what a process maps.

mod maps;
mod search;

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use tt_shm_os::Procfs;

use crate::file::FileId;
use maps::Mappings;
use search::Search;

/// Whether the process of a slot lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// A process that calls itself so maps the region.
    Alive {
        /// What it is called here: another pid, if it runs in a container.
        pid_here: u32,
    },
    /// No process that can be seen from here calls itself so: it has ended, and its bytes stayed behind.
    Ghost,
    /// The process that has this pid does not map the region and was started after the slot was written last: the one
    /// that wrote it has ended, and its bytes stayed behind.
    Reused,
    /// It is not certain.
    Uncertain(Doubt),
}

/// Why it is not certain whether a process lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Processes were not looked through since the slot was seen first; they will be within a second.
    NotLookedYet,
    /// The number is no pid.
    NoPid,
    /// A process with this pid is there, was started before, and what it maps may not be looked at.
    MayNotLook,
    /// A process with this pid is there, was started before, and does not map the region.
    NotMapped,
    /// A process with this pid maps the region, but was started after the slot was written: the clock was set, or it has
    /// taken over the slot of an earlier process of the same pid.
    StartedLater,
    /// The process that has this pid here is in another PID namespace and calls itself otherwise.
    OtherNamespace {
        /// What it calls itself.
        calls_itself: u32,
    },
    /// No process has this pid here, but processes in other PID namespaces call themselves so, and none of them is known
    /// to map the region.
    Elsewhere {
        /// What they are called here, some of them.
        pids_here: Vec<u32>,
    },
    /// No such process is seen, but not all processes can be seen.
    Hidden,
}

impl Liveness {
    /// Whether it is certain that the process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self, Liveness::Ghost | Liveness::Reused)
    }
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Liveness::Alive { .. } => f.write_str("alive"),
            Liveness::Ghost => f.write_str("ended, and its bytes stayed behind"),
            Liveness::Reused => {
                f.write_str("ended, its bytes stayed behind, and another process has its pid")
            }
            Liveness::Uncertain(doubt) => write!(f, "not certain: {doubt}"),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::NotLookedYet => f.write_str("not looked for yet"),
            Doubt::NoPid => f.write_str("the number is no pid"),
            Doubt::MayNotLook => {
                f.write_str("a process with this pid is there, but whether it uses the region may not be seen (run as root)")
            }
            Doubt::NotMapped => f.write_str("a process with this pid is there, but it does not use the region"),
            Doubt::StartedLater => {
                f.write_str("a process with this pid uses the region, but was started after the slot was written")
            }
            Doubt::OtherNamespace { calls_itself } => {
                write!(f, "the process with this pid is in a container, where it is process {calls_itself}")
            }
            Doubt::Elsewhere { pids_here } => {
                write!(f, "only processes in containers call themselves so, here {pids_here:?}")
            }
            Doubt::Hidden => f.write_str("no such process is seen, but not all can be (run as root, on the host)"),
        }
    }
}

/// What a slot claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) file: FileId,
    pub(crate) slot: usize,
    pub(crate) pid: i32,
    /// When the slot was written last.
    pub(crate) updated_ns: u64,
}

/// How long a verdict holds at most: that a process lives, and any other. A process that was seen to live is noticed to
/// have ended at once, by its start time.
const ALIVE: Duration = Duration::from_secs(10);
const OTHER: Duration = Duration::from_secs(1);
/// Boot time is in whole seconds, and is moved a little whenever the clock is.
const CLOCK_SLACK_NS: u64 = 2_000_000_000;

/// The processes of this machine, as far as slots name them.
#[derive(Debug)]
pub(crate) struct Processes {
    procfs: Procfs,
    search: Search,
    verdicts: HashMap<(FileId, usize, i32), Verdict>,
    /// When each process was started, read once per poll; `None` if it has ended.
    starts: HashMap<u32, Option<u64>>,
    mappings: Mappings,
}

#[derive(Clone, Debug)]
struct Verdict {
    liveness: Liveness,
    /// The slot that it is about, as it was then.
    updated_ns: u64,
    /// When this was seen first.
    since: Instant,
    judged: Instant,
    /// Start of the process that lives.
    started: Option<u64>,
    is_used: bool,
}

impl Processes {
    pub(crate) fn new(procfs: Procfs) -> Processes {
        Processes {
            search: Search::default(),
            verdicts: HashMap::new(),
            starts: HashMap::new(),
            mappings: Mappings::default(),
            procfs,
        }
    }

    /// What is not seen of other processes.
    pub(crate) fn gaps(&self) -> Vec<&'static str> {
        self.search.gaps()
    }

    /// Before the slots of a poll.
    pub(crate) fn begin(&mut self) {
        self.starts.clear();
        self.mappings.begin();
        self.verdicts.values_mut().for_each(|verdict| verdict.is_used = false);
    }

    /// After them: what no slot names any more is forgotten.
    pub(crate) fn end(&mut self) {
        self.verdicts.retain(|_, verdict| verdict.is_used);
    }

    /// Whether the process of a slot lives.
    pub(crate) fn judge(&mut self, claim: Claim, now: Instant) -> Liveness {
        let Some(pid) = u32::try_from(claim.pid).ok().filter(|pid| *pid != 0) else {
            return Liveness::Uncertain(Doubt::NoPid);
        };
        let key = (claim.file, claim.slot, claim.pid);
        let before = self.verdicts.get(&key).cloned();
        if let Some(verdict) = before.as_ref()
            && self.still_holds(verdict, claim, now)
        {
            let liveness = verdict.liveness.clone();
            self.verdicts.entry(key).and_modify(|verdict| verdict.is_used = true);
            return liveness;
        }
        let since = before.as_ref().filter(|verdict| verdict.updated_ns == claim.updated_ns);
        let since = since.map_or(now, |verdict| verdict.since);
        let liveness = self.look(claim, pid, since, now);
        let verdict = match before.filter(|verdict| self.is_unchanged(verdict, claim)) {
            // There was no time to look again: what was known is better than nothing.
            Some(before) if liveness == Liveness::Uncertain(Doubt::NotLookedYet) => before,
            _ => {
                let started = match liveness {
                    Liveness::Alive { pid_here } => self.started(pid_here),
                    _ => None,
                };
                Verdict { liveness, updated_ns: claim.updated_ns, since, judged: now, started, is_used: true }
            }
        };
        let liveness = verdict.liveness.clone();
        self.verdicts.insert(key, Verdict { is_used: true, ..verdict });
        liveness
    }

    fn still_holds(&mut self, verdict: &Verdict, claim: Claim, now: Instant) -> bool {
        let age = now.saturating_duration_since(verdict.judged);
        let most = match verdict.liveness {
            Liveness::Alive { .. } => ALIVE,
            Liveness::Uncertain(Doubt::NotLookedYet) => Duration::ZERO,
            _ => OTHER,
        };
        age < most && self.is_unchanged(verdict, claim)
    }

    /// Whether everything that a verdict is about is as it was, as far as that can be seen at little cost.
    fn is_unchanged(&mut self, verdict: &Verdict, claim: Claim) -> bool {
        match verdict.liveness {
            Liveness::Alive { pid_here } => {
                verdict.started.is_some() && self.started(pid_here) == verdict.started
            }
            _ => verdict.updated_ns == claim.updated_ns,
        }
    }

    fn look(&mut self, claim: Claim, pid: u32, since: Instant, now: Instant) -> Liveness {
        let own = self.started(pid);
        let calls_itself = own.and_then(|_| {
            let status = self.procfs.status(pid)?;
            status.is_in_inner_namespace().then(|| status.innermost_pid()).flatten()
        });
        let is_here = own.is_some() && calls_itself.is_none();
        if is_here {
            match self.maps(pid, claim.file) {
                Err(TooMany) => return Liveness::Uncertain(Doubt::NotLookedYet),
                Ok(Some(true)) => return self.mapped(pid, claim, now),
                Ok(_) => {}
            }
        }
        if !self.search.is_newer_than(since, now) && !self.search.run(&self.procfs, now) {
            return Liveness::Uncertain(Doubt::NotLookedYet);
        }
        let elsewhere = self.search.called(pid);
        for candidate in &elsewhere {
            match self.maps(*candidate, claim.file) {
                Err(TooMany) => return Liveness::Uncertain(Doubt::NotLookedYet),
                Ok(Some(true)) => return self.mapped(*candidate, claim, now),
                Ok(_) => {}
            }
        }
        match (is_here, calls_itself) {
            (true, _) if self.is_later(pid, claim) => Liveness::Reused,
            (true, _) => Liveness::Uncertain(match self.maps(pid, claim.file) {
                Ok(Some(false)) => Doubt::NotMapped,
                _ => Doubt::MayNotLook,
            }),
            _ if !elsewhere.is_empty() => Liveness::Uncertain(Doubt::Elsewhere { pids_here: elsewhere }),
            (false, Some(calls_itself)) => Liveness::Uncertain(Doubt::OtherNamespace { calls_itself }),
            _ if self.search.is_partial() => Liveness::Uncertain(Doubt::Hidden),
            _ => Liveness::Ghost,
        }
    }

    /// The verdict on a process that maps the region.
    fn mapped(&mut self, pid_here: u32, claim: Claim, now: Instant) -> Liveness {
        self.search.refresh_boot_time(&self.procfs, now);
        match self.is_later(pid_here, claim) {
            true => Liveness::Uncertain(Doubt::StartedLater),
            false => Liveness::Alive { pid_here },
        }
    }

    /// Whether a process was started after the slot was written last. A slot without a time proves nothing.
    fn is_later(&mut self, pid_here: u32, claim: Claim) -> bool {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        let started_ns = self.started(pid_here).zip(self.search.boot_time()).map(|(ticks, boot)| {
            let ticks_ns = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second);
            u128::from(boot) * 1_000_000_000 + ticks_ns
        });
        let limit = u128::from(claim.updated_ns) + u128::from(CLOCK_SLACK_NS);
        claim.updated_ns != 0 && started_ns.is_some_and(|started| started > limit)
    }

    /// Start of a process in clock ticks; `None` if it is not there or has ended and was not waited for yet.
    fn started(&mut self, pid: u32) -> Option<u64> {
        let procfs = &self.procfs;
        let read =
            || procfs.stat(pid).filter(|stat| !['Z', 'X'].contains(&stat.state)).map(|stat| stat.start_ticks);
        *self.starts.entry(pid).or_insert_with(read)
    }

    fn maps(&mut self, pid: u32, file: FileId) -> Result<Option<bool>, TooMany> {
        self.mappings.has(&self.procfs, pid, file)
    }
}

/// Enough was looked at in this poll: the rest is for the next.
#[derive(Debug)]
struct TooMany;
