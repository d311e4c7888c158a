//! The stochastic differential equation of an interpolant (Albergo et al. 2023), in both directions, by Euler-Maruyama.
//!
//! Towards larger times the drift is `v + (g^2/2 - gamma gamma') score`, towards smaller ones `v - (g^2/2 + gamma gamma') score`; the
//! marginals are the same for every `g`. (The paper prints the second as the forward one.)

use serde::{Deserialize, Serialize};

use super::transport::interpolant_pull;
use crate::energy::{Energy, Velocity};
use crate::process::Process;
use crate::rng::{Purpose, fill_normal_rows};
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["albergo2023stochastic"];

/// The noise `g(t)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Diffusivity {
    /// The same at all times.
    Constant {
        /// g.
        value: f64,
    },
    /// `factor gamma(t)`: none at the ends, where the score may be steep.
    Bridge {
        /// g / gamma.
        factor: f64,
    },
}

impl Diffusivity {
    /// g(t).
    pub fn at(&self, process: &Process, time: f64) -> f64 {
        match self {
            Diffusivity::Constant { value } => *value,
            Diffusivity::Bridge { factor } => factor * process.noise(time),
        }
    }
}

/// Brings rows of one endpoint, `x` at time `end` (0 or the horizon), to an interpolant's marginal at a `time` next to it, in place:
/// `y = x + gamma(t) z`, then `y + (t - end) v(t, y)`.
///
/// Models know no time 0 and 1, where there may be no density. The marginal needs a row of the other endpoint too; its mean given `y`,
/// which the velocity knows, takes its place. The law is right up to terms of second order in `t - end`. The particles' numbers
/// begin at `first`.
pub fn depart(
    process: &Process,
    velocity: &dyn Velocity,
    (end, time): (f64, f64),
    seed: u64,
    first: u64,
    points: &mut [f64],
) -> Result<()> {
    let horizon = process.horizon();
    if !process.is_interpolant()
        || !(end == 0.0 || end == horizon)
        || !(0.0..=horizon).contains(&time)
    {
        return Err(Error::Value {
            name: "departure from an endpoint",
            found: format!("the {} process, from {end} to {time}", process.name()),
            expected: "an interpolant, from time 0 or 1 to a time between them".into(),
        });
    }
    let mut noise = vec![0f32; points.len()];
    fill_normal_rows(seed, Purpose::Sample, 0, first, velocity.dim(), &mut noise);
    let gamma = process.noise(time);
    for (y, z) in points.iter_mut().zip(&noise) {
        *y += gamma * f64::from(*z);
    }
    let mut drift = vec![0.0; points.len()];
    velocity.velocity(&[time], points, &mut drift);
    for (y, v) in points.iter_mut().zip(&drift) {
        *y += (time - end) * v;
    }
    Ok(())
}

/// Carries points of an interpolant's marginal at the first of `times` to the last, in place, in either direction.
pub struct InterpolantSde<'a> {
    /// Its score.
    pub energy: &'a dyn Energy,
    /// The velocity.
    pub velocity: &'a dyn Velocity,
    /// The process.
    pub process: &'a Process,
    /// g(t), any function of time: `&|t| diffusivity.at(&process, t)`.
    pub g: &'a dyn Fn(f64) -> f64,
    /// Seed of the noise.
    pub seed: u64,
}

/// One Euler-Maruyama step from `from` to `to`: `y += h (v + pull score) + g sqrt(|h|) z`, `h = to - from`.
fn step(
    process: &Process,
    (from, to): (f64, f64),
    g: f64,
    (velocity, score, noise): (&[f64], &[f64], &[f32]),
    points: &mut [f64],
) {
    let h = to - from;
    let (pull, kick) = (interpolant_pull(process, from, g, h), g * h.abs().sqrt());
    for (((y, v), s), z) in points.iter_mut().zip(velocity).zip(score).zip(noise) {
        *y += h * (v + pull * s) + kick * f64::from(*z);
    }
}

