//! Springs against chains whose distances are known.

use super::*;
use crate::process::{Linear, Process, VariancePreserving};

/// Chains of three bonds of two kinds in space: lengths are Gaussian and directions free, so that bonds know nothing of each other.
const LENGTHS: [f64; 2] = [1.0, 0.6];
const SPREADS: [f64; 2] = [0.05, 0.02];
const BONDS: [[u32; 2]; 3] = [[0, 1], [2, 1], [2, 3]];
const TYPES: [u32; 4] = [0, 1, 1, 0];

fn chains(count: usize, seed: u64) -> Vec<f64> {
    let mut rows = Vec::with_capacity(12 * count);
    for row in 0..count {
        let mut stream = Stream::new(seed, Purpose::Test, 3, row as u64);
        let mut at = [0.3, -0.2, 0.7];
        rows.extend(at);
        for class in [0, 1, 0] {
            let length = LENGTHS[class] + SPREADS[class] * stream.normal();
            let way = [(); 3].map(|()| stream.normal());
            let norm = way.iter().map(|x| x * x).sum::<f64>().sqrt();
            at.iter_mut()
                .zip(way)
                .for_each(|(x, w)| *x += length * w / norm);
            rows.extend(at);
        }
    }
    rows
}

fn rows<'a>(start: &'a [f64], end: Option<&'a [f64]>) -> SpringRows<'a> {
    SpringRows {
        start,
        end,
        subspace: None,
        dim: 12,
        particles: 4,
        variance: 0.8,
    }
}

#[test]
fn bonds_and_pairs_two_bonds_apart_are_found_and_alike_ones_share_numbers() {
    let found = pairs(4, &TYPES, &BONDS).unwrap();
    let ends: Vec<_> = found.iter().map(|pair| (pair.ends, pair.class)).collect();
    let expected = [
        ([0, 1], 0),
        ([0, 2], 1),
        ([1, 2], 2),
        ([1, 3], 1),
        ([2, 3], 0),
    ];
    assert_eq!(ends, expected);
    // A ring of three: all are bonds.
    let ring = pairs(3, &[], &[[0, 1], [1, 2], [2, 0]]).unwrap();
    assert!(ring.len() == 3 && ring.iter().all(|pair| pair.class == 0));
    for wrong in [&[][..], &[[0, 4]][..], &[[1, 1]][..]] {
        let refused = pairs(4, &TYPES, wrong).unwrap_err().to_string();
        assert!(refused.contains("from 0 to 3"), "{refused}");
    }
}

/// A free direction in space has density `exp(-(d - l)^2 / 2v) / d^2`, so that the energy of the distance has slope `u / v + 2 / d`: stiffness `1/v - 2/l^2` and
/// force `-2/l` at its middle. Bonds that know nothing of each other need nothing between their far ends.
#[test]
fn free_bonds_get_the_springs_that_they_have() {
    let data = chains(20_000, 1);
    let process = Process::Linear(Linear { a: 1e-4 });
    let levels: Vec<f64> = (0..9).map(|k| 1e-4 + 0.1 * f64::from(k)).collect();
    let found = pairs(4, &TYPES, &BONDS).unwrap();
    let springs = Springs::fit(
        &process,
        &levels,
        found,
        rows(&data, Some(&chains(500, 2))),
        5,
    )
    .unwrap();
    springs.validate(4).unwrap();
    // Class 0 are the long bonds, 1 pairs two bonds apart, 2 the short one. 4096 samples tell a variance to sqrt(2/4096) = 2.2 % (the long ones,
    // two in a row, to 1.6 %); four of these.
    for (class, kind, tolerance) in [(0, 0, 0.065), (2, 1, 0.09)] {
        let spring = springs.springs[0][class];
        let (l, v) = (LENGTHS[kind], SPREADS[kind].powi(2));
        assert!((spring.length - l).abs() < 4.0 * SPREADS[kind] / 64.0);
        let expected = 1.0 / v - 2.0 / (l * l);
        assert!(
            (spring.stiffness / expected - 1.0).abs() < tolerance,
            "{spring:?} {expected}"
        );
        // The slope at the middle, known as well as the mean is in units of the spread: 1/64.
        let slack = 4.0 / (64.0 * SPREADS[kind]);
        assert!(
            (spring.force + 2.0 / l).abs() < slack,
            "{spring:?} {}",
            2.0 / l
        );
    }
    let apart = springs.springs[0][1];
    assert!(apart.stiffness < 0.01 / SPREADS[0].powi(2), "{apart:?}");
    // Half way between two ends bonds are as long as they happen to be.
    assert!(springs.springs[5][0].stiffness < 0.1 * springs.springs[0][0].stiffness);
}

