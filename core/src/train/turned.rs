//! Rows of particles turned at random, each by a rotation of its own: a network that does not know rotations learns them from these.

use std::sync::Arc;

use super::source::Source;
use crate::particles::Rotation;
use crate::rng::{Part, Purpose, Stream};
use crate::{Error, Result};

/// A source whose rows are turned. The rotation belongs to the row's place in the step, so that both endpoints of an interpolant are turned
/// together and stay in each other's frame.
pub struct Turned {
    rows: Arc<dyn Source>,
    seed: u64,
    part: Part,
    space: usize,
    about_centre: bool,
}

impl Turned {
    /// Rows of particles of `space` numbers each, about their centre or, where they have none, about the origin.
    pub fn new(
        rows: Arc<dyn Source>,
        seed: u64,
        part: Part,
        space: usize,
        about_centre: bool,
    ) -> Result<Turned> {
        if !Rotation::exist_in(space) {
            return Err(Error::Value {
                name: "rotate",
                found: format!("particles of {space} numbers"),
                expected: "particles in the plane or in space".into(),
            });
        }
        Ok(Turned {
            rows,
            seed,
            part,
            space,
            about_centre,
        })
    }
}

impl Source for Turned {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        self.rows.fill(step, unit, out);
        let mut stream = Stream::new(self.seed, Purpose::Turn(self.part), step, unit as u64);
        let rotation = Rotation::random(self.space, &mut stream);
        rotation.turn_rounded(out, self.space, self.about_centre);
    }

    fn row(&self, step: u64, unit: usize) -> Option<usize> {
        self.rows.row(step, unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::Coordinates;
    use crate::train::{InMemory, Shuffled};

    /// Distances stay, directions do not; each row and step has a rotation of its own, and both endpoints have the same.
    #[test]
    fn each_row_has_a_rotation_of_its_own() {
        let values: Vec<f32> = (0..60).map(|k| (k as f32 * 0.7).sin() + 2.0).collect();
        let plain = |endpoint| -> Arc<dyn Source> {
            let table = Arc::new(InMemory::new(values.clone(), 6));
            let identity = Coordinates::identity(6);
            Arc::new(Shuffled::split(endpoint, table, &identity, 4, 3, 0).0)
        };
        let turned = |rows| Turned::new(rows, 3, Part::Training, 3, true).unwrap();
        let (start, end) = (turned(plain(0)), turned(plain(1)));
        let gap = |row: &[f32]| [0, 1, 2].map(|c| f64::from(row[3 + c] - row[c]));
        let square = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>();
        let mut rotations = Vec::new();
        for step in 0..3 {
            for unit in 0..4 {
                let mut rows = [[0f32; 6]; 3];
                plain(0).fill(step, unit, &mut rows[0]);
                start.fill(step, unit, &mut rows[1]);
                start.fill(step, unit, &mut rows[2]);
                assert_eq!(rows[1], rows[2]);
                assert_eq!(start.row(step, unit), plain(0).row(step, unit));
                for c in 0..3 {
                    let centre = |row: &[f32]| 0.5 * (row[c] + row[3 + c]);
                    assert!((centre(&rows[0]) - centre(&rows[1])).abs() < 1e-5);
                }
                assert!((square(gap(&rows[0])) - square(gap(&rows[1]))).abs() < 1e-4);
                rotations.push((gap(&rows[0]), gap(&rows[1])));
                // The angle between the endpoints' bonds stays.
                let mut other = [[0f32; 6]; 2];
                plain(1).fill(step, unit, &mut other[0]);
                end.fill(step, unit, &mut other[1]);
                let dot =
                    |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let before = dot(gap(&rows[0]), gap(&other[0]));
                let after = dot(gap(&rows[1]), gap(&other[1]));
                assert!((before - after).abs() < 1e-4, "{before} {after}");
            }
        }
        let distinct = rotations.windows(2).all(|pair| pair[0].1 != pair[1].1);
        assert!(distinct && rotations.iter().all(|(a, b)| a != b));
        assert!(Turned::new(plain(0), 3, Part::Training, 1, true).is_err());
    }
}
