//! Two-sample test between data and generated samples: the energy distance against its permutations, and a classifier.
//!
//! Points are whitened first, by the covariance of other rows (those that the fitted mixture has seen), so that narrow directions weigh as
//! much as wide ones and the dealing stays free. The classifier sees what distances do not: see its file.
//! E^2 = 2 E|X - Y| - E|X - X'| - E|Y - Y'| is zero only for equal laws (Szekely and Rizzo 2013). Under equal laws all ways
//! of dealing the points to the two sides are alike, so its rank among random dealings is an exact p-value, in any
//! dimension and without a density. The coefficient H = E^2 / (2 E|X - Y|), between 0 and 1, says how large the difference is: if
//! a share s of the probability sits in a wrong one of two distant modes, H is about 2 s^2.

use serde::{Deserialize, Serialize};

use super::noised::{Data, Noised};
use super::proposal::{covariance, solve_lower};
use super::reference::Reference;
use super::remedy::Remedy;
use super::{Check, SIGNIFICANT, Subject, Verdict, classifier};
use crate::energy::nearest;
use crate::metric::Estimate;
use crate::rng::{Purpose, Stream};
use crate::system::matrix::cholesky;
use crate::{Error, Result};

/// Rows by whose covariance points are whitened.
const WHITENED_BY: usize = 4096;
/// Random dealings.
const DEALINGS: u64 = 499;
/// p-values up to this are not chance.
const RARE: f64 = 0.01;

/// Figures of the check.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwoSample {
    /// Points of each kind.
    pub points: usize,
    /// The coefficient H.
    pub coefficient: f64,
    /// Its mean over random dealings: what chance gives.
    pub by_chance: f64,
    /// Share of the dealings that are at least as far apart.
    pub p_value: f64,
    /// Share of unseen points that a classifier tells apart; its error is that by chance around 1/2.
    pub told_apart: Estimate,
}

impl TwoSample {
    /// Compares up to `count` noised rows with as many generated points, both at the smallest time. Of correlated rows only as many are
    /// taken as they are worth, evenly spread over their order: dealings are alike for independent points alone.
    pub(super) fn of(
        subject: &Subject<'_>,
        reference: &std::result::Result<Reference, String>,
        generated: &[f64],
        (count, seed): (usize, u64),
    ) -> Result<Self> {
        let dim = subject.energy.dim();
        let reference = reference.as_ref().ok();
        let rows = reference.map_or(subject.rows, |found| found.unseen(subject));
        let worth = (rows.len() as f64 / rows.inefficiency()) as usize;
        let count = count.min(worth.max(2)).min(generated.len() / dim);
        let spread = |table: &[f64]| -> Vec<f64> {
            let n = table.len() / dim;
            let picked = (0..count).map(|k| k * n / count);
            picked
                .flat_map(|row| table[row * dim..][..dim].to_vec())
                .collect()
        };
        let (start, end) = (spread(rows.start), rows.end.map(spread));
        let thin = Data {
            start: &start,
            end: end.as_deref(),
            dim,
        };
        let noised = Noised::new(thin, subject.process, seed);
        let time = subject.grid.t_min();
        let mut data = noised.points(time, count);
        let mut generated = generated[..count * dim].to_vec();
        for (j, period) in subject
            .periods
            .iter()
            .enumerate()
            .filter(|(_, p)| **p > 0.0)
        {
            let both = data.iter_mut().skip(j).step_by(dim);
            for x in both.chain(generated.iter_mut().skip(j).step_by(dim)) {
                *x = nearest(*x, *period);
            }
        }
        let by = match reference {
            Some(found) => {
                let rows = found.fitted();
                Noised::of_set(1, rows, subject.process, seed)
                    .points(time, rows.len().min(WHITENED_BY))
            }
            // Of both samples together: no dealing changes it.
            None => [data.as_slice(), &generated].concat(),
        };
        whiten(&by, dim, [&mut data, &mut generated]);
        Self::between(&data, &generated, dim, seed)
    }

