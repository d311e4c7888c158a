//! Identities: the zero network's Gaussian, the denoiser, the table of free energies, the batched grid, invariance of pairs.

use super::reference::Reference;
use super::*;
use crate::energy::{Energy, Velocity};

#[test]
fn a_zero_network_is_exactly_the_gaussian_of_the_data() {
    for spec in full_sheet()
        .into_iter()
        .filter(|s| !s.process.is_interpolant() && s.base.is_none() && s.springs.is_none())
    {
        let params: Vec<f64> = spec.layout().initialise(5);
        let energy = learned::<f64>(&spec, &params, Isa::detect());
        let d = spec.dim;
        for time in times(&spec) {
            let y = points(&spec, time, 3);
            let (scale, noise) = (spec.process.scale(time), spec.process.noise(time));
            let variance = scale * scale * spec.variance + noise * noise;
            let (mut log_density, mut score) = (vec![0.0; 3], vec![0.0; 3 * d]);
            energy.log_density(&[time], &y, &mut log_density);
            energy.score(&[time], &y, &mut score);
            for (k, y) in y.chunks(d).enumerate() {
                let gap = |i: usize| y[i] - scale * spec.mean[i];
                let square: f64 = (0..d).map(|i| gap(i) * gap(i)).sum();
                let exact = -0.5 * square / variance
                    - 0.5 * d as f64 * (std::f64::consts::TAU * variance).ln();
                assert_close(
                    log_density[k],
                    exact,
                    1e-13 * (1.0 + exact.abs()),
                    &name(&spec),
                );
                for i in 0..d {
                    let exact = -gap(i) / variance;
                    assert_close(
                        score[k * d + i],
                        exact,
                        1e-13 * (1.0 + exact.abs()),
                        &name(&spec),
                    );
                }
            }
        }
    }
}

/// `s(t, x)` of a diffusion, recovered from its energy.
fn scalar(energy: &LearnedEnergy<f64>, time: f64, x: &[f64]) -> f64 {
    let spec = energy.spec();
    let (scale, noise) = (spec.process.scale(time), spec.process.noise(time));
    let variance = scale * scale * spec.variance + noise * noise;
    let y: Vec<f64> = x
        .iter()
        .zip(&spec.mean)
        .map(|(x, m)| scale * m + variance.sqrt() * x)
        .collect();
    let mut value = [0.0];
    energy.energy(&[time], &y, &mut value);
    let square: f64 = x.iter().map(|x| x * x).sum();
    let gaussian = 0.5 * square + 0.5 * spec.dim as f64 * (std::f64::consts::TAU * variance).ln();
    (gaussian - value[0]) * spec.process.noise_level(time) / spec.variance.sqrt()
}

/// `(y + gamma^2 score) / S = a_skip y + a_out grad_x s + b_out`: the score's route to the denoiser and the network's.
#[test]
fn both_routes_to_the_denoiser_agree() {
    for spec in full_sheet()
        .into_iter()
        .filter(|s| !s.process.is_interpolant() && s.base.is_none())
    {
        let energy = learned::<f64>(&spec, &params::<f64>(&spec, 6), Isa::detect());
        for time in times(&spec) {
            let y = points(&spec, time, 1);
            let (scale, noise) = (spec.process.scale(time), spec.process.noise(time));
            let (sigma2, sd2) = (spec.process.noise_level(time).powi(2), spec.variance);
            let a_in = (scale * scale * sd2 + noise * noise).sqrt();
            let x: Vec<f64> = y
                .iter()
                .zip(&spec.mean)
                .map(|(y, m)| (y - scale * m) / a_in)
                .collect();
            let mut score = vec![0.0; spec.dim];
            energy.score(&[time], &y, &mut score);
            for i in 0..spec.dim {
                let by_score = (y[i] + noise * noise * score[i]) / scale;
                let gradient = difference(1e-3, |h| {
                    let mut x = x.clone();
                    x[i] += h;
                    scalar(&energy, time, &x)
                });
                let a_skip = sd2 / (scale * (sd2 + sigma2));
                let a_out = (sigma2 * sd2 / (sigma2 + sd2)).sqrt();
                let b_out = sigma2 / (sigma2 + sd2) * spec.mean[i];
                let by_network = a_skip * y[i] + a_out * gradient + b_out;
                let size = 1.0 + y[i].abs() / scale;
                assert_close(by_score, by_network, 1e-6 * size, &name(&spec));
            }
        }
    }
}

