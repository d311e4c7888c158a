//! Marginals against the exact path of the same mixtures, differences, and their own samples.

use super::super::mixture::tests::{bases, turned};
use super::*;
use crate::energy::Energy;
use crate::energy::exact::ExactPath;
use crate::process::{Linear, Trigonometric, VarianceExploding, VariancePreserving};
use crate::rng::Purpose;

fn processes() -> [Process; 5] {
    [
        Process::VariancePreserving(VariancePreserving {
            beta_min: 0.3,
            beta_max: 11.0,
        }),
        Process::VarianceExploding(VarianceExploding {
            sigma_min: 0.1,
            sigma_max: 7.0,
        }),
        Process::by_name("edm").unwrap(),
        Process::Linear(Linear { a: 0.7 }),
        Process::Trigonometric(Trigonometric { a: 1.3 }),
    ]
}

fn isotropic(dim: usize) -> MixtureBase {
    let spread = super::super::Spread::Diagonal {
        variances: [0.6, 1.7].iter().flat_map(|v| vec![*v; dim]).collect(),
        basis: None,
    };
    let means = (0..2 * dim)
        .map(|i| 0.4 * (i as f64 * 1.3).sin() - 0.2)
        .collect();
    MixtureBase::new(dim, vec![0.3, 0.7], means, spread).unwrap()
}

/// Every process with every kind of base that it can have.
fn cases(dim: usize) -> Vec<(Process, MixtureBase, Option<MixtureBase>)> {
    let mut cases = vec![];
    for process in processes() {
        for base in bases(dim, 1) {
            if !process.is_interpolant() {
                cases.push((process, base, None));
                continue;
            }
            cases.push((process, base.clone(), Some(isotropic(dim))));
            cases.push((process, isotropic(dim), Some(base.clone())));
            if let super::super::Spread::Diagonal { basis, .. } = base.spread() {
                let other = turned(dim, 2, basis.clone());
                cases.push((process, base, Some(other)));
            }
        }
    }
    cases
}

struct Values {
    log_density: Vec<f64>,
    score: Vec<f64>,
    time_score: Vec<f64>,
    laplacian: Vec<f64>,
}

fn evaluate<T: Real>(
    marginal: &Marginal<T>,
    points: &[f64],
    levels: &[Level],
    each: usize,
) -> Values {
    let points: Vec<T> = points.iter().map(|x| T::from_f64(*x)).collect();
    let rows = points.len() / marginal.dim() * each;
    let [mut log_density, mut time_score, mut laplacian] =
        std::array::from_fn(|_| vec![T::ZERO; rows]);
    let mut score = vec![T::ZERO; rows * marginal.dim()];
    let wanted = Wanted {
        log_density: &mut log_density,
        score: Some(&mut score),
        time_score: Some(&mut time_score),
        laplacian: Some(&mut laplacian),
    };
    marginal.evaluate(&points, levels, wanted, &mut marginal.scratch());
    let wide = |values: Vec<T>| values.into_iter().map(Real::to_f64).collect();
    Values {
        log_density: wide(log_density),
        score: wide(score),
        time_score: wide(time_score),
        laplacian: wide(laplacian),
    }
}

fn close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    for (a, b) in found.iter().zip(expected) {
        assert!(
            (a - b).abs() <= tolerance * (1.0 + b.abs()),
            "{what}: {a}, expected {b}"
        );
    }
}

#[test]
fn values_are_those_of_the_exact_path() {
    for dim in [1, 2, 5, 9] {
        for (process, start, end) in cases(dim) {
            let exact = ExactPath::new(
                process,
                start.to_gaussian_mixture().unwrap(),
                end.as_ref().map(|end| end.to_gaussian_mixture().unwrap()),
            )
            .unwrap();
            // 19 points: a full block and a part of one; times differ from row to row.
            let (n, end) = (19, end.as_ref());
            let times: Vec<f64> = (0..n)
                .map(|i| process.horizon().min(3.0) * [0.02, 0.3, 0.55, 0.97][i % 4])
                .collect();
            let mut points = vec![];
            for (i, time) in times.iter().enumerate() {
                points.extend(exact.sample(*time, 1, 3 + i as u64));
            }
            points[0] = 11.0;
            let levels: Vec<Level> = times.iter().map(|t| Level::at(&process, *t)).collect();
            let mut expected = Values {
                log_density: vec![0.0; n],
                score: vec![0.0; n * dim],
                time_score: vec![0.0; n],
                laplacian: vec![],
            };
            exact.log_density(&times, &points, &mut expected.log_density);
            exact.score(&times, &points, &mut expected.score);
            exact.time_score(&times, &points, &mut expected.time_score);
            let what = format!("{} {} {dim}", process.name(), start.spread_name());
            for isa in Isa::available() {
                let marginal = Marginal::<f64>::new(&start, end, isa).unwrap();
                let found = evaluate(&marginal, &points, &levels, 1);
                close(&found.log_density, &expected.log_density, 1e-10, &what);
                close(&found.score, &expected.score, 1e-10, &what);
                close(&found.time_score, &expected.time_score, 1e-10, &what);
                // The point itself is rounded to single precision: the tolerance is that of its image.
                let single = Marginal::<f32>::new(&start, end, isa).unwrap();
                let rounded: Vec<f64> = points.iter().map(|x| f64::from(*x as f32)).collect();
                let reference = evaluate(&marginal, &rounded, &levels, 1);
                let found = evaluate(&single, &points, &levels, 1);
                close(&found.log_density, &reference.log_density, 1e-4, &what);
                close(&found.score, &reference.score, 1e-4, &what);
                close(&found.time_score, &reference.time_score, 2e-4, &what);
            }
        }
    }
}

