//! The kernel density estimate, `p(x) = mean over rows r of N(x; r, h^2 diag(scale^2))`, with the bandwidth h that makes held-out rows most likely.
//!
//! A classical density to compare with, not a base: it costs a pass over its rows per point, and beyond some twenty columns it says
//! little.

use super::fit::{Data, FitSettings, Rows, mean_and_error};
use crate::engine::Pool;
use crate::system::log_sum::log_sum_exp;
use crate::{Error, Result};
use std::f64::consts::TAU;
use std::sync::{Mutex, PoisonError};

/// Most columns.
pub const MOST_COLUMNS: usize = 20;
/// Rows that carry a kernel; of more, a subsample spread over all.
pub const MOST_KERNELS: usize = 8000;
/// Held-out rows that judge a bandwidth.
const MOST_JUDGES: usize = 1000;
/// Points of one job.
const CHUNK: usize = 64;

/// A kernel density estimate with its held-out likelihood.
#[derive(Clone, Debug)]
pub struct KernelDensity {
    dim: usize,
    /// Rows in units of the columns' scales.
    rows: Vec<f64>,
    shift: Vec<f64>,
    scale: Vec<f64>,
    /// Width of a kernel in units of the columns' scales.
    pub bandwidth: f64,
    /// Mean log-density of held-out rows at that bandwidth, in nats per row.
    pub held_out: f64,
    /// Its standard error, from blocks of neighbouring rows.
    pub error: f64,
}

impl KernelDensity {
    /// Chooses the bandwidth by the likelihood of held-out rows: a coarse grid from 0.01 to 3, then finer around the best.
    pub fn fit(rows: &dyn Rows, settings: &FitSettings, pool: &Pool) -> Result<KernelDensity> {
        if rows.dim() > MOST_COLUMNS {
            return Err(Error::Value {
                name: "columns of a kernel density",
                found: rows.dim().to_string(),
                expected: format!("at most {MOST_COLUMNS}; compare with a mixture instead"),
            });
        }
        if rows.weight(0).is_some() {
            return Err(Error::Value {
                name: "rows of a kernel density",
                found: "weighted".into(),
                expected: "equally weighted ones; take those that weights::kept gives".into(),
            });
        }
        let settings = FitSettings {
            most_rows: settings.most_rows.min(MOST_KERNELS),
            basis: None,
            ..settings.clone()
        };
        let data = Data::new(rows, &settings)?;
        let dim = data.dim;
        // One part judges all others: every row of it has the distances to the same kernels.
        let kernels = data.share(|i| data.fold[i] != 0);
        let judges = data.share(|i| data.fold[i] == 0);
        let step = (judges.len() / dim).div_ceil(MOST_JUDGES).max(1);
        let judges: Vec<f64> = judges
            .chunks_exact(dim)
            .step_by(step)
            .flatten()
            .copied()
            .collect();
        if kernels.is_empty() || judges.is_empty() {
            return Err(Error::Value {
                name: "rows of a kernel density",
                found: format!("{} distinct enough to be held out", judges.len() / dim),
                expected: "at least two distinct rows".into(),
            });
        }
        let scores = |bandwidth: f64| {
            let values = log_densities(&kernels, dim, bandwidth, &judges, pool);
            (bandwidth, mean_and_error(&values, &[]))
        };
        let better = |a: (f64, (f64, f64)), b: (f64, (f64, f64))| if b.1.0 > a.1.0 { b } else { a };
        // No kernel is narrower than the rounding of the data.
        let least = data.floor.iter().fold(0.0_f64, |a, b| a.max(*b)).sqrt();
        let mut best = (1.0, (f64::NEG_INFINITY, 0.0));
        for i in 0..=16 {
            let bandwidth = 0.01 * 300.0_f64.powf(f64::from(i) / 16.0);
            best = better(best, scores(bandwidth.max(least)));
        }
        let coarse = 300.0_f64.powf(1.0 / 16.0);
        let centre = best.0;
        for i in -3..=3 {
            let bandwidth = centre * coarse.powf(f64::from(i) / 4.0);
            best = better(best, scores(bandwidth.max(least)));
        }
        let (bandwidth, (held_out, error)) = best;
        let jacobian: f64 = data.scale.iter().map(|s| s.ln()).sum();
        Ok(KernelDensity {
            dim,
            rows: data.rows,
            shift: data.shift,
            scale: data.scale,
            bandwidth,
            held_out: held_out - jacobian,
            error,
        })
    }