#[test]
fn the_grid_of_log_densities_is_made_of_log_densities() {
    for spec in full_sheet() {
        let params: Vec<f64> = params(&spec, 7);
        let energy = learned::<f64>(&spec, &params, Isa::detect());
        let reference = Reference::new(&spec, &params);
        // Two whole blocks of times and a part of one; levels, times between them, and beyond the grid's ends.
        let (low, high) = (0.5 * spec.grid.t_min(), 0.99 * spec.process.horizon());
        let times: Vec<f64> = (0..70)
            .map(|k| low + (high - low) * k as f64 / 69.0)
            .collect();
        let y = points(&spec, times[40], 3);
        let mut grid = vec![0.0; 3 * times.len()];
        energy.log_density_grid(&times, &y, &mut grid);
        for (j, &time) in times.iter().enumerate() {
            let mut column = [0.0; 3];
            energy.log_density(&[time], &y, &mut column);
            for (k, y) in y.chunks(spec.dim).enumerate() {
                let found = grid[k * times.len() + j];
                let size = 1.0 + found.abs();
                assert_close(found, column[k], 1e-13 * size, &name(&spec));
                assert_close(
                    found,
                    reference.log_density(time, y),
                    1e-11 * size,
                    &name(&spec),
                );
            }
        }
    }
}

#[test]
fn free_energies_are_linear_between_levels_and_constant_beyond() {
    let spec = spec(diffusions()[0], Some(Form::InnerProduct), true);
    let params: Vec<f64> = params(&spec, 8);
    let energy = learned::<f64>(&spec, &params, Isa::detect());
    let table = &params[params.len() - spec.grid.levels()..];
    let times = spec.grid.times();
    for (k, &time) in times.iter().enumerate() {
        assert_close(energy.free_energy(time), table[k], 1e-15, "a level");
        if k + 1 < times.len() {
            let middle = energy.free_energy(0.25 * time + 0.75 * times[k + 1]);
            assert_close(
                middle,
                0.25 * table[k] + 0.75 * table[k + 1],
                1e-14,
                "between levels",
            );
        }
    }
    assert_eq!(energy.free_energy(0.01), table[0]);
    assert_eq!(energy.free_energy(0.99), table[table.len() - 1]);
    // Beyond the ends F has no slope, and the time score is that of the energy alone.
    let reference = Reference::new(&spec, &params);
    for time in [0.02, 0.97] {
        let y = points(&spec, time, 1);
        let mut rate = [0.0];
        energy.time_score(&[time], &y, &mut rate);
        let exact = -reference.energy_rate(time, &y);
        assert_close(
            rate[0],
            exact,
            1e-9 * (1.0 + exact.abs()),
            "beyond the ends",
        );
    }
}

fn rotate(y: &[f64]) -> Vec<f64> {
    let (sin, cos) = 0.7_f64.sin_cos();
    y.chunks(2)
        .flat_map(|p| [cos * p[0] - sin * p[1], sin * p[0] + cos * p[1]])
        .collect()
}

fn shift(y: &[f64]) -> Vec<f64> {
    y.chunks(2).flat_map(|p| [p[0] + 0.8, p[1] - 1.9]).collect()
}

fn exchange(y: &[f64]) -> Vec<f64> {
    [&y[4..6], &y[..4]].concat()
}

/// Velocities over pairs turn with the frame, follow the particles' names and move no centre of mass.
#[test]
fn velocities_over_pairs_are_equivariant() {
    for process in interpolants() {
        let spec = ModelSpec {
            velocity: true,
            ..spec(process, None, true)
        };
        let model = learned::<f64>(&spec, &params::<f64>(&spec, 9), Isa::detect());
        let (velocity, time) = (model.velocity().unwrap(), 0.4);
        let value = |y: &[f64]| {
            let mut out = vec![0.0; y.len()];
            velocity.velocity(&[time], y, &mut out);
            out
        };
        let y = points(&spec, time, 1);
        let v = value(&y);
        let same = |found: Vec<f64>, expected: Vec<f64>, what: &str| {
            for (found, expected) in found.into_iter().zip(expected) {
                assert_close(found, expected, 1e-12 * (1.0 + expected.abs()), what);
            }
        };
        assert!(v.iter().all(|v| v.abs() > 1e-3));
        same(value(&rotate(&y)), rotate(&v), "rotation");
        same(value(&exchange(&y)), exchange(&v), "permutation");
        same(value(&shift(&y)), v.clone(), "translation");
        for axis in 0..2 {
            let sum: f64 = v.iter().skip(axis).step_by(2).sum();
            assert_close(sum, 0.0, 1e-12, "centre of mass");
        }
        let reference = params::<f64>(&spec, 9);
        let expected = Reference::new(&spec, &reference).velocity(time, &y);
        same(v, expected, "the formula");
    }
}

