//! From a record to the data of a page: two passes, and what is chosen of them.

use std::collections::{BTreeMap, BTreeSet};

use shm_layout::{Class, DeviceEntry, UNKNOWN, flags, known};
use tt_shm_record::{Ended, ReadError, Record};

use crate::Options;
use crate::census::{Census, Held, Key, When};
use crate::chips::{Chips, label};
use crate::document::{Curve, Device, Document, Failure, Holding, Process, Snapshot, Usage};
use crate::figure::{self, USED};
use crate::findings;
use crate::follow::Schedule;
use crate::series::Series;
use crate::text::{Texts, visible};
use crate::timeline::{self, TimeLine};

/// The most bytes of all curves in a page.
const MAX_CURVE_BYTES: usize = 2_400_000;
/// The most blocks of all maps, and groups of all snapshots, of DRAM and as many of L1 in a page: half of them for peaks.
const MAX_BLOCKS: usize = 40_000;
const MAX_GROUPS: usize = 8_000;
/// The most rows of a table.
const MAX_ROWS: usize = 2_000;
/// How often the memory is looked at at equal distances.
const LOOKS: u64 = 12;

/// A moment at which the memory is looked at.
struct Look {
    when: When,
    ns: u64,
    kind: &'static str,
    label: String,
    /// The chip and the figure whose peak it is.
    of: Option<(usize, usize)>,
}

impl Look {
    fn new(when: When, ns: u64, kind: &'static str, label: String) -> Look {
        Look { when, ns, kind, label, of: None }
    }
}

/// Devices that are alike, by the first: places of chips.
type Groups = Vec<Vec<usize>>;

pub(crate) fn document(
    record: &Record,
    options: &Options,
    progress: &mut dyn FnMut(f64),
) -> Result<Document, ReadError> {
    let (chips, schedule) = (Chips::of(record), Schedule::of(record)?);
    let mut line = TimeLine::new(&chips, &schedule);
    let followed = schedule.follow(record, &mut line, &mut |part| progress(part / 2.0))?;
    line.finish();
    let groups = alike(&chips, &line);
    let looks = choose(record, &schedule, &line, &groups);
    let mut is_shown = vec![false; chips.list.len()];
    groups.iter().for_each(|group| is_shown[group[0]] = true);
    let is_doubted = schedule.processes.iter().map(|summary| summary.is_doubted()).collect();
    let whens = looks.iter().map(|look| look.when).collect();
    let mut census = Census::new(record, &chips, is_shown, is_doubted, whens);
    schedule.follow(record, &mut census, &mut |part| progress(0.5 + part / 2.0))?;
    census.finish();
    let mut reduced = Reduced { record, chips: &chips, schedule: &schedule, line, groups, looks, census };
    let mut document = reduced.document(options);
    (document.refused, document.out_of_order) = (followed.refused, followed.out_of_order);
    document.findings = findings::of(&document);
    Ok(document)
}

/// Groups chips that cannot be told apart by what they are, held and did.
fn alike(chips: &Chips, line: &TimeLine<'_>) -> Groups {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, chip) in chips.list.iter().enumerate() {
        let what = chip.entry.as_ref().map(|entry| (entry.architecture().name(), entry.board_name()));
        let peaks: Vec<_> = line.lines[place].peaks.iter().map(|peak| (peak.low, peak.high)).collect();
        let mut usages: Vec<_> = line.usages.iter().filter(|usage| usage.chip == place).collect();
        usages.sort_by_key(|usage| usage.process);
        let usages: Vec<_> = usages
            .iter()
            .map(|usage| (usage.process, usage.counts, usage.last, usage.peaks.map(|peak| peak.low)))
            .collect();
        let (counts, was_unknown) = (line.lines[place].counts, line.lines[place].was_unknown);
        let failed = line.failures.iter().filter(|failure| failure.chip == place);
        let failed: Vec<_> = failed
            .map(|failure| (failure.process, failure.event.class, failure.event.size, failure.event.aux))
            .collect();
        let totals = chip.totals();
        let key = format!("{what:?} {totals:?} {peaks:?} {counts:?} {was_unknown} {usages:?} {failed:?}");
        groups.entry(key).or_default().push(place);
    }
    let mut groups: Groups = groups.into_values().collect();
    groups.sort();
    groups
}

