//! A list that only grows at its end and is cut at its beginning, such as a log: rows are added without looking at all
//! others again, and what is selected and seen stays in place.

use super::List;

impl<T> List<T> {
    /// Adds rows at the end, in their own order.
    pub(crate) fn extend(&mut self, places: impl IntoIterator<Item = u32>) {
        self.order.extend(places);
    }

    /// Removes the rows of the first `count` items, which are gone; `items` are those that are left.
    pub(crate) fn forget_first(&mut self, count: u32, items: &[T]) {
        let gone = self.order.partition_point(|place| *place < count);
        self.order.drain(..gone);
        self.order.iter_mut().for_each(|place| *place -= count);
        let was_there = self.selected >= gone;
        (self.selected, self.top) = (self.selected.saturating_sub(gone), self.top.saturating_sub(gone));
        if !was_there {
            self.selected_key = self.selected(items).map(self.key);
        }
    }
}
