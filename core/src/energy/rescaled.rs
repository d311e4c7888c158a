//! A model's energy in the coordinates of its data: `y_model = (y - c(t) shift) / scale`, `c = alpha + beta`.
//!
//! A model learns standardised data `(x - shift) / scale`; the same noise in the data's coordinates is `scale` times larger, and
//! `log p(t, y) = log p_model(t, y_model) - d log scale`.

use super::{Energy, Velocity};
use crate::process::Process;
use crate::sample::Prior;
use crate::train::Standardisation;

/// See the module's text. F is the model's; the volume goes into U.
pub struct Rescaled<'a, E: ?Sized> {
    /// The energy (or velocity) in the model's coordinates.
    pub inner: &'a E,
    /// The process, whose c(t) moves the shift.
    pub process: Process,
    /// The map.
    pub standardisation: Standardisation,
}

impl<E: ?Sized> Rescaled<'_, E> {
    fn volume(&self) -> f64 {
        self.standardisation.shift.len() as f64 * self.standardisation.scale.ln()
    }

    /// Points in the model's coordinates.
    fn inward(&self, times: &[f64], points: &[f64]) -> Vec<f64> {
        let Standardisation { shift, scale } = &self.standardisation;
        let mut moved = points.to_vec();
        for (row, point) in moved.chunks_exact_mut(shift.len()).enumerate() {
            let time = if times.len() == 1 {
                times[0]
            } else {
                times[row]
            };
            let factor = self.process.x0_scale(time) + self.process.x1_scale(time);
            for (y, shift) in point.iter_mut().zip(shift) {
                *y = (*y - factor * shift) / scale;
            }
        }
        moved
    }

    /// A Gaussian of the model's coordinates at `time` in those of the data.
    pub fn prior(&self, time: f64, prior: &Prior) -> Prior {
        let Standardisation { shift, scale } = &self.standardisation;
        let factor = self.process.x0_scale(time) + self.process.x1_scale(time);
        let mean = prior.mean.iter().zip(shift);
        Prior {
            mean: mean.map(|(m, shift)| factor * shift + scale * m).collect(),
            std: scale * prior.std,
        }
    }
}

impl<E: Energy + ?Sized> Rescaled<'_, E> {
    /// Adds `sign c' shift . score_model / scale` at points in the model's coordinates.
    fn add_shift_rate(&self, times: &[f64], moved: &[f64], sign: f64, out: &mut [f64]) {
        let Standardisation { shift, scale } = &self.standardisation;
        let mut score = vec![0.0; moved.len()];
        self.inner.score(times, moved, &mut score);
        let rows = out.iter_mut().zip(score.chunks_exact(shift.len()));
        for (row, (out, score)) in rows.enumerate() {
            let time = times[if times.len() == 1 { 0 } else { row }];
            let rate = self.process.x0_rate(time) + self.process.x1_rate(time);
            let along: f64 = score.iter().zip(shift).map(|(a, b)| a * b).sum();
            *out += sign * rate * along / scale;
        }
    }
}

impl<E: Energy + ?Sized> Energy for Rescaled<'_, E> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn free_energy(&self, time: f64) -> f64 {
        self.inner.free_energy(time)
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.energy(times, &self.inward(times, points), out);
        let volume = self.volume();
        out.iter_mut().for_each(|u| *u += volume);
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.score(times, &self.inward(times, points), out);
        let scale = self.standardisation.scale;
        out.iter_mut().for_each(|s| *s /= scale);
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        let moved = self.inward(times, points);
        self.inner.energy_and_score(times, &moved, energy, score);
        let (volume, scale) = (self.volume(), self.standardisation.scale);
        energy.iter_mut().for_each(|u| *u += volume);
        score.iter_mut().for_each(|s| *s /= scale);
    }

    /// The model's own, and what the moving shift adds: `-c' shift . score_model / scale`.
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let moved = self.inward(times, points);
        self.inner.time_score(times, &moved, out);
        self.add_shift_rate(times, &moved, -1.0, out);
    }

    /// The model's own, and what the moving shift adds: `c' shift . score_model / scale`.
    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let moved = self.inward(times, points);
        self.inner.energy_rate(times, &moved, out);
        self.add_shift_rate(times, &moved, 1.0, out);
    }

    fn curvature(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        let moved = self.inward(times, points);
        self.inner.curvature(times, &moved, directions, out);
        let scale = self.standardisation.scale;
        out.iter_mut().for_each(|c| *c /= scale * scale);
    }
}

