//! True marginals: the loss has its Bayes value there, and no parameter's expected gradient pulls away from it.

use super::*;
use crate::energy::exact::ExactPath;
use crate::energy::tests::{diffusions, spec};
use crate::energy::{Energy, Form};
use crate::process::sampler::{Grid, Uniform};
use crate::process::{Linear, Process};
use crate::system::{Covariance, GaussianMixture};

/// A model that is exact before training: a diffusion of Gaussian data with a zero network.
fn exact_models() -> Vec<ModelSpec> {
    diffusions()
        .into_iter()
        .map(|process| spec(process, Some(Form::InnerProductPlusScalar), false))
        .collect()
}

#[test]
fn diffclf_of_exact_marginals_is_the_bayes_risk() {
    for spec in exact_models() {
        let params: Vec<f64> = spec.layout().initialise(1);
        let data = GaussianMixture::new(
            3,
            vec![1.0],
            spec.mean.clone(),
            Covariance::Isotropic(vec![spec.variance]),
        )
        .unwrap();
        let path = ExactPath::new(spec.process, data, None).unwrap();
        for (levels, times) in [
            (2, TimeSampler::Grid(Grid {})),
            (4, TimeSampler::Uniform(Uniform {})),
        ] {
            let sum = Sum {
                terms: "diffclf",
                levels,
                times,
            };
            let batch = 50;
            let (found, _) = run(&spec, sum, batch, &params, 2);
            let rows = clouds(&spec);
            let step = step::<f64>(&spec, sum, batch, false, 1, Isa::detect());
            let draws = step.draws(2, &endpoints(&spec, &rows));
            let mut bayes = 0.0;
            for row in 0..batch {
                let times = &draws.times[row * levels..][..levels];
                for (i, &time) in times.iter().enumerate() {
                    let y: Vec<f64> = (0..3)
                        .map(|c| {
                            let z = f64::from(draws.noise[(row * levels + i) * 3 + c]);
                            spec.process.scale(time) * draws.start[row * 3 + c] as f64
                                + spec.process.noise(time) * z
                        })
                        .collect();
                    let mut grid = vec![0.0; levels];
                    path.log_density_grid(times, &y, &mut grid);
                    let evidence: f64 = grid.iter().map(|l| (l - grid[i]).exp()).sum();
                    bayes += evidence.ln() / (batch * levels) as f64;
                }
            }
            assert!(
                (found.total - bayes).abs() < 1e-11,
                "{} {bayes}",
                found.total
            );
        }
    }
}

#[test]
fn true_marginals_are_stationary_points_of_every_loss() {
    for spec in exact_models() {
        let layout = spec.layout();
        let params: Vec<f64> = layout.initialise(1);
        for sum in [
            Sum {
                terms: "dsm",
                levels: 2,
                times: TimeSampler::Grid(Grid {}),
            },
            Sum {
                terms: "diffclf",
                levels: 3,
                times: TimeSampler::Grid(Grid {}),
            },
            Sum {
                terms: "binary-diffclf",
                levels: 2,
                times: TimeSampler::Uniform(Uniform {}),
            },
        ] {
            let mut step = step::<f64>(&spec, sum, 400, true, 1, Isa::detect());
            let rows = clouds(&spec);
            let (mut losses, mut gradient) = (Losses::default(), vec![0.0; params.len()]);
            let steps = 40;
            let (mut mean, mut square) = (vec![0.0; params.len()], vec![0.0; params.len()]);
            for number in 0..steps {
                step.run(
                    &params,
                    number,
                    &endpoints(&spec, &rows),
                    &mut losses,
                    &mut gradient,
                )
                .unwrap();
                for (k, g) in gradient.iter().enumerate() {
                    mean[k] += g / steps as f64;
                    square[k] += g * g / steps as f64;
                }
            }
            let mut seen = 0;
            for k in 0..params.len() {
                let variance = square[k] - mean[k] * mean[k];
                if variance > 0.0 {
                    seen += 1;
                    // The error bar comes from 40 steps, so this is Student's t with 39 degrees of freedom; among the at most
                    // 100 components 5 sigma is passed by chance once in a thousand runs, and the seed is fixed.
                    let sigma = (variance / (steps - 1) as f64).sqrt();
                    assert!(
                        mean[k].abs() < 5.0 * sigma,
                        "{sum:?}, parameter {k}: {} +- {sigma}",
                        mean[k]
                    );
                }
            }
            // Output layers take part; F as well where classes are compared.
            assert!(seen >= if sum.terms == "dsm" { 30 } else { 40 }, "{seen}");
        }
    }
}

/// With `a^2 = 2` and standard normal ends, a linear interpolant is standard normal at every time: U = |y|^2 / 2 is exact, the
/// levels cannot be told apart, and the classification loss of every single sample is log N.
#[test]
fn indistinguishable_levels_cost_log_n() {
    let process = Process::Linear(Linear {
        a: std::f64::consts::SQRT_2,
    });
    let mut spec = spec(process, Some(Form::ResidualSquaredNorm), true);
    spec.variance = 1.0;
    let params: Vec<f64> = spec.layout().initialise(1);
    for levels in [2, 5, 8] {
        let sum = Sum {
            terms: "diffclf",
            levels,
            times: TimeSampler::Grid(Grid {}),
        };
        let (losses, _) = run(&spec, sum, 30, &params, 0);
        assert!((losses.total - (levels as f64).ln()).abs() < 1e-13);
    }
}
