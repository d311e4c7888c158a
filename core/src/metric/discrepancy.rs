//! Kernel discrepancies between two weighted samples: maximum mean discrepancy (Gretton et al. 2012) and energy distance (Szekely
//! and Rizzo 2013), the same statistic with different kernels.

use super::{Estimate, Sample};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["gretton2012kernel", "szekely2013energy"];

/// Widths of the kernel bank, in units of the median distance.
const BANK: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Rows for the median distance: pairs of this many points of the two samples.
const MEDIAN_ROWS: usize = 512;

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    square.sqrt()
}

/// `E k(x, x') + E k(y, y') - 2 E k(x, y)` over all pairs (the V-statistic, never negative), with the standard error of its two-sample
/// linear part. With as many as n points on both sides, two samples of one law give about `(E k(x, x) - E k(x, x')) 2 / n`.
fn discrepancy(a: &Sample<'_>, b: &Sample<'_>, kernel: impl Fn(f64) -> f64) -> Estimate {
    // Row means of the kernel against both samples.
    let (mut a_to_a, mut a_to_b) = (vec![0.0; a.rows()], vec![0.0; a.rows()]);
    let (mut b_to_a, mut b_to_b) = (vec![0.0; b.rows()], vec![0.0; b.rows()]);
    let same = |sample: &Sample<'_>, out: &mut [f64]| {
        let own = kernel(0.0);
        for i in 0..sample.rows() {
            out[i] += sample.weight(i) * own;
            for j in 0..i {
                let k = kernel(distance(sample.row(i), sample.row(j)));
                out[i] += sample.weight(j) * k;
                out[j] += sample.weight(i) * k;
            }
        }
    };
    same(a, &mut a_to_a);
    same(b, &mut b_to_b);
    for (i, to_b) in a_to_b.iter_mut().enumerate() {
        for (j, to_a) in b_to_a.iter_mut().enumerate() {
            let k = kernel(distance(a.row(i), b.row(j)));
            *to_b += b.weight(j) * k;
            *to_a += a.weight(i) * k;
        }
    }
    let (mut mean, mut variance) = (0.0, 0.0);
    for (sample, own, other) in [(a, &a_to_a, &a_to_b), (b, &b_to_b, &b_to_a)] {
        let witness = |i: usize| own[i] - other[i];
        let centre: f64 = (0..sample.rows())
            .map(|i| sample.weight(i) * witness(i))
            .sum();
        mean += centre;
        variance += (0..sample.rows())
            .map(|i| (2.0 * sample.weight(i) * (witness(i) - centre)).powi(2))
            .sum::<f64>();
    }
    Estimate {
        mean: mean.max(0.0),
        error: variance.sqrt(),
    }
}

/// The median distance between points of two samples, or 1 if that is 0.
fn median_distance(a: &Sample<'_>, b: &Sample<'_>) -> f64 {
    let mut distances: Vec<f64> = (0..a.rows().min(MEDIAN_ROWS))
        .flat_map(|i| (0..b.rows().min(MEDIAN_ROWS)).map(move |j| (i, j)))
        .map(|(i, j)| distance(a.row(i), b.row(j)))
        .collect();
    let middle = distances.len() / 2;
    let median = *distances.select_nth_unstable_by(middle, f64::total_cmp).1;
    if median > 0.0 { median } else { 1.0 }
}

/// Mean of the Gaussian kernels of the bank at a distance.
fn bank(distance: f64, scale: f64) -> f64 {
    let u = (distance / scale).powi(2);
    BANK.iter().map(|w| (-0.5 * u / (w * w)).exp()).sum::<f64>() / BANK.len() as f64
}

/// The kernels of both discrepancies among the points of a pool, and their means against a reference: enough to compare every part of the pool
/// with the reference, up to what the reference has with itself.
pub(crate) struct Pooled {
    size: usize,
    among: [Vec<f32>; 2],
    across: [Vec<f64>; 2],
}

impl Pooled {
    /// The width of the kernels is that of pool and reference.
    pub fn of(pool: &Sample<'_>, reference: &Sample<'_>) -> Pooled {
        let (size, scale) = (pool.rows(), median_distance(pool, reference));
        let kernels = |r: f64| [bank(r, scale), -r];
        let mut among = [vec![0f32; size * size], vec![0f32; size * size]];
        let mut across = [vec![0.0; size], vec![0.0; size]];
        for i in 0..size {
            for j in 0..=i {
                let values = kernels(distance(pool.row(i), pool.row(j)));
                for (among, value) in among.iter_mut().zip(values) {
                    among[i * size + j] = value as f32;
                    among[j * size + i] = value as f32;
                }
            }
            for j in 0..reference.rows() {
                let values = kernels(distance(pool.row(i), reference.row(j)));
                for (across, value) in across.iter_mut().zip(values) {
                    across[i] += reference.weight(j) * value;
                }
            }
        }
        Pooled {
            size,
            among,
            across,
        }
    }

