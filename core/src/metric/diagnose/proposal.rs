//! A density to draw from that covers every basin: kernels around the points of a basin, shaped like the basin.
//!
//! For points x_i of basin b with mean m, covariance C and number n: y = m + a (x_i - m) + h C^(1/2) z with
//! h = (4 / ((d + 2) n))^(1/(d+4)) and a^2 = 1 - h^2, which keeps mean and covariance of the basin (West, J. R. Stat. Soc. B 55,
//! 1993). In few dimensions kernels are narrow and follow any shape. In many they are too sparse, so half of a basin's draws
//! come from the Gaussian N(m, C) instead: no weight is then more than twice what that Gaussian gives.

use super::basins::Basins;
use crate::rng::{Purpose, Stream};
use crate::system::log_sum::log_sum_exp;
use crate::system::matrix::{cholesky, dot};
use crate::{Error, Result};

struct Part {
    /// Number of its points, over that of all.
    share: f64,
    mean: Vec<f64>,
    /// The lower triangular L with L L^T = C.
    factor: Vec<f64>,
    /// Width h of the kernels.
    width: f64,
    /// Kernel centres in coordinates in which the kernels are standard normal: L^-1 a (x - m) / h.
    centres: Vec<f64>,
}

/// See the module's text.
pub(super) struct Proposal {
    dim: usize,
    parts: Vec<Part>,
}

