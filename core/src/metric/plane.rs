//! Points in the plane of two observables: their histogram and the free energy of it.

use super::Estimate;
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = crate::citation::OURS;

/// Blocks of the rows, in their order, by which errors are told: dependent rows stand together.
const BLOCKS: usize = 16;

/// Rows of two numbers.
#[derive(Debug, Clone, Copy)]
pub struct Plane<'a> {
    pub(super) points: &'a [f64],
}

/// The free energy of each cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Surface {
    /// Cells along each axis.
    pub bins: usize,
    /// x from and to, y from and to.
    pub limits: [f64; 4],
    /// `-ln p` in kT, the lowest 0, infinite where there is no point; y is the faster index.
    pub values: Vec<f64>,
    /// One standard deviation; infinite where there is no point.
    pub errors: Vec<f64>,
}

impl<'a> Plane<'a> {
    /// Rows one after the other; refuses numbers that are none.
    pub fn new(points: &'a [f64]) -> Result<Self> {
        if points.len() < 4 || !points.len().is_multiple_of(2) {
            return Err(Error::Shape {
                what: "points in the plane".into(),
                found: format!("{} numbers", points.len()),
                expected: "at least two rows of two".into(),
            });
        }
        if let Some(at) = points.iter().position(|x| !x.is_finite()) {
            return Err(Error::Value {
                name: "point in the plane",
                found: format!("{} in row {}", points[at], at / 2),
                expected: "finite numbers; leave out chains that are lost".into(),
            });
        }
        Ok(Self { points })
    }

    /// Number of points.
    pub fn rows(&self) -> usize {
        self.points.len() / 2
    }

