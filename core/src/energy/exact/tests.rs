//! The exact path against differences, conservation laws and Monte Carlo, for every process and covariance kind.

use super::*;
use crate::process::{Linear, Trigonometric, VarianceExploding, VariancePreserving};
use crate::system::mixture::tests::examples;

fn diffusions() -> Vec<Process> {
    vec![
        Process::VariancePreserving(VariancePreserving {
            beta_min: 0.3,
            beta_max: 11.0,
        }),
        Process::VarianceExploding(VarianceExploding {
            sigma_min: 0.1,
            sigma_max: 7.0,
        }),
        Process::by_name("edm").unwrap(),
    ]
}

/// Every process with every covariance kind, and pairs of different kinds for interpolants.
fn paths(dim: usize) -> Vec<ExactPath> {
    let (starts, ends) = (examples(dim, 1), examples(dim, 2));
    let mut paths = vec![];
    for process in diffusions() {
        for start in &starts {
            paths.push(ExactPath::new(process, start.clone(), None).unwrap());
        }
    }
    for process in [
        Process::Linear(Linear { a: 0.7 }),
        Process::Trigonometric(Trigonometric { a: 1.3 }),
    ] {
        for (i, j) in [(0, 0), (1, 1), (2, 2), (0, 1), (2, 0), (1, 2)] {
            paths.push(ExactPath::new(process, starts[i].clone(), Some(ends[j].clone())).unwrap());
        }
    }
    paths
}

fn times(path: &ExactPath) -> [f64; 4] {
    [0.02, 0.3, 0.55, 0.97].map(|fraction| match path.process() {
        Process::Edm(_) => 3.0 * fraction,
        _ => fraction,
    })
}

fn log_density(path: &ExactPath, time: f64, point: &[f64]) -> f64 {
    let mut out = [0.0];
    path.log_density(&[time], point, &mut out);
    out[0]
}

/// Five-point central difference; h^4 of it is 1e-14 of the function's scale.
fn difference(function: impl Fn(f64) -> f64, h: f64) -> f64 {
    (8.0 * (function(h) - function(-h)) - function(2.0 * h) + function(-2.0 * h)) / (12.0 * h)
}

fn moved(point: &[f64], i: usize, h: f64) -> Vec<f64> {
    let mut point = point.to_vec();
    point[i] += h;
    point
}

/// Mean of values, checked to be `expected` within 4 of its own standard errors.
fn assert_mean(values: &[f64], expected: f64, what: &str) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let error = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n / n).sqrt();
    assert!(
        (mean - expected).abs() < 4.0 * error,
        "{what}: {mean} +- {error}, expected {expected}"
    );
}

#[test]
fn density_is_that_of_the_noised_mixture() {
    // A marginal is a Gaussian mixture: build it as one and compare, with full matrices for all kinds.
    let dim = 3;
    for path in paths(dim) {
        for time in times(&path) {
            let c = Coefficients::at(path.process(), time);
            let full = |mixture: &GaussianMixture| match mixture.covariance() {
                Covariance::Full(values) => values.clone(),
                _ => (0..mixture.components())
                    .flat_map(|k| {
                        let v = mixture.component_variances(k).to_vec();
                        (0..dim * dim).map(move |ij| {
                            if ij / dim == ij % dim {
                                v[ij / dim]
                            } else {
                                0.0
                            }
                        })
                    })
                    .collect(),
            };
            let (starts, start) = (full(path.start()), path.start());
            let end = path
                .end()
                .map_or((vec![1.0], vec![0.0; dim], vec![0.0; dim * dim]), |end| {
                    (end.weights().to_vec(), end.means().to_vec(), full(end))
                });
            let (mut weights, mut means, mut covariances) = (vec![], vec![], vec![]);
            for n in 0..start.components() {
                for m in 0..end.0.len() {
                    weights.push(start.weights()[n] * end.0[m]);
                    means.extend((0..dim).map(|i| {
                        c.alpha * start.component_mean(n)[i] + c.beta * end.1[m * dim + i]
                    }));
                    covariances.extend((0..dim * dim).map(|ij| {
                        let noise = if ij / dim == ij % dim {
                            c.gamma_squared
                        } else {
                            0.0
                        };
                        c.alpha.powi(2) * starts[n * dim * dim + ij]
                            + c.beta.powi(2) * end.2[m * dim * dim + ij]
                            + noise
                    }));
                }
            }
            let marginal =
                GaussianMixture::new(dim, weights, means, Covariance::Full(covariances)).unwrap();
            for point in path
                .sample(time, 5, 3)
                .chunks(dim)
                .chain([[9.0, -7.0, 8.0].as_slice()])
            {
                let (found, expected) =
                    (log_density(&path, time, point), marginal.log_density(point));
                assert!(
                    (found - expected).abs() < 1e-9 * (1.0 + expected.abs()),
                    "{path:?} at {time}"
                );
            }
        }
    }
}

