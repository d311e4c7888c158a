//! What is looked at in a frame: coordinates, distances, angles, dihedrals, and slow coordinates made of them (TICA).
//!
//! One file each. A frame is a row: three numbers for each particle, or any numbers for [`Observable::Column`]. Lengths are in the
//! unit of the row, angles in radians.

mod angle;
mod dihedral;
mod distance;
mod tica;

pub use angle::angle;
pub use dihedral::dihedral;
pub use distance::distance;
pub use tica::{Tica, TicaSettings};

use crate::{Error, Result};

/// One number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observable {
    /// A coordinate of the row.
    Column(usize),
    /// Distance of two particles.
    Distance([usize; 2]),
    /// Angle at the second of three particles, from 0 to pi.
    Angle([usize; 3]),
    /// Dihedral angle of four particles, from -pi to pi.
    Dihedral([usize; 4]),
}

impl Observable {
    /// Reads `x:1`, `distance:0-3`, `angle:0-1-2` or `dihedral:0-1-2-3`; particles and columns count from 0.
    ///
    /// ```
    /// use diffclf::observable::Observable;
    /// let phi = Observable::parse("dihedral:0-1-2-3")?;
    /// assert_eq!(phi, Observable::Dihedral([0, 1, 2, 3]));
    /// assert!(Observable::parse("dihedral:0-1-2").is_err());
    /// # Ok::<(), diffclf::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Observable> {
        let parsed = text.split_once(':').and_then(|(kind, particles)| {
            let numbers: Option<Vec<usize>> = particles
                .split('-')
                .map(|word| word.trim().parse().ok())
                .collect();
            match (kind.trim(), numbers?.as_slice()) {
                ("x", [column]) => Some(Observable::Column(*column)),
                ("distance", &[a, b]) => Some(Observable::Distance([a, b])),
                ("angle", &[a, b, c]) => Some(Observable::Angle([a, b, c])),
                ("dihedral", &[a, b, c, d]) => Some(Observable::Dihedral([a, b, c, d])),
                _ => None,
            }
        });
        let distinct = |found: &Observable| {
            let particles = found.particles();
            (1..particles.len()).all(|k| !particles[..k].contains(&particles[k]))
        };
        parsed.filter(distinct).ok_or_else(|| Error::Value {
            name: "observable",
            found: format!("'{text}'"),
            expected: "x:COLUMN, distance:A-B, angle:A-B-C or dihedral:A-B-C-D with different particles, counted from 0".into(),
        })
    }

    fn particles(&self) -> &[usize] {
        match self {
            Observable::Column(_) => &[],
            Observable::Distance(particles) => particles,
            Observable::Angle(particles) => particles,
            Observable::Dihedral(particles) => particles,
        }
    }

    /// Whether its values are an angle around the circle, so that -pi and pi are the same.
    pub fn is_periodic(&self) -> bool {
        matches!(self, Observable::Dihedral(_))
    }

    /// Refuses particles or columns that rows of so many numbers do not have.
    pub fn check(&self, dim: usize) -> Result<()> {
        let (most, found) = match self {
            Observable::Column(column) => (dim, *column),
            _ => (dim / 3, self.particles().iter().copied().max().unwrap_or(0)),
        };
        let particles = !matches!(self, Observable::Column(_));
        if found >= most || particles && !dim.is_multiple_of(3) {
            return Err(Error::Value {
                name: "observable",
                found: format!("{self}"),
                expected: match particles {
                    true => format!(
                        "particles of rows of three numbers each; these rows have {dim} numbers"
                    ),
                    false => format!("a column below {dim}"),
                },
            });
        }
        Ok(())
    }

    /// Its value in a frame that [`check`](Self::check) has passed.
    pub fn of(&self, frame: &[f64]) -> f64 {
        let at = |particle: usize| [0, 1, 2].map(|axis| frame[3 * particle + axis]);
        match *self {
            Observable::Column(column) => frame[column],
            Observable::Distance([a, b]) => distance(at(a), at(b)),
            Observable::Angle([a, b, c]) => angle(at(a), at(b), at(c)),
            Observable::Dihedral([a, b, c, d]) => dihedral(at(a), at(b), at(c), at(d)),
        }
    }

    /// Its values in all frames.
    pub fn of_all(&self, frames: &[f64], dim: usize) -> Result<Vec<f64>> {
        self.check(dim)?;
        Ok(frames
            .chunks_exact(dim)
            .map(|frame| self.of(frame))
            .collect())
    }

    /// The features of a chain of beads: all distances (i < j), then the dihedrals of consecutive ones.
    pub fn of_chain(beads: usize) -> Vec<Observable> {
        let pairs = (0..beads).flat_map(|i| (i + 1..beads).map(move |j| [i, j]));
        let turns = (0..beads.saturating_sub(3)).map(|i| [i, i + 1, i + 2, i + 3]);
        pairs
            .map(Observable::Distance)
            .chain(turns.map(Observable::Dihedral))
            .collect()
    }
}

impl std::fmt::Display for Observable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self {
            Observable::Column(column) => return write!(f, "x:{column}"),
            Observable::Distance(_) => "distance",
            Observable::Angle(_) => "angle",
            Observable::Dihedral(_) => "dihedral",
        };
        let particles: Vec<String> = self.particles().iter().map(usize::to_string).collect();
        write!(f, "{kind}:{}", particles.join("-"))
    }
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for text in ["x:2", "distance:4-1", "angle:3-0-2", "dihedral:0-1-2-3"] {
            assert_eq!(Observable::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "x",
            "x:",
            "x:a",
            "distance:1",
            "distance:1-1",
            "phi:0-1-2-3",
            "angle:0--1-2",
        ] {
            let message = Observable::parse(text).unwrap_err().to_string();
            assert!(message.contains("dihedral:A-B-C-D"), "{message}");
        }
        assert!(Observable::parse("distance:0-2").unwrap().check(6).is_err());
        assert!(Observable::parse("distance:0-1").unwrap().check(7).is_err());
        assert!(Observable::parse("x:6").unwrap().check(7).is_ok());
        assert!(Observable::parse("x:7").unwrap().check(7).is_err());
        assert_eq!(Observable::of_chain(10).len(), 45 + 7);
    }
}
