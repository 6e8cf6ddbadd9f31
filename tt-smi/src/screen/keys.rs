//! The keys: one table for the handler, the help and the hints.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::action::{Action, Motion, View};

/// A key: its code, and whether Ctrl is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(KeyCode, bool);

/// Keys with the same meaning.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub keys: &'static [Key],
    /// The action they stand for.
    pub action: Action,
    /// Text for the help.
    pub help: &'static str,
    /// Views in which they work; all if empty.
    pub views: &'static [View],
}

const fn char(c: char) -> Key {
    Key(KeyCode::Char(c), false)
}

const fn key(code: KeyCode) -> Key {
    Key(code, false)
}

const fn everywhere(keys: &'static [Key], action: Action, help: &'static str) -> Binding {
    Binding { keys, action, help, views: &[] }
}

const fn within(views: &'static [View], keys: &'static [Key], action: Action, help: &'static str) -> Binding {
    Binding { keys, action, help, views }
}

const LISTS: &[View] = &[View::Overview, View::Processes, View::Allocations, View::Events, View::Programs];
const COLUMNED: &[View] =
    &[View::Overview, View::Detail, View::Processes, View::Allocations, View::Events, View::Programs];
const SORTED: &[View] = &[View::Overview, View::Processes, View::Allocations, View::Programs];
const OF_A_DEVICE: &[View] = &[View::Detail, View::Charts, View::Telemetry, View::Map, View::Cores];
const WITH_PROCESSES: &[View] = &[View::Overview, View::Processes];
const PARTED: &[View] = &[View::Overview, View::Detail, View::Processes, View::Allocations, View::Map];
const FOLDED: &[View] = &[View::Allocations, View::Events, View::Programs];
const ZOOMED: &[View] = &[View::Charts, View::Map];
/// All but telemetry, which has nothing that could be opened.
const OPENED: &[View] = &[
    View::Overview,
    View::Detail,
    View::Charts,
    View::Processes,
    View::Allocations,
    View::Events,
    View::Map,
    View::Programs,
    View::Cores,
];

/// All keys, in the order of the help.
pub const BINDINGS: &[Binding] = &[
    everywhere(&[char('q'), Key(KeyCode::Char('c'), true), key(KeyCode::F(10))], Action::Quit, "quit"),
    everywhere(&[char('?'), char('h'), key(KeyCode::F(1))], Action::Help, "help"),
    everywhere(&[key(KeyCode::Esc)], Action::Back, "back: close, leave, clear filter"),
    everywhere(&[char('0'), key(KeyCode::Home)], Action::Show(View::Overview), "all devices"),
    everywhere(&[char('1')], Action::Show(View::Detail), "one device in detail"),
    everywhere(&[char('2')], Action::Show(View::Charts), "DRAM and L1 over time"),
    everywhere(&[char('3')], Action::Show(View::Telemetry), "driver telemetry"),
    everywhere(&[char('4')], Action::Show(View::Processes), "processes"),
    everywhere(&[char('5')], Action::Show(View::Allocations), "live allocations"),
    everywhere(&[char('6')], Action::Show(View::Events), "events as they happen"),
    everywhere(&[char('7')], Action::Show(View::Map), "memory map of a device"),
    everywhere(&[char('8')], Action::Show(View::Programs), "programs and kernels"),
    everywhere(&[char('9')], Action::Show(View::Cores), "L1 of each core"),
    everywhere(&[key(KeyCode::Up), char('k')], Action::Move(Motion::Lines(-1)), "up"),
    everywhere(&[key(KeyCode::Down), char('j')], Action::Move(Motion::Lines(1)), "down"),
    everywhere(&[key(KeyCode::PageUp)], Action::Move(Motion::Pages(-1)), "page up"),
    everywhere(&[key(KeyCode::PageDown)], Action::Move(Motion::Pages(1)), "page down"),
    everywhere(&[char('g')], Action::Move(Motion::First), "first line"),
    everywhere(&[char('G'), key(KeyCode::End)], Action::Move(Motion::Last), "last line"),
    within(COLUMNED, &[key(KeyCode::Left)], Action::Move(Motion::Aside(-1)), "previous columns"),
    within(
        COLUMNED,
        &[key(KeyCode::Right)],
        Action::Move(Motion::Aside(1)),
        "more columns, end of long text",
    ),
    within(ZOOMED, &[key(KeyCode::Left)], Action::Move(Motion::Aside(-1)), "earlier time, lower address"),
    within(ZOOMED, &[key(KeyCode::Right)], Action::Move(Motion::Aside(1)), "later time, higher address"),
    within(&[View::Cores], &[key(KeyCode::Left)], Action::Move(Motion::Aside(-1)), "core to the left"),
    within(&[View::Cores], &[key(KeyCode::Right)], Action::Move(Motion::Aside(1)), "core to the right"),
    within(OPENED, &[key(KeyCode::Enter)], Action::Open, "open what is selected"),
    within(&[View::Overview], &[char('o')], Action::Alarm, "open what is wrong"),
    within(LISTS, &[char('/'), key(KeyCode::F(4))], Action::Filter, "filter, such as class=dram size>1MiB"),
    within(LISTS, &[key(KeyCode::F(3))], Action::Search, "search a text in the rows"),
    within(LISTS, &[char('C'), key(KeyCode::F(2))], Action::Columns, "columns to show"),
    within(SORTED, &[char('s'), key(KeyCode::F(6))], Action::SortMenu, "sort by"),
    within(SORTED, &[char('r')], Action::Reverse, "reverse sort"),
    within(WITH_PROCESSES, &[char('t')], Action::Tree, "process tree"),
    within(WITH_PROCESSES, &[key(KeyCode::F(9))], Action::Signal, "send a signal, with confirmation"),
    within(&[View::Allocations], &[char('b')], Action::Group, "group: by name, class, size, process"),
    within(FOLDED, &[char('x')], Action::Fold, "fold: one line for a mesh, or one for each device"),
    within(&[View::Events], &[char('w')], Action::Wording, "wording: columns, log lines"),
    within(OF_A_DEVICE, &[char('n'), char(']')], Action::NextDevice, "next device"),
    within(OF_A_DEVICE, &[char('p'), char('[')], Action::PreviousDevice, "previous device"),
    within(ZOOMED, &[char('z')], Action::ZoomIn, "zoom in"),
    within(ZOOMED, &[char('Z')], Action::ZoomOut, "zoom out"),
    within(&[View::Charts], &[char('m')], Action::Span, "span: minute, hour, day"),
    within(&[View::Map], &[char('b')], Action::Group, "colours: by class, process, name"),
    within(&[View::Charts], &[char('b')], Action::Shape, "both memories in one graph, or apart"),
    within(PARTED, &[key(KeyCode::Tab)], Action::NextPane, "next pane"),
    everywhere(&[char('f'), char(' ')], Action::Freeze, "freeze, resume"),
    everywhere(&[char('+'), char('=')], Action::Faster, "refresh more often"),
    everywhere(&[char('-')], Action::Slower, "refresh less often"),
    everywhere(&[char('c')], Action::Theme, "next colour theme"),
    everywhere(&[char('a')], Action::Signs, "draw with braille, blocks or ASCII"),
];

