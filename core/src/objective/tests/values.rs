//! Loss values against the formulas, written out with plain loops over the draws of a step.

use super::formulas::by_formula;
use super::*;
use crate::energy::tests::{name, params, sheet};

#[test]
fn losses_are_those_of_the_formulas() {
    for (number, spec) in sheet().into_iter().enumerate() {
        let batch = batch_of(number);
        let spec = with_velocity(spec);
        let params: Vec<f64> = params::<f64>(&spec, 1).iter().map(|p| 0.5 * p).collect();
        for sum in sums(&spec).into_iter().chain(more_sums(&spec, number)) {
            let expected = by_formula(&spec, sum, batch, &params, 3);
            let (losses, _) = run(&spec, sum, batch, &params, 3);
            let what = format!("{}, {sum:?}", name(&spec));
            for (found, expected) in losses.terms.iter().zip(&expected) {
                let allowed = 1e-10 * (1.0 + expected.value.abs() + expected.size);
                assert!(
                    (found - expected.value).abs() < allowed,
                    "{what}: {found}, expected {}",
                    expected.value
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
