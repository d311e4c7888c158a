//! The time grid: the levels t_0 < t_1 < ... on which a model's free energies live and its classes are drawn.

use super::{Edm, Process, Schedule};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How the levels lie between the first and the last time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spacing {
    /// Equal steps in time.
    Linear {},
    /// Equal steps in t^(1/rho) (Karras et al. 2022, equation 5); fine near t_min.
    Power {
        /// The exponent; 7 in the paper.
        #[serde(default = "default_rho")]
        rho: f64,
    },
    /// The lower half of the levels as for `Power`, from t_min to the middle, the upper half its mirror image: fine near both ends, where
    /// an interpolant between two known densities changes fastest.
    BothEnds {
        /// The exponent.
        #[serde(default = "default_rho_of_both")]
        rho: f64,
    },
}

fn default_rho() -> f64 {
    7.0
}

fn default_rho_of_both() -> f64 {
    4.0
}

fn default_levels() -> usize {
    512
}

fn default_spacing() -> Spacing {
    Spacing::Linear {}
}

/// What a file says of a grid.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GridText {
    #[serde(default = "default_levels")]
    levels: usize,
    t_min: f64,
    t_max: f64,
    #[serde(default = "default_spacing")]
    spacing: Spacing,
}

/// Increasing times, in a file as `{"levels": 512, "t_min": 1e-4, "t_max": 0.9999, "spacing": {"kind": "linear"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "GridText", into = "GridText")]
pub struct TimeGrid {
    t_min: f64,
    t_max: f64,
    spacing: Spacing,
    times: Vec<f64>,
}

impl TryFrom<GridText> for TimeGrid {
    type Error = Error;
    fn try_from(text: GridText) -> Result<Self> {
        Self::new(text.levels, text.t_min, text.t_max, text.spacing)
    }
}

impl From<TimeGrid> for GridText {
    fn from(grid: TimeGrid) -> Self {
        Self {
            levels: grid.levels(),
            t_min: grid.t_min,
            t_max: grid.t_max,
            spacing: grid.spacing,
        }
    }
}

impl TimeGrid {
    /// More levels than this are refused: a hostile file must not make us allocate.
    pub const MAX_LEVELS: usize = 1 << 20;

