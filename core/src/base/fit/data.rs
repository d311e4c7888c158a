//! Rows as a fit sees them: a subsample that fits in memory, columns brought to a common size, the smallest width each column
//! supports, and which rows are held out together.

use super::{FitSettings, PURPOSE, Rows};
use crate::rng::Stream;
use crate::weights::RowWeights;
use crate::{Error, Result};
use std::collections::HashMap;

/// Standard deviations below this share of a column's own are not resolved.
const FINEST: f64 = 1e-3;
/// The same for a column with one value that is repeated often.
const FINEST_BESIDE_AN_ATOM: f64 = 1e-2;
/// Columns whose scales differ by less keep their ratio, so that a few axes and one variance for the rest stay what they are.
const COMMON_SCALE: f64 = 10.0;
/// Rows up to which every row is held out once; beyond, one part is enough.
const CROSS_VALIDATED: usize = 5000;

/// The rows of a fit, standardised: `x = shift + scale z`.
pub(in crate::base) struct Data {
    pub dim: usize,
    /// Rows of z, one after the other, in the order of the file.
    pub rows: Vec<f64>,
    pub shift: Vec<f64>,
    pub scale: Vec<f64>,
    /// Period of each column in units of z, 0 for none; empty if none has one.
    pub periods: Vec<f64>,
    /// Variance added to each column.
    pub floor: Vec<f64>,
    /// Which part each row is held out with.
    pub fold: Vec<u8>,
    /// Parts that are held out in turn.
    pub folds: u8,
    /// Rows of a block that stays together.
    pub block: usize,
    /// Rows per distinct row.
    pub multiplicity: f64,
    /// Weights of the rows, which sum to the effective number of them; empty if all count the same.
    pub weights: Vec<f64>,
}

impl Data {
    /// Reads, checks and measures the rows.
    pub fn new(rows: &dyn Rows, settings: &FitSettings) -> Result<Data> {
        let (dim, total) = (rows.dim(), rows.rows());
        if dim == 0 || total == 0 {
            return Err(Error::EmptyArray {
                shape: format!("({total}, {dim})"),
            });
        }
        let count = total.min(settings.most_rows.max(1));
        let mut values = vec![0.0; count * dim];
        let mut weights = Vec::new();
        for (i, row) in values.chunks_exact_mut(dim).enumerate() {
            let at = pick(i, count, total, settings.seed);
            rows.copy_row(at, row);
            weights.extend(rows.weight(at));
            if let Some(j) = row.iter().position(|x| !x.is_finite()) {
                return Err(Error::Value {
                    name: "data of the base",
                    found: format!("{} in row {at}, column {j} (counted from 0)", row[j]),
                    expected: "finite numbers; leave such rows out".into(),
                });
            }
        }
        if !weights.is_empty() {
            weights = RowWeights::new(weights, count)?.values().to_vec();
        }
        if let Some(basis) = &settings.basis {
            turn(basis, dim, &mut values)?;
        }
        let columns: Vec<Column> = (0..dim).map(|j| Column::of(&values, dim, j)).collect();
        let mut data = Data {
            dim,
            shift: columns.iter().map(|c| c.centre).collect(),
            scale: scales(&columns),
            periods: vec![],
            floor: vec![],
            fold: vec![],
            folds: 0,
            block: 1,
            multiplicity: 1.0,
            weights,
            rows: values,
        };
        data.floor = columns
            .iter()
            .zip(&data.scale)
            .map(|(c, scale)| (c.finest(*scale) / scale).powi(2))
            .collect();
        for row in data.rows.chunks_exact_mut(dim) {
            for ((x, shift), scale) in row.iter_mut().zip(&data.shift).zip(&data.scale) {
                *x = (*x - shift) / scale;
            }
        }
        let scaled = settings.periods.iter().zip(&data.scale);
        data.periods = scaled.map(|(period, scale)| period / scale).collect();
        data.block = settings.block.unwrap_or_else(|| data.correlated());
        data.deal(settings);
        Ok(data)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len() / self.dim
    }

