//! Two samples of rows of symbols: how far apart they are, each distance beside its floor and a p-value, as for points
//! ([`crate::metric::Comparison`]).

use super::counts::Counter;
use crate::metric::{
    DEALT_ROWS, Dealing, Distance, Estimate, PAIR_ROWS, Pooled, Sample, energy_distance,
    mean_floor, mmd_squared, share_of, total_variation,
};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Blocks of the jackknife, which gives the errors of total variations.
const BLOCKS: usize = 10;

/// All distances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatesComparison {
    /// Total variation of the laws of single sites, the mean over sites.
    pub sites: Distance,
    /// Total variation of the laws of pairs of sites, the mean over pairs.
    pub pairs: Distance,
    /// Total variation of the law of the state that most sites show: the weights of phases.
    pub majorities: Distance,
    /// Squared maximum mean discrepancy, with Gaussian kernels of the square root of the number of sites that differ.
    pub mmd_squared: Distance,
    /// Energy distance of that square root.
    pub energy_distance: Distance,
}

/// All symbols as indicators, scaled so that the squared distance of two rows is the number of sites that differ.
fn one_hot(points: &[f64], symbols: usize) -> Vec<f64> {
    let scale = std::f64::consts::FRAC_1_SQRT_2;
    let site = |s: &f64| {
        let s = *s as usize;
        (0..symbols).map(move |k| if k == s { scale } else { 0.0 })
    };
    points.iter().flat_map(site).collect()
}

/// Total variations of sites, pairs and majorities.
struct Laws<'a> {
    counter: &'a Counter,
    shares: [Vec<f64>; 3],
}

impl Laws<'_> {
    fn of(
        counter: &Counter,
        sample: &Sample<'_>,
        without: std::ops::Range<usize>,
    ) -> [Vec<f64>; 3] {
        let kept = (0..sample.rows()).filter(|i| !without.contains(i));
        let rows: Vec<u8> = kept
            .clone()
            .flat_map(|i| sample.row(i))
            .map(|s| *s as u8)
            .collect();
        let mut weights: Vec<f64> = kept.map(|i| sample.weight(i)).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        counter.shares(&rows, Some(&weights))
    }

    fn distances(&self, shares: &[Vec<f64>; 3]) -> [f64; 3] {
        let many = [self.counter.sites, self.counter.pairs.len().max(1), 1];
        [0, 1, 2].map(|kind| total_variation(&shares[kind], &self.shares[kind]) / many[kind] as f64)
    }

    fn to(&self, sample: &Sample<'_>) -> [f64; 3] {
        self.distances(&Self::of(self.counter, sample, 0..0))
    }

    /// With errors, by leaving out one block after the other.
    fn estimates(&self, sample: &Sample<'_>) -> [Estimate; 3] {
        let (rows, blocks) = (sample.rows(), BLOCKS.min(sample.rows()));
        let whole = self.to(sample);
        let parts: Vec<[f64; 3]> = (0..blocks)
            .map(|k| k * rows / blocks..(k + 1) * rows / blocks)
            .filter(|range| range.len() < rows)
            .map(|range| self.distances(&Self::of(self.counter, sample, range)))
            .collect();
        [0, 1, 2].map(|kind| {
            let n = parts.len().max(1) as f64;
            let mean = parts.iter().map(|p| p[kind]).sum::<f64>() / n;
            let spread = parts.iter().map(|p| (p[kind] - mean).powi(2)).sum::<f64>();
            Estimate {
                mean: whole[kind],
                error: (spread * (n - 1.0) / n).sqrt(),
            }
        })
    }
}

