//! Conditional targets average to the true quantity: integrals over the source given the noisy point, on the line.

use super::*;

/// Average over the sources given `Y_t = y` of a function of them and of z.
fn posterior(path: &ExactPath, t: f64, y: f64, f: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let p = path.process();
    let (alpha, beta, gamma) = (p.x0_scale(t), p.x1_scale(t), p.noise(t));
    let of = |m: &GaussianMixture, x: f64| m.log_density(&[x]).exp();
    let mut sums = [0.0; 2];
    let mut add = |x0: f64, x1: f64, prior: f64| {
        let z = (y - alpha * x0 - beta * x1) / gamma;
        let weight = prior * (-0.5 * z * z).exp();
        sums[0] += weight;
        sums[1] += weight * f(x0, x1, z);
    };
    let nodes = |k: usize| -6.0 + 12.0 * k as f64 / 600.0;
    for x0 in (0..=600).map(nodes) {
        let prior = of(path.start(), x0);
        match path.end() {
            None => add(x0, 0.0, prior),
            Some(end) => (0..=600)
                .map(nodes)
                .for_each(|x1| add(x0, x1, prior * of(end, x1))),
        }
    }
    sums[1] / sums[0]
}

const POINTS: [(f64, f64); 3] = [(0.2, -0.8), (0.45, 0.5), (0.7, 1.3)];

/// `-d gamma'/gamma + z . X' / gamma + |z|^2 gamma'/gamma` averages to the time score; with the printed minus it does not.
#[test]
fn the_conditional_time_score_averages_to_the_time_score() {
    for path in [line(vp()), line(linear())] {
        for (t, y) in POINTS {
            let p = path.process();
            let (gamma, slope) = (p.noise(t), p.noise_rate(t));
            let of = |sign: f64| {
                posterior(&path, t, y, |x0, x1, z| {
                    let motion = p.x0_rate(t) * x0 + p.x1_rate(t) * x1;
                    slope / gamma * (z * z - 1.0) + sign * z * motion / gamma
                })
            };
            let mut exact = [0.0];
            path.time_score(&[t], &[y], &mut exact);
            let (plus, minus) = (of(1.0), of(-1.0));
            assert!(
                (plus - exact[0]).abs() < 1e-8 * (1.0 + plus.abs()),
                "{plus} {exact:?}"
            );
            assert!(
                (minus - exact[0]).abs() > 0.1,
                "the printed sign: {minus} {exact:?}"
            );
        }
    }
}

/// `grad log q_0(x_0) / alpha` and `grad log q_1(x_1) / beta` average to the score. Without the factor they do not, and the
/// energies themselves, which the paper prints, have nothing to do with it.
#[test]
fn the_target_score_averages_to_the_score() {
    let slope = |m: &GaussianMixture, x: f64| difference(1e-3, |h| m.log_density(&[x + h]));
    for path in [line(vp()), line(linear())] {
        for (t, y) in POINTS {
            let p = path.process();
            let (alpha, beta) = (p.x0_scale(t), p.x1_scale(t));
            let mut exact = [0.0];
            path.score(&[t], &[y], &mut exact);
            let start = posterior(&path, t, y, |x0, _, _| slope(path.start(), x0));
            assert!(
                (start / alpha - exact[0]).abs() < 1e-6,
                "{start} {alpha} {exact:?}"
            );
            assert!((start - exact[0]).abs() > 0.01, "without the factor");
            if let Some(end) = path.end() {
                let last = posterior(&path, t, y, |_, x1, _| slope(end, x1));
                assert!(
                    (last / beta - exact[0]).abs() < 1e-6,
                    "{last} {beta} {exact:?}"
                );
                assert!((last - exact[0]).abs() > 0.01, "without the factor");
            }
        }
    }
}

/// `dX_t/dt` averages to the velocity.
#[test]
fn the_motion_of_the_sources_averages_to_the_velocity() {
    let path = line(linear());
    for (t, y) in POINTS {
        let p = path.process();
        let mean = posterior(&path, t, y, |x0, x1, _| {
            p.x0_rate(t) * x0 + p.x1_rate(t) * x1
        });
        let mut exact = [0.0];
        path.velocity(&[t], &[y], &mut exact);
        assert!((mean - exact[0]).abs() < 1e-8, "{mean} {exact:?}");
    }
}