impl InterpolantSde<'_> {
    /// See the type's text. The particles' numbers begin at `first`; `progress` is told the steps done.
    pub fn carry(
        &self,
        times: &[f64],
        first: u64,
        points: &mut [f64],
        progress: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let one_way = times.windows(2).all(|pair| pair[0] > pair[1])
            || times.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = |t: &f64| (0.0..=self.process.horizon()).contains(t);
        let sane = |t: &f64| (self.g)(*t).is_finite() && (self.g)(*t) >= 0.0;
        if !self.process.is_interpolant()
            || times.len() < 2
            || !one_way
            || !times.iter().all(inside)
            || !times.iter().all(sane)
        {
            return Err(Error::Value {
                name: "task of the interpolant's SDE",
                found: format!(
                    "the {} process, {} times, {:?} to {:?}",
                    self.process.name(),
                    times.len(),
                    times.first(),
                    times.last()
                ),
                expected: "an interpolant, at least two times in [0, 1], all rising or all falling, and g finite and not negative"
                    .into(),
            });
        }
        let dim = self.energy.dim();
        let (mut score, mut velocity) = (vec![0.0; points.len()], vec![0.0; points.len()]);
        let mut noise = vec![0f32; points.len()];
        for (k, pair) in times.windows(2).enumerate() {
            self.energy.score(&pair[..1], points, &mut score);
            self.velocity.velocity(&pair[..1], points, &mut velocity);
            fill_normal_rows(
                self.seed,
                Purpose::Sample,
                k as u64 + 1,
                first,
                dim,
                &mut noise,
            );
            let parts = (&*velocity, &*score, &*noise);
            step(
                self.process,
                (pair[0], pair[1]),
                (self.g)(pair[0]),
                parts,
                points,
            );
            if let Some(lost) = points.iter().position(|y| !y.is_finite()) {
                return Err(Error::Diverged {
                    sampler: "interpolant-sde",
                    time: pair[0],
                    particle: first + (lost / dim) as u64,
                });
            }
            progress(k + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Divergence, Flow, InterpolantKernels, Path, Smc, Solver, Start};
    use super::*;
    use crate::energy::VelocityClosure;
    use crate::energy::exact::ExactPath;
    use crate::process::Linear;
    use crate::system::{Covariance, GaussianMixture};

    fn gaussian(mean: f64, variance: f64) -> GaussianMixture {
        GaussianMixture::new(
            1,
            vec![1.0],
            vec![mean],
            Covariance::Isotropic(vec![variance]),
        )
        .unwrap()
    }

    fn path() -> ExactPath {
        let process = Process::Linear(Linear { a: 0.8 });
        ExactPath::new(process, gaussian(-0.7, 0.4), Some(gaussian(1.1, 0.9))).unwrap()
    }

    /// Mean and variance of the marginal.
    fn law(path: &ExactPath, t: f64) -> (f64, f64) {
        let (a, b, g) = (1.0 - t, t, path.process().noise(t));
        (a * -0.7 + b * 1.1, a * a * 0.4 + b * b * 0.9 + g * g)
    }

    /// Error of mean and standard deviation after steps through `times`, exactly: drift and score are affine, so a Gaussian stays one.
    fn error(path: &ExactPath, times: &[f64], g: Diffusivity) -> f64 {
        let process = path.process();
        let (mut mean, mut variance) = law(path, times[0]);
        for pair in times.windows(2) {
            let at = |y: f64| {
                let (mut v, mut s, mut y) = ([0.0], [0.0], [y]);
                path.velocity(&pair[..1], &y, &mut v);
                path.score(&pair[..1], &y, &mut s);
                step(
                    process,
                    (pair[0], pair[1]),
                    g.at(process, pair[0]),
                    (&v, &s, &[0.0]),
                    &mut y,
                );
                y[0]
            };
            let (zero, one) = (at(0.0), at(1.0));
            let kick = g.at(process, pair[0]) * (pair[1] - pair[0]).abs().sqrt();
            (mean, variance) = (
                zero + (one - zero) * mean,
                (one - zero).powi(2) * variance + kick * kick,
            );
        }
        let exact = law(path, times[times.len() - 1]);
        (mean - exact.0).hypot(variance.sqrt() - exact.1.sqrt())
    }

    #[test]
    fn converges_at_first_weak_order_in_both_directions() {
        let path = path();
        for g in [
            Diffusivity::Constant { value: 0.9 },
            Diffusivity::Bridge { factor: 1.4 },
        ] {
            for forward in [true, false] {
                let at = |steps: usize| {
                    let mut times: Vec<f64> =
                        (0..=steps).map(|k| k as f64 / steps as f64).collect();
                    if !forward {
                        times.reverse();
                    }
                    error(&path, &times, g)
                };
                let (coarse, fine) = (at(500), at(1000));
                // Twice the steps, half the error, up to the next order.
                assert!(
                    (1.8..2.2).contains(&(coarse / fine)) && fine < 0.01,
                    "{g:?}: {coarse} {fine}"
                );
            }
        }
    }

    #[test]
    fn the_papers_printed_forward_drift_does_not_converge() {
        // The drift that belongs to falling times, used with rising ones: h is told to point the wrong way.
        let path = path();
        let (mut mean, mut variance) = law(&path, 0.0);
        let steps = 1000;
        for k in 0..steps {
            let t = k as f64 / steps as f64;
            let h = 1.0 / steps as f64;
            let pull = interpolant_pull(path.process(), t, 0.9, -1.0);
            let at = |y: f64| {
                let (mut v, mut s) = ([0.0], [0.0]);
                path.velocity(&[t], &[y], &mut v);
                path.score(&[t], &[y], &mut s);
                y + h * (v[0] + pull * s[0])
            };
            let slope = at(1.0) - at(0.0);
            (mean, variance) = (at(0.0) + slope * mean, slope * slope * variance + 0.81 * h);
        }
        assert!(variance > 1.5 * law(&path, 1.0).1, "{mean} {variance}");
    }

    #[test]
    fn departures_are_right_to_second_order() {
        let path = path();
        let process = path.process();
        for end in [0.0, 1.0] {
            // The map is affine in the row and in the noise, so the law it makes of the endpoint's is known exactly.
            let error = |gap: f64| {
                let time = if end == 0.0 { gap } else { 1.0 - gap };
                let (rows, mut z) = ([0.3, 1.7], [0f32; 2]);
                fill_normal_rows(4, Purpose::Sample, 0, 9, 1, &mut z);
                let mut moved = rows;
                depart(process, &path, (end, time), 4, 9, &mut moved).unwrap();
                let gamma = process.noise(time);
                let noisy = |k: usize| rows[k] + gamma * f64::from(z[k]);
                let slope = (moved[1] - moved[0]) / (noisy(1) - noisy(0));
                let (mean, variance) = law(&path, end);
                let found = (
                    moved[0] + slope * (mean - noisy(0)),
                    slope * slope * (variance + gamma * gamma),
                );
                let exact = law(&path, time);
                (found.0 - exact.0).hypot(found.1 - exact.1)
            };
            let (coarse, fine) = (error(0.02), error(0.01));
            // Half the gap, a quarter of the error, up to the next order.
            assert!(
                (3.5..4.5).contains(&(coarse / fine)) && fine < 1e-3,
                "{end}: {coarse} {fine}"
            );
        }
        let refused = depart(process, &path, (0.5, 0.6), 0, 0, &mut [0.0]);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("from time 0 or 1")
        );
    }

    #[test]
    fn a_users_velocity_does_what_the_exact_one_does() {
        let path = path();
        let process = *path.process();
        // By hand, for two Gaussians: v = E[dX] + Cov(dX, Y) / Var(Y) (y - E[Y]).
        let users = VelocityClosure::new(1, |t: f64, y: &[f64], v: &mut [f64]| {
            let (mean, variance) = law(&path, t);
            v[0] = 1.8 + (t * 0.9 - (1.0 - t) * 0.4) / variance * (y[0] - mean);
        });
        let rise: Vec<f64> = (0..=60)
            .map(|k| 0.01 + 0.98 * f64::from(k) / 60.0)
            .collect();
        let fall: Vec<f64> = rise.iter().rev().copied().collect();
        let smc = Smc {
            moves: 1,
            seed: 8,
            least_overlap: 0.0,
            ..Smc::default()
        };
        for times in [&rise, &fall] {
            let start = path.sample(times[0], 30, 2);
            let run = |velocity: &dyn Velocity| {
                let mut results = Vec::new();
                let mut points = start.clone();
                InterpolantSde {
                    energy: &path,
                    velocity,
                    process: &process,
                    g: &|_| 0.4,
                    seed: 6,
                }
                .carry(times, 0, &mut points, &mut |_| ())
                .unwrap();
                results.extend(points);
                for solver in [Solver::Heun, Solver::Adaptive { tolerance: 1e-5 }] {
                    let flow = Flow {
                        energy: &path,
                        process: &process,
                        velocity: Some(velocity),
                        solver,
                        divergence: Some(Divergence::Exact),
                        seed: 0,
                    };
                    let mut points = start.clone();
                    let growth = flow.carry(times, 0, &mut points, &mut |_| ()).unwrap();
                    results.extend(points);
                    results.extend(growth.unwrap());
                }
                let kernels = InterpolantKernels {
                    process,
                    velocity,
                    energy: &path,
                    g: Diffusivity::Bridge { factor: 0.8 },
                };
                let particles = smc
                    .run(
                        &Path {
                            energy: &path,
                            times,
                            start: Start::Points(&start),
                            transport: Some(&kernels),
                        },
                        30,
                        &mut |_| (),
                    )
                    .unwrap();
                results.push(particles.log_z.value);
                results.extend(particles.points);
                results.extend(particles.weights);
                results
            };
            for (a, b) in run(&users).iter().zip(run(&path)) {
                // Rounding, grown by sixty steps and by the differences behind the divergence.
                assert!((a - b).abs() < 1e-7 * (1.0 + b.abs()), "{a} {b}");
            }
        }
    }

    #[test]
    fn particles_have_their_own_noise() {
        let path = path();
        let sde = InterpolantSde {
            energy: &path,
            velocity: &path,
            process: path.process(),
            g: &|_| 0.5,
            seed: 3,
        };
        let start: Vec<f64> = (0..40).map(|i| 0.1 * f64::from(i) - 2.0).collect();
        let run = |points: &[f64], first| {
            let mut points = points.to_vec();
            sde.carry(&[0.0, 0.3, 0.6], first, &mut points, &mut |_| ())
                .unwrap();
            points
        };
        let all = run(&start, 0);
        assert_eq!(run(&start[10..20], 10), all[10..20]);
        let refused = |times: &[f64]| {
            sde.carry(times, 0, &mut [0.0], &mut |_| ())
                .unwrap_err()
                .to_string()
        };
        for times in [&[0.5][..], &[0.1, 0.5, 0.3], &[0.5, 1.5]] {
            assert!(refused(times).contains("all rising or all falling"));
        }
    }
}
