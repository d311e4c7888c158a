//! The evaluation of a model against the exact path: all metrics at every level of a grid, and their averages.

use super::{
    Estimate, ModeWeights, agreement, classification_losses, effective_sample_size,
    fisher_divergence, mode_weights,
};
use crate::energy::Energy;
use crate::energy::exact::ExactPath;
use crate::process::TimeGrid;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How much to compute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationSettings {
    /// Exact samples per level for Fisher divergence, ESS and R^2.
    pub samples_per_level: usize,
    /// How many of them also enter the classification loss, which costs a log-density per level for each.
    pub classification_samples_per_level: usize,
    /// Exact samples for the mode weights.
    pub mode_weight_samples: usize,
    /// Seed of the exact samples.
    pub seed: u64,
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        Self {
            samples_per_level: 1024,
            classification_samples_per_level: 64,
            mode_weight_samples: 8192,
            seed: 0,
        }
    }
}

/// The metrics of one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Its time.
    pub time: f64,
    /// Mean of |score - exact|^2 / dim.
    pub fisher: Estimate,
    /// Effective sample size of p_model/p_exact, a fraction of 1.
    pub ess: f64,
    /// R^2 of the log-densities, up to a constant.
    pub r2: f64,
    /// Mean of model minus exact log-density.
    pub offset: Estimate,
    /// Classification loss of the model over all levels of the grid.
    pub classification: Estimate,
    /// The same loss of the exact marginals on the same samples: the Bayes optimum.
    pub optimum: Estimate,
    /// Their difference, sample by sample; its error is much smaller than theirs.
    pub excess: Estimate,
}

/// Means over the levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Average {
    /// Mean Fisher divergence.
    pub fisher: Estimate,
    /// Mean effective sample size.
    pub ess: f64,
    /// Mean R^2.
    pub r2: f64,
    /// Median R^2: a few levels can spoil the mean.
    pub median_r2: f64,
    /// Mean classification loss.
    pub classification: Estimate,
    /// Mean Bayes-optimal loss.
    pub optimum: Estimate,
    /// Mean difference of the two.
    pub excess: Estimate,
}

/// Everything that is known about a model whose system has an exact path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// How it was computed.
    pub settings: EvaluationSettings,
    /// Averages over the levels.
    pub average: Average,
    /// Mode weights at the first level.
    pub mode_weights: ModeWeights,
    /// The levels, by increasing time.
    pub levels: Vec<Level>,
}

