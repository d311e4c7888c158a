//! Error bars that mean what they say: z-scores over replicates against the normal distribution.

use crate::free_energy::*;
use crate::metric::Estimate;
use crate::rng::{Purpose, Stream};
use crate::system::{DoubleWells, HarmonicLadder, WorkDistribution};

const REPLICATES: usize = 200;

/// Kolmogorov-Smirnov distance of z-scores from N(0, 1).
fn ks_distance(mut z: Vec<f64>) -> f64 {
    z.sort_by(f64::total_cmp);
    let n = z.len() as f64;
    // Normal distribution function by Simpson's rule from 0; 1e-10 is far below what is tested.
    let normal = |x: f64| {
        let h = x / 200.0;
        let f = |i: usize| (-0.5 * (i as f64 * h).powi(2)).exp();
        let inner: f64 = (1..200)
            .map(|i| f(i) * if i % 2 == 1 { 4.0 } else { 2.0 })
            .sum();
        0.5 + (f(0) + inner + f(200)) * h / 3.0 / std::f64::consts::TAU.sqrt()
    };
    z.iter()
        .enumerate()
        .map(|(i, x)| {
            (normal(*x) - i as f64 / n)
                .abs()
                .max((normal(*x) - (i + 1) as f64 / n).abs())
        })
        .fold(0.0, f64::max)
}

/// The KS distance of n scores exceeds 1.95 / sqrt(n) with probability 1e-3; 95 % intervals cover with a standard deviation
/// of sqrt(0.95 * 0.05 / n).
fn assert_calibrated(what: &str, estimates: &[(Estimate, f64)]) {
    let n = estimates.len() as f64;
    let z: Vec<f64> = estimates
        .iter()
        .map(|(e, exact)| (e.mean - exact) / e.error)
        .collect();
    let covered = z.iter().filter(|z| z.abs() < 1.96).count() as f64 / n;
    let tolerance = 4.0 * (0.95 * 0.05 / n).sqrt();
    assert!(
        (covered - 0.95).abs() < tolerance,
        "{what}: {covered} covered"
    );
    let distance = ks_distance(z);
    assert!(distance < 1.95 / n.sqrt(), "{what}: KS {distance}");
}

#[test]
fn error_bars_of_mbar_hold_over_replicates() {
    let ladder = HarmonicLadder::even(3, 5, (0.2, 1.4), (1.0, 5.0)).unwrap();
    let counts = [120, 80, 100, 60, 140];
    let exact = ladder.log_z(4) - ladder.log_z(0);
    let (mut free_energies, mut means, mut bins) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bootstrap_errors, mut asymptotic_errors) = (0.0, 0.0);
    for seed in 0..REPLICATES as u64 {
        let (points, u) = ladder.sample(&counts, 1000 + seed);
        let matrix = Matrix::new(&u, 5).unwrap();
        let mbar = Mbar::solve(&matrix, &counts, &MbarSettings::default()).unwrap();
        free_energies.push((mbar.difference(0, 4), exact));
        let x: Vec<f64> = points.iter().step_by(3).copied().collect();
        means.push((
            mbar.expectations(Ensemble::State(2), &[&x]).unwrap()[0],
            0.8,
        ));
        let surface = mbar
            .surface(Ensemble::State(2), &x, &[-1.0, 0.8, 3.0])
            .unwrap();
        // The centre of the state halves its line; what lies beyond -1 and 3 is below 1e-3.
        bins.push((surface.probability[0], 0.5));
        if seed < 20 {
            bootstrap_errors += mbar
                .bootstrap(100, &[Blocks::SINGLE; 5], seed)
                .unwrap()
                .difference(0, 4)
                .error;
            asymptotic_errors += mbar.difference(0, 4).error;
        }
    }
    assert_calibrated("free energy", &free_energies);
    assert_calibrated("expectation", &means);
    assert_calibrated("probability of a bin", &bins);
    // 20 x 100 replicas: 7 % each, 1.6 % on average; the two definitions differ by about 1/n.
    assert!(
        (bootstrap_errors / asymptotic_errors - 1.0).abs() < 0.08,
        "{bootstrap_errors} {asymptotic_errors}"
    );
}

