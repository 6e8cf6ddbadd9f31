//! What a list does, without a terminal.

use super::column::widths;
use super::*;

const COLUMNS: &[Column<u64>] = &[
    Column::number("N", 6, 0, |n| n.to_string(), |n| Some(*n)),
    Column::new("NAME", 0, 1, |n| format!("n{n}")),
];
const AREA: Rect = Rect::new(0, 0, 40, 11);

fn list(items: &[u64]) -> List<u64> {
    let mut list = List::new(COLUMNS, 0, |n| *n);
    list.arrange(items, |_| true);
    list
}

#[test]
fn the_selected_row_stays_selected_when_rows_come_and_go() {
    let mut list = list(&[1, 2, 3, 4]);
    list.go(Motion::Lines(1), &[1, 2, 3, 4], AREA);
    assert_eq!(list.selected(&[1, 2, 3, 4]), Some(&3));
    let more = [9, 8, 1, 2, 3, 4];
    list.arrange(&more, |_| true);
    assert_eq!(list.selected(&more), Some(&3));
    let fewer = [1, 2];
    list.arrange(&fewer, |_| true);
    assert!(list.selected(&fewer).is_some());
    list.arrange(&[], |_| true);
    assert_eq!(list.selected(&[]), None);
}

#[test]
fn scrolling_keeps_the_selection_in_sight() {
    let items: Vec<u64> = (0..100_000).collect();
    let mut list = list(&items);
    list.go(Motion::Last, &items, AREA);
    assert_eq!(list.selected(&items), Some(&0));
    assert_eq!(list.first_shown(10), 99_990);
    list.go(Motion::Lines(-3), &items, AREA);
    assert_eq!(list.first_shown(10), 99_990, "no need to move");
    list.go(Motion::Pages(-1), &items, AREA);
    assert_eq!(list.first_shown(10), list.position());
    list.go(Motion::First, &items, AREA);
    assert_eq!(list.first_shown(10), 0);
    assert_eq!(list.first_shown(0), 1.min(list.first_shown(0)), "no room at all");
}

#[test]
fn who_scrolled_down_reads_on_where_they_were() {
    let mut items: Vec<u64> = (0..100).collect();
    let mut list = list(&items);
    list.go(Motion::Lines(50), &items, AREA);
    let line = |list: &List<u64>| list.position() - list.first_shown(10);
    let before = line(&list);
    items.extend(200..230);
    list.arrange(&items, |_| true);
    assert_eq!((list.position(), line(&list)), (80, before));
}

#[test]
fn clicks_select_sort_and_miss() {
    let items = [5, 7, 6];
    let mut list = list(&items);
    assert_eq!(list.click(Position::new(3, 2), &items, AREA), Hit::Row { again: false });
    assert_eq!(list.selected(&items), Some(&6));
    assert_eq!(list.click(Position::new(3, 2), &items, AREA), Hit::Row { again: true });
    assert_eq!(list.click(Position::new(2, 0), &items, AREA), Hit::Heading);
    list.arrange(&items, |_| true);
    assert_eq!(list.rows(&items).copied().collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!(list.selected(&items), Some(&6), "sorting moves the bar along");
    assert_eq!(list.click(Position::new(20, 0), &items, AREA), Hit::Nothing);
    assert_eq!(list.click(Position::new(3, 9), &items, AREA), Hit::Nothing);
}

#[test]
fn columns_that_do_not_fit_are_left_out() {
    assert_eq!(widths(COLUMNS, 40), [(0, 6), (1, 33)]);
    assert_eq!(widths(COLUMNS, 18), [(0, 6)]);
    assert_eq!(widths(COLUMNS, 3), []);
}

#[test]
fn unknown_comes_last_in_either_order() {
    type Pair = (Option<u64>, Option<&'static str>);
    const PAIRS: &[Column<Pair>] = &[
        Column::number("N", 6, 0, |_| String::new(), |pair| pair.0),
        Column::words("W", 6, 1, |_| String::new(), |pair| pair.1),
    ];
    let items: [Pair; 4] = [(None, None), (Some(1), Some("b")), (Some(2), Some("a")), (Some(1), Some("b"))];
    let mut list = List::new(PAIRS, 0, |_| 0);
    for (choice, reversed, expected) in
        [(0, false, [2, 1, 3, 0]), (0, true, [1, 3, 2, 0]), (1, false, [2, 1, 3, 0]), (1, true, [1, 3, 2, 0])]
    {
        list.sort_by(choice);
        if reversed {
            list.reverse();
        }
        list.arrange(&items, |_| true);
        assert_eq!(list.order, expected, "{choice} {reversed}");
    }
}