#[test]
fn score_and_time_score_are_derivatives() {
    for dim in [1, 3] {
        for path in paths(dim) {
            for time in times(&path) {
                let points = path.sample(time, 3, 4);
                let (mut score, mut time_score) = (vec![0.0; points.len()], vec![0.0; 3]);
                path.score(&[time], &points, &mut score);
                path.time_score(&[time], &points, &mut time_score);
                for (k, point) in points.chunks(dim).enumerate() {
                    for i in 0..dim {
                        let expected =
                            difference(|h| log_density(&path, time, &moved(point, i, h)), 3e-4);
                        let found = score[k * dim + i];
                        assert!(
                            (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                            "{path:?}: {found} {expected}"
                        );
                    }
                    let expected = difference(|h| log_density(&path, time + h, point), 1e-4 * time);
                    let found = time_score[k];
                    assert!(
                        (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                        "{path:?}: {found} {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn velocity_transports_the_density() {
    // Continuity equation: dt log p + div b + b . score = 0 with b = velocity - gamma gamma' score.
    for dim in [1, 3] {
        for path in paths(dim) {
            for time in times(&path) {
                let flow = |point: &[f64]| {
                    let (mut velocity, mut score) = (vec![0.0; dim], vec![0.0; dim]);
                    path.velocity(&[time], point, &mut velocity);
                    path.score(&[time], point, &mut score);
                    let factor = path.process().noise_times_rate(time);
                    velocity
                        .iter()
                        .zip(&score)
                        .map(|(v, s)| v - factor * s)
                        .collect::<Vec<_>>()
                };
                for point in path.sample(time, 3, 5).chunks(dim) {
                    let (mut time_score, mut score) = ([0.0], vec![0.0; dim]);
                    path.time_score(&[time], point, &mut time_score);
                    path.score(&[time], point, &mut score);
                    let divergence: f64 = (0..dim)
                        .map(|i| difference(|h| flow(&moved(point, i, h))[i], 3e-4))
                        .sum();
                    let transport: f64 = flow(point).iter().zip(&score).map(|(b, s)| b * s).sum();
                    let size = 1.0 + time_score[0].abs() + divergence.abs() + transport.abs();
                    let sum = time_score[0] + divergence + transport;
                    assert!(
                        sum.abs() < 1e-6 * size,
                        "{path:?} at {time}: {sum} of {size}"
                    );
                }
            }
        }
    }
}

#[test]
fn samples_satisfy_the_identities_of_their_density() {
    // E[score] = 0, E[y . score] = -dim, E[time score] = 0; and E[v . y] = E[(alpha' X0 + beta' X1) . Y] from the moments.
    let (dim, n) = (2, 4000);
    for path in paths(dim) {
        let time = times(&path)[1];
        let points = path.sample(time, n, 6);
        let (mut score, mut time_score) = (vec![0.0; n * dim], vec![0.0; n]);
        path.score(&[time], &points, &mut score);
        path.time_score(&[time], &points, &mut time_score);
        let what = format!("{path:?}");
        for i in 0..dim {
            assert_mean(
                &score
                    .iter()
                    .skip(i)
                    .step_by(dim)
                    .copied()
                    .collect::<Vec<_>>(),
                0.0,
                &what,
            );
        }
        let stein: Vec<f64> = points
            .chunks(dim)
            .zip(score.chunks(dim))
            .map(|(y, s)| y[0] * s[0] + y[1] * s[1])
            .collect();
        assert_mean(&stein, -2.0, &what);
        assert_mean(&time_score, 0.0, &what);

        let mut velocity = vec![0.0; n * dim];
        path.velocity(&[time], &points, &mut velocity);
        let c = Coefficients::at(path.process(), time);
        let square = |mixture: &GaussianMixture| {
            mixture.mean().iter().map(|m| m * m).sum::<f64>() + dim as f64 * mixture.variance()
        };
        let (mu, start_square) = (path.start().mean(), square(path.start()));
        let (nu, end_square) = path
            .end()
            .map_or((vec![0.0; dim], 0.0), |end| (end.mean(), square(end)));
        let cross: f64 = mu.iter().zip(&nu).map(|(a, b)| a * b).sum();
        let expected = c.alpha_rate * (c.alpha * start_square + c.beta * cross)
            + c.beta_rate * (c.beta * end_square + c.alpha * cross);
        let products: Vec<f64> = velocity
            .chunks(dim)
            .zip(points.chunks(dim))
            .map(|(v, y)| v[0] * y[0] + v[1] * y[1])
            .collect();
        if expected != 0.0 {
            assert_mean(&products, expected, &what);
        }
    }
}

#[test]
fn endpoints_are_those_of_the_mixtures() {
    let path = &paths(2)[9];
    let (start, end) = path.sample_endpoints(5000, 8);
    for (points, mixture) in [(&start, path.start()), (&end.unwrap(), path.end().unwrap())] {
        for (i, mean) in mixture.mean().into_iter().enumerate() {
            assert_mean(
                &points
                    .iter()
                    .skip(i)
                    .step_by(2)
                    .copied()
                    .collect::<Vec<_>>(),
                mean,
                "endpoint",
            );
        }
    }
    let diffusion = &paths(2)[0];
    assert!(diffusion.sample_endpoints(3, 1).1.is_none());
    assert_eq!(
        diffusion.sample_endpoints(3, 1).0,
        diffusion.sample_endpoints(5, 1).0[..6]
    );
}

#[test]
fn batches_do_not_depend_on_how_they_are_split() {
    // Enough rows for several threads; then one time per row, the grid, and the joint call.
    let dim = 3;
    for path in paths(dim) {
        let n = 9000;
        let time = times(&path)[2];
        let points = path.sample(time, n, 9);
        assert_eq!(path.sample(time, 7, 9), points[..7 * dim]);
        let (mut energy, mut score) = (vec![0.0; n], vec![0.0; n * dim]);
        path.energy_and_score(&[time], &points, &mut energy, &mut score);
        for i in [0, 1, 4499, 4500, n - 1] {
            let point = &points[i * dim..][..dim];
            let mut alone = vec![0.0; dim];
            path.score(&[time], point, &mut alone);
            assert_eq!(
                (-log_density(&path, time, point), alone.as_slice()),
                (energy[i], &score[i * dim..][..dim])
            );
        }
        let rows = 12;
        let points = &points[..rows * dim];
        let row_times: Vec<f64> = (0..rows).map(|i| times(&path)[i / 2 % 4]).collect();
        let (mut by_row, mut grid) = (vec![0.0; rows], vec![0.0; rows * 4]);
        path.log_density(&row_times, points, &mut by_row);
        path.log_density_grid(&times(&path), points, &mut grid);
        for i in 0..rows {
            assert_eq!(by_row[i], grid[i * 4 + i / 2 % 4]);
        }
    }
}

#[test]
fn ends_of_the_path_are_the_mixtures() {
    for path in paths(2) {
        let point = [0.4, -0.3];
        let expected = path.start().log_density(&point);
        assert!((log_density(&path, 0.0, &point) - expected).abs() < 1e-9 * (1.0 + expected.abs()));
        if let Some(end) = path.end() {
            let expected = end.log_density(&point);
            assert!(
                (log_density(&path, 1.0, &point) - expected).abs() < 1e-9 * (1.0 + expected.abs())
            );
        }
    }
}

#[test]
fn start_responsibilities_are_posteriors() {
    // At time 0 they are those of the mixture; later they average to the weights (within 4 standard errors).
    for path in paths(2) {
        let point = [0.4, -0.3];
        let (mut found, mut expected) = ([0.0; 3], [0.0; 3]);
        path.start_responsibilities(0.0, &point, &mut found);
        path.start().responsibilities(&point, &mut expected);
        assert!(
            found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-9),
            "{path:?}"
        );
        let (time, n) = (times(&path)[1], 2000);
        let points = path.sample(time, n, 10);
        let mut shares = vec![0.0; 3 * n];
        path.start_responsibilities(time, &points, &mut shares);
        for (k, weight) in path.start().weights().iter().enumerate() {
            assert_mean(
                &shares
                    .iter()
                    .skip(k)
                    .step_by(3)
                    .copied()
                    .collect::<Vec<_>>(),
                *weight,
                "share",
            );
        }
    }
}

#[test]
fn mismatched_parts_are_refused() {
    let mixture = |dim| examples(dim, 1).remove(0);
    assert!(ExactPath::new(Process::default(), mixture(2), Some(mixture(2))).is_err());
    let linear = Process::by_name("linear").unwrap();
    assert!(ExactPath::new(linear, mixture(2), None).is_err());
    assert!(
        ExactPath::new(linear, mixture(2), Some(mixture(3)))
            .unwrap_err()
            .to_string()
            .contains("dimension 3")
    );
    let bad = Process::Linear(Linear { a: -1.0 });
    assert!(ExactPath::new(bad, mixture(2), Some(mixture(2))).is_err());
}
