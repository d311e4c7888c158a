//! The map from the data's coordinates to the model's, `x_model = scale^-1 (x - shift)`: the one place that knows it.
//!
//! A model learns standardised data, and noise is added to them about their shift: in the data's coordinates
//! `Y_t = shift + alpha (X_0 - shift) + beta (X_1 - shift) + scale gamma Z`, so that the map is the same at every time and a point at the
//! smallest time lies where its row does, however far from zero. In short `y_model = A (y - shift)`: points go by A, gradients of
//! log-densities back by its transpose, displacements and velocities back by its inverse, and
//! `log p(y) = log p_model(y_model) + log |det A|`.
//!
//! Columns of a [`Kind`] of their own are straightened before that, at every time alike: `y_model = A (u(y) - shift)`, and the log-density
//! gains `sum log du/dy`. A periodic column is counted from its shift, within half a period.

use serde::{Deserialize, Serialize};

use super::kind::nearest;
use super::{Kind, MOST_WHITENED, Prior, Scale};
use crate::system::{Covariance, GaussianMixture};
use crate::{Error, Result};

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinates {
    /// Subtracted first.
    pub shift: Vec<f64>,
    /// Divided by then; a matrix is solved with.
    pub scale: Scale,
    /// Kinds of the columns, straightened before both; none for columns of any numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
}

impl Coordinates {
    /// No change.
    pub fn identity(dim: usize) -> Coordinates {
        Coordinates {
            shift: vec![0.0; dim],
            scale: Scale::Common(1.0),
            kinds: Vec::new(),
        }
    }

    /// The same map for columns that are straightened already, and periodic ones that are not brought back: an affine one.
    pub fn straight(&self) -> Coordinates {
        Coordinates {
            kinds: Vec::new(),
            ..self.clone()
        }
    }

    /// Straightened rows, in place, as data.
    pub fn bend(&self, rows: &mut [f64]) {
        if self.kinds.is_empty() {
            return;
        }
        for row in rows.chunks_exact_mut(self.dim()) {
            for (x, kind) in row.iter_mut().zip(&self.kinds) {
                *x = kind.bend(*x);
            }
        }
    }

    /// The kind of a column.
    #[inline]
    pub fn kind(&self, column: usize) -> Kind {
        self.kinds.get(column).copied().unwrap_or_default()
    }

    /// Whether a column is straightened by a curve.
    pub fn is_curved(&self) -> bool {
        self.kinds.iter().any(Kind::is_curved)
    }

    /// The periods of the columns in the model's coordinates, 0 for those that have none; empty where none has one.
    pub fn model_periods(&self) -> Vec<f64> {
        if self.kinds.iter().all(|kind| kind.period().is_none()) {
            return Vec::new();
        }
        let period =
            |(i, kind): (usize, &Kind)| kind.period().unwrap_or(0.0) / self.scale.diagonal(i);
        self.kinds.iter().enumerate().map(period).collect()
    }

    /// Whether a row of data is one that the columns' kinds allow.
    pub fn holds(&self, row: &[f64]) -> bool {
        self.kinds.iter().zip(row).all(|(kind, x)| kind.holds(*x))
    }

    /// Dimension of a row.
    pub fn dim(&self) -> usize {
        self.shift.len()
    }

    /// Refuses a map that does not fit rows of `dim` numbers.
    pub fn validate(&self, dim: usize) -> Result<()> {
        let finite = self.shift.iter().all(|x| x.is_finite());
        let kinds = &self.kinds;
        let mixed = matches!(self.scale, Scale::Matrix(_));
        let sound = |kind: &Kind| kind.is_sound() && !(mixed && kind.period().is_some());
        if !(kinds.is_empty() || kinds.len() == dim && kinds.iter().all(sound)) {
            return Err(Error::Shape {
                what: "the kinds of the model's columns".into(),
                found: format!("{kinds:?}"),
                expected: format!(
                    "none, or one for each of {dim} columns: bounds in order, positive periods, and no period where a matrix mixes columns"
                ),
            });
        }
        if self.shift.len() == dim && finite && self.scale.fits(dim) {
            return Ok(());
        }
        Err(Error::Shape {
            what: "the model's standardisation".into(),
            found: format!("{} numbers, scale {:?}", self.shift.len(), self.scale),
            expected: format!("{dim} finite numbers and a positive scale, or one for each of them"),
        })
    }

