//! Energies with periodic columns: no seam, derivatives against differences, zero network against images of the mixture by hand.

use super::*;
use crate::energy::{Energy, Form, ModelSpec};

const PERIODS: [f64; 3] = [3.1, 0.0, 5.5];

fn cases() -> Vec<ModelSpec> {
    let mut cases = Vec::new();
    for process in diffusions().into_iter().skip(1) {
        for form in [Form::Scalar, Form::InnerProduct] {
            let mut spec = spec(process, Some(form), true);
            let mixture = base(false).start;
            let variances = vec![0.2, 0.5, 0.9, 0.4, 0.1, 0.3];
            let means = (0..2).flat_map(|k| mixture.component_mean(k).to_vec());
            let spread = Spread::Diagonal {
                variances,
                basis: None,
            };
            let wrapped = MixtureBase::new(3, vec![0.7, 0.3], means.collect(), spread)
                .and_then(|mixture| mixture.with_periods(PERIODS.to_vec()))
                .unwrap();
            spec.base = Some(BaseEnds {
                start: wrapped,
                end: None,
            });
            spec.mean = vec![0.0, 0.3, 0.0];
            spec.validate().unwrap();
            cases.push(spec);
        }
    }
    cases
}

#[test]
fn a_period_away_everything_is_the_same() {
    for spec in cases() {
        let energy = learned::<f64>(&spec, &params(&spec, 4), Isa::detect());
        for time in times(&spec) {
            let y = [0.4, -0.7, 2.6];
            let moved = [0.4 - 2.0 * 3.1, -0.7, 2.6 + 5.5];
            let [mut here, mut there] = [[0.0; 4]; 2];
            for (y, out) in [(y, &mut here), (moved, &mut there)] {
                let (u, score) = out.split_at_mut(1);
                energy.energy_and_score(&[time], &y, u, score);
            }
            for (a, b) in here.iter().zip(there) {
                assert_close(*a, b, 1e-9 * (1.0 + b.abs()), "a period away");
            }
            // Other columns have none.
            let mut other = [0.0];
            energy.energy(&[time], &[0.4, -0.7 + 3.1, 2.6], &mut other);
            assert!((other[0] - here[0]).abs() > 1e-3);
        }
    }
}

#[test]
fn derivatives_are_those_of_the_wrapped_energy() {
    for spec in cases() {
        let energy = learned::<f64>(&spec, &params(&spec, 5), Isa::detect());
        for time in times(&spec) {
            // Near the seam of the first column.
            let y = [1.54, -0.2, -2.3];
            let value = |t: f64, y: &[f64]| {
                let mut out = [0.0];
                energy.log_density(&[t], y, &mut out);
                out[0]
            };
            let score = |y: &[f64]| {
                let mut out = [0.0; 3];
                energy.score(&[time], y, &mut out);
                out
            };
            let found = score(&y);
            let size = found.iter().fold(1e-2, |m: f64, s| m.max(s.abs()));
            let (mut rate, mut bend, mut product) = ([0.0], [0.0], [0.0; 3]);
            energy.time_score(&[time], &y, &mut rate);
            let e = [0.6, -0.3, 0.9];
            energy.curvature(&[time], &y, &e, &mut bend);
            energy.hessian_product(&[time], &y, &e, &mut product);
            let along = |h: f64| [y[0] + h * e[0], y[1] + h * e[1], y[2] + h * e[2]];
            for i in 0..3 {
                let slope = difference(1e-3, |h| {
                    let mut y = y;
                    y[i] += h;
                    value(time, &y)
                });
                assert_close(found[i], slope, 1e-6 * size, "score");
                let slope = difference(1e-3, |h| score(&along(h))[i]);
                assert_close(product[i], slope, 1e-5 * (1.0 + slope.abs()), "product");
            }
            let slope = difference(1e-4 * time, |h| value(time + h, &y));
            assert_close(rate[0], slope, 1e-5 * (1.0 + slope.abs()), "time score");
            let slope = difference(1e-3, |h| {
                let s = score(&along(h));
                s[0] * e[0] + s[1] * e[1] + s[2] * e[2]
            });
            assert_close(bend[0], slope, 1e-5 * (1.0 + slope.abs()), "curvature");
        }
    }
}

/// A zero network is the wrapped mixture: a density on the circles, normalised at every time.
#[test]
fn a_zero_network_integrates_to_one() {
    for spec in cases() {
        let zeros = vec![0.0; spec.layout().len()];
        let energy = learned::<f64>(&spec, &zeros, Isa::detect());
        for time in times(&spec) {
            let reach = 8.0 * (1.0 + spec.process.noise(time));
            let (n, m) = (16, 160);
            let mut points = Vec::new();
            for i in 0..n {
                for j in 0..m {
                    for k in 0..n {
                        let along = |i: usize, n: usize, span: f64| {
                            span * ((i as f64 + 0.5) / n as f64 - 0.5)
                        };
                        points.extend([
                            along(i, n, 3.1),
                            along(j, m, 2.0 * reach),
                            along(k, n, 5.5),
                        ]);
                    }
                }
            }
            let mut out = vec![0.0; points.len() / 3];
            energy.log_density(&[time], &points, &mut out);
            let cell = 3.1 / n as f64 * 5.5 / n as f64 * 2.0 * reach / m as f64;
            let mass = out.iter().map(|x| x.exp()).sum::<f64>() * cell;
            // Sixteen points of a circle resolve a standard deviation of 0.45 to 1e-5.
            assert!((mass - 1.0).abs() < 1e-4, "{time}: {mass}");
        }
    }
}

#[test]
fn what_cannot_be_periodic_is_refused() {
    let fine = cases().remove(0);
    let refused = |spec: ModelSpec, words: &str| {
        let message = spec.validate().unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    refused(
        ModelSpec {
            process: diffusions()[0],
            grid: TimeGrid::new(9, 0.05, 0.9, Spacing::Linear {}).unwrap(),
            ..fine.clone()
        },
        "ve or edm",
    );
    refused(
        ModelSpec {
            mean: vec![0.1, 0.0, 0.0],
            ..fine.clone()
        },
        "a circle has no mean",
    );
    let turned = base(false).start;
    let message = turned.with_periods(PERIODS.to_vec()).unwrap_err();
    assert!(message.to_string().contains("diagonal"), "{message}");
    let start = fine.base.unwrap().start;
    assert!(start.clone().with_periods(vec![1.0]).is_err());
    let text = serde_json::to_string(&start).unwrap();
    assert_eq!(serde_json::from_str::<MixtureBase>(&text).unwrap(), start);
}
