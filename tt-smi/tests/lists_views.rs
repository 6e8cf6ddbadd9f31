//! Pictures of the views that are lists, and what their keys do.

use crate::common;
use std::sync::Arc;

use crate::common::lists::{allocations, doubtful_allocations, events, items, news, processes, programs};
use crate::common::session::{SIZES, Session, USUAL_SIZE};
use tt_smi::model::{Clock, Model};
use tt_smi::screen::{Effect, Message, More, SignalTarget, View};

const SECOND: u64 = 1_000_000_000;

/// A model so many seconds later.
fn later(seconds: u64) -> Model {
    let mut model = processes();
    let Clock { monotonic_ns, realtime_ns, .. } = model.clock;
    let more = seconds * SECOND;
    model.clock = Clock { monotonic_ns: monotonic_ns + more, realtime_ns: realtime_ns + more, ..model.clock };
    model
}

fn empty() -> Model {
    Model {
        reclaimed: Vec::new(),
        ..common::model(tt_shm_reader::TableSnapshot { processes: Vec::new(), ..common::snapshot(0) })
    }
}

fn programs_after(more: u64) -> More {
    More::Programs(Arc::new(programs(more)))
}

/// A name, and what there is to see.
type Case = (&'static str, fn((u16, u16)) -> Session);

/// What is laid out differently at each size.
const LAYOUTS: &[Case] = &[
    ("processes", |size| Session::new(View::Processes, size).sees(processes(), More::None)),
    ("process", |size| {
        let session = Session::new(View::Processes, size).sees(processes(), More::None).types("\n");
        session.sees(processes(), allocations(items()))
    }),
    ("allocations", |size| Session::new(View::Allocations, size).sees(later(0), allocations(items()))),
    ("allocations-sizes", |size| {
        Session::new(View::Allocations, size).sees(later(0), allocations(items())).types("bbb\t")
    }),
    ("allocations-suspects", |size| leaking(size).types("\t\t")),
    ("events", |size| {
        Session::new(View::Events, size)
            .sees(later(0), news(1, events(40)))
            .sees(later(1), news(2, events(60)))
    }),
    ("programs", |size| {
        Session::new(View::Programs, size)
            .sees(later(0), programs_after(0))
            .sees(later(1), programs_after(120))
    }),
    ("program", |size| {
        Session::new(View::Programs, size).sees(later(0), programs_after(0)).types("/name~matmul\n\n")
    }),
];

/// What differs only in what the rows say.
const CASES: &[Case] = &[
    ("processes-tree", |size| Session::new(View::Processes, size).sees(processes(), More::None).types("t")),
    ("processes-filter", |size| {
        Session::new(View::Processes, size).sees(processes(), More::None).types("/state=stopped,ended\n")
    }),
    ("processes-none", |size| Session::new(View::Processes, size).sees(empty(), More::None)),
    ("process-ended", |size| {
        Session::new(View::Processes, size).sees(processes(), More::None).types("/state=ended\n\n")
    }),
    ("allocations-doubts", |size| {
        Session::new(View::Allocations, size).sees(later(0), doubtful_allocations())
    }),
    ("allocations-none", |size| Session::new(View::Allocations, size).sees(empty(), allocations(Vec::new()))),
    ("allocations-names", |size| {
        Session::new(View::Allocations, size).sees(later(0), allocations(items())).types("b")
    }),
    ("events-lost", |size| {
        let mut news =
            tt_smi::screen::NewEvents { pass: 1, read: 1, events: events(9), missed: 120, older: 3000 };
        let first = More::Events(news.clone());
        (news.read, news.events) = (2, events(250_000));
        Session::new(View::Events, size).sees(later(0), first).sees(later(1), More::Events(news)).types("^\n")
    }),
    ("events-none", |size| Session::new(View::Events, size).sees(empty(), news(1, Vec::new()))),
    ("programs-first", |size| Session::new(View::Programs, size).sees(later(0), programs_after(0))),
    ("programs-none", |size| {
        Session::new(View::Programs, size).sees(empty(), More::Programs(Arc::default()))
    }),
];

/// The same after a step to the right, or two: what was left out.
const ASIDE: &[Case] = &[
    ("processes-aside", |size| Session::new(View::Processes, size).sees(processes(), More::None).types("→")),
    ("allocations-aside", |size| {
        Session::new(View::Allocations, size).sees(later(0), allocations(items())).types("→")
    }),
    ("events-aside", |size| Session::new(View::Events, size).sees(later(0), news(1, events(40))).types("→")),
    ("programs-aside", |size| {
        Session::new(View::Programs, size).sees(later(0), programs_after(0)).types("→")
    }),
];

/// A process that keeps one more thing each ten seconds.
fn leaking(size: (u16, u16)) -> Session {
    let mut session = Session::new(View::Allocations, size);
    for step in 0..8_u64 {
        let mut items = items();
        let like = items[1].clone();
        let leaked = (0..step * 3).map(|number| tt_smi::lists::allocations::Item {
            id: 0x9000 + number,
            name: Some("sampler.tmp".into()),
            age_ns: (step * 10 - number * 3) * SECOND,
            ..like.clone()
        });
        items.extend(leaked);
        session.take(later(step * 10), allocations(items));
    }
    session
}

#[test]
fn pictures() {
    for (name, session) in LAYOUTS {
        for size in SIZES {
            common::assert_expected(&format!("{name}-{}x{}", size.0, size.1), &session(size).picture());
        }
    }
    for (name, session) in CASES {
        common::assert_expected(name, &session(USUAL_SIZE).picture());
    }
    for (name, session) in ASIDE {
        let pictures = [(60, 15), (80, 24)].map(|size| session(size).picture());
        common::assert_expected(name, &pictures.concat());
    }
}

/// The headings that are seen with so many steps to the right, until there are no more.
fn headings(mut session: Session, mark: &str) -> Vec<String> {
    let mut seen = vec![session.line(mark)];
    while seen.last().is_some_and(|heading| heading.ends_with('›')) {
        session.press("→");
        seen.push(session.line("‹"));
    }
    session.press("→→→");
    assert_eq!(session.line("‹"), *seen.last().unwrap(), "no further");
    session.press(&"←".repeat(seen.len() + 2));
    assert_eq!(session.line(mark), seen[0], "and back");
    seen
}

#[test]
fn columns_that_do_not_fit_are_reached_with_the_arrows() {
    let programs = |size| Session::new(View::Programs, size).sees(later(0), programs_after(0));
    let processes = |size| Session::new(View::Processes, size).sees(processes(), More::None);
    let allocations = |size| Session::new(View::Allocations, size).sees(later(0), allocations(items()));
    type Seen<'a> = (&'a dyn Fn((u16, u16)) -> Session, &'a str, &'a [&'a str]);
    let cases: [Seen<'_>; 3] = [
        (
            &programs,
            "NAME",
            &[
                "PID",
                "ID",
                "TYPES",
                "DEV",
                "KERNELS",
                "BINARY x CORES",
                "CB ALLOC/DEV",
                "DISP/S",
                "HITS",
                "MISSES",
                "LAST",
            ],
        ),
        (
            &processes,
            "PID",
            &["NSPID", "USER", "STATE", "TRACE", "CB", "L1_SMALL", "SYSMEM", "AGE", "CONTAINER"],
        ),
        (&allocations, "SIZE", &["CLASS", "DEV", "PID", "ADDRESS", "CORES", "PROGRAM", "ID", "SITE"]),
    ];
    for (session, name, columns) in cases {
        for size in [(60, 15), (80, 24)] {
            let seen = headings(session(size), name);
            assert!(seen.len() > 1 && seen.iter().all(|heading| heading.contains(name)), "{seen:?}");
            for column in columns {
                assert!(
                    seen.iter().any(|heading| heading.contains(column)),
                    "{column} at {size:?}: {seen:?}"
                );
            }
        }
    }
    let seen = headings(programs((80, 24)), "NAME");
    let all_at_once = ["TYPES", "BINARY x CORES", "HITS", "MISSES"];
    assert!(all_at_once.iter().all(|column| seen[1].contains(column)), "{seen:?}");
}

#[test]
fn what_is_aside_can_be_looked_into_all_the_same() {
    let session = Session::new(View::Programs, (80, 24)).sees(later(0), programs_after(0));
    session.types("→_\n").line("Esc all programs");
    let session = Session::new(View::Events, (80, 24)).sees(later(0), news(1, events(40)));
    let session = session.types("w→");
    session.line("following");
    let line = session.line(" free, largest");
    assert!(line.starts_with("!14:13:20.") && !line.contains("[PID"), "when stays, what moves: {line}");
    session.types("w").line("SIZE/DEV");
}

#[test]
fn a_wheel_turns_sideways_with_shift() {
    use crossterm::event::{KeyModifiers, MouseEvent, MouseEventKind};
    let mut session = Session::new(View::Programs, (80, 24)).sees(later(0), programs_after(0));
    let mut wheel = |kind, modifiers| {
        session.state.update(Message::Mouse(MouseEvent { kind, column: 9, row: 9, modifiers }));
        session.line("NAME").contains("MISSES")
    };
    assert!(wheel(MouseEventKind::ScrollDown, KeyModifiers::SHIFT));
    assert!(!wheel(MouseEventKind::ScrollUp, KeyModifiers::SHIFT));
    assert!(wheel(MouseEventKind::ScrollRight, KeyModifiers::NONE));
    assert!(!wheel(MouseEventKind::ScrollLeft, KeyModifiers::NONE));
}

#[test]
fn any_size_is_drawn_and_any_key_taken() {
    let sizes = [(1, 1), (2, 2), (5, 3), (9, 6), (20, 4), (60, 15), (20, 60), (300, 7)];
    for (name, session) in LAYOUTS.iter().chain(CASES) {
        for size in sizes {
            let mut session = session(size);
            for key in "_^gG→→\t_\n_^→\trbb\n\x1bts\n←→→→→→\x1b".chars() {
                session.press(&key.to_string());
                session.picture();
            }
            assert!(!session.state.is_over(), "{name}");
        }
    }
}

#[test]
fn nothing_foreign_is_obeyed() {
    for (name, session) in LAYOUTS.iter().chain(CASES) {
        let picture = session((200, 50)).picture();
        let harmful = |c: &char| *c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(c));
        assert_eq!(picture.chars().find(harmful), None, "{name}");
    }
}

#[test]
fn processes_are_looked_into_and_left() {
    let mut session = Session::new(View::Processes, (100, 30)).sees(processes(), More::None);
    assert_eq!(session.press("\n"), Some(Effect::Refresh), "its allocations are not read yet");
    session.line("reading live allocations");
    session.take(processes(), allocations(items()));
    session.line("layers.0.attention");
    // Nothing new: what was read still holds.
    session.take(processes(), More::None);
    session.line("layers.0.attention");
    session.press("\x1b");
    session.line("COMMAND");
    session.line("worker");
}

#[test]
fn a_signal_goes_to_the_selected_process_and_not_to_one_that_ended() {
    let f9 = || Message::Key(crossterm::event::KeyCode::F(9).into());
    let mut session = Session::new(View::Processes, (100, 30)).sees(processes(), More::None);
    session.state.update(f9());
    session.line("signal to 4242");
    let command = "python3 serve.py --model llama-3.1-8b --mesh 2x2 --port 8000".into();
    let to = SignalTarget { pid: 4242, start_ticks: 7, uid: 54_321, user: "54321".into(), command };
    session.press("\n");
    session.line("Send SIGTERM to process 4242 of 54321?");
    session.line("python3 serve.py");
    assert_eq!(session.press("y"), Some(Effect::Signal { to, signal: 15 }));
    let mut session = session.types("/state=ended\n");
    session.state.update(f9());
    session.line("no process selected");
}

#[test]
fn a_group_opens_to_what_is_in_it() {
    let session = Session::new(View::Allocations, (100, 30)).sees(later(0), allocations(items()));
    let session = session.types("b_\n");
    assert!(
        session.line("live allocations").starts_with(" 24 of 102 live allocations, 192.0 MiB  name=kv_cache")
    );
    let session = session.types("\x1b");
    session.line("33 groups by name");
    let session = session.types("\x1b/class=l1\nb");
    session.line("1 group by name");
    let session = session.types("\x1b\x1b");
    session.line(" 102 live allocations");
}

#[test]
fn a_suspect_opens_to_its_allocations() {
    let session = leaking((100, 30));
    session.line("! 1 leak suspect");
    let session = session.types("\t\t\n");
    session.line("21 of 123 live allocations");
    assert!(session.picture().contains("\n!"), "marked also without colours");
}

/// A process whose steps leave one more behind each second, seen from another view.
#[test]
fn leaks_are_found_in_whatever_view_is_open() {
    use tt_smi::lists::allocations::{Item, Listing};
    use tt_smi::lists::suspects::steps::StepEnd;
    use tt_smi::screen::{Data, Live};
    let mut session = Session::new(View::Overview, (160, 40));
    for step in 0..=10_u64 {
        let like = items()[1].clone();
        let kept = (0..=step).map(|id| Item { id, age_ns: SECOND, ..like.clone() });
        let young = (0..step % 3).map(|id| Item { id: 100 + id, age_ns: 0, ..like.clone() });
        let listing = Listing { items: kept.chain(young).collect(), ..Default::default() };
        let ends = vec![StepEnd { pid: like.pid, ended: step, age_ns: SECOND / 2 }];
        let live = Some(Live { listing: listing.into(), ends });
        session.state.update(Message::Data(Box::new(Data { live, ..Data::new(later(step), More::None) })));
    }
    session.press("5");
    assert!(session.line("10 steps").contains("kv_cache"), "{}", session.picture());
}

#[test]
fn a_list_that_is_not_new_stays() {
    let mut session = Session::new(View::Allocations, (100, 30)).sees(later(0), allocations(items()));
    let before = session.picture();
    session.take(later(0), More::None);
    assert_eq!(session.picture(), before);
    session.take(later(5), More::None);
    session.line("read 5.0s ago");
}

#[test]
fn the_log_follows_until_somebody_scrolls_up() {
    let mut session = Session::new(View::Events, (120, 20)).sees(later(0), news(1, events(100)));
    session.line("following");
    assert!(session.picture().contains("14:13:20.122222"), "the newest");
    session.press("^^^");
    session.line("97 of 100, G follows");
    let reading = session.picture();
    session.take(later(1), news(2, events(50)));
    let lines = |picture: &str| picture.lines().skip(4).take(13).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&session.picture()), lines(&reading), "who reads is not disturbed");
    session.press("G");
    session.line("following");
    session.take(later(2), news(3, events(10)));
    session.line("following");
    session.take(later(2), news(3, events(10)));
    session.press("^");
    session.line("159 of 160");
}