/// With its offset the energy's mean slope in time over samples is zero: the trapezoidal rule between 49 times, and the chance of other samples, leave
/// a few hundredths of a kT of the tens that the offset bridges.
#[test]
fn offsets_take_out_what_stiffness_adds() {
    let process = Process::VariancePreserving(VariancePreserving::default());
    let levels: Vec<f64> = (0..200)
        .map(|k| 1e-4 * 1e4f64.powf(f64::from(k) / 200.0))
        .collect();
    let data = chains(20_000, 3);
    let found = pairs(4, &TYPES, &BONDS).unwrap();
    let springs = Springs::fit(&process, &levels, found, rows(&data, None), 5).unwrap();
    let last = springs.times.len() - 1;
    assert_eq!(springs.offsets[last], 0.0);
    assert!(springs.springs[last].iter().all(|s| s.stiffness == 0.0));
    let pairs = &springs.pairs;
    let mean_slope = |time: f64| {
        let at = springs.at(time);
        let (a, noise) = (process.x0_scale(time), process.noise(time));
        let mut sum = 0.0;
        let others = chains(4000, 9);
        for (row, x) in others.chunks_exact(12).enumerate() {
            let mut stream = Stream::new(11, Purpose::Test, 4, row as u64);
            let y: Vec<f64> = x.iter().map(|x| a * x + noise * stream.normal()).collect();
            for (p, pair) in pairs.iter().enumerate() {
                let [i, j] = pair.ends.map(|end| 3 * end as usize);
                let d = (0..3).map(|k| (y[i + k] - y[j + k]).powi(2)).sum::<f64>();
                let [(m, m_rate), (k, k_rate), (f, f_rate)] =
                    [0, 1, 2].map(|part| at.number(part * pairs.len() + p));
                let u = d.sqrt() - m;
                sum += 0.5 * k_rate * u * u - f_rate * u - (k * u - f) * m_rate;
            }
        }
        sum / 4000.0 + at.number(3 * pairs.len()).1
    };
    // The integral of the mean slope over the logarithm of time, from first to last.
    let steps = 200;
    let (from, to) = (springs.times[0].ln(), springs.times[last].ln());
    let width = (to - from) / f64::from(steps);
    let slopes = (0..steps).map(|k| {
        let time = (from + (f64::from(k) + 0.5) * width).exp();
        mean_slope(time) * time * width
    });
    let left: f64 = slopes.sum();
    let bridged = springs.offsets[0] - springs.offsets[last];
    assert!(bridged.abs() > 3.0, "{bridged}");
    assert!(left.abs() < 0.2, "{left} of {bridged}");
}

#[test]
fn between_times_numbers_are_smooth_and_monotone() {
    let spring = |stiffness: f64| {
        vec![Spring {
            length: 1.0 + 0.1 * stiffness,
            stiffness,
            force: -stiffness,
        }]
    };
    let springs = Springs {
        pairs: vec![Pair {
            ends: [1, 0],
            class: 0,
        }],
        times: vec![0.1, 0.2, 0.5, 0.6, 0.9],
        springs: [5.0, 3.0, 2.9, 0.4, 0.4].map(spring).to_vec(),
        offsets: vec![1.0, 2.0, -1.0, 0.5, 0.0],
    };
    springs.validate(2).unwrap();
    assert!(springs.validate(1).is_err());
    assert_eq!(springs.columns(), 4);
    let value = |time: f64, column| springs.at(time).number(column).0;
    for (k, time) in springs.times.iter().enumerate() {
        let stiffness = springs.springs[k][0].stiffness;
        assert!((value(*time, 1) - stiffness).abs() < 1e-12);
    }
    let mut before = value(0.1, 1);
    for k in 1..=800 {
        let time = 0.1 + 0.001 * f64::from(k);
        let now = value(time, 1);
        assert!(now <= before + 1e-12, "{time}: {now} after {before}");
        before = now;
        // Away from the knots, where the second derivative jumps.
        if springs.times.iter().all(|knot| (knot - time).abs() > 1e-4) {
            for column in 0..4 {
                let rise = value(time + 1e-6, column) - value(time - 1e-6, column);
                let rate = springs.at(time).number(column).1;
                assert!((rise / 2e-6 - rate).abs() < 1e-6 * (1.0 + rate.abs()));
            }
        }
    }
    for (beyond, knot) in [(0.01, 0), (0.99, 4)] {
        let number = springs.at(beyond).number(3);
        assert_eq!(number, (springs.offsets[knot], 0.0));
    }
}
