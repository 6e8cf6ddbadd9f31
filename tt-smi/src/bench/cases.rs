//! What is measured, and what each case does.

use std::hint::black_box;

use anyhow::{Context, bail};
use tt_shm_measure::company::Accompanied;
use tt_shm_measure::interleave::{Figure, Interleaved};
use tt_shm_measure::launches::Host;
use tt_shm_measure::limit::LimitRing;
use tt_shm_measure::message::place;
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::{Tracked, WrongSum, chip};
use tt_shm_measure::socket::SocketClient;
use tt_shm_measure::workload::{Order, Pairs, Probe, SIZE, Single, Workload};
use tt_shm_reader::{Segment, Table, segment_paths};
use tt_shm_writer::{Alloc, BufferType, Device, Record, Tracker};

use crate::bench::findings::{
    Case, DISABLED, EMIT_SHARED, LIMIT, LOOP_ALONE, ROW_READ, SOCKET_QUERY, SOCKET_SEND,
};

/// Live allocations, and the cases of both handles with so many.
const EMITS: [(usize, Case, Case); 3] = [
    (
        1_000,
        event("emit_exclusive", "emit, exclusive, 1 000 live"),
        event(EMIT_SHARED, "emit, shared, 1 000 live"),
    ),
    (
        10_000,
        event("emit_exclusive_10000", "emit, exclusive, 10 000 live"),
        event("emit_shared_10000", "emit, shared, 10 000 live"),
    ),
    (
        100_000,
        event("emit_exclusive_100000", "emit, exclusive, 100 000 live"),
        event("emit_shared_100000", "emit, shared, 100 000 live"),
    ),
];
/// Rows of the table that one is read from.
const DEVICES: u64 = 32;
/// Buffers that the limit and the socket's server are told of.
const LIVE: usize = 1_000;

const fn event(key: &'static str, name: &'static str) -> Case {
    Case { key, name, is_event: true }
}

const fn other(key: &'static str, name: &'static str) -> Case {
    Case { key, name, is_event: false }
}

/// Where it all happens, in a namespace of its own.
#[derive(Debug)]
pub(crate) struct Stage {
    table: Table,
    socket: SocketClient,
    disabled: Tracker,
    nowhere: Device,
    cached: Host,
    first: Host,
    /// Goes last, and everything in /dev/shm with it.
    pub(crate) scene: Scene,
}

impl Stage {
    pub(crate) fn new() -> anyhow::Result<Stage> {
        let scene = Scene::new();
        let table = published(&scene)?;
        let disabled = Tracker::disabled();
        let nowhere = disabled.register_device(&chip(1))?;
        let (cached, first) = (one_device(&scene)?, one_device(&scene)?);
        for host in [&cached, &first] {
            host.check().context("wrong before anything was timed")?;
        }
        let socket = SocketClient::with_server_thread()?;
        Ok(Stage { table, socket, disabled, nowhere, cached, first, scene })
    }

    /// A tracker that could not list everything does less than it should, and would seem fast.
    pub(crate) fn check_room(&self) -> anyhow::Result<()> {
        for path in segment_paths(&self.scene.namespace)? {
            if Segment::open(&path)?.unlisted() > 0 {
                bail!("/dev/shm has no room for the benchmark, which needs about 30 MB there");
            }
        }
        Ok(())
    }
}

/// A host with one device and a segment of its own.
pub(crate) fn one_device(scene: &Scene) -> anyhow::Result<Host> {
    Ok(Host::tracked(&scene.builder().open()?, 1))
}

/// A table with a row for each of some devices.
fn published(scene: &Scene) -> anyhow::Result<Table> {
    let tracker = scene.builder().open()?;
    for chip_id in 0..DEVICES {
        let device = tracker.register_device(&chip(chip_id))?;
        tracker.alloc(device, Alloc::new(BufferType::Dram, 1, SIZE))?;
    }
    scene.publish().map_err(anyhow::Error::from_boxed).context("cannot publish a table")
}

/// Adds every case, and says in which order they are.
pub(crate) fn add_all<'a>(stage: &'a Stage, interleaved: &mut Interleaved<'a>) -> anyhow::Result<Vec<Case>> {
    let mut adding = Adding { stage, interleaved, cases: Vec::new() };
    adding.limit()?;
    for (live, exclusive, shared) in EMITS {
        let sink = tracked(&stage.scene)?.into_exclusive();
        adding.emit(exclusive, sink, live)?;
        adding.emit(shared, tracked(&stage.scene)?, live)?;
    }
    adding.two_threads()?;
    adding.dispatches()?;
    adding.disabled()?;
    adding.socket()?;
    Ok(adding.cases)
}

fn tracked(scene: &Scene) -> anyhow::Result<Tracked<Tracker>> {
    let tracker = scene.builder().open()?;
    let device = tracker.register_device(&chip(1))?;
    Ok(Tracked { tracker, device })
}

struct Adding<'a, 'b> {
    stage: &'a Stage,
    interleaved: &'b mut Interleaved<'a>,
    cases: Vec<Case>,
}

