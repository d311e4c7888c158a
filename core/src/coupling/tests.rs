//! Rows find the partners that they were made from; what cannot be meant is refused.

use super::*;
use crate::particles::Rotation;
use crate::rng::Stream;

const METHANE: [[u32; 2]; 4] = [[0, 1], [0, 2], [3, 0], [0, 4]];

#[test]
fn leaves_of_one_particle_are_alike() {
    assert_eq!(alike(5, &[0, 1, 1, 2, 1], &METHANE), [vec![1, 2, 4]]);
    assert_eq!(alike(5, &[], &METHANE), [vec![1, 2, 3, 4]]);
    assert_eq!(alike(4, &[0, 1, 0, 1], &[]), [vec![0, 2], vec![1, 3]]);
    // A chain: its ends have different neighbours.
    assert!(alike(4, &[], &[[0, 1], [1, 2], [2, 3]]).is_empty());
    // Of two particles with one bond each is the other's only neighbour.
    assert!(alike(2, &[], &[[0, 1]]).is_empty());
}

fn shape(particles: usize) -> Shape {
    let subspace = Subspace::new(particles, 3).unwrap();
    Shape {
        dim: subspace.dim(),
        particles: Some(particles),
        subspace: Some(subspace),
    }
}

fn rows(count: usize, particles: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Test, 0, 0);
    let columns = count * particles * 3;
    let free: Vec<f64> = (0..columns).map(|_| stream.normal()).collect();
    shape(particles).subspace.unwrap().rows_inward(&free)
}

/// Rows that were turned, relabelled and shuffled find their partners, and lie on them again.
#[test]
fn turned_and_exchanged_rows_find_each_other() {
    let (count, shape) = (12, shape(8));
    let (subspace, dim) = (shape.subspace.unwrap(), shape.dim);
    let start = rows(count, 8, 3);
    let coupling = Coupling {
        rows: count,
        turn: true,
        alike: vec![vec![1, 2, 4], vec![0, 3]],
    };
    coupling.validate(shape).unwrap();
    let mut stream = Stream::new(5, Purpose::Test, 1, 0);
    let order = Permutation::new(5, Purpose::Test, 2, count as u64);
    let mut end = vec![0.0; start.len()];
    for (k, from) in start.chunks_exact(dim).enumerate() {
        let mut row = vec![0.0; 24];
        subspace.outward(from, &mut row);
        Rotation::random(3, &mut stream).turn(&mut row, 3);
        let new = [3, 4, 1, 0, 2, 5, 6, 7].iter();
        let new: Vec<f64> = new.flat_map(|p| row[p * 3..][..3].to_vec()).collect();
        let to = order.at(k as u64) as usize * dim;
        subspace.inward(&new, &mut end[to..to + dim]);
    }
    let (partners, moved) = coupling.pair(shape, &start, &end);
    for (k, partner) in partners.iter().enumerate() {
        assert_eq!(u64::from(*partner), order.at(k as u64));
    }
    let off = start.iter().zip(&moved).map(|(a, b)| (a - b).abs());
    assert!(off.fold(0.0, f64::max) < 1e-12);
    // Without exchanges they are farther away.
    let plain = Coupling {
        alike: vec![],
        ..coupling
    };
    let (_, apart) = plain.pair(shape, &start, &end);
    let off = start.iter().zip(&apart).map(|(a, b)| (a - b).powi(2));
    assert!(off.sum::<f64>() > 10.0);
}

/// Every row of the larger end comes once, of the smaller nearly as often as every other; partners are those of their numbers; blocks change nothing about that.
#[test]
fn all_rows_have_partners() {
    let plain = Shape {
        dim: 2,
        particles: None,
        subspace: None,
    };
    let (start, end) = (&rows(40, 3, 1)[..80], &rows(40, 3, 2)[..2 * 25]);
    for block in [2, 7, 40, 100] {
        let coupling = Coupling {
            rows: block,
            turn: false,
            alike: Vec::new(),
        };
        let pairs = coupling.pairs(plain, start, end, 4);
        let mut counts = [vec![0; 40], vec![0; 25]];
        for (k, rows) in pairs.rows.iter().enumerate() {
            for (side, (values, from)) in [(&pairs.start, start), (&pairs.end, end)]
                .into_iter()
                .enumerate()
            {
                counts[side][rows[side] as usize] += 1;
                assert_eq!(values[2 * k..][..2], from[2 * rows[side] as usize..][..2]);
            }
        }
        assert!(counts[0].iter().all(|c| *c == 1));
        assert!(counts[1].iter().all(|c| (1..=2).contains(c)));
    }
    // A larger block brings partners closer together.
    let apart = |rows: usize| {
        let coupling = Coupling {
            rows,
            turn: false,
            alike: Vec::new(),
        };
        let pairs = coupling.pairs(plain, start, start, 4);
        let squares = pairs
            .start
            .iter()
            .zip(&pairs.end)
            .map(|(a, b)| (a - b).powi(2));
        squares.sum::<f64>()
    };
    assert!(apart(2) > 2.0 * apart(10) && apart(10) > apart(40) && apart(40) < 1e-20);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let of = |rows, turn, alike: &[&[u32]]| {
        let alike = alike.iter().map(|set| set.to_vec()).collect();
        Coupling { rows, turn, alike }
    };
    let plain = Shape {
        dim: 4,
        particles: None,
        subspace: None,
    };
    of(2, false, &[]).validate(plain).unwrap();
    for wrong in [
        of(1, false, &[]),
        of(MOST_ROWS + 1, false, &[]),
        of(9, true, &[]),
        of(9, false, &[&[0, 1]]),
    ] {
        assert!(wrong.validate(plain).is_err(), "{wrong:?}");
    }
    of(9, true, &[&[0, 1], &[2, 3]]).validate(shape(5)).unwrap();
    for wrong in [of(9, true, &[&[0, 1], &[1, 2]]), of(9, true, &[&[3, 5]])] {
        assert!(wrong.validate(shape(5)).is_err(), "{wrong:?}");
    }
}
