//! Two samples compared by all distances, each beside its floor: what two samples of the reference itself, of the same sizes, are
//! apart. A distance near its floor says no more than that.

use super::{Estimate, energy_distance, mmd_squared, sliced};
use crate::system::GaussianMixture;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Rows that enter the distances over all pairs.
const PAIR_ROWS: usize = 4096;

/// Points with weights.
#[derive(Debug, Clone)]
pub struct Sample<'a> {
    points: &'a [f64],
    dim: usize,
    weights: Vec<f64>,
}

impl<'a> Sample<'a> {
    /// Rows of `dim` numbers, with non-negative weights (equal ones if `None`), which are scaled to sum to 1.
    pub fn new(points: &'a [f64], dim: usize, weights: Option<&[f64]>) -> Result<Sample<'a>> {
        let rows = points.len().checked_div(dim).unwrap_or(0);
        if rows == 0 || rows * dim != points.len() {
            return Err(Error::Shape {
                what: "the sample".into(),
                found: format!("{} numbers", points.len()),
                expected: format!("rows of {dim} numbers, at least one"),
            });
        }
        let mut weights = match weights {
            None => vec![1.0; rows],
            Some(weights) => weights.to_vec(),
        };
        let total: f64 = weights.iter().sum();
        let sane = weights.iter().all(|w| *w >= 0.0) && total > 0.0 && total.is_finite();
        if weights.len() != rows || !sane {
            return Err(Error::Value {
                name: "weights of the sample",
                found: format!("{} numbers of sum {total}", weights.len()),
                expected: format!("{rows} non-negative numbers of positive sum"),
            });
        }
        weights.iter_mut().for_each(|w| *w /= total);
        Ok(Sample {
            points,
            dim,
            weights,
        })
    }

    /// Number of points.
    pub fn rows(&self) -> usize {
        self.weights.len()
    }

    /// Dimension of a point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.points[i * self.dim..][..self.dim]
    }

    pub(super) fn weight(&self, i: usize) -> f64 {
        self.weights[i]
    }

    /// At most so many rows, evenly spread over the sample.
    fn thinned(&self, rows: usize) -> (Vec<f64>, Vec<f64>) {
        let kept = self.rows().min(rows);
        let places = (0..kept).map(|k| k * self.rows() / kept);
        let points = places.clone().flat_map(|i| self.row(i)).copied().collect();
        (points, places.map(|i| self.weights[i]).collect())
    }

    /// Share of the points nearest to each component.
    pub fn mode_shares(&self, mixture: &GaussianMixture) -> Vec<f64> {
        let mut shares = vec![0.0; mixture.components()];
        for i in 0..self.rows() {
            shares[mixture.nearest(self.row(i))] += self.weights[i];
        }
        shares
    }
}

/// Half the sum of absolute differences.
pub fn total_variation(a: &[f64], b: &[f64]) -> f64 {
    0.5 * a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>()
}

/// A distance and its floor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Distance {
    /// Between the sample and the reference.
    pub value: Estimate,
    /// Between two samples of the reference.
    pub floor: Estimate,
}

/// All distances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Squared maximum mean discrepancy.
    pub mmd_squared: Distance,
    /// Sliced Wasserstein-2 distance.
    pub sliced_wasserstein: Distance,
    /// Sliced Kolmogorov-Smirnov distance.
    pub sliced_kolmogorov_smirnov: Distance,
    /// Energy distance.
    pub energy_distance: Distance,
    /// Total variation of mode weights (nearest component), and that of the second reference; where the modes are known.
    pub mode_weights: Option<(f64, f64)>,
}

/// How to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonSettings {
    /// Random directions of the sliced distances.
    pub directions: usize,
    /// Seed of the directions.
    pub seed: u64,
}

impl Default for ComparisonSettings {
    fn default() -> Self {
        Self {
            directions: 256,
            seed: 0,
        }
    }
}