    /// Compares two samples of equal size.
    pub fn between(a: &[f64], b: &[f64], dim: usize, seed: u64) -> Result<Self> {
        let n = a.len() / dim;
        if n < 2 || a.len() != b.len() {
            return Err(Error::Shape {
                what: "the samples to compare".into(),
                found: format!("{} and {} rows", n, b.len() / dim),
                expected: "the same number, at least 2".into(),
            });
        }
        let all: Vec<&[f64]> = a.chunks_exact(dim).chain(b.chunks_exact(dim)).collect();
        let size = all.len();
        let mut distances = vec![0f32; size * size];
        for i in 0..size {
            for j in 0..i {
                let square: f64 = all[i]
                    .iter()
                    .zip(all[j])
                    .map(|(x, y)| (x - y).powi(2))
                    .sum();
                distances[i * size + j] = square.sqrt() as f32;
                distances[j * size + i] = distances[i * size + j];
            }
        }
        let total: f64 = distances.iter().map(|d| f64::from(*d)).sum();
        // With signs s = +1 for one side and -1 for the other, sum_ij s_i s_j d_ij = within - across.
        let coefficient = |signs: &[f32]| {
            let mut balance = 0.0;
            for (row, sign) in distances.chunks_exact(size).zip(signs) {
                let mut lanes = [0f32; 8];
                for (d, s) in row.chunks_exact(8).zip(signs.chunks_exact(8)) {
                    for lane in 0..8 {
                        lanes[lane] += d[lane] * s[lane];
                    }
                }
                let rest = size - size % 8;
                let tail: f32 = row[rest..]
                    .iter()
                    .zip(&signs[rest..])
                    .map(|(d, s)| d * s)
                    .sum();
                balance += f64::from(*sign * (lanes.iter().sum::<f32>() + tail));
            }
            let (within, across) = (0.5 * (total + balance), 0.5 * (total - balance));
            // Each side has n^2 pairs of its own, and there are 2 n^2 pairs across, both orders counted.
            if across > 0.0 {
                1.0 - within / across
            } else {
                0.0
            }
        };
        let mut signs: Vec<f32> = (0..size).map(|i| if i < n { 1.0 } else { -1.0 }).collect();
        let found = coefficient(&signs);
        let (mut further, mut sum) = (0.0, 0.0);
        for dealing in 0..DEALINGS {
            let mut stream = Stream::new(seed, Purpose::Deal, 0, dealing);
            for i in (1..size).rev() {
                signs.swap(i, stream.below(i as u64 + 1) as usize);
            }
            let dealt = coefficient(&signs);
            sum += dealt;
            further += f64::from(u8::from(dealt >= found));
        }
        Ok(Self {
            points: n,
            coefficient: found,
            by_chance: sum / DEALINGS as f64,
            p_value: (further + 1.0) / (DEALINGS as f64 + 1.0),
            told_apart: classifier::accuracy(a, b, dim),
        })
    }

    /// The verdict; without generated samples there is none.
    pub(crate) fn check(found: Option<&Self>, remedy: &Remedy) -> Check {
        let name = "generated samples against data".to_string();
        let limits = "warn at a p-value of 0.01 or less, or if the classifier is right in 55 % and four standard errors; fail if the distance beyond \
                      chance is above 0.02 as well, or the classifier right in 65 %"
            .into();
        let Some(found) = found else {
            return Check {
                name,
                verdict: Verdict::Skipped,
                finding: "no samples were generated".into(),
                meaning: "nothing to compare.".into(),
                limits,
            };
        };
        let beyond = found.coefficient - found.by_chance;
        let rare = found.p_value <= RARE;
        let right = found.told_apart;
        let seen = right.mean - 0.5 > SIGNIFICANT * right.error;
        let verdict = if (rare && beyond > 0.02) || (seen && right.mean > 0.65) {
            Verdict::Fail
        } else if rare || (seen && right.mean > 0.55) {
            Verdict::Warn
        } else {
            Verdict::Pass
        };
        Check {
            name,
            verdict,
            finding: format!(
                "energy distance of {} points each: {:.4} (by chance {:.4}), p-value {:.3}; a classifier tells {:.1} % of unseen points apart (by \
                 chance 50 ± {:.1})",
                found.points,
                found.coefficient,
                found.by_chance,
                found.p_value,
                100.0 * right.mean,
                100.0 * right.error
            ),
            meaning: match verdict {
                Verdict::Pass => {
                    "with this many points, generated samples cannot be told from data.".into()
                }
                Verdict::Warn => format!(
                    "generated samples differ from the data by little, but measurably: {}, or take more steps when sampling.",
                    remedy.further()
                ),
                _ => format!(
                    "generated samples are not like the data, so the score is not right: {}.",
                    remedy.further()
                ),
            },
            limits,
        }
    }
}