/// The moments at which the memory is looked at, in their order.
fn choose(record: &Record, schedule: &Schedule, line: &TimeLine<'_>, groups: &Groups) -> Vec<Look> {
    let (first, last) = schedule.span_ns;
    let mut looks = Vec::new();
    for group in groups {
        for figure in USED {
            let peak = line.lines[group[0]].peaks[figure];
            if peak.low > 0 {
                let label = format!("peak of {} on {}", figure::TITLES[figure].1, label(group));
                let look = Look::new(When::Change(peak.number), peak.ns, "peak", label);
                looks.push(Look { of: Some((group[0], figure)), ..look });
            }
        }
    }
    let failures = line.failures.len();
    let chosen = line.failures.iter().enumerate().filter(|(place, _)| *place < 4 || place + 4 >= failures);
    for (_, failure) in chosen {
        let (when, ns) = (When::Change(failure.at.number), failure.at.ns);
        looks.push(Look::new(when, ns, "failure", "failed allocation".to_owned()));
    }
    let died = record
        .processes()
        .enumerate()
        .filter(|(_, process)| process.end.is_some_and(|end| end.how == Ended::Died));
    for (place, process) in died.take(4) {
        if let (Some(number), Some(ns)) = (line.ended[place], schedule.processes[place].until_ns) {
            let label = format!("before the end of {}", visible(&process.process_name()));
            looks.push(Look::new(When::Change(number), ns.min(last), "death", label));
        }
    }
    let even = (1..=LOOKS)
        .map(|look| first + ((last - first) as u128 * u128::from(look) / u128::from(LOOKS + 1)) as u64);
    looks.extend(even.map(|ns| Look::new(When::Time(ns), ns, "look", "at equal distances".to_owned())));
    looks.push(Look::new(When::Time(u64::MAX - 1), last, "end", "end of the record".to_owned()));
    // Times come after the changes of that time.
    looks.sort_by_key(|look| match look.when {
        When::Change(number) => (look.ns, 0, number),
        When::Time(_) => (look.ns, 1, 0),
    });
    looks
}

struct Reduced<'a> {
    record: &'a Record,
    chips: &'a Chips,
    schedule: &'a Schedule,
    line: TimeLine<'a>,
    groups: Groups,
    looks: Vec<Look>,
    census: Census<'a>,
}

