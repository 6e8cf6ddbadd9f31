//! The live screen in a real pseudo-terminal, against the demonstration and real processes.

use std::sync::atomic::Ordering::Relaxed;

use crate::common::{SMI, host, tracker};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tt_shm_reader::Segment;
use tt_shm_tests::terminal::{Terminal, program};
use tt_shm_tests::{Command, Monitor, Space};
use tt_shm_writer::{Alloc, BufferType, DeviceInfo, MarkerPhase, NameId, PciAddress, Record};
use tt_smi::lists::suspects::steps::Steps;

const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const F9: &str = "\x1b[20~";
const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const F2: &str = "\x1bOQ";
const F3: &str = "\x1bOR";
const F4: &str = "\x1bOS";
const F6: &str = "\x1b[17~";
const F10: &str = "\x1b[21~";
const RIGHT: &str = "\x1b[C";
const LEFT: &str = "\x1b[D";

/// The demonstration on a screen of this size, with its first figures.
fn demo(space: &Space, columns: u16, rows: u16) -> Terminal {
    let arguments = ["demo", "--devices", "4", "--workers", "3", "--rate", "100"];
    let terminal = Terminal::start(program(space, SMI, &arguments), columns, rows);
    terminal.await_text("3 processes");
    terminal
}

#[track_caller]
fn quit(mut terminal: Terminal) {
    terminal.press("q");
    assert!(terminal.await_end().success());
}

/// The pids in the list of processes.
fn pids(screen: &str) -> Vec<i32> {
    let first = |line: &str| line.split_whitespace().next().and_then(|word| word.parse().ok());
    screen.lines().filter(|line| line.contains("alive")).filter_map(first).collect()
}

#[test]
fn every_view_opens_by_its_digit_and_by_its_tab() {
    let space = Space::new();
    let mut terminal = demo(&space, 120, 40);
    // What only this view has.
    let marks = [
        ("1", "Fabric"),
        ("2", "minute"),
        ("3", "The driver has no such device"),
        ("4", "STATE"),
        ("5", "ADDRESS"),
        ("6", " kernel_dispatch "),
        ("7", "fragmentation"),
        ("8", "DISP/S"),
        ("0", "all devices"),
    ];
    for (digit, mark) in marks {
        terminal.press(digit);
        // The overview has processes, too.
        terminal.await_screen(mark, |screen| {
            screen.contains(mark) && screen.contains("all devices") == (digit == "0")
        });
    }
    // A click on the tab of the processes: SGR mouse, button down and up.
    let tab = terminal.text().lines().nth(1).unwrap().find("4 processes").unwrap();
    terminal.press(&format!("\x1b[<0;{};2M\x1b[<0;{};2m", tab + 1, tab + 1));
    terminal.await_screen("processes", |screen| screen.contains("STATE") && !screen.contains("all devices"));
    quit(terminal);
    assert!(space.files().is_empty(), "left behind: {:?}", space.files());
}

#[test]
fn help_lists_the_keys_of_the_view_and_escape_never_quits() {
    let space = Space::new();
    let mut terminal = demo(&space, 100, 45);
    terminal.press("?");
    terminal.await_text("keys: overview");
    terminal.press(ESCAPE);
    terminal.await_screen("no help", |screen| !screen.contains("keys: overview"));
    terminal.press("4");
    terminal.await_screen("processes", |screen| screen.contains("STATE") && !screen.contains("all devices"));
    terminal.press(ESCAPE);
    terminal.await_text("all devices");
    terminal.press("?");
    terminal.await_text("keys: overview");
    // Closes the help, and only that.
    terminal.press("q");
    terminal.await_screen("no help", |screen| !screen.contains("keys: overview"));
    quit(terminal);
}

#[test]
fn filter_sort_group_and_drill_down() {
    let space = Space::new();
    let mut terminal = demo(&space, 140, 40);
    terminal.press("5");
    terminal.await_text("ADDRESS");
    terminal.press("/class=trace size>1KiB");
    terminal.await_text("class=trace size>1KiB");
    terminal.press(ENTER);
    terminal.await_screen("trace only", |screen| screen.contains("trace") && !screen.contains(" dram "));
    terminal.press("/");
    terminal.press(" nofield=1");
    terminal.await_text("no field");
    // Seen before the next key: an Esc and a letter in one breath are Alt and the letter.
    terminal.press(ESCAPE);
    terminal.await_screen("no filter", |screen| !screen.contains("no field"));
    terminal.press("s");
    terminal.await_text("sort by");
    terminal.press(&format!("{DOWN}{ENTER}"));
    terminal.await_text("CLASS▲");
    terminal.press("4");
    terminal.await_text("STATE");
    terminal.press(ENTER);
    terminal.await_text("PEAK WAS");
    terminal.press(ESCAPE);
    terminal.await_text("STATE");
    quit(terminal);
}

