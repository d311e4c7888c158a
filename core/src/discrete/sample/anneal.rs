//! Annealing: particles from noise to data, level by level, with weights (AIS; with resampling, SMC). It gives the partition function of
//! the model's smallest level, or of a target whose weights are known, with an error from independent runs.

use super::Kernel;
use crate::discrete::energy::Energy;
use crate::discrete::{Process, Space, log_sum_exp};
use crate::metric::effective_sample_size;
use crate::process::TimeGrid;
use crate::rng::{Purpose, Stream};
use crate::sample::{LogNormaliser, Resampling};
use crate::{Error, Result};

/// Times of an annealing over the range of a grid, with so many levels, or as many as the grid has.
///
/// Under uniform noise they are the grid's. Under masks the steps are even in `sqrt(alpha)`: a level with chance `a` of showing a site, seen from one with less by `da`, has weights of
/// relative variance `d da^2 / a`, so that a grid which is dense at the data's end alone would lose all particles at the first step.
pub fn annealing_times(
    process: &Process,
    grid: &TimeGrid,
    levels: Option<usize>,
) -> Result<Vec<f64>> {
    let levels = levels.unwrap_or(grid.levels());
    let even = grid.with_levels(levels)?;
    if !process.is_masked() {
        return Ok(even.times().to_vec());
    }
    let schedule = process.generator().schedule();
    let ends = [grid.t_min(), grid.t_max()].map(|time| process.keep(time).sqrt());
    let inner = (1..levels - 1).map(|k| {
        let share = k as f64 / (levels - 1) as f64;
        schedule.time_of((ends[0] + share * (ends[1] - ends[0])).powi(2))
    });
    let ends = [grid.t_min(), grid.t_max()];
    Ok([ends[0]]
        .into_iter()
        .chain(inner)
        .chain([ends[1]])
        .collect())
}

/// The logarithm of a row's weight.
pub type LogWeight<'a> = &'a (dyn Fn(&[u8]) -> f64 + Sync);

/// How to anneal.
#[derive(Clone, Copy)]
pub struct Anneal<'a> {
    /// The density at every level.
    pub energy: &'a dyn Energy,
    /// Increasing times; the last is noise.
    pub times: &'a [f64],
    /// Log-weights of a target after the smallest time; none: the model's smallest level.
    pub target: Option<LogWeight<'a>>,
    /// The move at each level.
    pub kernel: Kernel,
    /// Sweeps of it.
    pub sweeps: usize,
    /// Resample when the effective share falls below this; 0 never does (AIS).
    pub resample_below: f64,
    /// Particles of a run.
    pub particles: usize,
    /// Independent runs.
    pub runs: usize,
    /// Seed.
    pub seed: u64,
}

/// What is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Annealed {
    /// Rows of all runs.
    pub rows: Vec<u8>,
    /// Their weights, summing to 1.
    pub weights: Vec<f64>,
    /// `log Z` of `exp(-U + F)` at the smallest time, which is 0 for a density, or of the target.
    pub log_z: LogNormaliser,
    /// Effective share of the weights.
    pub ess: f64,
}

impl Annealed {
    /// As many rows of equal weight, drawn by the weights.
    pub fn equally_weighted(&self, sites: usize, seed: u64) -> Vec<u8> {
        let mut ancestors = vec![0; self.weights.len()];
        let mut stream = Stream::new(seed, Purpose::Equalise, 0, 0);
        Resampling::Systematic.draw(&self.weights, &mut stream, &mut ancestors);
        let rows = ancestors
            .iter()
            .map(|&a| &self.rows[a as usize * sites..][..sites]);
        rows.flatten().copied().collect()
    }
}