/// `v(t, y) = c' shift + scale v_model`.
impl<E: Velocity + ?Sized> Velocity for Rescaled<'_, E> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn velocity(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let Standardisation { shift, scale } = &self.standardisation;
        self.inner.velocity(times, &self.inward(times, points), out);
        for (row, out) in out.chunks_exact_mut(shift.len()).enumerate() {
            let time = if times.len() == 1 {
                times[0]
            } else {
                times[row]
            };
            let rate = self.process.x0_rate(time) + self.process.x1_rate(time);
            for (v, shift) in out.iter_mut().zip(shift) {
                *v = rate * shift + scale * *v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::process::Linear;
    use crate::system::{Covariance, GaussianMixture, two_modes};

    #[test]
    fn derivatives_belong_to_the_datas_coordinates() {
        let process = Process::Linear(Linear { a: 0.7 });
        let covariance = Covariance::Isotropic(vec![0.2, 0.4]);
        let end =
            GaussianMixture::new(2, vec![1.0, 3.0], vec![0.5, 0.1, -0.8, 0.9], covariance).unwrap();
        let path = ExactPath::new(process, two_modes().unwrap(), Some(end)).unwrap();
        let energy = Rescaled {
            inner: &path,
            process,
            standardisation: Standardisation {
                shift: vec![5.0, -3.0],
                scale: 2.5,
            },
        };
        let times = [0.3, 0.6];
        let points = [4.0, -2.0, 6.5, -4.0];
        let value = |t: f64, y: &[f64]| {
            let mut out = [0.0];
            energy.log_density(&[t], y, &mut out);
            out[0]
        };
        let (mut u, mut score, mut rate, mut bend) = ([0.0; 2], [0.0; 4], [0.0; 2], [0.0; 2]);
        energy.energy_and_score(&times, &points, &mut u, &mut score);
        energy.time_score(&times, &points, &mut rate);
        energy.curvature(&times, &points, &[1.0, 0.0, 0.0, 1.0], &mut bend);
        let h = 1e-4;
        for row in 0..2 {
            let (t, y) = (times[row], &points[2 * row..2 * row + 2]);
            assert!((value(t, y) + u[row]).abs() < 1e-12);
            for i in 0..2 {
                let at = |h: f64| {
                    let mut y = y.to_vec();
                    y[i] += h;
                    value(t, &y)
                };
                let slope = (at(h) - at(-h)) / (2.0 * h);
                assert!((score[2 * row + i] - slope).abs() < 1e-6 * (1.0 + slope.abs()));
                if i == row {
                    let second = (at(h) - 2.0 * at(0.0) + at(-h)) / (h * h);
                    assert!((bend[row] - second).abs() < 1e-5 * (1.0 + second.abs()));
                }
            }
            let slope = (value(t + h, y) - value(t - h, y)) / (2.0 * h);
            assert!(
                (rate[row] - slope).abs() < 1e-5 * (1.0 + slope.abs()),
                "{} {slope}",
                rate[row]
            );
            // The velocity carries the density: d/dt log p = -div (b p) / p for the flow b = v - gamma gamma' score.
            let mut v = [0.0; 2];
            let flow = |y: &[f64], v: &mut [f64; 2]| {
                let mut s = [0.0; 2];
                Velocity::velocity(&energy, &[t], y, v);
                energy.score(&[t], y, &mut s);
                let pull = process.noise_times_rate(t) * 2.5 * 2.5;
                v.iter_mut().zip(s).for_each(|(v, s)| *v -= pull * s);
            };
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
            assert!(
                (rate[row] - right).abs() < 1e-5 * (1.0 + right.abs()),
                "{} {right}",
                rate[row]
            );
        }
        let prior = energy.prior(
            0.3,
            &Prior {
                mean: vec![1.0, 0.0],
                std: 2.0,
            },
        );
        assert_eq!((prior.mean, prior.std), (vec![7.5, -3.0], 5.0));
    }
}
