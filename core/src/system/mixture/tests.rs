//! Mixtures of every covariance kind against textbook formulas, differences and their own samples.

use super::*;
use crate::system::matrix::tests::random_covariance;

/// Lopsided mixtures of every covariance kind.
pub(crate) fn examples(dim: usize, row: u64) -> Vec<GaussianMixture> {
    let mut stream = Stream::new(2, Purpose::Test, 5, row);
    let count = 3;
    let weights = vec![0.5, 0.2, 0.3];
    let means: Vec<f64> = (0..count * dim)
        .map(|_| 1.5 * stream.normal() + 0.4)
        .collect();
    let isotropic = (0..count).map(|_| 0.05 + stream.uniform()).collect();
    let diagonal = (0..count * dim).map(|_| 0.05 + stream.uniform()).collect();
    let full = (0..count as u64)
        .flat_map(|k| random_covariance(dim, 10 * row + k))
        .collect();
    [
        Covariance::Isotropic(isotropic),
        Covariance::Diagonal(diagonal),
        Covariance::Full(full),
    ]
    .map(|covariance| {
        GaussianMixture::new(dim, weights.clone(), means.clone(), covariance).unwrap()
    })
    .into()
}

#[test]
fn density_is_normalised_and_follows_the_definition() {
    // A full covariance by the textbook formula, in two dimensions.
    let mixture = GaussianMixture::new(
        2,
        vec![1.0],
        vec![0.3, -0.2],
        Covariance::Full(vec![0.5, 0.2, 0.2, 0.7]),
    )
    .unwrap();
    let (x, y) = (0.9 - 0.3, 0.4 + 0.2);
    let det = 0.5 * 0.7 - 0.04;
    let expected =
        -0.5 * (0.7 * x * x - 0.4 * x * y + 0.5 * y * y) / det - TAU.ln() - 0.5 * f64::ln(det);
    assert!((mixture.log_density(&[0.9, 0.4]) - expected).abs() < 1e-13);
    // The integral over a wide square, by the midpoint rule: spectrally accurate for Gaussians.
    for mixture in examples(2, 3) {
        let (half, n) = (12.0, 600);
        let h = 2.0 * half / n as f64;
        let total: f64 = (0..n * n)
            .map(|i| {
                let at = |k: usize| -half + (k as f64 + 0.5) * h;
                mixture.log_density(&[at(i / n), at(i % n)]).exp() * h * h
            })
            .sum();
        assert!((total - 1.0).abs() < 1e-6, "{total}");
    }
}

#[test]
fn score_is_the_gradient() {
    for dim in [1, 4] {
        for mixture in examples(dim, 4) {
            let (points, _) = mixture.sample(5, 1);
            for point in points.chunks(dim) {
                let mut score = vec![0.0; dim];
                mixture.score(point, &mut score);
                for i in 0..dim {
                    let at = |h: f64| {
                        let mut moved = point.to_vec();
                        moved[i] += h;
                        mixture.log_density(&moved)
                    };
                    let h = 1e-4;
                    let expected =
                        (8.0 * (at(h) - at(-h)) - at(2.0 * h) + at(-2.0 * h)) / (12.0 * h);
                    assert!((score[i] - expected).abs() < 1e-6 * (1.0 + expected.abs()));
                }
            }
        }
    }
}

