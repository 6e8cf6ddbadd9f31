use super::*;
use crate::screen::data::More;
use crate::screen::page::ProcessKey;
use crate::screen::views::fixture;

fn page(data: &Data) -> Detail {
    let mut page = Detail::default();
    page.refresh(data);
    page
}

#[test]
fn figures_scroll_as_far_as_there_are_lines_and_no_further() {
    let data = fixture::data(1, 3, More::None);
    let (mut page, scene) = (page(&data), fixture::scene(&data, 60, 11));
    let last = page.layout(&scene).last_top();
    assert!(last > 0);
    page.act(Action::Move(Motion::Lines(-1)), &scene);
    assert_eq!(page.top, 0);
    page.act(Action::Move(Motion::Lines(3)), &scene);
    assert_eq!(page.top, 3);
    page.act(Action::Move(Motion::Last), &scene);
    page.act(Action::Move(Motion::Pages(1)), &scene);
    assert_eq!(page.top, last);
    page.act(Action::Move(Motion::First), &scene);
    assert_eq!(page.top, 0);
}

#[test]
fn tab_moves_to_the_processes_and_enter_looks_into_one() {
    let data = fixture::data(2, 3, More::None);
    let (mut page, scene) = (page(&data), fixture::scene(&data, 60, 11));
    let opened = |page: &mut Detail| page.act(Action::Open, &scene);
    let process = |pid| Reply::Process(ProcessKey { identity: pid, pid: Some(pid), namespace_pid: pid });
    assert_eq!(opened(&mut page), process(102), "the largest first");
    page.act(Action::NextPane, &scene);
    page.act(Action::Move(Motion::Lines(1)), &scene);
    assert_eq!((page.top, opened(&mut page)), (0, process(101)));
    page.act(Action::NextPane, &scene);
    page.act(Action::Move(Motion::Lines(1)), &scene);
    assert_eq!((page.top, opened(&mut page)), (1, process(101)));
}

#[test]
fn where_all_figures_are_seen_keys_move_among_processes() {
    let data = fixture::data(1, 3, More::None);
    let (mut page, scene) = (page(&data), fixture::scene(&data, 100, 60));
    page.act(Action::Move(Motion::Lines(2)), &scene);
    assert_eq!(page.lists.selected(0).map(|key| key.namespace_pid), Some(100));
}

#[test]
fn without_devices_nothing_happens() {
    let data = fixture::data(0, 0, More::None);
    let (mut page, scene) = (page(&data), fixture::scene(&data, 1, 1));
    for action in
        [Action::Open, Action::NextPane, Action::Move(Motion::Last), Action::Move(Motion::Aside(-1))]
    {
        page.act(action, &scene);
    }
    assert_eq!(page.top, 0);
}
