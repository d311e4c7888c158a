//! Learning rates: constant or cosine decay, each with an optional warm-up.

use serde::{Deserialize, Serialize};

/// Shape of the rate after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// The same at every step.
    Constant,
    /// Half a cosine from the peak to a hundredth of it at the last step of the stage.
    Cosine,
}

/// Learning rate of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Largest rate.
    pub peak: f64,
    /// Shape after the warm-up.
    #[serde(default = "constant")]
    pub decay: Decay,
    /// Steps of linear growth from zero to the peak.
    #[serde(default)]
    pub warm_up: u64,
}

fn constant() -> Decay {
    Decay::Constant
}

impl Rate {
    /// Rate of step `step` (from 0) of a stage of `steps` steps.
    pub fn at(&self, step: u64, steps: u64) -> f64 {
        if step < self.warm_up {
            return self.peak * (step + 1) as f64 / self.warm_up as f64;
        }
        match self.decay {
            Decay::Constant => self.peak,
            Decay::Cosine => {
                let span = steps.saturating_sub(self.warm_up).max(1) as f64;
                let phase = std::f64::consts::PI * (step - self.warm_up) as f64 / span;
                self.peak * (0.01 + 0.99 * 0.5 * (1.0 + phase.min(std::f64::consts::PI).cos()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_their_shape() {
        let constant = Rate {
            peak: 2.0,
            decay: Decay::Constant,
            warm_up: 4,
        };
        assert_eq!(
            [0, 1, 3, 4, 99].map(|s| constant.at(s, 100)),
            [0.5, 1.0, 2.0, 2.0, 2.0]
        );
        let cosine = Rate {
            decay: Decay::Cosine,
            ..constant
        };
        assert_eq!(cosine.at(4, 104), 2.0);
        assert!((cosine.at(54, 104) - 2.0 * 0.505).abs() < 1e-12);
        assert!((cosine.at(104, 104) - 0.02).abs() < 1e-12);
    }
}