    /// `-log |det A|`, the sum of the logarithms of all scales: what energies gain and log-densities lose in the data's
    /// coordinates, where no column is curved.
    pub fn log_volume(&self) -> f64 {
        self.scale.log_volume(self.dim())
    }

    /// The same at a point of the model's coordinates, curves included: `-log |det A| - sum log du/dx`.
    pub fn log_volume_at(&self, point: &[f64]) -> f64 {
        self.log_volume() - self.log_slope_at(point)
    }

    /// `sum log du/dx` at a point of the model's coordinates.
    pub fn log_slope_at(&self, point: &[f64]) -> f64 {
        if !self.is_curved() {
            return 0.0;
        }
        let mut u = point.to_vec();
        self.scale.multiply(&mut u);
        let straightened = u.iter().zip(&self.shift).zip(&self.kinds);
        straightened
            .map(|((u, shift), kind)| kind.log_slope(u + shift))
            .sum()
    }

    /// Rows of data or points at any time, in place, to the model's coordinates.
    pub fn to_model(&self, rows: &mut [f64]) {
        for row in rows.chunks_exact_mut(self.dim()) {
            for (i, (x, shift)) in row.iter_mut().zip(&self.shift).enumerate() {
                *x = self.off_shift(i, *x, *shift);
            }
            self.scale.solve(row);
        }
    }

    /// A value straightened and counted from its column's shift.
    #[inline]
    fn off_shift(&self, column: usize, x: f64, shift: f64) -> f64 {
        match self.kinds.get(column) {
            None => x - shift,
            Some(Kind::Periodic { period, .. }) => nearest(x - shift, *period),
            Some(kind) => kind.straighten(x) - shift,
        }
    }

    /// The same from the model's coordinates.
    pub fn to_data(&self, rows: &mut [f64]) {
        for row in rows.chunks_exact_mut(self.dim()) {
            self.scale.multiply(row);
            row.iter_mut().zip(&self.shift).for_each(|(x, s)| *x += s);
        }
        self.bend(rows);
    }

    /// A row of data to the model's coordinates, taken in double precision before it is rounded: data far from zero keep their
    /// digits. Allocates nothing.
    pub fn round_to_model(&self, row: impl Iterator<Item = f64>, out: &mut [f32]) {
        self.round_part_to_model(0, row, out);
    }

    /// The same for the columns from `first` on: a long row may come in pieces, but not one that a matrix mixes
    /// ([`MOST_WHITENED`](super::MOST_WHITENED)).
    pub fn round_part_to_model(
        &self,
        first: usize,
        part: impl Iterator<Item = f64>,
        out: &mut [f32],
    ) {
        let part = part.zip(&self.shift[first..]);
        // Every row of every step comes this way: nothing is asked of columns where none is of a kind of its own.
        if self.kinds.is_empty() {
            return self
                .scale
                .solve_part(first, part.map(|(x, shift)| x - shift), out);
        }
        let off_shift = part
            .enumerate()
            .map(|(i, (x, shift))| self.off_shift(first + i, x, *shift));
        self.scale.solve_part(first, off_shift, out);
    }

    /// The same for a row that is in single precision already.
    pub fn round_in_place(&self, row: &mut [f32]) {
        for (piece, out) in row.chunks_mut(MOST_WHITENED).enumerate() {
            let mut copy = [0f32; MOST_WHITENED];
            let copy = &mut copy[..out.len()];
            copy.copy_from_slice(out);
            let first = piece * MOST_WHITENED;
            self.round_part_to_model(first, copy.iter().map(|x| f64::from(*x)), out);
        }
    }