impl Reduced<'_> {
    fn relative(&self, ns: u64) -> u64 {
        let (first, last) = self.schedule.span_ns;
        ns.clamp(first, last) - first
    }

    fn spans(&self, list: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
        list.into_iter().map(|(from, to)| (self.relative(from), self.relative(to))).collect()
    }

    /// The place of the devices that a chip belongs to.
    fn group_of(&self, chip: usize) -> usize {
        self.groups.iter().position(|group| group.contains(&chip)).unwrap_or(0)
    }

    fn document(&mut self, options: &Options) -> Document {
        let begin = self.record.begin().clone();
        let file = self.record.path().file_name().map(|name| name.to_string_lossy().into_owned());
        let file = visible(&file.unwrap_or_default());
        let totals = self.record.totals();
        self.fit_curves();
        let failures = self.failures();
        let (markers, marker_count) = self.markers();
        let (first, last) = self.schedule.span_ns;
        Document {
            title: options
                .title
                .as_deref()
                .map_or_else(|| format!("Memory of {}", visible(&begin.host)), visible),
            file,
            host: visible(&begin.host),
            namespace: visible(&begin.namespace),
            command: visible(&begin.command.join(" ")),
            tool: visible(&begin.tool),
            record_bytes: totals.bytes,
            start_ms: self.record.to_realtime_ns(first) as f64 / 1e6,
            span_ns: last - first,
            begin_ns: self.relative(self.schedule.begin_ns),
            bucket_ns: self.line.bucket_ns(),
            events: totals.events,
            lost: totals.lost,
            gap_count: totals.gaps,
            refused: 0,
            out_of_order: 0,
            is_finished: self.record.finished_ns().is_some(),
            complete_ns: self.relative(self.record.complete_until_ns()),
            figures: figure::TITLES,
            classes: Class::ALL.iter().map(|class| class.name()).collect(),
            findings: Vec::new(),
            devices: (0..self.groups.len()).map(|group| self.device(group)).collect(),
            processes: self.processes(),
            snapshots: self.snapshots(),
            left: self.left(),
            left_count: (self.census.left.len() + self.census.dropped.len()) as u64,
            failures,
            failure_count: self.line.failure_count,
            programs: self.programs(),
            program_count: self.census.programs.len() as u64,
            markers,
            marker_count,
            unlisted_groups: self.census.unlisted_groups,
            texts: std::mem::replace(&mut self.census.texts, Texts::new()),
        }
    }

    /// Joins buckets of the curves that take the most room until all fit.
    fn fit_curves(&mut self) {
        let shown: BTreeSet<usize> = self.groups.iter().map(|group| group[0]).collect();
        let lines = self.line.lines.iter_mut().enumerate().filter(|(chip, _)| shown.contains(chip));
        let usages = self.line.usages.iter_mut().filter(|usage| shown.contains(&usage.chip));
        let mut curves: Vec<&mut Series> = lines.flat_map(|(_, line)| &mut line.curves).collect();
        curves.extend(usages.flat_map(|usage| &mut usage.curves));
        let mut sizes: Vec<usize> = curves.iter().map(|curve| curve.encode().len()).collect();
        while sizes.iter().sum::<usize>() > MAX_CURVE_BYTES {
            let Some(largest) = (0..sizes.len()).max_by_key(|place| sizes[*place]) else { break };
            if curves[largest].len() <= 2 {
                break;
            }
            curves[largest].coarsen();
            sizes[largest] = curves[largest].encode().len();
        }
    }

    fn device(&self, group: usize) -> Device {
        let chips = &self.groups[group];
        let (chip, line) = (&self.chips.list[chips[0]], &self.line.lines[chips[0]]);
        let entry = chip.entry.as_ref();
        let curve = |series: &Series| Curve { shift: series.shift, cells: series.encode() };
        let usages = self.line.usages.iter().filter(|usage| usage.chip == chips[0]);
        let (shown, is_last_exact) = line.shown();
        Device {
            label: label(chips),
            chips: chips
                .iter()
                .map(|place| {
                    self.chips.list[*place]
                        .entry
                        .map_or("-".to_owned(), |entry| format!("{:#x}", entry.chip_id))
                })
                .collect(),
            arch: entry.and_then(|entry| entry.architecture().name()),
            board: entry.and_then(DeviceEntry::board_name).map(|board| visible(&board)),
            totals: chip.totals(),
            pools: figure::POOLED.map(|(_, class)| chip.pool_total(class)),
            extents: entry.map_or_else(Default::default, extents),
            counts: line.counts,
            peaks: line.peaks.iter().map(|peak| self.peak(peak, line.was_unknown)).collect(),
            last: shown.to_vec(),
            is_last_exact,
            curves: line.curves.iter().map(curve).collect(),
            gaps: self.spans(line.gaps.clone().finish(self.schedule.span_ns.1)),
            doubts: self.spans(line.doubts.clone().finish(self.schedule.span_ns.1)),
            usages: usages
                .map(|usage| Usage {
                    process: usage.process,
                    peaks: usage.peaks.map(|peak| (peak.low, self.relative(peak.ns))),
                    last: USED.map(|figure| usage.last[figure]),
                    counts: usage.counts,
                    curves: usage.curves.iter().map(curve).collect(),
                })
                .collect(),
        }
    }

    fn peak(&self, peak: &timeline::Peak, was_unknown: bool) -> (u64, Option<u64>, u64) {
        (peak.low, (!was_unknown).then_some(peak.high), self.relative(peak.ns))
    }

    fn processes(&self) -> Vec<Process> {
        let text = |text: &Option<String>| text.as_deref().map(visible);
        let one = |(place, process): (usize, &tt_shm_record::Process)| {
            let (summary, who) = (&self.schedule.processes[place], &process.entry.who);
            let gaps = process.gaps.iter().take(200);
            Process {
                pid: who.pid_here.map_or(process.entry.header.pid, u64::from),
                name: visible(&process.process_name()),
                user: text(&who.user),
                command: text(&who.command_line),
                container: text(&who.container_id),
                job: text(&who.job),
                since: self.relative(summary.since_ns),
                until: summary.until_ns.map(|ns| self.relative(ns)),
                how: match process.end.map(|end| end.how) {
                    None => "alive",
                    Some(Ended::Closed) => "closed",
                    Some(Ended::Died) => "died",
                    Some(Ended::Lost) => "lost",
                    Some(Ended::Unknown) => "unknown",
                },
                events: process.events,
                lost: process.lost(),
                is_partial: summary.is_partial,
                differences: summary.differences,
                unlisted: summary.unlisted,
                unknown: self.spans(self.line.unknown[place].clone().finish(self.schedule.span_ns.1)),
                gaps: gaps
                    .map(|gap| (self.relative(gap.after_ns), self.relative(gap.before_ns), gap.lost()))
                    .collect(),
            }
        };
        self.record.processes().enumerate().map(one).collect()
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        let maps = (self.census.looks.len() * self.groups.len()).max(1);
        let peaks = self.looks.iter().filter(|look| look.of.is_some()).count().max(1);
        let looks = self.looks.iter().zip(&self.census.looks);
        let holding = |look: &Look, holding: &crate::census::Holding| {
            let is_own = look.of.is_some_and(|(chip, _)| chip == holding.chip);
            let share = 2 * if is_own { peaks } else { maps };
            self.holding(holding, MAX_BLOCKS / share, MAX_GROUPS / share)
        };
        let snapshot = |(look, holdings): (&Look, &Vec<crate::census::Holding>)| Snapshot {
            ns: self.relative(look.ns),
            kind: look.kind,
            label: look.label.clone(),
            of: look.of.map(|(chip, figure)| (self.group_of(chip), figure)),
            devices: holdings.iter().map(|one| holding(look, one)).collect(),
        };
        looks.map(snapshot).collect()
    }

    fn holding(&self, holding: &crate::census::Holding, blocks: usize, most: usize) -> Holding {
        let mut sorted: Vec<(&Key, &Held)> = holding.groups.iter().collect();
        sorted.sort_by_key(|(key, held)| (std::cmp::Reverse(held.bytes), **key));
        let (mut groups, mut counts) = (Vec::new(), [0; 2]);
        let (mut others, mut listed) = ([(0, 0); 2], [0_u64; 2]);
        for (key, held) in sorted {
            // DRAM and L1 have a limit each: the small groups of L1 matter as much.
            let Some(memory) = memory_of(key.class) else { continue };
            listed[memory] += held.bytes;
            if counts[memory] < most {
                let (class, name) = (u64::from(key.class), u64::from(key.name));
                groups.push([class, name, key.process as u64, held.bytes, held.requested, held.count]);
                counts[memory] += 1;
            } else {
                others[memory].0 += 1;
                others[memory].1 += held.bytes;
            }
        }
        let mut hidden = [0; 2];
        let map = |memory: usize| {
            let mut list = holding.blocks[memory].clone();
            list.sort_by_key(|block| std::cmp::Reverse(block.len));
            hidden[memory] = list.len().saturating_sub(blocks) as u64;
            list.truncate(blocks);
            list.sort_unstable();
            let numbers = |block: &crate::census::Block| {
                let Key { class, name, process, .. } = block.key;
                [block.start, block.len, u64::from(class), u64::from(name), process as u64, block.count]
            };
            list.iter().map(numbers).collect::<Vec<_>>()
        };
        let blocks = [0, 1].map(map);
        Holding {
            device: self.group_of(holding.chip),
            is_exact: holding.is_exact,
            figures: holding.figures,
            groups,
            others,
            unlisted: USED.map(|figure| holding.figures[figure].saturating_sub(listed[figure])),
            blocks,
            hidden,
            unplaced: holding.unplaced,
        }
    }

    /// What was never freed: left at the end of its process (1) or of the record (0), or dropped when its device was
    /// closed (2). Largest first.
    fn left(&self) -> Vec<[u64; 11]> {
        let ended = |key: &Key| u64::from(self.line.ended[key.process].is_some());
        let left = self.census.left.iter().map(|(key, held)| (key, held, ended(key)));
        let dropped = self.census.dropped.iter().map(|(key, held)| (key, held, 2));
        let row = |(key, held, fate): (&Key, &Held, u64)| {
            let (device, process) = (self.group_of(key.chip) as u64, key.process as u64);
            let Held { bytes, requested, count, new, oldest_ns } = *held;
            let (class, name, oldest) = (u64::from(key.class), u64::from(key.name), self.relative(oldest_ns));
            [device, process, class, name, bytes, requested, count, new, oldest, fate, self.rises(key)]
        };
        let mut rows: Vec<_> = left.chain(dropped).map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row[4]));
        rows.truncate(MAX_ROWS);
        rows
    }

    /// How often the number of a group rose from one look to the next; 0 if it ever fell.
    fn rises(&self, key: &Key) -> u64 {
        let looks = self.looks.iter().zip(&self.census.looks).filter(|(look, _)| look.kind == "look");
        let count = |holdings: &Vec<crate::census::Holding>| {
            let holding = holdings.iter().find(|holding| holding.chip == key.chip);
            holding.and_then(|holding| holding.groups.get(key)).map_or(0, |held| held.count)
        };
        let counts: Vec<u64> = looks.map(|(_, holdings)| count(holdings)).collect();
        let falls = counts.windows(2).any(|pair| pair[1] < pair[0]);
        if falls { 0 } else { counts.windows(2).filter(|pair| pair[1] > pair[0]).count() as u64 }
    }

    fn failures(&mut self) -> Vec<Failure> {
        let known = |value: u64| (value != UNKNOWN).then_some(value);
        let mut list = Vec::new();
        for failure in self.line.failures.clone() {
            let event = &failure.event;
            let name =
                self.record.processes().nth(failure.process).and_then(|process| process.name(event.name));
            let name = name.map_or(Texts::NONE, |name| self.census.texts.number(name));
            let (is_per_bank, needed, free, largest) =
                (event.has(flags::PER_BANK), known(event.id), known(event.address), known(event.aux));
            let when = When::Change(failure.at.number);
            list.push(Failure {
                ns: self.relative(failure.at.ns),
                device: self.group_of(failure.chip),
                on: label(&[failure.chip]),
                process: failure.process,
                class: event.class().map_or("unknown", Class::name),
                name,
                size: known(event.size),
                needed,
                banks: (event.cores > 0).then_some(u64::from(event.cores)),
                free,
                largest,
                is_per_bank,
                why: why(if is_per_bank { needed } else { known(event.size) }, free, largest),
                held: USED.map(|figure| failure.held[figure]),
                is_exact: failure.is_exact,
                snapshot: self.looks.iter().position(|look| look.when == when),
            });
        }
        list
    }

    fn programs(&self) -> Vec<[u64; 9]> {
        let row = |((chip, process, name), program): (&(usize, usize, u32), &crate::census::Program)| {
            let (device, process, name) = (self.group_of(*chip) as u64, *process as u64, u64::from(*name));
            let (first, last) = (self.relative(program.first_ns), self.relative(program.last_ns));
            let crate::census::Program { dispatches, cached, cb_bytes, kernel_bytes, .. } = *program;
            [device, process, name, dispatches, cached, cb_bytes, kernel_bytes, first, last]
        };
        let mut rows: Vec<_> = self.census.programs.iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row[3]));
        rows.truncate(MAX_ROWS);
        rows
    }

    fn markers(&mut self) -> (Vec<[u64; 5]>, u64) {
        let (record, mut list) = (self.record, Vec::new());
        for marker in record.markers().iter().take(MAX_ROWS) {
            let name = record.process(marker.process).and_then(|process| process.name(marker.event.name));
            let name = name.map_or(Texts::NONE, |name| self.census.texts.number(name));
            let Some(process) = self.schedule.place(marker.process) else { continue };
            let (ns, phase) = (self.relative(marker.ns), u64::from(marker.event.class));
            // Ids are shown, not computed with: a page has no numbers beyond 2^53.
            list.push([ns, process as u64, u64::from(name), phase, marker.event.id.min(1 << 53)]);
        }
        (list, record.markers().len() as u64)
    }
}

