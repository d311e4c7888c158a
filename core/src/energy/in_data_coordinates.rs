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
    /// Points in the model's coordinates. A point that a column's kind does not allow has no place there and gets any.
    fn inward(&self, points: &[f64]) -> Vec<f64> {
        let mut moved = points.to_vec();
        self.map.to_model(&mut moved);
        if self.map.is_curved() {
            self.mark(points, &mut moved, 0.0);
        }
        moved
    }

    /// Writes `value` into all numbers of rows that a column's kind does not allow.
    fn mark(&self, points: &[f64], out: &mut [f64], value: f64) {
        let dim = self.map.dim();
        let width = out.len() / (points.len() / dim).max(1);
        let rows = points
            .chunks_exact(dim)
            .zip(out.chunks_exact_mut(width.max(1)));
        for (point, out) in rows.filter(|(point, _)| !self.map.holds(point)) {
            debug_assert!(point.len() == dim);
            out.fill(value);
        }
    }

    /// Adds `sign` times the logarithm of the volume to every value; where there is no density, the energy is infinite.
    fn add_volume(&self, points: &[f64], moved: &[f64], sign: f64, out: &mut [f64]) {
        let volume = self.map.log_volume();
        out.iter_mut().for_each(|value| *value += sign * volume);
        if self.map.is_curved() {
            for (value, point) in out.iter_mut().zip(moved.chunks_exact(self.map.dim())) {
                *value -= sign * self.map.log_slope_at(point);
            }
            self.mark(points, out, sign * f64::INFINITY);
        }
    }

    /// From gradients in straightened columns to those in the data's: `s_i du/dx + d/dx log du/dx`.
    fn bend_score(&self, points: &[f64], score: &mut [f64]) {
        if !self.map.is_curved() {
            return;
        }
        let dim = self.map.dim();
        for (i, (score, x)) in score.iter_mut().zip(points).enumerate() {
            let kind = self.map.kind(i % dim);
            let slope = kind.log_slope(kind.straighten(*x)).exp();
            *score = *score * slope + kind.log_slope_rates(*x)[0];
        }
        self.mark(points, score, 0.0);
    }

    /// Directions in the data's coordinates as straightened columns see them, then in the model's.
    fn directions(&self, points: &[f64], directions: &[f64]) -> Vec<f64> {
        let mut directions = directions.to_vec();
        if self.map.is_curved() {
            let dim = self.map.dim();
            for (i, (e, x)) in directions.iter_mut().zip(points).enumerate() {
                let kind = self.map.kind(i % dim);
                *e *= kind.log_slope(kind.straighten(*x)).exp();
            }
            self.mark(points, &mut directions, 0.0);
        }
        self.map.displacements_to_model(&mut directions);
        directions
    }

    /// A Gaussian of the model's coordinates in those of the data.
    pub fn prior(&self, prior: &Prior) -> Prior {
        self.map.prior_to_data(prior)
    }
}

impl<P> InDataCoordinates<P>
where
    P: Deref<Target: Energy> + Send + Sync,
{
    /// What the curves of the columns add to the diagonal of the Hessian: `s_u d2u/dx2 + d2/dx2 log du/dx`, with the score in
    /// straightened columns; empty where no column is curved.
    fn bends(&self, times: &[f64], points: &[f64]) -> Vec<f64> {
        if !self.map.is_curved() {
            return Vec::new();
        }
        let mut score = vec![0.0; points.len()];
        self.inner.score(times, &self.inward(points), &mut score);
        self.map.gradients_to_data(&mut score);
        let dim = self.map.dim();
        for (i, (s, x)) in score.iter_mut().zip(points).enumerate() {
            let kind = self.map.kind(i % dim);
            let slope = kind.log_slope(kind.straighten(*x)).exp();
            let [first, second] = kind.log_slope_rates(*x);
            *s = *s * slope * first + second;
        }
        self.mark(points, &mut score, 0.0);
        score
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
        let moved = self.inward(points);
        self.inner.energy(times, &moved, out);
        self.add_volume(points, &moved, 1.0, out);
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.score(times, &self.inward(points), out);
        self.map.gradients_to_data(out);
        self.bend_score(points, out);
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
        self.add_volume(points, &moved, 1.0, energy);
        self.map.gradients_to_data(score);
        self.bend_score(points, score);
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.time_score(times, &self.inward(points), out);
    }

    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.energy_rate(times, &self.inward(points), out);
    }

    fn curvature(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        let moved = self.inward(points);
        let inside = self.directions(points, directions);
        self.inner.curvature(times, &moved, &inside, out);
        let bends = self.bends(times, points);
        for (i, (bend, e)) in bends.iter().zip(directions).enumerate() {
            out[i / self.map.dim()] += bend * e * e;
        }
    }

    fn hessian_product(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        let moved = self.inward(points);
        let inside = self.directions(points, directions);
        self.inner.hessian_product(times, &moved, &inside, out);
        self.map.gradients_to_data(out);
        let bends = self.bends(times, points);
        for (i, (bend, e)) in bends.iter().zip(directions).enumerate() {
            let kind = self.map.kind(i % self.map.dim());
            let slope = kind.log_slope(kind.straighten(points[i])).exp();
            out[i] = out[i] * slope + bend * e;
        }
        if self.map.is_curved() {
            self.mark(points, out, 0.0);
        }
    }

    fn log_density(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let moved = self.inward(points);
        self.inner.log_density(times, &moved, out);
        self.add_volume(points, &moved, -1.0, out);
    }
}

