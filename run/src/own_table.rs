//! An energy of the user's own as a table: its values on a grid of one to three columns, cubic between them.
//!
//! Cubic convolution (Keys 1981): between grid points the energy is the cubic of the four nearest along each column, with continuous slopes,
//! and exact for parabolas. Around a circle the grid goes on with its beginning; beyond the others' ends the energy is that of the end plus a
//! wall of one kT for the first spacing, four for the second.

use crate::error::{Error, Result};
use crate::files::MappedNpy;
use std::path::Path;

/// Columns of a table at most: four neighbours along each.
const MOST_COLUMNS: usize = 3;
/// Points along a column at least.
const FEWEST_POINTS: usize = 4;
/// Grid points may be off by this share of the spacing, as numbers of a table are.
const UNEVEN: f64 = 1e-3;

/// The grid along a column.
#[derive(Debug)]
struct Axis {
    first: f64,
    spacing: f64,
    points: usize,
    around: bool,
}

/// An energy on a grid.
#[derive(Debug)]
pub struct OwnTable {
    axes: Vec<Axis>,
    /// The last column runs fastest.
    values: Vec<f64>,
}

impl OwnTable {
    /// Reads a table whose columns have these names and periods (0 where there is none); its last column, or that called `energy`, is the
    /// energy in kT. Without a line of names the columns stand in the model's order.
    pub fn read(path: &Path, names: &[String], periods: &[f64]) -> Result<Self> {
        let wrong = |words: String| Error::Usage(format!("{}: {words}", path.display()));
        let mapped = MappedNpy::open(path)?;
        let view = mapped.view()?;
        let dim = periods.len();
        if dim > MOST_COLUMNS {
            return Err(wrong(format!(
                "the model has {dim} columns, but a table of energies has a grid of at most {MOST_COLUMNS}; write the energy as a formula"
            )));
        }
        let given = mapped.names();
        let place = |name: &str| given.iter().position(|other| other == name);
        let places: Option<Vec<usize>> = match given.is_empty() {
            true => Some((0..=dim).collect()),
            false => {
                let own = (0..dim).map(|k| match names.get(k) {
                    Some(name) => place(name),
                    None => place(&format!("x{k}")),
                });
                own.chain([place("energy")]).collect()
            }
        };
        let places = places.filter(|places| places.iter().all(|place| *place < view.dim()));
        let Some(places) = places else {
            return Err(wrong(format!(
                "its columns are {}, expected those of the model and one called energy, in kT",
                match given.is_empty() {
                    true => format!("{} without names", view.dim()),
                    false => given.join(", "),
                }
            )));
        };
        let mut row = vec![0.0; view.dim()];
        let rows: Vec<Vec<f64>> = (0..view.rows())
            .map(|k| {
                view.copy_row_f64(k, &mut row);
                places.iter().map(|place| row[*place]).collect()
            })
            .collect();
        Self::of(&rows, periods).map_err(wrong)
    }

    /// The table of rows that hold a point and its energy, in any order.
    fn of(rows: &[Vec<f64>], periods: &[f64]) -> std::result::Result<Self, String> {
        let dim = periods.len();
        if rows.iter().flatten().any(|x| !x.is_finite()) {
            return Err("not all numbers are finite; give high energies as large numbers".into());
        }
        let axes: Vec<Axis> = (0..dim)
            .map(|k| Axis::of(k, rows.iter().map(|row| row[k]), periods[k]))
            .collect::<std::result::Result<_, _>>()?;
        let size = axes.iter().map(|axis| axis.points).product();
        let mut values = vec![f64::NAN; size];
        for row in rows {
            let at = axes.iter().zip(row).fold(0, |at, (axis, x)| {
                at * axis.points + ((x - axis.first) / axis.spacing).round() as usize
            });
            values[at] = row[dim];
        }
        if rows.len() != size || values.iter().any(|x| x.is_nan()) {
            return Err(format!(
                "{} rows, expected one for each of the {size} points of its grid",
                rows.len()
            ));
        }
        Ok(Self { axes, values })
    }

