//! A model's energy and velocity in the coordinates of its data, through the one map [`Coordinates`].
//!
//! `log p(t, y) = log p_model(t, y_model) - log_volume`; gradients go by the map's transpose, velocities by its inverse, and what
//! changes with time changes alike.

use std::ops::Deref;

use super::coordinates::Coordinates;
use super::{Energy, Prior, Velocity};

/// See the module's text. F is the model's; the volume goes into U. `P` points to the energy or velocity in the model's
/// coordinates: `&LearnedEnergy`, `Arc<dyn Energy>`.
pub struct InDataCoordinates<P> {
    /// The energy (or velocity) in the model's coordinates.
    pub inner: P,
    /// The map.
    pub map: Coordinates,
}

impl<P> InDataCoordinates<P> {
    /// Points in the model's coordinates.
    fn inward(&self, points: &[f64]) -> Vec<f64> {
        let mut moved = points.to_vec();
        self.map.to_model(&mut moved);
        moved
    }

    /// A Gaussian of the model's coordinates in those of the data.
    pub fn prior(&self, prior: &Prior) -> Prior {
        self.map.prior_to_data(prior)
    }
}

impl<P> Energy for InDataCoordinates<P>
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
        self.inner.energy(times, &self.inward(points), out);
        let volume = self.map.log_volume();
        out.iter_mut().for_each(|u| *u += volume);
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.score(times, &self.inward(points), out);
        self.map.gradients_to_data(out);
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        let moved = self.inward(points);
        self.inner.energy_and_score(times, &moved, energy, score);
        let volume = self.map.log_volume();
        energy.iter_mut().for_each(|u| *u += volume);
        self.map.gradients_to_data(score);
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.time_score(times, &self.inward(points), out);
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.energy_rate(times, &self.inward(points), out);
    }

    fn curvature(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        let mut directions = directions.to_vec();
        self.map.displacements_to_model(&mut directions);
        let moved = self.inward(points);
        self.inner.curvature(times, &moved, &directions, out);
    }

    fn hessian_product(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        let mut directions = directions.to_vec();
        self.map.displacements_to_model(&mut directions);
        let moved = self.inward(points);
        self.inner.hessian_product(times, &moved, &directions, out);
        self.map.gradients_to_data(out);
    }

    fn log_density(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.log_density(times, &self.inward(points), out);
        let volume = self.map.log_volume();
        out.iter_mut().for_each(|value| *value -= volume);
    }
}

