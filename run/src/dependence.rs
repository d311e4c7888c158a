//! Columns that are functions of others: their rows lie on a surface, where no density is.

use crate::data::DataSet;
use crate::error::Result;

/// Columns up to which sums are looked for: the work grows with their square.
const MOST_COLUMNS: usize = 256;
/// Share of a column's variance that a sum of others leaves open, below which the column is that sum.
const OPEN: f64 = 1e-6;
/// Rows from which neighbours along one column are close enough to tell a curve from a cloud.
const FEWEST_ROWS: usize = 1000;
/// The same share for neighbours along one other column, whose distance along a curve enters too.
const OPEN_TO_NEIGHBOURS: f64 = 1e-5;

/// A column that adds nothing to those it follows from; columns are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// A weighted sum of columns before it, and a constant.
    Sum {
        /// The column.
        column: usize,
    },
    /// A function of one other column.
    Function {
        /// The column.
        column: usize,
        /// The other.
        of: usize,
    },
}

impl DataSet {
    /// The first column that is a function of others, if rows from all over the table say that there is one.
    pub fn dependence(&self) -> Result<Option<Dependence>> {
        let (sample, dim) = self.sample()?;
        Ok(dependence(&sample, dim))
    }
}

fn dependence(sample: &[f64], dim: usize) -> Option<Dependence> {
    let rows = sample.len() / dim;
    if !(2..=MOST_COLUMNS).contains(&dim) || rows <= 2 * dim {
        return None;
    }
    let columns: Vec<Vec<f64>> = (0..dim).filter_map(|k| unit(sample, dim, k)).collect();
    // A constant is a function of anything; it is refused elsewhere, or was meant.
    if columns.len() < dim {
        return None;
    }
    let sum = sums(&columns).map(|column| Dependence::Sum { column });
    sum.or_else(|| functions(&columns))
}

/// A column with mean 0 and variance 1; none if it does not vary.
fn unit(sample: &[f64], dim: usize, column: usize) -> Option<Vec<f64>> {
    let mut values: Vec<f64> = sample.iter().skip(column).step_by(dim).copied().collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter_mut().for_each(|x| *x -= mean);
    let std = (values.iter().map(|x| x * x).sum::<f64>() / count).sqrt();
    values.iter_mut().for_each(|x| *x /= std);
    (std > 0.0 && std.is_finite()).then_some(values)
}

/// The first column that those before it leave nothing of: the Cholesky factor of the correlations has a zero on its diagonal there.
fn sums(columns: &[Vec<f64>]) -> Option<usize> {
    let count = columns[0].len() as f64;
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(columns.len());
    for (j, column) in columns.iter().enumerate() {
        let mut row = Vec::with_capacity(j + 1);
        for (k, before) in factor.iter().enumerate() {
            let inner: f64 = column.iter().zip(&columns[k]).map(|(a, b)| a * b).sum();
            let known: f64 = row
                .iter()
                .zip(before)
                .map(|(a, b): (&f64, &f64)| a * b)
                .sum();
            row.push((inner / count - known) / before[k]);
        }
        let open = 1.0 - row.iter().map(|x: &f64| x * x).sum::<f64>();
        if open < OPEN {
            return Some(j);
        }
        row.push(open.sqrt());
        factor.push(row);
    }
    None
}

/// The first column that hardly changes between neighbours along another one. For independent columns the median of half the squared
/// change is 0.45 of the variance. Columns of few values stand still between neighbours for another reason.
fn functions(columns: &[Vec<f64>]) -> Option<Dependence> {
    let rows = columns[0].len();
    if rows < FEWEST_ROWS {
        return None;
    }
    let many_valued = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        2 * sorted.len() > rows
    };
    let candidates: Vec<usize> = (0..columns.len())
        .filter(|k| many_valued(&columns[*k]))
        .collect();
    let mut order: Vec<usize> = (0..rows).collect();
    for &of in &candidates {
        order.sort_by(|a, b| columns[of][*a].total_cmp(&columns[of][*b]));
        for &column in candidates.iter().filter(|column| **column != of) {
            let values = &columns[column];
            let pairs = order.windows(2);
            let mut changes: Vec<f64> = pairs
                .map(|pair| 0.5 * (values[pair[1]] - values[pair[0]]).powi(2))
                .collect();
            let middle = changes.len() / 2;
            let (_, median, _) = changes.select_nth_unstable_by(middle, f64::total_cmp);
            if *median < OPEN_TO_NEIGHBOURS {
                return Some(Dependence::Function { column, of });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::rng::{Purpose, Stream};

    fn rows(count: usize, last: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let mut stream = Stream::new(7, Purpose::Shown, 0, 0);
        let mut normal = || {
            let (a, b) = (stream.uniform(), stream.uniform());
            (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        };
        let row = |_| {
            let (x, y, noise) = (1e4 + 3.0 * normal(), normal(), normal());
            [x, y, last(x, y, noise)]
        };
        (0..count).flat_map(row).collect()
    }

    #[test]
    fn sums_and_functions_are_found_and_clouds_are_not() {
        let found = |count, last: fn(f64, f64, f64) -> f64| dependence(&rows(count, last), 3);
        let sum = Some(Dependence::Sum { column: 2 });
        assert_eq!(found(200, |x, y, _| 2.0 * x - 0.1 * y + 5.0), sum);
        assert_eq!(found(2000, |x, _, _| x), sum);
        // Not a sum, and seen from either side where it can be turned round.
        let curve = found(2000, |_, y, _| y.powi(3) + y);
        assert_eq!(curve, Some(Dependence::Function { column: 2, of: 1 }));
        let curve = found(2000, |_, y, _| (2.0 * y).sin());
        assert_eq!(curve, Some(Dependence::Function { column: 2, of: 1 }));
        // Two per cent of noise are a density; so are steps, which are named by themselves.
        assert_eq!(found(2000, |x, _, noise| x + 0.06 * noise), None);
        assert_eq!(found(2000, |_, y, noise| y * y + 0.05 * noise), None);
        assert_eq!(found(2000, |_, _, noise| f64::from(noise > 2.0)), None);
        assert_eq!(found(2000, |_, _, noise| noise), None);
        // Fewer rows than tell.
        assert_eq!(found(6, |x, _, _| x), None);
    }
}