    fn each(&self, rows: &mut [f64], f: impl Fn(&Scale, &mut [f64])) {
        rows.chunks_exact_mut(self.dim())
            .for_each(|row| f(&self.scale, row));
    }

    /// Gradients in the model's coordinates, in place, to gradients in the data's: `A^T s`.
    pub fn gradients_to_data(&self, gradients: &mut [f64]) {
        self.each(gradients, Scale::solve_transposed);
    }

    /// Displacements of the data's coordinates, in place, in the model's: `A e`.
    pub fn displacements_to_model(&self, displacements: &mut [f64]) {
        self.each(displacements, Scale::solve);
    }

    /// Displacements and velocities of the model's coordinates, in place, in the data's: `A^-1 v`.
    pub fn displacements_to_data(&self, displacements: &mut [f64]) {
        self.each(displacements, Scale::multiply);
    }

    /// A mixture of the data's (straightened) coordinates in those of the model.
    pub fn mixture_to_model(&self, mixture: &GaussianMixture) -> Result<GaussianMixture> {
        match &self.scale {
            Scale::Common(scale) => mixture.rescaled(&self.shift, &[*scale]),
            Scale::Columns(scales) => mixture.rescaled(&self.shift, scales),
            Scale::Matrix(_) => {
                let (dim, count) = (self.dim(), mixture.components());
                let means = (0..count).flat_map(|k| mixture.component_mean(k));
                let mut means: Vec<f64> = means.copied().collect();
                self.to_model(&mut means);
                // S^-1 C S^-T: the rows of C by one side, then those of the transpose by the other.
                let mut covariances = Vec::with_capacity(count * dim * dim);
                for k in 0..count {
                    let mut matrix = mixture.component_covariance(k);
                    for _ in 0..2 {
                        self.displacements_to_model(&mut matrix);
                        transpose(&mut matrix, dim);
                    }
                    covariances.extend(matrix);
                }
                let weights = mixture.weights().to_vec();
                GaussianMixture::new(dim, weights, means, Covariance::Full(covariances))
            }
        }
    }

    /// A Gaussian of the model's coordinates in those of the data, straightened where columns are curved.
    pub fn prior_to_data(&self, prior: &Prior) -> Prior {
        let mut mean = prior.mean.clone();
        self.scale.multiply(&mut mean);
        mean.iter_mut().zip(&self.shift).for_each(|(x, s)| *x += s);
        Prior {
            mean,
            std: self.scale.times(&prior.std),
        }
    }
}

fn transpose(matrix: &mut [f64], dim: usize) {
    for i in 0..dim {
        for j in 0..i {
            matrix.swap(i * dim + j, j * dim + i);
        }
    }
}

/// Mean of each column and average variance of the columns: what the map is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Average variance of the columns.
    pub variance: f64,
}

impl Moments {
    /// Of both endpoints together, each with weight one half.
    pub fn pooled(self, other: Moments) -> Moments {
        let distance: f64 = self
            .mean
            .iter()
            .zip(&other.mean)
            .map(|(a, b)| (a - b).powi(2))
            .sum();
        let dim = self.mean.len() as f64;
        let mean = self.mean.iter().zip(&other.mean);
        Moments {
            mean: mean.map(|(a, b)| 0.5 * (a + b)).collect(),
            variance: 0.5 * (self.variance + other.variance) + 0.25 * distance / dim,
        }
    }

    /// About zero: of particles without their centre, which is zero whatever their number and names.
    pub fn about_zero(&self) -> Moments {
        let dim = self.mean.len();
        let square: f64 = self.mean.iter().map(|m| m * m).sum();
        Moments {
            mean: vec![0.0; dim],
            variance: self.variance + square / dim as f64,
        }
    }

