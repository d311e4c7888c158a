//! Springs against chains whose energy is known.

use super::terms::{held, soft};
use super::*;
use crate::engine::Pool;
use crate::process::{Linear, Process, VariancePreserving};
use crate::rng::{Purpose, Stream};

/// Chains of four particles in space, bonds of two kinds. Lengths and cosines of angles are Gaussian, the torsion has the energy `A cos phi + B sin 2 phi`: in
/// the coordinates of space the energy is that of the lengths with `2 log r` (`log r` for the last bond but one too, all come from `r^2 dr`), of the cosines and of the torsion.
const LENGTHS: [f64; 2] = [1.0, 0.6];
const SPREADS: [f64; 2] = [0.06, 0.04];
const COSINE: f64 = -0.3;
const SPREAD: f64 = 0.1;
const TORSION: [f64; 2] = [1.1, -0.8];
const BONDS: [[u32; 2]; 3] = [[0, 1], [2, 1], [2, 3]];
const TYPES: [u32; 4] = [0, 1, 1, 0];

fn torsion_energy(phi: f64) -> f64 {
    TORSION[0] * phi.cos() + TORSION[1] * (2.0 * phi).sin()
}

fn chains(count: usize, seed: u64) -> Vec<f64> {
    let mut rows = Vec::with_capacity(12 * count);
    for row in 0..count {
        let mut stream = Stream::new(seed, Purpose::Test, 3, row as u64);
        let mut length = |class: usize| LENGTHS[class] + SPREADS[class] * stream.normal();
        let lengths = [length(0), length(1), length(0)];
        let mut cosine = || (COSINE + SPREAD * stream.normal()).clamp(-0.99, 0.99);
        let cosines = [cosine(), cosine()];
        // By rejection; the energy is at least -1.9.
        let phi = loop {
            let phi = std::f64::consts::TAU * stream.uniform();
            if stream.uniform() < (-torsion_energy(phi) - 1.9).exp() {
                break phi;
            }
        };
        // The second bond along the first axis, the first one in the plane of the second axis.
        let sines = cosines.map(|c: f64| (1.0 - c * c).sqrt());
        let [i, j, k] = [
            [lengths[0] * cosines[0], lengths[0] * sines[0], 0.0],
            [0.0, 0.0, 0.0],
            [lengths[1], 0.0, 0.0],
        ];
        let l = [
            k[0] - lengths[2] * cosines[1],
            lengths[2] * sines[1] * phi.cos(),
            lengths[2] * sines[1] * phi.sin(),
        ];
        // Turned anyhow: the columns of a random orthogonal matrix.
        let mut axes = [[0.0; 3]; 3];
        for a in 0..3 {
            let mut axis = [(); 3].map(|()| stream.normal());
            for before in &axes[..a] {
                let along: f64 = (0..3).map(|x| axis[x] * before[x]).sum();
                (0..3).for_each(|x| axis[x] -= along * before[x]);
            }
            let norm = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
            axes[a] = axis.map(|x| x / norm);
        }
        let [x, y, z] = axes;
        let right = x[0] * (y[1] * z[2] - y[2] * z[1]) - x[1] * (y[0] * z[2] - y[2] * z[0])
            + x[2] * (y[0] * z[1] - y[1] * z[0]);
        axes[2] = axes[2].map(|x| x * right.signum());
        for place in [i, j, k, l] {
            for axis in 0..3 {
                let turned: f64 = (0..3).map(|a| place[a] * axes[a][axis]).sum();
                rows.push(turned + [0.3, -0.2, 0.7][axis]);
            }
        }
    }
    rows
}