impl Anneal<'_> {
    /// Runs it; `done` hears of finished levels, in all runs together.
    pub fn run(&self, done: &mut dyn FnMut(usize)) -> Result<Annealed> {
        let space = self.energy.space();
        let wrong = |name, found: usize, expected: &str| {
            Err(Error::Value {
                name,
                found: found.to_string(),
                expected: expected.into(),
            })
        };
        if self.particles == 0 || self.runs == 0 {
            return wrong("particles", 0, "at least one, in at least one run");
        }
        if self.times.len() < 2 {
            return wrong("levels of an annealing", self.times.len(), "at least two");
        }
        let (mut rows, mut weights, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for run in 0..self.runs {
            let (part, log_weights, log_z) = self.one(run, space, &mut |level| {
                done(run * self.times.len() + level)
            });
            rows.extend(part);
            weights.extend(log_weights.iter().map(|w| w + log_z));
            let most = log_weights
                .iter()
                .copied()
                .fold(f64::NEG_INFINITY, f64::max);
            let mean =
                log_weights.iter().map(|w| (w - most).exp()).sum::<f64>() / self.particles as f64;
            parts.push(log_z + most + mean.ln());
        }
        let most = parts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let z: Vec<f64> = parts.iter().map(|log_z| (log_z - most).exp()).collect();
        let mean = z.iter().sum::<f64>() / z.len() as f64;
        let error = (z.len() > 1).then(|| {
            let n = z.len() as f64;
            let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (n - 1.0);
            (variance / n).sqrt() / mean
        });
        let ess = effective_sample_size(&weights);
        let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|w| *w = (*w - top).exp());
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        Ok(Annealed {
            rows,
            weights,
            log_z: LogNormaliser {
                value: most + mean.ln(),
                error,
            },
            ess,
        })
    }

    /// `log sum_y p(y) / p(masks)` at the last level by the ratios of single sites, `sum_i log(1 + sum_s p(y_is) / p(masks))`: exact where sites are independent,
    /// as they are up to `alpha^2` of what is left there.
    fn log_shown(&self, last: f64, space: Space) -> f64 {
        let symbols = space.states + 1;
        let masks = vec![space.states as u8; space.sites];
        let mut ratios = vec![0.0; space.sites * symbols];
        self.energy.log_ratios(last, &masks, &mut ratios);
        // The mask itself is the one of ratio 1.
        let sites = ratios.chunks_exact(symbols);
        sites.map(|site| log_sum_exp(site.iter().copied())).sum()
    }

    /// One run: rows, their log-weights since the last resampling, and log Z until then.
    fn one(
        &self,
        run: usize,
        space: Space,
        done: &mut dyn FnMut(usize),
    ) -> (Vec<u8>, Vec<f64>, f64) {
        let n = self.particles;
        let process = self.energy.process();
        let stream =
            |particle: usize| Stream::new(self.seed, Purpose::Move, run as u64, particle as u64);
        let mut streams: Vec<Stream> = (0..n).map(stream).collect();
        let mut rows = vec![0; n * space.sites];
        for (row, stream) in rows.chunks_exact_mut(space.sites).zip(&mut streams) {
            process.draw_noise(space, stream, row);
        }
        // The start's law: all sites hit. Under masks that is one row, which alone has a weight.
        let start = if process.is_masked() {
            0.0
        } else {
            -(space.sites as f64) * (space.states as f64).ln()
        };
        let last = self.times[self.times.len() - 1];
        let (mut now, mut then) = (vec![0.0; n], vec![0.0; n]);
        self.energy.log_density(last, &rows, &mut now);
        let mut log_weights: Vec<f64> = if process.is_masked() {
            // The level shows a few of the sites, the start none: what that lacks is in log Z.
            vec![0.0; n]
        } else {
            now.iter().map(|log_p| log_p - start).collect()
        };
        let mut log_z = if process.is_masked() {
            now[0] + self.log_shown(last, space)
        } else {
            0.0
        };
        let mut resample = Stream::new(self.seed, Purpose::Resample, run as u64, 0);
        for (k, pair) in self.times.windows(2).rev().enumerate() {
            for _ in 0..self.sweeps {
                self.kernel
                    .sweep(self.energy, pair[1], &mut rows, &mut streams);
            }
            self.energy.log_density(pair[1], &rows, &mut now);
            self.energy.log_density(pair[0], &rows, &mut then);
            for ((weight, now), then) in log_weights.iter_mut().zip(&now).zip(&then) {
                *weight += then - now;
            }
            if effective_sample_size(&log_weights) < self.resample_below {
                log_z += resampled(&mut rows, &mut log_weights, space.sites, &mut resample);
            }
            done(k + 1);
        }
        for _ in 0..self.sweeps {
            self.kernel
                .sweep(self.energy, self.times[0], &mut rows, &mut streams);
        }
        if let Some(target) = self.target {
            self.energy.log_density(self.times[0], &rows, &mut now);
            for ((weight, now), row) in log_weights
                .iter_mut()
                .zip(&now)
                .zip(rows.chunks_exact(space.sites))
            {
                *weight += target(row) - now;
            }
        }
        done(self.times.len());
        (rows, log_weights, log_z)
    }
}

/// Draws ancestors by their weights, which become equal; returns the logarithm of the mean weight.
fn resampled(
    rows: &mut Vec<u8>,
    log_weights: &mut [f64],
    sites: usize,
    stream: &mut Stream,
) -> f64 {
    let most = log_weights
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_weights.iter().map(|w| (w - most).exp()).collect();
    let mut ancestors = vec![0; weights.len()];
    Resampling::Systematic.draw(&weights, stream, &mut ancestors);
    *rows = ancestors
        .iter()
        .flat_map(|&a| &rows[a as usize * sites..][..sites])
        .copied()
        .collect();
    log_weights.fill(0.0);
    most + (weights.iter().sum::<f64>() / weights.len() as f64).ln()
}
