//! `Progress`: a bar with the time left on a terminal, sparse plain lines elsewhere, silence on request.

use crate::print::plain;
use diffclf_run::company::leads;
use diffclf_run::watch::{Bar, duration_text};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Lines for logs come no sooner than this after the one before...
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
/// ...unless asked for by nothing but time: then a slow run shows life this often.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A terminal gets a new message at most ten times a second.
const MESSAGE_PAUSE: Duration = Duration::from_millis(100);

/// The bar, with the time gone and the time left.
const TEMPLATE: &str = "{prefix} {bar:24} {pos}/{len}, {elapsed} gone, {eta} left, {wide_msg}";

/// How far a long piece of work is, told on standard error.
pub struct Progress {
    shown: Shown,
}

enum Shown {
    Nothing,
    Bar {
        bar: ProgressBar,
        next_message: Instant,
    },
    Lines(Lines),
}

impl Progress {
    /// Work of `total` steps of which `done` are behind us (when a run is resumed).
    pub fn new(label: &str, total: u64, done: u64, quiet: bool) -> Self {
        let now = Instant::now();
        let shown = if quiet || !leads() {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            Shown::Bar {
                bar: bar(label, total, done),
                next_message: now,
            }
        } else {
            Shown::Lines(Lines::new(
                label,
                total,
                done,
                Box::new(std::io::stderr()),
                now,
            ))
        };
        Self { shown }
    }
}

impl Bar for Progress {
    fn set(&mut self, position: u64, message: &dyn Fn() -> String) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar { bar, next_message } => {
                let now = Instant::now();
                if now >= *next_message {
                    *next_message = now + MESSAGE_PAUSE;
                    bar.set_message(plain(&message()).into_owned());
                }
                bar.set_position(position);
            }
            Shown::Lines(lines) => lines.set(position, message, Instant::now()),
        }
    }

    fn note(&mut self, text: &str) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar { bar, .. } => bar.println(plain(text)),
            Shown::Lines(lines) => lines.write(text),
        }
    }

    fn finish(self: Box<Self>, message: &str) {
        match self.shown {
            Shown::Nothing => {}
            Shown::Bar { bar, .. } => bar.finish_with_message(plain(message).into_owned()),
            Shown::Lines(mut lines) => lines.finish(message, Instant::now()),
        }
    }
}

fn bar(label: &str, total: u64, done: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    // The template is fixed, so the plain bar is never fallen back to; it would do as well.
    let style =
        ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar.set_prefix(label.to_string());
    bar.set_position(done);
    // The rate of a resumed run counts from here, not from a beginning it did not see.
    bar.reset_eta();
    bar
}

/// Progress for files and pipes. The clock is an argument so that tests need not wait.
struct Lines {
    label: String,
    total: u64,
    done_before: u64,
    start: Instant,
    last: (u64, Instant),
    writer: Box<dyn Write + Send>,
}

impl Lines {
    fn new(
        label: &str,
        total: u64,
        done: u64,
        writer: Box<dyn Write + Send>,
        now: Instant,
    ) -> Self {
        Self {
            label: label.into(),
            total,
            done_before: done,
            start: now,
            last: (done, now),
            writer,
        }
    }

    fn set(&mut self, position: u64, message: impl FnOnce() -> String, now: Instant) {
        let pause = now.saturating_duration_since(self.last.1);
        let advanced = position.saturating_sub(self.last.0);
        let twentieth = advanced.saturating_mul(20) >= self.total;
        if (twentieth && pause >= SHORTEST_PAUSE) || pause >= LONGEST_PAUSE {
            self.last = (position, now);
            let line = self.line(position, &message(), now);
            self.write(&line);
        }
    }