impl Comparison {
    /// Compares `sample` with `reference`; `second` is another sample of the reference's law, as large as `sample` for a fair floor. With
    /// `modes`, mode weights are compared with those of the mixture.
    pub fn run(
        sample: &Sample<'_>,
        reference: &Sample<'_>,
        second: &Sample<'_>,
        modes: Option<&GaussianMixture>,
        settings: ComparisonSettings,
    ) -> Result<Comparison> {
        for (what, other) in [
            ("reference", reference.dim),
            ("second reference", second.dim),
        ] {
            if other != sample.dim {
                return Err(Error::Shape {
                    what: format!("the {what}"),
                    found: format!("{other} columns"),
                    expected: format!("{}, as the sample has", sample.dim),
                });
            }
        }
        let thin = |sample: &Sample<'_>| sample.thinned(PAIR_ROWS);
        let (few, few_reference, few_second) = (thin(sample), thin(reference), thin(second));
        let view = |part: &'_ (Vec<f64>, Vec<f64>)| -> Result<(Estimate, Estimate)> {
            let a = Sample::new(&part.0, sample.dim, Some(&part.1))?;
            let b = Sample::new(&few_reference.0, sample.dim, Some(&few_reference.1))?;
            Ok((mmd_squared(&a, &b), energy_distance(&a, &b)))
        };
        let (mmd, energy) = view(&few)?;
        let (mmd_floor, energy_floor) = view(&few_second)?;
        let slices = |a: &Sample<'_>| sliced(a, reference, settings.directions, settings.seed);
        let (found, floor) = (slices(sample), slices(second));
        let distance = |value, floor| Distance { value, floor };
        Ok(Comparison {
            mmd_squared: distance(mmd, mmd_floor),
            energy_distance: distance(energy, energy_floor),
            sliced_wasserstein: distance(found.wasserstein, floor.wasserstein),
            sliced_kolmogorov_smirnov: distance(found.kolmogorov_smirnov, floor.kolmogorov_smirnov),
            mode_weights: modes.map(|mixture| {
                let of = |sample: &Sample<'_>| {
                    total_variation(&sample.mode_shares(mixture), mixture.weights())
                };
                (of(sample), of(second))
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Covariance, System, two_modes};

    #[test]
    fn exact_samples_are_at_the_floor_and_wrong_weights_are_not() {
        let mixture = two_modes().unwrap();
        let wrong = GaussianMixture::new(
            2,
            vec![0.4, 0.6],
            mixture.means().to_vec(),
            Covariance::Isotropic(vec![0.03, 0.05]),
        )
        .unwrap();
        let n = 1500;
        let system = System::by_name("two-modes", 2, 0).unwrap();
        let draw = |seed| -> Vec<f64> {
            system
                .sample(n, seed)
                .iter()
                .map(|x| f64::from(*x))
                .collect()
        };
        let (a, b, c) = (draw(1), draw(2), draw(3));
        let mut stream = crate::rng::Stream::new(4, crate::rng::Purpose::Test, 0, 0);
        let mut off = vec![0.0; 2 * n];
        off.chunks_exact_mut(2).for_each(|y| {
            wrong.sample_point(&mut stream, y);
        });
        let sample = |points| Sample::new(points, 2, None).unwrap();
        let settings = ComparisonSettings {
            directions: 40,
            seed: 1,
        };
        let run = |points| {
            Comparison::run(
                &sample(points),
                &sample(&b),
                &sample(&c),
                Some(&mixture),
                settings,
            )
            .unwrap()
        };
        let (good, bad) = (run(&a), run(&off));
        let ratios = |c: &Comparison| {
            [
                c.mmd_squared,
                c.sliced_wasserstein,
                c.sliced_kolmogorov_smirnov,
                c.energy_distance,
            ]
            .map(|d| d.value.mean / d.floor.mean)
        };
        // Two draws of the floor differ by a factor of a few; 27 % of the mass in the wrong mode is far above.
        assert!(
            ratios(&good).iter().all(|r| (0.1..6.0).contains(r)),
            "{:?}",
            ratios(&good)
        );
        assert!(ratios(&bad).iter().all(|r| *r > 4.0), "{:?}", ratios(&bad));
        let (tv, floor) = bad.mode_weights.unwrap();
        // 4 sigma of a share of 1500.
        assert!((tv - (2.0 / 3.0 - 0.4)).abs() < 4.0 * 0.0127 && floor < 4.0 * 0.0122);
        // The same again with weights: a mode's points count 0.6 and 1.8 times.
        let weights: Vec<f64> = a
            .chunks(2)
            .map(|y| if y[0] < 0.0 { 0.6 } else { 1.8 })
            .collect();
        let weighted = Sample::new(&a, 2, Some(&weights)).unwrap();
        let found = Comparison::run(
            &weighted,
            &sample(&b),
            &sample(&c),
            Some(&mixture),
            settings,
        )
        .unwrap();
        assert!((found.mode_weights.unwrap().0 - tv).abs() < 0.06);
        assert!(
            (found.sliced_wasserstein.value.mean / bad.sliced_wasserstein.value.mean - 1.0).abs()
                < 0.2
        );
    }

    #[test]
    fn unusable_samples_are_refused() {
        assert!(Sample::new(&[], 2, None).is_err() && Sample::new(&[1.0; 3], 2, None).is_err());
        assert!(Sample::new(&[1.0; 4], 2, Some(&[1.0])).is_err());
        assert!(Sample::new(&[1.0; 4], 2, Some(&[1.0, -0.1])).is_err());
        assert!(Sample::new(&[1.0; 4], 2, Some(&[0.0, 0.0])).is_err());
        let (a, b) = (
            Sample::new(&[1.0; 4], 2, None).unwrap(),
            Sample::new(&[1.0; 4], 1, None).unwrap(),
        );
        let error = Comparison::run(&a, &b, &b, None, ComparisonSettings::default()).unwrap_err();
        assert!(
            error.to_string().contains("1 columns, expected 2"),
            "{error}"
        );
    }
}
