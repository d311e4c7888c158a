//! Free energies along a learned path: thermodynamic integration and MBAR over the energies U(t, y), and what ties the path's
//! ends to the states a user knows.
//!
//! With `Z_A`, `Z_B` of the user's states and `Z_0`, `Z_1` of the learned energies at the first and last time,
//! `log(Z_B/Z_A) = log(Z_0/Z_A) - integral of <dU/dt>_t dt + log(Z_B/Z_1)`; the outer terms are one-sided perturbations from
//! samples of A and B and need each state's energy at its own samples only.
//!
//! The samples at time t are those of the process, `Y_t = X_t + gamma Z`: they follow the exact marginal, not `exp(-U)`. For an
//! imperfect energy the three routes through the path (integration, MBAR, the learned F) err differently, so their
//! disagreement measures the error of the model, which no number of samples shows.

use super::{
    Integral, Matrix, Mbar, MbarSettings, Overlap, Perturbation, Rule, integrate, perturbation,
};
use crate::energy::Energy;
use crate::metric::Estimate;
use crate::process::Process;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};
use serde::Serialize;

/// Samples of the process at each of several times.
pub struct PathSamples {
    dim: usize,
    times: Vec<f64>,
    /// Time after time, row after row.
    points: Vec<f64>,
}

impl PathSamples {
    /// `count` samples at each time from rows of the data (and of the second endpoint, for an interpolant), drawn with
    /// replacement and paired at random.
    ///
    /// # Errors
    /// [`Error::Value`] for times that do not rise or an endpoint without rows, [`Error::Shape`] for one without whole rows.
    pub fn new(
        process: &Process,
        dim: usize,
        times: &[f64],
        (start, end): (&[f64], Option<&[f64]>),
        count: usize,
        seed: u64,
    ) -> Result<Self> {
        for rows in [Some(start), end].into_iter().flatten() {
            if rows.is_empty() || dim == 0 || !rows.len().is_multiple_of(dim) {
                return Err(Error::Shape {
                    what: "the rows of an endpoint".into(),
                    found: format!("{} numbers", rows.len()),
                    expected: format!("whole rows of {dim} numbers, at least one"),
                });
            }
        }
        if process.is_interpolant() != end.is_some() {
            return Err(Error::Value {
                name: "endpoints",
                found: if end.is_some() { "two" } else { "one" }.into(),
                expected: "one for a diffusion, two for an interpolant".into(),
            });
        }
        if count < 2 || times.len() < 2 || !times.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(Error::Value {
                name: "path",
                found: format!("{count} samples at times {times:?}"),
                expected: "at least two samples at each of at least two rising times".into(),
            });
        }
        let mut points = vec![0.0; times.len() * count * dim];
        for (level, rows) in points.chunks_exact_mut(count * dim).enumerate() {
            let time = times[level];
            let (a, b, noise) = (
                process.x0_scale(time),
                process.x1_scale(time),
                process.noise(time),
            );
            for (row, point) in rows.chunks_exact_mut(dim).enumerate() {
                let mut stream = Stream::new(seed, Purpose::Path, level as u64, row as u64);
                let mut pick =
                    |rows: &[f64]| stream.below((rows.len() / dim) as u64) as usize * dim;
                let first = pick(start);
                let second = end.map(|end| (end, pick(end)));
                for (i, y) in point.iter_mut().enumerate() {
                    let other = second.map_or(0.0, |(end, at)| end[at + i]);
                    *y = a * start[first + i] + b * other + noise * stream.normal();
                }
            }
        }
        Ok(Self {
            dim,
            times: times.to_vec(),
            points,
        })
    }

    /// The times.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Samples at each time.
    pub fn count(&self) -> usize {
        self.points.len() / self.dim / self.times.len()
    }
}

/// The free energy between the first and the last time of a path, by every route.
#[derive(Debug, Clone, Serialize)]
pub struct PathEstimate {
    /// The times.
    pub times: Vec<f64>,
    /// Mean of dU/dt at each: the integrand.
    pub slopes: Vec<Estimate>,
    /// `log(Z_1/Z_0)` by integration: trapezoid, Simpson, spline.
    pub integrals: Vec<(Rule, Estimate)>,
    /// `log(Z_1/Z_0)` by MBAR over the learned energies at all times.
    pub mbar: Estimate,
    /// `log(Z_1/Z_0) = F(0) - F(1)`, as the model learned it.
    pub learned: f64,
    /// `log Z_t + F(t)` at each time by MBAR, relative to the first time: what the learned F misses. Zero for a model that is
    /// right; the model's own error bar.
    pub gaps: Vec<Estimate>,
    /// Overlap of the energies at these times.
    pub overlap: Overlap,
}

