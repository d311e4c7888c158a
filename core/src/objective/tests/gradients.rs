//! Parameter gradients of every objective and of their sums, through mixed derivatives of the energy, against differences.

use super::*;
use crate::energy::tests::{name, params, particle_sheet, sheet};
use crate::process::sampler::Grid;

/// Loss after a move of the parameters, without the gradient's graph.
struct Loss<'a> {
    spec: &'a ModelSpec,
    step: Step<f64>,
    params: &'a [f64],
    rows: (Cloud, Cloud),
}

impl Loss<'_> {
    fn moved(&mut self, by: impl Fn(usize) -> f64) -> f64 {
        let params: Vec<f64> = self
            .params
            .iter()
            .enumerate()
            .map(|(k, p)| p + by(k))
            .collect();
        let mut losses = Losses::default();
        let from = endpoints(self.spec, &self.rows);
        self.step
            .run(&params, 3, &from, &mut losses, &mut [])
            .unwrap();
        losses.total
    }

    /// Five-point central difference along a direction.
    fn difference(&mut self, h: f64, direction: impl Fn(usize) -> f64) -> f64 {
        let mut at = |s: f64| self.moved(|k| s * h * direction(k));
        (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h)
    }
}

#[test]
fn gradients_are_derivatives_of_the_losses() {
    for (number, spec) in sheet().into_iter().enumerate() {
        let spec = with_velocity(spec);
        let params: Vec<f64> = params::<f64>(&spec, 1).iter().map(|p| 0.5 * p).collect();
        let batch = batch_of(number);
        let all: Vec<Sum> = sums(&spec)
            .into_iter()
            .chain(more_sums(&spec, number))
            .collect();
        check(&spec, (number, batch), &params, &all);
    }
}

/// Attention, layer norms and points without a centre: second derivatives in DSM, third ones in the Fokker-Planck residual.
#[test]
fn gradients_over_particles() {
    for spec in particle_sheet() {
        let params: Vec<f64> = params::<f64>(&spec, 1).iter().map(|p| 0.5 * p).collect();
        let sum = |terms, levels| Sum {
            terms,
            levels,
            times: TimeSampler::Grid(Grid {}),
        };
        let mut all = vec![sum("dsm", 1), sum("0.4*dsm+1.7*diffclf", 3)];
        if !spec.process.is_interpolant() {
            all.push(sum("fokker-planck", 2));
        }
        check(&spec, (0, BATCH), &params, &all);
    }
}

/// Gradients along random directions, and of single parameters for one of the sums.
fn check(spec: &ModelSpec, (number, batch): (usize, usize), params: &[f64], all: &[Sum]) {
    let layout = spec.layout();
    for (k, &sum) in all.iter().enumerate() {
        let (losses, gradient) = run(spec, sum, batch, params, 3);
        let mut loss = Loss {
            spec,
            step: step(spec, sum, batch, false, 1, Isa::detect()),
            params,
            rows: clouds(spec),
        };
        let what = format!("{}, {sum:?}", name(spec));
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        for seed in 0..2 {
            let mut stream = Stream::new(seed, Purpose::Test, 9, 0);
            let direction: Vec<f64> = params.iter().map(|_| stream.normal()).collect();
            let along: f64 = gradient.iter().zip(&direction).map(|(g, v)| g * v).sum();
            // Losses that are exponentials of the parameters need steps that are short on their own scale.
            let own = 0.02 * losses.total.abs() / along.abs().max(1e-300);
            let difference = loss.difference(own.clamp(1e-6, 1e-4), |k| direction[k]);
            // A random direction's derivative is of the size of the gradient's norm.
            let error = (along - difference).abs();
            assert!(
                error < 1e-6 * along.abs().max(0.1 * norm),
                "{what}: {along}, difference {difference}"
            );
        }
        // Single parameters of every matrix: each spec takes another of its sums.
        let exponential = ["square", "inverse", "kl", "log"]
            .iter()
            .any(|g| sum.terms.contains(g));
        if k != number * 7 % all.len() || exponential {
            continue;
        }
        for entry in layout.entries() {
            let part = &gradient[entry.range()];
            let largest = part.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            for i in [0, part.len() / 3, part.len() - 1] {
                let difference =
                    loss.difference(1e-4, |k| f64::from(u8::from(k == entry.offset + i)));
                let error = (part[i] - difference).abs();
                let name = &entry.name;
                // Rounding of the loss itself: 1e-16 / 1e-4 of its size.
                let rounding = 1e-11 * (1.0 + norm + losses.total.abs());
                let allowed = 1e-6 * part[i].abs().max(0.01 * largest) + rounding;
                assert!(
                    error < allowed,
                    "{what}, {name}[{i}]: {}, difference {difference}",
                    part[i]
                );
            }
        }
    }
}

/// With the gradient stopped at the score of the backward kernel, the loss is differentiated as if that score came from a model
/// of its own.
#[test]
fn a_stopped_gradient_leaves_the_backward_kernel_alone() {
    use super::formulas::by_formula_with;
    use crate::energy::Form;
    use crate::energy::tests::{diffusions, spec};
    let model = spec(diffusions()[0], Some(Form::InnerProduct), false);
    let params: Vec<f64> = params::<f64>(&model, 1).iter().map(|p| 0.5 * p).collect();
    let sum = |terms| Sum {
        terms,
        levels: 2,
        times: TimeSampler::Grid(Grid {}),
    };
    let stopped = sum("bayes(gap=2,stop-gradient=yes)");
    let (here, gradient) = run(&model, stopped, BATCH, &params, 3);
    let (same, whole) = run(&model, sum("bayes(gap=2)"), BATCH, &params, 3);
    assert_eq!(here.total, same.total);
    let mut stream = Stream::new(5, Purpose::Test, 9, 0);
    let direction: Vec<f64> = params.iter().map(|_| stream.normal()).collect();
    let at = |h: f64| {
        let moved: Vec<f64> = params
            .iter()
            .zip(&direction)
            .map(|(p, v)| p + h * v)
            .collect();
        by_formula_with(&model, stopped, BATCH, &moved, &params, 3)[0].value
    };
    let h = 1e-4;
    let difference = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
    let along = |g: &[f64]| -> f64 { g.iter().zip(&direction).map(|(g, v)| g * v).sum() };
    let (stopped, whole) = (along(&gradient), along(&whole));
    assert!(
        (stopped - difference).abs() < 1e-6 * difference.abs(),
        "{stopped} {difference}"
    );
    assert!(
        (whole - difference).abs() > 1e-2 * difference.abs(),
        "{whole} {difference}"
    );
}
