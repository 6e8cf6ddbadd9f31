//! What was used, and what the driver measured, over the last minutes, hours and the last day.

use tt_shm_reader::{
    Bucket, HISTORY_BUCKETS, HISTORY_RESOLUTIONS, TELEMETRY_RESOLUTIONS, TRENDS, TelemetryBucket, Trend,
};

use crate::code::{Done, call};
use crate::objects::{self, tt_shm_source, tt_shm_table};
use crate::raw::{Handle, Out, OutStructs, versioned};
use crate::source::with;
use crate::types::no_such;

/// Resolutions: the last minute or, of telemetry, the last eight minutes.
pub const TT_SHM_HISTORY_MINUTE: u32 = 0;
/// The last hour.
pub const TT_SHM_HISTORY_HOUR: u32 = 1;
/// The last day.
pub const TT_SHM_HISTORY_DAY: u32 = 2;
/// The most buckets of a resolution.
pub const TT_SHM_HISTORY_BUCKETS: usize = 240;

/// Bits of `tt_shm_bucket.flags`: something was not followed in a part of this time, so figures need not be exact.
pub const TT_SHM_BUCKET_INEXACT: u32 = 1 << 0;

/// What was used of a device in a short time. A bucket that is missing between others is a time that no aggregator saw.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_bucket {
    /// `sizeof(tt_shm_bucket)`.
    pub size: u32,
    /// `TT_SHM_BUCKET_...` bits.
    pub flags: u32,
    /// Its beginning, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Smallest DRAM used.
    pub dram_min_bytes: u64,
    /// Largest DRAM used.
    pub dram_max_bytes: u64,
    /// Last DRAM used.
    pub dram_last_bytes: u64,
    /// Smallest L1 used.
    pub l1_min_bytes: u64,
    /// Largest L1 used.
    pub l1_max_bytes: u64,
    /// Last L1 used.
    pub l1_last_bytes: u64,
    /// Last trace buffers: a part of `dram_last_bytes`, the rest of which are DRAM buffers.
    pub trace_last_bytes: u64,
    /// Last buffers in the small-buffer region: a part of `l1_last_bytes`.
    pub l1_small_last_bytes: u64,
    /// Last resident circular buffers: a part of `l1_last_bytes`, the rest of which are L1 buffers.
    pub cb_last_bytes: u64,
    /// Steps that processes on the device ended.
    pub steps: u64,
}

/// Places of `tt_shm_telemetry.trends`, in the units of `TT_SHM_TOLD_...`: temperature.
pub const TT_SHM_TREND_TEMPERATURE: usize = 0;
/// Power.
pub const TT_SHM_TREND_POWER: usize = 1;
/// Current.
pub const TT_SHM_TREND_CURRENT: usize = 2;
/// Voltage.
pub const TT_SHM_TREND_VOLTAGE: usize = 3;
/// Clock of the Tensix cores.
pub const TT_SHM_TREND_AICLK: usize = 4;
/// Fan.
pub const TT_SHM_TREND_FAN: usize = 5;
/// Quantities that are kept over time.
pub const TT_SHM_TRENDS: usize = 6;

/// A quantity in a bucket.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tt_shm_trend {
    /// The least.
    pub min: i64,
    /// The most.
    pub max: i64,
    /// The last.
    pub last: i64,
}

/// What the driver measured in a short time. A bucket that is missing is a time in which nothing was read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tt_shm_telemetry {
    /// `sizeof(tt_shm_telemetry)`.
    pub size: u32,
    /// Bit n: `trends[n]` is known.
    pub known: u32,
    /// Its beginning, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// By `TT_SHM_TREND_...`.
    pub trends: [tt_shm_trend; TT_SHM_TRENDS],
}

versioned!(tt_shm_bucket, tt_shm_telemetry);

const _: () = {
    assert!(TT_SHM_HISTORY_BUCKETS == HISTORY_BUCKETS && TT_SHM_TRENDS == TRENDS);
    // The sizes of the first version, which callers may have been compiled with.
    assert!(size_of::<tt_shm_bucket>() == 104);
    assert!(size_of::<tt_shm_telemetry>() == 168);
};

/// The place of a resolution, and the length of its buckets.
fn resolution(code: u32, lengths: [u64; 3]) -> Done<(usize, u64)> {
    let length = lengths.get(code as usize).ok_or_else(|| no_such("resolution", code.into()))?;
    Ok((code as usize, *length))
}

