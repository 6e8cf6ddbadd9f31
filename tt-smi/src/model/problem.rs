//! What an operator should know.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;
use tt_shm_reader::{Class, Notice, TableError, TableSnapshot, notice_kind, region_kind, text};

use super::as_json::{by_word, seconds, words};
use super::{Clock, Word, ranges};
use crate::driver::SilentHolder;
use crate::escape::{Foreign, fit};
#[cfg(test)]
use crate::schema;
use crate::segments::Hidden;
use crate::units::plural;

/// Something that could not be read or believed: what it is about is missing in every sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Problem {
    /// What is wrong: a file that is not to be trusted, one that cannot be true, one that this user may not read, or a
    /// table without room.
    pub kind: ProblemKind,
    /// The process; `None` if not known.
    pub pid: Option<u64>,
    /// Owner of the file.
    pub uid: u64,
    /// Name of the file, as it is; empty if it is about none.
    pub file: Foreign,
    /// The reason.
    pub message: Foreign,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A file that is not to be trusted.
    Refused,
    /// A file that cannot be true.
    Broken,
    /// A file that this user may not read.
    Hidden,
    /// A process on a device that has no row in the table.
    Overflow,
    /// Events that were not counted.
    Uncounted,
    /// A table without room.
    NoRoom,
    /// A process that may live, and has no file any more.
    Unseen,
    /// A clock that was set.
    Clock,
    /// A process that ended before its file could be opened.
    Lost,
    /// A process that holds a device and does not report.
    Silent,
    /// A region of tt-metal that could not be read, or has bytes of processes that have ended.
    Region,
}

words!(ProblemKind {
    Refused => "refused",
    Broken => "broken",
    Hidden => "hidden",
    Overflow => "overflow",
    Uncounted => "uncounted",
    NoRoom => "no_room",
    Unseen => "unseen",
    Clock => "clock",
    Lost => "lost",
    Silent => "silent",
    Region => "region",
});

/// What a process held when it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reclaimed {
    /// The process, as it called itself.
    pub pid: u64,
    /// Its owner.
    pub uid: u64,
    /// Since its end was noticed.
    #[serde(rename = "seconds_ago", serialize_with = "seconds")]
    #[cfg_attr(test, schemars(with = "f64"))]
    pub age_ns: u64,
    /// What it held, by class.
    #[serde(serialize_with = "by_word")]
    #[cfg_attr(test, schemars(schema_with = "schema::some_classes_bytes"))]
    pub bytes: Vec<(Class, u64)>,
    /// How many allocations it held, by class.
    #[serde(serialize_with = "by_word")]
    #[cfg_attr(test, schemars(schema_with = "schema::some_classes_counts"))]
    pub counts: Vec<(Class, u64)>,
}

impl Problem {
    /// Resolves a notice, if it tells of a problem.
    pub fn new(notice: &Notice) -> Option<Problem> {
        let kind = match notice.kind {
            notice_kind::REFUSED => ProblemKind::Refused,
            notice_kind::BROKEN => ProblemKind::Broken,
            notice_kind::UNSEEN => ProblemKind::Unseen,
            notice_kind::CLOCK => ProblemKind::Clock,
            notice_kind::UNCOUNTED => ProblemKind::Uncounted,
            _ => return None,
        };
        Some(Problem {
            kind,
            pid: Some(notice.pid).filter(|pid| *pid != 0),
            uid: notice.uid,
            file: text::decode(&notice.file).into(),
            message: text::decode(&notice.text).into(),
        })
    }
}

impl Problem {
    /// In one line: the file, its owner, and what is wrong.
    pub fn line(&self) -> String {
        let Problem { file, message, .. } = self;
        let uid = u32::try_from(self.uid).unwrap_or(u32::MAX);
        let owner =
            crate::users::name_of(uid).map_or_else(|| format!("uid {uid}"), |name| name.raw().to_owned());
        match file.raw() {
            "" => message.raw().to_owned(),
            file => format!("{file} of {owner}: {}", message.raw()),
        }
    }

    /// For people: what kind of problem it is, and the same.
    pub fn text(&self) -> String {
        match self.file.raw() {
            "" => format!("{}: {}", self.kind.word(), self.message),
            _ => format!("{}: {}: {}", self.kind.word(), self.file, self.message),
        }
    }

    /// Everything that a snapshot tells of what is missing or doubtful, for every output.
    pub fn all(snapshot: &TableSnapshot, clock: Clock) -> Vec<Problem> {
        let noticed: Vec<Problem> = snapshot.notices.iter().filter_map(Problem::new).collect();
        // Notices are forgotten after a while, counts are not.
        let is_told = |kind: ProblemKind| noticed.iter().any(|problem| problem.kind == kind);
        let counted =
            Problem::counted(snapshot).into_iter().filter(|(kind, count, _)| *count > 0 && !is_told(*kind));
        let counted: Vec<Problem> = counted.map(|(kind, _, message)| Problem::here(kind, message)).collect();
        let room = Problem::no_room(snapshot.incomplete_since, snapshot.publish_errors, clock);
        noticed.into_iter().chain(counted).chain(room).chain(Problem::of_regions(snapshot)).collect()
    }