#[test]
fn only_wanted_events_are_shown() {
    let session = Session::new(View::Events, (120, 20)).sees(later(0), news(1, events(90)));
    let session = session.types("/kind=marker\n");
    session.line("following, kind=marker");
    assert_eq!(session.picture().matches(" marker ").count(), 10);
    session.types("\x1b").line(" kernel_unload ");
}

#[test]
fn dispatch_rates_need_two_lists() {
    let mut session = Session::new(View::Programs, (120, 20)).sees(later(0), programs_after(0));
    assert!(session.line("matmul").contains(" - "));
    session.take(later(2), programs_after(500));
    assert!(session.line("matmul").contains(" 250 "), "{}", session.line("matmul"));
}

#[test]
fn ascii_is_enough() {
    for (name, session) in LAYOUTS.iter().chain(CASES) {
        // Braille, blocks, ASCII.
        let picture = session((120, 40)).types("→aa").picture();
        assert!(picture.is_ascii(), "{name}:\n{picture}");
    }
}

/// `cargo test -p tt-smi --test suite lists_views -- --ignored --nocapture`
#[test]
#[ignore = "prints how long a list of 100 000 rows takes: a time is no reason to fail, so nobody waits for it"]
fn hundred_thousand_rows_scroll_smoothly() {
    let some = items();
    let of = |number: u64| {
        let like = some[number as usize % some.len()].clone();
        let size = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36;
        tt_smi::lists::allocations::Item { id: number, size, ..like }
    };
    let items: Vec<_> = (0..100_000).map(of).collect();
    let mut session = Session::new(View::Allocations, (200, 50));
    let timed = |what: &str, session: &mut Session, act: &mut dyn FnMut(&mut Session, u64)| {
        let start = std::time::Instant::now();
        (0..10).for_each(|round| act(session, round));
        eprintln!("{what:<32} {:>8.2?}", start.elapsed() / 10);
    };
    let lists: Vec<_> = (0..20).map(|_| allocations(items.clone())).collect();
    let mut lists = lists.into_iter();
    timed("a new list, sorted by size", &mut session, &mut |session, round| {
        session.take(later(round), lists.next().unwrap());
    });
    timed("a key", &mut session, &mut |session, _| {
        session.press("_");
    });
    timed("a page drawn", &mut session, &mut |session, _| drop(session.picture()));
    timed("turned round", &mut session, &mut |session, _| {
        session.press("r");
    });
    session.press("s__________\n");
    timed("sorted by name", &mut session, &mut |session, _| {
        session.press("r");
    });
    timed("four times grouped and arranged", &mut session, &mut |session, _| {
        session.press("bbbb");
    });
    session.press("/size>1MiB name~layers\n");
    timed("a new list, filtered", &mut session, &mut |session, round| {
        session.take(later(20 + round), lists.next().unwrap());
    });
}