    /// `levels` times from `t_min` to `t_max`, both included.
    pub fn new(levels: usize, t_min: f64, t_max: f64, spacing: Spacing) -> Result<Self> {
        if !(2..=Self::MAX_LEVELS).contains(&levels) {
            let expected = format!("2 to {}", Self::MAX_LEVELS);
            return Err(Error::Value {
                name: "levels of the time grid",
                found: levels.to_string(),
                expected,
            });
        }
        if !(t_min >= 0.0 && t_min < t_max && t_max.is_finite()) {
            return Err(Error::Value {
                name: "time grid",
                found: format!("from {t_min} to {t_max}"),
                expected: "0 <= t_min < t_max, finite".into(),
            });
        }
        let exponent = match spacing {
            Spacing::Linear {} => 1.0,
            Spacing::Power { rho } | Spacing::BothEnds { rho } => rho,
        };
        if !(1.0..=100.0).contains(&exponent) {
            let expected = "a number from 1 to 100".into();
            return Err(Error::Value {
                name: "rho of the time grid",
                found: exponent.to_string(),
                expected,
            });
        }
        let power = |t_max: f64, share: f64| {
            let (low, high) = (t_min.powf(1.0 / exponent), t_max.powf(1.0 / exponent));
            (low + (high - low) * share).powf(exponent)
        };
        let last = (levels - 1) as f64;
        let time = |i: usize| match spacing {
            Spacing::BothEnds { .. } => {
                let middle = 0.5 * (t_min + t_max);
                let share = 2.0 * i.min(levels - 1 - i) as f64 / last;
                let below = power(middle, share);
                match 2 * i < levels {
                    true => below,
                    false => t_min + t_max - below,
                }
            }
            Spacing::Linear {} | Spacing::Power { .. } => power(t_max, i as f64 / last),
        };
        let mut times: Vec<f64> = (0..levels).map(time).collect();
        // The ends are what the caller wrote, not what powers and roots make of it.
        times[0] = t_min;
        times[levels - 1] = t_max;
        if times.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::Value {
                name: "time grid",
                found: format!("{levels} levels from {t_min} to {t_max}"),
                expected:
                    "levels that differ in double precision; take fewer levels or a wider range"
                        .into(),
            });
        }
        Ok(Self {
            t_min,
            t_max,
            spacing,
            times,
        })
    }

    /// The grid of the paper for a process: 512 levels, 1e-4 to 1 - 1e-4 for VP and VE, 1e-3 to 1 - 1e-3 for interpolants, and
    /// for EDM 0.002 to the horizon with rho = 7.
    pub fn default_for(process: &Process) -> Self {
        let (t_min, t_max, spacing) = match process {
            Process::VariancePreserving(_) | Process::VarianceExploding(_) => {
                (1e-4, 1.0 - 1e-4, default_spacing())
            }
            Process::Linear(_) | Process::Trigonometric(_) => (1e-3, 1.0 - 1e-3, default_spacing()),
            Process::Edm(edm) => {
                // A noise level that the process itself refuses has no grid: that of the usual one stands in.
                let sigma_max = match edm.validate() {
                    Ok(()) => edm.sigma_max,
                    Err(_) => Edm::default().sigma_max,
                };
                (
                    2.5e-5 * sigma_max,
                    sigma_max,
                    Spacing::Power { rho: default_rho() },
                )
            }
        };
        Self::new(default_levels(), t_min, t_max, spacing)
            .expect("t_min and t_max are far apart for every process")
    }

    /// The same range and spacing with another number of levels.
    pub fn with_levels(&self, levels: usize) -> Result<Self> {
        Self::new(levels, self.t_min, self.t_max, self.spacing)
    }

    /// Checks that a process is defined at every level, and noisy there.
    pub fn validate(&self, process: &Process) -> Result<()> {
        let noisy_end = self.t_max < process.horizon()
            || (self.t_max == process.horizon() && !process.is_interpolant());
        if self.t_min > 0.0 && noisy_end {
            return Ok(());
        }
        Err(Error::Value {
            name: "time grid",
            found: format!("from {} to {}", self.t_min, self.t_max),
            expected: format!(
                "times inside (0, {}{} for the {} process, where its noise is not 0",
                process.horizon(),
                if process.is_interpolant() { ")" } else { "]" },
                process.name()
            ),
        })
    }

    /// Number of levels.
    pub fn levels(&self) -> usize {
        self.times.len()
    }

    /// First time.
    pub fn t_min(&self) -> f64 {
        self.t_min
    }

    /// Last time.
    pub fn t_max(&self) -> f64 {
        self.t_max
    }

    /// How the levels lie.
    pub fn spacing(&self) -> Spacing {
        self.spacing
    }

    /// All times, increasing.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Interval k and weight w such that a table v reads (1-w) v\[k\] + w v\[k+1\] at `time`; clamped at both ends, w = 0 on a
    /// level (1 on the last), k + 1 always a level.
    pub fn locate(&self, time: f64) -> (usize, f64) {
        let above = self.times.partition_point(|&t| t <= time);
        let k = above.saturating_sub(1).min(self.levels() - 2);
        let (low, high) = (self.times[k], self.times[k + 1]);
        (k, ((time - low) / (high - low)).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_refused_has_a_grid_nonetheless() {
        for sigma_max in [-1.0, 0.0, f64::NAN, f64::INFINITY, 1e-323, 1e300] {
            let process = Process::Edm(Edm { sigma_max });
            assert!(process.validate().is_err(), "{sigma_max}");
            assert_eq!(TimeGrid::default_for(&process).levels(), 512);
        }
    }

    #[test]
    fn defaults_are_those_of_the_papers() {
        let grid = TimeGrid::default_for(&Process::by_name("vp").unwrap());
        assert_eq!(
            (grid.levels(), grid.t_min(), grid.t_max()),
            (512, 1e-4, 1.0 - 1e-4)
        );
        let step = grid.times()[1] - grid.times()[0];
        assert!(
            grid.times()
                .windows(2)
                .all(|pair| (pair[1] - pair[0] - step).abs() < 1e-15)
        );
        let grid = TimeGrid::default_for(&Process::by_name("edm").unwrap());
        assert_eq!((grid.t_min(), grid.t_max()), (0.002, 80.0));
        // Karras et al., equation 5, counted from the other end.
        let expected = (80_f64.powf(1.0 / 7.0)
            + 411.0 / 511.0 * (0.002_f64.powf(1.0 / 7.0) - 80_f64.powf(1.0 / 7.0)))
        .powi(7);
        assert!((grid.times()[100] / expected - 1.0).abs() < 1e-12);
        for name in Process::NAMES {
            let process = Process::by_name(name).unwrap();
            TimeGrid::default_for(&process).validate(&process).unwrap();
        }
    }

    #[test]
    fn locating_interpolates_linearly() {
        for spacing in [
            Spacing::Linear {},
            Spacing::Power { rho: 3.0 },
            Spacing::BothEnds { rho: 4.0 },
        ] {
            let grid = TimeGrid::new(9, 0.1, 2.3, spacing).unwrap();
            let read = |time: f64| {
                let (k, w) = grid.locate(time);
                (1.0 - w) * grid.times()[k] + w * grid.times()[k + 1]
            };
            for time in [0.1, 0.1234, 0.5, 1.0, 2.2999, 2.3] {
                assert!((read(time) - time).abs() < 1e-15);
            }
            assert_eq!((grid.locate(0.0), grid.locate(9.0)), ((0, 0.0), (7, 1.0)));
            for (level, &time) in grid.times().iter().enumerate().take(8) {
                assert_eq!(grid.locate(time), (level, 0.0));
            }
            assert_eq!(grid.locate(2.3), (7, 1.0));
        }
    }

    #[test]
    fn a_grid_can_be_fine_at_both_ends() {
        let both = Spacing::BothEnds { rho: 4.0 };
        for levels in [16, 17] {
            let times = TimeGrid::new(levels, 0.001, 0.999, both)
                .unwrap()
                .times()
                .to_vec();
            let mirrored = times.iter().zip(times.iter().rev());
            assert!(
                mirrored
                    .into_iter()
                    .all(|(a, b)| (a + b - 1.0).abs() < 1e-12)
            );
            assert!(times[2] - times[1] < 0.3 * (times[8] - times[7]));
        }
    }

    #[test]
    fn files_round_trip_and_bad_grids_are_refused() {
        let grid = TimeGrid::new(33, 0.01, 0.9, Spacing::Power { rho: 2.0 }).unwrap();
        let text = serde_json::to_string(&grid).unwrap();
        assert_eq!(serde_json::from_str::<TimeGrid>(&text).unwrap(), grid);
        let short: TimeGrid = serde_json::from_str(r#"{"t_min": 0.1, "t_max": 0.5}"#).unwrap();
        assert_eq!(
            short,
            TimeGrid::new(512, 0.1, 0.5, Spacing::Linear {}).unwrap()
        );
        for bad in [
            r#"{"t_min": 0.5, "t_max": 0.5}"#,
            r#"{"t_min": -0.5, "t_max": 0.5}"#,
            r#"{"t_min": 0.1, "t_max": 0.5, "levels": 1}"#,
            r#"{"t_min": 0.1, "t_max": 0.5, "levels": 99999999999}"#,
            r#"{"t_min": 0.1, "t_max": 0.5, "spacing": {"kind": "power", "rho": -1}}"#,
            r#"{"t_min": 0.1, "t_max": 0.5, "spacing": {"kind": "both-ends", "rho": 0.5}}"#,
            r#"{"t_min": 0.1, "t_max": 0.5, "spacing": {"kind": "linear", "rho": 2}}"#,
            r#"{"t_min": 0.1, "t_max": 0.5, "level": 3}"#,
            r#"{"t_min": 0.1, "t_max": 0.10000000000000002}"#,
        ] {
            assert!(serde_json::from_str::<TimeGrid>(bad).is_err(), "{bad}");
        }
        let linear = Process::by_name("linear").unwrap();
        assert!(
            TimeGrid::new(8, 0.1, 1.0, Spacing::Linear {})
                .unwrap()
                .validate(&linear)
                .is_err()
        );
        assert!(
            TimeGrid::new(8, 0.0, 0.9, Spacing::Linear {})
                .unwrap()
                .validate(&Process::default())
                .is_err()
        );
    }
}
