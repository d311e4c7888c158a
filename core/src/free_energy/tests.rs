//! The estimators against pymbar, against exact answers, and their error bars against the spread they announce.

mod calibration;
mod learned;
mod pymbar;
mod refusals;

use super::{Matrix, Mbar, MbarSettings};
use crate::engine::{Isa, Pool};
use crate::system::HarmonicLadder;
use std::sync::Arc;

fn ladder() -> HarmonicLadder {
    HarmonicLadder::new(2, vec![0.0, 0.5, 0.9, 1.6], vec![1.0, 1.7, 4.0, 2.5]).unwrap()
}

#[test]
fn threads_do_not_change_a_bit_and_kernels_hardly_anything() {
    let counts = [3000, 0, 2500, 3200];
    let (_, energies) = ladder().sample(&counts, 3);
    let matrix = Matrix::new(&energies, 4).unwrap();
    let solve = |threads: usize, isa: Isa| {
        let settings = MbarSettings {
            pool: Some(Arc::new(Pool::new(threads))),
            isa,
            ..MbarSettings::default()
        };
        let mbar = Mbar::solve(&matrix, &counts, &settings).unwrap();
        (mbar.log_z(), mbar.covariance().to_vec())
    };
    let reference = solve(1, Isa::PORTABLE);
    for isa in Isa::available() {
        let one = solve(1, isa);
        assert_eq!(one, solve(3, isa), "{isa}");
        for (a, b) in reference.0.iter().zip(&one.0) {
            assert!((a - b).abs() < 1e-12, "{isa}");
        }
    }
}

/// Energies far from zero, in steps that a start from f = 0 would not survive, and forbidden samples.
#[test]
fn offsets_and_walls_do_no_harm() {
    let counts = [400, 400, 400, 400];
    let (points, energies) = ladder().sample(&counts, 5);
    let matrix_of_plain = Matrix::new(&energies, 4).unwrap();
    let plain = Mbar::solve(&matrix_of_plain, &counts, &MbarSettings::default()).unwrap();
    let offsets = [0.0, -4e4, 1e5, 7e5];
    let moved: Vec<f64> = energies
        .iter()
        .enumerate()
        .map(|(i, u)| u + offsets[i / 1600])
        .collect();
    let matrix_of_moved = Matrix::new(&moved, 4).unwrap();
    let moved = Mbar::solve(&matrix_of_moved, &counts, &MbarSettings::default()).unwrap();
    for (k, offset) in offsets.iter().enumerate() {
        let (a, b) = (plain.difference(0, k), moved.difference(0, k));
        // Energies of 7e5 carry rounding of 1e-10.
        assert!((a.mean - offset - b.mean).abs() < 1e-8, "{a:?} {b:?}");
        assert!((a.error - b.error).abs() < 1e-8);
    }
    // A fifth state without samples that forbids one half of the plane of state 1: Z is cut in half.
    let mut walled = energies.clone();
    walled.extend((0..1600).map(|n| {
        if points[2 * n] < 0.5 {
            energies[1600 + n]
        } else {
            f64::INFINITY
        }
    }));
    let matrix_of_walled = Matrix::new(&walled, 5).unwrap();
    let walled = Mbar::solve(
        &matrix_of_walled,
        &[400, 400, 400, 400, 0],
        &MbarSettings::default(),
    )
    .unwrap();
    let half = walled.difference(1, 4);
    assert!(
        (half.mean + 2f64.ln()).abs() < 4.0 * half.error && half.error < 0.1,
        "{half:?}"
    );
}

/// Exponentials of rates 1 and 2, the second with a wall below 1/2 that forbids two in five samples of the first: log(Z_1 / Z_0) =
/// -1 - log 2, however high the wall.
#[test]
fn sampled_states_with_walls_are_connected() {
    use crate::rng::{Purpose, Stream};
    let counts = [700, 500];
    let mut stream = Stream::new(3, Purpose::Test, 1, 0);
    let mut exponential = |mean: f64| -mean * (1.0 - stream.uniform()).ln();
    let mut points: Vec<f64> = (0..700).map(|_| exponential(1.0)).collect();
    points.extend((0..500).map(|_| 0.5 + exponential(0.5)));
    let exact = -1.0 - 2f64.ln();
    let mut first = None;
    for wall in [1e3, 1e6, 1e12, 1e300, f64::INFINITY] {
        let behind = |x: &f64| if *x < 0.5 { wall } else { 2.0 * x };
        let energies: Vec<f64> = points
            .iter()
            .copied()
            .chain(points.iter().map(behind))
            .collect();
        let matrix = Matrix::new(&energies, 2).unwrap();
        let mbar = Mbar::solve(&matrix, &counts, &MbarSettings::default()).unwrap();
        let found = mbar.difference(0, 1);
        assert!(
            (found.mean - exact).abs() < 4.0 * found.error && found.error < 0.06,
            "{wall}: {found:?}"
        );
        // The wall is as good as infinite from 1000 kT on.
        let first = *first.get_or_insert(found.mean);
        assert!(
            (found.mean - first).abs() < 1e-10,
            "{wall}: {found:?} {first}"
        );
        let works: Vec<f64> = points.iter().map(|x| behind(x) - x).collect();
        let (forward, back) = works.split_at(700);
        let reverse: Vec<f64> = back.iter().map(|w| -w).collect();
        let found = super::bar(forward, &reverse).unwrap().delta;
        assert!(
            (found.mean - first).abs() < 1e-10,
            "{wall}: {found:?} {first}"
        );
    }
}

/// Forty states alike dilute every entry of the matrix; the links must not call that weak. A far state is named.
#[test]
fn links_see_through_many_states() {
    let ladder = HarmonicLadder::new(1, vec![0.3; 40], vec![2.0; 40]).unwrap();
    let (_, u) = ladder.sample(&[20; 40], 2);
    let matrix = Matrix::new(&u, 40).unwrap();
    let overlap = Mbar::solve(&matrix, &[20; 40], &MbarSettings::default())
        .unwrap()
        .overlap();
    assert!(overlap.matrix.iter().all(|x| *x < 0.03));
    assert!(overlap.weak_links().is_empty() && overlap.links.len() == 39);
    assert!((overlap.links[0].overlap - 0.5).abs() < 1e-9);
    let ladder = HarmonicLadder::new(1, vec![0.0, 0.4, 3.4], vec![3.0; 3]).unwrap();
    let (_, u) = ladder.sample(&[2000; 3], 2);
    let matrix = Matrix::new(&u, 3).unwrap();
    let overlap = Mbar::solve(&matrix, &[2000; 3], &MbarSettings::default())
        .unwrap()
        .overlap();
    let weak = overlap.weak_links();
    assert_eq!(
        (weak.len(), weak[0].from, weak[0].to),
        (1, 1, 2),
        "{weak:?}"
    );
}
