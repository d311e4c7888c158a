//! Public targets with known answers: mixtures, rings, boxes, moons, a checkerboard, the Mueller-Brown surface.
//!
//! Each target has a file and implements [`Target`]; [`System::by_name`] is the registry. Adding one: a file, a line in
//! [`System::NAMES`] and one in [`System::by_name`]. [`HarmonicLadder`], [`WorkDistribution`] and [`DoubleWells`] are families
//! with exact free energies, for estimators of those; [`BeadChain`] and [`LennardJones`] are particles.

mod bead_chain;
mod boxes;
mod checkerboard;
mod component_parts;
mod double_wells;
mod harmonic_ladder;
mod lennard_jones;
pub(crate) mod log_sum;
pub(crate) mod matrix;
pub(crate) mod mixture;
mod mixture_pair;
mod mog2;
mod mog40;
mod moons;
mod mueller_brown;
mod pairs;
mod rings;
mod two_modes;
mod work_distribution;

pub use bead_chain::{BeadChain, Bond};
pub use boxes::Boxes;
pub use checkerboard::Checkerboard;
pub(crate) use component_parts::component_parts;
pub use double_wells::DoubleWells;
pub use harmonic_ladder::HarmonicLadder;
pub use lennard_jones::LennardJones;
pub use mixture::{Covariance, GaussianMixture};
pub use mixture_pair::{pair_a, pair_b};
pub use mog2::mog2;
pub use mog40::mog40;
pub use moons::Moons;
pub use mueller_brown::{Basin, Basins, MuellerBrown};
pub use pairs::{lower_pair, upper_pair};
pub use rings::Rings;
pub use two_modes::two_modes;
pub use work_distribution::WorkDistribution;

use crate::rng::{Purpose, Stream};
use crate::{Error, Result};
use std::sync::Arc;

/// A distribution that can be sampled row by row and whose density may be known.
pub trait Target: Send + Sync + std::fmt::Debug {
    /// Dimension of a point.
    fn dim(&self) -> usize;

    /// Draws one point; does not allocate.
    fn sample_row(&self, stream: &mut Stream, out: &mut [f32]);

    /// log p(y), minus infinity outside the support; `None` where it is not known exactly.
    fn log_density(&self, point: &[f64]) -> Option<f64>;

    /// Writes grad log p(y) and says so; `false` where only differences of the density can tell.
    fn score(&self, _point: &[f64], _out: &mut [f64]) -> bool {
        false
    }

    /// The target as a Gaussian mixture, when it is one.
    fn mixture(&self) -> Option<&GaussianMixture> {
        None
    }
}

/// A named target.
#[derive(Clone, Debug)]
pub struct System {
    name: &'static str,
    target: Arc<dyn Target>,
}

impl System {
    /// All names [`System::by_name`] knows.
    pub const NAMES: [&'static str; 12] = [
        "mog40",
        "mog2",
        "pair-a",
        "pair-b",
        "two-modes",
        "upper-pair",
        "lower-pair",
        "rings",
        "boxes",
        "moons",
        "checkerboard",
        "mueller-brown",
    ];

    /// The system of that name. `dim` is free for `mog40`, `mog2` and the pair, and must be 2 for the others; `seed` fixes the means of
    /// `mog40` and is not used by the others.
    ///
    /// ```
    /// use diffclf::system::System;
    /// let system = System::by_name("mog2", 5, 0)?;
    /// assert_eq!(system.sample(10, 1).len(), 50);
    /// assert!(System::by_name("mog3", 5, 0).is_err());
    /// # Ok::<(), diffclf::Error>(())
    /// ```
    pub fn by_name(name: &str, dim: usize, seed: u64) -> Result<Self> {
        let Some(name) = Self::NAMES.into_iter().find(|known| *known == name) else {
            return Err(Error::Value {
                name: "system",
                found: format!("'{name}'"),
                expected: format!("one of {}", Self::NAMES.join(", ")),
            });
        };
        if Self::is_planar(name) && dim != 2 {
            return Err(Error::Value {
                name: "dimension of the system",
                found: dim.to_string(),
                expected: format!(
                    "2: {name} lives in the plane (mog40, mog2, pair-a and pair-b take any dimension)"
                ),
            });
        }
        let target: Arc<dyn Target> = match name {
            "mog40" => Arc::new(mog40(dim, seed)?),
            "mog2" => Arc::new(mog2(dim)?),
            "pair-a" => Arc::new(pair_a(dim)?),
            "pair-b" => Arc::new(pair_b(dim)?),
            "two-modes" => Arc::new(two_modes()?),
            "upper-pair" => Arc::new(upper_pair()?),
            "lower-pair" => Arc::new(lower_pair()?),
            "rings" => Arc::new(Rings::default()),
            "boxes" => Arc::new(Boxes::default()),
            "moons" => Arc::new(Moons::default()),
            "mueller-brown" => MuellerBrown::shared(),
            _ => Arc::new(Checkerboard::default()),
        };
        Ok(Self { name, target })
    }

    /// Whether the system of that name exists in the plane only.
    pub fn is_planar(name: &str) -> bool {
        !matches!(name, "mog40" | "mog2" | "pair-a" | "pair-b")
    }

