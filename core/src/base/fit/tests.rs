//! Fits of known mixtures and of awkward data.

use super::super::Marginal;
use super::*;
use crate::rng::Stream;
use crate::system::mixture::tests::examples;
use crate::system::{Covariance, GaussianMixture};
use std::sync::atomic::{AtomicUsize, Ordering};

fn run(rows: &[f64], dim: usize, settings: &FitSettings) -> Fit {
    fit(
        &RowSlice::new(rows, dim),
        settings,
        &Pool::new(2),
        Isa::detect(),
    )
    .unwrap()
}

fn normals(n: usize, step: u64) -> Vec<f64> {
    (0..n)
        .map(|i| Stream::new(6, Purpose::Test, step, i as u64).normal())
        .collect()
}

/// Three modes of scales 0.5, 1 and 2.
fn three_modes() -> GaussianMixture {
    GaussianMixture::new(
        3,
        vec![0.5, 0.3, 0.2],
        vec![-4.0, 0.0, 1.0, 3.0, 3.0, -2.0, 1.0, -5.0, 2.0],
        Covariance::Isotropic(vec![0.25, 1.0, 4.0]),
    )
    .unwrap()
}

/// Rows of equal modes, weighted 1 to 4: the fit has shares 0.2 and 0.8, and the held-out likelihood is that of the weighted law.
#[test]
fn weights_make_another_mixture() {
    let target = |share: f64| {
        let spread = Covariance::Isotropic(vec![0.25, 1.0]);
        GaussianMixture::new(1, vec![share, 1.0 - share], vec![-3.0, 2.0], spread).unwrap()
    };
    let n = 6000;
    let (rows, modes) = target(0.5).sample(n, 4);
    let weights: Vec<f64> = modes.iter().map(|k| [0.1, 0.4][*k]).collect();
    let settings = FitSettings::default();
    let rows = RowSlice::new(&rows, 1).weighted(&weights);
    let found = fit(&rows, &settings, &Pool::new(1), Isa::detect()).unwrap();
    assert_eq!(found.chosen.components, 2);
    let low: f64 = (0..2)
        .filter(|k| found.mixture.means()[*k] < 0.0)
        .map(|k| found.mixture.weights()[k])
        .sum();
    // Standard error of a ratio of weighted counts: sqrt(0.2^2 0.64 + 0.8^2 0.04) / sqrt(n / 2 ...) < 0.0066.
    assert!((low - 0.2).abs() < 4.0 * 0.0066, "{low}");
    // The entropy of the weighted law, by its own draws.
    let law = target(0.2);
    let (draws, _) = law.sample(20_000, 5);
    let nats = draws.iter().map(|x| law.log_density(&[*x])).sum::<f64>() / 20_000.0;
    let error = found.chosen.error.hypot(0.007);
    assert!((found.chosen.held_out - nats).abs() < 4.0 * error);
    // Weights that are wrong are refused.
    let wrong = vec![-1.0; n];
    let rows = rows.weighted(&wrong);
    assert!(fit(&rows, &settings, &Pool::new(1), Isa::detect()).is_err());
}

#[test]
fn a_mixture_is_found_again() {
    let (target, n) = (three_modes(), 6000);
    let (rows, _) = target.sample(n, 1);
    let fitted = run(&rows, 3, &FitSettings::default());
    assert_eq!(fitted.mixture.components(), 3, "{:?}", fitted.chosen);
    // Fresh rows lose about (numbers of the model)/(2 n) = 29/12000 nats; their own scatter is paired away.
    let (fresh, _) = target.sample(4000, 2);
    let loss: f64 = fresh
        .chunks_exact(3)
        .map(|x| target.log_density(x) - fitted.mixture.log_density(x))
        .sum::<f64>()
        / 4000.0;
    assert!((-0.002..0.01).contains(&loss), "{loss}");
    let truth: f64 = fresh
        .chunks_exact(3)
        .map(|x| target.log_density(x))
        .sum::<f64>()
        / 4000.0;
    assert!((fitted.chosen.held_out - truth).abs() < 5.0 * fitted.chosen.error);
    let mut weights = fitted.mixture.weights().to_vec();
    weights.sort_by(f64::total_cmp);
    for (found, expected) in weights.iter().zip([0.2, 0.3, 0.5]) {
        // Four binomial standard errors, and a little for overlap.
        assert!((found - expected).abs() < 4.0 * (0.25 / n as f64).sqrt() + 0.005);
    }
}

