//! Splitting a batch over threads: what is written, by whom, and when a thread is worth its start.

use std::thread;

/// What an evaluation is asked to write.
#[derive(Default)]
pub(super) struct Outputs<'a> {
    pub(super) energy: Option<&'a mut [f64]>,
    pub(super) score: Option<&'a mut [f64]>,
    pub(super) time_score: Option<&'a mut [f64]>,
    pub(super) velocity: Option<&'a mut [f64]>,
}

impl<'a> Outputs<'a> {
    /// The first `rows` rows, and the rest.
    pub(super) fn split(self, rows: usize, dim: usize) -> (Self, Self) {
        fn cut(out: Option<&mut [f64]>, at: usize) -> (Option<&mut [f64]>, Option<&mut [f64]>) {
            out.map(|out| out.split_at_mut(at)).unzip()
        }
        let (energy, energy_rest) = cut(self.energy, rows);
        let (score, score_rest) = cut(self.score, rows * dim);
        let (time_score, time_score_rest) = cut(self.time_score, rows);
        let (velocity, velocity_rest) = cut(self.velocity, rows * dim);
        (
            Self {
                energy,
                score,
                time_score,
                velocity,
            },
            Self {
                energy: energy_rest,
                score: score_rest,
                time_score: time_score_rest,
                velocity: velocity_rest,
            },
        )
    }
}

/// Threads worth starting for that many elementary operations: one for less than about 100 microseconds of work.
pub(super) fn threads_for(operations: usize) -> usize {
    let worth = operations >> 16;
    if worth <= 1 {
        // Asking the system costs more than a single point.
        return 1;
    }
    worth.min(thread::available_parallelism().map_or(1, usize::from))
}

/// Runs the work of one chunk of rows: on a thread of its own, or here when there is only one chunk.
pub(super) fn launch<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    parallel: bool,
    work: impl FnOnce() + Send + 'scope,
) {
    if parallel {
        scope.spawn(work);
    } else {
        work();
    }
}
