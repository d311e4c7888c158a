//! Score and time score: against central differences of the energy, against dual numbers, and in both ways a batch can be
//! told its times; second derivatives through `grad` of `grad`.

use std::sync::{Arc, Mutex};

use super::reference::Reference;
use super::*;
use crate::energy::{Builder, Energy, Points, TimeMode, TimeTable};
use crate::engine::{Program, Rows};

fn one(energy: &LearnedEnergy<f64>, time: f64, y: &[f64]) -> f64 {
    let mut out = [0.0];
    energy.energy(&[time], y, &mut out);
    out[0]
}

#[test]
fn scores_are_derivatives_of_the_energy() {
    for spec in full_sheet() {
        let params: Vec<f64> = params(&spec, 1);
        let energy = learned::<f64>(&spec, &params, Isa::detect());
        let reference = Reference::new(&spec, &params);
        let d = spec.dim;
        for time in times(&spec) {
            let what = format!("{} at {time}", name(&spec));
            let y = points(&spec, time, 2);
            let (mut values, mut score, mut rate) = (vec![0.0; 2], vec![0.0; 2 * d], vec![0.0; 2]);
            energy.energy_and_score(&[time], &y, &mut values, &mut score);
            energy.time_score(&[time], &y, &mut rate);
            for (k, y) in y.chunks(d).enumerate() {
                let (value, score) = (values[k], &score[k * d..][..d]);
                // Two implementations in double precision: a few hundred roundings.
                let size = 1.0 + value.abs();
                assert_close(value, reference.energy(time, y), 1e-12 * size, &what);
                let size = score.iter().fold(1e-3, |m: f64, s| m.max(s.abs()));
                for (i, (found, exact)) in score.iter().zip(reference.score(time, y)).enumerate() {
                    assert_close(*found, exact, 1e-11 * size, &what);
                    let h = 1e-3 * spec.process.noise(time);
                    let difference = difference(h, |h| {
                        let mut y = y.to_vec();
                        y[i] += h;
                        -one(&energy, time, &y)
                    });
                    assert_close(
                        *found,
                        difference,
                        1e-6 * size,
                        &format!("{what}, score {i}"),
                    );
                }
                let f = |t: f64| reference.free_energy(t);
                let slope = (f(time + 1e-3) - f(time - 1e-3)) / 2e-3;
                let exact = slope - reference.energy_rate(time, y);
                let size = 1.0 + rate[k].abs();
                assert_close(rate[k], exact, 1e-10 * size, &what);
                // Features normalised over few columns turn quickly with time.
                let difference = difference(5e-5 * time, |h| {
                    energy.free_energy(time + h) - one(&energy, time + h, y)
                });
                assert_close(
                    rate[k],
                    difference,
                    1e-6 * size,
                    &format!("{what}, time score"),
                );
            }
        }
    }
}

/// All rows at one time (the network's time branch is looked up) and each at its own (it is computed) are the same function.
#[test]
fn both_ways_of_giving_times_agree() {
    for spec in full_sheet() {
        let energy = learned::<f64>(&spec, &params::<f64>(&spec, 2), Isa::detect());
        let (d, times) = (spec.dim, times(&spec));
        let y: Vec<f64> = times.iter().flat_map(|&t| points(&spec, t, 1)).collect();
        let n = times.len();
        let (mut values, mut score, mut rate) = (vec![0.0; n], vec![0.0; n * d], vec![0.0; n]);
        energy.energy_and_score(&times, &y, &mut values, &mut score);
        energy.time_score(&times, &y, &mut rate);
        for (k, &time) in times.iter().enumerate() {
            let y = &y[k * d..][..d];
            let (mut value_once, mut score_once, mut rate_once) = ([0.0], vec![0.0; d], [0.0]);
            energy.energy_and_score(&[time], y, &mut value_once, &mut score_once);
            energy.time_score(&[time], y, &mut rate_once);
            let what = format!("{} at {time}", name(&spec));
            let size = 1.0 + value_once[0].abs();
            assert_close(values[k], value_once[0], 1e-13 * size, &what);
            let size = 1.0 + score_once.iter().fold(0.0, |m: f64, s| m.max(s.abs()));
            for (found, once) in score[k * d..][..d].iter().zip(&score_once) {
                assert_close(*found, *once, 1e-13 * size, &what);
            }
            // Sines of phases up to 100, times rates up to 100 times larger than the value.
            let size = 1.0 + rate_once[0].abs();
            assert_close(rate[k], rate_once[0], 1e-11 * size, &what);
        }
    }
}

