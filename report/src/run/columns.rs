//! Data in more than two columns: each column by itself and the pairs that hang together most, with densities of the model beside the data.

use super::Material;
use super::album::Album;
use super::film::HIGHEST;
use super::view::{axis_of_column, name_of};
use crate::axis::Axis;
use crate::curve::{Curve, Series};
use crate::heatmap::Heatmap;
use crate::page::Page;
use crate::scatter::Scatter;

/// Most columns that are shown by themselves.
const SINGLE: usize = 12;
/// Most pairs.
const PAIRS: usize = 3;
/// Draws of the learned density.
const DRAWS: usize = 40_000;
/// Bins of a column.
const BINS: usize = 50;
/// Bins of a pair's side.
const CELLS: usize = 40;
/// Points of a scatter plot.
const POINTS: usize = 1500;

/// Points with weights, in the user's coordinates.
struct Cloud {
    points: Vec<f64>,
    weights: Vec<f64>,
    dim: usize,
}

impl Cloud {
    fn column(&self, column: usize) -> impl Iterator<Item = f64> {
        self.points.iter().skip(column).step_by(self.dim).copied()
    }

    /// Share of the weight in each bin along these axes, divided by the volume of a bin.
    fn density(&self, axes: &[(usize, &Axis)], bins: usize) -> Vec<f64> {
        let mut shares = vec![0.0; bins.pow(axes.len() as u32)];
        let total: f64 = self.weights.iter().sum();
        let volume: f64 = axes
            .iter()
            .map(|(_, axis)| axis.width() / bins as f64)
            .product();
        for (row, weight) in self.points.chunks_exact(self.dim).zip(&self.weights) {
            // The last axis is the slowest, as rows of a picture are.
            let bin = axes.iter().rev().try_fold(0, |bin, (column, axis)| {
                let place = axis.place(row[*column])?;
                let inside = (0.0..1.0).contains(&place);
                inside.then_some(bin * bins + (place * bins as f64) as usize)
            });
            if let Some(bin) = bin {
                shares[bin] += weight / (total * volume);
            }
        }
        shares
    }
}

/// The section; nothing for fewer columns, or rows that are no plain columns.
pub fn columns(material: &Material, page: &mut Page, album: &mut Album) {
    let content = &material.content;
    let dim = content.spec.dim;
    let Some(judging) = &material.judging else {
        return;
    };
    if dim < 3 || content.columns() != dim || content.view().is_some() {
        return;
    }
    let in_data = |mut points: Vec<f64>, weights: Option<Vec<f64>>| {
        content.standardisation.to_data(&mut points);
        Cloud {
            weights: weights.unwrap_or_else(|| vec![1.0; points.len() / dim]),
            points,
            dim,
        }
    };
    let data = in_data(judging.rows().start.to_vec(), None);
    let time = content.spec.grid.t_min();
    let (model, what) = match material.energy.weighted_draws(time, DRAWS, material.seed) {
        Some(found) => (
            in_data(found.points, Some(found.weights)),
            "learned density",
        ),
        None => match &judging.generated {
            Some(generated) => (in_data(generated.clone(), None), "generated samples"),
            None => return,
        },
    };
    page.heading("Column by column");
    let shown = dim.min(SINGLE);
    let all = if shown < dim {
        format!("The first {shown} of {dim} columns: ")
    } else {
        String::new()
    };
    page.paragraph(&format!(
        "{all}{what} beside a histogram of the data; then the pairs of columns that are most correlated, as free energies, -log p in kT above the lowest bin \
         (lines at 1, 2 and 4 kT)."
    ));
    let figures: Vec<_> = (0..shown)
        .map(|column| {
            let both = data.column(column).chain(model.column(column));
            let axis = axis_of_column(content, column, both);
            let name = name_of(content, column);
            let centre = |k: usize| axis.value((k as f64 + 0.5) / BINS as f64);
            let learned = model.density(&[(column, &axis)], BINS);
            let seen = data.density(&[(column, &axis)], BINS);
            let edges = seen.iter().enumerate().flat_map(|(k, height)| {
                [k, k + 1].map(|edge| (axis.value(edge as f64 / BINS as f64), *height))
            });
            let series = [
                Series {
                    name: what.into(),
                    points: (0..BINS).map(|k| (centre(k), learned[k])).collect(),
                },
                Series {
                    name: "data".into(),
                    points: edges.collect(),
                },
            ];
            let svg = Curve {
                alt: &format!("{name}: {what} and data"),
                x_label: &name,
                y_label: "density",
                x_logarithmic: false,
                y_logarithmic: false,
                series: &series,
            }
            .svg();
            album.figure(&format!("column-{column}"), svg, &name)
        })
        .collect();
    page.figures(&figures);
    for (i, j) in pairs(&data, shown) {
        let axis = |column: usize| {
            let both = data.column(column).chain(model.column(column));
            axis_of_column(content, column, both)
        };
        let (x, y) = (axis(i), axis(j));
        let densities = model.density(&[(i, &x), (j, &y)], CELLS);
        let largest = densities.iter().copied().fold(0.0, f64::max);
        let values: Vec<f64> = densities
            .iter()
            .map(|density| (largest / density).ln())
            .map(|value| if value < HIGHEST { value } else { f64::NAN })
            .collect();
        let names = format!("{} and {}", name_of(content, i), name_of(content, j));
        let heatmap = Heatmap {
            alt: &format!("free energy of {names}, {what}"),
            x: x.clone(),
            y: y.clone(),
            columns: CELLS,
            values: &values,
            colour: Axis::linear("−log p (kT)", 0.0, HIGHEST),
            contours: &[1.0, 2.0, 4.0],
        };
        let rows = data.weights.len();
        let count = rows.min(POINTS);
        let points: Vec<(f64, f64)> = (0..count)
            .map(|k| k * rows / count)
            .map(|row| (data.points[row * dim + i], data.points[row * dim + j]))
            .collect();
        let svg = Scatter {
            alt: &format!("{names} in {count} rows of the data"),
            x,
            y,
            points: &points,
            colour: 0,
        }
        .svg();
        page.figures(&[
            album.heatmap(
                &format!("pair-{i}-{j}"),
                &heatmap,
                &format!("{names}: {what}"),
            ),
            album.figure(
                &format!("pair-{i}-{j}-data"),
                svg,
                &format!("{names}: {count} rows of the data"),
            ),
        ]);
    }
}