#[test]
fn error_bars_of_bar_and_perturbation_hold_over_replicates() {
    for works in [
        WorkDistribution::Gaussian {
            delta: 2.1,
            sigma: 1.2,
        },
        WorkDistribution::Exponential { a: 1.0, b: 2.5 },
    ] {
        let (mut both, mut one) = (Vec::new(), Vec::new());
        for seed in 0..REPLICATES as u64 {
            let (forward, reverse) = (works.forward(400, seed), works.reverse(300, seed));
            both.push((bar(&forward, &reverse).unwrap().delta, works.delta()));
            one.push((
                perturbation(&forward, false).unwrap().exponential,
                works.delta(),
            ));
        }
        assert_calibrated("BAR", &both);
        // The exponential average of 400 Gaussian works of this width is biased by half its variance, 0.003 of an error of
        // 0.09: not seen here.
        assert_calibrated("perturbation", &one);
    }
}

/// Coupled double wells between two temperatures, sampled by exact one-dimensional Gibbs sweeps on a lattice, against the
/// quadrature; thermodynamic integration over the inverse temperature from the same samples.
#[test]
fn wells_between_temperatures_agree_with_quadrature() {
    let wells = |scale: f64| DoubleWells {
        dim: 2,
        barrier: 1.0,
        tilt: 0.25,
        coupling: -0.5,
        scale,
    };
    let scales = [0.6, 0.8, 1.0, 1.2, 1.4];
    let count = 500;
    let mut points = Vec::new();
    for (state, &scale) in scales.iter().enumerate() {
        for row in 0..count {
            let mut stream = Stream::new(9, Purpose::Test, state as u64, row);
            points.push(rejection(&wells(scale), &mut stream));
        }
    }
    let u: Vec<f64> = scales
        .iter()
        .flat_map(|&scale| points.iter().map(move |x| wells(scale).energy(x)))
        .collect();
    let exact = wells(1.4).log_z().unwrap() - wells(0.6).log_z().unwrap();
    let matrix = Matrix::new(&u, 5).unwrap();
    let mbar = Mbar::solve(&matrix, &[count as usize; 5], &MbarSettings::default()).unwrap();
    let found = mbar.difference(0, 4);
    assert!(
        (found.mean - exact).abs() < 4.0 * found.error,
        "{found:?} {exact}"
    );
    // du/dscale = u / scale.
    let slopes: Vec<Estimate> = points
        .chunks_exact(count as usize)
        .map(|points| {
            Estimate::of(
                &points
                    .iter()
                    .map(|x| wells(1.0).energy(x))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    for rule in Rule::ALL {
        let found = integrate(&scales, &slopes, rule).unwrap().delta;
        // The slope is smooth: over steps of 0.2 the trapezoid rule errs by h^2/12 times the change of the slope's
        // derivative, 0.003 times about 2.
        assert!(
            (found.mean - exact).abs() < 4.0 * found.error + 0.01,
            "{rule:?} {found:?} {exact}"
        );
    }
}

/// Exact samples by rejection from a box.
fn rejection(wells: &DoubleWells, stream: &mut Stream) -> [f64; 2] {
    // No energy is below -scale (tilt 2 r + coupling r^2) for |x| < r, and beyond 2.2 the barrier is above 14 kT.
    let lowest = -wells.scale * 1.5;
    loop {
        let x = [4.4 * stream.uniform() - 2.2, 4.4 * stream.uniform() - 2.2];
        let energy = wells.energy(&x);
        assert!(energy >= lowest);
        if stream.uniform() < (lowest - energy).exp() {
            return x;
        }
    }
}