/// A host on each of these chips, with this much DRAM.
fn holder(space: &Space, chips: std::ops::Range<u64>, name: &str, bytes: u64) -> tt_shm_writer::Tracker {
    let builder = tt_shm_writer::Tracker::builder().enabled(true).namespace(space.namespace().as_str());
    let tracker = builder.process_name(name).open().unwrap();
    for chip_id in chips {
        let device = tracker.register_device(&DeviceInfo { chip_id, ..Default::default() }).unwrap();
        tracker.alloc(device, Alloc::new(BufferType::Dram, 1, bytes)).unwrap();
    }
    tracker
}

#[test]
fn a_filter_works_while_it_is_typed_also_on_another_size() {
    let space = Space::new();
    let mut terminal = demo(&space, 120, 40);
    terminal.press("4");
    terminal.await_screen("three", |screen| pids(screen).len() == 3 && !screen.contains("all devices"));
    terminal.press(F4);
    terminal.await_text("filter");
    terminal.press("ber");
    let one = terminal.await_screen("one while typing", |screen| pids(screen).len() == 1);
    assert!(one.contains("ber"), "{one}");
    terminal.resize(80, 24);
    terminal.press("t");
    terminal
        .await_screen("smaller, and typed on", |screen| screen.contains("bert") && pids(screen).len() == 1);
    // Esc returns to what was before.
    terminal.press(ESCAPE);
    terminal.await_screen("all again", |screen| pids(screen).len() == 3);
    terminal.press("/");
    terminal.await_text("filter");
    terminal.press(&format!("bert{ENTER}"));
    terminal.await_screen("the filter is said", |screen| screen.contains("1 of 3, bert"));
    terminal.press(F10);
    assert!(terminal.await_end().success());
}

#[test]
fn a_text_is_searched_and_columns_are_chosen() {
    let space = Space::new();
    let mut terminal = demo(&space, 140, 40);
    terminal.press("4");
    terminal
        .await_screen("processes", |screen| screen.contains("KERNELS") && !screen.contains("all devices"));
    terminal.press(F3);
    terminal.await_text("search");
    terminal.press("no such");
    terminal.await_text("no row has this text");
    terminal.press(ENTER);
    terminal.await_screen("closed", |screen| !screen.contains("no row has"));
    terminal.press(F2);
    terminal.await_text("[x] KERNELS");
    // To the last of them, and up to the one before the command.
    terminal.press(&format!("{DOWN} "));
    terminal.await_screen("a box is ticked", |screen| screen.contains("[x] NSPID"));
    terminal.press(ESCAPE);
    terminal.await_screen("it is there", |screen| screen.contains("NSPID") && !screen.contains("[x]"));
    terminal.press(F6);
    terminal.await_text("┌ sort by");
    terminal.press(ESCAPE);
    terminal.await_screen("closed", |screen| !screen.contains("┌ sort by"));
    quit(terminal);
}

/// Alike is one row, which opens; keys go to devices or processes, and the wheel with them.
#[test]
fn the_overview_folds_and_its_lists_can_be_used() {
    let space = Space::new();
    let _holders: Vec<_> =
        (0..30).map(|number| holder(&space, 100..104, &format!("job-{number}"), 1000 + number)).collect();
    let mut terminal = Terminal::start(program(&space, SMI, &["top"]), 80, 24);
    let folded = terminal.await_text("0-3 x4");
    assert!(folded.contains("job-29") && !folded.contains("job-0 "), "the largest: {folded}");
    assert!(folded.contains(" 16 ↓"), "{folded}");
    terminal.press(ENTER);
    terminal.await_screen("four rows", |screen| !screen.contains("0-3 x4"));
    terminal.press(ESCAPE);
    terminal.await_text("0-3 x4");
    terminal.press("\t");
    terminal.press("G");
    terminal.await_text("job-0");
    // The wheel, up.
    terminal.press(&"\x1b[<64;10;15M".repeat(12));
    terminal.await_screen("the first again", |screen| screen.contains("job-29") && !screen.contains('↑'));
    terminal.press("s");
    terminal.await_text("┌ sort by");
    terminal.press(ESCAPE);
    terminal.await_screen("closed", |screen| !screen.contains("┌ sort by"));
    terminal.press(ENTER);
    terminal.await_text("PEAK WAS");
    quit(terminal);
}