/// The pairs of largest correlation, by its size.
fn pairs(data: &Cloud, columns: usize) -> Vec<(usize, usize)> {
    let rows = data.weights.len().max(1) as f64;
    let centred: Vec<Vec<f64>> = (0..columns)
        .map(|column| {
            let mean = data.column(column).sum::<f64>() / rows;
            let off: Vec<f64> = data.column(column).map(|x| x - mean).collect();
            let size = off.iter().map(|x| x * x).sum::<f64>().sqrt();
            off.into_iter()
                .map(|x| x / size.max(f64::MIN_POSITIVE))
                .collect()
        })
        .collect();
    let mut found: Vec<(f64, (usize, usize))> = Vec::new();
    for i in 0..columns {
        for j in i + 1..columns {
            let both = centred[i].iter().zip(&centred[j]);
            let correlation: f64 = both.map(|(a, b)| a * b).sum();
            found.push((correlation.abs(), (i, j)));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
        .into_iter()
        .take(PAIRS)
        .map(|(_, pair)| pair)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_sum_to_one_and_pairs_go_by_correlation() {
        // The third column follows the first; the second is a thing of its own.
        let points: Vec<f64> = (0..600)
            .flat_map(|k| {
                let x = f64::from(k % 20);
                [x, f64::from(k * k % 17), 3.0 - 0.5 * x]
            })
            .collect();
        let cloud = Cloud {
            weights: vec![2.0; 600],
            points,
            dim: 3,
        };
        assert_eq!(pairs(&cloud, 3)[0], (0, 2));
        let (x, y) = (Axis::linear("x", -0.5, 19.5), Axis::linear("y", -0.5, 16.5));
        let one = cloud.density(&[(0, &x)], 10);
        assert!((one.iter().sum::<f64>() * x.width() / 10.0 - 1.0).abs() < 1e-12);
        assert!(one.iter().all(|d| (d - 0.05).abs() < 1e-12));
        let two = cloud.density(&[(0, &x), (1, &y)], 5);
        let cell = x.width() * y.width() / 25.0;
        assert!((two.iter().sum::<f64>() * cell - 1.0).abs() < 1e-12);
        // The slow axis is the second: summed over the fast one it is the second column's own.
        let second = cloud.density(&[(1, &y)], 5);
        for (row, density) in two.chunks_exact(5).zip(second) {
            let sum = row.iter().sum::<f64>() * x.width() / 5.0;
            assert!((sum - density).abs() < 1e-12);
        }
    }
}
