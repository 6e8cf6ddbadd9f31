//! The helper's side: counts visits, and raises a real signal on itself at one of them.

use super::place::point_of;
use super::point::Point;
use rustix::process::{Signal, getpid, kill_process};
use shm_layout::points::{Visit, install};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Says where: `<point>:<visit>:<signal>`, with visits counted from 1 and `kill` or `stop`.
pub const ENV: &str = "TT_SHM_TEST_POINT";

/// Points that an array of counts can hold.
const MOST: usize = 64;
const _: () = assert!(Point::ALL.len() <= MOST);

static ARMED: AtomicBool = AtomicBool::new(false);
static VISITS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static TRAP: OnceLock<Option<Trap>> = OnceLock::new();

/// What a helper does to itself, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// At which point.
    pub point: Point,
    /// At which visit of it.
    pub visit: u64,
    /// By which end.
    pub end: End,
}

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
}

impl End {
    /// Both.
    pub const BOTH: [End; 2] = [End::Kill, End::Stop];

    fn word(self) -> &'static str {
        match self {
            End::Kill => "kill",
            End::Stop => "stop",
        }
    }
}

impl Trap {
    /// For the environment.
    pub fn to_text(self) -> String {
        format!("{}:{}:{}", self.point.name(), self.visit, self.end.word())
    }

    fn from_text(text: &str) -> Option<Trap> {
        let mut parts = text.split(':');
        let (point, visit, end) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        Some(Trap {
            point: *Point::ALL.iter().find(|known| known.name() == point)?,
            visit,
            end: *End::BOTH.iter().find(|known| known.word() == end)?,
        })
    }
}

/// Begins to count visits, and to look for the one that the environment names.
pub fn arm() {
    TRAP.get_or_init(|| {
        let text = std::env::var(ENV).ok()?;
        Some(Trap::from_text(&text).unwrap_or_else(|| panic!("{ENV}={text} names no point")))
    });
    install(visited);
    ARMED.store(true, Ordering::Relaxed);
}

/// Visits so far, by the point's name.
pub fn visits() -> BTreeMap<String, u64> {
    let counts = VISITS.iter().map(|count| count.load(Ordering::Relaxed));
    Point::ALL.iter().map(|point| point.name().to_owned()).zip(counts).collect()
}

fn visited(visit: Visit) {
    if !ARMED.load(Ordering::Relaxed) {
        return;
    }
    let Some(point) = point_of(visit) else { return };
    let visit = VISITS[point as usize].fetch_add(1, Ordering::Relaxed) + 1;
    if let Some(Some(trap)) = TRAP.get()
        && (trap.point, trap.visit) == (point, visit)
    {
        let signal = if trap.end == End::Kill { Signal::KILL } else { Signal::STOP };
        // To the process, as `kill` from a shell does it: all its threads end or stop.
        kill_process(getpid(), signal).expect("a process may signal itself");
    }
}