/// What was used of the device in a row of a table, at a resolution (`TT_SHM_HISTORY_...`), oldest first, up to now. Time goes on
/// between two calls: `TT_SHM_HISTORY_BUCKETS` is always room enough.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_history(
    table: Handle<tt_shm_table>,
    device_row: u32,
    resolution: u32,
    buckets: OutStructs<tt_shm_bucket>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let table = objects::get(table)?;
        let (place, length) = self::resolution(resolution, HISTORY_RESOLUTIONS)?;
        let found = table.history(device_row as usize, place);
        buckets.fill(capacity, found.iter().map(|found| bucket(found, length)))?;
        total.set_if_wanted(found.len())
    })
}

/// The same of a source, which also knows the chip's history from before it changed between a table and an aggregation of its own.
/// Row and chip are those of a `tt_shm_device_stats` that was read from it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_source_history(
    source: Handle<tt_shm_source>,
    device_row: u32,
    chip_id: u64,
    resolution: u32,
    buckets: OutStructs<tt_shm_bucket>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let (place, length) = self::resolution(resolution, HISTORY_RESOLUTIONS)?;
        let found = with(source, |source| Ok(source.history(device_row as usize, chip_id, place)))?;
        buckets.fill(capacity, found.iter().map(|found| bucket(found, length)))?;
        total.set_if_wanted(found.len())
    })
}

/// What the driver measured of the device in one of its rows (`tt_shm_driver_stats.row`), at a resolution, oldest first, up to now.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_table_telemetry(
    table: Handle<tt_shm_table>,
    driver_row: u32,
    resolution: u32,
    buckets: OutStructs<tt_shm_telemetry>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let table = objects::get(table)?;
        let (place, length) = self::resolution(resolution, TELEMETRY_RESOLUTIONS)?;
        let found = table.telemetry(driver_row as usize, place);
        buckets.fill(capacity, found.iter().map(|found| telemetry(found, length)))?;
        total.set_if_wanted(found.len())
    })
}

/// The same of a source.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_source_telemetry(
    source: Handle<tt_shm_source>,
    driver_row: u32,
    resolution: u32,
    buckets: OutStructs<tt_shm_telemetry>,
    capacity: usize,
    total: Out<usize>,
) -> i32 {
    call(|| {
        let (place, length) = self::resolution(resolution, TELEMETRY_RESOLUTIONS)?;
        let found = with(source, |source| Ok(source.telemetry(driver_row as usize, place)))?;
        buckets.fill(capacity, found.iter().map(|found| telemetry(found, length)))?;
        total.set_if_wanted(found.len())
    })
}

fn bucket(found: &Bucket, length_ns: u64) -> tt_shm_bucket {
    tt_shm_bucket {
        size: size_of::<tt_shm_bucket>() as u32,
        flags: found.flags as u32,
        start_ns: found.start,
        length_ns,
        dram_min_bytes: found.dram_min,
        dram_max_bytes: found.dram_max,
        dram_last_bytes: found.dram_last,
        l1_min_bytes: found.l1_min,
        l1_max_bytes: found.l1_max,
        l1_last_bytes: found.l1_last,
        trace_last_bytes: found.trace_last,
        l1_small_last_bytes: found.l1_small_last,
        cb_last_bytes: found.cb_last,
        steps: found.steps,
    }
}

fn telemetry(found: &TelemetryBucket, length_ns: u64) -> tt_shm_telemetry {
    let trend = |trend: Trend| {
        let (min, max, last) = trend.range();
        tt_shm_trend { min, max, last }
    };
    tt_shm_telemetry {
        size: size_of::<tt_shm_telemetry>() as u32,
        known: found.known as u32,
        start_ns: found.start,
        length_ns,
        trends: found.trends.map(trend),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::{Told, bucket_flags};

    #[test]
    fn numbers_are_those_of_the_layout() {
        assert_eq!(u64::from(TT_SHM_BUCKET_INEXACT), bucket_flags::INEXACT);
        let told = [
            (TT_SHM_TREND_TEMPERATURE, Told::Temperature),
            (TT_SHM_TREND_POWER, Told::Power),
            (TT_SHM_TREND_CURRENT, Told::Current),
            (TT_SHM_TREND_VOLTAGE, Told::Voltage),
            (TT_SHM_TREND_AICLK, Told::Aiclk),
            (TT_SHM_TREND_FAN, Told::Fan),
        ];
        assert!(told.iter().all(|(place, told)| Told::TRENDS[*place] == *told));
    }
}