impl Evaluation {
    /// Evaluates `model` on exact samples at every level of `grid`; the classes of the classification loss are all its levels.
    /// `progress` is called with (levels done, levels in all) after each level.
    pub fn run(
        model: &dyn Energy,
        exact: &ExactPath,
        grid: &TimeGrid,
        settings: EvaluationSettings,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self> {
        check(model, exact, grid, &settings)?;
        let mut levels = Vec::with_capacity(grid.levels());
        for level in 0..grid.levels() {
            levels.push(evaluate_level(
                model,
                exact,
                grid.times(),
                level,
                &settings,
            )?);
            progress(level + 1, grid.levels());
        }
        let mode_weights = mode_weights(
            model,
            exact,
            grid.t_min(),
            settings.mode_weight_samples,
            settings.seed,
        )?;
        Ok(Self {
            settings,
            average: Average::of(&levels),
            mode_weights,
            levels,
        })
    }
}

impl Average {
    fn of(levels: &[Level]) -> Self {
        let n = levels.len() as f64;
        let mut r2: Vec<f64> = levels.iter().map(|level| level.r2).collect();
        r2.sort_by(f64::total_cmp);
        let middle = r2.len() / 2;
        Self {
            fisher: Estimate::average(levels.iter().map(|level| level.fisher)),
            ess: levels.iter().map(|level| level.ess).sum::<f64>() / n,
            r2: r2.iter().sum::<f64>() / n,
            median_r2: if r2.len() % 2 == 1 {
                r2[middle]
            } else {
                0.5 * (r2[middle - 1] + r2[middle])
            },
            classification: Estimate::average(levels.iter().map(|level| level.classification)),
            optimum: Estimate::average(levels.iter().map(|level| level.optimum)),
            excess: Estimate::average(levels.iter().map(|level| level.excess)),
        }
    }
}

fn evaluate_level(
    model: &dyn Energy,
    exact: &ExactPath,
    times: &[f64],
    level: usize,
    settings: &EvaluationSettings,
) -> Result<Level> {
    let (time, n, dim) = (times[level], settings.samples_per_level, exact.dim());
    let points = exact.sample(time, n, settings.seed);
    // log p = F - U; F shifts all rows of a level alike.
    let log_density_and_score = |energy: &dyn Energy| {
        let (mut log_density, mut score) = (vec![0.0; n], vec![0.0; n * dim]);
        energy.energy_and_score(&[time], &points, &mut log_density, &mut score);
        let free_energy = energy.free_energy(time);
        log_density
            .iter_mut()
            .for_each(|value| *value = free_energy - *value);
        (log_density, score)
    };
    let (log_density, score) = log_density_and_score(model);
    let (exact_log_density, exact_score) = log_density_and_score(exact);
    check_finite("log-density", time, &log_density)?;
    check_finite("score", time, &score)?;
    let log_weights: Vec<f64> = log_density
        .iter()
        .zip(&exact_log_density)
        .map(|(a, b)| a - b)
        .collect();
    let agreement = agreement(&log_density, &exact_log_density);

    let points = &points[..settings.classification_samples_per_level * dim];
    let losses = classification_losses(model, times, level, points);
    let optimal = classification_losses(exact, times, level, points);
    check_finite("classification loss", time, &losses)?;
    let excess: Vec<f64> = losses.iter().zip(&optimal).map(|(a, b)| a - b).collect();
    Ok(Level {
        time,
        fisher: fisher_divergence(&score, &exact_score, dim),
        ess: effective_sample_size(&log_weights),
        r2: agreement.r2,
        offset: agreement.offset,
        classification: Estimate::of(&losses),
        optimum: Estimate::of(&optimal),
        excess: Estimate::of(&excess),
    })
}

fn check(
    model: &dyn Energy,
    exact: &ExactPath,
    grid: &TimeGrid,
    settings: &EvaluationSettings,
) -> Result<()> {
    if model.dim() != exact.dim() {
        return Err(Error::Shape {
            what: "model".into(),
            found: format!("dimension {}", model.dim()),
            expected: format!("{}, the dimension of the system", exact.dim()),
        });
    }
    grid.validate(exact.process())?;
    let few = settings
        .classification_samples_per_level
        .min(settings.mode_weight_samples);
    if few < 2 || settings.classification_samples_per_level > settings.samples_per_level {
        return Err(Error::Value {
            name: "samples of the evaluation",
            found: format!(
                "{} per level, {} of them classified, {} for the mode weights",
                settings.samples_per_level,
                settings.classification_samples_per_level,
                settings.mode_weight_samples
            ),
            expected: "at least 2 of each, and not more classified than drawn".into(),
        });
    }
    Ok(())
}

fn check_finite(what: &'static str, time: f64, values: &[f64]) -> Result<()> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(Error::ModelNotFinite { what, time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Linear, Process, Spacing};
    use crate::system::{Covariance, GaussianMixture, mog2, two_modes};

    fn settings(samples: usize) -> EvaluationSettings {
        EvaluationSettings {
            samples_per_level: samples,
            classification_samples_per_level: samples,
            mode_weight_samples: samples,
            seed: 4,
        }
    }

    #[test]
    fn the_exact_model_is_perfect() {
        let linear = Process::Linear(Linear { a: 0.8 });
        let paths = [
            ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap(),
            ExactPath::new(linear, mog2(2).unwrap(), Some(two_modes().unwrap())).unwrap(),
        ];
        for path in paths {
            let grid = TimeGrid::default_for(path.process())
                .with_levels(8)
                .unwrap();
            let mut calls = vec![];
            let found = Evaluation::run(&path, &path, &grid, settings(50), &mut |done, all| {
                calls.push((done, all))
            })
            .unwrap();
            assert_eq!(calls, (1..=8).map(|i| (i, 8)).collect::<Vec<_>>());
            assert_eq!(
                (
                    found.average.fisher.mean,
                    found.average.ess,
                    found.average.r2
                ),
                (0.0, 1.0, 1.0)
            );
            assert_eq!(
                (found.average.median_r2, found.average.excess.mean),
                (1.0, 0.0)
            );
            assert!(found.average.optimum.mean > 0.0 && found.average.optimum.mean < 8.0_f64.ln());
            let text = serde_json::to_string(&found).unwrap();
            assert_eq!(serde_json::from_str::<Evaluation>(&text).unwrap(), found);
        }
    }

    /// A Gaussian against a Gaussian: every metric has a closed form.
    #[test]
    fn a_wrong_gaussian_has_the_metrics_of_theory() {
        let gaussian = |variance: f64| {
            GaussianMixture::new(
                1,
                vec![1.0],
                vec![0.0],
                Covariance::Isotropic(vec![variance]),
            )
            .unwrap()
        };
        let process = Process::by_name("edm").unwrap();
        let exact = ExactPath::new(process, gaussian(1.0), None).unwrap();
        let model = ExactPath::new(process, gaussian(1.5), None).unwrap();
        let grid = TimeGrid::new(3, 0.5, 1.5, Spacing::Linear {}).unwrap();
        let found =
            Evaluation::run(&model, &exact, &grid, settings(20_000), &mut |_, _| {}).unwrap();
        for level in &found.levels {
            let (v, w) = (1.0 + level.time.powi(2), 1.5 + level.time.powi(2));
            // E (y/w - y/v)^2 = v (1/v - 1/w)^2, and R^2 = 1 - (1/w - 1/v)^2 / (1/v)^2: squared slopes of log-densities.
            let within = |found: Estimate, expected: f64| {
                assert!(
                    (found.mean - expected).abs() < 4.0 * found.error,
                    "{found} {expected}"
                );
            };
            within(level.fisher, v * (1.0 / v - 1.0 / w).powi(2));
            assert!((level.r2 - (1.0 - (1.0 - v / w).powi(2))).abs() < 1e-12);
            // E log p_model - log p_exact = -KL.
            within(level.offset, -0.5 * (v / w - 1.0 + (w / v).ln()));
            // (E r)^2 / E r^2 with r = p_model/p_exact: E r = 1, E r^2 = v / sqrt(w (2v - w)). The estimate's relative error is
            // below 1/sqrt(n) here (weights within a factor 2.2 of 1 for almost all points).
            let expected = (w * (2.0 * v - w)).sqrt() / v;
            assert!(
                (level.ess / expected - 1.0).abs() < 4.0 / 20_000_f64.sqrt(),
                "{} {expected}",
                level.ess
            );
            // A wrong classifier is worse than the optimum; the excess is known better than either loss.
            assert!(level.excess.error < level.optimum.error);
        }
        let average = found.average;
        assert!(average.excess.mean > 4.0 * average.excess.error);
        assert!(
            (average.excess.mean - (average.classification.mean - average.optimum.mean)).abs()
                < 1e-12
        );
    }

    #[test]
    fn impossible_requests_are_refused() {
        let plane = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
        let space = ExactPath::new(Process::default(), mog2(3).unwrap(), None).unwrap();
        let grid = TimeGrid::default_for(&Process::default())
            .with_levels(4)
            .unwrap();
        let run = |model: &ExactPath, grid: &TimeGrid, settings| {
            Evaluation::run(model, &plane, grid, settings, &mut |_, _| {}).map(|_| ())
        };
        assert!(run(&plane, &grid, settings(2)).is_ok());
        assert!(run(&space, &grid, settings(2)).is_err());
        assert!(run(&plane, &grid, settings(1)).is_err());
        assert!(
            run(
                &plane,
                &grid,
                EvaluationSettings {
                    samples_per_level: 5,
                    ..settings(9)
                }
            )
            .is_err()
        );
        let beyond = TimeGrid::new(4, 0.5, 3.0, Spacing::Linear {}).unwrap();
        assert!(run(&plane, &beyond, settings(2)).is_err());
    }
}
