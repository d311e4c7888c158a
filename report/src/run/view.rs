//! How points become pictures: two columns, or two principal axes, of the user's coordinates.

use crate::axis::Axis;
use crate::scatter::axis_of;
use diffclf::energy::Kind;
use diffclf::model::Content;
use diffclf_run::judging::Judging;
use diffclf_run::questions::names;

/// Sweeps of the power iteration; pictures need no digits beyond the first two.
const SWEEPS: usize = 200;

/// The axis of a column: a whole period where it has one, else around the values.
pub fn axis_of_column(content: &Content, column: usize, values: impl Iterator<Item = f64>) -> Axis {
    let label = name_of(content, column);
    match content.standardisation.kind(column) {
        Kind::Periodic { low, period } => Axis::linear(&label, low, low + period),
        _ => axis_of(&label, values),
    }
}

/// The name of a column, or its number.
pub fn name_of(content: &Content, column: usize) -> String {
    let name = names(content).get(column);
    name.cloned().unwrap_or_else(|| format!("column {column}"))
}

/// Two directions.
pub struct View {
    /// Subtracted first.
    origin: Vec<f64>,
    /// Horizontal and vertical direction.
    directions: [Vec<f64>; 2],
    /// What the axes show.
    pub labels: [String; 2],
    /// The columns that are seen, if they are columns.
    pub columns: Option<[usize; 2]>,
    /// The whole space is seen: data in the plane, in their own columns.
    pub complete: bool,
}

impl View {
    /// The columns asked for; else the columns of data in one or two dimensions, or the principal axes of the rows.
    pub fn new(content: &Content, judging: Option<&Judging>, pair: Option<[usize; 2]>) -> Self {
        let dim = content.spec.dim;
        let unit = |k: usize| {
            let mut direction = vec![0.0; content.columns()];
            direction[k.min(content.columns() - 1)] = 1.0;
            // Of particles without their centre: the column of rows whose centre is zero.
            match content.spec.subspace() {
                Some(subspace) => subspace.rows_inward(&direction),
                None => direction,
            }
        };
        let rows = judging.map(|judging| {
            let mut rows = judging.rows().start.to_vec();
            content.standardisation.to_data(&mut rows);
            rows
        });
        match (pair, rows) {
            (None, Some(rows)) if dim > 2 => {
                let (mean, covariance) = moments(&rows, dim);
                let total: f64 = (0..dim).map(|i| covariance[i * dim + i]).sum();
                let first = principal(&covariance, dim, None);
                let second = principal(&covariance, dim, Some(&first));
                let labels = [(1, &first), (2, &second)].map(|(k, axis)| {
                    let share = 100.0 * quadratic(&covariance, dim, axis) / total;
                    format!("principal axis {k} ({share:.0} % of variance)")
                });
                Self {
                    origin: mean,
                    directions: [first, second],
                    labels,
                    columns: None,
                    complete: false,
                }
            }
            (pair, _) => {
                let pair = pair.unwrap_or([0, 1]);
                Self {
                    origin: vec![0.0; dim],
                    directions: pair.map(unit),
                    labels: pair.map(|k| name_of(content, k)),
                    columns: (!content.spec.without_centre).then_some(pair),
                    complete: dim == 2 && pair == [0, 1] && !content.spec.without_centre,
                }
            }
        }
    }

    /// The axes that hold these points.
    pub fn axes(&self, content: &Content, points: &[(f64, f64)]) -> [Axis; 2] {
        let along = |k: usize| points.iter().map(move |p| if k == 0 { p.0 } else { p.1 });
        [0, 1].map(|k| match self.columns {
            Some(columns) if columns[k] < content.spec.dim => {
                axis_of_column(content, columns[k], along(k))
            }
            _ => axis_of(&self.labels[k], along(k)),
        })
    }

    /// Rows of the user's coordinates as points of the picture.
    pub fn project(&self, rows: &[f64]) -> Vec<(f64, f64)> {
        let along = |row: &[f64], direction: &[f64]| {
            let parts = row.iter().zip(&self.origin).zip(direction);
            parts.map(|((x, o), d)| (x - o) * d).sum()
        };
        rows.chunks_exact(self.origin.len())
            .map(|row| {
                (
                    along(row, &self.directions[0]),
                    along(row, &self.directions[1]),
                )
            })
            .collect()
    }
}

fn moments(rows: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let n = (rows.len() / dim).max(1) as f64;
    let mut mean = vec![0.0; dim];
    for row in rows.chunks_exact(dim) {
        mean.iter_mut().zip(row).for_each(|(m, x)| *m += x / n);
    }
    let mut covariance = vec![0.0; dim * dim];
    for row in rows.chunks_exact(dim) {
        for i in 0..dim {
            for j in 0..dim {
                covariance[i * dim + j] += (row[i] - mean[i]) * (row[j] - mean[j]) / n;
            }
        }
    }
    (mean, covariance)
}

fn quadratic(matrix: &[f64], dim: usize, x: &[f64]) -> f64 {
    (0..dim)
        .map(|i| {
            (0..dim)
                .map(|j| x[i] * matrix[i * dim + j] * x[j])
                .sum::<f64>()
        })
        .sum()
}

/// The direction of largest variance among those at right angles to `known`, by power iteration.
fn principal(covariance: &[f64], dim: usize, known: Option<&[f64]>) -> Vec<f64> {
    // Not a symmetric start: it must not stand at right angles to the axis that is sought.
    let mut x: Vec<f64> = (0..dim)
        .map(|i| 1.0 + 0.37 * (i as f64 * 1.7).sin())
        .collect();
    for _ in 0..SWEEPS {
        let mut y: Vec<f64> = (0..dim)
            .map(|i| (0..dim).map(|j| covariance[i * dim + j] * x[j]).sum())
            .collect();
        if let Some(known) = known {
            let along: f64 = y.iter().zip(known).map(|(a, b)| a * b).sum();
            y.iter_mut().zip(known).for_each(|(a, b)| *a -= along * b);
        }
        let norm = y.iter().map(|a| a * a).sum::<f64>().sqrt();
        if norm == 0.0 {
            break;
        }
        x = y.iter().map(|a| a / norm).collect();
    }
    // The larger entries point upwards, so that pictures of two runs are alike.
    let sign = x
        .iter()
        .copied()
        .fold(0.0, |m: f64, a| if a.abs() > m.abs() { a } else { m });
    x.iter().map(|a| a * sign.signum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_axes_of_a_stretched_cloud() {
        // Variances 9 and 4 along turned axes, 0.25 along the third.
        let rows: Vec<f64> = [
            [3.0, 3.0, 0.0],
            [-3.0, -3.0, 0.0],
            [2.0, -2.0, 0.0],
            [-2.0, 2.0, 0.0],
            [0.0, 0.0, 0.5],
            [0.0, 0.0, -0.5],
        ]
        .concat();
        let (mean, covariance) = moments(&rows, 3);
        assert!(mean.iter().all(|m| m.abs() < 1e-12));
        let first = principal(&covariance, 3, None);
        let second = principal(&covariance, 3, Some(&first));
        let half = 0.5f64.sqrt();
        let close = |a: &[f64], b: [f64; 3]| {
            let dot: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
            assert!((dot.abs() - 1.0).abs() < 1e-9, "{a:?}");
        };
        close(&first, [half, half, 0.0]);
        close(&second, [half, -half, 0.0]);
        assert!((quadratic(&covariance, 3, &first) - 6.0).abs() < 1e-9);
    }
}
