//! Against definitions: isometry, invariance, and the least sum of squares.

use super::*;
use crate::rng::{Purpose, Stream};

fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Test, 0, 0);
    (0..n).map(|_| stream.normal()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[track_caller]
fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
}

#[test]
fn the_subspace_keeps_lengths_and_loses_the_centre() {
    for (particles, space) in [(2, 1), (3, 2), (5, 3), (22, 3)] {
        let subspace = Subspace::new(particles, space).unwrap();
        assert_eq!(subspace.columns(), particles * space);
        assert_eq!(subspace.dim(), (particles - 1) * space);
        let [y, z] = [1, 2].map(|seed| numbers(subspace.dim(), seed));
        let [x, w] = [&y, &z].map(|y| subspace.rows_outward(y));
        assert!((dot(&x, &w) - dot(&y, &z)).abs() < 1e-12);
        for axis in 0..space {
            let sum: f64 = x.iter().skip(axis).step_by(space).sum();
            assert!(sum.abs() < 1e-12);
        }
        close(&subspace.rows_inward(&x), &y);
        // A row that has a centre loses it, and the two ways are each other's transpose.
        let row = numbers(subspace.columns(), 3);
        let mut centred = row.clone();
        centre(&mut centred, space);
        let found = subspace.rows_inward(&row);
        close(&found, &subspace.rows_inward(&centred));
        close(&subspace.rows_outward(&found), &centred);
        assert!((dot(&found, &y) - dot(&row, &x)).abs() < 1e-12);
        // Rotations act on both alike.
        if Rotation::exist_in(space) {
            let rotation = Rotation::random(space, &mut Stream::new(4, Purpose::Test, 0, 0));
            let (mut y, mut x) = (y.clone(), x.clone());
            rotation.turn(&mut y, space);
            rotation.turn(&mut x, space);
            close(&subspace.rows_outward(&y), &x);
        }
    }
    assert!(Subspace::new(1, 3).is_err());
}

#[test]
fn random_rotations_are_rotations_without_a_preferred_direction() {
    for space in [2, 3] {
        let draws = 20_000;
        let mut moments = [0.0; 4];
        for k in 0..draws {
            let mut stream = Stream::new(7, Purpose::Test, 0, k);
            let rotation = Rotation::random(space, &mut stream);
            let r = rotation.0;
            if k < 20 {
                for i in 0..3 {
                    for j in 0..3 {
                        let product = dot(&r[i], &r[j]);
                        assert!((product - f64::from(u8::from(i == j))).abs() < 1e-14);
                    }
                }
                let minor = |a: usize, b: usize| r[1][a] * r[2][b] - r[1][b] * r[2][a];
                let det = r[0][0] * minor(1, 2) - r[0][1] * minor(0, 2) + r[0][2] * minor(0, 1);
                assert!((det - 1.0).abs() < 1e-14);
            }
            moments[0] += r[0][0];
            moments[1] += r[0][0] * r[0][0];
            moments[2] += r[0][0] * r[1][1];
            moments[3] += r[0][1] * r[1][0];
        }
        // Haar: E r_ij = 0, E r_ij^2 = 1/d, E r_11 r_22 = -E r_12 r_21: 1/2 in the plane, 0 in space.
        let pair = if space == 2 { 0.5 } else { 0.0 };
        let expected = [0.0, 1.0 / space as f64, pair, -pair];
        for (found, expected) in moments.iter().zip(expected) {
            // Entries are below one: the deviation of a mean is at most 1 / sqrt(draws).
            let found = found / draws as f64;
            assert!((found - expected).abs() < 4.0 / (draws as f64).sqrt());
        }
    }
}

#[test]
fn a_turned_row_is_brought_back_and_a_mirror_image_is_not() {
    for space in [2, 3] {
        let reference = numbers(5 * space, 11);
        let frame = Frame::new(&reference, 5).unwrap();
        let mut centred = reference.clone();
        centre(&mut centred, space);
        for k in 0..20 {
            let rotation = Rotation::random(space, &mut Stream::new(12, Purpose::Test, 0, k));
            let mut row = reference.clone();
            rotation.turn(&mut row, space);
            row.iter_mut()
                .enumerate()
                .for_each(|(c, x)| *x += (c % space) as f64 - 3.0);
            frame.align(&mut row);
            for (found, expected) in row.iter().zip(&centred) {
                assert!((found - expected).abs() < 1e-10, "{found} {expected}");
            }
        }
        let mut mirrored = reference.clone();
        mirrored.chunks_mut(space).for_each(|p| p[0] = -p[0]);
        frame.align(&mut mirrored);
        let gap: Vec<f64> = mirrored.iter().zip(&centred).map(|(a, b)| a - b).collect();
        assert!(dot(&gap, &gap) > 0.1);
    }
}

/// No small turn away from the superposition brings two different rows closer.
#[test]
fn the_superposition_is_the_closest() {
    for space in [2, 3] {
        for seed in 0..10 {
            let (row, reference) = (numbers(6 * space, 20 + seed), numbers(6 * space, 40 + seed));
            let distance = |rotation: &Rotation, more: &Rotation| {
                let (mut row, mut reference) = (row.clone(), reference.clone());
                centre(&mut row, space);
                centre(&mut reference, space);
                rotation.turn(&mut row, space);
                more.turn(&mut row, space);
                let gap: Vec<f64> = row.iter().zip(&reference).map(|(a, b)| a - b).collect();
                dot(&gap, &gap)
            };
            let best = superposition(&row, &reference, space);
            let least = distance(&best, &Rotation::of_identity());
            for k in 0..200 {
                let mut stream = Stream::new(60 + seed, Purpose::Test, 0, k);
                let other = Rotation::random(space, &mut stream);
                assert!(distance(&other, &Rotation::of_identity()) > least);
                let axis = [1.0, 0.0, 0.0, 0.02 * stream.normal()];
                let small = Rotation::of_quaternion(axis).unwrap();
                assert!(distance(&best, &small) >= least);
            }
        }
    }
    assert!(Frame::new(&[1.0, 2.0, 3.0, 4.0], 4).is_err());
}

#[test]
fn a_row_turns_about_its_centre() {
    let rotation = Rotation::random(3, &mut Stream::new(5, Purpose::Test, 0, 0));
    let row: Vec<f64> = numbers(12, 9).iter().map(|x| x + 3.0).collect();
    let mut expected = row.clone();
    centre(&mut expected, 3);
    rotation.turn(&mut expected, 3);
    for (c, x) in expected.iter_mut().enumerate() {
        let sum: f64 = row.iter().skip(c % 3).step_by(3).sum();
        *x += sum / 4.0;
    }
    let mut found: Vec<f32> = row.iter().map(|x| *x as f32).collect();
    rotation.turn_rounded(&mut found, 3, true);
    for (found, expected) in found.iter().zip(&expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-5);
    }
}
