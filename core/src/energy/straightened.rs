//! An energy of the data's coordinates in straightened columns: what moves particles need not know bounds.
//!
//! `log p(u) = log p(x(u)) - log du/dx`; a periodic column is not brought back, so that the energy goes on around the circle.

use std::ops::Deref;

use super::{Coordinates, Energy};

/// See the module's text. `P` points to the energy of the data's coordinates.
pub struct Straightened<P> {
    /// The energy of the data's coordinates.
    pub inner: P,
    /// Whose kinds are straightened.
    pub map: Coordinates,
}

impl<P> Straightened<P> {
    fn outward(&self, points: &[f64]) -> Vec<f64> {
        let mut moved = points.to_vec();
        self.map.bend(&mut moved);
        moved
    }

    fn log_slope(&self, point: &[f64]) -> f64 {
        let both = self.map.kinds.iter().zip(point);
        both.map(|(kind, u)| kind.log_slope(*u)).sum()
    }

    fn score_inward(&self, points: &[f64], moved: &[f64], score: &mut [f64]) {
        let dim = self.map.dim();
        for (i, (s, u)) in score.iter_mut().zip(points).enumerate() {
            let kind = self.map.kind(i % dim);
            if kind.is_curved() {
                let slope = kind.log_slope(*u).exp();
                *s = (*s - kind.log_slope_rates(moved[i])[0]) / slope;
            }
        }
    }
}

impl<P> Energy for Straightened<P>
where
    P: Deref<Target: Energy> + Send + Sync,
{
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn free_energy(&self, time: f64) -> f64 {
        self.inner.free_energy(time)
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.energy(times, &self.outward(points), out);
        for (u, point) in out.iter_mut().zip(points.chunks_exact(self.map.dim())) {
            *u += self.log_slope(point);
        }
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let moved = self.outward(points);
        self.inner.score(times, &moved, out);
        self.score_inward(points, &moved, out);
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        let moved = self.outward(points);
        self.inner.energy_and_score(times, &moved, energy, score);
        for (u, point) in energy.iter_mut().zip(points.chunks_exact(self.map.dim())) {
            *u += self.log_slope(point);
        }
        self.score_inward(points, &moved, score);
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.time_score(times, &self.outward(points), out);
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.energy_rate(times, &self.outward(points), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::energy::{InDataCoordinates, Kind};
    use crate::process::Process;
    use crate::system::two_modes;

    /// Straightened again, a model in the data's coordinates is the model behind an affine map.
    #[test]
    fn straightening_undoes_the_curves() {
        let process = Process::by_name("ve").unwrap();
        let path = ExactPath::new(process, two_modes().unwrap(), None).unwrap();
        let map = Coordinates {
            shift: vec![0.4, -0.2],
            scale: vec![0.7, 1.3].into(),
            kinds: vec![
                Kind::Positive,
                Kind::Bounded {
                    low: -1.0,
                    high: 4.0,
                },
            ],
        };
        let curved = InDataCoordinates {
            inner: &path,
            map: map.clone(),
        };
        let plain = InDataCoordinates {
            inner: &path,
            map: map.straight(),
        };
        let again = Straightened {
            inner: &curved,
            map,
        };
        let points = [0.3, -0.8, 1.1, 2.5];
        let ([mut a, mut b], [mut s, mut t]) = ([[0.0; 2]; 2], [[0.0; 4]; 2]);
        again.energy_and_score(&[0.3], &points, &mut a, &mut s);
        plain.energy_and_score(&[0.3], &points, &mut b, &mut t);
        for (a, b) in a.iter().zip(b).chain(s.iter().zip(t)) {
            assert!((a - b).abs() < 1e-10 * (1.0 + b.abs()), "{a} {b}");
        }
        again.energy(&[0.3], &points, &mut a);
        again.score(&[0.3], &points, &mut s);
        for (a, b) in a.iter().zip(b).chain(s.iter().zip(t)) {
            assert!((a - b).abs() < 1e-10 * (1.0 + b.abs()), "{a} {b}");
        }
    }
}
