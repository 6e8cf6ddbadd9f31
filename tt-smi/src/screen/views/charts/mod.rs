//! DRAM and L1 over time, for one device or all.

mod axis;
mod both;
mod draw;
mod readout;
mod telemetry;

use ratatui::Frame;
use ratatui::layout::Position;
use ratatui::text::Line;
use tt_shm_reader::{HISTORY_BUCKETS, HISTORY_RESOLUTIONS};

use self::draw::ChartLayout;
use crate::screen::action::{Action, Motion};
use crate::screen::data::{Data, History, More, Needs};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::theme::Theme;
use crate::screen::widgets::device::{draw_headline, draw_none};
use crate::screen::widgets::graph::Dots;
use crate::screen::widgets::text::split_top;
use crate::screen::widgets::window::Window;

/// Names of the resolutions.
const SPANS: [&str; HISTORY_RESOLUTIONS.len()] = ["minute", "hour", "day"];
/// Most times that the span can be halved: fifteen buckets remain.
const MOST_ZOOM: u32 = 4;
/// Columns that the cursor moves by for up and down.
const LEAP: i64 = 10;

/// How one device is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// DRAM above L1, by class.
    #[default]
    Panels,
    /// Both curves in one graph.
    Both,
}

/// Time span, zoom and cursor.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    resolution: usize,
    zoom: u32,
    /// The number of the bucket under the cursor, so that it moves along with its time.
    cursor: Option<u64>,
    shape: Shape,
    /// Whether all devices are shown, each in a small graph.
    is_grid: bool,
}

impl Charts {
    fn length(&self) -> u64 {
        HISTORY_RESOLUTIONS[self.resolution]
    }

    fn window(&self, data: &Data) -> Window {
        Window::new(self.length(), self.zoom, data.model.clock.monotonic_ns, self.cursor)
    }

    /// The history, unless it is still that of another resolution.
    fn history<'a>(&self, data: &'a Data) -> Option<&'a History> {
        match &data.more {
            More::History(history) if history.resolution == self.resolution => Some(history),
            _ => None,
        }
    }

    /// Moves the cursor by columns.
    fn step(&mut self, columns: i64, scene: &Scene<'_>) {
        let window = self.window(scene.data);
        let places = u64::from(ChartLayout::of(scene).graph.width.max(1));
        let buckets = (window.count / places).max(1) as i64;
        self.place(|cursor| cursor.saturating_add_signed(columns.saturating_mul(buckets)), scene.data);
    }

    /// Places the cursor between the oldest and the newest bucket.
    fn place(&mut self, to: impl Fn(u64) -> u64, data: &Data) {
        let newest = data.model.clock.monotonic_ns / self.length();
        let oldest = newest.saturating_sub(HISTORY_BUCKETS as u64 - 1);
        self.cursor = Some(to(self.cursor.unwrap_or(newest)).clamp(oldest, newest));
    }

    fn go(&mut self, motion: Motion, scene: &Scene<'_>) {
        let page = i64::from(ChartLayout::of(scene).graph.width);
        match motion {
            Motion::Lines(lines) => self.step(i64::from(lines) * LEAP, scene),
            Motion::Pages(pages) => self.step(i64::from(pages) * page, scene),
            Motion::Aside(columns) => self.step(columns.into(), scene),
            Motion::First => self.place(|_| 0, scene.data),
            Motion::Last => self.cursor = None,
        }
    }

    /// Changes the time span; the cursor stays at its time.
    fn next_span(&mut self) {
        let before = self.length();
        self.resolution = (self.resolution + 1) % HISTORY_RESOLUTIONS.len();
        self.zoom = 0;
        self.cursor = self.cursor.map(|cursor| cursor * before / self.length());
    }

    fn back(&mut self) -> Reply {
        match (self.cursor.take(), self.is_grid) {
            (Some(_), _) => {}
            (None, true) => self.is_grid = false,
            (None, false) => return Reply::Ignored,
        }
        Reply::Done
    }

    fn note(&self, theme: &Theme) -> String {
        // With colours, no such legend is needed.
        let is_lettered = Dots::of(theme) == Dots::Letters && (self.is_grid || self.shape == Shape::Both);
        let both = if is_lettered { "X both, " } else { "" };
        let zoom = if self.zoom > 0 { format!(", zoom {}x", 1 << self.zoom) } else { String::new() };
        let cursor = if self.cursor.is_some() { ", cursor parked: G follows now" } else { "" };
        format!("{both}last {}{zoom}{cursor}", SPANS[self.resolution])
    }
}

impl Page for Charts {
    fn needs(&self) -> Needs {
        Needs::History(self.resolution)
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::Span => self.next_span(),
            Action::ZoomIn => self.zoom = (self.zoom + 1).min(MOST_ZOOM),
            Action::ZoomOut => self.zoom = self.zoom.saturating_sub(1),
            Action::Move(motion) => self.go(motion, scene),
            Action::Open => self.is_grid = !self.is_grid,
            Action::Shape if self.is_grid => {
                return Reply::Say(
                    "the grid has both memories in one graph; Enter shows one device".to_owned(),
                );
            }
            Action::Shape => {
                self.shape = match self.shape {
                    Shape::Panels => Shape::Both,
                    Shape::Both => Shape::Panels,
                }
            }
            Action::Back => return self.back(),
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let graph = ChartLayout::of(scene).graph;
        if self.is_grid || !graph.contains(at) {
            return Reply::Ignored;
        }
        let window = self.window(scene.data);
        let bucket = window.covered(usize::from(at.x - graph.x), usize::from(graph.width)).start;
        self.place(|_| u64::try_from(bucket).unwrap_or(0), scene.data);
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let Some(device) = scene.device() else { return draw_none(frame, scene) };
        let window = self.window(scene.data);
        let Some(history) = self.history(scene.data) else {
            draw_headline(frame, scene, device, &self.note(scene.theme));
            let (_, rest) = split_top(scene.area, 1);
            return frame.render_widget(Line::styled(scene.unread("the history"), scene.theme.dim()), rest);
        };
        if self.is_grid {
            return both::draw_grid(frame, scene, history, &window, &self.note(scene.theme));
        }
        draw_headline(frame, scene, device, &self.note(scene.theme));
        draw::draw_device(frame, scene, device, history, &window, self.shape);
    }
}

#[cfg(test)]
mod tests;