impl PathEstimate {
    /// Computes all of it. `settings.pool` serves MBAR.
    ///
    /// # Errors
    /// [`Error::ModelNotFinite`] for an energy that is not finite, and as [`Mbar::solve`].
    pub fn new(
        energy: &dyn Energy,
        samples: &PathSamples,
        settings: &MbarSettings,
    ) -> Result<Self> {
        let (times, count, dim) = (samples.times(), samples.count(), samples.dim);
        let states = times.len();
        let mut slopes = Vec::with_capacity(states);
        let mut rate = vec![0.0; count];
        for (time, points) in times.iter().zip(samples.points.chunks_exact(count * dim)) {
            energy.energy_rate(&[*time], points, &mut rate);
            if rate.iter().any(|x| !x.is_finite()) {
                return Err(Error::ModelNotFinite {
                    what: "energy rate",
                    time: *time,
                });
            }
            slopes.push(Estimate::of(&rate));
        }
        // -log p = U - F at every sample and time: states whose normalisers are all 1 if F is right.
        let total = states * count;
        let mut reduced = vec![0.0; states * total];
        let mut grid = vec![0.0; count * states];
        for (level, points) in samples.points.chunks_exact(count * dim).enumerate() {
            energy.log_density_grid(times, points, &mut grid);
            for (n, row) in grid.chunks_exact(states).enumerate() {
                for (state, value) in row.iter().enumerate() {
                    reduced[state * total + level * count + n] = -value;
                }
            }
        }
        let matrix = Matrix::new(&reduced, states)?;
        let mbar = Mbar::solve(&matrix, &vec![count; states], settings)?;
        let gaps: Vec<Estimate> = (0..states).map(|k| mbar.difference(0, k)).collect();
        let learned = energy.free_energy(times[0]) - energy.free_energy(times[states - 1]);
        let gap = gaps[states - 1];
        let integrals = Rule::ALL
            .into_iter()
            .map(|rule| {
                let Integral { delta, .. } = integrate(times, &slopes, rule)?;
                Ok((rule, delta))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            times: times.to_vec(),
            slopes,
            integrals,
            mbar: Estimate {
                mean: learned + gap.mean,
                error: gap.error,
            },
            learned,
            gaps,
            overlap: mbar.overlap(),
        })
    }

    /// The integral by one rule.
    pub fn integral(&self, wanted: Rule) -> Option<Estimate> {
        self.integrals
            .iter()
            .find(|(rule, _)| *rule == wanted)
            .map(|(_, delta)| *delta)
    }