/// Samples against mean, variance and weights: each average within 4 of its own standard errors.
#[test]
fn samples_have_the_moments() {
    for mixture in examples(3, 6) {
        let n = 20_000;
        let (points, labels) = mixture.sample(n, 7);
        let mut single = vec![0.0_f32; 3 * n];
        for (row, out) in single.chunks_mut(3).enumerate() {
            mixture.sample_row(&mut Stream::new(9, Purpose::Test, 0, row as u64), out);
        }
        let single: Vec<f64> = single.into_iter().map(f64::from).collect();
        let within = |values: &[f64], expected: f64| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            assert!(
                (mean - expected).abs() < 4.0 * (variance / n).sqrt(),
                "{mean} {expected}"
            );
        };
        let mean = mixture.mean();
        for points in [&points, &single] {
            for (i, &mean) in mean.iter().enumerate() {
                within(
                    &points
                        .iter()
                        .skip(i)
                        .step_by(3)
                        .copied()
                        .collect::<Vec<_>>(),
                    mean,
                );
            }
            let spread = |row: &[f64]| {
                row.iter()
                    .zip(&mean)
                    .map(|(a, b)| (a - b).powi(2))
                    .sum::<f64>()
                    / 3.0
            };
            within(
                &points.chunks(3).map(spread).collect::<Vec<_>>(),
                mixture.variance(),
            );
            // E[score] = 0 and E[(y - mean) . score] = -dim.
            let mut score = [0.0; 3];
            let stein: Vec<f64> = points
                .chunks(3)
                .map(|row| {
                    mixture.score(row, &mut score);
                    row.iter()
                        .zip(&mean)
                        .zip(&score)
                        .map(|((y, m), s)| (y - m) * s)
                        .sum()
                })
                .collect();
            within(&stein, -3.0);
        }
        for k in 0..3 {
            let hits: Vec<f64> = labels
                .iter()
                .map(|l| f64::from(u8::from(*l == k)))
                .collect();
            within(&hits, mixture.weights()[k]);
        }
    }
}

#[test]
fn standardising_maps_density_and_moments() {
    for mixture in examples(3, 8) {
        let standard = mixture.standardised().unwrap();
        assert!(
            standard.mean().iter().all(|m| m.abs() < 1e-14)
                && (standard.variance() - 1.0).abs() < 1e-13
        );
        let (point, shift) = ([0.3, -0.7, 1.9], mixture.mean());
        let std = mixture.variance().sqrt();
        for (law, scale) in [
            (standard, vec![std]),
            (
                mixture.rescaled(&shift, &[0.4, 2.0, 1.3]).unwrap(),
                vec![0.4, 2.0, 1.3],
            ),
        ] {
            let at = |i: usize| scale[i % scale.len()];
            let mapped: Vec<f64> = (0..3).map(|i| (point[i] - shift[i]) / at(i)).collect();
            let volume: f64 = (0..3).map(|i| at(i).ln()).sum();
            let expected = mixture.log_density(&point) + volume;
            assert!((law.log_density(&mapped) - expected).abs() < 1e-11);
        }
        assert!(mixture.rescaled(&shift, &[1.0, 2.0]).is_err());
    }
}

#[test]
fn nearest_and_responsibilities_find_the_component() {
    for mixture in examples(2, 9) {
        let mut shares = [0.0; 3];
        for k in 0..3 {
            assert_eq!(mixture.nearest(mixture.component_mean(k)), k);
            mixture.responsibilities(mixture.component_mean(k), &mut shares);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        }
    }
}

#[test]
fn bad_mixtures_are_refused_and_files_round_trip() {
    let iso = |v: f64| Covariance::Isotropic(vec![v]);
    for result in [
        GaussianMixture::new(0, vec![1.0], vec![], iso(1.0)),
        GaussianMixture::new(1, vec![], vec![], Covariance::Isotropic(vec![])),
        GaussianMixture::new(1, vec![-1.0], vec![0.0], iso(1.0)),
        GaussianMixture::new(1, vec![f64::INFINITY], vec![0.0], iso(1.0)),
        GaussianMixture::new(1, vec![1.0], vec![0.0, 1.0], iso(1.0)),
        GaussianMixture::new(1, vec![1.0], vec![f64::NAN], iso(1.0)),
        GaussianMixture::new(1, vec![1.0], vec![0.0], iso(0.0)),
        GaussianMixture::new(
            2,
            vec![1.0],
            vec![0.0; 2],
            Covariance::Full(vec![1.0, 2.0, 2.0, 1.0]),
        ),
        GaussianMixture::new(
            2,
            vec![1.0],
            vec![0.0; 2],
            Covariance::Full(vec![1.0, 0.2, 0.1, 1.0]),
        ),
    ] {
        assert!(result.is_err());
    }
    for mixture in examples(2, 10) {
        let text = serde_json::to_string(&mixture).unwrap();
        assert_eq!(
            serde_json::from_str::<GaussianMixture>(&text).unwrap(),
            mixture
        );
    }
}
