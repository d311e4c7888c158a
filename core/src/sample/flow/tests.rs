//! The flow on Gaussians, where every particle's way is known: order of convergence, chosen steps, densities, both directions.

use super::*;
use crate::energy::exact::ExactPath;
use crate::process::Linear;
use crate::system::{Covariance, GaussianMixture, two_modes};

fn gaussian(mean: [f64; 2], variance: [f64; 2]) -> GaussianMixture {
    let covariance = Covariance::Diagonal(variance.to_vec());
    GaussianMixture::new(2, vec![1.0], mean.to_vec(), covariance).unwrap()
}

/// A diffusion and an interpolant of Gaussians.
fn paths() -> Vec<ExactPath> {
    let start = || gaussian([0.8, -1.1], [0.3, 0.7]);
    let linear = Process::Linear(Linear { a: 0.8 });
    vec![
        ExactPath::new(Process::by_name("vp").unwrap(), start(), None).unwrap(),
        ExactPath::new(linear, start(), Some(gaussian([-0.5, 0.4], [1.3, 0.2]))).unwrap(),
    ]
}

/// Mean and standard deviation of coordinate `i` at time `t`.
fn law(path: &ExactPath, t: f64, i: usize) -> (f64, f64) {
    let p = path.process();
    let (a, b, g) = (p.x0_scale(t), p.x1_scale(t), p.noise(t));
    let (m, v) = ([0.8, -1.1][i], [0.3, 0.7][i]);
    let (n, w) = if path.end().is_some() {
        ([-0.5, 0.4][i], [1.3, 0.2][i])
    } else {
        (0.0, 0.0)
    };
    (a * m + b * n, (a * a * v + b * b * w + g * g).sqrt())
}

fn flow<'a>(path: &'a ExactPath, solver: Solver, divergence: Option<Divergence>) -> Flow<'a> {
    Flow {
        energy: path,
        process: path.process(),
        velocity: Some(path),
        solver,
        divergence,
        seed: 1,
    }
}

/// A Gaussian's flow keeps the standard score of every coordinate.
fn exact(path: &ExactPath, from: f64, to: f64, point: [f64; 2]) -> [f64; 2] {
    [0, 1].map(|i| {
        let ((m, s), (n, r)) = (law(path, from, i), law(path, to, i));
        n + r * (point[i] - m) / s
    })
}

fn times(from: f64, to: f64, steps: usize) -> Vec<f64> {
    (0..=steps)
        .map(|k| from + (to - from) * k as f64 / steps as f64)
        .collect()
}

#[test]
fn heun_converges_at_second_order_in_both_directions() {
    for path in paths() {
        for (from, to) in [(0.95, 0.05), (0.05, 0.95)] {
            let error = |steps| {
                let mut points = [0.3, 0.9];
                let heun = flow(&path, Solver::Heun, None);
                let none = heun.carry(&times(from, to, steps), 0, &mut points, &mut |_| ());
                assert_eq!(none.unwrap(), None);
                let exact = exact(&path, from, to, [0.3, 0.9]);
                (points[0] - exact[0]).hypot(points[1] - exact[1])
            };
            let (coarse, fine) = (error(200), error(400));
            assert!(
                (3.6..4.4).contains(&(coarse / fine)) && fine < 1e-3,
                "{coarse} {fine}"
            );
        }
    }
}

#[test]
fn the_log_density_along_the_way_is_that_of_the_marginals() {
    for path in paths() {
        for (solver, allowed) in [
            (Solver::Heun, 1e-3),
            (Solver::Adaptive { tolerance: 1e-7 }, 1e-5),
        ] {
            let flow = flow(&path, solver, Some(Divergence::Exact));
            let start = path.sample(0.9, 20, 5);
            let mut points = start.clone();
            let mut last = 0.0;
            let growth = flow
                .carry(&times(0.9, 0.02, 800), 0, &mut points, &mut |share| {
                    last = share
                })
                .unwrap()
                .unwrap();
            assert!((last - 1.0).abs() < 1e-12);
            let (mut before, mut after) = ([0.0; 20], [0.0; 20]);
            path.log_density(&[0.9], &start, &mut before);
            path.log_density(&[0.02], &points, &mut after);
            for ((a, b), growth) in before.iter().zip(&after).zip(&growth) {
                assert!(
                    (b - a - growth).abs() < allowed,
                    "{solver:?}: {} {growth}",
                    b - a
                );
            }
        }
    }
}