    /// The rows for which `keep` holds, as a matrix of their own.
    pub fn share(&self, keep: impl Fn(usize) -> bool) -> Vec<f64> {
        let rows = self.rows.chunks_exact(self.dim).enumerate();
        rows.filter(|(i, _)| keep(*i))
            .flat_map(|(_, row)| row.iter().copied())
            .collect()
    }

    /// The weights of the rows for which `keep` holds.
    pub fn share_weights(&self, keep: impl Fn(usize) -> bool) -> Vec<f64> {
        let weights = self.weights.iter().enumerate();
        weights.filter(|(i, _)| keep(*i)).map(|(_, w)| *w).collect()
    }

    /// Number of rows by their weights.
    pub fn effective(&self) -> f64 {
        match self.weights.as_slice() {
            [] => self.len() as f64,
            weights => weights.iter().sum(),
        }
    }

    /// Deals blocks of rows into parts at random; equal rows go with the first of them, else a copy would be judged by its twin.
    fn deal(&mut self, settings: &FitSettings) {
        let (n, block) = (self.len(), self.block.max(1));
        let all = n <= CROSS_VALIDATED;
        self.folds = if all { 5.min(n).max(1) as u8 } else { 1 };
        let share = settings.held_out.clamp(0.01, 0.5);
        let mut first: HashMap<Vec<u64>, u8> = HashMap::with_capacity(n);
        // Every round of five blocks is a permutation of the parts, so that all get as many rows.
        let mut order = [0u8, 1, 2, 3, 4];
        for (i, row) in self.rows.chunks_exact(self.dim).enumerate() {
            let number = i / block;
            let mut stream = Stream::new(settings.seed, PURPOSE, 1, (number / 5) as u64);
            for j in (1..5).rev() {
                order.swap(j, stream.below(j as u64 + 1) as usize);
            }
            let fold = if all {
                order[number % 5] % self.folds
            } else {
                let mut stream = Stream::new(settings.seed, PURPOSE, 2, number as u64);
                u8::from(stream.uniform() > share)
            };
            order = [0, 1, 2, 3, 4];
            // -0 and 0 are the same number.
            let key = row.iter().map(|x| (x + 0.0).to_bits()).collect();
            self.fold.push(*first.entry(key).or_insert(fold));
        }
        self.multiplicity = n as f64 / first.len() as f64;
    }

    /// Length of the blocks that should be held out together: four correlation times of the slowest column, at most a fiftieth of
    /// the rows (a sorted table looks like a very slow series).
    fn correlated(&self) -> usize {
        let (n, most) = (self.len(), self.len() / 50);
        if most < 2 {
            return 1;
        }
        let mut slowest = 0.0_f64;
        for j in 0..self.dim.min(32) {
            // Clipped, so that a few outliers do not hide the rest.
            let x: Vec<f64> = (0..n)
                .map(|i| self.rows[i * self.dim + j].clamp(-4.0, 4.0))
                .collect();
            let mean = x.iter().sum::<f64>() / n as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let correlation = |lag: usize| {
                let pairs = x.iter().zip(&x[lag..]);
                pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / variance
            };
            // Below four standard errors of white noise the rest of the sum is noise.
            let noise = 4.0 / (n as f64).sqrt();
            let mut time = 0.0;
            for lag in 1..=most {
                let c = correlation(lag);
                if c.is_nan() || c <= noise {
                    break;
                }
                time += c;
            }
            slowest = slowest.max(time);
        }
        ((4.0 * slowest).ceil() as usize).clamp(1, most)
    }
}

/// The i-th of `count` rows out of `total`: one from each of `count` equal stretches.
fn pick(i: usize, count: usize, total: usize, seed: u64) -> usize {
    if count == total {
        return i;
    }
    let (from, to) = (stretch(i, count, total), stretch(i + 1, count, total));
    from + Stream::new(seed, PURPOSE, 0, i as u64).below((to - from) as u64) as usize
}

fn stretch(i: usize, count: usize, total: usize) -> usize {
    (i as u128 * total as u128 / count as u128) as usize
}

