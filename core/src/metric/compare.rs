//! Two samples compared by all distances, each beside its floor and a p-value.
//!
//! The floor is what another sample of the reference's law is apart from the reference, cut to the effective size of the sample in
//! stretches of neighbours (which may be correlated). A distance near its floor says no more than that. The p-value is the share of random dealings
//! of the sample's blocks and those of the second reference that are at least as far from the reference: small ones are not chance. It holds
//! if rows further apart than a fortieth of the sample are independent; for weighted samples it is approximate, and nothing is left of it if a few rows carry
//! the weight.

use super::discrepancy::Pooled;
use super::sliced::Slices;
use super::{Estimate, energy_distance, mmd_squared, sliced};
use crate::rng::{Purpose, Stream};
use crate::system::GaussianMixture;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Rows that enter the distances over all pairs.
pub(crate) const PAIR_ROWS: usize = 2048;
/// Rows that enter the p-values.
pub(crate) const DEALT_ROWS: usize = 512;
/// Random directions of sliced distances in floors and p-values.
const DEALT_DIRECTIONS: usize = 32;
/// Blocks that a sample is cut into.
const BLOCKS: usize = 40;
/// Stretches of the second reference that make the floor.
const FLOORS: usize = 4;
/// Random dealings of a p-value.
const DEALINGS: usize = 39;