#[test]
fn chosen_steps_keep_the_tolerance_on_a_mixture() {
    // A mixture's flow has no closed form: many Heun steps are the reference.
    let path = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
    let start = path.sample(0.9, 12, 3);
    let run = |solver, points: &[f64], first| {
        let mut points = points.to_vec();
        let flow = flow(&path, solver, None);
        flow.carry(&times(0.9, 0.01, 20_000), first, &mut points, &mut |_| ())
            .unwrap();
        points
    };
    let reference = run(Solver::Heun, &start, 0);
    let found = run(Solver::Adaptive { tolerance: 1e-6 }, &start, 0);
    for (a, b) in reference.iter().zip(&found) {
        // Errors of a few hundred steps, at worst all of one sign, widened where the flow parts.
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
    // A particle's steps are its own.
    assert_eq!(
        run(Solver::Adaptive { tolerance: 1e-6 }, &start[8..12], 4),
        found[8..12]
    );
}

#[test]
fn random_directions_give_the_divergence_in_the_mean() {
    let path = &paths()[1];
    let n = 4000;
    let start = [0.4, 0.2].repeat(n);
    let growth = |divergence| {
        let mut points = start.clone();
        let flow = flow(path, Solver::Heun, Some(divergence));
        flow.carry(&times(0.8, 0.2, 40), 0, &mut points, &mut |_| ())
            .unwrap()
            .unwrap()
    };
    let exact = growth(Divergence::Exact)[0];
    // Diagonal covariances: random signs have no variance; a rotation of the problem would.
    let one = growth(Divergence::Hutchinson { probes: 1 });
    assert!(one.iter().all(|g| (g - exact).abs() < 1e-6));
    let mixture = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
    let carry = |divergence| {
        let mut points = [0.2, 0.3].repeat(n);
        let flow = flow(&mixture, Solver::Heun, Some(divergence));
        flow.carry(&times(0.5, 0.2, 20), 0, &mut points, &mut |_| ())
            .unwrap()
            .unwrap()
    };
    let exact = carry(Divergence::Exact)[0];
    for probes in [1, 3] {
        let found = carry(Divergence::Hutchinson { probes });
        let mean = found.iter().sum::<f64>() / n as f64;
        let spread = found.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(
            spread > 0.0 && (mean - exact).abs() < 4.0 * (spread / n as f64).sqrt(),
            "{mean} {exact}"
        );
    }
}

#[test]
fn bad_input_is_refused() {
    let path = &paths()[1];
    let refused = |flow: Flow<'_>, times: &[f64]| {
        flow.carry(times, 0, &mut [0.0; 2], &mut |_| ())
            .unwrap_err()
            .to_string()
    };
    let heun = flow(path, Solver::Heun, None);
    assert!(
        refused(
            Flow {
                velocity: None,
                ..heun
            },
            &[0.1, 0.2]
        )
        .contains("joins two data sets")
    );
    for times in [&[0.1][..], &[0.1, 0.1], &[0.5, 0.1, 0.3], &[0.5, 1.3]] {
        assert!(refused(heun, times).contains("all rising or all falling"));
    }
    let solver = Solver::Adaptive { tolerance: 0.0 };
    assert!(refused(Flow { solver, ..heun }, &[0.1, 0.2]).contains("tolerance"));
    let divergence = Some(Divergence::Hutchinson { probes: 0 });
    assert!(refused(Flow { divergence, ..heun }, &[0.1, 0.2]).contains("probes"));
    assert!(
        heun.carry(&[0.1, 0.2], 0, &mut [0.0; 3], &mut |_| ())
            .is_err()
    );
}

/// A particle at the centre of a Gaussian stands still, so that its place asks for no small steps; its log-density changes all the same, and its
/// error must be within the tolerance of each of some hundred steps.
#[test]
fn chosen_steps_keep_the_tolerance_of_the_log_density() {
    let start = gaussian([0.0, 0.0], [0.002, 0.01]);
    let path = ExactPath::new(Process::default(), start, None).unwrap();
    let tolerance = 1e-5;
    let flow = flow(
        &path,
        Solver::Adaptive { tolerance },
        Some(Divergence::Exact),
    );
    let mut points = [0.0; 2];
    let growth = flow
        .carry(&[0.9, 0.001], 0, &mut points, &mut |_| ())
        .unwrap()
        .unwrap();
    let at = |time: f64| {
        let mut out = [0.0];
        path.log_density(&[time], &[0.0; 2], &mut out);
        out[0]
    };
    let exact = at(0.001) - at(0.9);
    assert_eq!(points, [0.0; 2]);
    assert!(
        (growth[0] - exact).abs() < 100.0 * tolerance,
        "{} {exact}",
        growth[0]
    );
}