#[test]
fn a_mesh_is_one_line_that_unfolds_and_rows_open() {
    let space = Space::new();
    let mut terminal = demo(&space, 140, 40);
    let is_folded = |screen: &str| screen.contains(" x2") || screen.contains(" x4");
    terminal.press("5");
    terminal.await_screen("folded allocations", |screen| is_folded(screen) && screen.contains("x unfolds"));
    terminal.press("x");
    terminal
        .await_screen("one line for each device", |screen| !is_folded(screen) && screen.contains("SIZE/DEV"));
    terminal.press(&format!("x{ENTER}"));
    terminal.await_text("Enter its process");
    terminal.press(ENTER);
    terminal.await_text("Esc all processes");
    terminal.press("6");
    terminal.await_screen("folded events", |screen| is_folded(screen) && screen.contains("kernel_dispatch"));
    terminal.press("w");
    terminal.await_text("[KERNEL_DISPATCH]");
    terminal.press("w");
    terminal.await_text("SIZE/DEV");
    terminal.press(&format!("{UP}{UP}"));
    terminal.await_text("PARKED");
    terminal.press("G");
    terminal.await_text("following");
    terminal.press("8");
    terminal.await_screen("folded programs", |screen| is_folded(screen) && screen.contains("CB ALLOC/DEV"));
    quit(terminal);
}

#[test]
fn columns_that_do_not_fit_are_reached_with_the_arrows() {
    let space = Space::new();
    let mut terminal = demo(&space, 80, 24);
    terminal.press("8");
    terminal.await_screen("more at the right", |screen| screen.contains("DISP/S") && screen.contains('›'));
    terminal.press(RIGHT);
    let screen = terminal.await_text("MISSES");
    assert!(
        ["‹", "NAME", "TYPES", "BINARY x CORES", "HITS"].iter().all(|head| screen.contains(head)),
        "{screen}"
    );
    terminal.press(ENTER);
    terminal.await_text("Esc all programs");
    terminal.press(ESCAPE);
    terminal.await_text("MISSES");
    terminal.press(LEFT);
    terminal.await_text("DISP/S");
    quit(terminal);
}

#[test]
fn any_size_is_drawn_and_the_screen_follows() {
    let space = Space::new();
    let mut terminal = demo(&space, 80, 24);
    for (columns, rows) in [(60, 15), (200, 50), (20, 5), (80, 24)] {
        terminal.resize(columns, rows);
        for digit in "012345678".chars() {
            terminal.press(&digit.to_string());
        }
        terminal.press("0");
    }
    terminal.await_text("all devices");
    quit(terminal);
}

#[test]
fn a_frozen_screen_stays_as_it_is() {
    let space = Space::new();
    let mut terminal = demo(&space, 100, 30);
    terminal.press("f");
    let frozen = terminal.await_text("FROZEN");
    let clock = |screen: &str| screen.lines().next().map(str::to_owned);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(clock(&terminal.text()), clock(&frozen));
    terminal.press("f");
    terminal.await_screen("figures that go on", |screen| clock(screen) != clock(&frozen));
    quit(terminal);
}

#[test]
fn a_signal_is_sent_only_after_a_clear_yes() {
    let space = Space::new();
    let mut terminal = demo(&space, 140, 40);
    terminal.press("4");
    let pids = pids(&terminal.await_text("STATE"));
    assert_eq!(pids.len(), 3, "{}", terminal.text());
    let alive = || pids.iter().filter(|pid| test_kill_process(Pid::from_raw(**pid).unwrap()).is_ok()).count();
    terminal.press(F9);
    terminal.await_text("ask to terminate");
    terminal.press(ENTER);
    terminal.await_text("Send SIGTERM to process");
    terminal.press("n");
    terminal.await_screen("no question", |screen| !screen.contains("Send SIG"));
    assert_eq!(alive(), 3, "no means no");
    // The fourth: KILL.
    terminal.press(F9);
    terminal.await_text("ask to terminate");
    terminal.press(&format!("{DOWN}{DOWN}{DOWN}{ENTER}"));
    terminal.await_text("Send SIGKILL to process");
    terminal.press("y");
    terminal.await_text("sent SIGKILL to");
    terminal.await_text("2 processes");
    quit(terminal);
}

