//! Sliced distances: Wasserstein-2 and Kolmogorov-Smirnov of projections on random directions (Bonneel et al. 2015), of two
//! weighted samples.

use super::{Estimate, Sample};
use crate::rng::{Purpose, Stream};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["bonneel2015sliced"];

/// One-dimensional projections in rising order, with running sums of weights.
struct Projected {
    values: Vec<f64>,
    /// Weight up to and with each value; the last is 1.
    cumulative: Vec<f64>,
}

impl Projected {
    fn new(sample: &Sample<'_>, direction: &[f64]) -> Projected {
        let along = |row: &[f64]| row.iter().zip(direction).map(|(y, e)| y * e).sum::<f64>();
        let mut pairs: Vec<(f64, f64)> = (0..sample.rows())
            .map(|i| (along(sample.row(i)), sample.weight(i)))
            .collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = pairs
            .iter()
            .map(|(_, w)| {
                sum += w;
                sum
            })
            .collect();
        // Rounding must not leave a gap at the end.
        if let Some(last) = cumulative.last_mut() {
            *last = 1.0;
        }
        Projected {
            values: pairs.into_iter().map(|(value, _)| value).collect(),
            cumulative,
        }
    }
}

/// `int_0^1 (F^-1(s) - G^-1(s))^2 ds` of two step functions.
fn wasserstein_squared(a: &Projected, b: &Projected) -> f64 {
    let (mut i, mut j, mut from, mut sum) = (0, 0, 0.0, 0.0);
    while i < a.values.len() && j < b.values.len() {
        let to = a.cumulative[i].min(b.cumulative[j]);
        sum += (to - from) * (a.values[i] - b.values[j]).powi(2);
        from = to;
        // Both may end at the same place.
        let (next_a, next_b) = (a.cumulative[i] <= to, b.cumulative[j] <= to);
        i += usize::from(next_a);
        j += usize::from(next_b);
    }
    sum
}

/// Largest gap between the distribution functions.
fn kolmogorov_smirnov(a: &Projected, b: &Projected) -> f64 {
    let (mut i, mut j, mut gap) = (0, 0, 0.0_f64);
    while i < a.values.len() && j < b.values.len() {
        let at = a.values[i].min(b.values[j]);
        while i < a.values.len() && a.values[i] <= at {
            i += 1;
        }
        while j < b.values.len() && b.values[j] <= at {
            j += 1;
        }
        let below = |k: usize, p: &Projected| if k == 0 { 0.0 } else { p.cumulative[k - 1] };
        gap = gap.max((below(i, a) - below(j, b)).abs());
    }
    gap
}

/// A reference projected once, for many samples that are compared with it.
pub(super) struct Slices {
    parts: Vec<(Vec<f64>, Projected)>,
}

impl Slices {
    /// Projects on so many random directions.
    pub fn of(reference: &Sample<'_>, directions: usize, seed: u64) -> Slices {
        let along = |k: usize| {
            let direction = direction(reference.dim(), seed, k as u64);
            let projected = Projected::new(reference, &direction);
            (direction, projected)
        };
        Slices {
            parts: (0..directions).map(along).collect(),
        }
    }

    /// Mean squared Wasserstein-2 and mean Kolmogorov-Smirnov distance of a sample.
    pub fn distances(&self, sample: &Sample<'_>) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for (direction, reference) in &self.parts {
            let sample = Projected::new(sample, direction);
            sums[0] += wasserstein_squared(&sample, reference);
            sums[1] += kolmogorov_smirnov(&sample, reference);
        }
        sums.map(|sum| sum / self.parts.len() as f64)
    }
}

/// Random direction number `k`.
fn direction(dim: usize, seed: u64, k: u64) -> Vec<f64> {
    let mut direction = vec![0.0; dim];
    Stream::new(seed, Purpose::Slice, 0, k).fill_normal_f64(&mut direction);
    let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
    direction.iter_mut().for_each(|x| *x /= norm);
    direction
}

/// Both sliced distances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sliced {
    /// `sqrt(mean over directions of W2^2)`, in the unit of the data. The square stands inside both means.
    pub wasserstein: Estimate,
    /// Mean over directions of the Kolmogorov-Smirnov distance, between 0 and 1.
    pub kolmogorov_smirnov: Estimate,
}