    /// The energy; its gradient goes to `gradient`.
    pub fn value_and_gradient(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let mut near = [Near::default(); MOST_COLUMNS];
        let mut wall = 0.0;
        for ((near, axis), (x, slope)) in near
            .iter_mut()
            .zip(&self.axes)
            .zip(x.iter().zip(&mut *gradient))
        {
            let beyond;
            (*near, beyond) = axis.near(*x);
            wall += beyond * beyond;
            *slope = 2.0 * beyond / axis.spacing;
        }
        let near = &near[..self.axes.len()];
        let digit = |corner: usize, k: usize| (corner >> (2 * k)) & 3;
        let mut energy = 0.0;
        for corner in 0..1 << (2 * near.len()) {
            let (mut at, mut weight) = (0, 1.0);
            for (k, (axis, near)) in self.axes.iter().zip(near).enumerate() {
                at = at * axis.points + near.places[digit(corner, k)];
                weight *= near.weights[digit(corner, k)];
            }
            let value = self.values[at];
            energy += weight * value;
            for (k, gradient) in gradient.iter_mut().enumerate() {
                let factors = near.iter().enumerate().map(|(j, near)| match j == k {
                    true => near.slopes[digit(corner, j)],
                    false => near.weights[digit(corner, j)],
                });
                *gradient += value * factors.product::<f64>();
            }
        }
        energy + wall
    }
}

/// The four grid points next to a number, their weights, and the slopes of these.
#[derive(Debug, Clone, Copy, Default)]
struct Near {
    places: [usize; 4],
    weights: [f64; 4],
    slopes: [f64; 4],
}

impl Axis {
    fn of(
        column: usize,
        values: impl Iterator<Item = f64>,
        period: f64,
    ) -> std::result::Result<Self, String> {
        let mut points: Vec<f64> = values.collect();
        points.sort_by(f64::total_cmp);
        let range = points.last().copied().unwrap_or(0.0) - points.first().copied().unwrap_or(0.0);
        points.dedup_by(|a, b| (*a - *b).abs() <= UNEVEN * 1e-3 * range);
        let count = points.len();
        if count < FEWEST_POINTS {
            return Err(format!(
                "column {column} (counted from 0) has {count} different values, expected a grid of at least {FEWEST_POINTS}"
            ));
        }
        let spacing = (points[count - 1] - points[0]) / (count - 1) as f64;
        let even =
            |k: usize| (points[k] - points[0] - k as f64 * spacing).abs() <= UNEVEN * spacing;
        if !(0..count).all(even) {
            return Err(format!(
                "the values of column {column} (counted from 0) are not equally far apart"
            ));
        }
        let around = period > 0.0;
        if around && (count as f64 * spacing - period).abs() > 10.0 * UNEVEN * period {
            return Err(format!(
                "column {column} (counted from 0) goes around a circle of {period}, but {count} points {spacing} apart do not"
            ));
        }
        Ok(Self {
            first: points[0],
            // Rounded numbers of a table must not leave a gap at the seam.
            spacing: if around {
                period / count as f64
            } else {
                spacing
            },
            points: count,
            around,
        })
    }

    /// What is next to a number, and by how many spacings it lies beyond the grid.
    fn near(&self, x: f64) -> (Near, f64) {
        let place = (x - self.first) / self.spacing;
        let last = (self.points - 1) as f64;
        let (inside, beyond) = match self.around {
            true => (place.rem_euclid(self.points as f64), 0.0),
            false => (place.clamp(0.0, last), place - place.clamp(0.0, last)),
        };
        let cell = (inside.floor() as usize).min(self.points - if self.around { 1 } else { 2 });
        let t = inside - cell as f64;
        let (t2, t3) = (t * t, t * t * t);
        let mut near = Near {
            places: [0; 4],
            weights: [
                -0.5 * t + t2 - 0.5 * t3,
                1.0 - 2.5 * t2 + 1.5 * t3,
                0.5 * t + 2.0 * t2 - 1.5 * t3,
                -0.5 * t2 + 0.5 * t3,
            ],
            slopes: [
                -0.5 + 2.0 * t - 1.5 * t2,
                -5.0 * t + 4.5 * t2,
                0.5 + 4.0 * t - 4.5 * t2,
                -t + 1.5 * t2,
            ],
        };
        for (k, place) in near.places.iter_mut().enumerate() {
            let wanted = (cell + k + self.points - 1) % self.points;
            *place = wanted;
        }
        if !self.around {
            // Beyond the ends a parabola through the last three: f(-1) = 3 f(0) - 3 f(1) + f(2).
            if cell == 0 {
                near.fold(0, [1, 2, 3]);
            }
            if cell + 2 == self.points {
                near.fold(3, [2, 1, 0]);
            }
            if beyond != 0.0 {
                near.slopes = [0.0; 4];
            }
        }
        near.slopes
            .iter_mut()
            .for_each(|slope| *slope /= self.spacing);
        (near, beyond)
    }
}