fn turn(basis: &[f64], dim: usize, values: &mut [f64]) -> Result<()> {
    if basis.len() != dim * dim {
        return Err(Error::Shape {
            what: "basis of the fit".into(),
            found: format!("{} numbers", basis.len()),
            expected: format!("({dim}, {dim})"),
        });
    }
    let mut out = vec![0.0; dim];
    for row in values.chunks_exact_mut(dim) {
        crate::system::matrix::multiply(basis, row, &mut out);
        row.copy_from_slice(&out);
    }
    Ok(())
}

/// One scale per column, or one for all where they are alike. A constant column gets that of the others.
fn scales(columns: &[Column]) -> Vec<f64> {
    let varied = || columns.iter().map(|c| c.scale).filter(|s| *s > 0.0);
    let count = varied().count();
    if count == 0 {
        return vec![1.0; columns.len()];
    }
    let mean = (varied().map(f64::ln).sum::<f64>() / count as f64).exp();
    let (least, most) = varied().fold((f64::INFINITY, 0.0_f64), |(a, b), s| (a.min(s), b.max(s)));
    if most <= COMMON_SCALE * least {
        return vec![mean; columns.len()];
    }
    let own = |c: &Column| if c.scale > 0.0 { c.scale } else { mean };
    columns.iter().map(own).collect()
}

/// What one column looks like.
struct Column {
    centre: f64,
    /// Standard deviation without the outermost hundredth on each side; 0 if constant.
    scale: f64,
    /// Typical distance of neighbouring values, if most values are repeated.
    gap: f64,
    /// One value is repeated in more than a hundredth of the rows.
    atom: bool,
}

impl Column {
    fn of(values: &[f64], dim: usize, j: usize) -> Column {
        let mut sorted: Vec<f64> = values.iter().skip(j).step_by(dim).copied().collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let cut = n / 100;
        let (low, high) = (sorted[cut], sorted[n - 1 - cut]);
        let spread = |low: f64, high: f64| {
            let clipped = || sorted.iter().map(|x| x.clamp(low, high));
            let centre = clipped().sum::<f64>() / n as f64;
            let variance = clipped().map(|x| (x - centre).powi(2)).sum::<f64>() / n as f64;
            (centre, variance.sqrt())
        };
        let (mut centre, mut scale) = spread(low, high);
        if low == high {
            (centre, scale) = spread(sorted[0], sorted[n - 1]);
        }
        // A sum of equal numbers is rounded: what varies by rounding alone is constant.
        if sorted[0] == sorted[n - 1] {
            (centre, scale) = (sorted[0], 0.0);
        }
        let mut gaps: Vec<f64> = sorted
            .windows(2)
            .map(|w| w[1] - w[0])
            .filter(|gap| *gap > 0.0)
            .collect();
        let repeated = 2 * (gaps.len() + 1) <= n;
        gaps.sort_by(f64::total_cmp);
        let run = (n / 100).max(10);
        Column {
            centre,
            scale,
            gap: match gaps.get(gaps.len() / 2) {
                Some(gap) if repeated => *gap,
                _ => 0.0,
            },
            atom: n > run && sorted.windows(run + 1).any(|w| w[0] == w[run]),
        }
    }

    /// The smallest standard deviation to allow: for values on a grid that of a uniform step; a small share of the scale otherwise.
    fn finest(&self, scale: f64) -> f64 {
        let own = if self.scale > 0.0 { self.scale } else { scale };
        let share = if self.atom {
            FINEST_BESIDE_AN_ATOM
        } else {
            FINEST
        };
        (self.gap / 12.0_f64.sqrt()).max(share * own)
    }
}

#[cfg(test)]
mod tests {
    use super::super::RowSlice;
    use super::*;

    fn data(values: &[f64], dim: usize) -> Data {
        Data::new(&RowSlice::new(values, dim), &FitSettings::default()).unwrap()
    }

    fn noise(n: usize, step: u64) -> Vec<f64> {
        (0..n)
            .map(|i| Stream::new(1, crate::rng::Purpose::Test, step, i as u64).normal())
            .collect()
    }

