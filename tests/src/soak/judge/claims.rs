//! What a table says, taken apart into claims that know nothing of its layout.

use super::account::{
    ALLOCATED, ALLOCATIONS, CACHED, CB_RESIDENT, COUNTS, DISPATCHES, DRAM, ETH, FAILED, KERNEL_RESIDENT, L1,
    REQUESTED, name_of,
};
use shm_layout::table::{
    Bucket, Composition, DeviceStats, FailureRecord, Peak, bucket_flags, device_flags, failure_flags,
};
use shm_layout::{Class, Counters, UNKNOWN};
use std::fmt;
use tt_shm_reader::{TableSnapshot, process_state};

/// Which end of a bucket of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// The least.
    Min,
    /// The most.
    Max,
    /// The last.
    Last,
}

/// A figure of a process on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// A quantity now.
    Now(usize),
    /// Its own peak of a quantity.
    Top(usize),
}

/// What a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A quantity of the device now.
    Now(usize),
    /// Its largest value in the window.
    Peak(usize),
    /// A bucket of the history: resolution, start, length, memory (0 DRAM, 1 L1), which end.
    Bucket(usize, u64, u64, usize, Edge),
    /// A figure of a process as of a position of its ring.
    Own(u64, u64, Own),
    /// How far a process was followed.
    Position(u64),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            What::Now(quantity) => write!(f, "{} now", name_of(quantity)),
            What::Peak(quantity) => write!(f, "{} peak", name_of(quantity)),
            What::Bucket(resolution, start, _, memory, edge) => {
                write!(f, "history {resolution} {} {edge:?} from {start}", ["dram", "l1"][memory])
            }
            What::Own(_, _, Own::Now(quantity)) => write!(f, "own {}", name_of(quantity)),
            What::Own(_, _, Own::Top(quantity)) => write!(f, "own {} peak", name_of(quantity)),
            What::Position(_) => write!(f, "position"),
        }
    }
}

/// One figure as it is published: exact if both ends meet.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Number of the device.
    pub device: usize,
    /// What it is about.
    pub what: What,
    /// It is at least this.
    pub low: u64,
    /// It is at most this; `None` if nothing bounds it.
    pub high: Option<u64>,
    /// When `low` was reached, in nanoseconds, if that is said.
    pub time: Option<u64>,
    /// Buffers at that time, if that is said.
    pub count: Option<u64>,
}

impl Claim {
    fn exact(device: usize, what: What, value: u64) -> Claim {
        Claim { device, what, low: value, high: Some(value), time: None, count: None }
    }

    /// Whether it is called exact.
    pub fn is_exact(&self) -> bool {
        self.high == Some(self.low)
    }
}

/// What a peak is said to be made of.
#[derive(Clone, Debug)]
pub struct Made {
    /// The peak.
    pub peak: Claim,
    /// Bytes by class; all 0 if nobody knows.
    pub classes: [u64; Class::COUNT],
    /// Identities and bytes.
    pub holders: Vec<(u64, u64)>,
    /// Bytes of all others.
    pub others: u64,
}

/// What is said of an allocation that failed.
#[derive(Clone, Debug)]
pub struct FailureClaim {
    /// Whose, and which of its events.
    pub event: (u64, u64),
    /// When.
    pub time: u64,
    /// Bytes asked for, free, in the largest block.
    pub bytes: [u64; 3],
    /// Identities and bytes of DRAM, if they are called exact.
    pub holders: Option<Vec<(u64, u64)>>,
    /// Bytes of DRAM of all others.
    pub others: u64,
}

/// Everything that is said at one moment.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Figures.
    pub figures: Vec<Claim>,
    /// What the peaks are made of.
    pub made: Vec<Made>,
    /// Failures.
    pub failures: Vec<FailureClaim>,
}

/// The number of a device, by its chip.
fn number_of(chip: u64) -> usize {
    chip.saturating_sub(1) as usize
}

/// What a snapshot of a table says.
pub fn of_snapshot(snapshot: &TableSnapshot) -> Claims {
    let mut claims = Claims::default();
    for (_, device) in &snapshot.devices {
        device_claims(device, &mut claims);
    }
    for (_, usage) in &snapshot.usages {
        let process = snapshot.processes.iter().find(|(row, _)| *row as u64 == usage.process);
        let device = snapshot.devices.iter().find(|(row, _)| *row as u64 == usage.device);
        if let (Some((_, process)), Some((_, device))) = (process, device)
            && process.state == process_state::ALIVE
        {
            let device = number_of(device.entry.chip_id);
            own_claims(device, process.identity, &usage.counters, &mut claims.figures);
        }
    }
    for (_, process) in snapshot.processes.iter().filter(|(_, p)| p.state == process_state::ALIVE) {
        claims.figures.push(Claim::exact(0, What::Position(process.identity), process.position));
    }
    claims.failures = snapshot.failures.iter().map(failure_claim).collect();
    claims
}