impl Proposal {
    /// Kernels around the points of each basin. `least` is the smallest variance a kernel may have.
    pub fn of(basins: &Basins, dim: usize, least: f64) -> Result<Self> {
        let n = basins.labels().len() as f64;
        let rows = || basins.points().chunks_exact(dim).zip(basins.labels());
        let whole = covariance(&rows().map(|(x, _)| x).collect::<Vec<_>>(), dim).1;
        let parts = (0..basins.count())
            .map(|basin| {
                let points: Vec<&[f64]> = rows()
                    .filter(|(_, label)| **label == basin)
                    .map(|(x, _)| x)
                    .collect();
                let count = points.len() as f64;
                let (mean, mut matrix) = covariance(&points, dim);
                let d = dim as f64;
                // Few points do not determine a covariance: shrink it to a multiple of the identity.
                let shrink = d / (d + count);
                let trace = |matrix: &[f64]| (0..dim).map(|i| matrix[i * dim + i]).sum::<f64>() / d;
                let size = trace(&matrix).max(1e-12 * trace(&whole)).max(least);
                let h = (4.0 / ((d + 2.0) * count)).powf(1.0 / (d + 4.0)).min(0.95);
                for (at, value) in matrix.iter_mut().enumerate() {
                    *value *= 1.0 - shrink;
                    if at % (dim + 1) == 0 {
                        *value += shrink * size + least;
                    }
                }
                let factor = cholesky(&matrix, dim).ok_or_else(|| Error::Value {
                    name: "spread of a basin",
                    found: format!("{size:e}"),
                    expected: "a positive finite variance; look for rows that are far away from all others".into(),
                })?;
                let keep = (1.0 - h * h).sqrt();
                let mut centres = Vec::with_capacity(points.len() * dim);
                for x in points {
                    let mut centre: Vec<f64> =
                        x.iter().zip(&mean).map(|(x, m)| keep * (x - m)).collect();
                    solve_lower(&factor, &mut centre);
                    centre.iter_mut().for_each(|x| *x /= h);
                    centres.extend(centre);
                }
                Ok(Part {
                    share: count / n,
                    mean,
                    factor,
                    width: h,
                    centres,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self { dim, parts })
    }

    /// `count` draws, row after row, and the log-density of each.
    pub fn draw(&self, count: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let dim = self.dim;
        let mut points = vec![0.0; count * dim];
        for (row, point) in points.chunks_exact_mut(dim).enumerate() {
            let mut stream = Stream::new(seed, Purpose::Propose, 0, row as u64);
            // Half of the draws are shared evenly between the basins: a basin that the model makes too much of needs them.
            let part = if stream.uniform() < 0.5 {
                stream.below(self.parts.len() as u64) as usize
            } else {
                let mut left = stream.uniform();
                let inside = self.parts.iter().position(|part| {
                    left -= part.share;
                    left < 0.0
                });
                inside.unwrap_or(0)
            };
            let Part {
                mean,
                factor,
                width,
                centres,
                ..
            } = &self.parts[part];
            let centre = stream.below((centres.len() / dim) as u64) as usize;
            let kernel = stream.uniform() < 0.5;
            for (y, c) in point.iter_mut().zip(&centres[centre * dim..]) {
                let z = stream.normal();
                *y = if kernel { width * (c + z) } else { z };
            }
            multiply_lower(factor, point);
            point.iter_mut().zip(mean).for_each(|(y, m)| *y += m);
        }
        let densities = self.log_density(&points);
        (points, densities)
    }

    fn log_density(&self, points: &[f64]) -> Vec<f64> {
        let dim = self.dim;
        let even = 1.0 / self.parts.len() as f64;
        let mut local = vec![0.0; dim];
        let mut terms = Vec::new();
        let mut parts = vec![0.0; self.parts.len()];
        points
            .chunks_exact(dim)
            .map(|point| {
                for (part, out) in self.parts.iter().zip(&mut parts) {
                    for ((z, y), m) in local.iter_mut().zip(point).zip(&part.mean) {
                        *z = y - m;
                    }
                    solve_lower(&part.factor, &mut local);
                    let fit = -0.5 * dot(&local, &local);
                    local.iter_mut().for_each(|z| *z /= part.width);
                    terms.clear();
                    terms.extend(part.centres.chunks_exact(dim).map(|centre| {
                        let square: f64 = local
                            .iter()
                            .zip(centre)
                            .map(|(a, b)| (a - b) * (a - b))
                            .sum();
                        -0.5 * square
                    }));
                    let count = terms.len() as f64;
                    let kernels =
                        log_sum_exp(&mut terms) - count.ln() - dim as f64 * part.width.ln();
                    *out = (0.25 * (part.share + even)).ln() + log_sum_exp(&mut [fit, kernels])
                        - 0.5 * dim as f64 * (2.0 * std::f64::consts::PI).ln()
                        - (0..dim).map(|i| part.factor[i * dim + i].ln()).sum::<f64>();
                }
                log_sum_exp(&mut parts.clone())
            })
            .collect()
    }
}

/// Mean and covariance (row-major) of rows.
pub(super) fn covariance(rows: &[&[f64]], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let n = rows.len().max(1) as f64;
    let mut mean = vec![0.0; dim];
    for row in rows {
        mean.iter_mut().zip(*row).for_each(|(m, x)| *m += x / n);
    }
    let mut matrix = vec![0.0; dim * dim];
    let mut centred = vec![0.0; dim];
    for row in rows {
        for ((c, x), m) in centred.iter_mut().zip(*row).zip(&mean) {
            *c = x - m;
        }
        for (line, a) in matrix.chunks_exact_mut(dim).zip(&centred) {
            line.iter_mut()
                .zip(&centred)
                .for_each(|(v, b)| *v += a * b / n);
        }
    }
    (mean, matrix)
}

/// x <- L^-1 x.
pub(super) fn solve_lower(factor: &[f64], x: &mut [f64]) {
    let dim = x.len();
    for i in 0..dim {
        let row = &factor[i * dim..][..=i];
        x[i] = (x[i] - dot(&row[..i], &x[..i])) / row[i];
    }
}

/// x <- L x.
fn multiply_lower(factor: &[f64], x: &mut [f64]) {
    let dim = x.len();
    for i in (0..dim).rev() {
        x[i] = dot(&factor[i * dim..][..=i], &x[..=i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Estimate;
    use crate::system::{Covariance, GaussianMixture};

    /// Mean of (target / proposal) over draws is the integral of the target, 1, and the weights are even.
    #[test]
    fn draws_have_the_density_that_is_told() {
        for (dim, ess) in [(1, 0.85), (3, 0.8), (12, 0.5)] {
            let mut means = vec![0.3; 2 * dim];
            means[dim..].fill(-2.0);
            let covariance = Covariance::Isotropic(vec![0.2, 0.05]);
            let target = GaussianMixture::new(dim, vec![0.75, 0.25], means, covariance).unwrap();
            let basins = Basins::of(&target.sample(1500, 1).0, dim);
            assert_eq!(basins.count(), 2);
            let proposal = Proposal::of(&basins, dim, 0.0).unwrap();
            let (points, densities) = proposal.draw(3000, 5);
            let weights: Vec<f64> = points
                .chunks_exact(dim)
                .zip(&densities)
                .map(|(point, density)| (target.log_density(point) - density).exp())
                .collect();
            let found = Estimate::of(&weights);
            assert!(
                (found.mean - 1.0).abs() < 4.0 * found.error,
                "{dim}: {found}"
            );
            let even = found.mean.powi(2) / (weights.iter().map(|w| w * w).sum::<f64>() / 3000.0);
            // Half of the draws go evenly to both basins, which alone costs a few percent.
            assert!(even > ess, "{dim}: {even}");
        }
    }
}
