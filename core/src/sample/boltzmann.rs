//! The Boltzmann generator: sequential Monte Carlo from a model's noise end to a target whose energy is known, the model's last
//! marginal replaced by the target. The weighted particles are right for the target whatever the model is worth, as long as the
//! start's density is known ([`Start::Mixture`], [`Start::Draws`]): the first weight is `p_learned / p_start` at the first level. A better
//! model gives them evener weights.

use super::{Particles, Path, Smc, SmcLevel, Start, Transport};
use crate::Result;
use crate::energy::{Ending, Energy};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["noe2019boltzmann"];

/// A model's path and the target at its end.
#[derive(Clone, Copy)]
pub struct Boltzmann<'a> {
    /// The path of densities, a trained model say.
    pub path: &'a dyn Energy,
    /// The target: an energy, asked at the last of the times.
    pub target: &'a dyn Energy,
    /// Times of the levels, from the start to the target, whose time is the last.
    pub times: &'a [f64],
    /// Where particles come from.
    pub start: Start<'a>,
    /// Proposals between levels, if not MCMC alone.
    pub transport: Option<&'a dyn Transport>,
}

/// The same target by three methods with the same particles.
#[derive(Debug, Clone, PartialEq)]
pub struct Contest {
    /// Sequential Monte Carlo.
    pub smc: Particles,
    /// Annealed importance sampling: the same levels, never resampled.
    pub ais: Particles,
    /// Importance sampling from the start to the target at once; `None` if the start's density is not known.
    pub importance: Option<Particles>,
}

