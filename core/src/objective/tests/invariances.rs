//! What must not change a loss: a constant in F, a factor c(y) common to all marginals (DiffCLF only), the way two classes
//! are written.

use super::*;
use crate::energy::Form;
use crate::energy::tests::{diffusions, interpolants, name, params, sheet, spec};
use crate::network::NetworkSpec;
use crate::process::sampler::{Grid, Uniform};

#[test]
fn binary_diffclf_is_diffclf_of_two_levels() {
    for spec in sheet() {
        let params: Vec<f64> = params(&spec, 2);
        for times in [TimeSampler::Grid(Grid {}), TimeSampler::Uniform(Uniform {})] {
            let both = ["binary-diffclf", "diffclf"].map(|terms| {
                let sum = Sum {
                    terms,
                    levels: 2,
                    times,
                };
                run(&spec, sum, 20, &params, 1)
            });
            let (binary, general) = (&both[0], &both[1]);
            let size = 1.0 + general.0.total.abs();
            assert!(
                (binary.0.total - general.0.total).abs() < 1e-13 * size,
                "{}",
                name(&spec)
            );
            let size = general.1.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            for (a, b) in binary.1.iter().zip(&general.1) {
                assert!((a - b).abs() < 1e-12 * size, "{}: {a} {b}", name(&spec));
            }
        }
    }
}

#[test]
fn a_constant_in_the_free_energy_changes_nothing() {
    for process in [diffusions()[1], interpolants()[0]] {
        let spec = spec(process, Some(Form::InnerProduct), true);
        let params: Vec<f64> = params(&spec, 3);
        let mut shifted = params.clone();
        let levels = spec.layout().get("free_energy").unwrap().range();
        shifted[levels.clone()].iter_mut().for_each(|f| *f += 2.5);
        for sum in sums(&spec) {
            let (here, gradient) = run(&spec, sum, BATCH, &params, 1);
            let (there, _) = run(&spec, sum, BATCH, &shifted, 1);
            assert!((here.total - there.total).abs() < 1e-12 * (1.0 + here.total.abs()));
            // So the derivative along that direction vanishes.
            let along: f64 = gradient[levels.clone()].iter().sum();
            assert!(
                along.abs() < 1e-13 * sum.levels as f64 * 4.0,
                "{sum:?}: {along}"
            );
            let largest = gradient[levels.clone()]
                .iter()
                .fold(0.0, |m: f64, g| m.max(g.abs()));
            assert_eq!(largest > 1e-4, sum.terms != "dsm", "{sum:?}");
        }
    }
}

/// One hidden unit that does not see the time adds c(y) to the energy of an interpolant at all times. Classification among
/// times cannot see it; score matching does.
#[test]
fn a_common_factor_is_invisible_to_diffclf_and_visible_to_dsm() {
    for process in interpolants() {
        let mut spec = spec(process, Some(Form::Scalar), true);
        spec.network = NetworkSpec::Mlp { width: 7, depth: 1 };
        let layout = spec.layout();
        let mut params: Vec<f64> = params(&spec, 4);
        let wt = layout.get("net.wt").unwrap();
        for row in params[wt.range()].chunks_mut(wt.cols) {
            row[6] = 0.0;
        }
        let mut other = params.clone();
        other[layout.get("net.wo").unwrap().offset + 6] += 1.9;
        for (terms, levels, seen) in [
            ("diffclf", 4, false),
            ("binary-diffclf", 2, false),
            ("dsm", 4, true),
        ] {
            for times in [TimeSampler::Grid(Grid {}), TimeSampler::Uniform(Uniform {})] {
                let sum = Sum {
                    terms,
                    levels,
                    times,
                };
                let (a, b) = (
                    run(&spec, sum, 20, &params, 1).0.total,
                    run(&spec, sum, 20, &other, 1).0.total,
                );
                assert_eq!((a - b).abs() > 1e-3 * a, seen, "{sum:?}: {a} {b}");
                if !seen {
                    assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()), "{sum:?}: {a} {b}");
                }
            }
        }
    }
}