#[test]
fn threads_and_repetition_do_not_change_a_bit() {
    let (rows, _) = three_modes().sample(700, 3);
    let settings = FitSettings {
        most_components: 4,
        ..FitSettings::default()
    };
    let one = fit(
        &RowSlice::new(&rows, 3),
        &settings,
        &Pool::new(1),
        Isa::detect(),
    )
    .unwrap();
    let many = fit(
        &RowSlice::new(&rows, 3),
        &settings,
        &Pool::new(3),
        Isa::detect(),
    )
    .unwrap();
    assert_eq!((one.mixture, one.tried), (many.mixture, many.tried));
}

#[test]
fn scales_of_the_columns_do_not_matter() {
    // Columns times 1e-6 and 1e6, one shifted by 1e3 of its widths: the log-density changes by the Jacobian alone.
    let (rows, _) = examples(3, 7)[2].sample(900, 4);
    let scales = [1e-6, 1.0, 1e6];
    let moved: Vec<f64> = rows
        .iter()
        .enumerate()
        .map(|(i, x)| (x + 1e3) * scales[i % 3])
        .collect();
    let settings = FitSettings {
        shapes: vec![Shape::Full],
        ..FitSettings::default()
    };
    let (a, b) = (run(&rows, 3, &settings), run(&moved, 3, &settings));
    // Starts differ, since columns of like size keep their ratio: equal within the error of the choice.
    // The product of the scales is one: the log-densities are comparable as they are.
    let gap = a.chosen.held_out - b.chosen.held_out;
    assert!(gap.abs() < a.chosen.error, "{gap}");
}

/// No row of awkward data may break the fit, and no density may be beyond what the widths allow.
fn sane(rows: &[f64], dim: usize) -> Fit {
    let fitted = run(rows, dim, &FitSettings::default());
    for row in rows.chunks_exact(dim) {
        assert!(
            fitted.mixture.log_density(row).is_finite(),
            "{:?}",
            fitted.chosen
        );
    }
    assert!(fitted.chosen.held_out.is_finite());
    fitted
}

#[test]
fn awkward_columns_are_survived() {
    let n = 400;
    let (z, w) = (normals(n, 1), normals(n, 2));
    // A constant, a sum of others, integers, and heavy tails.
    let rows: Vec<f64> = (0..n)
        .flat_map(|i| {
            [
                z[i],
                3.0,
                w[i],
                z[i] + w[i],
                (3.0 * w[i]).round(),
                z[i] / w[i],
            ]
        })
        .collect();
    let fitted = sane(&rows, 6);
    assert!(fitted.mixture.smallest_width() > 1e-5);
    // Few rows of many columns, one row, two equal rows.
    sane(&normals(20 * 40, 3), 40);
    sane(&[1.0, 2.0, 3.0], 3);
    sane(&[0.5, 0.5, 0.5], 1);
    sane(&[7.0; 2000], 2);
}

#[test]
fn repeated_rows_are_not_learned_by_heart() {
    let (distinct, _) = three_modes().sample(50, 5);
    let rows: Vec<f64> = (0..100).flat_map(|_| distinct.clone()).collect();
    let fitted = sane(&rows, 3);
    assert!((fitted.multiplicity - 100.0).abs() < 1e-9);
    // What is held out has no twin in training: its likelihood is that of new rows.
    let (fresh, _) = three_modes().sample(2000, 6);
    let new: f64 = fresh
        .chunks_exact(3)
        .map(|x| fitted.mixture.log_density(x))
        .sum::<f64>()
        / 2000.0;
    let truth: f64 = fresh
        .chunks_exact(3)
        .map(|x| three_modes().log_density(x))
        .sum::<f64>()
        / 2000.0;
    assert!(new > truth - 2.5, "{new} {truth}");
    let own: f64 = distinct
        .chunks_exact(3)
        .map(|x| fitted.mixture.log_density(x))
        .sum::<f64>()
        / 50.0;
    assert!(own - new < 2.5, "{own} {new}");
}

