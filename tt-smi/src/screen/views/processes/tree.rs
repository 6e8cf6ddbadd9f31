//! Processes below their parents.

use std::collections::HashMap;

use super::row::Row;

/// Moves rows below their parents if these are listed, and otherwise keeps the order; sets their depth.
pub(super) fn arrange(places: &[u32], rows: &[Row]) -> Vec<(u32, usize)> {
    // A pid that is only claimed makes nobody a parent.
    let pid_of = |place: u32| Some(&rows[place as usize]).filter(|row| !row.is_claimed)?.key.pid;
    let by_pid: HashMap<u64, u32> =
        places.iter().filter_map(|place| Some((pid_of(*place)?, *place))).collect();
    let mut children: HashMap<Option<u32>, Vec<u32>> = HashMap::new();
    for place in places {
        let parent = rows[*place as usize].parent.and_then(|pid| by_pid.get(&u64::from(pid)).copied());
        children.entry(parent.filter(|parent| parent != place)).or_default().push(*place);
    }
    let mut arranged = Vec::with_capacity(places.len());
    // The next row to place is at the end.
    let mut waiting: Vec<(u32, usize)> = Vec::new();
    let queue = |of: Option<u32>, depth, children: &mut HashMap<_, Vec<u32>>, waiting: &mut Vec<_>| {
        let own = children.remove(&of).unwrap_or_default();
        waiting.extend(own.into_iter().rev().map(|place| (place, depth)));
    };
    queue(None, 0, &mut children, &mut waiting);
    while let Some((place, depth)) = waiting.pop() {
        arranged.push((place, depth));
        queue(Some(place), depth + 1, &mut children, &mut waiting);
    }
    // Parents are read one by one: a pid reused meanwhile may make a cycle.
    let mut lost: Vec<u32> = children.into_values().flatten().collect();
    lost.sort_unstable();
    arranged.extend(lost.into_iter().map(|place| (place, 0)));
    arranged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::page::ProcessKey;

    fn rows(parents: &[(u64, Option<u32>)]) -> Vec<Row> {
        let key = |pid| ProcessKey { identity: pid, pid: Some(pid), namespace_pid: pid };
        let row = |(pid, parent): &(u64, Option<u32>)| Row::bare(key(*pid), *parent);
        parents.iter().map(row).collect()
    }

    #[test]
    fn children_follow_their_parents() {
        let rows = rows(&[(10, Some(1)), (30, Some(20)), (20, Some(10)), (21, Some(10)), (5, None)]);
        assert_eq!(arrange(&[4, 3, 2, 1, 0], &rows), [(4, 0), (0, 0), (3, 1), (2, 1), (1, 2)]);
    }

    #[test]
    fn a_parent_that_is_not_shown_is_none() {
        let rows = rows(&[(10, Some(1)), (20, Some(10))]);
        assert_eq!(arrange(&[1], &rows), [(1, 0)]);
    }

    #[test]
    fn nobody_is_lost_where_parents_go_round() {
        let rows = rows(&[(10, Some(20)), (20, Some(10)), (30, Some(30))]);
        assert_eq!(arrange(&[0, 1, 2], &rows), [(2, 0), (0, 0), (1, 0)]);
    }
}
