//! The table's rows in private memory, each with the generation that changed it last.

use std::collections::BTreeSet;

/// Rows with stable numbers. The lowest free number is used first.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    rows: Vec<Row<T>>,
    /// The numbers of rows that are not in use.
    free: BTreeSet<usize>,
    capacity: usize,
}

#[derive(Debug)]
struct Row<T> {
    changed: u64,
    value: Option<T>,
}

impl<T> Rows<T> {
    pub(crate) fn new(capacity: usize) -> Rows<T> {
        Rows { rows: Vec::new(), free: BTreeSet::new(), capacity }
    }

    /// Inserts a value into the lowest free row; returns it as the error if there is none.
    pub(crate) fn insert(&mut self, generation: u64, value: T) -> Result<usize, T> {
        self.insert_from(0, generation, value)
    }

    /// Inserts a value into the lowest free row from `first` on.
    pub(crate) fn insert_from(&mut self, first: usize, generation: u64, value: T) -> Result<usize, T> {
        let Some(index) = self.free_from(first) else { return Err(value) };
        while self.rows.len() <= index {
            self.free.insert(self.rows.len());
            self.rows.push(Row { changed: generation, value: None });
        }
        self.free.remove(&index);
        self.rows[index] = Row { changed: generation, value: Some(value) };
        Ok(index)
    }

    /// The lowest free row from `first` on.
    pub(crate) fn free_from(&self, first: usize) -> Option<usize> {
        let next = self.rows.len().max(first);
        self.free.range(first..).next().copied().or_else(|| (next < self.capacity).then_some(next))
    }

    pub(crate) fn remove(&mut self, generation: u64, index: usize) -> Option<T> {
        let row = self.rows.get_mut(index)?;
        let value = row.value.take()?;
        row.changed = generation;
        self.free.insert(index);
        Some(value)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.rows.get(index)?.value.as_ref()
    }

    /// Marks a row as changed in this generation and returns its value.
    #[inline]
    pub(crate) fn change(&mut self, generation: u64, index: usize) -> Option<&mut T> {
        let row = self.rows.get_mut(index)?;
        row.changed = generation;
        row.value.as_mut()
    }

    /// A value, for a change that does not show in the table.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.rows.get_mut(index)?.value.as_mut()
    }

    /// The generation that changed a row last.
    pub(crate) fn changed(&self, index: usize) -> u64 {
        self.rows.get(index).map_or(0, |row| row.changed)
    }

    /// Every row ever used: number, generation that changed it last, value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64, Option<&T>)> {
        self.rows.iter().enumerate().map(|(index, row)| (index, row.changed, row.value.as_ref()))
    }

    /// Every row in use.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, &T)> {
        self.iter().filter_map(|(index, _, value)| Some((index, value?)))
    }

    /// Every row in use from `first` on.
    pub(crate) fn values_from(&self, first: usize) -> impl Iterator<Item = (usize, &T)> {
        let rows = self.rows.iter().enumerate().skip(first);
        rows.filter_map(|(index, row)| Some((index, row.value.as_ref()?)))
    }

    /// Rows in use from `first` on.
    pub(crate) fn count_from(&self, first: usize) -> usize {
        self.rows.len().saturating_sub(first) - self.free.range(first..).count()
    }

    /// Rows in use or used before.
    pub(crate) fn high_water(&self) -> usize {
        self.rows.len()
    }

    /// Rows in use.
    pub(crate) fn count(&self) -> usize {
        self.rows.len() - self.free.len()
    }
}
