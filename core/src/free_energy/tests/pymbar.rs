//! Agreement with pymbar 4 on stored inputs: free energies to 1e-8, uncertainties to 1e-6 relative.
//!
//! `core/tests/pymbar/make_fixtures.py` wrote the numbers.

use crate::free_energy::*;
use crate::metric::Estimate;
use serde_json::Value;

fn fixtures() -> Value {
    serde_json::from_str(include_str!("../../../tests/pymbar/fixtures.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn close(found: f64, expected: f64, what: &str) {
    assert!(
        (found - expected).abs() < 1e-8,
        "{what}: {found} {expected}"
    );
}

fn relatively_close(found: f64, expected: f64, what: &str) {
    let tolerance = 1e-6 * expected.abs() + 1e-12;
    assert!(
        (found - expected).abs() < tolerance,
        "{what}: {found} {expected}"
    );
}

/// Value and error of `delta` against pymbar's `Delta_f = -delta`.
fn agrees(found: Estimate, delta_f: f64, error: f64, what: &str) {
    close(found.mean, -delta_f, what);
    relatively_close(found.error, error, what);
}

#[test]
fn mbar_and_all_that_follows_from_it() {
    for name in ["harmonic_oscillators", "uneven"] {
        let case = &fixtures()[name];
        let (centres, springs) = (numbers(&case["centres"]), numbers(&case["springs"]));
        let x = numbers(&case["positions"]);
        let counts: Vec<usize> = numbers(&case["counts"])
            .iter()
            .map(|n| *n as usize)
            .collect();
        let states = counts.len();
        let u: Vec<f64> = (0..states)
            .flat_map(|k| {
                let (o, s) = (centres[k], springs[k]);
                x.iter().map(move |x| 0.5 * s * ((x - o) * (x - o)))
            })
            .collect();
        let matrix = Matrix::new(&u, states).unwrap();
        let mbar = Mbar::solve(&matrix, &counts, &MbarSettings::default()).unwrap();
        assert!(mbar.iterations() < 20);
        let (delta, error) = (numbers(&case["delta_f"]), numbers(&case["d_delta_f"]));
        for i in 0..states {
            for j in 0..states {
                let found = mbar.difference(i, j);
                // pymbar's own error of a state with itself is rounding.
                let expected = if i == j { 0.0 } else { error[i * states + j] };
                agrees(found, delta[i * states + j], expected, name);
            }
        }
        for (found, expected) in mbar
            .effective_samples()
            .iter()
            .zip(numbers(&case["effective"]))
        {
            relatively_close(*found, expected, "effective samples");
        }
        let overlap = mbar.overlap();
        let expected = numbers(&case["overlap"]);
        for (i, &a) in overlap.states.iter().enumerate() {
            for (j, &b) in overlap.states.iter().enumerate() {
                let found = overlap.matrix[i * overlap.states.len() + j];
                relatively_close(found, expected[a * states + b], "overlap");
            }
        }
        assert!(overlap.row_error < 1e-10);
        relatively_close(
            overlap.scalar,
            case["scalar"].as_f64().unwrap(),
            "scalar overlap",
        );

        let squares: Vec<f64> = x.iter().map(|x| x * x).collect();
        for k in 0..states {
            let found = mbar
                .expectations(Ensemble::State(k), &[&x, &squares])
                .unwrap();
            for (a, found) in found.iter().enumerate() {
                close(found.mean, numbers(&case["means"][a])[k], "mean");
                relatively_close(
                    found.error,
                    numbers(&case["d_means"][a])[k],
                    "error of a mean",
                );
            }
            let own = &u[k * x.len()..][..x.len()];
            let same = mbar.expectations(Ensemble::Energies(own), &[&x]).unwrap()[0];
            close(same.mean, numbers(&case["means"][0])[k], "mean by energies");
            relatively_close(same.error, numbers(&case["d_means"][0])[k], "its error");
        }
        let new: Vec<f64> = [(6.0, 1.3, 0.0), (2.5, 2.2, 0.7)]
            .iter()
            .flat_map(|&(k, o, c)| x.iter().map(move |x| 0.5 * k * ((x - o) * (x - o)) + c))
            .collect();
        let perturbed = mbar.perturbed(&Matrix::new(&new, 2).unwrap()).unwrap();
        let (delta, error) = (numbers(&case["perturbed"]), numbers(&case["d_perturbed"]));
        agrees(perturbed.difference(0, 1), delta[1], error[1], "perturbed");
        // Relative to state 0: the same as if the new states had been there without samples.
        let longer = [&u[..], &new[..]].concat();
        let more = [&counts[..], &[0, 0]].concat();
        let longer = Matrix::new(&longer, states + 2).unwrap();
        let all = Mbar::solve(&longer, &more, &MbarSettings::default()).unwrap();
        for k in 0..2 {
            let (a, b) = (perturbed.relative(k), all.difference(0, states + k));
            close(a.mean, b.mean, "relative");
            relatively_close(a.error, b.error, "its error");
        }
        let surface = mbar
            .surface(Ensemble::State(0), &x, &numbers(&case["edges"]))
            .unwrap();
        let (f, df) = (numbers(&case["surface"]), numbers(&case["d_surface"]));
        for (bin, found) in surface.free_energy.iter().enumerate() {
            let found = found.unwrap();
            agrees(found, -f[bin], df[bin], "surface");
        }
    }
}

#[test]
fn works_in_one_and_both_directions() {
    let case = &fixtures()["works"];
    let (forward, reverse) = (numbers(&case["forward"]), numbers(&case["reverse"]));
    let pair = |name: &str| numbers(&case[name]);
    let both = bar(&forward, &reverse).unwrap();
    agrees(both.delta, pair("bar")[0], pair("bar")[1], "bar");
    relatively_close(both.mbar_error, pair("bar_mbar")[1], "bar");
    relatively_close(both.overlap, case["overlap"].as_f64().unwrap(), "overlap");
    let one = perturbation(&forward, false).unwrap();
    agrees(
        one.exponential,
        pair("exp_forward")[0],
        pair("exp_forward")[1],
        "forward",
    );
    agrees(one.cumulant, pair("gauss")[0], pair("gauss")[1], "cumulant");
    let back = perturbation(&reverse, false).unwrap();
    agrees(
        back.exponential,
        pair("exp_reverse")[0],
        pair("exp_reverse")[1],
        "reverse",
    );
    // MBAR of two states is BAR.
    let count = forward.len() + reverse.len();
    let mut u = vec![0.0; 2 * count];
    u[forward.len()..count].copy_from_slice(&reverse);
    u[count..count + forward.len()].copy_from_slice(&forward);
    let matrix = Matrix::new(&u, 2).unwrap();
    let mbar = Mbar::solve(
        &matrix,
        &[forward.len(), reverse.len()],
        &MbarSettings::default(),
    )
    .unwrap();
    close(mbar.difference(0, 1).mean, both.delta.mean, "mbar of two");
    relatively_close(mbar.difference(0, 1).error, both.mbar_error, "mbar of two");
    relatively_close(mbar.overlap().scalar, both.overlap, "mbar of two");
}

#[test]
fn correlated_series() {
    let case = &fixtures()["series"];
    let values = numbers(&case["values"]);
    let expected = |name: &str| case[name].as_f64().unwrap();
    let g = statistical_inefficiency(&values);
    relatively_close(g, expected("inefficiency"), "inefficiency");
    let found = detect_equilibration(&values, 5);
    assert_eq!(found.start as f64, expected("start"));
    // pymbar keeps these two in single precision.
    relatively_close(
        found.inefficiency,
        expected("inefficiency_after"),
        "inefficiency",
    );
    relatively_close(
        found.effective_samples,
        expected("effective"),
        "effective samples",
    );
    let kept: Vec<f64> = subsample(values.len(), g)
        .iter()
        .map(|n| *n as f64)
        .collect();
    assert_eq!(kept, numbers(&case["kept"]));
}