/// Points and weights, of which an equally weighted point has 1.
pub(crate) type Part = (Vec<f64>, Vec<f64>);

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

    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.points[i * self.dim..][..self.dim]
    }

    pub(crate) fn weight(&self, i: usize) -> f64 {
        self.weights[i]
    }

    /// Effective number of points, `1 / sum w^2`.
    pub fn effective_rows(&self) -> f64 {
        self.weights.iter().map(|w| w * w).sum::<f64>().recip()
    }

    /// Neighbours with their weights.
    fn stretch(&self, range: std::ops::Range<usize>) -> Result<Sample<'a>> {
        let points = &self.points[range.start * self.dim..range.end * self.dim];
        Sample::new(points, self.dim, Some(&self.weights[range]))
    }

    /// A share of the rows, evenly spread over the sample, with weights whose sum is the share of the effective rows.
    pub(crate) fn thinned(&self, share: f64) -> Part {
        let kept = ((self.rows() as f64 * share).round() as usize).clamp(1, self.rows());
        let places = (0..kept).map(|k| k * self.rows() / kept);
        let points = places.clone().flat_map(|i| self.row(i)).copied().collect();
        let one = self.effective_rows();
        (points, places.map(|i| self.weights[i] * one).collect())
    }

    /// The share of this sample that the second reference can stand in for.
    pub(crate) fn whole(&self, second: &Sample<'_>) -> f64 {
        (second.effective_rows() / self.effective_rows()).min(1.0)
    }

    /// Stretches of neighbours of this second reference, each of the effective size of a sample.
    pub(crate) fn floors(&self, sample: &Sample<'_>) -> Result<Vec<Sample<'a>>> {
        // Rows of the second reference per effective one.
        let per_row = self.rows() as f64 / self.effective_rows();
        let effective = sample.effective_rows() * sample.whole(self);
        let length = ((effective * per_row).round() as usize).clamp(1, self.rows());
        let count = if length == self.rows() { 1 } else { FLOORS };
        (0..count)
            .map(|k| {
                let start = k * (self.rows() - length) / (FLOORS - 1);
                self.stretch(start..start + length)
            })
            .collect()
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

/// A distance, its floor and its p-value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Distance {
    /// Between the sample and the reference. The error is that of this sample; distances of few points are too large by about the floor.
    pub value: Estimate,
    /// Between another sample of the reference's law, of the sample's effective size, and the reference.
    pub floor: Estimate,
    /// Share of random dealings that are at least as far apart; 0.025 at least.
    pub p_value: f64,
}

/// Every distance to a reference, by numbers alone.
fn all_distances(part: &Part, reference: &Part, dim: usize, seed: u64) -> Result<[Estimate; 4]> {
    let a = Sample::new(&part.0, dim, Some(&part.1))?;
    let b = Sample::new(&reference.0, dim, Some(&reference.1))?;
    let slices = sliced(&a, &b, DEALT_DIRECTIONS, seed);
    Ok([
        mmd_squared(&a, &b),
        slices.wasserstein,
        slices.kolmogorov_smirnov,
        energy_distance(&a, &b),
    ])
}

/// What part of a sample so many rows are.
pub(crate) fn share_of(rows: usize, of: usize) -> f64 {
    (rows as f64 / of as f64).min(1.0)
}

/// The mean of the floors, with its error; that of a single one is its own.
pub(crate) fn mean_floor(floors: &[Estimate]) -> Estimate {
    match floors {
        [one] => *one,
        _ => Estimate::of(&floors.iter().map(|floor| floor.mean).collect::<Vec<_>>()),
    }
}

/// So many ranges of neighbours.
fn cut(rows: usize, blocks: usize) -> Vec<std::ops::Range<usize>> {
    (0..blocks)
        .map(|k| k * rows / blocks..(k + 1) * rows / blocks)
        .collect()
}

/// Blocks of a sample and of a second reference, to be dealt anew.
pub(crate) struct Dealing {
    /// The sample, then blocks of the second reference, at most twice as many.
    pool: Part,
    deck: Vec<std::ops::Range<usize>>,
    blocks: usize,
    dim: usize,
    seed: u64,
}

impl Dealing {
    pub(crate) fn new(sample: &Part, second: &Part, (dim, seed): (usize, u64)) -> Dealing {
        let rows = sample.1.len();
        let effective: f64 = sample.1.iter().sum();
        let blocks = BLOCKS.min(rows).min(effective as usize).max(1);
        let length = (effective / blocks as f64).round().max(1.0) as usize;
        let second_effective = second.1.iter().sum::<f64>().round() as usize;
        let others = cut(second.1.len(), (second_effective / length).max(1));
        let kept = others.len().min(2 * blocks);
        let mut pool = sample.clone();
        let mut deck = cut(rows, blocks);
        for k in 0..kept {
            let range = others[k * others.len() / kept].clone();
            let start = pool.1.len();
            pool.0.extend(&second.0[range.start * dim..range.end * dim]);
            pool.1.extend(&second.1[range]);
            deck.push(start..pool.1.len());
        }
        Dealing {
            pool,
            deck,
            blocks,
            dim,
            seed,
        }
    }

    /// All points of the pool.
    pub(crate) fn pool(&self) -> Result<Sample<'_>> {
        Sample::new(&self.pool.0, self.dim, None)
    }

    /// P-values of distances, which are those of some of the pool's points, as a sample and by their numbers.
    pub(crate) fn p_values<const N: usize>(
        &self,
        distances: &dyn Fn(&[usize], &Sample<'_>) -> [f64; N],
    ) -> Result<[f64; N]> {
        let (all, mut deck) = (self.pool()?, self.deck.clone());
        let of = |deck: &[std::ops::Range<usize>]| -> Result<[f64; N]> {
            let chosen: Vec<usize> = deck.iter().flat_map(|range| range.clone()).collect();
            let points: Vec<f64> = chosen.iter().flat_map(|&i| all.row(i)).copied().collect();
            let weights: Vec<f64> = chosen.iter().map(|&i| self.pool.1[i]).collect();
            let part = Sample::new(&points, self.dim, Some(&weights))?;
            Ok(distances(&chosen, &part))
        };
        let found = of(&deck[..self.blocks])?;
        let mut further = [0.0; N];
        for dealing in 0..DEALINGS {
            let mut stream =
                Stream::new(self.seed, Purpose::Bootstrap, u64::MAX - 1, dealing as u64);
            for i in 0..self.blocks {
                let other = i + stream.below((deck.len() - i) as u64) as usize;
                deck.swap(i, other);
            }
            let dealt = of(&deck[..self.blocks])?;
            for ((further, dealt), found) in further.iter_mut().zip(dealt).zip(found) {
                *further += f64::from(u8::from(dealt >= found));
            }
        }
        Ok(further.map(|further| (further + 1.0) / (DEALINGS as f64 + 1.0)))
    }
}

/// P-values of all distances between `sample` and `reference` (MMD, sliced Wasserstein and Kolmogorov-Smirnov, energy distance): blocks of the
/// sample and of `second` are dealt anew.
fn p_values(
    sample: &Part,
    second: &Part,
    reference: &Part,
    (dim, seed): (usize, u64),
) -> Result<[f64; 4]> {
    let dealing = Dealing::new(sample, second, (dim, seed));
    let reference = Sample::new(&reference.0, dim, Some(&reference.1))?;
    let pairs = Pooled::of(&dealing.pool()?, &reference);
    let slices = Slices::of(&reference, DEALT_DIRECTIONS, seed);
    dealing.p_values(&|chosen, part| {
        let [mmd, energy] = pairs.distances(chosen, &part.weights);
        let [wasserstein, gap] = slices.distances(part);
        [mmd, wasserstein, gap, energy]
    })
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
    /// Compares `sample` with `reference`; `second` is another sample of the reference's law, independent of `reference` (two halves of a
    /// file, not its even and odd rows) and better not smaller than the effective size of `sample`: of a larger sample only a share enters then. With
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
        let (dim, seed) = (sample.dim, settings.seed);
        let whole = sample.whole(second);
        let few = share_of(PAIR_ROWS, sample.rows()).min(whole);
        let few_reference = reference.thinned(share_of(PAIR_ROWS, reference.rows()));
        let part = sample.thinned(few);
        let value = all_distances(&part, &few_reference, dim, seed)?;
        let slices = {
            let part = sample.thinned(whole);
            let part = Sample::new(&part.0, dim, Some(&part.1))?;
            sliced(&part, reference, settings.directions, seed)
        };
        let (mut floors, mut slice_floors) = (Vec::new(), Vec::new());
        for stretch in second.floors(sample)? {
            floors.push(all_distances(
                &stretch.thinned(few / whole),
                &few_reference,
                dim,
                seed,
            )?);
            slice_floors.push(sliced(&stretch, reference, settings.directions, seed));
        }
        let p = p_values(
            &sample.thinned(share_of(DEALT_ROWS, sample.rows()).min(whole)),
            &second.thinned(share_of(DEALT_ROWS, sample.rows()).min(whole)),
            &reference.thinned(share_of(4 * DEALT_ROWS, reference.rows())),
            (dim, seed),
        )?;
        let floor = |of: &dyn Fn(usize) -> Estimate| {
            let found: Vec<Estimate> = (0..floors.len()).map(of).collect();
            mean_floor(&found)
        };
        let distance = |value, floor, p_value| Distance {
            value,
            floor,
            p_value,
        };
        Ok(Comparison {
            mmd_squared: distance(value[0], floor(&|k| floors[k][0]), p[0]),
            energy_distance: distance(value[3], floor(&|k| floors[k][3]), p[3]),
            sliced_wasserstein: distance(
                slices.wasserstein,
                floor(&|k| slice_floors[k].wasserstein),
                p[1],
            ),
            sliced_kolmogorov_smirnov: distance(
                slices.kolmogorov_smirnov,
                floor(&|k| slice_floors[k].kolmogorov_smirnov),
                p[2],
            ),
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

    /// References with weights stand for the weighted law: draws of equal modes, weighted to 2/3 and 1/3, are at the floor of a sample that has those
    /// shares, and far from it without their weights.
    #[test]
    fn references_may_have_weights() {
        let mixture = two_modes().unwrap();
        let equal = GaussianMixture::new(
            2,
            vec![0.5, 0.5],
            mixture.means().to_vec(),
            Covariance::Isotropic(vec![0.03, 0.05]),
        )
        .unwrap();
        let n = 2000;
        let (points, _) = mixture.sample(n, 1);
        let drawn = |seed| {
            let (points, modes) = equal.sample(n, seed);
            let weights: Vec<f64> = modes.iter().map(|k| mixture.weights()[*k]).collect();
            (points, weights)
        };
        let (first, second) = (drawn(2), drawn(3));
        let sample = Sample::new(&points, 2, None).unwrap();
        let settings = ComparisonSettings {
            directions: 40,
            seed: 1,
        };
        let run = |weighted: bool| {
            let of = |part: &'_ (Vec<f64>, Vec<f64>)| {
                let weights = weighted.then_some(part.1.clone());
                (part.0.clone(), weights)
            };
            let (first, second) = (of(&first), of(&second));
            let reference = Sample::new(&first.0, 2, first.1.as_deref()).unwrap();
            let other = Sample::new(&second.0, 2, second.1.as_deref()).unwrap();
            Comparison::run(&sample, &reference, &other, None, settings).unwrap()
        };
        let ratio = |c: &Comparison| {
            let d = c.energy_distance;
            (d.value.mean / d.floor.mean, d.p_value)
        };
        let ((near, likely), (far, unlikely)) = (ratio(&run(true)), ratio(&run(false)));
        // As in the test below: draws of the floor differ by a factor of a few; a sixth of the mass in the wrong mode is far above.
        assert!(
            (0.1..6.0).contains(&near) && likely > 0.025,
            "{near} {likely}"
        );
        assert!(far > 6.0 && unlikely == 0.025, "{far} {unlikely}");
    }

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
        let p = |c: &Comparison| {
            [
                c.mmd_squared.p_value,
                c.sliced_wasserstein.p_value,
                c.energy_distance.p_value,
            ]
        };
        assert_eq!(p(&bad), [0.025; 3]);
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

    /// A sample of the reference's law stands at one floor whatever its size, weights and correlation, and its p-values are even: their mean
    /// over 24 pairs of samples is 1/2 within 4 * 0.29 / sqrt(24) = 0.24, and none of four distances has more than 6 below 0.05 (1.2 expected,
    /// four deviations above).
    #[test]
    fn floors_and_p_values_fit_the_samples_size() {
        let law = two_modes().unwrap();
        let settings = ComparisonSettings {
            directions: 8,
            seed: 5,
        };
        for (name, copies, weighted) in [
            ("plain", 1, false),
            ("copies", 2, false),
            ("weighted", 1, true),
        ] {
            let (mut values, mut floors) = ([0.0; 4], [0.0; 4]);
            let (mut p, mut rare) = ([0.0; 4], [0; 4]);
            let pairs = 24;
            for k in 0..pairs {
                let draw = |rows: usize, seed: u64| -> Vec<f64> {
                    let distinct = law.sample(rows / copies, seed).0;
                    (0..rows)
                        .flat_map(|i| distinct[i / copies * 2..][..2].to_vec())
                        .collect()
                };
                let (a, b, c) = (draw(100, 3 * k), draw(400, 3 * k + 1), draw(400, 3 * k + 2));
                // Weights that have nothing to do with the points: half of the rows count three times.
                let weights: Vec<f64> = (0..100)
                    .map(|i| if i % 2 == 0 { 3.0 } else { 1.0 })
                    .collect();
                let sample = Sample::new(&a, 2, weighted.then_some(&weights[..])).unwrap();
                let [b, c] = [&b, &c].map(|points| Sample::new(points, 2, None).unwrap());
                let found = Comparison::run(&sample, &b, &c, None, settings).unwrap();
                let all = [
                    found.mmd_squared,
                    found.sliced_wasserstein,
                    found.sliced_kolmogorov_smirnov,
                    found.energy_distance,
                ];
                for (i, distance) in all.iter().enumerate() {
                    values[i] += distance.value.mean;
                    floors[i] += distance.floor.mean;
                    p[i] += distance.p_value / pairs as f64;
                    rare[i] += usize::from(distance.p_value <= 0.05);
                }
            }
            let ratios = [0, 1, 2, 3].map(|i| values[i] / floors[i]);
            // A squared distance varies by about 0.7 of its mean by chance: over 24 pairs the ratio is known to 0.16.
            assert!(
                ratios.iter().all(|r| (0.4..1.64).contains(r)),
                "{name}: {ratios:?}"
            );
            assert!(p.iter().all(|p| (p - 0.5).abs() < 0.24), "{name}: {p:?}");
            assert!(rare.iter().all(|n| *n <= 6), "{name}: {rare:?}");
        }
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
