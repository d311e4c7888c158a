//! Step sizes tuned to a target acceptance: a Robbins-Monro walk of the logarithm, and its average for the time after tuning.

use serde::{Deserialize, Serialize};

/// Largest change of log step per unit of acceptance missed.
const GAIN: f64 = 2.0;
/// A tuner that follows a moving target never gains less than this.
const FOLLOWING_GAIN: f64 = 0.5;

/// The tuned parameter of a kernel.
///
/// `log step += gain (acceptance - target)`, `gain = 2 (k + 1)^-0.6` at update `k`. [`StepSize::settled`] averages the walk, the late
/// part more, as in Hoffman and Gelman 2014. A tuner made by [`StepSize::following`] keeps a gain of 1/2, for targets that
/// change from level to level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepSize {
    log_step: f64,
    log_average: f64,
    target: f64,
    updates: u64,
    least_gain: f64,
}

impl StepSize {
    /// A tuner that comes to rest.
    pub fn new(step: f64, target: f64) -> StepSize {
        StepSize {
            log_step: step.ln(),
            log_average: step.ln(),
            target,
            updates: 0,
            least_gain: 0.0,
        }
    }

    /// A tuner that never rests.
    pub fn following(step: f64, target: f64) -> StepSize {
        StepSize {
            least_gain: FOLLOWING_GAIN,
            ..StepSize::new(step, target)
        }
    }

    /// The step size to use now.
    pub fn step(&self) -> f64 {
        self.log_step.exp()
    }

    /// The step size to keep when tuning ends.
    pub fn settled(&self) -> f64 {
        self.log_average.exp()
    }

    /// Learns from a step's mean acceptance.
    pub fn update(&mut self, acceptance: f64) {
        let k = (self.updates + 1) as f64;
        self.updates += 1;
        let gain = (GAIN * k.powf(-0.6)).max(self.least_gain);
        self.log_step += gain * (acceptance - self.target);
        let share = k.powf(-0.75);
        self.log_average += share * (self.log_step - self.log_average);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_step_of_a_known_acceptance() {
        // Acceptance exp(-step): 75 % at step 0.28768, from a start a thousand times too large.
        let mut tuner = StepSize::new(300.0, 0.75);
        for _ in 0..400 {
            tuner.update((-tuner.step()).exp());
        }
        assert!((tuner.settled() / 0.287_68 - 1.0).abs() < 0.02);
        // A target that moves after many updates is followed within fifty more.
        let mut tuner = StepSize::following(0.3, 0.75);
        for _ in 0..5000 {
            tuner.update((-tuner.step()).exp());
        }
        for _ in 0..50 {
            tuner.update((-10.0 * tuner.step()).exp());
        }
        assert!((tuner.step() / 0.028_768 - 1.0).abs() < 0.05);
    }
}
