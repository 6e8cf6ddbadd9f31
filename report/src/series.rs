//! A figure over time: the least, the most and the last of each bucket in which something changed.

/// A bucket in which something changed. All others have what the one before them ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    bucket: u32,
    min: u64,
    max: u64,
    last: u64,
}

/// A figure over time. Begins with 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    cells: Vec<Cell>,
    last: u64,
    /// How often neighbouring buckets were joined.
    pub(crate) shift: u32,
}

impl Series {
    /// The figure has this value from a moment in a bucket on. Buckets never go back.
    #[inline]
    pub(crate) fn set(&mut self, bucket: u32, value: u64) {
        match self.cells.last_mut() {
            Some(cell) if cell.bucket >= bucket => {
                cell.min = cell.min.min(value);
                cell.max = cell.max.max(value);
                cell.last = value;
            }
            _ if value == self.last => {}
            _ => {
                let (min, max) = (self.last.min(value), self.last.max(value));
                self.cells.push(Cell { bucket, min, max, last: value });
            }
        }
        self.last = value;
    }

    /// The number of buckets in which something changed.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Joins each two neighbouring buckets.
    pub(crate) fn coarsen(&mut self) {
        self.shift += 1;
        let (mut joined, mut before): (Vec<Cell>, u64) = (Vec::with_capacity(self.cells.len() / 2 + 1), 0);
        for cell in &self.cells {
            let bucket = cell.bucket / 2;
            match joined.last_mut() {
                Some(last) if last.bucket == bucket => {
                    last.min = last.min.min(cell.min);
                    last.max = last.max.max(cell.max);
                    last.last = cell.last;
                }
                _ => {
                    let (min, max) = (cell.min.min(before), cell.max.max(before));
                    joined.push(Cell { bucket, min, max, last: cell.last });
                }
            }
            before = cell.last;
        }
        self.cells = joined;
    }

    /// The cells as base64 of variable-length numbers: buckets skipped, the change of the last value (zigzag), how far the
    /// least is below the smaller end of the bucket and the most above the larger one.
    pub(crate) fn encode(&self) -> String {
        let (mut bytes, mut next, mut before) = (Vec::new(), 0, 0_u64);
        for cell in &self.cells {
            put(&mut bytes, u64::from(cell.bucket - next));
            let change = cell.last.wrapping_sub(before) as i64;
            put(&mut bytes, (change << 1 ^ change >> 63) as u64);
            put(&mut bytes, before.min(cell.last) - cell.min);
            put(&mut bytes, cell.max - before.max(cell.last));
            (next, before) = (cell.bucket + 1, cell.last);
        }
        base64(&bytes)
    }
}

/// A number in groups of seven bits, the lowest first.
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let is_there = digit <= chunk.len();
            let place = (word >> (18 - 6 * digit) & 63) as usize;
            text.push(if is_there { char::from(DIGITS[place]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_begins_with_what_the_one_before_ended_with() {
        let mut series = Series::default();
        [(1, 10), (1, 4), (3, 20), (3, 8)].into_iter().for_each(|(bucket, value)| series.set(bucket, value));
        assert_eq!(series.cells[0], Cell { bucket: 1, min: 0, max: 10, last: 4 });
        assert_eq!(series.cells[1], Cell { bucket: 3, min: 4, max: 20, last: 8 });
        series.coarsen();
        assert_eq!(series.cells[0], Cell { bucket: 0, min: 0, max: 10, last: 4 });
        assert_eq!(series.cells[1], Cell { bucket: 1, min: 4, max: 20, last: 8 });
        series.coarsen();
        assert_eq!(series.cells, [Cell { bucket: 0, min: 0, max: 20, last: 8 }]);
    }

    #[test]
    fn a_value_that_stays_takes_no_room() {
        let mut series = Series::default();
        [(0, 5), (7, 5), (9, 5)].into_iter().for_each(|(bucket, value)| series.set(bucket, value));
        assert_eq!(series.len(), 1);
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        let known = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        known.into_iter().for_each(|(text, code)| assert_eq!(base64(text.as_bytes()), code));
    }
}