/// `v(t, y) = A^-1 v_model`.
impl<P> Velocity for InDataCoordinates<P>
where
    P: Deref<Target: Velocity> + Send + Sync,
{
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn velocity(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.velocity(times, &self.inward(points), out);
        self.map.displacements_to_data(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::energy::tests::{diffusions, interpolants, learned, params, spec};
    use crate::energy::{Moments, Scale};
    use crate::engine::Isa;
    use crate::process::{Linear, Process};
    use crate::system::{Covariance, GaussianMixture, two_modes};

    fn interpolant(scale: Scale) -> (ExactPath, Coordinates) {
        let process = Process::Linear(Linear { a: 0.7 });
        let covariance = Covariance::Isotropic(vec![0.2, 0.4]);
        let end =
            GaussianMixture::new(2, vec![1.0, 3.0], vec![0.5, 0.1, -0.8, 0.9], covariance).unwrap();
        let path = ExactPath::new(process, two_modes().unwrap(), Some(end)).unwrap();
        let shift = vec![5.0, -3.0];
        (path, Coordinates { shift, scale })
    }

    #[test]
    fn derivatives_belong_to_the_datas_coordinates() {
        for scale in [Scale::Common(2.5), Scale::Columns(vec![2.5, 0.6])] {
            let (path, map) = interpolant(scale.clone());
            let process = *path.process();
            let energy = InDataCoordinates { inner: &path, map };
            let times = [0.3, 0.6];
            let points = [4.0, -2.0, 6.5, -3.4];
            let value = |t: f64, y: &[f64]| {
                let mut out = [0.0];
                energy.log_density(&[t], y, &mut out);
                out[0]
            };
            let (mut u, mut score, mut rate, mut bend) = ([0.0; 2], [0.0; 4], [0.0; 2], [0.0; 2]);
            energy.energy_and_score(&times, &points, &mut u, &mut score);
            energy.time_score(&times, &points, &mut rate);
            let directions = [0.8, -0.5, 0.3, 1.1];
            energy.curvature(&times, &points, &directions, &mut bend);
            let mut product = [0.0; 4];
            energy.hessian_product(&times, &points, &directions, &mut product);
            for row in 0..2 {
                let dot = |i: usize| product[2 * row + i] * directions[2 * row + i];
                let allowed = 1e-6 * (1.0 + bend[row].abs());
                assert!((dot(0) + dot(1) - bend[row]).abs() < allowed);
            }
            let h = 1e-4;
            for row in 0..2 {
                let (t, y) = (times[row], &points[2 * row..2 * row + 2]);
                let allowed = |x: f64| 1e-5 * (1.0 + x.abs());
                assert!((value(t, y) + u[row]).abs() < 1e-12);
                let along = |e: &[f64], h: f64| {
                    let y: Vec<f64> = y.iter().zip(e).map(|(y, e)| y + h * e).collect();
                    value(t, &y)
                };
                for i in 0..2 {
                    let mut e = [0.0; 2];
                    e[i] = 1.0;
                    let slope = (along(&e, h) - along(&e, -h)) / (2.0 * h);
                    assert!((score[2 * row + i] - slope).abs() < 1e-6 * (1.0 + slope.abs()));
                }
                let e = &directions[2 * row..2 * row + 2];
                let second = (along(e, h) - 2.0 * along(e, 0.0) + along(e, -h)) / (h * h);
                assert!((bend[row] - second).abs() < allowed(second));
                let slope = (value(t + h, y) - value(t - h, y)) / (2.0 * h);
                assert!((rate[row] - slope).abs() < allowed(slope));
                // The velocity carries the density: d/dt log p = -div (b p) / p for the flow b = v - gamma gamma' score, with a
                // noise that is as much larger along a column as its scale.
                let flow = |y: &[f64], v: &mut [f64; 2]| {
                    let mut s = [0.0; 2];
                    Velocity::velocity(&energy, &[t], y, v);
                    energy.score(&[t], y, &mut s);
                    for i in 0..2 {
                        v[i] -= process.noise_times_rate(t) * scale.diagonal(i).powi(2) * s[i];
                    }
                };
                let mut v = [0.0; 2];
                flow(y, &mut v);
                let mut right: f64 = -(v[0] * score[2 * row] + v[1] * score[2 * row + 1]);
                for i in 0..2 {
                    let mut at = |h: f64| {
                        let mut y = y.to_vec();
                        y[i] += h;
                        flow(&y, &mut v);
                        v[i]
                    };
                    right -= (at(h) - at(-h)) / (2.0 * h);
                }
                assert!((rate[row] - right).abs() < allowed(right));
            }
        }
    }

    /// The law at the start of the path is that of the data, in their own coordinates.
    #[test]
    fn densities_are_those_of_the_data() {
        let process = Process::Linear(Linear { a: 0.7 });
        let covariance = Covariance::Diagonal(vec![0.4, 1.3, 2.0, 0.7]);
        let law = |means: [f64; 4]| {
            GaussianMixture::new(2, vec![2.0, 1.0], means.to_vec(), covariance.clone()).unwrap()
        };
        let (start, end) = (law([4.0, -2.0, 7.0, -5.0]), law([6.0, 0.0, 3.0, -4.0]));
        let map = Coordinates {
            shift: vec![5.0, -3.0],
            scale: Scale::Columns(vec![2.5, 0.6]),
        };
        let path = ExactPath::new(
            process,
            map.mixture_to_model(&start).unwrap(),
            Some(map.mixture_to_model(&end).unwrap()),
        )
        .unwrap();
        let energy = InDataCoordinates {
            inner: &path as &dyn Energy,
            map,
        };
        let y = [5.5, -1.0];
        let mut out = [0.0];
        for (time, law) in [(1e-12, &start), (1.0 - 1e-12, &end)] {
            energy.log_density(&[time], &y, &mut out);
            assert!((out[0] - law.log_density(&y)).abs() < 1e-9, "{time}");
        }
    }

    /// Three particles in the plane whose data have a mean far from zero, another for each particle: the energy in the data's
    /// coordinates does not tell them apart, nor does it know directions about their centre, nor (interpolants: the Gaussian of a
    /// diffusion holds the centre of mass) places.
    #[test]
    fn particles_keep_their_symmetries() {
        let columns = Moments {
            mean: vec![11.0, -4.0, 12.5, -3.0, 9.0, -6.0],
            variance: 1.7,
        };
        let map = columns.of_particles(3).unwrap().coordinates();
        let time = 0.4;
        for process in diffusions().into_iter().chain(interpolants()) {
            let spec = spec(process, None, true);
            let model = learned::<f64>(&spec, &params::<f64>(&spec, 3), Isa::detect());
            let energy = InDataCoordinates {
                inner: &model,
                map: map.clone(),
            };
            let value = |y: &[f64]| {
                let mut out = [0.0];
                energy.log_density(&[time], y, &mut out);
                out[0]
            };
            let y = [11.3, -4.2, 12.0, -2.2, 8.6, -5.1];
            let first = value(&y);
            let same = |y: &[f64], what: &str| {
                let found = value(y);
                assert!(
                    (found - first).abs() < 1e-10 * (1.0 + first.abs()),
                    "{what}, {}: {found}, expected {first}",
                    process.name()
                );
            };
            same(&[12.0, -2.2, 8.6, -5.1, 11.3, -4.2], "exchanged");
            let (sin, cos) = 0.7f64.sin_cos();
            let turned: Vec<f64> = y
                .chunks(2)
                .flat_map(|y| {
                    let (a, b) = (y[0] - map.shift[0], y[1] - map.shift[1]);
                    [
                        map.shift[0] + cos * a - sin * b,
                        map.shift[1] + sin * a + cos * b,
                    ]
                })
                .collect();
            same(&turned, "turned");
            let moved: Vec<f64> = y.chunks(2).flat_map(|y| [y[0] + 2.3, y[1] - 0.9]).collect();
            if process.is_interpolant() {
                same(&moved, "moved");
            } else {
                assert!((value(&moved) - first).abs() > 1e-3);
            }
        }
    }
}