#[test]
fn readonly_sends_no_signals() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    host.tell(Command::Figures);
    let mut terminal = Terminal::start(program(&space, SMI, &["top", "--readonly"]), 120, 30);
    terminal.await_text("1 process");
    terminal.press("4");
    terminal.await_text("STATE");
    terminal.press(F9);
    terminal.await_text("signals are disabled");
    quit(terminal);
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_before() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let space = Space::new();
        let terminal = demo(&space, 80, 24);
        kill_process(Pid::from_raw(terminal.pid() as i32).unwrap(), signal).unwrap();
        assert!(terminal.await_end().success());
        assert!(space.files().is_empty());
    }
}

#[test]
fn after_a_panic_the_terminal_is_as_before_and_says_why() {
    let space = Space::new();
    let panicker = env!("CARGO_BIN_EXE_panicker");
    let terminal = Terminal::start(program(&space, panicker, &[]), 80, 24);
    terminal.await_text("a panic on purpose");
    assert!(!terminal.await_end().success());
}

#[test]
fn without_colour_and_unicode_there_is_none() {
    let space = Space::new();
    let mut command = program(&space, SMI, &["demo", "--devices", "2"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command, 100, 30);
    terminal.await_text("3 processes");
    for view in "012345678".chars() {
        terminal.press(&view.to_string());
        std::thread::sleep(std::time::Duration::from_millis(50));
        let screen = terminal.screen();
        let cells = (0..30).flat_map(|row| (0..100).map(move |column| (row, column)));
        let colored = cells
            .filter_map(|(row, column)| screen.cell(row, column))
            .any(|cell| cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default);
        assert!(!colored, "colours in view {view}");
    }
    quit(terminal);
    let space = Space::new();
    let mut terminal = Terminal::start(program(&space, SMI, &["demo", "--ascii"]), 100, 30);
    terminal.await_text("3 processes");
    for view in "012345678".chars() {
        terminal.press(&view.to_string());
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(terminal.text().is_ascii(), "view {view}:\n{}", terminal.text());
    }
    quit(terminal);
}

#[test]
fn the_screen_changes_over_when_an_aggregator_comes_and_goes() {
    let space = Space::new();
    let mut host = host(&space, [1]);
    host.tell(Command::Figures);
    let terminal = Terminal::start(program(&space, SMI, &["top"]), 120, 30);
    terminal.await_text("no aggregator, read directly");
    let monitor = Monitor::start(SMI, &space);
    terminal.await_text("(aggregator ");
    monitor.terminate();
    terminal.await_text("no aggregator, read directly");
    quit(terminal);
}

#[test]
fn foreign_names_are_shown_and_not_obeyed() {
    let space = Space::new();
    let tracker = tracker(&space);
    let info = DeviceInfo { chip_id: 1, logical_id: Some(0), ..Default::default() };
    let device = tracker.register_device(&info).unwrap();
    let name = tracker.intern("evil\x1b[2J\x1b[?1049l").unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096).name(name)).unwrap();
    let mut terminal = Terminal::start(program(&space, SMI, &["top"]), 140, 30);
    terminal.await_text("1 process");
    terminal.press("5");
    terminal.await_text("evil\\u{1b}[2J");
    assert!(terminal.screen().alternate_screen(), "the name was obeyed");
    quit(terminal);
}

#[test]
fn only_the_devices_that_were_asked_for_are_shown() {
    let space = Space::new();
    let tracker = tracker(&space);
    for number in 0..4_u32 {
        let pci = Some(PciAddress { domain: 0, bus: 0x81 + number as u8, device: 0, function: 0 });
        let info = DeviceInfo {
            chip_id: 7 + u64::from(number),
            logical_id: Some(number),
            pci,
            ..Default::default()
        };
        let device = tracker.register_device(&info).unwrap();
        tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096)).unwrap();
    }
    // By index, and by address.
    let arguments = ["top", "--device", "1", "--device", "0000:84:00.0"];
    let mut terminal = Terminal::start(program(&space, SMI, &arguments), 100, 30);
    let overview = terminal.await_text("2 devices");
    assert!(overview.contains("1,3 x2"), "they look alike: {overview}");
    let shown =
        |screen: &str| ["81", "82", "83", "84"].map(|bus| screen.contains(&format!("0000:{bus}:00.0")));
    assert_eq!(shown(&overview), [false, true, false, false], "the first stands for both: {overview}");
    terminal.press(&format!("{ENTER}{DOWN}"));
    terminal.await_screen("the other one", |screen| shown(screen) == [false, false, false, true]);
    terminal.press(&format!("{UP}{ESCAPE}"));
    terminal.await_text("1,3 x2");
    terminal.press("1");
    let detail = terminal.await_text("device 1 ");
    assert_eq!(shown(&detail), [false, true, false, false], "it begins with the first of them: {detail}");
    terminal.press("n");
    terminal.await_text("device 3 ");
    terminal.press("n");
    terminal.await_text("device 1 ");
    terminal.press("5");
    terminal.await_text("2 live allocations");
    quit(terminal);
}

