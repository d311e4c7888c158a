//! Energies seen through a [`View`]: a model's energy at rows of particles as they are given, and an energy of such rows at the points that a
//! model knows. Log-densities are those of the subspace, where the view has one: an isometry has no volume.

use std::ops::Deref;

use super::Energy;
use crate::particles::View;

/// An energy of points at rows of particles. The centre of a row does not matter; the gradient is that at the row.
pub struct OfRows<P> {
    /// The energy at points.
    pub inner: P,
    /// From rows to points.
    pub view: View,
}

impl<P: Deref<Target: Energy> + Send + Sync> Energy for OfRows<P> {
    fn dim(&self) -> usize {
        self.view.columns()
    }

    fn free_energy(&self, time: f64) -> f64 {
        self.inner.free_energy(time)
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let inside = self.view.rows_inward(points.to_vec());
        self.inner.energy(times, &inside, out);
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let inside = self.view.rows_inward(points.to_vec());
        let mut score = vec![0.0; inside.len()];
        self.inner.score(times, &inside, &mut score);
        out.copy_from_slice(&self.view.gradients_outward(points, score));
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        let inside = self.view.rows_inward(points.to_vec());
        let mut of_points = vec![0.0; inside.len()];
        self.inner
            .energy_and_score(times, &inside, energy, &mut of_points);
        score.copy_from_slice(&self.view.gradients_outward(points, of_points));
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let inside = self.view.rows_inward(points.to_vec());
        self.inner.time_score(times, &inside, out);
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let inside = self.view.rows_inward(points.to_vec());
        self.inner.energy_rate(times, &inside, out);
    }
}

/// An energy of rows of particles at points: rows have their centre at zero.
pub struct OfPoints<P> {
    /// The energy at rows.
    pub inner: P,
    /// From rows to points.
    pub view: View,
}

impl<P: Deref<Target: Energy> + Send + Sync> Energy for OfPoints<P> {
    fn dim(&self) -> usize {
        self.view.dim()
    }

    fn free_energy(&self, time: f64) -> f64 {
        self.inner.free_energy(time)
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let rows = self.view.rows_outward(points.to_vec());
        self.inner.energy(times, &rows, out);
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let rows = self.view.rows_outward(points.to_vec());
        let mut score = vec![0.0; rows.len()];
        self.inner.score(times, &rows, &mut score);
        out.copy_from_slice(&self.view.gradients_inward(score));
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        let rows = self.view.rows_outward(points.to_vec());
        let mut of_rows = vec![0.0; rows.len()];
        self.inner
            .energy_and_score(times, &rows, energy, &mut of_rows);
        score.copy_from_slice(&self.view.gradients_inward(of_rows));
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let rows = self.view.rows_outward(points.to_vec());
        self.inner.time_score(times, &rows, out);
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let rows = self.view.rows_outward(points.to_vec());
        self.inner.energy_rate(times, &rows, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{attentive, diffusions, learned, params, without_centre};
    use super::*;
    use crate::energy::Form;
    use crate::engine::Isa;
    use crate::particles::{Frame, Rotation, View};
    use crate::rng::{Purpose, Stream};

    /// Rows in, rows out: the score is the gradient at the row, the centre does not matter, and back inside it is the energy it was.
    #[test]
    fn rows_and_points_have_the_same_energy() {
        let spec = without_centre(attentive(diffusions()[0], Form::Scalar, true));
        let model = learned::<f64>(&spec, &params::<f64>(&spec, 5), Isa::detect());
        let view = View::new(9, None, spec.subspace());
        let rows = OfRows {
            inner: &model,
            view: view.clone(),
        };
        let row = [0.7, -0.4, 1.1, 0.2, -1.3, 0.5, 0.1, -0.8, 0.3];
        let at = |row: &[f64]| {
            let (mut energy, mut score) = ([0.0], [0.0; 9]);
            rows.energy_and_score(&[0.3], row, &mut energy, &mut score);
            (energy[0], score)
        };
        let (energy, score) = at(&row);
        for i in 0..9 {
            let moved = |h: f64| {
                let mut row = row;
                row[i] += h;
                at(&row).0
            };
            let slope = -(moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((slope - score[i]).abs() < 1e-6, "{slope} {}", score[i]);
        }
        let apart = at(&row.map(|x| x + 4.0)).0;
        assert!((apart - energy).abs() < 1e-11);
        let points = OfPoints {
            inner: &rows,
            view: view.clone(),
        };
        let inside = view.rows_inward(row.to_vec());
        let (mut found, mut of_points, mut expected) = ([0.0], [0.0; 6], [0.0; 6]);
        points.energy_and_score(&[0.3], &inside, &mut found, &mut of_points);
        model.score(&[0.3], &inside, &mut expected);
        assert!((found[0] - energy).abs() < 1e-12);
        for (a, b) in of_points.iter().zip(expected) {
            assert!((a - b).abs() < 1e-12);
        }
        // Turned onto a frame, a turned row is the same row, and its score turns along.
        let frame = Frame::new(&[0.0, 0.0, 0.0, 1.0, 0.2, 0.0, 0.3, 1.0, 0.1], 3).unwrap();
        let framed = OfRows {
            inner: &model,
            view: View::new(9, Some(frame), spec.subspace()),
        };
        let rotation = Rotation::random(3, &mut Stream::new(8, Purpose::Test, 0, 0));
        let (mut turned, mut scores, mut energies) = (row, [[0.0; 9]; 2], [[0.0]; 2]);
        rotation.turn(&mut turned, 3);
        framed.energy_and_score(&[0.3], &row, &mut energies[0], &mut scores[0]);
        framed.energy_and_score(&[0.3], &turned, &mut energies[1], &mut scores[1]);
        assert!((energies[0][0] - energies[1][0]).abs() < 1e-9);
        rotation.turn(&mut scores[0], 3);
        for (a, b) in scores[0].iter().zip(scores[1]) {
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
    }
}