/// Sliced distances over `directions` random directions drawn from `seed`. The errors are those of the average over directions; what
/// the finite samples themselves do is told by comparing two samples of one law.
pub fn sliced(a: &Sample<'_>, b: &Sample<'_>, directions: usize, seed: u64) -> Sliced {
    let (mut squares, mut gaps) = (Vec::new(), Vec::new());
    for k in 0..directions.max(2) as u64 {
        let direction = direction(a.dim(), seed, k);
        let (a, b) = (Projected::new(a, &direction), Projected::new(b, &direction));
        squares.push(wasserstein_squared(&a, &b));
        gaps.push(kolmogorov_smirnov(&a, &b));
    }
    let square = Estimate::of(&squares);
    let root = square.mean.sqrt();
    Sliced {
        wasserstein: Estimate {
            mean: root,
            error: if root > 0.0 {
                0.5 * square.error / root
            } else {
                0.0
            },
        },
        kolmogorov_smirnov: Estimate::of(&gaps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dimension_by_hand() {
        let (a, b) = ([0.0, 1.0, 5.0], [2.0, 4.0]);
        let a = Sample::new(&a, 1, None).unwrap();
        let b = Sample::new(&b, 1, Some(&[1.0, 3.0])).unwrap();
        // Quantiles: a is 0 to 1/3, 1 to 2/3, 5 to 1; b is 2 to 1/4, 4 to 1.
        let square = 0.25 * 4.0 + (1.0 / 3.0 - 0.25) * 16.0 + 9.0 / 3.0 + 1.0 / 3.0;
        let found = sliced(&a, &b, 3, 1);
        assert!(
            (found.wasserstein.mean - f64::sqrt(square)).abs() < 1e-12,
            "{found:?}"
        );
        // Largest gap: below 2, where a has 2/3 and b nothing.
        assert!(
            (found.kolmogorov_smirnov.mean - 2.0 / 3.0).abs() < 1e-12,
            "{found:?}"
        );
    }

    #[test]
    fn a_shift_is_seen_from_every_direction() {
        // Points moved by m: W2 along e is |m . e|, whose mean square is |m|^2 / d.
        let a: Vec<f64> = (0..300).map(|i| (0.7 * f64::from(i)).sin()).collect();
        let shift = [0.3, -0.5, 1.1];
        let b: Vec<f64> = a
            .iter()
            .enumerate()
            .map(|(i, y)| y + shift[i % 3])
            .collect();
        let (a, b) = (
            Sample::new(&a, 3, None).unwrap(),
            Sample::new(&b, 3, None).unwrap(),
        );
        let found = sliced(&a, &b, 2000, 4);
        let exact = (shift.iter().map(|m| m * m).sum::<f64>() / 3.0).sqrt();
        let error = found.wasserstein.error;
        assert!(
            (found.wasserstein.mean - exact).abs() < 4.0 * error && error < 0.02,
            "{found:?} {exact}"
        );
        let same = sliced(&a, &a, 20, 4);
        assert_eq!(
            (same.wasserstein.mean, same.kolmogorov_smirnov.mean),
            (0.0, 0.0)
        );
    }

    #[test]
    fn weights_count_like_repeated_points() {
        let (a, weights) = ([0.3, 0.1, -1.0, 2.0, 0.5, 0.5], [2.0, 1.0, 3.0]);
        let repeated = [0.3, 0.1, 0.3, 0.1, -1.0, 2.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5];
        let other = [0.0, 0.2, 1.0, -0.4];
        let other = Sample::new(&other, 2, None).unwrap();
        let one = sliced(&Sample::new(&a, 2, Some(&weights)).unwrap(), &other, 50, 2);
        let two = sliced(&Sample::new(&repeated, 2, None).unwrap(), &other, 50, 2);
        assert!((one.wasserstein.mean - two.wasserstein.mean).abs() < 1e-12);
        assert!((one.kolmogorov_smirnov.mean - two.kolmogorov_smirnov.mean).abs() < 1e-12);
    }
}