    /// What is only counted: kind, how many, and what that means.
    fn counted(snapshot: &TableSnapshot) -> [(ProblemKind, u64, String); 4] {
        let TableSnapshot { unseen, lost, clock_steps, overflow, .. } = *snapshot;
        let (unseen_text, lost_text) = (plural(unseen, "process"), plural(lost, "process"));
        let unseen_text =
            format!("{unseen_text} may live whose file has no name any more; what it uses is missing");
        let lost_text =
            format!("{lost_text} ended before the file could be opened; peaks of then may be higher");
        let clock_text =
            format!("{} of a clock; times and peaks around it are not certain", plural(clock_steps, "step"));
        let overflow_text = format!(
            "{} of a process on a device missing in the table; totals include them unless the device is incomplete",
            plural(overflow, "row")
        );
        [
            (ProblemKind::Unseen, unseen, unseen_text),
            (ProblemKind::Lost, lost, lost_text),
            (ProblemKind::Clock, clock_steps, clock_text),
            (ProblemKind::Overflow, overflow, overflow_text),
        ]
    }

    /// Regions of tt-metal that could not be read.
    fn of_regions(snapshot: &TableSnapshot) -> Vec<Problem> {
        let unread = snapshot.regions.iter().filter(|(_, stats)| stats.kind == region_kind::UNREAD);
        let unread = unread.map(|(_, stats)| Problem {
            uid: stats.uid,
            ..Problem::here(ProblemKind::Region, text::decode(&stats.note))
        });
        let left_out = snapshot.regions_left_out;
        let more = (left_out > 0).then(|| {
            Problem::here(
                ProblemKind::Region,
                format!("{} of tt-metal's regions left out", plural(left_out, "row")),
            )
        });
        unread.chain(more).collect()
    }

    /// A problem of no file.
    fn here(kind: ProblemKind, message: String) -> Problem {
        Problem { kind, pid: None, uid: 0, file: "".into(), message: message.into() }
    }

    /// Rows that the aggregator could not write.
    fn no_room(since: Option<u64>, failed: u64, clock: Clock) -> Option<Problem> {
        let age = clock.age_ns(since?) / 1_000_000_000;
        let message = format!(
            "/dev/shm has had no room for the whole table for {age} s ({failed} attempts); devices or processes are \
             missing; free some (tt-smi clean), or raise its size"
        );
        Some(Problem::here(ProblemKind::NoRoom, message))
    }
}

impl From<&TableError> for Problem {
    fn from(error: &TableError) -> Problem {
        let path = error.path();
        let name = path.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let uid = path.and_then(|path| path.symlink_metadata().ok()).map_or(0, |stat| stat.uid());
        let message = error.to_string();
        Problem {
            kind: ProblemKind::Refused,
            pid: None,
            uid: u64::from(uid),
            file: name.into(),
            message: message.into(),
        }
    }
}

impl From<&Hidden> for Problem {
    fn from(hidden: &Hidden) -> Problem {
        let Hidden { pid, uid, file } = hidden;
        let who = pid.map_or_else(|| "it".to_owned(), |pid| format!("pid {pid}"));
        let owner = crate::users::name_of(*uid).unwrap_or_else(|| format!("uid {uid}").into());
        Problem {
            kind: ProblemKind::Hidden,
            pid: pid.map(u64::from),
            uid: u64::from(*uid),
            file: file.as_str().into(),
            message: format!("{who} belongs to {}: what it uses is missing here; root sees all", owner.raw())
                .into(),
        }
    }
}

impl From<&SilentHolder> for Problem {
    fn from(SilentHolder { devices, holder, tt_metal }: &SilentHolder) -> Problem {
        let command = holder
            .command
            .as_ref()
            .map_or_else(String::new, |command| format!(" ({})", fit(command.raw(), 60)));
        let region = tt_metal
            .map_or_else(String::new, |bytes| format!(" (tt-metal's region says ~{})", bytes.words()));
        let message = format!(
            "pid {}{command} of {} holds device {} and does not report: what it uses is unknown{region}; start it with `tt-smi run`",
            holder.pid_text(),
            holder.owner(),
            ranges(devices.iter().copied()),
        );
        Problem {
            pid: Some(holder.pid.into()),
            uid: holder.uid.unwrap_or(0).into(),
            ..Problem::here(ProblemKind::Silent, message)
        }
    }
}

impl Reclaimed {
    /// Resolves a notice, if it tells of an end.
    pub fn new(notice: &Notice, clock: Clock) -> Option<Reclaimed> {
        if notice.kind != notice_kind::RECLAIMED {
            return None;
        }
        let bytes = |class: Class| notice.bytes[class as usize];
        let counts = |class: Class| notice.counts[class as usize];
        let held = || Class::ALL.into_iter().filter(|class| bytes(*class) > 0 || counts(*class) > 0);
        Some(Reclaimed {
            pid: notice.pid,
            uid: notice.uid,
            age_ns: clock.age_ns(notice.time),
            bytes: held().map(|class| (class, bytes(class))).collect(),
            counts: held().map(|class| (class, counts(class))).collect(),
        })
    }
}
