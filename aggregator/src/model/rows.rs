//! Rows of the table in private memory, each with the batch that changed it last.

/// Rows with stable numbers. A number that was freed is used again, the lowest first.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    rows: Vec<Row<T>>,
    capacity: usize,
}

#[derive(Debug)]
struct Row<T> {
    changed: u64,
    value: Option<T>,
}

impl<T> Rows<T> {
    pub(crate) fn new(capacity: usize) -> Rows<T> {
        Rows { rows: Vec::new(), capacity }
    }

    /// Puts a value into the lowest free row; gives it back if there is none.
    pub(crate) fn insert(&mut self, batch: u64, value: T) -> Result<usize, T> {
        let row = Row { changed: batch, value: Some(value) };
        if let Some(free) = self.rows.iter().position(|row| row.value.is_none()) {
            self.rows[free] = row;
            return Ok(free);
        }
        if self.rows.len() == self.capacity {
            return Err(row.value.expect("just put in"));
        }
        self.rows.push(row);
        Ok(self.rows.len() - 1)
    }

    pub(crate) fn remove(&mut self, batch: u64, index: usize) -> Option<T> {
        let row = self.rows.get_mut(index)?;
        let value = row.value.take()?;
        row.changed = batch;
        Some(value)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.rows.get(index)?.value.as_ref()
    }

    /// A value that is about to be changed in this batch.
    #[inline]
    pub(crate) fn change(&mut self, batch: u64, index: usize) -> Option<&mut T> {
        let row = self.rows.get_mut(index)?;
        row.changed = batch;
        row.value.as_mut()
    }

    /// A value whose change does not show in the table.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.rows.get_mut(index)?.value.as_mut()
    }

    /// The batch that changed a row last.
    pub(crate) fn changed(&self, index: usize) -> u64 {
        self.rows.get(index).map_or(0, |row| row.changed)
    }

    /// Every row ever used: number, batch that changed it last, value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64, Option<&T>)> {
        self.rows.iter().enumerate().map(|(index, row)| (index, row.changed, row.value.as_ref()))
    }

    /// Every row in use.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, &T)> {
        self.iter().filter_map(|(index, _, value)| Some((index, value?)))
    }

    /// Rows in use or used before.
    pub(crate) fn high_water(&self) -> usize {
        self.rows.len()
    }

    /// Rows in use.
    pub(crate) fn count(&self) -> usize {
        self.rows.iter().filter(|row| row.value.is_some()).count()
    }
}