impl Boltzmann<'_> {
    /// Runs sequential Monte Carlo (or AIS, by its settings).
    pub fn run(
        &self,
        smc: &Smc,
        particles: usize,
        progress: &mut dyn FnMut(&SmcLevel),
    ) -> Result<Particles> {
        let ending = Ending {
            path: self.path,
            target: self.target,
            time: self.times.last().copied().unwrap_or(f64::NAN),
        };
        let path = Path {
            energy: &ending,
            times: self.times,
            start: self.start,
            transport: self.transport,
        };
        smc.run(&path, particles, progress)
    }

    /// Importance sampling: the start's draws, weighted by the target.
    pub fn importance_sampling(&self, smc: &Smc, particles: usize) -> Result<Particles> {
        let smc = Smc {
            moves: 0,
            threshold: 0.0,
            least_overlap: 0.0,
            frozen_steps: None,
            adaptive: None,
            ..smc.clone()
        };
        let path = Path {
            energy: self.target,
            times: &self.times[self.times.len().saturating_sub(1)..],
            start: self.start,
            transport: None,
        };
        smc.run(&path, particles, &mut |_| ())
    }

    /// All three methods. Overlap is not asked of AIS, which has to live with what its weights become.
    pub fn contest(
        &self,
        smc: &Smc,
        particles: usize,
        progress: &mut dyn FnMut(&SmcLevel),
    ) -> Result<Contest> {
        let ais = Smc {
            least_overlap: 0.0,
            ..smc.clone()
        };
        Ok(Contest {
            smc: self.run(smc, particles, progress)?,
            ais: self.run(&ais.annealed_importance_sampling(), particles, progress)?,
            importance: match self.start {
                Start::Mixture(_) | Start::Draws { .. } => {
                    Some(self.importance_sampling(smc, particles)?)
                }
                Start::Points(_) => None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Baseline, DiffusionKernels, Diffusivity, InterpolantKernels};
    use super::*;
    use crate::energy::Prior;
    use crate::energy::SystemEnergy;
    use crate::energy::exact::ExactPath;
    use crate::process::{Process, TimeGrid};
    use crate::system::{Covariance, GaussianMixture, System, two_modes};

    /// Exact draws at the first level of an interpolant, a learned path whose second endpoint has its weights the wrong way round: with the
    /// first weight, log Z is 0 and the mode's share 2/3; without it, both are off and the result says what they are relative to.
    #[test]
    fn exact_draws_are_weighted_against_a_wrong_first_level() {
        let process = Process::by_name("linear").unwrap();
        let first = two_modes().unwrap();
        let second = |weights: Vec<f64>| {
            let covariance = Covariance::Isotropic(vec![0.1, 0.2]);
            GaussianMixture::new(2, weights, vec![-0.9, -1.1, 1.3, 0.8], covariance).unwrap()
        };
        let path = |end| ExactPath::new(process, first.clone(), Some(end)).unwrap();
        let (exact, wrong) = (path(second(vec![3.0, 1.0])), path(second(vec![1.0, 3.0])));
        let n = 4000;
        let times: Vec<f64> = (0..=150)
            .map(|k| {
                (0.5 * std::f64::consts::PI * 0.98 * (1.0 - f64::from(k) / 150.0))
                    .sin()
                    .powi(2)
            })
            .collect();
        let kernels = InterpolantKernels {
            process,
            velocity: &exact,
            energy: &exact,
            g: Diffusivity::Constant { value: 0.1 },
        };
        let points = exact.sample(times[0], n, 5);
        let run = |start| {
            let generator = Boltzmann {
                path: &wrong,
                target: &exact,
                times: &times,
                start,
                transport: Some(&kernels),
            };
            let smc = Smc {
                moves: 0,
                least_overlap: 0.0,
                seed: 7,
                runs: 8,
                ..Smc::default()
            };
            let found = generator.run(&smc, n, &mut |_| ()).unwrap();
            let rows = found.points.chunks_exact(2).zip(&found.weights);
            let share: f64 = rows
                .filter(|(y, _)| first.nearest(y) == 0)
                .map(|(_, w)| w)
                .sum();
            (found, share)
        };
        let (found, share) = run(Start::Draws {
            points: &points,
            density: &exact,
            time: times[0],
        });
        let error = found.log_z.error.unwrap();
        assert_eq!(found.baseline, Baseline::StartDensity);
        assert!(
            found.log_z.value.abs() < 4.0 * error && error < 0.1,
            "{}",
            found.log_z
        );
        let allowed = 4.0 * (2.0 / 9.0 / (found.ess() * n as f64)).sqrt();
        assert!(
            (share - 2.0 / 3.0).abs() < allowed && allowed < 0.1,
            "{share} {allowed}"
        );
        let (found, _) = run(Start::Points(&points));
        assert_eq!(found.baseline, Baseline::FirstLevel);
        // The mean of p_exact / p_wrong over p_exact: 9/4 + 1/12 = 7/3 where modes do not overlap.
        assert!(found.log_z.value > 0.3, "{}", found.log_z);
    }

    #[test]
    fn a_wrong_model_still_gives_the_targets_weights() {
        // The model believes in weights 0.45 and 0.55; the target has 2/3 and 1/3 and an energy shifted by 1.7, so log Z = 1.7.
        let target = two_modes().unwrap();
        let covariance = Covariance::Isotropic(vec![0.04, 0.05]);
        let believed =
            GaussianMixture::new(2, vec![0.45, 0.55], target.means().to_vec(), covariance).unwrap();
        let process = Process::default();
        let model = ExactPath::new(process, believed.clone(), None).unwrap();
        let exact = SystemEnergy::new(System::by_name("two-modes", 2, 0).unwrap()).unwrap();
        let shifted = crate::energy::Closure::new(2, |t, y: &[f64], score: &mut [f64]| {
            let mut u = [0.0];
            exact.energy_and_score(&[t], y, &mut u, score);
            u[0] - 1.7
        });
        let grid = TimeGrid::default_for(&process).with_levels(60).unwrap();
        let times: Vec<f64> = grid.times().iter().rev().copied().chain([0.0]).collect();
        let start = Prior::new(
            &process,
            grid.t_max(),
            &believed.mean(),
            believed.variance(),
        );
        let start = start.mixture().unwrap();
        let kernels = DiffusionKernels {
            process,
            energy: &model,
        };
        for transport in [None, Some(&kernels as &dyn Transport)] {
            let generator = Boltzmann {
                path: &model,
                target: &shifted,
                times: &times,
                start: Start::Mixture(&start),
                transport,
            };
            let smc = Smc {
                moves: 3,
                threshold: 0.5,
                least_overlap: 0.01,
                seed: 2,
                ..Smc::default()
            };
            let found = generator.contest(&smc, 2000, &mut |_| ()).unwrap();
            for (name, particles) in [("smc", &found.smc), ("ais", &found.ais)] {
                let log_z = particles.log_z;
                let error = log_z.error.unwrap();
                assert!(
                    (log_z.value - 1.7).abs() < 4.0 * error && error < 0.3,
                    "{name}: {log_z:?}"
                );
                let share: f64 = particles
                    .points
                    .chunks_exact(2)
                    .zip(&particles.weights)
                    .filter(|(y, _)| y[0] < 0.0)
                    .map(|(_, w)| w)
                    .sum();
                let n = (particles.families as f64).min(particles.ess() * 2000.0);
                let allowed = 4.0 * (2.0 / 9.0 / n).sqrt();
                assert!(
                    (share - 2.0 / 3.0).abs() < allowed && allowed < 0.3,
                    "{name}: {share} {allowed}"
                );
            }
            let plain = found.importance.unwrap();
            assert!(
                (plain.log_z.value - 1.7).abs() < 4.0 * plain.log_z.error.unwrap(),
                "{:?}",
                plain.log_z
            );
            assert!(
                plain.ess() < found.smc.ess(),
                "{} {}",
                plain.ess(),
                found.smc.ess()
            );
        }
    }
}
