//! Writes a record of made-up events and its report, and tells how long the report took and how long it is:
//! `made_up EVENTS FOLDER`. With a third argument, all names try to break out of the page.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use shm_layout::{Class, Counters, DeviceEntry, Event, EventKind, Row, SegmentHeader};
use tt_shm_record::{
    Begin, EndEntry, Ended, Entry, FrameTime, ProcessEntry, Record, RecordWriter, StateEntry,
};
use tt_shm_report::{Options, Report};

const PROCESSES: u32 = 4;
const BATCH: usize = 4096;
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>";

/// One process that allocates and frees, slowly more than it frees.
struct Worker {
    stamp: u64,
    counters: Counters,
    live: Vec<Event>,
    random: fastrand::Rng,
}

impl Worker {
    fn next(&mut self, ns: u64) -> Event {
        self.stamp += 1;
        let is_free = self.live.len() > 64 && self.random.u8(..) < 127;
        let event = match is_free {
            true => {
                let place = self.random.usize(..self.live.len());
                Event { kind: EventKind::Free as u8, ..self.live.swap_remove(place) }
            }
            false => self.alloc(),
        };
        let event = Event { stamp: self.stamp, time: ns, ..event };
        self.counters.apply(&event).expect("made-up events follow each other");
        if !is_free {
            self.live.push(event);
        }
        event
    }

    fn alloc(&mut self) -> Event {
        let (size, row) = (32 * self.random.u64(1..4096), self.stamp as u32 % (1 << 22));
        let class = [Class::Dram, Class::Dram, Class::L1, Class::Trace][self.random.usize(..4)] as u8;
        let (name, address) = (self.random.u16(1..=64), self.stamp % 65_536 * 4096);
        let (id, requested) = (self.stamp, size - 8);
        Event { class, id, size, aux: requested, address, row, name, ..Event::new(EventKind::Alloc, 0) }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let events: u64 = args.next().ok_or("the number of events is missing")?.parse()?;
    let folder = args.next().ok_or("the folder is missing")?;
    let file = Path::new(&folder).join("made-up.ttrec");
    write(&file, events, args.next().is_some())?;
    let since = Instant::now();
    let record = Record::open(&file)?;
    let opened = since.elapsed();
    let report = Report::of(&record, &Options::default(), &mut |_| {})?;
    let page = file.with_extension("html");
    report.write_html(&mut BufWriter::new(File::create(&page)?))?;
    let (took, len) = (since.elapsed(), std::fs::metadata(&page)?.len());
    println!(
        "{events} events, {} bytes: opened in {opened:.2?}, report in {took:.2?}, {len} bytes",
        record.totals().bytes
    );
    Ok(())
}

fn write(file: &Path, events: u64, is_hostile: bool) -> Result<(), Box<dyn Error>> {
    let begin =
        Begin { host: "made-up".into(), monotonic_ns: 1_000_000, realtime_ns: 1 << 60, ..Begin::default() };
    let out = BufWriter::new(File::create(file)?);
    let mut writer = RecordWriter::new(out, &begin, Default::default())?;
    let mut workers = Vec::new();
    for number in 0..PROCESSES {
        let name = if is_hostile { HOSTILE } else { "worker" };
        let process_name = shm_layout::text::encode(name);
        let plan = SegmentHeader::plan(64, 64, 4096);
        let header = SegmentHeader { clock_kind: 3, pid: 100 + u64::from(number), process_name, ..plan };
        writer.process(&ProcessEntry::new(number, header))?;
        let names = (1..=64)
            .map(|id| (id, format!("{}.{id}", if is_hostile { HOSTILE } else { "layers" }).into_bytes()));
        writer.names(number, names.collect())?;
        writer.devices(number, vec![(0, DeviceEntry { chip_id: 7, ..bytemuck::zeroed() })])?;
        writer.state(number, &StateEntry::nothing(1_000_000), &[])?;
        let random = fastrand::Rng::with_seed(u64::from(number));
        workers.push(Worker { stamp: 0, counters: Counters::ZERO, live: Vec::new(), random });
    }
    let (mut ns, mut written) = (2_000_000, 0);
    while written < events {
        for (number, worker) in (0..).zip(&mut workers) {
            let batch: Vec<Event> =
                (0..BATCH as u64).map(|place| worker.next(ns + 400 * place + number)).collect();
            let number = number as u32;
            writer.events(
                number,
                &batch,
                FrameTime { first_ns: batch[0].time, last_ns: ns + 400 * BATCH as u64 },
            )?;
            written += BATCH as u64;
            if worker.stamp.is_multiple_of(64 * BATCH as u64) {
                let rows: Vec<Row> = worker.live.iter().map(Row::from_event).collect();
                let state = StateEntry {
                    position: worker.stamp,
                    counters: vec![worker.counters],
                    ..StateEntry::nothing(batch[BATCH - 1].time)
                };
                writer.state(number, &state, &rows)?;
            }
        }
        ns += 400 * BATCH as u64;
    }
    let end = EndEntry { process: 1, noticed_ns: ns, how: Ended::Died, position: workers[1].stamp };
    writer.entry(&Entry::End(end), FrameTime::at(ns))?;
    writer.finish(ns + 1)?;
    Ok(())
}