    /// The system's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Dimension of a point.
    pub fn dim(&self) -> usize {
        self.target.dim()
    }

    /// Draws one point; does not allocate, so that a training loop can draw fresh endpoints at every step.
    pub fn sample_row(&self, stream: &mut Stream, out: &mut [f32]) {
        self.target.sample_row(stream, out);
    }

    /// `n` points, row after row. Row i depends on the seed and i alone.
    pub fn sample(&self, n: usize, seed: u64) -> Vec<f32> {
        self.sample_for(Purpose::Data, n, seed)
    }

    /// As [`System::sample`], with draws for a purpose of the caller's.
    pub fn sample_for(&self, purpose: Purpose, n: usize, seed: u64) -> Vec<f32> {
        let mut points = vec![0.0; n * self.dim()];
        for (row, point) in points.chunks_exact_mut(self.dim()).enumerate() {
            self.sample_row(&mut Stream::new(seed, purpose, 0, row as u64), point);
        }
        points
    }

    /// log p(y), minus infinity outside the support; `None` where it is not known exactly.
    pub fn log_density(&self, point: &[f64]) -> Option<f64> {
        self.target.log_density(point)
    }

    /// Writes grad log p(y) and says so; `false` where only differences of the density can tell.
    pub fn score(&self, point: &[f64], out: &mut [f64]) -> bool {
        if let Some(mixture) = self.mixture() {
            mixture.score(point, out);
            return true;
        }
        self.target.score(point, out)
    }

    /// The system as a Gaussian mixture, when it is one: then its path under every process is known exactly.
    pub fn mixture(&self) -> Option<&GaussianMixture> {
        self.target.mixture()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Histogram of samples against the density integrated over each cell. A cell of probability p has a count with variance
    /// n p (1-p); 4 sigma plus 3 for cells with few points. Cells whose density jumps are skipped by the caller's choice of lattice.
    pub(super) fn assert_histogram(
        system: &System,
        half: f64,
        cells: usize,
        points_per_cell: usize,
    ) {
        let n = 200_000;
        let samples = system.sample(n, 5);
        let width = 2.0 * half / cells as f64;
        let mut counts = vec![0_u32; cells * cells];
        for point in samples.chunks(2) {
            let cell = |x: f32| ((f64::from(x) + half) / width).floor();
            let (i, j) = (cell(point[0]), cell(point[1]));
            if (0.0..cells as f64).contains(&i) && (0.0..cells as f64).contains(&j) {
                counts[i as usize * cells + j as usize] += 1;
            }
        }
        let mut total = 0.0;
        for (index, &count) in counts.iter().enumerate() {
            let corner = (
                -half + (index / cells) as f64 * width,
                -half + (index % cells) as f64 * width,
            );
            let h = width / points_per_cell as f64;
            let mut mass = 0.0;
            for k in 0..points_per_cell * points_per_cell {
                let x = corner.0 + ((k / points_per_cell) as f64 + 0.5) * h;
                let y = corner.1 + ((k % points_per_cell) as f64 + 0.5) * h;
                mass += system.log_density(&[x, y]).unwrap().exp() * h * h;
            }
            total += mass;
            let sigma = (n as f64 * mass * (1.0 - mass).max(0.0)).sqrt();
            let error = f64::from(count) - n as f64 * mass;
            assert!(
                error.abs() < 4.5 * sigma + 3.0,
                "cell {corner:?}: {count} points, {} expected",
                n as f64 * mass
            );
        }
        assert!(
            (total - 1.0).abs() < 1e-3,
            "{} has mass {total}",
            system.name()
        );
    }

    #[test]
    fn samples_follow_the_densities() {
        // 1600 cells: the largest of that many normal deviations passes 4.5 sigma with probability 0.01.
        for (name, half, cells, points) in [
            ("two-modes", 3.0, 40, 8),
            ("rings", 7.0, 40, 24),
            ("boxes", 7.0, 35, 20),
            ("checkerboard", 5.0, 40, 4),
        ] {
            assert_histogram(&System::by_name(name, 2, 0).unwrap(), half, cells, points);
        }
    }

    #[test]
    fn names_are_a_closed_list() {
        for name in System::NAMES {
            let system = System::by_name(name, 2, 0).unwrap();
            assert_eq!((system.name(), system.dim()), (name, 2));
            assert_eq!(
                system.mixture().is_some(),
                matches!(
                    name,
                    "mog40"
                        | "mog2"
                        | "pair-a"
                        | "pair-b"
                        | "two-modes"
                        | "upper-pair"
                        | "lower-pair"
                )
            );
            let points = system.sample(50, 3);
            assert!(points.iter().all(|x| x.is_finite()));
            let mut row = [0.0; 2];
            system.sample_row(&mut Stream::new(3, Purpose::Data, 0, 17), &mut row);
            assert_eq!(row, points[34..36]);
        }
        let message = System::by_name("mog", 2, 0).unwrap_err().to_string();
        assert!(
            message.contains("'mog'") && message.contains("checkerboard"),
            "{message}"
        );
        assert!(
            System::by_name("rings", 3, 0)
                .unwrap_err()
                .to_string()
                .contains("plane")
        );
        assert!(System::by_name("mog40", 0, 0).is_err());
    }
}