    /// The range of both samples: x from and to, y from and to.
    pub fn range_with(&self, other: &Plane<'_>) -> [f64; 4] {
        let mut limits = [
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        for point in self
            .points
            .chunks_exact(2)
            .chain(other.points.chunks_exact(2))
        {
            for axis in 0..2 {
                limits[2 * axis] = limits[2 * axis].min(point[axis]);
                limits[2 * axis + 1] = limits[2 * axis + 1].max(point[axis]);
            }
        }
        limits
    }

    pub(super) fn check_limits(limits: [f64; 4]) -> Result<()> {
        let [x0, x1, y0, y1] = limits;
        if limits.iter().all(|x| x.is_finite()) && x0 < x1 && y0 < y1 {
            return Ok(());
        }
        Err(Error::Value {
            name: "limits of the plane",
            found: format!("{limits:?}"),
            expected: "x from and to, y from and to, each from below to".into(),
        })
    }

    /// Share of the points in each of `bins` by `bins` cells, of those within the limits; the upper edges belong to the last cells. As
    /// `numpy.histogram2d`, normalised.
    pub fn shares(&self, bins: usize, limits: [f64; 4]) -> Result<Vec<f64>> {
        let mut counts = self.counts(bins, limits)?;
        let total: f64 = counts.iter().sum();
        if total == 0.0 {
            return Err(Error::Value {
                name: "points within the limits",
                found: "0".into(),
                expected: format!("some of {} points between {limits:?}", self.rows()),
            });
        }
        counts.iter_mut().for_each(|count| *count /= total);
        Ok(counts)
    }

    fn counts(&self, bins: usize, limits: [f64; 4]) -> Result<Vec<f64>> {
        Self::check_limits(limits)?;
        if bins == 0 || bins > 4096 {
            return Err(Error::Value {
                name: "cells along an axis",
                found: bins.to_string(),
                expected: "from 1 to 4096".into(),
            });
        }
        let place = |x: f64, low: f64, high: f64| {
            let cell = (x - low) / (high - low) * bins as f64;
            (x >= low && x <= high).then(|| (cell as usize).min(bins - 1))
        };
        let mut counts = vec![0.0; bins * bins];
        for point in self.points.chunks_exact(2) {
            let i = place(point[0], limits[0], limits[1]);
            let j = place(point[1], limits[2], limits[3]);
            if let (Some(i), Some(j)) = (i, j) {
                counts[i * bins + j] += 1.0;
            }
        }
        Ok(counts)
    }

    /// The free energy surface. Errors are those of the means of 16 blocks of rows in their order, so that they hold for rows of a few
    /// long chains, one after the other, as well as for independent ones.
    pub fn surface(&self, bins: usize, limits: [f64; 4]) -> Result<Surface> {
        let shares = self.shares(bins, limits)?;
        let blocks = BLOCKS.min(self.rows() / 2);
        let mut parts = Vec::with_capacity(blocks);
        for k in 0..blocks {
            let (first, end) = (k * self.rows() / blocks, (k + 1) * self.rows() / blocks);
            let part = Plane {
                points: &self.points[2 * first..2 * end],
            };
            let counts = part.counts(bins, limits)?;
            parts.push((counts, (end - first) as f64));
        }
        let highest = shares.iter().fold(0.0_f64, |m, p| m.max(*p));
        let mut surface = Surface {
            bins,
            limits,
            values: Vec::with_capacity(shares.len()),
            errors: Vec::with_capacity(shares.len()),
        };
        let mut column = vec![0.0; blocks];
        for (cell, share) in shares.iter().enumerate() {
            for (out, (counts, rows)) in column.iter_mut().zip(&parts) {
                *out = counts[cell] / rows;
            }
            surface.values.push((highest / share).ln());
            let found = Estimate::of(&column);
            surface.errors.push(match *share > 0.0 {
                true => found.error / found.mean,
                false => f64::INFINITY,
            });
        }
        Ok(surface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    #[test]
    fn the_surface_of_a_gaussian_has_honest_errors() {
        // F = (x^2 + y^2 / 0.25) / 2 up to a constant; cells of 0.2 by 0.1 are small against the widths 1 and 0.5.
        let mut stream = Stream::new(3, Purpose::Test, 0, 0);
        let points: Vec<f64> = (0..200_000)
            .flat_map(|_| [stream.normal(), 0.5 * stream.normal()])
            .collect();
        let plane = Plane::new(&points).unwrap();
        let surface = plane.surface(20, [-2.0, 2.0, -1.0, 1.0]).unwrap();
        let exact = |cell: usize| {
            let (x, y) = (
                (cell / 20) as f64 * 0.2 - 1.9,
                (cell % 20) as f64 * 0.1 - 0.95,
            );
            0.5 * (x * x + 4.0 * y * y)
        };
        let offset: f64 = (0..400).map(|c| surface.values[c] - exact(c)).sum::<f64>() / 400.0;
        let mut squares = 0.0;
        for cell in 0..400 {
            let off = (surface.values[cell] - exact(cell) - offset) / surface.errors[cell];
            squares += off * off / 400.0;
        }
        // Student's variance for 16 blocks is 15/13; the curvature within a cell adds little. The mean of 400 squares has a spread of
        // about 0.1.
        assert!((0.7..1.7).contains(&squares), "{squares}");
        let empty = plane.surface(4, [50.0, 60.0, 0.0, 1.0]);
        assert!(empty.unwrap_err().to_string().contains("within the limits"));
        assert!(Plane::new(&[1.0, f64::NAN, 0.0, 0.0]).is_err());
        assert!(Plane::new(&[1.0, 2.0]).is_err());
    }

    #[test]
    fn cells_are_those_of_numpy() {
        // numpy.histogram2d([0, 1, 2, 2.5], [0, 1, 2, 0.5], bins=2, range=[[0, 2], [0, 2]]): the upper edge counts, what lies outside not.
        let points = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.5, 0.5];
        let shares = Plane::new(&points).unwrap().shares(2, [0.0, 2.0, 0.0, 2.0]);
        assert_eq!(shares.unwrap(), [1.0 / 3.0, 0.0, 0.0, 2.0 / 3.0]);
    }
}
