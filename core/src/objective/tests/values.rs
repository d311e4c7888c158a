//! Loss values against the formulas, written out with plain loops over the draws of a step.

use super::*;
use crate::energy::tests::reference::{self, Reference};
use crate::energy::tests::{name, params, sheet};

/// Mean over the batch of each term, unweighted.
pub(crate) fn by_formula(
    spec: &ModelSpec,
    sum: Sum,
    batch: usize,
    params: &[f64],
    number: u64,
) -> Vec<f64> {
    let rows = clouds(spec);
    let step = step::<f64>(spec, sum, batch, false, 1, Isa::detect());
    let draws = step.draws(number, endpoints(spec, &rows));
    let model = Reference::new(spec, params);
    let (d, n) = (spec.dim, sum.levels);
    let noise: Vec<f64> = draws.noise.iter().map(|&z| f64::from(z)).collect();
    let mut totals = vec![0.0; step.plan().terms.len()];
    for row in 0..batch {
        let times = &draws.times[row * n..][..n];
        let x0 = &draws.start[row * d..][..d];
        let noisy = |i: usize, sign: f64| -> Vec<f64> {
            let (alpha, beta) = reference::endpoints(&spec.process, times[i]);
            let (scale, sigma) = reference::schedule(&spec.process, times[i]);
            (0..d)
                .map(|c| {
                    let x1 = if draws.end.is_empty() {
                        0.0
                    } else {
                        draws.end[row * d + c] as f64
                    };
                    let z = sign * noise[(row * n + i) * d + c];
                    alpha * x0[c] as f64 + beta * x1 + scale * sigma * z
                })
                .collect()
        };
        let points: Vec<Vec<f64>> = (0..n).map(|i| noisy(i, 1.0)).collect();
        for (total, term) in totals.iter_mut().zip(&step.plan().terms) {
            let mut loss = 0.0;
            for i in 0..n {
                let (scale, sigma) = reference::schedule(&spec.process, times[i]);
                let gamma = scale * sigma;
                let log_density = |j: usize| model.log_density(times[j], &points[i]);
                loss += match term.objective.objective().name() {
                    "dsm" => {
                        let square = |sign: f64, y: &[f64]| -> f64 {
                            let score = model.score(times[i], y);
                            (0..d)
                                .map(|c| {
                                    (score[c] + sign * noise[(row * n + i) * d + c] / gamma).powi(2)
                                })
                                .sum()
                        };
                        if spec.process.is_interpolant() {
                            gamma
                                * gamma
                                * 0.5
                                * (square(1.0, &points[i]) + square(-1.0, &noisy(i, -1.0)))
                        } else {
                            let sd2 = spec.variance;
                            gamma * gamma * (sigma * sigma + sd2) / sd2 * square(1.0, &points[i])
                        }
                    }
                    "diffclf" => {
                        let margins: Vec<f64> =
                            (0..n).map(|j| log_density(j) - log_density(i)).collect();
                        let most = margins.iter().fold(0.0, |m: f64, x| m.max(*x));
                        most + margins.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
                    }
                    "binary-diffclf" => {
                        let margin = log_density(1 - i) - log_density(i);
                        margin.max(0.0) + (-margin.abs()).exp().ln_1p()
                    }
                    other => panic!("no formula for {other}"),
                };
            }
            *total += loss / n as f64;
        }
    }
    totals.iter().map(|t| t / batch as f64).collect()
}

#[test]
fn losses_are_those_of_the_formulas() {
    for (number, spec) in sheet().into_iter().enumerate() {
        let batch = batch_of(number);
        let params: Vec<f64> = params::<f64>(&spec, 1).iter().map(|p| 0.5 * p).collect();
        for sum in sums(&spec) {
            let expected = by_formula(&spec, sum, batch, &params, 3);
            let (losses, _) = run(&spec, sum, batch, &params, 3);
            let what = format!("{}, {sum:?}", name(&spec));
            for (found, expected) in losses.terms.iter().zip(&expected) {
                let allowed = 1e-10 * (1.0 + expected.abs());
                assert!(
                    (found - expected).abs() < allowed,
                    "{what}: {found}, expected {expected}"
                );
            }
            let terms = parse_terms(sum.terms).unwrap();
            let total: f64 = losses
                .terms
                .iter()
                .zip(&terms)
                .map(|(loss, term)| loss * term.weight)
                .sum();
            assert!(
                (losses.total - total).abs() < 1e-13 * (1.0 + total.abs()),
                "{what}"
            );
        }
    }
}