impl Near {
    /// Gives the weight of a point that is not there to the three next to it.
    fn fold(&mut self, absent: usize, to: [usize; 3]) {
        for (to, factor) in to.into_iter().zip([3.0, -3.0, 1.0]) {
            self.weights[to] += factor * self.weights[absent];
            self.slopes[to] += factor * self.slopes[absent];
        }
        (self.weights[absent], self.slopes[absent]) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{PI, TAU};

    fn rows(points: [usize; 2], energy: impl Fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
        let mut rows = Vec::new();
        for i in 0..points[0] {
            for j in 0..points[1] {
                let x = -PI + TAU * (i as f64 + 0.5) / points[0] as f64;
                let y = -1.0 + 3.0 * j as f64 / (points[1] - 1) as f64;
                rows.push(vec![x, y, energy(x, y)]);
            }
        }
        // The order of the rows says nothing.
        rows.reverse();
        rows
    }

    #[test]
    fn smooth_energies_come_back_with_their_slopes() {
        let energy = |x: f64, y: f64| 2.0 * (x - 0.4).cos() + 0.7 * y * y - 0.3 * y * x.sin();
        let table = OwnTable::of(&rows([72, 31], energy), &[TAU, 0.0]).unwrap();
        let mut gradient = [0.0; 2];
        for (x, y) in [
            (0.3, 0.2),
            (-3.1, -0.97),
            (3.1, 1.98),
            (9.0, 1.0),
            (-2.0, 2.0),
        ] {
            let found = table.value_and_gradient(&[x, y], &mut gradient);
            // Third order in the spacing of 0.087: 2 * 0.087^3 = 1.3e-3 at most.
            assert!((found - energy(x, y)).abs() < 1.3e-3, "{x} {y}: {found}");
            let h = 1e-5;
            let of = |x: f64, y: f64| table.value_and_gradient(&[x, y], &mut [0.0; 2]);
            let slope = (of(x + h, y) - of(x - h, y)) / (2.0 * h);
            assert!(
                (gradient[0] - slope).abs() < 1e-6,
                "{x} {y}: {gradient:?} {slope}"
            );
            if y < 2.0 {
                let slope = (of(x, y + h) - of(x, y - h)) / (2.0 * h);
                assert!(
                    (gradient[1] - slope).abs() < 1e-6,
                    "{x} {y}: {gradient:?} {slope}"
                );
            }
        }
        // The same point on both sides of the seam; a parabola exactly, up to the end; a wall beyond.
        let of = |x: f64, y: f64| table.value_and_gradient(&[x, y], &mut [0.0; 2]);
        assert!((of(-PI, 0.5) - of(PI, 0.5)).abs() < 1e-12);
        let parabola = OwnTable::of(&rows([8, 7], |_, y| y * y), &[0.0, 0.0]).unwrap();
        let found = parabola.value_and_gradient(&[0.1, 1.93], &mut gradient);
        assert!((found - 1.93 * 1.93).abs() < 1e-12 && (gradient[1] - 3.86).abs() < 1e-12);
        let found = parabola.value_and_gradient(&[0.1, 3.0], &mut gradient);
        // Two spacings of 0.5 beyond the end at 2.
        assert!(
            (found - 8.0).abs() < 1e-12 && (gradient[1] - 8.0).abs() < 1e-12,
            "{found} {gradient:?}"
        );
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        let of = |rows: &[Vec<f64>], periods: &[f64]| OwnTable::of(rows, periods).unwrap_err();
        let whole = rows([8, 5], |x, _| x);
        assert!(of(&whole[1..], &[TAU, 0.0]).contains("39 rows, expected one for each of the 40"));
        assert!(of(&whole, &[3.0, 0.0]).contains("goes around a circle of 3"));
        assert!(of(&rows([8, 2], |x, _| x), &[TAU, 0.0]).contains("2 different values"));
        let mut uneven = whole.clone();
        uneven.iter_mut().for_each(|row| row[1] = row[1].powi(3));
        assert!(of(&uneven, &[TAU, 0.0]).contains("column 1 (counted from 0) are not equally far"));
        let mut endless = whole;
        endless[3][2] = f64::INFINITY;
        assert!(of(&endless, &[TAU, 0.0]).contains("not all numbers are finite"));
    }
}
