use std::sync::Arc;

use proptest::prelude::*;
use tt_shm_reader::Class;

use super::*;
use crate::lists::allocations::Item;
use crate::screen::views::fixture;

fn item(class: Class, address: Option<u64>, bank_bytes: Option<u64>, pid: u32) -> Item {
    Item {
        device: 0,
        entry: 0,
        identity: u64::from(pid),
        pid,
        claimed: false,
        class,
        id: 1,
        program: None,
        size: 1024,
        address,
        bank_bytes,
        cores: None,
        core_type: None,
        globally_allocated: false,
        name: None,
        site: None,
        age_ns: 0,
    }
}

fn page(items: Vec<Item>) -> (Data, Map) {
    let listing = Listing { items, ..Listing::default() };
    let data = fixture::data(1, 1, More::Allocations(Arc::new(listing)));
    let mut page = Map::default();
    page.refresh(&data);
    (data, page)
}

#[test]
fn what_has_no_address_makes_gaps_unknown() {
    let known = item(Class::Dram, Some(0x100), Some(0x100), 1);
    let (_, page) = page_of([known.clone()]);
    assert!(page.banks[0][0].knows_gaps());
    for vague in [item(Class::Trace, None, Some(1), 1), item(Class::Dram, Some(1), None, 1)] {
        let (_, page) = page_of([known.clone(), vague]);
        let bank = &page.banks[0][0];
        assert_eq!((bank.count, bank.extents.len(), bank.knows_gaps()), (2, 1, false));
    }
    let (_, page) = page_of([known, item(Class::L1, None, None, 1)]);
    assert!(page.banks[0][0].knows_gaps(), "L1 is another memory");
}

fn page_of<const N: usize>(items: [Item; N]) -> (Data, Map) {
    page(items.into())
}

#[test]
fn the_cursor_stays_where_there_is_something_to_see() {
    let (data, mut page) = page_of([
        item(Class::Dram, Some(0x1000), Some(0x1000), 1),
        item(Class::Dram, Some(0x9000), Some(0x1000), 2),
    ]);
    let scene = fixture::scene(&data, 80, 20);
    page.act(Action::Move(Motion::Aside(-1)), &scene);
    assert_eq!(page.cursor, Some(0x1000));
    page.act(Action::Move(Motion::Last), &scene);
    page.act(Action::Move(Motion::Aside(1)), &scene);
    assert_eq!(page.cursor, Some(0x9fff));
    for _ in 0..30 {
        page.act(Action::ZoomIn, &scene);
        let strip = page.strip(&scene).unwrap();
        let (start, end) = strip.covered(strip.cursor.unwrap());
        assert!((start..end).contains(&0x9fff), "{strip:?}");
    }
    page.act(Action::NextPane, &scene);
    assert_eq!((page.kind, page.cursor, page.zoom), (BankKind::L1, None, 0));
    for action in [
        Action::Move(Motion::Aside(1)),
        Action::ZoomIn,
        Action::Move(Motion::Last),
        Action::Move(Motion::Pages(1)),
    ] {
        page.act(action, &scene);
    }
    assert_eq!(page.act(Action::Back, &scene), Reply::Done);
    assert_eq!(page.act(Action::Back, &scene), Reply::Ignored);
}

proptest! {
    #[test]
    fn a_strip_shows_its_cursor(
        start in 0..1_u64 << 60,
        length in 0..1_u64 << 60,
        zoom in 0..=MOST_ZOOM,
        at in 0..1_u64 << 60,
        cells in 1..10_000_u64,
    ) {
        let whole = (start, start + length);
        let cursor = (start + at % length.max(1)).min(whole.1);
        let strip = Strip::new(whole, zoom, Some(cursor), cells);
        let (from, to) = strip.covered(strip.cursor.unwrap());
        prop_assert!((from..to).contains(&cursor), "{:?}", strip);
        prop_assert!(strip.first >= whole.0);
    }
}
