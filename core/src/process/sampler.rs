//! Drawing the times of a training row: N distinct times, on the grid's levels or between them.

use super::{Process, TimeGrid};
use crate::rng::Stream;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How times are drawn, as written in configuration files: `{"kind": "grid-stratified"}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TimeSampler {
    /// Levels of the grid, all equally likely.
    Grid {},
    /// One level out of each of N equal parts of the grid, in order. All levels are equally likely when N divides their number.
    GridStratified {},
    /// The first level is uniform over the grid, or, with probability `snr_share`, uniform in the log-SNR (diffusions), which
    /// visits the few levels of small noise as often as their distance deserves. Each other level lies before or after
    /// it at a distance whose logarithm is uniform, so that near and far levels are compared equally often at every
    /// scale: neighbours tell a classifier the most where levels overlap little (small times, many dimensions).
    Multiscale {
        /// Share of rows whose first level is drawn by log-SNR.
        #[serde(default = "default_snr_share")]
        snr_share: f64,
    },
    /// The first time is uniform between the grid's ends, or, for half of the rows of a diffusion, uniform in the log-SNR; the
    /// others are uniform within `share tau / sqrt(d + 4)` around it, tau the [time scale](Process::time_scale) of unit variance.
    /// The log-ratios of a row's densities are then of order `share` at most, and the ratios have a variance (which in one
    /// dimension ends where the two `gamma^2` differ by a factor of 2): what losses need that contain the ratios themselves.
    Close {
        /// Largest distance from the first time.
        #[serde(default = "default_share")]
        share: f64,
    },
    /// Uniform between the grid's ends.
    Uniform {},
    /// Uniform in each of N equal parts of the time range, in order.
    Stratified {},
    /// log sigma is normal (Karras et al. 2022), restricted to the grid's range. Diffusions only.
    LogSnrNormal {
        /// Mean of log sigma.
        #[serde(default = "default_mean")]
        mean: f64,
        /// Standard deviation of log sigma.
        #[serde(default = "default_std")]
        std: f64,
    },
}

/// A time drawn uniformly in log-SNR.
fn time_by_snr(process: &Process, grid: &TimeGrid, stream: &mut Stream) -> Option<f64> {
    let (low, high) = (process.log_snr(grid.t_max()), process.log_snr(grid.t_min()));
    let log_snr = low + (high - low) * stream.uniform();
    process.time_of_noise_level((-0.5 * log_snr).exp())
}

/// The level nearest in time to one drawn uniformly in log-SNR.
fn level_by_snr(process: &Process, grid: &TimeGrid, stream: &mut Stream) -> Option<u64> {
    let (level, weight) = grid.locate(time_by_snr(process, grid, stream)?);
    Some((level + usize::from(weight > 0.5)).min(grid.levels() - 1) as u64)
}

fn default_snr_share() -> f64 {
    0.5
}

fn default_share() -> f64 {
    1.0
}

fn default_mean() -> f64 {
    -1.2
}

fn default_std() -> f64 {
    1.2
}

/// A draw that is refused this often in a row has no realistic chance: the settings are wrong.
const TRIES: usize = 10_000;

impl TimeSampler {
    /// Whether every time is a level of the grid.
    pub fn on_grid(&self) -> bool {
        matches!(
            self,
            Self::Grid {} | Self::GridStratified {} | Self::Multiscale { .. }
        )
    }

    /// Checks the parameters, and that they suit a process and rows of `n` times and `dim` coordinates.
    pub fn validate(&self, process: &Process, grid: &TimeGrid, dim: usize, n: usize) -> Result<()> {
        if let Self::LogSnrNormal { mean, std } = *self
            && !(mean.is_finite() && std > 0.0 && std.is_finite())
        {
            return Err(Error::Value {
                name: "log-snr-normal time sampler",
                found: format!("mean {mean}, std {std}"),
                expected: "a finite mean and a positive finite std".into(),
            });
        }
        if let Self::Multiscale { snr_share } = *self
            && !(0.0..=1.0).contains(&snr_share)
        {
            return Err(Error::Value {
                name: "snr_share",
                found: snr_share.to_string(),
                expected: "between 0 and 1".into(),
            });
        }
        if let Self::Close { share } = *self
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(Error::Value {
                name: "share",
                found: share.to_string(),
                expected: "above 0 and at most 1".into(),
            });
        }
        // A trial draw finds everything else: too few levels, an interpolant, a normal that misses the grid.
        let mut stream = Stream::new(0, crate::rng::Purpose::Test, 0, 0);
        let mut times = vec![0.0; n];
        self.fill_times(process, grid, dim, &mut stream, &mut times)
    }

    /// N distinct levels, one for each entry of `out`. Only for samplers [on the grid](Self::on_grid).
    pub fn fill_levels(
        &self,
        process: &Process,
        grid: &TimeGrid,
        stream: &mut Stream,
        out: &mut [u32],
    ) -> Result<()> {
        check_count(grid, out.len())?;
        let n = out.len();
        for i in 0..n {
            out[i] = loop {
                let level = self.draw_level(process, grid, stream, i, n, out[0])?;
                if !out[..i].contains(&level) {
                    break level;
                }
            };
        }
        Ok(())
    }

    /// N distinct times for a row of `dim` coordinates, one for each entry of `out`; the times of the levels
    /// [`Self::fill_levels`] draws from the same stream for samplers on the grid.
    pub fn fill_times(
        &self,
        process: &Process,
        grid: &TimeGrid,
        dim: usize,
        stream: &mut Stream,
        out: &mut [f64],
    ) -> Result<()> {
        if self.on_grid() {
            check_count(grid, out.len())?;
        }
        let n = out.len();
        let width = grid.t_max() - grid.t_min();
        for i in 0..n {
            let mut tries = 0;
            out[i] = loop {
                let time = match *self {
                    Self::Grid {} | Self::GridStratified {} | Self::Multiscale { .. } => {
                        let first = grid.times().partition_point(|&t| t < out[0]) as u32;
                        grid.times()[self.draw_level(process, grid, stream, i, n, first)? as usize]
                    }
                    Self::Close { share } if i > 0 => {
                        let reach =
                            share * process.time_scale(out[0], 1.0) / (dim as f64 + 4.0).sqrt();
                        out[0] + reach * (2.0 * stream.uniform() - 1.0)
                    }
                    Self::Close { .. } => {
                        let by_snr = !process.is_interpolant() && stream.uniform() < 0.5;
                        by_snr
                            .then(|| time_by_snr(process, grid, stream))
                            .flatten()
                            .unwrap_or_else(|| grid.t_min() + width * stream.uniform())
                    }
                    Self::Uniform {} => grid.t_min() + width * stream.uniform(),
                    Self::Stratified {} => {
                        grid.t_min() + width * ((i as f64 + stream.uniform()) / n as f64)
                    }
                    Self::LogSnrNormal { mean, std } => {
                        let noise_level = (mean + std * stream.normal()).exp();
                        process
                            .time_of_noise_level(noise_level)
                            .ok_or_else(|| no_log_snr(process))?
                    }
                };
                if (grid.t_min()..=grid.t_max()).contains(&time) && !out[..i].contains(&time) {
                    break time;
                }
                tries += 1;
                if tries > TRIES && !self.on_grid() {
                    return Err(Error::Value {
                        name: "time sampler",
                        found: format!(
                            "{self:?}, {TRIES} draws in a row outside the grid's range or equal"
                        ),
                        expected: format!(
                            "times between {} and {}; move the mean or widen the grid",
                            grid.t_min(),
                            grid.t_max()
                        ),
                    });
                }
            };
        }
        Ok(())
    }

    /// A level for entry i of n, before the check that it is new; `first` is the level of entry 0 once i > 0.
    fn draw_level(
        &self,
        process: &Process,
        grid: &TimeGrid,
        stream: &mut Stream,
        i: usize,
        n: usize,
        first: u32,
    ) -> Result<u32> {
        let levels = grid.levels();
        let level = match self {
            Self::Grid {} => stream.below(levels as u64),
            Self::Multiscale { snr_share } if i == 0 => {
                let by_snr = !process.is_interpolant() && stream.uniform() < *snr_share;
                match by_snr
                    .then(|| level_by_snr(process, grid, stream))
                    .flatten()
                {
                    Some(level) => level,
                    None => stream.below(levels as u64),
                }
            }
            Self::Multiscale { .. } => loop {
                let distance = (levels as f64).powf(stream.uniform()) as i64;
                let sign = if stream.next_u32().is_multiple_of(2) {
                    1
                } else {
                    -1
                };
                let level = first as i64 + sign * distance;
                if (0..levels as i64).contains(&level) {
                    break level as u64;
                }
            },
            Self::GridStratified {} => {
                let (low, high) = (i * levels / n, (i + 1) * levels / n);
                low as u64 + stream.below((high - low) as u64)
            }
            _ => {
                return Err(Error::Value {
                    name: "time sampler",
                    found: format!("{self:?}, which draws times between levels"),
                    expected: "grid, grid-stratified or multiscale where levels are needed".into(),
                });
            }
        };
        Ok(level as u32)
    }
}

fn check_count(grid: &TimeGrid, n: usize) -> Result<()> {
    if n <= grid.levels() {
        return Ok(());
    }
    Err(Error::Value {
        name: "levels of a row",
        found: n.to_string(),
        expected: format!(
            "at most {}, the levels of the time grid, since a row's levels are distinct",
            grid.levels()
        ),
    })
}

fn no_log_snr(process: &Process) -> Error {
    Error::Value {
        name: "time sampler",
        found: format!("log-snr-normal with the {} process", process.name()),
        expected: "a diffusion (vp, ve, edm); for interpolants take grid, uniform or stratified"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spacing;
    use super::*;
    use crate::rng::Purpose;

    const KINDS: [TimeSampler; 7] = [
        TimeSampler::Grid {},
        TimeSampler::GridStratified {},
        TimeSampler::Multiscale { snr_share: 0.5 },
        TimeSampler::Uniform {},
        TimeSampler::Stratified {},
        TimeSampler::LogSnrNormal {
            mean: -1.2,
            std: 1.2,
        },
        TimeSampler::Close { share: 1.0 },
    ];

    #[test]
    fn times_are_distinct_and_in_range() {
        let process = Process::default();
        let grid = TimeGrid::default_for(&process);
        for sampler in KINDS {
            for row in 0..200 {
                let mut times = [0.0; 16];
                sampler
                    .fill_times(
                        &process,
                        &grid,
                        8,
                        &mut Stream::new(1, Purpose::Time, 0, row),
                        &mut times,
                    )
                    .unwrap();
                assert!(
                    times
                        .iter()
                        .all(|t| (grid.t_min()..=grid.t_max()).contains(t))
                );
                assert!((1..16).all(|i| !times[..i].contains(&times[i])));
                if sampler.on_grid() {
                    let mut levels = [0; 16];
                    sampler
                        .fill_levels(
                            &Process::default(),
                            &grid,
                            &mut Stream::new(1, Purpose::Time, 0, row),
                            &mut levels,
                        )
                        .unwrap();
                    assert_eq!(levels.map(|level| grid.times()[level as usize]), times);
                } else {
                    assert!(
                        sampler
                            .fill_levels(
                                &Process::default(),
                                &grid,
                                &mut Stream::new(1, Purpose::Time, 0, row),
                                &mut [0]
                            )
                            .is_err()
                    );
                }
            }
        }
    }

    #[test]
    fn close_times_are_within_the_share_of_the_time_scale() {
        for name in ["vp", "ve", "edm", "linear", "trigonometric"] {
            let process = Process::by_name(name).unwrap();
            let grid = TimeGrid::default_for(&process);
            let sampler = TimeSampler::Close { share: 1.0 };
            let (mut rows, mut below, mut near) = (0, 0, 0);
            for row in 0..2000 {
                let mut times = [0.0; 3];
                let mut stream = Stream::new(4, Purpose::Time, 0, row);
                sampler
                    .fill_times(&process, &grid, 8, &mut stream, &mut times)
                    .unwrap();
                let reach = process.time_scale(times[0], 1.0) / 12f64.sqrt();
                assert!(times[1..].iter().all(|t| (t - times[0]).abs() <= reach));
                // The ends of the grid cut off what lies beyond.
                if times[0] - reach < grid.t_min() || times[0] + reach > grid.t_max() {
                    continue;
                }
                rows += 1;
                below += u32::from(times[1] < times[0]);
                near += u32::from((times[1] - times[0]).abs() < 0.5 * reach);
            }
            assert!(rows > 1000, "{name}: {rows}");
            for count in [below, near] {
                let off = f64::from(count) - f64::from(rows) / 2.0;
                assert!(
                    off.abs() < 2.0 * f64::from(rows).sqrt(),
                    "{name}: {count} of {rows}"
                );
            }
        }
        let process = Process::default();
        let grid = TimeGrid::default_for(&process);
        let refused = TimeSampler::Close { share: 0.0 }.validate(&process, &grid, 8, 2);
        assert!(refused.unwrap_err().to_string().contains("above 0"));
    }

    #[test]
    fn grid_samplers_visit_levels_equally() {
        let grid = TimeGrid::new(12, 0.1, 0.9, Spacing::Linear {}).unwrap();
        for sampler in [TimeSampler::Grid {}, TimeSampler::GridStratified {}] {
            let mut counts = [0; 12];
            let rows = 20_000;
            for row in 0..rows {
                let mut levels = [0; 4];
                sampler
                    .fill_levels(
                        &Process::default(),
                        &grid,
                        &mut Stream::new(2, Purpose::Time, 0, row),
                        &mut levels,
                    )
                    .unwrap();
                if sampler == (TimeSampler::GridStratified {}) {
                    assert!(
                        levels
                            .iter()
                            .enumerate()
                            .all(|(i, &level)| level as usize / 3 == i)
                    );
                }
                levels.iter().for_each(|&level| counts[level as usize] += 1);
            }
            // A level is in a row of 4 of 12 with probability 1/3, so its count is binomial(rows, 1/3).
            let (mean, sigma) = (rows as f64 / 3.0, (rows as f64 * 2.0 / 9.0).sqrt());
            assert!(
                counts
                    .iter()
                    .all(|&c| (f64::from(c) - mean).abs() < 4.0 * sigma),
                "{counts:?}"
            );
        }
        let mut all = [0; 12];
        TimeSampler::Grid {}
            .fill_levels(
                &Process::default(),
                &grid,
                &mut Stream::new(3, Purpose::Time, 0, 0),
                &mut all,
            )
            .unwrap();
        all.sort_unstable();
        assert_eq!(all, std::array::from_fn(|i| i as u32));
    }

    #[test]
    fn continuous_samplers_have_their_moments() {
        for name in ["vp", "ve", "edm"] {
            let process = Process::by_name(name).unwrap();
            let grid = TimeGrid::default_for(&process);
            let (rows, mean, std) = (20_000, -0.4, 0.3);
            let mut logs = vec![0.0; rows];
            for (row, log) in logs.iter_mut().enumerate() {
                let mut time = [0.0];
                let mut stream = Stream::new(5, Purpose::Time, 1, row as u64);
                TimeSampler::LogSnrNormal { mean, std }
                    .fill_times(&process, &grid, 8, &mut stream, &mut time)
                    .unwrap();
                *log = process.noise_level(time[0]).ln();
            }
            // The range cuts beyond 10 sigma only. Mean: sigma/sqrt(n); variance: sigma^2 sqrt(2/n).
            let found = logs.iter().sum::<f64>() / rows as f64;
            assert!(
                (found - mean).abs() < 4.0 * std / (rows as f64).sqrt(),
                "{name}: {found}"
            );
            let variance = logs.iter().map(|x| (x - found).powi(2)).sum::<f64>() / rows as f64;
            assert!(
                (variance / std.powi(2) - 1.0).abs() < 4.0 * (2.0 / rows as f64).sqrt(),
                "{name}: {variance}"
            );
        }
        let process = Process::default();
        let grid = TimeGrid::new(8, 0.2, 0.8, Spacing::Linear {}).unwrap();
        let mut times = [0.0; 3];
        TimeSampler::Stratified {}
            .fill_times(
                &process,
                &grid,
                8,
                &mut Stream::new(6, Purpose::Time, 0, 0),
                &mut times,
            )
            .unwrap();
        assert!(times[0] < 0.4 && (0.4..0.6).contains(&times[1]) && times[2] > 0.6);
    }

    #[test]
    fn impossible_settings_are_refused() {
        let vp = Process::default();
        let grid = TimeGrid::new(4, 0.2, 0.8, Spacing::Linear {}).unwrap();
        for sampler in KINDS {
            assert!(sampler.validate(&vp, &grid, 8, 4).is_ok(), "{sampler:?}");
        }
        assert!(TimeSampler::Grid {}.validate(&vp, &grid, 8, 5).is_err());
        let far = TimeSampler::LogSnrNormal {
            mean: 300.0,
            std: 0.1,
        };
        assert!(far.validate(&vp, &grid, 8, 1).is_err());
        assert!(
            TimeSampler::LogSnrNormal {
                mean: 0.0,
                std: -0.1
            }
            .validate(&vp, &grid, 8, 1)
            .is_err()
        );
        assert!(
            KINDS[5]
                .validate(&Process::by_name("linear").unwrap(), &grid, 8, 1)
                .is_err()
        );
    }

    #[test]
    fn files_name_the_kind() {
        for sampler in KINDS {
            let text = serde_json::to_string(&sampler).unwrap();
            assert_eq!(serde_json::from_str::<TimeSampler>(&text).unwrap(), sampler);
        }
        let text = serde_json::to_string(&KINDS[1]).unwrap();
        assert_eq!(text, r#"{"kind":"grid-stratified"}"#);
        let default: TimeSampler = serde_json::from_str(r#"{"kind": "log-snr-normal"}"#).unwrap();
        assert_eq!(default, KINDS[5]);
        assert!(serde_json::from_str::<TimeSampler>(r#"{"kind": "grid", "mean": 1}"#).is_err());
        assert!(serde_json::from_str::<TimeSampler>(r#"{"kind": "grids"}"#).is_err());
    }

    #[test]
    fn multiscale_rows_visit_small_noise_and_neighbours() {
        let process = Process::default();
        let grid = TimeGrid::default_for(&process);
        let rows = 20_000;
        let (mut first, mut near) = (0, 0);
        for row in 0..rows {
            let mut stream = Stream::new(5, Purpose::Test, 0, row);
            let mut levels = [0; 2];
            TimeSampler::Multiscale { snr_share: 0.5 }
                .fill_levels(&process, &grid, &mut stream, &mut levels)
                .unwrap();
            first += u64::from(levels[0] == 0);
            near += u64::from(levels[0].abs_diff(levels[1]) < 8);
        }
        // Level 0 owns the log-SNR from its own to the middle of the first gap.
        let snr = |t: f64| process.log_snr(t);
        let t = grid.times();
        let share = (snr(t[0]) - snr(0.5 * (t[0] + t[1]))) / (snr(t[0]) - snr(t[511]));
        let expected = 0.5 * share + 0.5 / 512.0;
        // 4 sigma of a binomial share.
        let sigma = (expected * (1.0 - expected) / rows as f64).sqrt();
        assert!((first as f64 / rows as f64 - expected).abs() < 4.0 * sigma);
        // A log-uniform distance up to 512 is below 8 in ln 8 / ln 512 = 1/3 of the draws; fewer far ones fit at the ends.
        assert!(near as f64 / rows as f64 > 1.0 / 3.0);
    }
}