/// Where the maps of a bank of DRAM and of the L1 of a core begin and end.
fn extents(entry: &DeviceEntry) -> [(Option<u64>, Option<u64>); 2] {
    let is = |bit: u64| entry.known & bit != 0;
    let has_channels = is(known::DRAM) && is(known::DRAM_CHANNELS) && entry.dram_channels > 0;
    let bank = has_channels.then(|| entry.dram_bytes / entry.dram_channels);
    let bank = bank.or(entry.pool(Class::Dram).map(|pool| pool.bank_bytes));
    let l1 = is(known::L1).then_some(entry.l1_per_core);
    [(Some(0), bank), (is(known::L1_BASE).then_some(entry.l1_base), l1)]
}

/// DRAM (0) or L1 (1), for the classes that are used there.
fn memory_of(class: u8) -> Option<usize> {
    let class = Class::from_code(class)?;
    match class {
        Class::Cb => Some(1),
        _ if class.is_dram() => Some(0),
        _ if class.is_l1_buffer() => Some(1),
        _ => None,
    }
}

fn why(needed: Option<u64>, free: Option<u64>, largest: Option<u64>) -> &'static str {
    match (needed, free, largest) {
        (Some(needed), Some(free), _) if free < needed => "exhausted",
        (Some(needed), Some(_), Some(largest)) if largest < needed => "fragmented",
        _ => "unknown",
    }
}
