//! What a list does, without a terminal.

use super::column::pages;
use super::viewport::{GUTTER, without_start};
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
fn without_focus_the_first_rows_are_shown() {
    let mut list = list(&[1]);
    list.focus(false);
    let more: Vec<u64> = (1..100).collect();
    list.arrange(&more, |_| true);
    assert_eq!((list.position(), list.first_shown(10)), (98, 0));
    list.focus(true);
    assert_eq!(list.first_shown(10), 89);
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
fn columns_that_do_not_fit_are_on_further_pages() {
    assert_eq!(pages(COLUMNS, &[0, 1], 40), [[(0, 6), (1, 33)]]);
    assert_eq!(pages(COLUMNS, &[0, 1], 18), [[(0, 6)], [(1, 18)]]);
    assert_eq!(pages(COLUMNS, &[0, 1], 3), [[(0, 3)], [(1, 3)]]);
}

#[test]
fn every_column_can_be_reached_at_every_width() {
    const MANY: &[Column<u64>] = &[
        Column::ids("ID", 7, 3, |_| String::new(), |_| None),
        Column::new("NAME", 0, 0, |_| String::new()),
        Column::new("A", 12, 2, |_| String::new()),
        Column::new("B", 5, 5, |_| String::new()),
        Column::new("C", 30, 4, |_| String::new()),
        Column::new("D", 9, 1, |_| String::new()),
    ];
    for width in 0..120 {
        let pages = pages(MANY, &(0..MANY.len()).collect::<Vec<_>>(), width);
        let mut seen: Vec<usize> = pages.iter().flatten().map(|(place, _)| *place).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5], "at {width}");
        for page in &pages {
            let used: u16 = page.iter().map(|(_, width)| width + 1).sum();
            assert!(used <= width + 1, "{page:?} at {width}");
            let has_name = page.iter().any(|(place, _)| *place == 1);
            assert!(has_name || width < 43, "{page:?} at {width}");
        }
    }
}

#[test]
fn steps_to_the_right_show_other_columns_and_then_the_end_of_a_long_text() {
    let items = [123_456, 7];
    let mut list = list(&items);
    let area = Rect::new(0, 0, 10, 5);
    let widths = |list: &List<u64>| Viewport::of(list, &items, area).widths;
    assert_eq!((widths(&list), Viewport::of(&list, &items, area).has_before()), (vec![(0, 6)], false));
    list.go(Motion::Aside(1), &items, area);
    let viewport = Viewport::of(&list, &items, area);
    assert_eq!((&viewport.widths, viewport.has_before(), viewport.has_more()), (&vec![(1, 8)], true, false));
    list.go(Motion::Aside(9), &items, area);
    list.go(Motion::Aside(-1), &items, area);
    assert_eq!(widths(&list), [(0, 6)], "too far to the right is as far as there is something");
    // One more column for the text, and it is cut by two.
    const LONG: &[Column<u64>] = &[Column::new("TEXT", 0, 0, |n| format!("{n:020}"))];
    let mut list = List::new(LONG, 0, |n| *n);
    list.arrange(&items, |_| true);
    let area = Rect::new(0, 0, 19, 5);
    assert_eq!(
        (Viewport::of(&list, &items, area).shift, Viewport::of(&list, &items, area).has_more()),
        (0, true)
    );
    list.go(Motion::Aside(1), &items, area);
    assert_eq!(
        (Viewport::of(&list, &items, area).shift, Viewport::of(&list, &items, area).has_more()),
        (2, false)
    );
    assert_eq!(list.selected(&items), Some(&123_456), "the selection stays");
    list.click(Position::new(0, 0), &items, area);
    assert_eq!(Viewport::of(&list, &items, area).step, 0, "a click on the sign goes back");
}

#[test]
fn the_sign_covers_no_heading() {
    const RIGHT: &[Column<u64>] = &[
        Column::new("TEXT", 0, 0, |n| format!("{n:020}")),
        Column::number("LAST", 6, 1, |n| n.to_string(), |n| Some(*n)),
    ];
    const LEFT: &[Column<u64>] = &[
        Column::number("FIRST", 6, 1, |n| n.to_string(), |n| Some(*n)),
        Column::new("TEXT", 0, 0, |n| format!("{n:020}")),
    ];
    let area = Rect::new(0, 0, 25, 5);
    let used = |columns| {
        let mut list = List::new(columns, 0, |n| *n);
        list.arrange(&[5], |_| true);
        let viewport = Viewport::of(&list, &[5], area);
        assert!(viewport.has_more());
        GUTTER + viewport.widths.iter().map(|(_, width)| width + 1).sum::<u16>() - 1
    };
    assert_eq!((used(RIGHT), used(LEFT)), (24, 25));
}

#[test]
fn a_text_without_its_start_says_so() {
    assert_eq!(without_start("abcdef", 0), "abcdef");
    assert_eq!(without_start("abcdef", 2), "…def");
    assert_eq!(without_start("重み行列", 2), "…行列");
    assert_eq!(without_start("ab", 5), "");
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

#[test]
fn a_text_is_found_after_the_selected_row_and_again_from_the_start() {
    let items = [31, 12, 32, 4];
    let mut list = list(&items);
    assert!(list.find("N3", false, &items), "whatever the case");
    assert_eq!(list.selected(&items), Some(&32));
    assert!(list.find("n3", true, &items));
    assert_eq!(list.selected(&items), Some(&31));
    assert!(list.find("n3", true, &items), "once round");
    assert_eq!(list.selected(&items), Some(&32));
    assert!(!list.find("no such text", true, &items));
    assert_eq!(list.selected(&items), Some(&32), "nothing moves in vain");
    list.arrange(&[], |_| true);
    assert!(!list.find("", true, &[]));
}

#[test]
fn a_hidden_column_takes_no_room_and_one_stays() {
    let mut list = list(&[1, 2]);
    list.toggle_column(0);
    assert_eq!(list.columns(), [("N", false), ("NAME", true)]);
    list.toggle_column(1);
    assert!(list.columns()[1].1, "the last one");
    list.toggle_column(0);
    assert_eq!(list.columns(), [("N", true), ("NAME", true)]);
}

#[test]
fn a_column_that_says_nothing_takes_no_room_unless_it_is_wanted() {
    const SOME: &[Column<u64>] =
        &[COLUMNS_N, Column::new("ODD", 3, 2, |n: &u64| n.to_string()).unless(|n| n % 2 == 0)];
    const COLUMNS_N: Column<u64> = Column::number("N", 6, 0, |n| n.to_string(), |n| Some(*n));
    let mut list = List::new(SOME, 0, |n| *n);
    list.arrange(&[2, 4], |_| true);
    assert_eq!(list.columns(), [("N", true), ("ODD", false)]);
    list.arrange(&[2, 5], |_| true);
    assert_eq!(list.columns(), [("N", true), ("ODD", true)]);
    list.toggle_column(1);
    assert_eq!(list.columns(), [("N", true), ("ODD", false)]);
}
