//! `Watch`: how long work is followed and stopped by whoever started it, a terminal, a notebook or nobody.

use crate::notice::Notice;
use std::time::Duration;

/// Somebody who follows long work.
pub trait Watch {
    /// Work of `total` steps begins, of which `done` are behind us (when a run is resumed).
    fn begin(&self, label: &str, total: u64, done: u64) -> Box<dyn Bar>;

    /// Something worth a line.
    fn note(&self, text: &str);

    /// Something a person should know about the work. One who writes settings as flags or arguments tells it in their own words.
    fn notice(&self, notice: &Notice) {
        self.note(&format!("note: {notice}"));
    }

    /// A step of a training is done; `entry` makes the line that the log has for it: every figure of the step.
    fn step(&self, _entry: &dyn Fn() -> serde_json::Value) {}

    /// Whether the work should save what it has and end.
    fn stopped(&self) -> bool {
        false
    }
}

/// One piece of work under way.
pub trait Bar {
    /// `position` steps are done; `message` says how it goes and is built only when it is shown.
    fn set(&mut self, position: u64, message: &dyn Fn() -> String);

    /// A line that stays.
    fn note(&mut self, text: &str);

    /// The work has ended; `message` stays.
    fn finish(self: Box<Self>, message: &str);
}

/// Work that is done and not yet said to be: whoever asked for it keeps it first, then ends its bar.
pub struct Done<T> {
    /// What was found.
    pub found: T,
    bar: Box<dyn Bar>,
}

impl<T> Done<T> {
    /// What was found, and its bar still open.
    pub fn new(found: T, bar: Box<dyn Bar>) -> Self {
        Self { found, bar }
    }

    /// Ends the bar; `message` stays.
    pub fn finish(self, message: &str) -> T {
        self.bar.finish(message);
        self.found
    }
}

/// Nobody.
pub struct Silent;

impl Watch for Silent {
    fn begin(&self, _label: &str, _total: u64, _done: u64) -> Box<dyn Bar> {
        Box::new(Silent)
    }

    fn note(&self, _text: &str) {}
}

impl Bar for Silent {
    fn set(&mut self, _position: u64, _message: &dyn Fn() -> String) {}

    fn note(&mut self, _text: &str) {}

    fn finish(self: Box<Self>, _message: &str) {}
}

/// A duration as people say it: `8 s`, `3 min 05 s`, `2 h 14 min`.
pub fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}