/// Energies over pairs know neither the frame nor the particles' names, whatever their form.
#[test]
fn pairs_are_invariant() {
    let processes = || diffusions().into_iter().chain(interpolants());
    for (process, form) in processes().flat_map(|process| FORMS.map(|form| (process, form))) {
        let spec = ModelSpec {
            form,
            ..spec(process, None, true)
        };
        let energy = learned::<f64>(&spec, &params::<f64>(&spec, 9), Isa::detect());
        for time in times(&spec) {
            let y = points(&spec, time, 1);
            let value = |y: &[f64]| {
                let mut out = [0.0];
                energy.energy(&[time], y, &mut out);
                out[0]
            };
            let size = 1.0 + value(&y).abs();
            assert_close(value(&rotate(&y)), value(&y), 1e-12 * size, "rotation");
            assert_close(value(&exchange(&y)), value(&y), 1e-12 * size, "permutation");
            if process.is_interpolant() && form != Form::ResidualSquaredNorm {
                assert_close(value(&shift(&y)), value(&y), 1e-12 * size, "translation");
            } else if !process.is_interpolant() {
                // A diffusion's Gaussian factor has a centre; the network beside it has none.
                let moved = scalar(&energy, time, &shift(&y));
                let here = scalar(&energy, time, &y);
                assert_close(moved, here, 1e-11 * (1.0 + here.abs()), "translation");
            }
        }
    }
}

#[test]
fn parameters_of_the_wrong_number_are_refused() {
    let spec = spec(diffusions()[0], Some(Form::Scalar), true);
    let short = vec![0.0; spec.layout().len() - 1];
    let Err(error) = LearnedEnergy::<f64>::new(spec, short, Arc::new(Pool::new(1)), Isa::PORTABLE)
    else {
        panic!("accepted")
    };
    assert!(error.to_string().contains("the parameter vector has shape"));
}

/// Batches of many tiles on several threads: the same bits for any number of threads, and the values of single points.
#[test]
fn a_point_does_not_depend_on_its_batch() {
    for process in [diffusions()[0], interpolants()[0]] {
        for form in [Some(Form::InnerProductPlusScalar), None] {
            let spec = spec(process, form, false);
            let (d, n, time) = (spec.dim, 700, times(&spec)[1]);
            let y = points(&spec, time, n);
            let own: Vec<f64> = (0..n).map(|k| times(&spec)[k % 3]).collect();
            let params: Vec<f32> = params(&spec, 10);
            let all = |threads: usize| {
                let pool = Arc::new(Pool::new(threads));
                let energy =
                    LearnedEnergy::new(spec.clone(), params.clone(), pool, Isa::detect()).unwrap();
                let mut results = Vec::new();
                for times in [&[time][..], &own] {
                    let (mut values, mut score, mut rate) =
                        (vec![0.0; n], vec![0.0; n * d], vec![0.0; n]);
                    energy.energy_and_score(times, &y, &mut values, &mut score);
                    energy.time_score(times, &y, &mut rate);
                    results.extend([values, score, rate]);
                }
                let mut grid = vec![0.0; n * 3];
                energy.log_density_grid(&own[..3], &y, &mut grid);
                results.push(grid);
                results
            };
            let first = all(1);
            assert!(first == all(2) && first == all(5), "{}", name(&spec));
            let energy = LearnedEnergy::new(
                spec.clone(),
                params.clone(),
                Arc::new(Pool::new(1)),
                Isa::detect(),
            )
            .unwrap();
            for k in [0, 1, 47, 48, 350, 699] {
                let (mut value, mut score) = ([0.0], vec![0.0; d]);
                energy.energy_and_score(&[time], &y[k * d..][..d], &mut value, &mut score);
                assert_close(
                    first[0][k],
                    value[0],
                    1e-5 * (1.0 + value[0].abs()),
                    &name(&spec),
                );
                let size = 1.0 + score.iter().fold(0.0, |m: f64, s| m.max(s.abs()));
                for (found, alone) in first[1][k * d..][..d].iter().zip(&score) {
                    assert_close(*found, *alone, 1e-5 * size, &name(&spec));
                }
            }
            // Nothing in, nothing out.
            energy.energy(&[time], &[], &mut []);
            energy.log_density_grid(&own[..3], &[], &mut []);
        }
    }
}
