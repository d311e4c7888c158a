//! The wrapped Gaussian: a normal variable known up to whole periods, `sum_k N(a + k P; 0, v)`, with its moments over the images.
//!
//! With the nearest image at `|a| <= P/2`, `alpha = exp(-(P^2 + 2 a P) / 2v)` and `beta = exp(-(P^2 - 2 a P) / 2v)`, both at most 1, image k
//! has `alpha^{k(k+1)/2} beta^{k(k-1)/2}` of the nearest one's density: two exponentials give them all. Which image a value belongs to is
//! a label as the component of a mixture is; with the mean `m_1` and the mean square `m_2` of the distance `a + k P` under its law,
//!
//! ```text
//! d/da log p = -m_1 / v      d2/da2 p / p = m_2 / v^2 - 1 / v      d/dv log p = (m_2 / v^2 - 1 / v) / 2
//! ```
//!
//! Wider than 1.25 periods the density is the uniform one to 1e-13 and stays as it is there.

use super::lanes::{LANES, Lane, ln};
use crate::engine::kernel::dispatch::Loop;
use crate::system::log_sum::exp;

/// Standard deviation, in periods, beyond which nothing changes.
const WIDEST: f64 = 1.25;
/// Images on either side that are needed there: the next one has 1e-13 of the nearest's density.
const MOST_IMAGES: usize = 9;
/// A share of an image that adds nothing.
const LEAST: f64 = 1e-17;

/// What the images of a block of points add up to.
pub(super) struct Images {
    /// `-2 log p - log 2 pi`: for one image `a^2/v + log v`.
    pub cost: Lane<f64>,
    /// Mean of the distance over the images.
    pub first: Lane<f64>,
    /// Mean of its square.
    pub second: Lane<f64>,
    /// The variance, at most that at which nothing changes any more.
    pub variance: Lane<f64>,
}

impl Images {
    /// Of points at distances `away` from a mean, with these variances.
    #[inline(always)]
    pub fn of<const FMA: bool>(away: &Lane<f64>, variance: &Lane<f64>, period: f64) -> Images {
        /// Adding and subtracting 1.5 * 2^52 rounds to an integer.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        let widest = (WIDEST * period) * (WIDEST * period);
        let mut a = *away;
        let mut v = *variance;
        let (mut alpha, mut beta) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let turns = (a[lane] / period + ROUND) - ROUND;
            a[lane] -= period * turns;
            v[lane] = if v[lane] < widest { v[lane] } else { widest };
            let t = 0.5 * period * period / v[lane];
            let d = period * a[lane] / v[lane];
            let least = |x: f64| if x > 0.0 { 0.0 } else { x };
            alpha[lane] = exp::<FMA>(least(-(t + d)));
            beta[lane] = exp::<FMA>(least(-(t - d)));
        }
        // Shares of images k and -k, and their ratios to those before.
        let (mut right, mut left) = (alpha, beta);
        let (mut ratio_right, mut ratio_left) = (alpha, beta);
        let (mut sum, mut m1, mut m2) = ([1.0; LANES], [0.0; LANES], [0.0; LANES]);
        for k in 1..=MOST_IMAGES {
            let far = k as f64;
            for lane in 0..LANES {
                let both = right[lane] + left[lane];
                sum[lane] += both;
                m1[lane] += far * (right[lane] - left[lane]);
                m2[lane] += far * far * both;
                let step = alpha[lane] * beta[lane];
                ratio_right[lane] *= step;
                ratio_left[lane] *= step;
                right[lane] *= ratio_right[lane];
                left[lane] *= ratio_left[lane];
            }
            let next = right.iter().zip(&left);
            if next.fold(0.0_f64, |m, (r, l)| m.max(r + l)) < LEAST {
                break;
            }
        }
        let mut images = Images {
            cost: [0.0; LANES],
            first: [0.0; LANES],
            second: [0.0; LANES],
            variance: v,
        };
        for lane in 0..LANES {
            let a = a[lane];
            let (m1, m2) = (m1[lane] / sum[lane], m2[lane] / sum[lane]);
            images.first[lane] = a + period * m1;
            images.second[lane] = a * a + period * (2.0 * a * m1 + period * m2);
            images.cost[lane] = a * a / v[lane] + ln(v[lane]) - 2.0 * ln(sum[lane]);
        }
        images
    }
}