    /// The part of an error that is not statistical: the largest disagreement of the routes through the path (integration by
    /// Simpson's rule, by the spline, MBAR and, where the objective taught it, the learned F).
    pub fn disagreement(&self, f_is_learned: bool) -> f64 {
        let routes = self
            .integrals
            .iter()
            .filter(|(rule, _)| *rule != Rule::Trapezoid);
        let mut values: Vec<f64> = routes.map(|(_, delta)| delta.mean).collect();
        values.push(self.mbar.mean);
        if f_is_learned {
            values.push(self.learned);
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        high - low
    }
}

/// From a state known by its energies `own` at samples `points` of it (in the model's coordinates) to the learned energy at
/// `time`: `log(Z_time / Z_state)`.
///
/// # Errors
/// As [`perturbation`](fn@perturbation), [`Error::Shape`] if there is not one energy per sample.
pub fn end_correction(
    energy: &dyn Energy,
    time: f64,
    points: &[f64],
    own: &[f64],
) -> Result<Perturbation> {
    if points.len() != own.len() * energy.dim() {
        return Err(Error::Shape {
            what: "the energies of an endpoint".into(),
            found: format!("{} numbers", own.len()),
            expected: format!(
                "one for each of its {} samples",
                points.len() / energy.dim()
            ),
        });
    }
    let mut works = vec![0.0; own.len()];
    energy.energy(&[time], points, &mut works);
    for (work, own) in works.iter_mut().zip(own) {
        *work -= own;
    }
    perturbation(&works, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::exact::ExactPath;
    use crate::process::Linear;
    use crate::system::{Covariance, GaussianMixture};

    /// An exact path whose energy carries a known constant c(t) and a known F.
    struct Shifted {
        inner: ExactPath,
    }

    fn constant(time: f64) -> f64 {
        0.7 * time * time - 1.3 * time
    }

    impl Energy for Shifted {
        fn dim(&self) -> usize {
            self.inner.dim()
        }
        fn free_energy(&self, time: f64) -> f64 {
            constant(time) + 0.05 * time
        }
        fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            self.inner.energy(times, points, out);
            for (i, out) in out.iter_mut().enumerate() {
                *out += constant(times[if times.len() == 1 { 0 } else { i }]);
            }
        }
        fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            self.inner.score(times, points, out);
        }
        fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            self.inner.time_score(times, points, out);
            out.iter_mut().for_each(|out| *out += 0.05);
        }
    }

    fn mixture(weights: Vec<f64>, means: Vec<f64>, variances: Vec<f64>) -> GaussianMixture {
        GaussianMixture::new(2, weights, means, Covariance::Isotropic(variances)).unwrap()
    }

    /// On the exact path all routes give -c(1) + c(0) = 0.6, the ends correct for c, and the gap finds the error 0.05 t of F.
    #[test]
    fn every_route_through_an_exact_path_agrees() {
        let process = Process::Linear(Linear { a: 1.0 });
        let a = mixture(vec![2.0, 1.0], vec![-0.8, 0.3, 1.1, -0.4], vec![0.3, 0.5]);
        let b = mixture(vec![1.0, 3.0], vec![0.5, 1.0, -0.9, -1.2], vec![0.6, 0.2]);
        let path = ExactPath::new(process, a.clone(), Some(b.clone())).unwrap();
        let (x, end) = path.sample_endpoints(4000, 3);
        let y = end.unwrap();
        let energy = Shifted { inner: path };
        let times: Vec<f64> = (0..=24)
            .map(|i| 0.001 + 0.998 * f64::from(i) / 24.0)
            .collect();
        let samples = PathSamples::new(&process, 2, &times, (&x, Some(&y)), 400, 5).unwrap();
        assert_eq!(samples.count(), 400);
        let found = PathEstimate::new(&energy, &samples, &MbarSettings::default()).unwrap();
        let exact = constant(0.001) - constant(0.999);
        for (rule, delta) in &found.integrals {
            // Beyond the statistical error, that of the rules on 24 smooth intervals.
            assert!(
                (delta.mean - exact).abs() < 4.0 * delta.error + 0.01,
                "{rule:?} {delta:?} {exact}"
            );
        }
        assert!(
            (found.mbar.mean - exact).abs() < 4.0 * found.mbar.error,
            "{:?} {exact}",
            found.mbar
        );
        assert!((found.learned - exact + 0.05 * 0.998).abs() < 1e-12);
        let last = found.gaps.len() - 1;
        assert!((found.gaps[last].mean - 0.0499).abs() < 4.0 * found.gaps[last].error);
        assert!(found.disagreement(true) >= found.disagreement(false));
        assert!(found.integral(Rule::Spline).is_some());
        assert!(found.overlap.weak_links().is_empty());
        // States known by -log p + 0.4: log(Z_0 / Z_A) = -c(0) + 0.4.
        let own: Vec<f64> = x.chunks_exact(2).map(|x| 0.4 - a.log_density(x)).collect();
        let correction = end_correction(&energy, 0.001, &x, &own)
            .unwrap()
            .exponential;
        let exact = 0.4 - constant(0.001);
        assert!(
            (correction.mean - exact).abs() < 4.0 * correction.error + 1e-3,
            "{correction:?}"
        );
        assert!(end_correction(&energy, 0.001, &x, &own[1..]).is_err());
    }

    #[test]
    fn endpoints_must_fit_the_process() {
        let linear = Process::Linear(Linear { a: 1.0 });
        let rows = [0.0; 6];
        let times = [0.1, 0.9];
        assert!(PathSamples::new(&linear, 2, &times, (&rows, None), 5, 0).is_err());
        assert!(PathSamples::new(&linear, 4, &times, (&rows, Some(&rows)), 5, 0).is_err());
        assert!(PathSamples::new(&linear, 2, &[0.5, 0.5], (&rows, Some(&rows)), 5, 0).is_err());
        assert!(PathSamples::new(&linear, 2, &times, (&rows, Some(&[])), 5, 0).is_err());
        let vp = Process::by_name("vp").unwrap();
        assert!(PathSamples::new(&vp, 2, &times, (&rows, Some(&rows)), 5, 0).is_err());
        assert!(PathSamples::new(&vp, 2, &times, (&rows, None), 5, 0).is_ok());
    }
}