#[test]
fn laplacian_is_the_divergence_of_the_score() {
    for dim in [1, 3] {
        for (process, start, end) in cases(dim) {
            let marginal = Marginal::<f64>::new(&start, end.as_ref(), Isa::detect()).unwrap();
            let level = Level::at(&process, 0.35);
            let (mut point, mut room) = (vec![0.0; dim], vec![0.0; 2 * dim]);
            for row in 0..5 {
                let mut stream = Stream::new(5, Purpose::Test, 1, row);
                marginal.sample(&level, &mut stream, &mut point, &mut room);
                let found = evaluate(&marginal, &point, &[level], 1).laplacian[0];
                let expected: f64 = (0..dim)
                    .map(|i| {
                        let at = |h: f64| {
                            let mut moved = point.clone();
                            moved[i] += h;
                            evaluate(&marginal, &moved, &[level], 1).score[i]
                        };
                        let h = 1e-4;
                        (8.0 * (at(h) - at(-h)) - at(2.0 * h) + at(-2.0 * h)) / (12.0 * h)
                    })
                    .sum();
                assert!((found - expected).abs() < 1e-6 * (1.0 + expected.abs()));
            }
        }
    }
}

#[test]
fn many_levels_per_point_and_one_for_all_are_the_same_rows() {
    for (process, start, end) in cases(4) {
        let marginal = Marginal::<f32>::new(&start, end.as_ref(), Isa::detect()).unwrap();
        let times = [0.1, 0.4, 0.8];
        let points: Vec<f64> = (0..21 * 4).map(|i| 1.7 * (i as f64 * 0.77).sin()).collect();
        let levels = times.map(|t| Level::at(&process, t));
        let all: Vec<Level> = (0..21).flat_map(|_| levels).collect();
        let together = evaluate(&marginal, &points, &all, 3);
        for (j, level) in levels.iter().enumerate() {
            let alone = evaluate(&marginal, &points, &[*level], 1);
            for i in 0..21 {
                assert_eq!(alone.log_density[i], together.log_density[i * 3 + j]);
                assert_eq!(alone.laplacian[i], together.laplacian[i * 3 + j]);
                assert_eq!(
                    alone.score[i * 4..][..4],
                    together.score[(i * 3 + j) * 4..][..4]
                );
            }
            // A row by itself: neighbours do not matter.
            let lone = evaluate(&marginal, &points[20..24], &[*level], 1);
            assert_eq!(lone.score[..], alone.score[20..24]);
            assert_eq!(lone.time_score[0], alone.time_score[5]);
        }
    }
}

/// Draws of the inflated marginal follow its density: E[score] = 0, E[y . score] = -d, and E[b/q] = 1 for the integral of b by
/// importance sampling; each within 4 standard errors.
#[test]
fn samples_follow_the_inflated_density() {
    let (dim, n) = (3, 6000);
    for (process, start, end) in cases(dim) {
        let marginal = Marginal::<f64>::new(&start, end.as_ref(), Isa::detect()).unwrap();
        for inflation in [1.0, 1.5, 3.0] {
            let level = Level::at(&process, 0.3);
            let wide = level.inflated(inflation);
            let (mut points, mut room) = (vec![0.0; n * dim], vec![0.0; 2 * dim]);
            for (row, point) in points.chunks_mut(dim).enumerate() {
                let mut stream = Stream::new(8, Purpose::Test, 2, row as u64);
                marginal.sample(&wide, &mut stream, point, &mut room);
            }
            let own = evaluate(&marginal, &points, &[wide], 1);
            let base = evaluate(&marginal, &points, &[level], 1);
            let check = |values: Vec<f64>, expected: f64| {
                let mean = values.iter().sum::<f64>() / n as f64;
                let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
                let error = (variance / n as f64).sqrt() + 1e-12;
                assert!(
                    (mean - expected).abs() < 4.0 * error,
                    "{} {} {inflation}: {mean} +- {error}, expected {expected}",
                    process.name(),
                    start.spread_name()
                );
            };
            check(
                (0..n)
                    .map(|i| dot(&points[i * dim..][..dim], &own.score[i * dim..][..dim]))
                    .collect(),
                -(dim as f64),
            );
            check((0..n).map(|i| own.score[i * dim + 1]).collect(), 0.0);
            check(
                (0..n)
                    .map(|i| (base.log_density[i] - own.log_density[i]).exp())
                    .collect(),
                1.0,
            );
        }
    }
}