    fn line(&self, position: u64, message: &str, now: Instant) -> String {
        let elapsed = now.saturating_duration_since(self.start);
        let percent = 100.0 * position as f64 / self.total.max(1) as f64;
        let left = match position.saturating_sub(self.done_before) {
            0 => "unknown".into(),
            // Half a million years is as good as forever, and fits.
            steps => {
                let seconds = elapsed.as_secs_f64() / steps as f64
                    * self.total.saturating_sub(position) as f64;
                duration_text(Duration::from_secs_f64(seconds.min(1.6e13)))
            }
        };
        let Self { label, total, .. } = self;
        let elapsed = duration_text(elapsed);
        format!(
            "{label}: {position}/{total} ({percent:.0} %), {elapsed} gone, {left} left, {message}"
        )
    }

    fn finish(&mut self, message: &str, now: Instant) {
        let elapsed = duration_text(now.saturating_duration_since(self.start));
        let line = format!("{}: {message} ({elapsed})", self.label);
        self.write(&line);
    }

    /// A closed pipe must not end the work it reports on.
    fn write(&mut self, line: &str) {
        let _ = writeln!(self.writer, "{}", plain(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Page {
        fn lines(&self) -> Vec<String> {
            String::from_utf8(self.0.lock().unwrap().clone())
                .unwrap()
                .lines()
                .map(str::to_string)
                .collect()
        }
    }

    /// Runs steps at a fixed pace and gives the lines.
    fn run(total: u64, done: u64, pace: Duration) -> Vec<String> {
        let (page, start) = (Page::default(), Instant::now());
        let mut lines = Lines::new("train", total, done, Box::new(page.clone()), start);
        for step in done + 1..=total {
            lines.set(
                step,
                || format!("loss {step}"),
                start + pace * u32::try_from(step - done).unwrap(),
            );
        }
        page.lines()
    }

    #[test]
    fn fast_work_is_told_every_twentieth() {
        let lines = run(1000, 0, Duration::from_millis(100));
        assert_eq!(lines.len(), 20);
        assert_eq!(
            lines[4],
            "train: 250/1000 (25 %), 25 s gone, 1 min 15 s left, loss 250"
        );
    }

    #[test]
    fn very_fast_work_is_told_every_two_seconds() {
        assert_eq!(run(10_000, 0, Duration::from_millis(1)).len(), 5);
        assert_eq!(run(100, 0, Duration::from_millis(1)).len(), 0);
    }

    #[test]
    fn slow_work_shows_life_twice_a_minute() {
        assert_eq!(run(1_000_000, 999_880, Duration::from_secs(1)).len(), 4);
    }

    #[test]
    fn a_resumed_run_counts_its_own_pace() {
        let lines = run(100, 50, Duration::from_secs(1));
        assert_eq!(
            lines[0],
            "train: 55/100 (55 %), 5.0 s gone, 45 s left, loss 55"
        );
    }

    #[test]
    fn corners_do_not_divide_by_zero() {
        let (page, start) = (Page::default(), Instant::now());
        let mut lines = Lines::new("x", 0, 0, Box::new(page.clone()), start);
        lines.set(0, String::new, start + LONGEST_PAUSE);
        lines.finish("done", start + LONGEST_PAUSE);
        assert_eq!(
            page.lines(),
            ["x: 0/0 (0 %), 30 s gone, unknown left, ", "x: done (30 s)"]
        );
        assert_eq!(duration_text(Duration::from_secs(7500)), "2 h 05 min");
    }

    #[test]
    fn the_bar_and_silence_accept_everything() {
        for shown in [
            Shown::Nothing,
            Shown::Bar {
                bar: ProgressBar::hidden(),
                next_message: Instant::now(),
            },
        ] {
            let mut progress = Box::new(Progress { shown });
            progress.set(1, &|| "x".into());
            progress.note("a note");
            progress.finish("done");
        }
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
        assert_eq!(bar("train", 10, 4).position(), 4);
        assert!(matches!(
            Progress::new("x", 1, 0, true).shown,
            Shown::Nothing
        ));
    }
}