#[test]
fn steps_are_told_by_their_markers() {
    let space = Space::new();
    let tracker = tracker(&space);
    let info = DeviceInfo { chip_id: 1, logical_id: Some(0), ..Default::default() };
    let device = tracker.register_device(&info).unwrap();
    let segment = Segment::open(&space.segments()[0]).unwrap();
    let mut steps = Steps::default();
    let mut ended = || {
        steps.follow(&segment);
        steps.finish();
        steps.end(&segment)
    };
    assert_eq!(ended(), None, "none is marked");
    let alloc = |id| tracker.alloc(device, Alloc::new(BufferType::Dram, id, 64)).unwrap();
    let mark = |phase, step| tracker.marker(phase, step, NameId::NONE).unwrap();
    mark(MarkerPhase::Begin, 1);
    alloc(1);
    assert_eq!(ended(), None, "it has begun and not ended");
    mark(MarkerPhase::End, 1);
    alloc(2);
    let end = ended().unwrap();
    assert_eq!((end.pid, end.ended), (std::process::id(), 1));
    let ages: Vec<u64> = segment.allocations().list.iter().map(|allocation| allocation.age_ns).collect();
    let age_ns = ended().unwrap().age_ns;
    assert!(age_ns >= end.age_ns && ages.iter().filter(|age| **age >= end.age_ns).count() >= 1, "{ages:?}");
    for step in 2..=5 {
        mark(MarkerPhase::Begin, step);
        mark(MarkerPhase::End, step);
    }
    mark(MarkerPhase::Instant, 6);
    assert_eq!(ended().unwrap().ended, 6);
    // More than is read at one look: the last are counted, and at least so many.
    for step in 0..200_000 {
        mark(MarkerPhase::End, step);
    }
    let many = ended().unwrap().ended;
    assert!((7..=200_006).contains(&many), "{many}");
}

#[test]
fn what_outlives_steps_is_suspected_on_the_screen() {
    let space = Space::new();
    let tracker = tracker(&space);
    let info = DeviceInfo { chip_id: 1, logical_id: Some(0), ..Default::default() };
    let device = tracker.register_device(&info).unwrap();
    let (kept, used) = (tracker.intern("kept").unwrap(), tracker.intern("used").unwrap());
    let terminal = Terminal::start(program(&space, SMI, &["top", "--view", "allocations"]), 160, 40);
    terminal.await_text("count rose");
    // One more is kept after each step; what it needs for itself is freed.
    let do_step = |step: u64| {
        tracker.marker(MarkerPhase::Begin, step, NameId::NONE).unwrap();
        tracker.alloc(device, Alloc::new(BufferType::Dram, 2 * step, 4096).name(kept)).unwrap();
        tracker.alloc(device, Alloc::new(BufferType::Dram, 2 * step + 1, 64).name(used)).unwrap();
        tracker.free(device, 2 * step + 1).unwrap();
        tracker.marker(MarkerPhase::End, step, NameId::NONE).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    // Ten looks, one each second at most: nobody could be suspected before.
    (0..100).for_each(do_step);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let screen = std::thread::scope(|scope| {
        scope.spawn(|| (100..).take_while(|_| !is_done.load(Relaxed)).for_each(do_step));
        let found = |screen: &str| screen.contains(" steps ") && screen.contains("kept, ");
        let wait = || terminal.await_screen("a suspect over steps", found);
        let screen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait));
        is_done.store(true, Relaxed);
        screen
    });
    let screen = screen.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert!(!screen.contains("used, "), "{screen}");
    quit(terminal);
}