/// `H v` of every form: the gradient of `<score, v>`, one program, against dual numbers and differences of the score.
#[test]
fn hessian_vector_products() {
    for spec in full_sheet().into_iter().filter(|s| s.base.is_none()) {
        let params: Vec<f64> = params(&spec, 3);
        let (d, time) = (spec.dim, times(&spec)[1]);
        let y = points(&spec, time, 1);
        let v: Vec<f64> = (0..d).map(|i| 0.3 + (i as f64).sin()).collect();

        let mut builder = Builder::new(&spec, TimeMode::Continuous);
        let (points, slot) = builder.graph.input(Rows::Unit(1), d);
        let (direction, direction_slot) = builder.graph.input(Rows::Unit(1), d);
        let group = builder.group(vec![0]);
        let nodes = builder.energy(&Points {
            points,
            pattern: None,
            group,
        });
        let score = builder.score(&nodes);
        let product = builder.graph.grad(&[(score, direction)], &[points])[0];
        let pool = Arc::new(Pool::new(1));
        let mut program = Program::<f64>::new(&builder.graph, &[product], pool, Isa::detect());
        let schedule = TimeTable::new(&spec, &builder.wiring, &[]);
        schedule.set_globals(&spec, &builder.wiring, &mut program);
        let found = Mutex::new(vec![0.0; d]);
        program.run(
            &params,
            1,
            &|_, inputs| {
                inputs.numbers(slot).copy_from_slice(&y);
                inputs.numbers(direction_slot).copy_from_slice(&v);
                schedule.fill_times(&spec, &builder.wiring, inputs, 0, &[time]);
            },
            &|_, _, outputs| found.lock().unwrap().copy_from_slice(outputs.numbers(0)),
        );
        let found = found.into_inner().unwrap();

        let reference = Reference::new(&spec, &params);
        let energy = learned::<f64>(&spec, &params, Isa::detect());
        let size = 1e-3 + found.iter().fold(0.0, |m: f64, s| m.max(s.abs()));
        for (i, &found) in found.iter().enumerate() {
            let exact: f64 = -(0..d)
                .map(|j| reference.hessian(time, &y, i, j) * v[j])
                .sum::<f64>();
            assert_close(found, exact, 1e-10 * size, &name(&spec));
            let difference = difference(1e-3 * spec.process.noise(time), |h| {
                let y: Vec<f64> = y.iter().zip(&v).map(|(y, v)| y + h * v).collect();
                let mut score = vec![0.0; d];
                energy.score(&[time], &y, &mut score);
                score[i]
            });
            assert_close(found, difference, 1e-6 * size, &name(&spec));
        }
    }
}

/// Energies, scores and time scores of single precision, on every kernel path, beside double precision.
#[test]
fn single_precision_follows_double() {
    for spec in full_sheet() {
        let params: Vec<f64> = params(&spec, 4);
        let params: Vec<f64> = params.iter().map(|&p| p as f32 as f64).collect();
        let exact = learned::<f64>(&spec, &params, Isa::detect());
        let d = spec.dim;
        for time in times(&spec) {
            let y = points(&spec, time, 40);
            let n = y.len() / d;
            let mut expected = (vec![0.0; n], vec![0.0; n * d], vec![0.0; n]);
            exact.energy_and_score(&[time], &y, &mut expected.0, &mut expected.1);
            exact.time_score(&[time], &y, &mut expected.2);
            for isa in Isa::available() {
                let energy = learned::<f32>(&spec, &params, isa);
                let mut found = (vec![0.0; n], vec![0.0; n * d], vec![0.0; n]);
                energy.energy_and_score(&[time], &y, &mut found.0, &mut found.1);
                energy.time_score(&[time], &y, &mut found.2);
                let pairs = [
                    (&found.0, &expected.0),
                    (&found.1, &expected.1),
                    (&found.2, &expected.2),
                ];
                for (kind, (found, expected)) in pairs.into_iter().enumerate() {
                    // f32 has 6e-8; a few dozen roundings, of terms larger than their sum, at phases up to 100: 2e-5 of the
                    // largest value of the batch. A layer norm over few columns divides roundings by a small spread.
                    let relative = match spec.network {
                        NetworkSpec::Transformer(_) => 1e-4,
                        _ => 2e-5,
                    };
                    let size = 1.0 + expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                    for (found, expected) in found.iter().zip(expected) {
                        let what = format!("{}, {isa}, at {time}, {kind}", name(&spec));
                        assert_close(*found, *expected, relative * size, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn curvatures_are_derivatives_of_the_score() {
    for spec in full_sheet() {
        let params: Vec<f64> = params(&spec, 1);
        let energy = learned::<f64>(&spec, &params, Isa::detect());
        let d = spec.dim;
        for time in times(&spec) {
            let y = points(&spec, time, 2);
            let along: Vec<f64> = (0..2 * d)
                .map(|i| 0.4 + 0.3 * (1.7 * i as f64).sin())
                .collect();
            let (mut found, mut rows) = ([0.0; 2], [0.0; 2]);
            energy.curvature(&[time], &y, &along, &mut found);
            energy.curvature(&[time, time], &y, &along, &mut rows);
            let mut product = vec![0.0; 2 * d];
            energy.hessian_product(&[time], &y, &along, &mut product);
            for k in 0..2 {
                let (y, e) = (&y[k * d..][..d], &along[k * d..][..d]);
                let what = format!("{} at {time}", name(&spec));
                let product = &product[k * d..][..d];
                let dot: f64 = product.iter().zip(e).map(|(p, e)| p * e).sum();
                assert_close(dot, found[k], 1e-8 * (1.0 + found[k].abs()), &what);
                let i = k % d;
                let slope = difference(1e-3 * spec.process.noise(time), |h| {
                    let y: Vec<f64> = y.iter().zip(e).map(|(y, e)| y + h * e).collect();
                    let mut score = vec![0.0; d];
                    energy.score(&[time], &y, &mut score);
                    score[i]
                });
                assert_close(product[i], slope, 1e-6 * (1.0 + slope.abs()), &what);
                assert_close(rows[k], found[k], 1e-9 * (1.0 + found[k].abs()), &what);
                let h = 1e-3 * spec.process.noise(time);
                let difference = difference(h, |h| {
                    let y: Vec<f64> = y.iter().zip(e).map(|(y, e)| y + h * e).collect();
                    let mut score = vec![0.0; d];
                    energy.score(&[time], &y, &mut score);
                    score.iter().zip(e).map(|(s, e)| s * e).sum()
                });
                assert_close(found[k], difference, 1e-6 * (1.0 + found[k].abs()), &what);
            }
        }
    }
}