#[test]
fn outliers_do_not_take_the_mixture_over() {
    let n = 2000;
    let mut rows = normals(2 * n, 8);
    // One row in twenty is far out.
    for i in 0..n / 20 {
        rows[40 * i] = 1e3 * (1.0 + rows[40 * i]);
    }
    let fitted = sane(&rows, 2);
    let centre = fitted.mixture.log_density(&[0.0, 0.0]);
    // 0.95 N(0, I) at its centre, -1.89; four tenths allow for the scatter of 1900 rows.
    assert!((centre + 1.89).abs() < 0.4, "{centre} {:?}", fitted.chosen);
}

#[test]
fn long_files_are_read_in_part_and_order_is_kept() {
    struct Long(AtomicUsize);
    impl Rows for Long {
        fn dim(&self) -> usize {
            2
        }
        fn rows(&self) -> usize {
            1 << 40
        }
        fn copy_row(&self, row: usize, out: &mut [f64]) {
            self.0.fetch_add(1, Ordering::Relaxed);
            let mut stream = Stream::new(3, Purpose::Test, 5, row as u64);
            out[0] = stream.normal();
            out[1] = 0.5 * out[0] + stream.normal();
        }
    }
    let rows = Long(AtomicUsize::new(0));
    let settings = FitSettings {
        most_rows: 3000,
        ..FitSettings::default()
    };
    let fitted = fit(&rows, &settings, &Pool::new(1), Isa::detect()).unwrap();
    assert_eq!((rows.0.into_inner(), fitted.rows), (3000, 3000));
    // Entropy of N(0, [[1, .5], [.5, 1.25]]): determinant 1.
    let entropy = 1.0 + std::f64::consts::TAU.ln();
    assert!((fitted.chosen.held_out + entropy).abs() < 4.0 * fitted.chosen.error + 0.01);
}

#[test]
fn both_ends_get_axes_that_they_share() {
    let [a, b] = [1, 2].map(|row| examples(3, row)[2].sample(600, 9).0);
    let (start, end) = (RowSlice::new(&a, 3), RowSlice::new(&b, 3));
    let settings = FitSettings::default();
    let ends = fit_ends(&start, &end, &settings, &Pool::new(2), Isa::detect()).unwrap();
    let (start, end) = (&ends.start.mixture, &ends.end.mixture);
    assert!(Marginal::<f64>::new(start, Some(end), Isa::detect()).is_ok());
    // Sixteen, and a broad one.
    assert!(start.components() <= 17 && end.components() <= 17);
    // The turned means are means of the rows: the centre of the mixture is that of the rows, to four standard errors.
    for j in 0..3 {
        let column: Vec<f64> = a.iter().skip(j).step_by(3).copied().collect();
        let mean = column.iter().sum::<f64>() / 600.0;
        let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 600.0;
        let found: f64 = (0..start.components())
            .map(|k| start.weights()[k] * start.component_mean(k)[j])
            .sum();
        assert!((found - mean).abs() < 4.0 * (variance / 600.0).sqrt());
    }
    let narrow = RowSlice::new(&b, 2);
    let refused = fit_ends(
        &RowSlice::new(&a, 3),
        &narrow,
        &settings,
        &Pool::new(1),
        Isa::detect(),
    );
    assert!(refused.unwrap_err().to_string().contains("as the first"));
}

#[test]
fn structures_that_do_not_fit_are_refused() {
    let refused = |shape: Shape, dim: usize| {
        let settings = FitSettings {
            shapes: vec![shape],
            ..FitSettings::default()
        };
        let values = normals(10 * dim, 4);
        fit(
            &RowSlice::new(&values, dim),
            &settings,
            &Pool::new(1),
            Isa::detect(),
        )
        .is_err()
    };
    assert!(refused(Shape::LowRank(3), 3) && refused(Shape::LowRank(0), 3));
    assert!(refused(Shape::Full, MOST_DENSE + 1));
    assert!(!refused(Shape::LowRank(1), 3));
}
