use super::*;
use crate::screen::views::fixture::{self, NOW};

const NEWEST: u64 = NOW / HISTORY_RESOLUTIONS[0];

fn data() -> Data {
    fixture::data(2, 1, More::None)
}

#[test]
fn the_span_goes_round_and_asks_for_its_history() {
    let data = data();
    let (mut page, scene) = (Charts::default(), fixture::scene(&data, 80, 20));
    for resolution in [1, 2, 0] {
        page.act(Action::Span, &scene);
        assert_eq!(page.needs(), Needs::History(resolution));
    }
}

#[test]
fn what_is_not_read_yet_is_said_and_why() {
    let data = data();
    let scene = fixture::scene(&data, 80, 20);
    assert_eq!(scene.unread("the history"), " reading the history...");
    let frozen = Scene { frozen: true, ..scene };
    assert_eq!(frozen.unread("the history"), " frozen before the history could be read; f resumes");
}

#[test]
fn the_cursor_stays_at_its_time_and_within_the_history() {
    let data = data();
    let (mut page, scene) = (Charts::default(), fixture::scene(&data, 80, 20));
    page.act(Action::Move(Motion::Aside(-1)), &scene);
    // Sixty columns for 240 buckets.
    assert_eq!(page.cursor, Some(NEWEST - 4));
    page.act(Action::Span, &scene);
    let (before, now) =
        ((NEWEST - 4) * HISTORY_RESOLUTIONS[0], page.cursor.unwrap() * HISTORY_RESOLUTIONS[1]);
    assert!((before - HISTORY_RESOLUTIONS[1]..=before).contains(&now));
    page.act(Action::Move(Motion::First), &scene);
    assert!(page.cursor <= Some(NOW / HISTORY_RESOLUTIONS[1]));
    page.act(Action::Move(Motion::Pages(99)), &scene);
    assert_eq!(page.cursor, Some(NOW / HISTORY_RESOLUTIONS[1]));
    page.act(Action::Move(Motion::Last), &scene);
    assert_eq!(page.cursor, None);
}

#[test]
fn back_leaves_one_thing_after_the_other() {
    let data = data();
    let (mut page, scene) = (Charts::default(), fixture::scene(&data, 80, 20));
    page.act(Action::Open, &scene);
    page.act(Action::Move(Motion::Aside(1)), &scene);
    assert_eq!(page.act(Action::Back, &scene), Reply::Done);
    assert_eq!((page.cursor, page.is_grid), (None, true));
    assert_eq!(page.act(Action::Back, &scene), Reply::Done);
    assert_eq!(page.act(Action::Back, &scene), Reply::Ignored);
}

#[test]
fn zoom_has_an_end_and_keeps_the_cursor_in_sight() {
    let data = data();
    let (mut page, scene) = (Charts::default(), fixture::scene(&data, 80, 20));
    page.act(Action::Move(Motion::Lines(-1)), &scene);
    for _ in 0..9 {
        page.act(Action::ZoomIn, &scene);
        let window = page.window(&data);
        assert!(window.all().contains(&(page.cursor.unwrap() as i64)));
    }
    assert_eq!(page.window(&data).count, HISTORY_BUCKETS as u64 >> MOST_ZOOM);
    for _ in 0..9 {
        page.act(Action::ZoomOut, &scene);
    }
    assert_eq!(page.zoom, 0);
}
