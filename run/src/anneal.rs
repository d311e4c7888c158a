//! Annealing as it is watched: progress through levels, and the levels of an interpolant.

use crate::watch::{Bar, Watch};
use diffclf::sample::SmcLevel;

/// Progress through levels, by their number or, where that is not known, by time.
pub struct Levels {
    progress: Box<dyn Bar>,
    done: u64,
    span: Option<(f64, f64)>,
}

impl Levels {
    /// Progress through `times` (their span, if levels are chosen).
    pub fn new(label: &str, times: &[f64], adaptive: bool, watch: &dyn Watch) -> Levels {
        let span = adaptive.then(|| (times[0], times[times.len() - 1]));
        let total = if adaptive { 1000 } else { times.len() as u64 };
        Levels {
            progress: watch.begin(label, total, 0),
            done: 0,
            span,
        }
    }

    /// A level is done.
    pub fn see(&mut self, level: &SmcLevel) {
        self.done += 1;
        let position = match self.span {
            Some((from, to)) => (1000.0 * (level.time - from) / (to - from)) as u64,
            None => self.done,
        };
        self.progress.set(position, &|| {
            let mut text = format!(
                "time {:.4}, ESS {:.0} %, overlap {:.2}",
                level.time,
                100.0 * level.ess,
                level.conditional_ess,
            );
            // Without moves there is none.
            if level.acceptance.is_finite() {
                text += &format!(", acceptance {:.2}", level.acceptance);
            }
            text
        });
    }

    /// All are.
    pub fn finish(self, message: &str) {
        self.progress.finish(message);
    }
}

/// Levels of an interpolant between two times, fine at both ends, where the score is steepest: equal steps in the angle of t = sin^2.
pub fn angular_times(first: f64, last: f64, levels: usize) -> Vec<f64> {
    let angle = |time: f64| time.sqrt().asin();
    let share = |k: usize| k as f64 / (levels - 1) as f64;
    let at = |share: f64| (1.0 - share) * angle(first) + share * angle(last);
    let mut times: Vec<f64> = (0..levels).map(|k| at(share(k)).sin().powi(2)).collect();
    // Not a rounding error beyond the ends.
    (times[0], times[levels - 1]) = (first, last);
    times
}
