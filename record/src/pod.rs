//! Fixed-size values in the bytes of an entry: read with their lengths checked, written with padding.

use bytemuck::Pod;

use crate::error::DecodeError;

/// The bytes of an entry that are still to be read.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let short = DecodeError::EntryTooShort { found: self.bytes.len(), expected: len };
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(short)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn pod<T: Pod>(&mut self) -> Result<T, DecodeError> {
        Ok(bytemuck::pod_read_unaligned(self.take(size_of::<T>())?))
    }

    /// That many values.
    pub(crate) fn pods<T: Pod>(&mut self, count: usize) -> Result<Vec<T>, DecodeError> {
        let len = count.checked_mul(size_of::<T>()).ok_or(DecodeError::Count(count as u64))?;
        let bytes = self.take(len)?;
        let mut values = vec![T::zeroed(); count];
        bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
        Ok(values)
    }

    /// All values that are left; an incomplete one is an error.
    pub(crate) fn rest_of<T: Pod>(&mut self) -> Result<Vec<T>, DecodeError> {
        if !self.bytes.len().is_multiple_of(size_of::<T>()) {
            return Err(DecodeError::EntryTooShort { found: self.bytes.len(), expected: size_of::<T>() });
        }
        self.pods(self.bytes.len() / size_of::<T>())
    }

    /// All values that are left, each with its number before it.
    pub(crate) fn numbered<T: Pod>(&mut self) -> Result<Vec<(u64, T)>, DecodeError> {
        let mut values = Vec::new();
        while !self.bytes.is_empty() {
            values.push((self.pod()?, self.pod()?));
        }
        Ok(values)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }
}

/// Appends values to the bytes of an entry.
pub(crate) fn put<T: Pod>(bytes: &mut Vec<u8>, value: &T) {
    bytes.extend_from_slice(bytemuck::bytes_of(value));
}

/// Appends values, each with its number before it.
pub(crate) fn put_numbered<T: Pod>(bytes: &mut Vec<u8>, values: &[(u64, T)]) {
    for (number, value) in values {
        put(bytes, number);
        put(bytes, value);
    }
}

/// Rounds a length up to whole words.
pub(crate) fn padded(len: usize) -> usize {
    len.next_multiple_of(8)
}