/// The action of a key in a view.
pub(crate) fn action(event: KeyEvent, view: View) -> Option<Action> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let pressed = Key(event.code, event.modifiers.contains(KeyModifiers::CONTROL));
    let means = |binding: &&Binding| binding.is_in(view) && binding.keys.contains(&pressed);
    BINDINGS.iter().find(means).map(|binding| binding.action)
}

/// Whether it is Ctrl-C, which quits even where keys are text of a filter.
pub(super) fn is_interrupt(event: KeyEvent) -> bool {
    event.code == KeyCode::Char('c') && event.modifiers.contains(KeyModifiers::CONTROL)
}

impl Binding {
    /// Whether it works in this view.
    pub fn is_in(&self, view: View) -> bool {
        self.views.is_empty() || self.views.contains(&view)
    }

    /// Its keys as shown to the user: `q Ctrl-C`.
    pub(crate) fn shown(&self) -> String {
        let names: Vec<String> = self.keys.iter().map(|key| key.name()).collect();
        names.join(" ")
    }
}

impl Key {
    /// Its name as shown to the user.
    pub fn name(self) -> String {
        let plain = match self.0 {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) if self.1 => c.to_ascii_uppercase().to_string(),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::F(number) => format!("F{number}"),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            code => format!("{code:?}"),
        };
        if self.1 { format!("Ctrl-{plain}") } else { plain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers, view: View) -> Option<Action> {
        action(KeyEvent::new(code, modifiers), view)
    }

    #[test]
    fn escape_goes_back_and_never_quits() {
        for view in View::ALL {
            assert_eq!(press(KeyCode::Esc, KeyModifiers::NONE, view), Some(Action::Back));
        }
        assert_eq!(press(KeyCode::Char('q'), KeyModifiers::NONE, View::Map), Some(Action::Quit));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL, View::Map), Some(Action::Quit));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::NONE, View::Map), Some(Action::Theme));
    }

    #[test]
    fn every_view_has_its_digit() {
        for view in View::ALL {
            let digit = char::from_digit(view.digit() as u32, 10).unwrap();
            assert_eq!(press(KeyCode::Char(digit), KeyModifiers::NONE, View::Map), Some(Action::Show(view)));
        }
    }

    /// The guide contains exactly this table, so the two cannot differ.
    #[test]
    fn the_guide_has_every_view_and_key() {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tt-smi.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        for view in View::ALL {
            let row = format!("| `{}` {} |", view.digit(), view.name());
            assert!(guide.contains(&row), "docs/tt-smi.md has no row for {row}");
        }
        let row = |binding: &Binding| {
            let keys: Vec<String> = binding.keys.iter().map(|key| format!("`{}`", key.name())).collect();
            let views: Vec<&str> = binding.views.iter().map(|view| view.name()).collect();
            let views = if views.is_empty() { "everywhere".to_owned() } else { views.join(", ") };
            format!("| {} | {} | {views} |\n", keys.join(" "), binding.help)
        };
        let is_view = |binding: &&Binding| matches!(binding.action, Action::Show(_));
        let table: String = BINDINGS.iter().filter(|binding| !is_view(binding)).map(row).collect();
        assert!(guide.contains(&table), "docs/tt-smi.md must have this table:\n{table}");
    }

    #[test]
    fn no_key_means_two_things_in_a_view() {
        for view in View::ALL {
            let mut seen: Vec<Key> = Vec::new();
            for key in BINDINGS.iter().filter(|binding| binding.is_in(view)).flat_map(|binding| binding.keys)
            {
                assert!(!seen.contains(key), "{} in {}", key.name(), view.name());
                seen.push(*key);
            }
        }
    }
}