/// Turns and scales both samples so that the rows of `by` have unit covariance. Few rows do not determine one: its correlations are shrunk.
fn whiten(by: &[f64], dim: usize, samples: [&mut Vec<f64>; 2]) {
    let rows: Vec<&[f64]> = by.chunks_exact(dim).collect();
    let (mean, mut matrix) = covariance(&rows, dim);
    let shrink = dim as f64 / (dim as f64 + 10.0 * rows.len() as f64);
    let size = (0..dim).map(|i| matrix[i * dim + i]).sum::<f64>() / dim as f64;
    for i in 0..dim {
        for j in 0..i {
            matrix[i * dim + j] *= 1.0 - shrink;
            matrix[j * dim + i] *= 1.0 - shrink;
        }
        // A column that never changes, or one that follows from others, still has a width.
        matrix[i * dim + i] += 1e-12 * size + f64::MIN_POSITIVE;
    }
    let Some(factor) = cholesky(&matrix, dim) else {
        return;
    };
    for sample in samples {
        for row in sample.chunks_exact_mut(dim) {
            row.iter_mut().zip(&mean).for_each(|(x, m)| *x -= m);
            solve_lower(&factor, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normals(n: usize, shift: f64, seed: u64) -> Vec<f64> {
        let mut out = vec![0.0; 2 * n];
        Stream::new(seed, Purpose::Test, 0, 0).fill_normal_f64(&mut out);
        out.iter_mut().step_by(2).for_each(|x| *x += shift);
        out
    }

    #[test]
    fn follows_the_definition() {
        let (a, b) = ([0.0, 2.0], [1.0, 5.0]);
        let found = TwoSample::between(&a, &b, 1, 0).unwrap();
        // Mean |X - Y| = (1 + 5 + 1 + 3)/4 = 2.5, |X - X'| = 4/4 = 1, |Y - Y'| = 8/4 = 2: E^2 = 5 - 3 = 2, H = 2/5.
        assert!((found.coefficient - 0.4).abs() < 1e-6);
        assert!(TwoSample::between(&a, &b[..1], 1, 0).is_err());
    }

    #[test]
    fn equal_laws_pass_and_different_ones_do_not() {
        // p-values of equal laws are uniform: that all of 20 are above 0.01 has probability 0.82, and it holds for these seeds;
        // their mean is 1/2 with standard deviation 0.29/sqrt(20) = 0.065.
        let p: Vec<f64> = (0..20)
            .map(|seed| {
                let (a, b) = (normals(60, 0.0, 2 * seed), normals(60, 0.0, 2 * seed + 1));
                TwoSample::between(&a, &b, 2, seed).unwrap().p_value
            })
            .collect();
        let mean = p.iter().sum::<f64>() / 20.0;
        assert!((mean - 0.5).abs() < 4.0 * 0.065, "{p:?}");
        let found = TwoSample::between(&normals(200, 0.0, 1), &normals(200, 0.7, 2), 2, 0).unwrap();
        assert_eq!(found.p_value, 0.002);
        assert!(found.coefficient > 10.0 * found.by_chance);
    }

    /// A bond of 1.33 ± 0.03 beside a wide column, and samples whose bond is 6.2 ± 3.3: whitening makes the bond the largest difference there is.
    #[test]
    fn a_narrow_column_counts_as_much_as_a_wide_one() {
        let sample = |bond: f64, width: f64, seed: u64| {
            let mut rows = normals(300, 0.0, seed);
            for row in rows.chunks_exact_mut(2) {
                row[0] *= 500.0;
                row[1] = bond + width * row[1];
            }
            rows
        };
        let (mut data, by) = (sample(1.33, 0.03, 1), sample(1.33, 0.03, 2));
        let mut generated = sample(6.2, 3.3, 3);
        let plain = TwoSample::between(&data, &generated, 2, 0).unwrap();
        assert!(plain.p_value > RARE);
        whiten(&by, 2, [&mut data, &mut generated]);
        let found = TwoSample::between(&data, &generated, 2, 0).unwrap();
        assert!(found.p_value < RARE && found.coefficient > 0.5, "{found:?}");
        assert!(found.told_apart.mean > 0.8, "{found:?}");
    }
}