    #[test]
    fn parts_are_even_and_copies_stay_together() {
        let rows = data(&noise(1000, 1), 1);
        assert_eq!((rows.folds, rows.block, rows.multiplicity), (5, 1, 1.0));
        for fold in 0..5 {
            assert_eq!(rows.fold.iter().filter(|f| **f == fold).count(), 200);
        }
        let fifty = noise(50, 2);
        let copies: Vec<f64> = (0..5000).map(|i| fifty[(i * 7) % 50]).collect();
        let rows = data(&copies, 1);
        assert!((rows.multiplicity - 100.0).abs() < 1e-9);
        for i in 50..5000 {
            let twin = (0..50).find(|k| copies[*k] == copies[i]).unwrap();
            assert_eq!(rows.fold[i], rows.fold[twin]);
        }
        // Many rows: one part of about a fifth.
        let rows = data(&noise(20_000, 3), 1);
        let held = rows.fold.iter().filter(|f| **f == 0).count();
        assert!(rows.folds == 1 && (3770..4230).contains(&held), "{held}");
    }

    #[test]
    fn series_are_held_out_in_blocks_and_sorted_tables_still_in_many() {
        let white = noise(4000, 4);
        let mut x = 0.0;
        let series: Vec<f64> = white
            .iter()
            .map(|z| {
                x = 0.9 * x + z;
                x
            })
            .collect();
        // The sum of 0.9^lag is 9: blocks of about 36 rows.
        let rows = data(&series, 1);
        assert!((20..=60).contains(&rows.block), "{}", rows.block);
        assert!(rows.fold[..rows.block].iter().all(|f| *f == rows.fold[0]));
        let sorted: Vec<f64> = (0..150).map(|i| f64::from(i / 50)).collect();
        assert!(data(&sorted, 1).block <= 3);
    }

    #[test]
    fn columns_say_what_they_resolve() {
        let n = 2000;
        let z = noise(n, 5);
        // A continuous column, integers, a constant, and one that is zero in every second row; scales from 1e-6 to 1e6.
        let values: Vec<f64> = (0..n)
            .flat_map(|i| {
                let zero = if i % 2 == 0 { 0.0 } else { 1e6 * z[i] };
                [1e-6 * z[i], (4.0 * z[i]).round(), 7.25, zero]
            })
            .collect();
        let rows = data(&values, 4);
        let width = |j: usize| rows.floor[j].sqrt() * rows.scale[j];
        assert!((width(0) / (FINEST * rows.scale[0]) - 1.0).abs() < 1e-9);
        assert!((width(1) - 1.0 / 12.0_f64.sqrt()).abs() < 1e-9);
        assert!(rows.scale[2] > 0.0 && rows.rows[2] == 0.0);
        assert!((width(3) / (FINEST_BESIDE_AN_ATOM * rows.scale[3]) - 1.0).abs() < 1e-9);
        assert!((0.9..1.1).contains(&(rows.scale[0] / 1e-6)));
    }

    #[test]
    fn a_subsample_keeps_the_order_and_covers_the_file() {
        let picks: Vec<usize> = (0..100).map(|i| pick(i, 100, 1037, 3)).collect();
        assert!(picks.windows(2).all(|w| w[0] < w[1]));
        assert!(picks[0] < 11 && picks[99] >= 1026);
        assert_eq!(pick(4, 9, 9, 1), 4);
        let settings = FitSettings {
            most_rows: 64,
            ..FitSettings::default()
        };
        let values = noise(1000, 6);
        let rows = Data::new(&RowSlice::new(&values, 2), &settings).unwrap();
        assert_eq!(rows.len(), 64);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let refused = |values: &[f64], dim| {
            let data = Data::new(&RowSlice::new(values, dim), &FitSettings::default());
            data.err().unwrap().to_string()
        };
        assert!(refused(&[1.0, 2.0, 3.0, f64::NAN], 2).contains("row 1, column 1"));
        assert!(refused(&[], 2).contains("empty"));
    }
}
