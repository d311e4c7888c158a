//! The surface against its published minima and passes, differences of its energy, and quadrature.

use super::*;
use crate::rng::Purpose;
use crate::system::System;

#[test]
fn has_the_published_minima_and_passes() {
    // Mueller and Brown 1979: minima -146.700, -80.768, -108.167, passes -40.665 and -72.249.
    let surface = MuellerBrown::default();
    let basins = Basins::of(&surface);
    let minima = [
        ([-0.5582, 1.4417], -146.6995),
        ([-0.0500, 0.4667], -80.7678),
        ([0.6235, 0.0280], -108.1667),
    ];
    for (well, (at, energy)) in basins.wells().iter().zip(minima) {
        assert!((well.minimum[0] - at[0]).abs() < 1e-4 && (well.minimum[1] - at[1]).abs() < 1e-4);
        assert!((well.energy - energy).abs() < 1e-3, "{well:?}");
        let force = surface.force(well.minimum[0], well.minimum[1]);
        assert!(force[0].abs() < 1e-6 && force[1].abs() < 1e-6);
    }
    for ((_, energy), expected) in basins.passes().iter().zip([-40.6648, -72.2489]) {
        assert!((energy - expected).abs() < 1e-3, "{energy}");
    }
}

#[test]
fn forces_are_slopes_of_the_potential() {
    let surface = MuellerBrown::default();
    let mut stream = Stream::new(3, Purpose::Test, 0, 0);
    for _ in 0..50 {
        let (x, y) = (3.0 * stream.uniform() - 2.0, 3.0 * stream.uniform() - 0.8);
        let h = 1e-5;
        let slope = [
            (surface.potential(x + h, y) - surface.potential(x - h, y)) / (2.0 * h),
            (surface.potential(x, y + h) - surface.potential(x, y - h)) / (2.0 * h),
        ];
        let force = surface.force(x, y);
        for i in 0..2 {
            assert!((force[i] + slope[i]).abs() < 1e-6 * (1.0 + slope[i].abs()));
        }
        let mut score = [0.0; 2];
        assert!(surface.score(&[x, y], &mut score));
        assert_eq!(score[1], force[1] / 23.0);
    }
}

#[test]
fn the_integral_does_not_depend_on_the_rule() {
    // Simpson's rule on a box twice as wide, at another kT too: an integral of its own.
    for temperature in [23.0, 40.0] {
        let surface = MuellerBrown::at(temperature).unwrap();
        let n = 1200;
        let (low, h) = (-7.0, 14.0 / f64::from(n));
        let weight = |k: i32| match k {
            0 => 1.0,
            k if k == n => 1.0,
            k if k % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let mut sum = 0.0;
        for i in 0..=n {
            for j in 0..=n {
                let (x, y) = (low + f64::from(i) * h, low + f64::from(j) * h);
                sum += weight(i) * weight(j) * (-surface.potential(x, y) / temperature).exp();
            }
        }
        let expected = (sum * h * h / 9.0).ln();
        assert!((surface.log_z() - expected).abs() < 1e-6, "{temperature}");
    }
    assert!(MuellerBrown::at(0.0).is_err() && MuellerBrown::at(f64::NAN).is_err());
}

#[test]
fn samples_follow_the_density_and_its_basins() {
    let system = System::by_name("mueller-brown", 2, 0).unwrap();
    let n = 100_000;
    let samples = system.sample(n, 4);
    let surface = MuellerBrown::default();
    let basins = Basins::of(&surface);
    let mut counts = [0.0; 3];
    for point in samples.chunks(2) {
        counts[basins.place([f64::from(point[0]), f64::from(point[1])])] += 1.0;
    }
    let total: f64 = basins.wells().iter().map(|well| well.weight).sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    for (count, well) in counts.iter().zip(basins.wells()) {
        let sigma = (well.weight * (1.0 - well.weight) / n as f64).sqrt();
        assert!(
            (count / n as f64 - well.weight).abs() < 4.0 * sigma,
            "{counts:?} {well:?}"
        );
    }
    // Every cell of a lattice; 900 cells: the largest of that many normal deviations passes 4.5 sigma with probability 0.006.
    let window = [-1.8, 1.2, -0.6, 2.2];
    let masses = surface.masses(window, 30, 30);
    let mut found = vec![0.0; masses.len()];
    for point in samples.chunks(2) {
        let i = (f64::from(point[0]) + 1.8) / 0.1;
        let j = (f64::from(point[1]) + 0.6) / (2.8 / 30.0);
        if (0.0..30.0).contains(&i) && (0.0..30.0).contains(&j) {
            found[i as usize * 30 + j as usize] += 1.0;
        }
    }
    for (count, mass) in found.iter().zip(&masses) {
        let sigma = (n as f64 * mass * (1.0 - mass)).sqrt();
        assert!(
            (count - n as f64 * mass).abs() < 4.5 * sigma + 3.0,
            "{count} {mass}"
        );
    }
}