    /// log p of every row of `points`.
    pub fn log_densities(&self, points: &[f64], pool: &Pool) -> Vec<f64> {
        let mut z = points.to_vec();
        for row in z.chunks_exact_mut(self.dim) {
            for ((x, shift), scale) in row.iter_mut().zip(&self.shift).zip(&self.scale) {
                *x = (*x - shift) / scale;
            }
        }
        let jacobian: f64 = self.scale.iter().map(|s| s.ln()).sum();
        let mut out = log_densities(&self.rows, self.dim, self.bandwidth, &z, pool);
        out.iter_mut().for_each(|x| *x -= jacobian);
        out
    }
}

fn log_densities(
    kernels: &[f64],
    dim: usize,
    bandwidth: f64,
    points: &[f64],
    pool: &Pool,
) -> Vec<f64> {
    let n = kernels.len() / dim;
    let constant = -(n as f64).ln() - dim as f64 * (bandwidth * TAU.sqrt()).ln();
    let factor = -0.5 / (bandwidth * bandwidth);
    let parts: Vec<&[f64]> = points.chunks(CHUNK * dim).collect();
    let results: Vec<Mutex<Vec<f64>>> = parts.iter().map(|_| Mutex::default()).collect();
    pool.run(parts.len(), &|_, i| {
        let mut terms = vec![0.0; n];
        let mut values = Vec::with_capacity(CHUNK);
        for point in parts[i].chunks_exact(dim) {
            for (term, kernel) in terms.iter_mut().zip(kernels.chunks_exact(dim)) {
                let away = point.iter().zip(kernel).map(|(x, r)| (x - r) * (x - r));
                *term = factor * away.sum::<f64>();
            }
            values.push(constant + log_sum_exp(&mut terms));
        }
        *results[i].lock().unwrap_or_else(PoisonError::into_inner) = values;
    });
    let values = results.into_iter();
    values
        .flat_map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::RowSlice;
    use super::*;
    use crate::system::mixture::tests::examples;

    #[test]
    fn density_integrates_to_one_and_follows_the_definition() {
        let (rows, _) = examples(2, 8)[1].sample(300, 1);
        let pool = Pool::new(2);
        let density =
            KernelDensity::fit(&RowSlice::new(&rows, 2), &FitSettings::default(), &pool).unwrap();
        let (half, n) = (14.0, 280);
        let h = 2.0 * half / f64::from(n);
        let at = |k: i32| -half + (f64::from(k) + 0.5) * h;
        let grid: Vec<f64> = (0..n * n).flat_map(|i| [at(i / n), at(i % n)]).collect();
        let total: f64 = density
            .log_densities(&grid, &pool)
            .iter()
            .map(|l| l.exp() * h * h)
            .sum();
        assert!((total - 1.0).abs() < 1e-3, "{total}");
        let point = [0.3, -0.4];
        let plain: f64 = rows
            .chunks_exact(2)
            .map(|row| {
                let term = |j: usize| {
                    let width = density.bandwidth * density.scale[j];
                    (-0.5 * ((point[j] - row[j]) / width).powi(2)).exp() / (width * TAU.sqrt())
                };
                term(0) * term(1) / 300.0
            })
            .sum();
        assert!((density.log_densities(&point, &pool)[0] - plain.ln()).abs() < 1e-9);
    }

    #[test]
    fn the_bandwidth_is_that_of_theory_and_held_out_nats_are_honest() {
        // A standard normal in one dimension: about 1.06 n^(-1/5) minimises the squared error, a little more the divergence.
        let rows: Vec<f64> = (0..4000)
            .map(|i| {
                crate::rng::Stream::new(5, crate::rng::Purpose::Test, 3, i).normal() * 3.0 + 1.0
            })
            .collect();
        let pool = Pool::new(1);
        let density =
            KernelDensity::fit(&RowSlice::new(&rows, 1), &FitSettings::default(), &pool).unwrap();
        let theory = 1.06 * 4000.0_f64.powf(-0.2);
        assert!(
            (0.5..2.0).contains(&(density.bandwidth / theory)),
            "{}",
            density.bandwidth
        );
        let entropy = 0.5 * (TAU * std::f64::consts::E * 9.0).ln();
        assert!((density.held_out + entropy).abs() < 4.0 * density.error + 0.01);
    }

    #[test]
    fn too_many_columns_or_too_few_rows_are_refused() {
        let fit = |values: &[f64], dim| {
            let rows = RowSlice::new(values, dim);
            KernelDensity::fit(&rows, &FitSettings::default(), &Pool::new(1))
        };
        assert!(
            fit(&[0.5; 210], 21)
                .unwrap_err()
                .to_string()
                .contains("at most 20")
        );
        assert!(
            fit(&[0.5; 10], 1)
                .unwrap_err()
                .to_string()
                .contains("distinct")
        );
    }
}