    /// Of rows of particles that are not told apart: one mean for each axis of space, over all particles, and the average
    /// variance about it. A mean of its own for each particle would tell them apart, and a map made from it would turn equal
    /// distances into unequal ones.
    pub fn of_particles(&self, particles: usize) -> Result<Moments> {
        let dim = self.mean.len();
        if particles == 0 || !dim.is_multiple_of(particles) {
            return Err(Error::Value {
                name: "particles",
                found: particles.to_string(),
                expected: format!("a divisor of the dimension, {dim}"),
            });
        }
        let space = dim / particles;
        let mut axes = vec![0.0; space];
        for particle in self.mean.chunks_exact(space) {
            for (axis, mean) in axes.iter_mut().zip(particle) {
                *axis += mean / particles as f64;
            }
        }
        let mean: Vec<f64> = (0..dim).map(|column| axes[column % space]).collect();
        let both = self.mean.iter().zip(&mean);
        let between: f64 = both.map(|(a, b)| (a - b).powi(2)).sum();
        Ok(Moments {
            mean,
            variance: self.variance + between / dim as f64,
        })
    }

    /// The map that gives mean 0 and variance 1, with one scale for all columns; none where that is so already, up to rounding.
    pub fn coordinates(&self) -> Coordinates {
        let already =
            self.mean.iter().all(|m| m.abs() < 1e-9) && (self.variance - 1.0).abs() < 1e-9;
        if already {
            return Coordinates::identity(self.mean.len());
        }
        Coordinates {
            shift: self.mean.clone(),
            scale: Scale::Common(self.variance.sqrt()),
            kinds: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps() -> [Coordinates; 3] {
        let matrix = vec![vec![2.5], vec![-0.4, 0.3], vec![0.7, 1.1, 1.7]];
        [
            Scale::Common(2.5),
            Scale::Columns(vec![2.5, 0.3, 1.7]),
            Scale::Matrix(matrix),
        ]
        .map(|scale| Coordinates {
            shift: vec![5.0, -3.0, 0.4],
            scale,
            kinds: Vec::new(),
        })
    }

    #[test]
    fn rows_go_there_and_back() {
        let rows = [1.0, 2.0, -0.7, 4.0, -2.5, 0.1];
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-13);
        for map in maps() {
            let mut moved = rows;
            map.to_model(&mut moved);
            for (i, (x, moved)) in rows.iter().zip(moved).enumerate() {
                if !matches!(map.scale, Scale::Matrix(_)) {
                    assert_eq!(moved, (x - map.shift[i % 3]) / map.scale.diagonal(i % 3));
                }
            }
            let mut rounded = [0f32; 3];
            map.round_to_model(rows[3..].iter().copied(), &mut rounded);
            assert_eq!(
                rounded.to_vec(),
                moved[3..].iter().map(|x| *x as f32).collect::<Vec<_>>()
            );
            map.to_data(&mut moved);
            assert!(close(&moved, &rows));
            map.to_model(&mut moved);
            map.to_data(&mut moved);
            assert!(close(&moved, &rows));
            // A difference of points is a displacement.
            let (mut from, mut to) = (rows[..3].to_vec(), rows[3..].to_vec());
            let mut gap: Vec<f64> = to.iter().zip(&from).map(|(a, b)| a - b).collect();
            map.to_model(&mut from);
            map.to_model(&mut to);
            map.displacements_to_model(&mut gap);
            let model: Vec<f64> = to.iter().zip(&from).map(|(a, b)| a - b).collect();
            assert!(close(&gap, &model));
        }
    }

    /// Densities of mixtures of every kind, and of a Gaussian, lose exactly the volume.
    #[test]
    fn laws_keep_their_mass() {
        let full = [
            1.3, 0.2, -0.1, 0.2, 0.8, 0.3, -0.1, 0.3, 1.1, 0.5, 0.1, 0.0, 0.1, 0.9, -0.2, 0.0,
            -0.2, 1.6,
        ];
        let (means, weights) = (vec![4.0, -2.0, 0.5, 7.0, -5.0, 1.0], vec![2.0, 1.0]);
        for map in maps() {
            for covariance in [
                Covariance::Isotropic(vec![0.4, 1.3]),
                Covariance::Diagonal(vec![0.4, 1.3, 2.0, 0.7, 0.5, 0.9]),
                Covariance::Full(full.to_vec()),
            ] {
                let law =
                    GaussianMixture::new(3, weights.clone(), means.clone(), covariance).unwrap();
                let moved = map.mixture_to_model(&law).unwrap();
                let point = [5.5, -3.2, 0.9];
                let mut inside = point;
                map.to_model(&mut inside);
                let (there, here) = (moved.log_density(&inside), law.log_density(&point));
                assert!((there - map.log_volume() - here).abs() < 1e-11, "{map:?}");
            }
            let prior = Prior {
                mean: vec![0.1, -0.4, 0.8],
                std: Scale::Common(0.6),
            };
            let moved = map.prior_to_data(&prior);
            let point = [5.5, -3.2, 0.9];
            let mut inside = point;
            map.to_model(&mut inside);
            let there = prior.mixture().unwrap().log_density(&inside);
            let here = moved.mixture().unwrap().log_density(&point);
            assert!((there - map.log_volume() - here).abs() < 1e-12);
        }
    }

    #[test]
    fn files_hold_a_number_or_a_list() {
        let [common, columns, matrix] = maps();
        let text = |map: &Coordinates| serde_json::to_string(map).unwrap();
        assert_eq!(text(&common), r#"{"shift":[5.0,-3.0,0.4],"scale":2.5}"#);
        assert_eq!(
            text(&columns),
            r#"{"shift":[5.0,-3.0,0.4],"scale":[2.5,0.3,1.7]}"#
        );
        assert_eq!(
            text(&matrix),
            r#"{"shift":[5.0,-3.0,0.4],"scale":[[2.5],[-0.4,0.3],[0.7,1.1,1.7]]}"#
        );
        for map in maps() {
            assert_eq!(
                serde_json::from_str::<Coordinates>(&text(&map)).unwrap(),
                map
            );
            map.validate(3).unwrap();
            assert!(map.validate(2).is_err());
        }
        for scale in [
            Scale::Common(0.0),
            Scale::Common(f64::NAN),
            Scale::Columns(vec![1.0, 2.0]),
            Scale::Columns(vec![1.0, 2.0, -1.0]),
        ] {
            let map = Coordinates {
                scale,
                ..Coordinates::identity(3)
            };
            let message = map.validate(3).unwrap_err().to_string();
            assert!(message.contains("standardisation"), "{message}");
        }
    }

    #[test]
    fn pooled_moments_are_those_of_the_union() {
        let (a, b) = (
            Moments {
                mean: vec![1.0, -2.0],
                variance: 0.5,
            },
            Moments {
                mean: vec![2.0, 4.0],
                variance: 3.0,
            },
        );
        let both = a.pooled(b);
        assert_eq!(both.mean, [1.5, 1.0]);
        // Mean of the second moments about the new mean: 0.5 + (0.25 + 9)/2 and 3 + (0.25 + 9)/2, averaged.
        assert!((both.variance - (1.75 + 4.625)).abs() < 1e-12);
    }

    #[test]
    fn particles_share_the_shift_of_an_axis() {
        let columns = Moments {
            mean: vec![1.0, 10.0, 2.0, 14.0, 6.0, 12.0],
            variance: 0.5,
        };
        let moments = columns.of_particles(3).unwrap();
        assert_eq!(moments.mean, [3.0, 12.0, 3.0, 12.0, 3.0, 12.0]);
        // Squares of the means about the axes': 4 + 4 + 1 + 4 + 9 + 0 over six columns.
        assert!((moments.variance - (0.5 + 22.0 / 6.0)).abs() < 1e-12);
        assert!(columns.of_particles(4).is_err() && columns.of_particles(0).is_err());
        let one = Moments {
            mean: vec![0.0, 1e-12],
            variance: 1.0 + 1e-12,
        };
        assert_eq!(one.coordinates(), Coordinates::identity(2));
    }
}
