//! What a loss cannot see: a constant, and for DiffCLF and the losses of time derivatives a factor c(y) common to all times.

use super::*;
use crate::process::sampler::Grid;

fn mean_loss(path: &ExactPath, objective: &ObjectiveName, change: Change<'_>) -> f64 {
    let spec = spec_of(path);
    let model = Changed {
        path,
        change,
        speed: 1.0,
    };
    let loss = |number| row(&spec, path, &model, number).loss(objective).0;
    (0..40).map(loss).sum::<f64>() / 40.0
}

#[test]
fn constants_and_common_factors_are_seen_by_those_losses_that_should() {
    // Objective, whether a constant in log p shows, whether a factor c(y) does.
    let cases = [
        ("dsm", false, true),
        ("diffclf", false, false),
        ("binary-diffclf", false, false),
        ("binary-bregman(generator=kl)", false, false),
        ("bregman(generator=js)", false, false),
        ("bregman(generator=square)", false, false),
        ("known-diffclf", true, true),
        ("anchor", true, true),
        ("ctsm", false, false),
        ("tsm", false, false),
        ("dre-infinity", false, false),
        ("fokker-planck", false, true),
        ("bayes", false, true),
        ("target-score", false, true),
    ];
    let path = plane(vp());
    for (text, constant, factor) in cases {
        let objective: ObjectiveName = text.parse().unwrap();
        let here = mean_loss(&path, &objective, &nothing);
        let shifted = mean_loss(&path, &objective, &|_, _| 0.7);
        let multiplied = mean_loss(&path, &objective, &|_, y| (0.8 * y[0] - y[1]).sin());
        // Rounding of the finite differences behind the scores, magnified by 8/delta^2 in DRE-infinity.
        let allowed = 1e-6 * (1.0 + here.abs());
        for (what, there, seen) in [
            ("constant", shifted, constant),
            ("c(y)", multiplied, factor),
        ] {
            let moved = (there - here).abs();
            assert_eq!(moved > allowed, seen, "{text}, {what}: {here} {there}");
            assert!(!seen || moved > 1e-3, "{text}, {what}: {here} {there}");
        }
    }
}

/// The two generators that are DiffCLF give its value to rounding, gradient included.
#[test]
fn two_generators_are_diffclf() {
    let spec = crate::energy::tests::spec(vp(), Some(Form::InnerProduct), false);
    let params: Vec<f64> = crate::energy::tests::params(&spec, 2);
    let of = |terms, levels| {
        let times = TimeSampler::Grid(Grid {});
        let sum = Sum {
            terms,
            levels,
            times,
        };
        run(&spec, sum, 20, &params, 1)
    };
    for (a, b, factor, levels) in [
        ("bregman", "diffclf", 1.0, 4),
        ("binary-bregman", "binary-diffclf", 2.0, 2),
    ] {
        let ((a, ga), (b, gb)) = (of(a, levels), of(b, levels));
        assert!((a.total - factor * b.total).abs() < 1e-13 * (1.0 + b.total.abs()));
        let size = gb.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        for (a, b) in ga.iter().zip(&gb) {
            assert!((a - factor * b).abs() < 1e-12 * size);
        }
    }
}