/// The torsion, and the exact energy by angles.
fn torsion_and_energy(row: &[f64]) -> (f64, f64) {
    let at = |p: usize| [row[3 * p], row[3 * p + 1], row[3 * p + 2]];
    let gap = |a: usize, b: usize| -> [f64; 3] { std::array::from_fn(|k| at(b)[k] - at(a)[k]) };
    let inner = |a: [f64; 3], b: [f64; 3]| (0..3).map(|k| a[k] * b[k]).sum::<f64>();
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    };
    let (a, b, c) = (gap(0, 1), gap(1, 2), gap(2, 3));
    let mut energy = 0.0;
    for (v, kind) in [(a, 0), (b, 1), (c, 0)] {
        let r = inner(v, v).sqrt();
        energy += 0.5 * ((r - LENGTHS[kind]) / SPREADS[kind]).powi(2) + 2.0 * r.ln();
    }
    for (v, w) in [(a, b), (b, c)] {
        let cosine = -inner(v, w) / (inner(v, v) * inner(w, w)).sqrt();
        energy += 0.5 * ((cosine - COSINE) / SPREAD).powi(2);
    }
    let (n, m) = (cross(a, b), cross(b, c));
    let phi = (inner(b, b).sqrt() * inner(a, m)).atan2(inner(n, m));
    (phi, energy + torsion_energy(phi))
}

fn exact(row: &[f64]) -> f64 {
    torsion_and_energy(row).1
}

fn score(rows: &[f64]) -> Vec<f64> {
    let mut rows = rows.to_vec();
    let mut scores = Vec::with_capacity(rows.len());
    for k in 0..rows.len() {
        let (row, x) = (k / 12 * 12, rows[k]);
        let mut side = |by: f64| {
            rows[k] = x + by;
            exact(&rows[row..row + 12])
        };
        let rise = side(1e-6) - side(-1e-6);
        rows[k] = x;
        scores.push(-rise / 2e-6);
    }
    scores
}

fn rows<'a>(start: &'a [f64], end: Option<&'a [f64]>) -> SpringRows<'a> {
    SpringRows {
        start,
        end,
        paired: false,
        scores: [None, None],
        energies: [None, None],
        subspace: None,
        dim: 12,
        particles: 4,
        mean: &[0.0; 12],
        variance: 0.8,
        chiral: true,
    }
}

/// All terms but pairs, which say the same as the cosine of the torsion.
fn terms_of_chain() -> Terms {
    let mut terms = Terms::between(4, &TYPES, &BONDS, 3, 1000).unwrap();
    terms.soft.retain(|term| term.of.len() == 4);
    terms
}