    /// `E k(x, x') - 2 E k(x, y)` of both kernels for some of the pool's points with weights that sum to 1.
    pub fn distances(&self, points: &[usize], weights: &[f64]) -> [f64; 2] {
        [0, 1].map(|kernel| {
            let mut sum = 0.0;
            for (&i, w) in points.iter().zip(weights) {
                let row = &self.among[kernel][i * self.size..][..self.size];
                let own: f64 = points
                    .iter()
                    .zip(weights)
                    .map(|(&j, w)| w * f64::from(row[j]))
                    .sum();
                sum += w * (own - 2.0 * self.across[kernel][i]);
            }
            sum
        })
    }
}

/// Squared maximum mean discrepancy with the mean of Gaussian kernels of widths 1/4 to 4 times the median distance between points of
/// the two samples. Between 0 (the same) and 2. As a sum over all pairs it is biased upwards, by about `(1 - E k(x, x')) (1/n + 1/m)`: compare it
/// with its floor ([`Comparison`](super::Comparison)), not with 0.
pub fn mmd_squared(a: &Sample<'_>, b: &Sample<'_>) -> Estimate {
    let scale = median_distance(a, b);
    discrepancy(a, b, |r| bank(r, scale))
}

/// Energy distance `2 E|x - y| - E|x - x'| - E|y - y'|`, in the unit of the data.
pub fn energy_distance(a: &Sample<'_>, b: &Sample<'_>) -> Estimate {
    discrepancy(a, b, |r| -r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn normals(n: usize, row: u64, shift: f64) -> Vec<f64> {
        let mut stream = Stream::new(2, Purpose::Test, 3, row);
        (0..n).map(|_| shift + stream.normal()).collect()
    }

    #[test]
    fn two_points_by_hand() {
        let (a, b) = ([0.0, 3.0], [1.0]);
        let (a, b) = (
            Sample::new(&a, 1, Some(&[1.0, 3.0])).unwrap(),
            Sample::new(&b, 1, None).unwrap(),
        );
        // Weights 1/4 and 3/4: 2 (1/4 + 6/4) - 2 (3/16) 3 - 0.
        let found = energy_distance(&a, &b);
        assert!((found.mean - (3.5 - 18.0 / 16.0)).abs() < 1e-14, "{found}");
        // The median distance is 2 (of 1 and 2): kernels of widths 0.5 to 8.
        let k = |r: f64| {
            BANK.iter()
                .map(|w| (-0.5 * (r / 2.0 / w).powi(2)).exp())
                .sum::<f64>()
                / 5.0
        };
        let expected = (1.0 / 16.0 + 9.0 / 16.0 + 6.0 / 16.0 * k(3.0)) + 1.0
            - 2.0 * (0.25 * k(1.0) + 0.75 * k(2.0));
        assert!((mmd_squared(&a, &b).mean - expected).abs() < 1e-14);
    }

    #[test]
    fn shifted_normals_have_a_known_energy_distance() {
        // x - y ~ N(m, 2): E|x - y| = 2/sqrt(pi) exp(-m^2/4) + m erf(m/2), E|x - x'| = 2/sqrt(pi).
        let m = 0.8;
        let (a, b) = (normals(2000, 1, 0.0), normals(2000, 2, m));
        let (a, b) = (
            Sample::new(&a, 1, None).unwrap(),
            Sample::new(&b, 1, None).unwrap(),
        );
        let root = std::f64::consts::PI.sqrt();
        // erf(0.4) = 0.428392355.
        let exact = 2.0 * (2.0 / root * (-0.16_f64).exp() + m * 0.428_392_355) - 4.0 / root;
        let found = energy_distance(&a, &b);
        // The V-statistic is too large by about 2 E|x - x'| / n.
        assert!(
            (found.mean - exact).abs() < 4.0 * found.error + 0.003,
            "{found} {exact}"
        );
    }

    #[test]
    fn errors_are_honest() {
        // The spread over 60 pairs of samples beside the mean of the reported errors; the spread itself is known to 9 %.
        let (mut values, mut errors) = (Vec::new(), 0.0);
        for seed in 0..60 {
            let (a, b) = (
                normals(150, 10 + 2 * seed, 0.0),
                normals(150, 11 + 2 * seed, 1.0),
            );
            let found = mmd_squared(
                &Sample::new(&a, 1, None).unwrap(),
                &Sample::new(&b, 1, None).unwrap(),
            );
            values.push(found.mean);
            errors += found.error / 60.0;
        }
        let mean = values.iter().sum::<f64>() / 60.0;
        let spread = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 59.0).sqrt();
        assert!((errors / spread - 1.0).abs() < 0.4, "{errors} {spread}");
    }
}