/// `v(t, y) = A^-1 v_model`, divided by the slope of curved columns.
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
        if self.map.is_curved() {
            for (i, (v, x)) in out.iter_mut().zip(points).enumerate() {
                let kind = self.map.kind(i % self.map.dim());
                *v *= (-kind.log_slope(kind.straighten(*x))).exp();
            }
            self.mark(points, out, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::energy::tests::{diffusions, interpolants, learned, params, spec};
    use crate::energy::{Kind, Moments, Scale};
    use crate::engine::Isa;
    use crate::process::{Linear, Process};
    use crate::system::{Covariance, GaussianMixture, two_modes};

    fn interpolant(scale: Scale) -> (ExactPath, Coordinates) {
        let process = Process::Linear(Linear { a: 0.7 });
        let covariance = Covariance::Isotropic(vec![0.2, 0.4]);
        let end =
            GaussianMixture::new(2, vec![1.0, 3.0], vec![0.5, 0.1, -0.8, 0.9], covariance).unwrap();
        let path = ExactPath::new(process, two_modes().unwrap(), Some(end)).unwrap();
        let map = Coordinates {
            shift: vec![5.0, -3.0],
            scale,
            kinds: Vec::new(),
        };
        (path, map)
    }

    #[test]
    fn derivatives_belong_to_the_datas_coordinates() {
        let curved = vec![
            Kind::Positive,
            Kind::Bounded {
                low: -4.0,
                high: -1.5,
            },
        ];
        for (scale, kinds) in [
            (Scale::Common(2.5), Vec::new()),
            (Scale::Columns(vec![2.5, 0.6]), Vec::new()),
            (Scale::Columns(vec![0.7, 0.6]), curved),
        ] {
            let (path, mut map) = interpolant(scale.clone());
            if !kinds.is_empty() {
                (map.kinds, map.shift) = (kinds, vec![1.5, 0.3]);
            }
            let process = *path.process();
            // The noise of a curved column is not the same everywhere: its flow is looked at in the straight ones.
            let plain = map.kinds.is_empty();
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
                if !plain {
                    continue;
                }
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

    /// Mass is neither lost nor gained by the curves: a density on an interval and on the positive line integrates to one, and there
    /// is none beside them.
    #[test]
    fn curved_columns_keep_their_mass() {
        let process = Process::Linear(Linear { a: 0.7 });
        let covariance = Covariance::Isotropic(vec![0.6, 0.4]);
        let law = GaussianMixture::new(1, vec![1.0, 3.0], vec![0.5, -0.8], covariance).unwrap();
        let path = ExactPath::new(process, law.clone(), Some(law)).unwrap();
        let bounded = Kind::Bounded {
            low: 2.0,
            high: 5.0,
        };
        for (kind, ends) in [(bounded, (2.0, 5.0)), (Kind::Positive, (0.0, 60.0))] {
            let energy = InDataCoordinates {
                inner: &path,
                map: Coordinates {
                    shift: vec![0.4],
                    scale: Scale::Common(0.8),
                    kinds: vec![kind],
                },
            };
            let count = 200_000;
            let width = (ends.1 - ends.0) / f64::from(count);
            let points: Vec<f64> = (0..count)
                .map(|i| ends.0 + width * (f64::from(i) + 0.5))
                .collect();
            let mut out = vec![0.0; points.len()];
            energy.log_density(&[0.4], &points, &mut out);
            let mass = out.iter().map(|x| x.exp()).sum::<f64>() * width;
            // Midpoints of a smooth density; beyond 60 there are less than 1e-4 of a log-normal with spread 0.8.
            assert!((mass - 1.0).abs() < 2e-4, "{kind:?} {mass}");
            let mut outside = [0.0; 2];
            energy.log_density(&[0.4], &[-1.0, ends.0], &mut outside);
            assert_eq!(outside, [f64::NEG_INFINITY; 2]);
            energy.energy(&[0.4], &[-1.0, ends.0], &mut outside);
            assert_eq!(outside, [f64::INFINITY; 2]);
            energy.score(&[0.4], &[-1.0, ends.0], &mut outside);
            assert_eq!(outside, [0.0; 2]);
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
            kinds: Vec::new(),
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
