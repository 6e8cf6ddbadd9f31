use super::*;
use crate::lists::cores::{Fullest, Held};
use crate::screen::views::fixture;

/// Four columns and two rows, of which the last core is the fullest.
fn device() -> DeviceCores {
    let core = |number: u32| {
        let free = 1000 - u64::from(number) * 130;
        let held = Held { free_bytes: Some(free), largest_gap_bytes: Some(free), ..Held::default() };
        Core { x: Some(number % 4), y: Some(number / 4), count: Some(1), held, occupants: Arc::default() }
    };
    DeviceCores {
        grid_columns: Some(4),
        grid_rows: Some(2),
        core_count: Some(8),
        l1_core_bytes: Some(1000),
        cores: (0..8).map(core).collect(),
        runs_out_first: Some(Fullest {
            x: Some(3),
            y: Some(1),
            count: Some(1),
            free_bytes: 90,
            largest_gap_bytes: Some(90),
            occupants: Vec::new(),
        }),
        ..DeviceCores::default()
    }
}

fn page(device: DeviceCores) -> (Data, CoresPage) {
    let cores = Cores { devices: vec![device], doubts: Vec::new() };
    let data = fixture::data(1, 1, More::Cores(Arc::new(cores)));
    let mut page = CoresPage::default();
    page.refresh(&data);
    (data, page)
}

#[test]
fn the_readout_is_about_the_core_that_runs_out_first_until_the_cursor_moves() {
    let (data, mut page) = page(device());
    let scene = fixture::scene(&data, 80, 20);
    assert_eq!(page.shown(&device()), Some((3, 1)));
    page.act(Action::Move(Motion::Aside(1)), &scene);
    assert_eq!(page.cursor, Some((3, 1)), "there is none to the right");
    page.act(Action::Move(Motion::Lines(-1)), &scene);
    page.act(Action::Move(Motion::Aside(-1)), &scene);
    assert_eq!(page.cursor, Some((2, 0)));
    page.act(Action::Move(Motion::Last), &scene);
    assert_eq!(page.cursor, Some((3, 1)));
    assert_eq!(page.act(Action::Back, &scene), Reply::Done);
    assert_eq!(page.act(Action::Back, &scene), Reply::Ignored);
}

#[test]
fn a_click_finds_the_core_that_is_drawn_there() {
    let (data, mut page) = page(device());
    for (width, height) in [(40, 12), (80, 24), (200, 50)] {
        let scene = fixture::scene(&data, width, height);
        let cells = Cells::new(&device(), CoresLayout::of(scene.area, &device()).grid).unwrap();
        let mut found = Vec::new();
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            found.extend(cells.core_at(Position { x, y }));
        }
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 8, "{width}x{height}");
        page.cursor = None;
        assert_eq!(page.click(Position { x: 0, y: 0 }, &scene), Reply::Ignored);
    }
}

#[test]
fn only_the_fullest_are_marked_and_none_if_all_are() {
    let mut device = device();
    let marked =
        |device: &DeviceCores| device.cores.iter().filter(|core| grid::is_first(core, device)).count();
    assert_eq!(marked(&device), 1);
    let held = device.cores[7].held.clone();
    device.cores.iter_mut().for_each(|core| core.held = held.clone());
    assert_eq!(marked(&device), 8);
    device.runs_out_first.as_mut().unwrap().count = Some(8);
    assert_eq!(marked(&device), 0);
}