#[test]
fn terms_are_found_and_alike_ones_share_numbers() {
    let of = |terms: &[Term]| -> Vec<(Vec<u32>, u32)> {
        terms.iter().map(|t| (t.of.clone(), t.class)).collect()
    };
    let found = Terms::between(4, &TYPES, &BONDS, 3, 1000).unwrap();
    let expected = [
        (vec![0, 1], 0),
        (vec![1, 2], 1),
        (vec![2, 3], 0),
        (vec![0, 1, 2], 2),
        (vec![1, 2, 3], 2),
    ];
    assert_eq!(of(&found.held), expected);
    assert_eq!(
        of(&found.soft),
        [(vec![0, 1, 2, 3], 0), (vec![0, 3], 1)].to_vec()
    );
    // A torsion has six functions and a pair three: pairs go first, and a plane has no torsions.
    let soft = |space: usize, most: usize| {
        let found = Terms::between(4, &TYPES, &BONDS, space, most).unwrap();
        found
            .soft
            .iter()
            .map(|term| term.of.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(soft(3, 9), [4, 2]);
    assert_eq!(soft(3, 8), [4]);
    assert!(soft(3, 2).is_empty());
    assert_eq!(soft(2, 9), [2]);
    // A ring of three has neither, and a bond named twice is one.
    let ring = Terms::between(3, &[], &[[0, 1], [1, 2], [2, 0], [0, 2]], 3, 100).unwrap();
    assert!(ring.held.len() == 6 && ring.soft.is_empty());
    for wrong in [&[][..], &[[0, 4]][..], &[[1, 1]][..]] {
        let refused = Terms::between(4, &TYPES, wrong, 3, 9).unwrap_err();
        assert!(refused.to_string().contains("from 0 to 3"), "{refused}");
    }
}

/// Slopes and Laplacians of all coordinates and functions against central differences: second differences of 1e-4 are exact to 1e-7 of values of about ten.
#[test]
fn jets_know_their_slopes_and_laplacians() {
    let row = &chains(1, 4)[..12];
    let terms = Terms::between(4, &TYPES, &BONDS, 3, 1000).unwrap();
    let all = |row: &[f64]| {
        let mut found = Vec::new();
        for term in &terms.held {
            found.push((term.of.clone(), held(term, row, 3, 0.9)));
        }
        for term in &terms.soft {
            soft(term, row, 3, 0.9, |_, jet| {
                found.push((term.of.clone(), jet))
            });
        }
        found
    };
    let middle = all(row);
    assert_eq!(middle.len(), 5 + 6 + 3);
    let mut laplacians = vec![0.0; middle.len()];
    for k in 0..12 {
        let step = |by: f64| {
            let mut row = row.to_vec();
            row[k] += by;
            all(&row)
        };
        let (up, down) = (step(1e-4), step(-1e-4));
        for (f, (of, jet)) in middle.iter().enumerate() {
            let rise = (up[f].1.value - down[f].1.value) / 2e-4;
            let place = of.iter().position(|end| *end as usize == k / 3);
            let slope = place.map_or(0.0, |p| jet.gradient[3 * p + k % 3]);
            assert!(
                (rise - slope).abs() < 1e-6 * (1.0 + slope.abs()),
                "{f}: {rise} {slope}"
            );
            laplacians[f] += (up[f].1.value + down[f].1.value - 2.0 * jet.value) / 1e-8;
        }
    }
    for ((_, jet), laplacian) in middle.iter().zip(laplacians) {
        assert!((jet.laplacian - laplacian).abs() < 1e-5 * (1.0 + laplacian.abs()));
    }
}

/// Bonds have `1/v - 2/l^2` and the slope `2/l` at their middle, angles one over the variance of their cosine, in which short arms are a little
/// longer (`1 + 0.16^2 l^2 / r^2` below the root), and the torsion its own numbers. Points alone tell a number of the torsion as well as scores of about
/// 17, one over the smallest spread, average out: 17 / (1.5 sqrt(4096)) = 0.18; exact scores leave what the functions cannot say, some hundredths.
#[test]
fn chains_get_the_springs_that_they_have() {
    let data = chains(20_000, 1);
    let other = chains(500, 2);
    let process = Process::Linear(Linear { a: 1e-4 });
    let levels: Vec<f64> = (0..9).map(|k| 1e-4 + 0.1 * f64::from(k)).collect();
    let known = score(&data);
    for (scores, tolerance) in [(None, 0.72), (Some(known.as_slice()), 0.12)] {
        let rows = SpringRows {
            scores: [scores, None],
            ..rows(&data, Some(&other))
        };
        let pool = Pool::new(2);
        let springs = Springs::fit(&process, &levels, terms_of_chain(), rows, 5, &pool).unwrap();
        springs.validate(4, 3).unwrap();
        assert_eq!(springs.loose(), 0);
        // 2048 samples tell a variance to sqrt(2/2048) = 3.1 % (two bonds in a row to 2.2 %); four of these.
        for (class, kind, tolerance) in [(0, 0, 0.09), (1, 1, 0.125)] {
            let spring = springs.springs[0][class];
            let (l, v) = (LENGTHS[kind], SPREADS[kind].powi(2));
            assert!((spring.middle - l).abs() < 4.0 * SPREADS[kind] / 45.0);
            let expected = 1.0 / v - 2.0 / (l * l);
            assert!(
                (spring.stiffness / expected - 1.0).abs() < tolerance,
                "{spring:?} {expected}"
            );
            let slack = 4.0 / (45.0 * SPREADS[kind]);
            assert!((spring.slope - 2.0 / l).abs() < slack, "{spring:?}");
        }
        let angle = springs.springs[0][2];
        let longer = ((1.0 + (0.16 * springs.length).powi(2))
            * (1.0 + (0.16 * springs.length / 0.6).powi(2)))
        .sqrt();
        assert!((angle.middle * longer - COSINE).abs() < 0.02, "{angle:?}");
        assert!(
            (angle.stiffness * (SPREAD / longer).powi(2) - 1.0).abs() < 0.15,
            "{angle:?}"
        );
        let [a, b] = TORSION;
        let strength = springs.strengths[0][0];
        for (found, expected) in springs.leaning[0].iter().zip([a, 0.0, 0.0, 0.0, b, 0.0]) {
            let off = (strength * found - expected).abs();
            assert!(off < tolerance, "{strength} {:?}", springs.leaning[0]);
        }
        // Half way between two ends bonds are as long as they happen to be.
        assert!(springs.springs[5][0].stiffness < 0.2 * springs.springs[0][0].stiffness);
    }
    // Where mirror images are the same, no sine is.
    let blind = SpringRows {
        chiral: false,
        ..rows(&data, Some(&other))
    };
    let pool = Pool::new(1);
    let springs = Springs::fit(&process, &levels, terms_of_chain(), blind, 5, &pool).unwrap();
    assert_eq!(springs.leaning[0][3..], [0.0; 3]);
    assert!(springs.leaning[0][0] != 0.0);
}

/// Rows of one well and a few of another place: exact scores hardly say how high that is, exact energies do.
#[test]
fn energies_tell_what_lies_between_places() {
    let (well, place) = (2.2, 0.2);
    let near = |row: &[f64], middle: f64| (torsion_and_energy(row).0 - middle).abs() < 0.3;
    let rows_of = |from: &[f64], middle: f64, most: usize| -> Vec<f64> {
        let rows = from.chunks_exact(12).filter(|row| near(row, middle));
        rows.take(most).flatten().copied().collect()
    };
    let all = chains(30_000, 9);
    let mut data = rows_of(&all, well, 2000);
    // One in each half.
    data.splice(1200..1212, rows_of(&all, place, 1));
    data.extend(rows_of(&all[all.len() / 2..], place, 1));
    assert!(data.len() > 1000 * 12);
    let scores = score(&data);
    let energies: Vec<f64> = data.chunks_exact(12).map(exact).collect();
    let process = Process::Linear(Linear { a: 1e-4 });
    let levels: Vec<f64> = (0..9).map(|k| 1e-4 + 0.1 * f64::from(k)).collect();
    let off = |known: Option<&[f64]>| {
        let rows = SpringRows {
            scores: [Some(&scores), None],
            energies: [known, None],
            ..rows(&data, Some(&data))
        };
        let pool = Pool::new(1);
        let springs = Springs::fit(&process, &levels, terms_of_chain(), rows, 5, &pool).unwrap();
        let fitted = |phi: f64| {
            let numbers = springs.leaning[0].iter().enumerate();
            let value = |(k, number): (usize, &f64)| {
                let (sin, cos) = ((k % 3 + 1) as f64 * phi).sin_cos();
                number * if k < 3 { cos } else { sin }
            };
            springs.strengths[0][0] * numbers.map(value).sum::<f64>()
        };
        let exact = torsion_energy(place) - torsion_energy(well);
        (fitted(place) - fitted(well) - exact).abs()
    };
    let (without, with) = (off(None), off(Some(&energies)));
    assert!(with < 0.2 && 3.0 * with < without, "{with} {without}");
}

/// The same bytes with any number of threads.
#[test]
fn threads_change_nothing() {
    let data = chains(300, 6);
    let process = Process::VariancePreserving(VariancePreserving::default());
    let fit = |threads: usize| {
        let terms = Terms::between(4, &TYPES, &BONDS, 3, 1000).unwrap();
        Springs::fit(
            &process,
            &[0.01, 0.5, 1.0],
            terms,
            rows(&data, None),
            5,
            &Pool::new(threads),
        )
    };
    assert_eq!(fit(1).unwrap(), fit(3).unwrap());
    let few = rows(&data[..36], None);
    let refused = Springs::fit(
        &process,
        &[0.01, 1.0],
        terms_of_chain(),
        few,
        5,
        &Pool::new(1),
    );
    assert!(refused.unwrap_err().to_string().contains("four rows"));
}

/// `U_s` of a row.
fn energy(springs: &Springs, time: f64, row: &[f64]) -> f64 {
    let at = springs.at(time);
    let number = |column: usize| at.number(column).0;
    let count = springs.held.len();
    let mut sum = number(springs.columns() - 1);
    for (k, term) in springs.held.iter().enumerate() {
        let u = held(term, row, 3, springs.length).value - number(k);
        sum += u
            * (number(count + k)
                + u * (number(2 * count + k) / 2.0 + u * number(3 * count + k) / 6.0));
    }
    let starts = springs.starts().0;
    for (end, numbers) in springs.leaning.iter().enumerate() {
        for term in &springs.soft {
            let first = starts[term.class as usize];
            let strength = number(4 * count + end);
            soft(term, row, 3, springs.length, |k, jet| {
                sum += strength * numbers[first + k] * jet.value;
            });
        }
    }
    sum
}

/// With its offset the energy's mean slope in time over samples is zero: the trapezoidal rule between 49 times, and the chance of other samples, leave
/// a few tenths of a kT of the tens that the offset bridges.
#[test]
fn offsets_take_out_what_stiffness_adds() {
    let process = Process::VariancePreserving(VariancePreserving::default());
    let levels: Vec<f64> = (0..200)
        .map(|k| 1e-4 * 1e4f64.powf(f64::from(k) / 200.0))
        .collect();
    let data = chains(20_000, 3);
    let terms = Terms::between(4, &TYPES, &BONDS, 3, 1000).unwrap();
    let pool = Pool::new(2);
    let springs = Springs::fit(&process, &levels, terms, rows(&data, None), 5, &pool).unwrap();
    let last = springs.times.len() - 1;
    assert_eq!(springs.offsets[last], 0.0);
    assert!(springs.springs[last].iter().all(|s| s.stiffness == 0.0));
    assert_eq!(springs.strengths[last], [0.0]);
    assert!(springs.strengths[0][0] > 0.5, "{:?}", springs.strengths);
    let others = chains(4000, 9);
    let mean_rise = |from: f64, to: f64| {
        let time = (from * to).sqrt();
        let (a, noise) = (process.x0_scale(time), process.noise(time));
        let mut sum = 0.0;
        for (row, x) in others.chunks_exact(12).enumerate() {
            let mut stream = Stream::new(11, Purpose::Test, 4, row as u64);
            let y: Vec<f64> = x.iter().map(|x| a * x + noise * stream.normal()).collect();
            sum += energy(&springs, to, &y) - energy(&springs, from, &y);
        }
        sum / 4000.0
    };
    let steps = 100;
    let (from, to) = (springs.times[0].ln(), springs.times[last].ln());
    let time = |k: i32| (from + f64::from(k) * (to - from) / f64::from(steps)).exp();
    let left: f64 = (0..steps).map(|k| mean_rise(time(k), time(k + 1))).sum();
    let bridged = springs.offsets[0] - springs.offsets[last];
    assert!(bridged.abs() > 3.0, "{bridged}");
    assert!(left.abs() < 0.3, "{left} of {bridged}");
}

#[test]
fn between_times_numbers_are_smooth_and_monotone() {
    let spring = |stiffness: f64| {
        vec![Spring {
            middle: 1.0 + 0.1 * stiffness,
            slope: -stiffness,
            stiffness,
            skew: 0.0,
        }]
    };
    let springs = Springs {
        held: vec![Term {
            of: vec![1, 0],
            class: 0,
        }],
        soft: vec![],
        length: 1.0,
        times: vec![0.1, 0.2, 0.5, 0.6, 0.9],
        springs: [5.0, 3.0, 2.9, 0.4, 0.4].map(spring).to_vec(),
        leaning: vec![vec![]],
        strengths: vec![vec![0.0]; 5],
        offsets: vec![1.0, 2.0, -1.0, 0.5, 0.0],
        curvatures: vec![0.0; 5],
    };
    springs.validate(2, 3).unwrap();
    assert!(springs.validate(1, 3).is_err());
    let mut short = springs.clone();
    short.leaning = vec![vec![1.0]];
    assert!(short.validate(2, 3).is_err());
    assert_eq!(springs.columns(), 6);
    let value = |time: f64, column| springs.at(time).number(column).0;
    for (k, time) in springs.times.iter().enumerate() {
        let stiffness = springs.springs[k][0].stiffness;
        assert!((value(*time, 2) - stiffness).abs() < 1e-12);
    }
    let mut before = value(0.1, 2);
    for k in 1..=800 {
        let time = 0.1 + 0.001 * f64::from(k);
        let now = value(time, 2);
        assert!(now <= before + 1e-12, "{time}: {now} after {before}");
        before = now;
        // Away from the knots, where the second derivative jumps.
        if springs.times.iter().all(|knot| (knot - time).abs() > 1e-4) {
            for column in 0..6 {
                let rise = value(time + 1e-6, column) - value(time - 1e-6, column);
                let rate = springs.at(time).number(column).1;
                assert!((rise / 2e-6 - rate).abs() < 1e-6 * (1.0 + rate.abs()));
            }
        }
    }
    for (beyond, knot) in [(0.01, 0), (0.99, 4)] {
        let number = springs.at(beyond).number(5);
        assert_eq!(number, (springs.offsets[knot], 0.0));
    }
}

/// What a file may say and no energy can be built of.
#[test]
fn springs_that_cannot_be_are_refused() {
    let data = chains(50, 8);
    let process = Process::VariancePreserving(VariancePreserving::default());
    let terms = Terms::between(4, &TYPES, &BONDS, 3, 1000).unwrap();
    let pool = Pool::new(1);
    let good = Springs::fit(&process, &[0.01, 1.0], terms, rows(&data, None), 5, &pool).unwrap();
    good.validate(4, 3).unwrap();
    assert!(good.validate(4, 2).is_err(), "a torsion in a plane");
    let wrong: [&dyn Fn(&mut Springs); 7] = [
        &|springs| springs.held[0].class = u32::MAX,
        &|springs| springs.soft[1].class = u32::MAX,
        &|springs| springs.soft[1].class = 0,
        &|springs| springs.held.reverse(),
        &|springs| springs.held.retain(|term| term.of.len() == 3),
        &|springs| springs.soft[0].of[2] = springs.soft[0].of[0],
        &|springs| springs.springs[1][0].skew = f64::NAN,
    ];
    for (k, change) in wrong.iter().enumerate() {
        let mut springs = good.clone();
        change(&mut springs);
        assert!(springs.validate(4, 3).is_err(), "change {k}");
    }
}

/// Close to the data bonds go soft within the first hundredths of the time, and where noise is large springs would be nothing but chance, which the weight of score matching makes large.
/// On a grid of equal steps in time, the loss with springs is nowhere larger than that of the Gaussian alone.
#[test]
fn springs_of_a_diffusion_serve_at_all_times() {
    let process = Process::VariancePreserving(VariancePreserving::default());
    let levels: Vec<f64> = (0..512)
        .map(|k| 5e-4 + 0.9994 * f64::from(k) / 511.0)
        .collect();
    let mut data = chains(6000, 3);
    for row in data.chunks_exact_mut(12) {
        for axis in 0..3 {
            let middle = (0..4).map(|p| row[3 * p + axis]).sum::<f64>() / 4.0;
            (0..4).for_each(|p| row[3 * p + axis] -= middle);
        }
    }
    let variance = data.iter().map(|x| x * x).sum::<f64>() / data.len() as f64;
    let (learned, others) = data.split_at(12 * 5000);
    let of = SpringRows {
        variance,
        ..rows(learned, None)
    };
    let terms = Terms::between(4, &TYPES, &BONDS, 3, 1000).unwrap();
    let springs = Springs::fit(&process, &levels, terms, of, 5, &Pool::new(2)).unwrap();
    // Means of `w |gamma s + z|^2` with and without springs.
    let losses = |time: f64| {
        let (a, noise) = (process.x0_scale(time), process.noise(time));
        let below = a * a * variance + noise * noise;
        let weight = (process.noise_level(time).powi(2) + variance) / variance;
        let mut sums = [0.0; 2];
        for (number, x) in others.chunks_exact(12).enumerate() {
            let mut stream = Stream::new(12, Purpose::Test, 5, number as u64);
            let z: Vec<f64> = x.iter().map(|_| stream.normal()).collect();
            let mut y: Vec<f64> = x.iter().zip(&z).map(|(x, z)| a * x + noise * z).collect();
            for k in 0..12 {
                let at = y[k];
                let mut side = |by: f64| {
                    y[k] = at + by;
                    energy(&springs, time, &y)
                };
                let slope = (side(1e-6) - side(-1e-6)) / 2e-6;
                y[k] = at;
                let gaussian = noise * -at / below + z[k];
                sums[0] += (gaussian - noise * slope).powi(2);
                sums[1] += gaussian * gaussian;
            }
        }
        sums.map(|sum| weight * sum / 1000.0)
    };
    // Angles rise to both ends of the cosine.
    for (k, springs) in springs.springs.iter().enumerate() {
        let Spring {
            middle,
            stiffness,
            skew,
            ..
        } = springs[2];
        for u in [-1.0 - middle, 1.0 - middle] {
            let back = u.signum() * (stiffness * u + skew * u * u / 2.0);
            assert!(back >= -1e-9 * stiffness, "{k}: {:?}", springs[2]);
        }
    }
    for time in [
        5e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.15, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99,
    ] {
        let [with, without] = losses(time);
        assert!(with < 1.02 * without, "{time}: {with} {without}");
    }
    let [with, without] = losses(0.01);
    assert!(with < 0.9 * without, "{with} {without}");
}

/// Numbers of pairs that were fitted to a Go model's frames: no closer than 1.65 bonds the energy is right, and on the way to nothing it falls by hundreds of kT.
#[test]
fn pairs_get_no_wells_where_no_samples_are() {
    let shortest = wells::Closest {
        first: 0,
        square: 1.65 * 1.65,
    };
    let lowest = |c: &[f64]| {
        let energy = |r: f64| {
            let values = terms::OF_PAIR.iter().zip(c);
            values
                .map(|((power, factor), c)| c * factor * (1.0 + r * r).powf(*power))
                .sum::<f64>()
        };
        let inside = (0..1000).map(|k| energy(1.65 * f64::from(k) / 1000.0));
        inside.fold(f64::INFINITY, f64::min) - energy(1.65)
    };
    let fitted = [123.69, -181.85, -11.74];
    let lacks = shortest.lacks(&fitted);
    assert!(lowest(&fitted) < -500.0 && lacks > 0.0, "{lacks}");
    let mended = [fitted[0], fitted[1], fitted[2] + lacks];
    let lowest_now = lowest(&mended);
    assert!((-1.01..0.0).contains(&lowest_now), "{lowest_now}");
    assert_eq!(shortest.lacks(&[8.93, 3.2, 0.13]), 0.0);
}