fn device_claims(stats: &DeviceStats, claims: &mut Claims) {
    let device = number_of(stats.entry.chip_id);
    let kernels = stats.kernel_resident_bytes + stats.system_kernel_bytes;
    let now = [
        (DRAM, stats.dram_used_bytes),
        (L1, stats.l1_used_bytes),
        (ETH, stats.eth_used_bytes),
        (CB_RESIDENT, stats.cb_resident_bytes),
        (KERNEL_RESIDENT, kernels),
        (DISPATCHES, stats.dispatches),
        (CACHED, stats.cached_dispatches),
        (FAILED, stats.failed_allocs),
    ];
    let classes = stats.classes.iter().enumerate();
    let live = classes.clone().flat_map(|(class, s)| {
        [
            (class, s.live_bytes),
            (COUNTS + class, s.live_count),
            (REQUESTED + class, s.requested_bytes),
            (ALLOCATED + class, s.alloc_bytes),
            (ALLOCATIONS + class, s.alloc_count),
        ]
    });
    let incomplete = stats.flags & device_flags::INCOMPLETE != 0;
    for (quantity, value) in now.into_iter().chain(live) {
        let claim = Claim::exact(device, What::Now(quantity), value);
        claims.figures.push(Claim { high: claim.high.filter(|_| !incomplete), ..claim });
    }
    let peaks = [
        (DRAM, &stats.dram_peak),
        (L1, &stats.l1_peak),
        (ETH, &stats.eth_peak),
        (CB_RESIDENT, &stats.cb_resident_peak),
        (KERNEL_RESIDENT, &stats.kernel_resident_peak),
    ];
    let peaks = peaks.into_iter().chain(classes.map(|(class, s)| (class, &s.peak)));
    claims.figures.extend(peaks.map(|(quantity, peak)| peak_claim(device, quantity, peak)));
    let made = [
        (DRAM, &stats.dram_peak, &stats.dram_composition, device_flags::DRAM_COMPOSITION_EXACT),
        (L1, &stats.l1_peak, &stats.l1_composition, device_flags::L1_COMPOSITION_EXACT),
    ];
    for (quantity, peak, made, exact) in made {
        if stats.flags & exact != 0 {
            claims.made.push(made_claim(peak_claim(device, quantity, peak), made));
        }
    }
}

fn peak_claim(device: usize, quantity: usize, peak: &Peak) -> Claim {
    let high = Some(peak.high).filter(|high| *high != UNKNOWN);
    let time = Some(peak.time).filter(|time| *time != 0);
    Claim { device, what: What::Peak(quantity), low: peak.low, high, time, count: Some(peak.count) }
}

fn made_claim(peak: Claim, made: &Composition) -> Made {
    let holders = made.holders.iter().filter(|holder| holder.identity != 0);
    let holders = holders.map(|holder| (holder.identity, holder.bytes)).collect();
    Made { peak, classes: made.classes, holders, others: made.others }
}

fn own_claims(device: usize, identity: u64, counters: &Counters, claims: &mut Vec<Claim>) {
    let mut claim = |own, value, time: u64, count| {
        let claim = Claim::exact(device, What::Own(identity, counters.position, own), value);
        claims.push(Claim { time: Some(time).filter(|time| *time != 0), count, ..claim });
    };
    let kernels = counters.kernel_resident_bytes + counters.system_kernel_bytes;
    for (own, value) in [
        (Own::Now(DRAM), counters.dram_used()),
        (Own::Now(L1), counters.l1_used()),
        (Own::Now(ETH), counters.eth_used()),
        (Own::Now(CB_RESIDENT), counters.cb_resident_bytes),
        (Own::Now(KERNEL_RESIDENT), kernels),
        (Own::Now(DISPATCHES), counters.dispatches),
        (Own::Now(CACHED), counters.cached_dispatches),
        (Own::Now(FAILED), counters.failed_allocs),
    ] {
        claim(own, value, 0, None);
    }
    let Counters { dram_peak_time, dram_peak_count, l1_peak_time, l1_peak_count, eth_peak_time, .. } =
        *counters;
    claim(Own::Top(DRAM), counters.dram_peak_bytes, dram_peak_time, Some(dram_peak_count));
    claim(Own::Top(L1), counters.l1_peak_bytes, l1_peak_time, Some(l1_peak_count));
    claim(Own::Top(ETH), counters.eth_peak_bytes, eth_peak_time, None);
    for (number, class) in counters.classes.iter().enumerate() {
        claim(Own::Now(number), class.live_bytes, 0, None);
        claim(Own::Now(COUNTS + number), class.live_count, 0, None);
        claim(Own::Now(REQUESTED + number), class.requested_bytes, 0, None);
        claim(Own::Now(ALLOCATED + number), class.alloc_bytes, 0, None);
        claim(Own::Now(ALLOCATIONS + number), class.alloc_count, 0, None);
        claim(Own::Top(number), class.peak_bytes, class.peak_time, Some(class.peak_count));
    }
}

fn failure_claim(record: &FailureRecord) -> FailureClaim {
    let dram = |classes: &[u64; Class::COUNT]| classes[Class::Dram as usize] + classes[Class::Trace as usize];
    let holders = record.holders.iter().filter(|holder| holder.identity != 0);
    let holders = holders.map(|holder| (holder.identity, dram(&holder.classes))).collect();
    FailureClaim {
        event: (record.identity, record.position),
        time: record.time,
        bytes: [record.request_bytes, record.free_bytes, record.largest_free_bytes],
        holders: record.has(failure_flags::HOLDERS_EXACT).then_some(holders),
        others: dram(&record.others),
    }
}

/// What buckets of a history say.
pub fn of_bucket(device: usize, resolution: usize, length: u64, bucket: &Bucket) -> Vec<Claim> {
    if bucket.flags & bucket_flags::INEXACT != 0 {
        return Vec::new();
    }
    let claim = |memory, edge, value| {
        Claim::exact(device, What::Bucket(resolution, bucket.start, length, memory, edge), value)
    };
    vec![
        claim(0, Edge::Min, bucket.dram_min),
        claim(0, Edge::Max, bucket.dram_max),
        claim(0, Edge::Last, bucket.dram_last),
        claim(1, Edge::Min, bucket.l1_min),
        claim(1, Edge::Max, bucket.l1_max),
        claim(1, Edge::Last, bucket.l1_last),
    ]
}