impl StatesComparison {
    /// Compares `sample` with `reference`; `second` is another sample of the reference's law. Points are symbols below `symbols`.
    pub fn run(
        sample: &Sample<'_>,
        reference: &Sample<'_>,
        second: &Sample<'_>,
        symbols: usize,
        seed: u64,
    ) -> Result<StatesComparison> {
        let sites = sample.dim();
        for part in [sample, reference, second] {
            let known = |x: &f64| (0.0..symbols as f64).contains(x) && x.fract() == 0.0;
            if part.dim() != sites || !(0..part.rows()).all(|i| part.row(i).iter().all(known)) {
                return Err(Error::Shape {
                    what: "a sample of states".into(),
                    found: format!("{} rows of {} numbers", part.rows(), part.dim()),
                    expected: format!("rows of {sites} symbols from 0 to {}", symbols - 1),
                });
            }
        }
        let counter = Counter::new(sites, symbols);
        let laws = Laws {
            shares: Laws::of(&counter, reference, 0..0),
            counter: &counter,
        };
        let whole = sample.whole(second);
        let part = sample.thinned(whole);
        let part = Sample::new(&part.0, sites, Some(&part.1))?;
        let value = laws.estimates(&part);
        let floors = second.floors(sample)?;
        let law_floors: Vec<[Estimate; 3]> = floors.iter().map(|f| laws.estimates(f)).collect();

        // Distances over pairs of rows, of fewer rows.
        let width = sites * symbols;
        let few = share_of(PAIR_ROWS, sample.rows()).min(whole);
        let few_reference = reference.thinned(share_of(PAIR_ROWS, reference.rows()));
        let few_reference = (one_hot(&few_reference.0, symbols), few_reference.1);
        let hot_reference = Sample::new(&few_reference.0, width, Some(&few_reference.1))?;
        let pairwise = |part: (Vec<f64>, Vec<f64>)| -> Result<[Estimate; 2]> {
            let points = one_hot(&part.0, symbols);
            let hot = Sample::new(&points, width, Some(&part.1))?;
            Ok([
                mmd_squared(&hot, &hot_reference),
                energy_distance(&hot, &hot_reference),
            ])
        };
        let pair_value = pairwise(sample.thinned(few))?;
        let pair_floors = floors
            .iter()
            .map(|floor| pairwise(floor.thinned(few / whole)))
            .collect::<Result<Vec<_>>>()?;

        let dealt = |of: &Sample<'_>| of.thinned(share_of(DEALT_ROWS, sample.rows()).min(whole));
        let dealing = Dealing::new(&dealt(sample), &dealt(second), (sites, seed));
        let fewer = reference.thinned(share_of(4 * DEALT_ROWS, reference.rows()));
        let pool = dealing.pool()?;
        let pooled: Vec<f64> = (0..pool.rows())
            .flat_map(|i| pool.row(i))
            .copied()
            .collect();
        let (pooled, hot) = (one_hot(&pooled, symbols), one_hot(&fewer.0, symbols));
        let among = Pooled::of(
            &Sample::new(&pooled, width, None)?,
            &Sample::new(&hot, width, Some(&fewer.1))?,
        );
        let p = dealing.p_values(&|chosen, part| {
            let weights: Vec<f64> = (0..part.rows()).map(|i| part.weight(i)).collect();
            let [mmd, energy] = among.distances(chosen, &weights);
            let [a, b, c] = laws.to(part);
            [a, b, c, mmd, energy]
        })?;
        let of_laws = |kind: usize| Distance {
            value: value[kind],
            floor: mean_floor(&law_floors.iter().map(|f| f[kind]).collect::<Vec<_>>()),
            p_value: p[kind],
        };
        let of_pairs = |kind: usize| Distance {
            value: pair_value[kind],
            floor: mean_floor(&pair_floors.iter().map(|f| f[kind]).collect::<Vec<_>>()),
            p_value: p[3 + kind],
        };
        Ok(StatesComparison {
            sites: of_laws(0),
            pairs: of_laws(1),
            majorities: of_laws(2),
            mmd_squared: of_pairs(0),
            energy_distance: of_pairs(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discrete::system::{Lattice, Table, Target};
    use crate::rng::{Purpose, Stream};

    fn drawn(field: f64, count: usize, seed: u64) -> Vec<f64> {
        let table = Table::of(&Lattice::ising(3, 3, 0.45, field)).unwrap();
        let mut row = [0; 9];
        (0..count)
            .flat_map(|k| {
                table.sample(&mut Stream::new(seed, Purpose::Test, 8, k as u64), &mut row);
                row.map(f64::from)
            })
            .collect()
    }

    fn compared(field: f64, seed: u64) -> StatesComparison {
        let [a, b, c] =
            [(field, 0), (0.05, 1), (0.05, 2)].map(|(field, k)| drawn(field, 400, 3 * seed + k));
        let [a, b, c] = [&a, &b, &c].map(|rows| Sample::new(rows, 9, None).unwrap());
        StatesComparison::run(&a, &b, &c, 2, seed).unwrap()
    }

    fn all(found: &StatesComparison) -> [Distance; 5] {
        [
            found.sites,
            found.pairs,
            found.majorities,
            found.mmd_squared,
            found.energy_distance,
        ]
    }

    /// p-values of one law are even: their mean over 20 is 1/2 within 4 * 0.29 / sqrt(20) = 0.26, and values stand at their floors.
    #[test]
    fn equal_laws_stand_at_their_floor_and_others_do_not() {
        let found: Vec<[Distance; 5]> = (0..20).map(|seed| all(&compared(0.05, seed))).collect();
        for kind in 0..5 {
            let mean = |of: &dyn Fn(&Distance) -> f64| {
                found.iter().map(|d| of(&d[kind])).sum::<f64>() / found.len() as f64
            };
            let p = mean(&|d| d.p_value);
            assert!((p - 0.5).abs() < 0.26, "{kind}: {p}");
            let ratio = mean(&|d| d.value.mean) / mean(&|d| d.floor.mean);
            assert!((0.5..2.0).contains(&ratio), "{kind}: {ratio}");
        }
        // The opposite field: the phases change places.
        for distance in all(&compared(-0.05, 50)) {
            assert_eq!(distance.p_value, 0.025, "{distance:?}");
            assert!(
                distance.value.mean > 2.0 * distance.floor.mean,
                "{distance:?}"
            );
        }
    }

    #[test]
    fn total_variations_follow_their_definition() {
        // Sites: (1/4 + 1/2) / 2; the pair: 00, 01, 11 in 1/2, 1/4, 1/4 against 1/4, 3/4 of 11 for the other.
        let (a, b) = (
            [0., 0., 0., 0., 0., 1., 1., 1.],
            [0., 0., 1., 1., 1., 1., 1., 1.],
        );
        let [a, b] = [&a, &b].map(|rows| Sample::new(rows, 2, None).unwrap());
        let found = StatesComparison::run(&a, &b, &b, 2, 0).unwrap();
        assert!((found.sites.value.mean - 0.375).abs() < 1e-12, "{found:?}");
        assert!((found.pairs.value.mean - 0.5).abs() < 1e-12, "{found:?}");
        // Majorities: the row 01 counts as 0.
        assert!(
            (found.majorities.value.mean - 0.5).abs() < 1e-12,
            "{found:?}"
        );
        // One site of two differs: the kernels see a distance of one.
        assert_eq!(
            one_hot(&[0.0, 1.0], 2).iter().map(|x| x * x).sum::<f64>(),
            1.0000000000000002
        );
        let wrong = Sample::new(&[0.0, 2.0], 2, None).unwrap();
        assert!(StatesComparison::run(&wrong, &b, &b, 2, 0).is_err());
    }
}