/// The costs of all columns of a block of rows, of which some are periodic.
pub(super) struct WrapColumns<'a> {
    /// Variance of each column.
    pub variances: &'a [f64],
    /// Subtracted first.
    pub mean: &'a [f64],
    /// Period of each column, 0 for none.
    pub periods: &'a [f64],
    /// The rows.
    pub x: &'a [Lane<f64>],
    /// `-2 log p - d log 2 pi`.
    pub out: &'a mut Lane<f64>,
    /// First and second moment of each column over its images, if asked for.
    pub moments: Option<&'a mut [[Lane<f64>; 2]]>,
}

impl Loop for WrapColumns<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(mut self) {
        let mut cost = [0.0; LANES];
        for (j, x) in self.x.iter().enumerate() {
            let (mean, v, period) = (self.mean[j], self.variances[j], self.periods[j]);
            let a: Lane<f64> = std::array::from_fn(|lane| x[lane] - mean);
            let (mut first, mut second) = (a, a.map(|a| a * a));
            if period > 0.0 {
                let images = Images::of::<FMA>(&a, &[v; LANES], period);
                (first, second) = (images.first, images.second);
                for (cost, image) in cost.iter_mut().zip(&images.cost) {
                    *cost += image;
                }
            } else {
                let (inverse, log) = (1.0 / v, v.ln());
                for (cost, second) in cost.iter_mut().zip(&second) {
                    *cost += second * inverse + log;
                }
            }
            if let Some(moments) = &mut self.moments {
                moments[j] = [first, second];
            }
        }
        *self.out = cost;
    }
}

/// Replaces distances from a mean by their means over the images, given the distances up to whole periods: `E[a | a mod P]` for
/// `a ~ N(0, variance)`.
pub fn mean_distances(distances: &mut Lane<f64>, variances: &Lane<f64>, period: f64) {
    *distances = Images::of::<false>(distances, variances, period).first;
}

/// Of one point.
pub(super) fn cost_of_one(away: f64, variance: f64, period: f64) -> f64 {
    Images::of::<false>(&[away; LANES], &[variance; LANES], period).cost[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// log p and its moments, by the definition with many images.
    fn plain(a: f64, v: f64, period: f64) -> [f64; 3] {
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for k in -60..=60 {
            let x = a + f64::from(k) * period;
            let p = (-0.5 * x * x / v).exp() / (TAU * v).sqrt();
            sum += p;
            first += p * x;
            second += p * x * x;
        }
        [sum, first / sum, second / sum]
    }

    #[test]
    fn images_add_up_to_the_wrapped_gaussian() {
        let period: f64 = 2.7;
        for width in [0.02, 0.2, 0.4, 0.8, 1.2] {
            let v = (width * period) * (width * period);
            for a in [-1.35, -0.9, -0.1, 0.0, 0.4, 1.2, 1.349, 5.0, -21.3] {
                // By its definition at the nearest image: far ones underflow where the Gaussian is narrow.
                let near = a - period * (a / period).round();
                let [p, first, second] = plain(near, v, period);
                let found = Images::of::<false>(&[a; LANES], &[v; LANES], period);
                let log = -0.5 * (found.cost[3] + TAU.ln());
                assert!(
                    (log - p.ln()).abs() < 1e-11,
                    "{width} {a}: {log} {}",
                    p.ln()
                );
                assert!((found.first[5] - first).abs() < 1e-10, "{width} {a}");
                assert!((found.second[7] - second).abs() < 1e-10 * (1.0 + v));
            }
        }
    }

    #[test]
    fn wide_ones_are_uniform() {
        for v in [1e2, 1e4, 1e30] {
            for a in [0.0, 1.1, -0.6] {
                let log = -0.5 * (cost_of_one(a, v, 2.7) + TAU.ln());
                assert!((log + 2.7_f64.ln()).abs() < 1e-12, "{v} {a} {log}");
            }
        }
    }
}