impl<'a> Adding<'a, '_> {
    fn add<W, C>(&mut self, case: Case, figure: Figure, workload: W, check: C) -> anyhow::Result<()>
    where
        W: Workload + 'a,
        C: Fn(&mut W) -> Result<(), WrongSum> + 'a,
    {
        let added = self.interleaved.add(figure, workload, check);
        added.with_context(|| format!("{}: wrong before it was timed", case.name))?;
        self.cases.push(case);
        Ok(())
    }

    fn limit(&mut self) -> anyhow::Result<()> {
        let case = event(LIMIT, "limit: timestamp, slot, head");
        let pairs = Pairs::new(LimitRing::new()?, LIVE, Order::Random, 0);
        self.add(case, Figure::BestRound, pairs, |pairs| {
            let (head, stamp) = pairs.sink.last();
            WrongSum::check("as the stamp of the last slot", stamp, head)
        })
    }

    fn emit<R: Record + 'a>(&mut self, case: Case, sink: Tracked<R>, live: usize) -> anyhow::Result<()> {
        let pairs = Pairs::new(sink, live, Order::Random, 0);
        self.add(case, Figure::BestRound, pairs, |pairs| pairs.check())
    }

    /// Two threads at once: with a handle each, and with one that they share.
    fn two_threads(&mut self) -> anyhow::Result<()> {
        let scene = &self.stage.scene;
        let pairs = |sink, first| Pairs::new(sink, LIVE, Order::Random, first);
        let each =
            || Ok::<_, anyhow::Error>(Pairs::new(tracked(scene)?.into_exclusive(), LIVE, Order::Random, 0));
        let apart = Accompanied::new(each()?, each()?);
        let case = event("emit_exclusive_2_threads", "emit, exclusive, 2 threads");
        self.add(case, Figure::BestRound, apart, |apart| apart.own.check())?;
        let sink = tracked(scene)?;
        let other = pairs(sink.share(), 1 << 40);
        let both = other.live_bytes();
        let together = Accompanied::new(pairs(sink, 0), other);
        let case = event("emit_shared_2_threads", "emit, shared, 2 threads");
        self.add(case, Figure::BestRound, together, move |together| {
            together.settle();
            let expected = together.own.live_bytes() + both;
            WrongSum::check("bytes of DRAM counted", together.own.sink.dram_bytes(), expected)
        })
    }

    fn dispatches(&mut self) -> anyhow::Result<()> {
        let stage = self.stage;
        let cached = event("dispatch_cached", "cached dispatch");
        self.add(cached, Figure::BestRound, Single(|| stage.cached.dispatch()), |_| stage.cached.check())?;
        let first = event("dispatch_first", "first launch");
        let launches = FirstLaunches { host: &stage.first, program: 1 };
        self.add(first, Figure::Median, launches, |launches| launches.host.check())
    }

    fn disabled(&mut self) -> anyhow::Result<()> {
        let (tracker, device) = (&self.stage.disabled, self.stage.nowhere);
        // The same arguments, each kept from being known in advance, and no call.
        let nothing = move || {
            black_box((black_box(tracker), black_box(device), black_box(1_u64)));
            black_box(true);
        };
        let call = move || _ = black_box(black_box(tracker).free(black_box(device), black_box(1)).is_ok());
        let off = move || WrongSum::check("segments while tracking is off", tracker.is_enabled().into(), 0);
        self.add(other(LOOP_ALONE, "loop alone"), Figure::BestRound, Single(nothing), |_| Ok(()))?;
        self.add(other(DISABLED, "tracking disabled"), Figure::BestRound, Single(call), move |_| off())
    }

    fn socket(&mut self) -> anyhow::Result<()> {
        let (socket, table) = (&self.stage.socket, &self.stage.table);
        let counted = move |live: u64| {
            WrongSum::check("bytes of DRAM told by the server", socket.query(0)[place::DRAM], live)
        };
        let pairs = Pairs::new(socket, LIVE, Order::Random, 0);
        self.add(event(SOCKET_SEND, "socket send"), Figure::BestRound, pairs, move |pairs| {
            counted(pairs.live_bytes())
        })?;
        let used =
            move || table.device(black_box(3)).read(|row| (row.dram_used_bytes(), row.l1_used_bytes()));
        let row = other(ROW_READ, "read one device row");
        self.add(row, Figure::BestRound, Single(move || _ = black_box(used())), move |_| {
            WrongSum::check("bytes of DRAM in the row", used().map_or(0, |(dram, _)| dram), SIZE)
        })?;
        let query = Single(move || _ = black_box(socket.query(0)));
        self.add(other(SOCKET_QUERY, "socket query"), Figure::Median, query, move |_| {
            counted(LIVE as u64 * SIZE)
        })
    }
}

/// Launches of programs that were never seen, each ended at once, which is not timed.
struct FirstLaunches<'a> {
    host: &'a Host,
    program: u64,
}

impl Workload for FirstLaunches<'_> {
    fn events(&self) -> u64 {
        1
    }

    fn step<P: Probe>(&mut self, probe: &mut P) {
        self.program += 1;
        probe.event(|| self.host.first_launch(self.program));
        self.host.end(self.program);
    }
}