#[test]
fn at_the_data_it_is_the_base() {
    for base in bases(3, 4) {
        let marginal = Marginal::<f64>::new(&base, None, Isa::detect()).unwrap();
        let point = [0.3, -1.2, 0.8];
        let found = evaluate(&marginal, &point, &[Level::data()], 1).log_density[0];
        assert!((found - base.log_density(&point)).abs() < 1e-11 * found.abs().max(1.0));
    }
}

#[test]
fn ends_without_common_axes_are_refused() {
    let [.., full, low] = bases(3, 1);
    let message = |a: &MixtureBase, b: &MixtureBase| {
        let refused = Marginal::<f64>::new(a, Some(b), Isa::PORTABLE);
        refused.err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(message(&full, &low).contains("axes that both ends share"));
    assert!(message(&full, &isotropic(2)).contains("dimension 3"));
}

/// Variances of 1e-12 (columns in small units) and of 1e12 neither underflow nor overflow in single precision.
#[test]
fn very_small_and_large_units_keep_single_precision() {
    for unit in [1e-6, 1e6] {
        let base = &bases(5, 3)[2];
        let super::super::Spread::Axes {
            rank,
            axes,
            variances,
            rest,
        } = base.spread().clone()
        else {
            panic!("the third base is full")
        };
        let scaled = MixtureBase::new(
            5,
            base.weights().to_vec(),
            base.means().iter().map(|m| m * unit).collect(),
            super::super::Spread::Axes {
                rank,
                axes,
                variances: variances.iter().map(|v| v * unit * unit).collect(),
                rest,
            },
        )
        .unwrap();
        let point = [0.3, -1.2, 0.8, 0.1, 0.5];
        let moved = point.map(|x| x * unit);
        let single = Marginal::<f32>::new(&scaled, None, Isa::detect()).unwrap();
        let found = evaluate(&single, &moved, &[Level::data()], 1).log_density[0];
        let expected = base.log_density(&point) - 5.0 * f64::ln(unit);
        assert!(
            (found - expected).abs() < 1e-4 * expected.abs(),
            "{found} {expected}"
        );
    }
}

/// Periodic coordinates against the same mixture with its images written out.
#[test]
fn wrapped_components_are_sums_of_images() {
    let (periods, weights) = ([2.4, 0.0], [0.6, 0.4]);
    let (means, variances) = ([0.9, -0.3, -1.1, 0.8], [0.3, 0.5, 0.05, 0.9]);
    let spread = |variances: &[f64]| super::super::Spread::Diagonal {
        variances: variances.to_vec(),
        basis: None,
    };
    let wrapped = MixtureBase::new(2, weights.to_vec(), means.to_vec(), spread(&variances))
        .and_then(|mixture| mixture.with_periods(periods.to_vec()))
        .unwrap();
    let reach = 20;
    let (mut many, mut at, mut wide) = (vec![], vec![], vec![]);
    for k in 0..2 {
        for image in -reach..=reach {
            many.push(weights[k]);
            at.extend([means[2 * k] + 2.4 * f64::from(image), means[2 * k + 1]]);
            wide.extend(&variances[2 * k..][..2]);
        }
    }
    let images = f64::from(2 * reach + 1).ln();
    let plain = MixtureBase::new(2, many, at, spread(&wide)).unwrap();
    let process = Process::VarianceExploding(VarianceExploding {
        sigma_min: 0.1,
        sigma_max: 3.0,
    });
    let points = [0.2, 0.4, 1.19, -0.5, -1.2, 1.0, 7.0, 0.1];
    for isa in Isa::available() {
        let [a, b] =
            [&wrapped, &plain].map(|mixture| Marginal::<f64>::new(mixture, None, isa).unwrap());
        for time in [0.02, 0.4, 0.9] {
            let level = [Level::at(&process, time)];
            let found = evaluate(&a, &points, &level, 1);
            let exact = evaluate(&b, &points, &level, 1);
            for i in 0..4 {
                assert!((found.log_density[i] - exact.log_density[i] - images).abs() < 1e-9);
                assert!((found.time_score[i] - exact.time_score[i]).abs() < 1e-8);
                assert!((found.laplacian[i] - exact.laplacian[i]).abs() < 1e-8);
                for j in 0..2 {
                    assert!((found.score[2 * i + j] - exact.score[2 * i + j]).abs() < 1e-9);
                }
            }
        }
        let single = Marginal::<f32>::new(&wrapped, None, isa).unwrap();
        let level = [Level::at(&process, 0.4)];
        let (low, high) = (
            evaluate(&single, &points, &level, 1),
            evaluate(&a, &points, &level, 1),
        );
        for (a, b) in low.score.iter().zip(&high.score) {
            assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{a} {b}");
        }
        for i in 0..4 {
            let direct = wrapped.log_density(&points[2 * i..][..2]);
            let data = evaluate(&a, &points[2 * i..][..2], &[Level::data()], 1);
            assert!((direct - data.log_density[0]).abs() < 1e-10);
        }
    }
    assert!(Marginal::<f64>::new(&wrapped, Some(&isotropic(2)), Isa::PORTABLE).is_err());
}
